"""hpo run: a server and a worker of its own, the best trial, and again."""

import os
import pathlib
import signal
import unittest

from harness import BIN, Deployment, wait_until

class Run(Deployment):
    def run_hpo(self, name, *words, pause="0"):
        command = f"sleep {pause}; echo \"{{'macro_f1':\" {{x}} '}}'"
        return self.start(name, BIN / "hpo", "run", "toy.yaml", "--dir", self.folder / "run", "--device", "cpu",
                          "--memory-limit", "1GiB", "--trainer", command, *words)

    def alone(self):
        """No process of the run is left."""
        mark = str(self.folder / "run").encode()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if mark in words and int(entry.name) != os.getpid():
                return False
        return True

    def test_runs_to_the_best_trial_and_goes_on_with_more(self):
        first = self.run_hpo("first")
        self.assertEqual(first.wait(), 0, first.output())
        self.assertIn("6 of 6 trials", first.output())
        self.assertIn("best trial of toy: #", first.output())
        self.assertNotIn("no worker is connected", first.output())
        wait_until(self.alone, "the end of its processes")
        other = self.run_hpo("other", "--name", "other", "--trials", "2")
        self.assertEqual(other.wait(), 0, other.output())
        self.assertIn("best trial of other: #", other.output())
        target = self.run_hpo("target", "--name", "target", "--target", "0", "--trials", "50")
        self.assertEqual(target.wait(), 0, target.output())
        self.assertIn("reached the target: macro_f1", target.output())
        self.assertIn(" of 50 trials", target.output())
        again = self.run_hpo("again", "--add", "2")
        self.assertEqual(again.wait(), 0, again.output())
        self.assertIn("8 of 8 trials", again.output())
        self.assertIn("trial 7 COMPLETED", again.output())

    def test_what_was_given_once_stays_where_it_is_given_no_more(self):
        first = self.run_hpo("first", "--trials", "3")
        self.assertEqual(first.wait(), 0, first.output())
        self.assertIn("3 of 3 trials", first.output())
        again = self.run_hpo("again")
        self.assertEqual(again.wait(), 0, again.output())
        self.assertIn("3 of 3 trials", again.output())
        target = self.run_hpo("target", "--target", "0", "--trials", "5")
        self.assertEqual(target.wait(), 0, target.output())
        self.assertIn("3 of 5 trials", target.output())
        again = self.run_hpo("once more")
        self.assertEqual(again.wait(), 0, again.output())
        self.assertIn("3 of 5 trials", again.output())
        self.assertIn("reached the target: macro_f1", again.output())
        (self.folder / "toy.yaml").write_text(self.STUDY.replace("trials: 6", "trials: 4"))
        changed = self.run_hpo("changed", "--target", "2")
        self.assertEqual(changed.wait(), 0, changed.output())
        self.assertIn("4 of 4 trials", changed.output(), "a changed file says what it now says")

    def test_ends_with_commands_that_work_as_printed(self):
        first = self.run_hpo("first")
        self.assertEqual(first.wait(), 0, first.output())
        steps = [line.strip() for line in first.output().split("\nnext:\n")[1].splitlines() if line.startswith("  ")]
        self.assertEqual([step.split()[:2] for step in steps], [
            ["hpo", "run"], ["hpo", "--db"], ["hpo", "--db"], ["hpo", "--db"], ["hpo", "--db"]])
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HPO_SERVER": "127.0.0.1:9"}
        said = []
        for step in steps[1:]:
            command = self.start(f"step {len(said)}", "bash", "-c", step, environment=environment)
            self.assertEqual(command.wait(), 0, f"{step}\n{command.output()}")
            said.append(command.output())
        self.assertIn("x: ", said[0])
        self.assertTrue((self.folder / "toy.db").exists())
        more = self.start("more", "bash", "-c", steps[0], environment=environment)
        self.assertEqual(more.wait(), 0, more.output())
        self.assertIn("26 of 26 trials", more.output())

    def test_runs_the_program_that_the_file_names(self):
        (self.folder / "toy.yaml").write_text(self.STUDY.replace(
            "{task: custom, epochs: 1}", "{command: [echo, \"{'macro_f1': {x}}\"]}"))
        run = self.start("own", BIN / "hpo", "run", "toy.yaml", "--dir", self.folder / "run", "--device", "cpu")
        self.assertEqual(run.wait(), 0, run.output())
        self.assertIn("6 of 6 trials", run.output())

    def test_a_signal_gives_the_trial_back_and_running_again_goes_on(self):
        first = self.run_hpo("first", pause="0.5")
        wait_until(lambda: "trial 1 COMPLETED" in first.output(), "two trials")
        first.send(signal.SIGINT)
        self.assertEqual(first.wait(), 130, first.output())
        said = first.output()
        self.assertIn("stops: the worker gives back what it runs; another Ctrl-C ends it at once", said)
        self.assertRegex(said, r"interrupted: [23] of 6 trials have ended; their results are kept in .*/run; "
                               "1 trial that had not ended will run again\n")
        self.assertIn("to go on: hpo run toy.yaml --dir", said)
        self.assertNotIn("no worker is connected", said)
        wait_until(self.alone, "the end of its processes")
        again = self.run_hpo("again")
        self.assertEqual(again.wait(), 0, again.output())
        self.assertIn("6 of 6 trials", again.output())
        self.assertNotIn("trial 1 COMPLETED", again.output())

    def test_a_killed_run_leaves_no_process(self):
        first = self.run_hpo("first", pause="0.5")
        wait_until(lambda: "trial 0 COMPLETED" in first.output(), "a trial")
        first.kill9()
        wait_until(self.alone, "the end of its processes")

    def test_says_why_it_cannot_begin(self):
        (self.folder / "bad.yaml").write_text(self.STUDY.replace("maximize", "maximise"))
        for words, status, text in [
                (("bad.yaml",), 2, "bad.yaml:2:"),
                (("nowhere.yaml",), 3, "nowhere.yaml: No such file or directory"),
                (("toy.yaml", "--", "--bogus"), 4, "hpo: hpo-worker: no option --bogus"),
                (("toy.yaml", "--export", "."), 4, "expected . to be new or an empty folder"),
                (("toy.yaml", "--trials", "2", "--add", "1"), 2, "--add"),
        ]:
            with self.subTest(words=words):
                run = self.start("begin", BIN / "hpo", "run", "--dir", self.folder / "run", *words)
                self.assertEqual(run.wait(), status, run.output())
                self.assertIn(text, run.output())
                wait_until(self.alone, "the end of its processes")

    def test_a_program_that_always_fails_ends_the_run_with_what_it_said(self):
        run = self.start("fails", BIN / "hpo", "run", "toy.yaml", "--dir", self.folder / "run", "--device", "cpu",
                         "--trainer", "echo no such data: {x}; exit 3")
        self.assertEqual(run.wait(), 7, run.output())
        self.assertIn("the program exited with status 3; its last output:\n            no such data: 0.",
                      run.output())


if __name__ == "__main__":
    unittest.main()
