"""Bad input: one clear line on standard error, a non-zero status, nothing half-written."""

import pathlib
import socket
import sqlite3
import subprocess
import unittest

from harness import BIN, DEADLINE_S, FAKE_TRAINER, Deployment


# Without a driver there are no cards to list.
NO_CARD = "7" if pathlib.Path("/proc/driver/nvidia/version").exists() else "no NVIDIA driver"


class BadInput(Deployment):
    def refuse(self, command, *expected):
        """Runs `command`, which must fail with one line that holds every one of `expected`."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False)
        self.assertNotEqual(done.returncode, 0, f"{command}: {done.stdout}")
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        self.assertEqual(len(lines), 1, done.stderr)
        for text in expected:
            self.assertIn(text, lines[0])
        return lines[0]

    def server(self, study, **options):
        path = self.folder / "bad.yaml"
        path.write_text(study)
        database = options.get("db", self.folder / "bad.db")
        return [BIN / "hpo-server", "--study", path, "--db", database, "--listen",
                options.get("listen", "127.0.0.1:0")]

    def test_study_files(self):
        cases = {
            "unknown key": (self.STUDY.replace("budget:", "bugdet:"), ["bad.yaml:4:1", "budget"]),
            "empty range": (self.STUDY.replace("x: {float: [0.0, 1.0]}",
                                               "x: {float: [1.0, 0.0]}"), ["bad.yaml:9", "x"]),
            "not YAML": ("name: [", ["bad.yaml:"]),
            "default outside": (self.STUDY.replace("x: {float: [0.0, 1.0]}",
                                                   "x: {float: [0.0, 1.0], default: 2.0}"),
                                ["bad.yaml:9", "2"]),
        }
        for name, (study, expected) in cases.items():
            with self.subTest(name):
                self.refuse(self.server(study), *expected)
                self.assertFalse((self.folder / "bad.db").exists())

    def test_unknown_study_lists_the_known_ones(self):
        self.refuse([BIN / "hpo-server", "--study", "criterion", "--db", self.folder / "x.db"],
                    "criterion", "criteria")

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            self.refuse(self.server(self.STUDY, listen=address), address, "in use")

    def test_database_of_a_newer_version(self):
        path = self.folder / "newer.db"
        server = self.start_server()
        server.terminate()
        (self.folder / "hpo.db").rename(path)
        database = sqlite3.connect(path)
        version = database.execute("PRAGMA user_version").fetchone()[0]
        self.assertGreater(version, 0)
        database.execute(f"PRAGMA user_version = {version + 1}")
        database.commit()
        database.close()
        before = path.read_bytes()
        self.refuse(self.server(self.STUDY, db=path), "newer.db", str(version + 1))
        self.assertEqual(path.read_bytes(), before)

    def test_study_changed_under_a_running_study(self):
        self.start_server()
        self.start_worker()
        self.hpo("watch", "--until-finished")
        self.processes[0].terminate()
        changed = self.STUDY.replace("x: {float: [0.0, 1.0]}", "x: {float: [0.0, 2.0]}")
        self.refuse(self.server(changed, db=self.folder / "hpo.db"), "x", "1", "2")
        longer = self.STUDY.replace("trials: 6", "trials: 7")
        (self.folder / "toy.yaml").write_text(longer)
        self.start_server()
        self.assertEqual(self.study()["budget"]["trials"], 7)

    def test_a_second_server_on_the_same_database(self):
        self.start_server()
        self.refuse(self.server(self.STUDY, db=self.folder / "hpo.db"), "hpo.db")

    def test_worker(self):
        self.start_server()
        state = ["--state-dir", self.folder / "state"]
        worker = [BIN / "hpo-worker", "--server", self.address, *state]
        self.refuse([*worker, "--gpu", "7"], NO_CARD)
        self.refuse([*worker, "--device", "cpu", "--memory-limit", "lots"], "lots")
        self.refuse([*worker, "--device", "tpu"], "tpu")
        self.refuse([*worker, "--device", "cpu", "--memory-limit", "1GiB", "--models",
                     self.folder / "nowhere"], "nowhere")

    def test_server_away(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.refuse([BIN / "hpo", "--server", address, "status"], address, "hpo-server")
        done = subprocess.run(
            [str(BIN / "hpo-worker"), "--server", address, "--device", "cpu", "--memory-limit",
             "1GiB", "--trainer", str(FAKE_TRAINER), "--state-dir", str(self.folder / "state"),
             "--connect-timeout", "1s"],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn(address, done.stderr)

    def test_command_line_typos_suggest(self):
        self.start_server()
        self.assertIn("trial", self.refuse([BIN / "hpo", "--server", self.address, "trail", "list"]))
        self.assertIn("--study", self.refuse([BIN / "hpo-server", "--studdy", "criteria"]))
        self.assertIn("--gpu", self.refuse([BIN / "hpo-worker", "--gpus", "0"]))

    @unittest.skipIf(NO_CARD == "7", "a driver is here")
    def test_a_trial_on_several_gpus_is_not_sent_to_the_cpu(self):
        said = self.refuse([BIN / "hpo-worker", "--gpus-per-trial", "2", "--allow-commands", "--server", "127.0.0.1:9",
                            "--state-dir", self.folder / "w"], "needs a machine with 2 GPUs")
        self.assertNotIn("--device cpu", said)

    def test_enqueue(self):
        self.start_server()
        hpo = [BIN / "hpo", "--server", self.address]
        self.refuse([*hpo, "enqueue", "z=1"], "z")
        self.refuse([*hpo, "enqueue", "x=7"], "x", "7")
        self.refuse([*hpo, "enqueue", "x=fast"], "x", "fast")
        self.refuse([*hpo, "trial", "show", "99"], "99")
        self.assertEqual(self.trials(), [])

    def test_every_program_has_help_and_a_version(self):
        for program in ("hpo", "hpo-server", "hpo-worker"):
            for flag in ("--help", "--version"):
                with self.subTest(f"{program} {flag}"):
                    done = subprocess.run([str(BIN / program), flag], capture_output=True,
                                          text=True, timeout=DEADLINE_S, check=False)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertIn("hpo", done.stdout)


if __name__ == "__main__":
    unittest.main()
