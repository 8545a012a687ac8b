"""What hpo shows: the widths of all that it prints, what it says where its output is gone, and what a run leaves for
the commands after it."""

import json
import os
import re
import signal
import subprocess
import unittest

from harness import BIN, DEADLINE_S, Deployment, read_terminal, wait_until

HPO = str(BIN / "hpo")
PROGRAM = """\
import json, os, pathlib
x = json.loads(os.environ["HPO_PARAMS"])["x"]
{save}
print("x is", x)
print({{"macro_f1": x}})
"""
SAVE = "pathlib.Path(os.environ['HPO_OUTPUT_DIR'], 'model.txt').write_text(str(x))"


def width(line):
    """Columns of a line without its escape sequences; the test's texts have no wide characters."""
    return len(re.sub("\x1b\\[[0-9;]*[A-Za-z]|\r", "", line))


class Output(Deployment):
    def setUp(self):
        super().setUp()
        self.environment = {"XDG_STATE_HOME": str(self.folder / "state"), "XDG_DATA_HOME": str(self.folder / "data"),
                            "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "xterm"}

    def own_environment(self, environment):
        own = {**os.environ, **self.environment, **environment}
        own.pop("HPO_SERVER", None)
        return {**own, **({"HPO_SERVER": environment["HPO_SERVER"]} if "HPO_SERVER" in environment else {})}

    def run_hpo(self, *words, **environment):
        return subprocess.run([HPO, *map(str, words)], capture_output=True, text=True, timeout=DEADLINE_S,
                              env=self.own_environment(environment), cwd=self.folder, check=False)

    def on_terminal(self, *words, columns, **environment):
        """The lines that hpo writes to a terminal, and its status."""
        said, status = read_terminal([HPO, *words], cwd=self.folder,
                                     env=self.own_environment({**environment, "COLUMNS": str(columns)}))
        # Of a redrawn line, each state.
        return re.split("\r?\n|\r\x1b\\[K", said), status

    def write_program(self, save=SAVE, name="train.py"):
        (self.folder / name).write_text(PROGRAM.format(save=save))
        (self.folder / "toy.yaml").write_text(self.STUDY.replace(
            "{task: custom, epochs: 1}", f"{{command: [python3, {name}]}}").replace("trials: 6", "trials: 3"))

    RUN = ("run", "toy.yaml", "--device", "cpu", "--memory-limit", "1GiB")

    # -- widths -----------------------------------------------------------------------------------

    def test_help_of_every_command_fits(self):
        def commands(text):
            below = re.split(r"\n(?:Subcommands|Commands):\n", text)
            return re.findall(r"^  ([a-z-]+)  ", below[1].split("\n\n")[0], re.M) if len(below) > 1 else []

        def walk(path):
            shown = self.run_hpo(*path, "--help").stdout
            self.assertTrue(shown)
            for line in shown.splitlines():
                self.assertLessEqual(width(line), 80, f"hpo {' '.join(path)} --help: {line}")
            for command in commands(shown):
                walk([*path, command])

        walk([])
        for program in ("hpo-server", "hpo-worker", "hpo-command-trainer"):
            shown = subprocess.run([str(BIN / program), "--help"], capture_output=True, text=True, timeout=DEADLINE_S,
                                   check=False).stdout
            for line in shown.splitlines():
                self.assertLessEqual(width(line), 80, f"{program} --help: {line}")
        # A command that is meant to be copied stays whole.
        narrow, _ = self.on_terminal("--help", columns=40)
        self.assertEqual([line for line in narrow if width(line) > 40 and not line.startswith("  hpo ")], [])

    def check_widths(self, lines, columns, words):
        for line in lines:
            is_command = re.match(r" +(hpo|HPO_SERVER=)", line)
            is_word = " " not in line.strip()
            self.assertTrue(width(line) <= columns or is_command or is_word, f"{words}, {columns} columns: {line!r}")

    def test_lines_fit_into_a_terminal_and_nothing_is_cut_elsewhere(self):
        long = "this sentence of an error goes on and on " * 12 + "END"
        self.write_program(save=f"if x > 0.6: raise ValueError({long!r})")
        (self.folder / "toy.yaml").write_text((self.folder / "toy.yaml").read_text().replace("trials: 3", "trials: 5"))
        said, status = self.on_terminal(*self.RUN, columns=80)
        self.assertEqual(status, 0, said)
        self.check_widths(said, 80, self.RUN)
        listed = json.loads(self.run_hpo("trial", "list", "-o", "json").stdout)["trials"]
        failed = [trial["number"] for trial in listed if trial["state"] == "FAILED"]
        self.assertTrue(failed)
        self.assertIn(f"trial logs {failed[-1]}", "\n".join(said))
        for words in (["status"], ["best"], ["trial", "list"], ["trial", "show", str(failed[0])], ["study", "show"],
                      ["study", "list"], ["trial", "show", "99"], ["--study", "none", "status"],
                      ["study", "validate", "toy.yaml"], ["doctor"], ["trial", "list", "--where", "y<none"]):
            for columns in (40, 80):
                lines, _ = self.on_terminal(*words, columns=columns)
                self.check_widths(lines, columns, words)
        self.assertIn("END", self.run_hpo("trial", "show", failed[0]).stdout.splitlines()[4])
        news = [line for line in self.run_hpo("run", "toy.yaml", "--device", "cpu", "--name", "other").stdout.splitlines()
                if "FAILED" in line]
        self.assertTrue(news)
        self.assertLess(max(map(len, news)), 260)

    # -- an output that is gone -------------------------------------------------------------------

    def test_an_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for words in (["study", "presets"], ["--help"], ["completion", "bash"], ["study", "validate", "toy.yaml"]):
                done = subprocess.run([HPO, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S,
                                      env=self.own_environment({}), cwd=self.folder, check=False)
                self.assertEqual((done.returncode, done.stderr.splitlines()[-1:]),
                                 (1, ["hpo: cannot write to standard output: No space left on device"]), words)
        closed = self.start("closed", "bash", "-c", f"exec >&-; {HPO} study presets memory-safe", environment=self.environment)
        self.assertEqual(closed.wait(), 1, closed.output())
        self.assertIn("cannot write to standard output", closed.output())
        server = self.start("server", "bash", "-c", f"exec >&- 2>&-; exec {BIN / 'hpo-server'} --db hpo.db --listen "
                            "127.0.0.1:0 --address-file address --study toy.yaml")
        wait_until(lambda: (self.folder / "address").exists() and (self.folder / "address").read_text().strip(), "it answers")
        for words in (["watch"], ["watch", "-o", "json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                watch = subprocess.run([HPO, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S,
                                       env=self.own_environment({"HPO_SERVER": (self.folder / "address").read_text().strip()}),
                                       check=False)
            self.assertEqual(watch.returncode, 1, watch.stderr)
        self.assertEqual(server.terminate(), 0)
        self.assertEqual(self.run_hpo("--db", "hpo.db", "study", "list").returncode, 0)

    # -- words and environments -------------------------------------------------------------------

    def test_what_a_command_cannot_take_is_said(self):
        for words, said in [
                (["--study", "", "status"], "--study: expected the name of a study, got an empty text"),
                (["study", "show", ""], "name: expected the name of a study, got an empty text"),
                (["run", ""], "file: expected a study file, or the name of a preset, got an empty text"),
                (["--db", "", "status"], "--db: expected a database file, got an empty text"),
                (["--server", "", "status"], "--server: expected HOST, HOST:PORT or unix:/path, got ''"),
                (["--server", "http://localhost:50051", "status"], "--server: expected HOST, HOST:PORT or unix:/path"),
                (["-o", "jsom", "status"], "--output: expected one of table, json, yaml, got 'jsom'; did you mean 'json'?"),
                (["run", "toy.yaml", "toy.yaml"], "expected one study, and after -- options of hpo-worker, got 'toy.yaml'")]:
            with self.subTest(words=words):
                done = self.run_hpo(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_nothing_is_written_where_there_is_no_home(self):
        nowhere = {"HOME": "", "XDG_STATE_HOME": "", "XDG_DATA_HOME": ""}
        run = self.run_hpo(*self.RUN, **nowhere)
        self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
        self.assertIn("--dir: expected a folder, as neither XDG_DATA_HOME nor HOME is set", run.stderr)
        self.write_program()
        run = self.run_hpo(*self.RUN, "--dir", "here", **nowhere)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        logs = self.run_hpo("--db", "here/hpo.db", "trial", "logs", "0", **nowhere)
        self.assertIn("x is 0.", logs.stdout, logs.stderr)
        worker = subprocess.run([str(BIN / "hpo-worker"), "--device", "cpu", "--memory-limit", "1GiB"], capture_output=True, text=True,
                                timeout=DEADLINE_S, env=self.own_environment(nowhere), check=False)
        self.assertEqual(worker.returncode, 78)
        self.assertIn("--state-dir: expected a folder", worker.stderr)

    # -- after a run ------------------------------------------------------------------------------

    def test_commands_after_a_run_find_its_database(self):
        nothing = self.run_hpo("status")
        self.assertEqual(nothing.returncode, 5, nothing.stderr)
        self.write_program()
        run = self.run_hpo(*self.RUN, "--dir", "here")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        again = self.run_hpo(*self.RUN, "--dir", "here", "--name", "second")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        database = self.folder / "here/hpo.db"
        for words, said in [(["trial", "logs", "1"], "x is 0."), (["best"], "best trial of second"),
                            (["status"], "second (finished)"), (["best", "--study", "toy"], "best trial of toy")]:
            done = self.run_hpo(*words)
            self.assertIn(said, done.stdout, words)
            self.assertEqual((done.returncode, done.stderr),
                             (0, "hpo: no hpo-server answers at 127.0.0.1:50051; reading the database of the last hpo run: "
                                 f"{database}\n"), words)
        changes = self.run_hpo("trial", "retry", "--failed")
        self.assertEqual(changes.returncode, 5)
        self.assertIn(f"hpo-server --db {database}", changes.stderr)
        # Whoever names a server means it.
        for done in (self.run_hpo("best", HPO_SERVER="127.0.0.1:9"), self.run_hpo("best", "--server", "127.0.0.1:9")):
            self.assertEqual((done.returncode, done.stdout), (5, ""))

    def test_an_interrupted_run_says_so(self):
        self.write_program(save="import time; time.sleep(0.5)")
        run = self.start("interrupted", HPO, *self.RUN, environment=self.environment)
        wait_until(lambda: "trial 0 COMPLETED" in run.output(), "a trial")
        run.send(signal.SIGINT)
        self.assertEqual(run.wait(), 130, run.output())
        said = run.output().split("stops: the worker gives back what it runs")[1]
        self.assertRegex(said, r"\ninterrupted: [12] of 3 trials have ended; their results are kept in .*/runs/toy")
        self.assertIn("\nto go on: hpo run toy.yaml", said)
        self.assertNotIn("no worker is connected", run.output())

    # -- models -----------------------------------------------------------------------------------

    def test_the_folder_that_a_program_fills_is_its_model(self):
        self.write_program()
        run = self.run_hpo(*self.RUN, "--export", "model")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        best = json.loads(self.run_hpo("best", "-o", "json").stdout)["trials"][0]
        self.assertEqual((self.folder / "model/model.txt").read_text(), str(best["params"]["x"]))
        self.assertEqual([path.name for path in (self.folder / "model").iterdir()], ["model.txt"])
        for number in range(3):
            self.assertIn("x is 0.", self.run_hpo("trial", "logs", number).stdout, "logs stay where models go")
        self.assertEqual(self.run_hpo("best", "--export", "again").returncode, 0)

    def test_a_program_without_a_model_is_warned_of_early(self):
        self.write_program(save="")
        run = self.run_hpo(*self.RUN, "--export", "model")
        self.assertEqual(run.returncode, 4, run.stdout + run.stderr)
        after_first = run.stdout.split("trial 0 COMPLETED")[1].split("trial 2 COMPLETED")[0].splitlines()
        self.assertIn("warning: --export: trial 0 left no model; a program saves its model in the folder "
                      "that the variable HPO_OUTPUT_DIR names", after_first)
        self.assertIn("best trial of toy", run.stdout)
        self.assertIn("next:", run.stdout)
        self.assertRegex(run.stderr, r"hpo: --export: trial #\d left no model; a program saves")
        self.assertFalse((self.folder / "model").exists())

    def test_on_a_cpu_dry_runs_that_a_study_asks_for_are_said_not_to_be_made(self):
        self.write_program()
        study = self.folder / "toy.yaml"
        study.write_text(study.read_text().replace('memory: {policy: "off"}', "memory: {preflight: dry-run}"))
        run = self.run_hpo(*self.RUN)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("warning: memory.preflight: no configuration is dry-run", run.stdout)


if __name__ == "__main__":
    unittest.main()
