"""What people see who use it for the first time: values, reasons, and where to look next."""

import unittest

from harness import BIN, SOURCE, Deployment, wait_until


class FirstHour(Deployment):
    def test_a_workers_log_has_values_and_reasons(self):
        self.start_server()
        worker = self.start_worker(
            environment={"HPO_FAKE_FAULT": "diverged",
                         "HPO_FAKE_FAULT_ONCE": str(self.folder / "once")})
        self.hpo("watch", "--until-finished")
        worker.wait()
        log = worker.output()
        self.assertRegex(log, r"trial #\d of toy: FAILED, .*\w")
        self.assertRegex(log, r"trial #\d of toy: COMPLETED, macro_f1 0\.\d+")
        listed = self.hpo("trial", "list")
        failed = next(line for line in listed.splitlines() if "FAILED" in line)
        self.assertRegex(failed, r"loss is nan$", listed)

    def test_a_worker_says_at_once_why_it_idles(self):
        self.start_server()
        first = self.start_worker("w0", "--max-trials", "1",
                                  environment={"HPO_FAKE_PACE_MS": "30000"})
        wait_until(lambda: self.study()["counts"]["running"] == 1, "a running trial")
        self.hpo("study", "pause")
        paused = self.start_worker("w1")
        wait_until(lambda: "waiting: study toy: paused" in paused.output(), "why it idles", 10)
        self.hpo("study", "extend", "--trials", "1")
        self.hpo("study", "resume")
        last = self.start_worker("w2")
        wait_until(lambda: "running: trial #0 on w0" in last.output(), "why it idles", 10)
        paused.terminate()
        wait_until(lambda: next(w for w in self.study()["workers"] if w["name"] == "w1")["alive"]
                   is False, "that it has left", 10)
        self.assertIn("gone", self.hpo("status"))
        first.kill9()

    def test_a_trials_log_is_found_on_the_workers_machine(self):
        self.start_server()
        self.start_worker(environment={"HPO_FAKE_SAY": "hello from the program"})
        self.hpo("watch", "--until-finished")
        state = self.folder / "state-w0"
        self.assertIn("hello from the program",
                      self.hpo("trial", "logs", 1, "--state-dir", state))
        self.assertEqual(self.json("trial", "logs", 1, "--state-dir", state)["worker"], "w0")
        error = self.hpo("trial", "logs", 1, "--state-dir", self.folder, status=3)
        self.assertIn("ran on worker w0", error)
        self.hpo("trial", "logs", 1, "--attempt", 9, "--state-dir", state, status=3)

    def test_a_second_study_of_one_file_and_a_host_without_a_port(self):
        server = self.start_server("--name", "second")
        self.assertEqual(self.json("study", "show")["name"], "second")
        server.terminate()
        done = self.start("both", BIN / "hpo-server", "--name", "x", "--study", "a", "--study", "b")
        self.assertNotEqual(done.wait(), 0)
        self.assertIn("--name: expected one --study, got 2", done.output())
        error = self.hpo("status", "--server", "localhost", status=5)
        self.assertIn("localhost:50051", error)

    def test_a_quickstart_whose_trainer_does_not_start_says_why_and_waits_for_nothing(self):
        programs = self.folder / "bin"
        programs.mkdir()
        for name in ("hpo", "hpo-server", "hpo-worker"):
            (programs / name).symlink_to(BIN / name)
        trainer = programs / "hpo-trainer"
        trainer.write_text("#!/bin/sh\necho 'no LibTorch here' >&2\nexit 24\n", encoding="utf-8")
        trainer.chmod(0o755)
        run = self.start("quickstart", SOURCE / "scripts/quickstart", "--bin", programs, "--dir",
                         self.folder / "run")
        self.assertEqual(run.wait(), 1, run.output())
        self.assertIn("no LibTorch here", run.output())
        self.assertIn("hpo-trainer does not start", run.output())
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    unittest.main()
