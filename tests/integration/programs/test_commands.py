"""Studies with a command: which workers run it, placeholders that are misspelt, programs that cannot be started, and
what is said where nothing is left to run."""

import json
import shutil
import unittest

from harness import BIN, FAKE_TRAINER, Deployment, wait_until

STUDY = """\
name: toy
objective: {metric: loss, direction: minimize}
trainer: {command: %s%s}
budget: {trials: %d}
sampler: {type: %s}
parameters:
  lr: {%s}
  amp: {choices: [true, false]}
"""
GOOD = ["echo", "{'loss': {lr}}"]


class Commands(Deployment):
    def write(self, command, trials=3, sampler="random", lr="float: [0.0, 1.0]", workdir=""):
        (self.folder / "toy.yaml").write_text(
            STUDY % (json.dumps(command), f", workdir: {workdir}" if workdir else "", trials, sampler, lr))

    def run_study(self, status, *words):
        """What hpo run prints."""
        run = self.start("run", BIN / "hpo", "run", "./toy.yaml", "--dir", self.folder / "run", "--device", "cpu",
                         "--memory-limit", "1GiB", *words)
        self.assertEqual(run.wait(), status, run.output())
        return run.output()

    def states(self):
        """Of the trials of hpo run."""
        listed = self.hpo("--db", self.folder / "run/hpo.db", "trial", "list", "--output", "json")
        return [trial["state"] for trial in json.loads(listed)["trials"]]

    def worker(self, *words, program=BIN / "hpo-worker"):
        return self.start("worker", program, "--server", self.address, "--device", "cpu", "--memory-limit", "1GiB",
                          "--state-dir", self.folder / "state", *words)


class WhoRunsIt(Commands):
    def test_not_a_worker_without_commands(self):
        self.write(GOOD)
        self.start_server()
        self.assertIn("run: hpo-worker --study toy --allow-commands --gpu 0", self.study()["waiting_for"])
        # hpo-trainer is the program beside hpo-worker.
        programs = self.folder / "programs"
        programs.mkdir()
        shutil.copy(BIN / "hpo-worker", programs)
        shutil.copy(FAKE_TRAINER, programs / "hpo-trainer")
        plain = self.worker(program=programs / "hpo-worker")
        advice = "start one that runs the study's program: hpo-worker --study toy --allow-commands"
        wait_until(lambda: advice in plain.output(), "what the worker waits for")
        self.assertIn(advice, self.study()["waiting_for"])
        self.assertEqual(self.trials(), [])
        worker = self.start("commands", BIN / "hpo-worker", "--server", self.address, "--device", "cpu",
                            "--memory-limit", "1GiB", "--state-dir", self.folder / "other", "--study", "toy",
                            "--allow-commands")
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual([trial["state"] for trial in self.trials()], ["COMPLETED"] * 3)
        self.assertEqual(plain.wait(), 0, plain.output())
        late = self.worker("--study", "toy", "--allow-commands")
        self.assertEqual(late.wait(), 0, late.output())
        self.assertIn("study toy is finished: its budget is used up", late.output())

    def test_a_worker_says_that_no_server_answers(self):
        self.address = "127.0.0.1:9"
        worker = self.worker("--study", "toy", "--allow-commands", "--connect-timeout", "500ms")
        self.assertEqual(worker.wait(), 75, worker.output())
        self.assertIn("waiting for the server at 127.0.0.1:9", worker.output())
        self.assertIn("no answer from 127.0.0.1:9 within 500ms", worker.output())

    def test_a_worker_says_that_there_is_no_such_study(self):
        self.write(GOOD)
        self.start_server()
        worker = self.worker("--study", "toys", "--allow-commands")
        wait_until(lambda: "waiting: the server has no study toys; to create one" in worker.output(), "what it waits for")
        worker.terminate()


    def test_hpo_run_says_that_a_task_needs_a_program(self):
        self.assertIn('trainer.command: expected a program for the task custom, here or by --trainer "COMMAND", got none',
                      self.run_study(2))


class Misspelt(Commands):
    def test_in_the_studys_file(self):
        for command, said in ((["echo", "{train.lr}"], "got {train.lr}; did you mean {lr}?"),
                              (["echo", "{flag:ammp}"], "got {flag:ammp}; did you mean {flag:amp}?"),
                              ("echo {lrr} | cat", "which are lr, amp, or {args}")):
            with self.subTest(command=command):
                self.write(command)
                told = self.run_study(2)
                self.assertIn("toy.yaml:3:", told)
                self.assertIn(said, told)
                self.assertFalse((self.folder / "run").exists(), "nothing has begun")
        self.address = "127.0.0.1:9"
        self.assertIn("trainer.command: expected placeholders", self.hpo("study", "validate", self.folder / "toy.yaml", status=2))

    def test_in_an_option_of_hpo_run(self):
        self.write(GOOD)
        self.assertIn("--trainer: expected placeholders", self.run_study(2, "--trainer", "echo {train.lr}"))
        self.assertIn("--metrics-file: expected placeholders",
                      self.run_study(2, "--trainer", "echo {lr}", "--metrics-file", "{out_dir}/a"))

    def test_in_an_option_of_the_worker(self):
        self.write(GOOD)
        self.start_server()
        worker = self.worker("--trainer", "echo {train.lr}")
        self.assertEqual(worker.wait(), 78, worker.output())
        self.assertIn("--trainer: expected placeholders", worker.output())
        self.assertIn("did you mean {lr}?", worker.output())
        self.assertEqual([trial["state"] for trial in self.trials()], ["QUEUED"])
        worker = self.worker("--trainer", "echo '{\"loss\": {lr}}'")
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual([trial["state"] for trial in self.trials()], ["COMPLETED"] * 3)


class CannotStart(Commands):
    def test_a_program_that_is_not_there_uses_up_no_trial(self):
        (self.folder / "train.py").write_text("print({'loss': 1})\n")
        for command, said in ((["no-such-program", "{lr}"], "no-such-program: "),
                              (["./train.py", "{lr}"], "./train.py: Permission denied"),
                              (["python3", "nosuch.py", "{lr}"], "nosuch.py"),
                              ("cd . && no-such-program {lr}", "no-such-program: ")):
            with self.subTest(command=command):
                self.write(command)
                told = self.run_study(4)
                self.assertIn("trial #0 of study toy is given back, as its command cannot run: "
                              "the program cannot be started", told)
                self.assertIn(said, told)
                self.assertIn("to go on, once that is mended: hpo run ./toy.yaml", told)
                self.assertEqual(self.states(), ["QUEUED"])
        self.write(["no-such-program", "{lr}"])
        self.assertIn("no-such-program: ", self.run_study(4, "--workers", "2"))
        self.assertEqual(set(self.states()), {"QUEUED"})
        self.write(GOOD)
        self.run_study(0)
        self.assertEqual(self.states(), ["COMPLETED"] * 3)

    def test_a_folder_that_is_not_there(self):
        self.write(GOOD, workdir="nowhere")
        self.assertIn("trainer.workdir of study toy: expected a folder of this machine, got nowhere", self.run_study(4))

    def test_a_program_that_one_trial_names_fails_that_trial(self):
        (self.folder / "toy.yaml").write_text(STUDY.replace("amp: {choices: [true, false]}", "p: {choices: [echo, nosuch]}")
                                              % (json.dumps("{p} \"{'loss': {lr}}\""), "", 6, "grid", "choices: [1, 2, 3]"))
        self.run_study(0)
        self.assertEqual(sorted(self.states()), ["COMPLETED"] * 3 + ["FAILED"] * 3)

    def test_where_all_trials_have_failed_they_run_again(self):
        self.write("exit {lr}3", trials=2, lr="int: [1, 2]")
        told = self.run_study(6)
        self.assertIn("# run the failed trials again, once it is mended", told)
        self.write(["echo", "{'loss': {lr}}"], trials=2, lr="int: [1, 2]")
        told = self.run_study(0)
        self.assertIn("all trials of the study have failed; 2 configurations run again, as new trials", told)
        self.assertEqual(self.states(), ["FAILED"] * 2 + ["COMPLETED"] * 2)

    def test_a_server_says_what_retries_them(self):
        self.write("exit {lr}3", trials=2, lr="int: [1, 2]")
        self.start_server()
        worker = self.worker("--allow-commands")
        self.assertEqual(worker.wait(), 0, worker.output())
        advice = "all trials of the study have failed; to go on: hpo trial retry --failed --study toy"
        self.assertIn(advice, worker.output())
        self.assertIn(advice, self.study()["waiting_for"])
        self.write(["echo", "{'loss': {lr}}"], trials=2, lr="int: [1, 2]")
        self.assertIn(advice, self.hpo("study", "create", self.folder / "toy.yaml"))
        self.hpo("trial", "retry", "--failed", "--study", "toy")
        worker = self.worker("--allow-commands")
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual([trial["state"] for trial in self.trials()], ["FAILED"] * 2 + ["COMPLETED"] * 2)


class UsedUp(Commands):
    def test_hpo_run_goes_on_with_an_edited_file(self):
        for sampler in ("grid", "random"):
            with self.subTest(sampler):
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                self.write(GOOD, trials=30, sampler=sampler, lr="int: [1, 2]")
                told = self.run_study(0)
                self.assertIn("ended: every configuration of the space has been tried\n", told)
                self.assertNotIn("study edit", told)
                self.assertIn("--edit  # go on, once the study's file has more values", told)
                self.write(GOOD, trials=30, sampler=sampler, lr="int: [1, 4]")
                refused = self.run_study(4)
                self.assertIn("for ranges: hpo run ./toy.yaml", refused)
                self.assertIn("--edit", refused)
                self.run_study(0, "--edit")
                self.assertEqual(self.states(), ["COMPLETED"] * 8)
                self.run_study(0)

    def test_a_server_advises_an_edit_that_works(self):
        self.write(GOOD, trials=30, sampler="grid", lr="int: [1, 2]")
        self.start_server()
        worker = self.worker("--allow-commands")
        self.assertEqual(worker.wait(), 0, worker.output())
        self.write(GOOD, trials=30, sampler="grid", lr="int: [1, 3]")
        told = self.hpo("status", "--study", "toy").replace("\n", " ")
        self.assertIn(f"to go on: hpo study edit toy FILE --server {self.address}, with more values in FILE", " ".join(told.split()))
        self.hpo("study", "edit", "toy", self.folder / "toy.yaml")
        worker = self.worker("--allow-commands")
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual(len(self.trials()), 6)


if __name__ == "__main__":
    unittest.main()
