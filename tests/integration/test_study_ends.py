"""How a study ends that cannot go on, how people end, pause and resume one, and whose trials a worker
with a program of its own takes."""

import signal
import sys
import unittest

from harness import BIN, Deployment, wait_until

STUDY_FAILED = 7

# A trainer in which what the user wrote comes after the hello line.
TRAINER = """\
import json, os, sys
channel = os.fdopen(int(os.environ.get("HPO_TRAINER_FD", "3")), "r+b", buffering=0)
def tell(message):
    channel.write((json.dumps(message) + "\\n").encode())
tell({"type": "hello", "version": 1})
job = json.loads(channel.readline())
"""
RAISES = "raise ValueError('the learning rate is negative')\n"
MISSPELT = 'tell({"type": "outcome", "outcome": {"kind": "completed", "metrics": {"Macro_F1": 0.5}}})\n'
COMPLETES = 'tell({"type": "outcome", "outcome": {"kind": "completed", "metrics": {"macro_f1": 0.5}}})\n'


class StudyEndsTest(Deployment):
    def program(self, name, text):
        path = self.folder / f"{name}.py"
        path.write_text(TRAINER + text)
        return f"{sys.executable} {path}"

    def allow_trials(self, number):
        study = self.folder / "toy.yaml"
        study.write_text(self.STUDY.replace("trials: 6", f"trials: {number}"))

    def test_a_program_that_always_raises_costs_five_trials_and_shows_its_traceback(self):
        self.allow_trials(100)
        server = self.start_server()
        watch = self.start("watch", BIN / "hpo", "--server", self.address, "watch",
                           "--until-finished")
        worker = self.start_worker(trainer=self.program("train", RAISES))
        self.assertEqual(watch.wait(), STUDY_FAILED, watch.output())
        self.assertIn("ValueError: the learning rate is negative", watch.output())
        self.assertEqual(self.study()["counts"]["failed"], 5)  # always_raising_trials
        self.assertIn("ValueError: the learning rate is negative", self.hpo("status"))
        self.assertEqual(worker.wait(), STUDY_FAILED)
        self.assertIn("study toy is finished: 5 trials failed", worker.output())
        self.assertEqual(server.terminate(), STUDY_FAILED, server.output())
        self.assertIn("ValueError: the learning rate is negative", server.output())
        self.assertIn("Traceback", server.output())

        over = self.start("over", BIN / "hpo-server", "--study", self.folder / "toy.yaml", "--db",
                          self.folder / "hpo.db", "--listen", "127.0.0.1:0",
                          "--exit-when-finished")
        self.assertEqual(over.wait(), STUDY_FAILED)

        again = self.start_server("--resume")
        self.start_worker("w1", trainer=self.program("repaired", COMPLETES))
        wait_until(lambda: self.study()["counts"]["completed"] >= 2, "completed trials")
        self.assertEqual(self.study()["failure"], None)
        self.assertEqual(again.terminate(), 0)

    def test_a_misspelt_objective_is_told_at_the_first_trial(self):
        self.start_server()
        self.start_worker(trainer=self.program("train", MISSPELT))
        wait_until(lambda: self.study()["counts"]["failed"] == 5, "five failures")
        self.assertEqual(self.trial(0)["state"], "FAILED")
        self.assertIn("expected the study's objective macro_f1, got Macro_F1",
                      self.hpo("trial", "show", 0))
        self.assertEqual(self.study()["state"], "FINISHED")

    def test_a_study_pauses_resumes_and_stops(self):
        self.allow_trials(1000)
        self.start_server("--lease-ttl", "3s")
        pace = {"HPO_FAKE_PACE_MS": "20", "HPO_FAKE_MEASUREMENTS": "20"}
        worker = self.start_worker(environment=pace)
        wait_until(lambda: self.study()["counts"]["completed"] >= 1, "a result")
        self.assertIn("paused", self.hpo("study", "pause"))
        wait_until(lambda: self.study()["counts"]["running"] == 0, "the running trial's end")
        done = self.study()["counts"]["completed"]
        self.assertIn("toy (paused)", self.hpo("study", "show"))
        self.hpo("study", "resume")
        wait_until(lambda: self.study()["counts"]["completed"] > done, "another result")
        self.assertTrue(worker.alive())
        wait_until(lambda: self.study()["counts"]["running"] == 1, "a running trial")
        self.assertIn("stopped", self.hpo("study", "stop", "--now"))
        self.assertEqual(worker.wait(), 0, worker.output())
        study = self.study()
        self.assertEqual((study["state"], study["order"]), ("FINISHED", "STOP"))
        self.assertEqual(study["counts"]["running"], 0)
        self.assertIn("resume", self.hpo("enqueue", "x=0.5", status=4))

    def test_a_trial_is_stopped_and_another_is_cancelled(self):
        self.start_server("--lease-ttl", "3s")
        self.hpo("enqueue", "x=0.25")
        self.hpo("enqueue", "x=0.5")
        self.assertIn("cancelled", self.hpo("trial", "cancel", 1))
        self.start_worker(environment={"HPO_FAKE_PACE_MS": "20", "HPO_FAKE_MEASUREMENTS": "100000"})
        wait_until(lambda: self.trial(0)["state"] == "RUNNING", "trial 0")
        self.assertIn("expected a queued one", self.hpo("trial", "cancel", 0, status=4))
        self.assertIn("heartbeat", self.hpo("trial", "stop", 0))
        wait_until(lambda: self.trial(0)["state"] == "CANCELLED", "the end of trial 0")
        for number, reason in ((0, "stopped by hand"), (1, "cancelled by hand")):
            self.assertIn(reason, self.hpo("trial", "show", number))
        self.assertEqual(self.study()["counts"]["cancelled"], 2)

    def test_a_program_of_ones_own_takes_no_other_studys_trials(self):
        self.allow_trials(2)
        self.start_server()
        other = self.folder / "other.yaml"
        other.write_text(self.STUDY.replace("name: toy", "name: other"))
        self.hpo("study", "create", other)
        unsure = self.start_worker("unsure", trainer=self.program("mine", COMPLETES))
        wait_until(lambda: "say which it serves with --study NAME" in unsure.output(),
                   "why the worker waits")
        told = self.start_worker("told", "--study", "toy", trainer=self.program("mine", COMPLETES))
        self.assertEqual(told.wait(), 0, told.output())
        self.assertEqual(self.study()["counts"]["completed"], 2)
        self.assertEqual(self.json("study", "show", "other")["counts"]["completed"], 0)
        self.assertEqual({t["attempts"][0]["worker"] for t in map(self.trial, (0, 1))}, {"told"})
        unsure.send(signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
