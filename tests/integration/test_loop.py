"""The whole loop with the fake trainer: ask, run, report, tell, and what people see of it."""

import unittest

from harness import Deployment, wait_until


class Loop(Deployment):
    def test_a_study_runs_to_its_end_and_its_worker_leaves(self):
        self.start_server()
        worker = self.start_worker()
        self.hpo("watch", "--until-finished")
        self.assertEqual(worker.wait(), 0, worker.output())
        study = self.study()
        self.assertEqual(study["counts"]["completed"], 6)
        trials = self.trials()
        self.assertEqual([t["number"] for t in trials], list(range(6)))
        best = max(trials, key=lambda t: t["value"])
        self.assertEqual(study["best_trial"], best["number"])
        self.assertEqual(study["best_value"], best["value"])
        self.assertEqual(self.json("best")["trials"][0]["number"], best["number"])

    def test_a_study_is_extended_while_the_server_runs(self):
        self.start_server()
        self.start_worker("w0", "--stay")
        self.hpo("watch", "--until-finished")
        self.hpo("study", "extend", "toy", "--add", "2")
        self.hpo("watch", "--until-finished")
        self.assertEqual(self.study()["counts"]["completed"], 8)

    def test_several_workers_keep_the_budget_exactly(self):
        self.start_server()
        for name in ("w0", "w1", "w2"):
            self.start_worker(name, environment={"HPO_FAKE_PACE_MS": "20"})
        self.hpo("watch", "--until-finished")
        trials = self.trials()
        self.assertEqual(len(trials), 6)
        points = {tuple(sorted(t["params"].items())) for t in trials}
        self.assertEqual(len(points), 6)

    def test_status_answers_while_training(self):
        self.start_server()
        self.start_worker(environment={"HPO_FAKE_PACE_MS": "50"})
        wait_until(lambda: any(t["state"] == "RUNNING" for t in self.trials()), "a running trial")
        self.assertIn("toy", self.hpo("status"))
        self.hpo("watch", "--until-finished")

    def test_the_same_seed_proposes_the_same_trials(self):
        self.start_server()
        self.start_worker()
        self.hpo("watch", "--until-finished")
        first = [t["params"] for t in self.trials()]
        for process in self.processes:
            process.terminate()
        (self.folder / "hpo.db").rename(self.folder / "first.db")
        self.start_server()
        self.start_worker("w1")
        self.hpo("watch", "--until-finished")
        self.assertEqual([t["params"] for t in self.trials()], first)

    def test_an_oom_is_shown_with_its_bytes(self):
        self.start_server()
        self.start_worker(environment={"HPO_FAKE_OOM_ABOVE": "0"})
        # 6: the study is finished, without a completed trial.
        self.hpo("watch", "--until-finished", status=6)
        counts = self.study()["counts"]
        self.assertEqual((counts["pruned"], counts["oom_met"]), (6, 6))
        trial = self.trial(0)
        self.assertEqual(trial["prune_reason"], "OUT_OF_MEMORY")
        self.assertEqual(trial["outcome"]["kind"], "out_of_memory")
        self.assertIn("OUT_OF_MEMORY", self.hpo("trial", "show", "0"))

    def test_an_oom_at_one_row_is_met_with_checkpointing_where_the_study_allows_it(self):
        study = self.folder / "toy.yaml"
        study.write_text(self.STUDY.replace(
            'memory: {policy: "off"}', "memory: {policy: plan, allow_checkpointing: true}"))
        self.start_server()
        # 256 tokens a row, half of them with checkpointing.
        self.start_worker(environment={"HPO_FAKE_OOM_ABOVE": "200", "HPO_FAKE_RECOVER": "1"})
        self.hpo("watch", "--until-finished")
        counts = self.study()["counts"]
        self.assertEqual((counts["completed"], counts["oom_recovered"]), (6, 6))
        for trial in self.trials():
            attempt, = self.trial(trial["number"])["attempts"]
            self.assertEqual((attempt["final_plan"]["micro_batch"],
                              attempt["final_plan"]["checkpointing"]), (1, True))
        self.assertIn("checkpointing", self.hpo("trial", "show", "0"))


if __name__ == "__main__":
    unittest.main()
