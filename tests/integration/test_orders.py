"""What the server orders of a running trial: to give its card back, and to end at its time limit.
And what trials tell of their memory on the way."""

import unittest

from harness import Deployment, wait_until
from test_survival import TERMINAL


class OrdersTest(Deployment):
    def running(self, number=0):
        trial = self.trial(number) if self.trials() else {}
        return trial if trial.get("last_measurement") and trial["state"] == "RUNNING" else None

    def test_a_preempted_trial_is_queued_and_goes_on(self):
        self.start_server("--lease-ttl", "3s")
        self.start_worker(environment={"HPO_FAKE_PACE_MS": "20", "HPO_FAKE_MEASUREMENTS": "300"})
        wait_until(self.running, "a measurement of trial 0")
        self.assertIn("gives it back", self.hpo("trial", "preempt", 0))

        def second_attempt():
            trial = self.trial(0)
            return trial if len(trial["attempts"]) == 2 else None
        trial = wait_until(second_attempt, "the trial's second attempt")
        self.assertEqual(trial["attempts"][0]["state"], "RELEASED")
        self.assertEqual(trial["attempts"][0]["end_note"], "preempted: ordered by the server")
        self.assertIn(trial["state"], ("RUNNING", "COMPLETED"))
        ended = wait_until(lambda: self.trial(0) if self.trial(0)["state"] in TERMINAL else None,
                           "the trial's end")
        self.assertEqual(ended["state"], "COMPLETED")
        self.assertIn("expected a running one", self.hpo("trial", "preempt", 0, status=4))

    def test_a_trial_ends_at_its_time_limit_with_what_it_has(self):
        study = self.folder / "toy.yaml"
        study.write_text(study.read_text().replace("budget: {trials: 6}",
                                                   "budget: {trials: 1, trial_wall_clock: 3s}"))
        self.start_server("--lease-ttl", "3s")
        worker = self.start_worker(environment={
            "HPO_FAKE_PACE_MS": "20", "HPO_FAKE_MEASUREMENTS": "100000", "HPO_FAKE_BEST": "1"})
        trial = wait_until(
            lambda: next((t for t in self.trials() if t["state"] in TERMINAL), None),
            "the trial's end")
        self.assertEqual((trial["state"], trial["prune_reason"]), ("PRUNED", "PRUNER"))
        self.assertEqual(trial["outcome"]["pruner"], "time limit")
        self.assertGreater(trial["outcome"]["step"], 0)
        worker.wait()
        kept = self.folder / "state-w0/w0/runs/toy/000000-1/best/model.safetensors"
        self.assertTrue(kept.exists(), "its best weights stay")
        self.assertIn(f"its best weights: {kept.parent}", worker.output())

    def test_memory_records_are_shown(self):
        self.start_server()
        self.start_worker()
        wait_until(lambda: self.study()["counts"]["completed"] == 6, "six trials")
        stages = self.trial(3)["attempts"][0]["stages"]
        self.assertEqual([s["stage"] for s in stages], ["Training Start", "Trial Success"])
        self.assertEqual(stages[1]["change_bytes"], 0)
        self.assertEqual(stages[0]["allocated_bytes"], 1 << 20)
        self.assertIn("MEMORY AT", self.hpo("trial", "show", 3))


if __name__ == "__main__":
    unittest.main()
