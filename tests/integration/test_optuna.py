"""A study exported for Optuna, read back by Optuna itself and by its dashboard."""

import importlib.util
import json
import sys
import unittest
import urllib.error
import urllib.request

from harness import Deployment, wait_until
from test_tracking import free_port

HAS_OPTUNA = importlib.util.find_spec("optuna") is not None
HAS_DASHBOARD = importlib.util.find_spec("optuna_dashboard") is not None
START_S = 120.0


@unittest.skipUnless(HAS_OPTUNA, "the Python package optuna is not there (scripts/bootstrap)")
class OptunaTest(Deployment):
    def export(self):
        self.start_server()
        self.start_worker("w0", "--stay")
        wait_until(lambda: self.study()["counts"]["completed"] == 6, "six trials")
        path = self.folder / "study.db"
        self.assertIn("6 trials of toy exported to", self.hpo("export", "optuna", path, "toy"))
        return f"sqlite:///{path}"

    def test_optuna_loads_the_study(self):
        import optuna
        study = optuna.load_study(study_name="toy", storage=self.export())
        self.assertEqual(study.direction, optuna.study.StudyDirection.MAXIMIZE)
        self.assertEqual(study.metric_names, ["macro_f1"])
        self.assertEqual([trial.number for trial in study.trials], list(range(6)))
        for trial in study.trials:
            ours = self.trial(trial.number)
            self.assertEqual(trial.state, optuna.trial.TrialState.COMPLETE)
            self.assertEqual(trial.value, ours["value"])
            self.assertEqual(trial.params, ours["params"])
            self.assertEqual(trial.intermediate_values,
                             {m["step"]: m["metrics"]["macro_f1"] for m in ours["measurements"]})
            self.assertEqual(trial.user_attrs["hpo:outcome"]["kind"], "completed")
        self.assertEqual(study.best_trial.number, self.study()["best_trial"])
        # A trial more: Optuna writes to the file as to its own.
        study.enqueue_trial(study.best_params)
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=1)
        self.assertEqual(len(study.trials), 7)

    @unittest.skipUnless(HAS_DASHBOARD, "the Python package optuna_dashboard is not there")
    def test_the_dashboard_shows_it(self):
        url = self.export()
        port = free_port()
        server = self.start("dashboard", sys.executable, "-c",
                            "from optuna_dashboard._cli import main; main()", url, "--host",
                            "127.0.0.1", "--port", port, group=True)

        def ask(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
                return reply.read()

        def answers():
            if not server.alive():
                raise AssertionError(server.output())
            try:
                return b"<html" in ask("/dashboard/").lower()
            except (urllib.error.URLError, OSError):
                return False
        wait_until(answers, "the dashboard", START_S)
        studies = json.loads(ask("/api/studies"))["study_summaries"]
        self.assertEqual([study["study_name"] for study in studies], ["toy"])
        shown = json.loads(ask(f"/api/studies/{studies[0]['study_id']}"))
        self.assertEqual(len(shown["trials"]), 6)


if __name__ == "__main__":
    unittest.main()
