"""A study exported for Optuna, read back by Optuna itself and by its dashboard; one of Optuna's, imported."""

import contextlib
import importlib.util
import json
import re
import sqlite3
import sys
import unittest
import urllib.error
import urllib.request

from harness import Deployment, wait_until
from test_tracking import free_port

HAS_OPTUNA = importlib.util.find_spec("optuna") is not None
HAS_DASHBOARD = importlib.util.find_spec("optuna_dashboard") is not None
HAS_PLOTLY = importlib.util.find_spec("plotly") is not None
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

    @unittest.skipUnless(HAS_PLOTLY, "the Python package plotly is not there (scripts/bootstrap)")
    def test_optunas_plots_show_it(self):
        import optuna
        from optuna import visualization
        study = optuna.load_study(study_name="toy", storage=self.export())
        values = [trial.value for trial in study.trials]
        history = visualization.plot_optimization_history(study).data
        self.assertEqual(list(history[0].y), values)
        self.assertEqual(list(history[1].y), [max(values[:count]) for count in range(1, 7)])
        for panel, name in zip(visualization.plot_slice(study).data, ["x", "y"]):
            self.assertEqual(list(panel.x), [trial.params[name] for trial in study.trials])
            self.assertEqual(list(panel.y), values)
        importances = visualization.plot_param_importances(study).data[0]
        self.assertEqual(set(importances.y), {"x", "y"})
        self.assertAlmostEqual(sum(importances.x), 1.0)
        curves = visualization.plot_intermediate_values(study).data
        self.assertEqual([dict(zip(curve.x, curve.y)) for curve in curves],
                         [trial.intermediate_values for trial in study.trials])
        self.assertEqual(len(visualization.plot_timeline(study).data[0].x), 6)
        for plot in (visualization.plot_contour, visualization.plot_edf, visualization.plot_parallel_coordinate,
                     visualization.plot_rank):
            self.assertTrue(plot(study).data, plot.__name__)

    def test_trials_that_optuna_ran_are_imported(self):
        import optuna
        self.start_server()
        path = self.folder / "theirs.db"
        study = optuna.create_study(storage=f"sqlite:///{path}", study_name="theirs", direction="maximize")

        study.set_user_attr("owner", {"name": "me"})

        def objective(trial):
            x = trial.suggest_float("x", 0.0, 1.0)
            trial.suggest_float("y", 0.0, 1.0)
            trial.set_user_attr("rows", trial.number)
            trial.set_user_attr("speed", float("nan"))
            for step in range(3):
                trial.report(x * step, step)
            if trial.number == 1:
                raise optuna.TrialPruned
            if trial.number == 2:
                raise ValueError("no luck")
            return x

        study.optimize(objective, n_trials=5, catch=(ValueError,))
        study.ask()
        said = self.hpo("import", "optuna", path, "toy")
        self.assertIn("5 trials of theirs imported into toy, outside its budget; 1 have not ended; 5 "
                      "attributes are left out", said)
        self.assertEqual(self.study()["attributes"], {"owner": {"name": "me"}})
        self.assertIn("0 trials of theirs imported into toy, outside its budget; 5 were there already",
                      self.hpo("import", "optuna", path, "toy"))
        for theirs in study.trials[:5]:
            ours = self.trial(theirs.number)
            self.assertEqual(ours["origin"], f"optuna:theirs#{theirs.number}")
            self.assertEqual(ours["params"], theirs.params)
            self.assertEqual(ours["attributes"], {"rows": theirs.number})
            self.assertEqual({m["step"]: m["metrics"]["macro_f1"] for m in ours["measurements"]},
                             theirs.intermediate_values)
            state = {"COMPLETE": "COMPLETED", "PRUNED": "PRUNED", "FAIL": "FAILED"}[theirs.state.name]
            self.assertEqual(ours["state"], state)
            if state == "COMPLETED":
                self.assertEqual(ours["value"], theirs.value)
        self.assertEqual(self.study()["best_trial"], study.best_trial.number)
        # The study's own trials come on top of them.
        self.start_worker("w0", "--stay")
        wait_until(lambda: self.study()["counts"]["completed"] == 6, "six trials of its own")
        self.assertEqual(self.study()["counts"]["imported"], 5)

    def test_a_parameter_that_the_study_lacks_is_refused(self):
        import optuna
        self.start_server()
        path = self.folder / "theirs.db"
        study = optuna.create_study(storage=f"sqlite:///{path}", direction="maximize")

        def both(trial):
            return trial.suggest_float("x", 0.0, 1.0) + trial.suggest_float("y", 0.0, 1.0)

        study.optimize(both, n_trials=1)
        study.optimize(lambda trial: both(trial) + trial.suggest_int("depth", 1, 3), n_trials=1)
        said = self.hpo("import", "optuna", path, "toy", status=2)
        self.assertIn("parameter depth: expected one of the study's parameters", said)
        self.assertEqual(self.study()["counts"]["imported"], 0)

    def test_choices_that_are_no_scalars_are_imported_as_text(self):
        import optuna
        self.start_server()
        path = self.folder / "theirs.db"
        study = optuna.create_study(storage=f"sqlite:///{path}", study_name="theirs")
        kinds = {"layers": optuna.distributions.CategoricalDistribution([[64, 32], [128], None]),
                 "clip": optuna.distributions.CategoricalDistribution([1.0, float("inf")])}
        for choice in kinds["layers"].choices:
            study.add_trial(optuna.trial.create_trial(params={"layers": choice, "clip": float("inf")},
                                                      distributions=kinds, value=0.5))
        self.assertIn("study theirs created; 3 trials of theirs imported into theirs, outside its budget; choices of "
                      "clip, layers that are no numbers or texts are imported as text",
                      self.hpo("import", "optuna", path))
        self.assertEqual([self.json("trial", "show", number, "--study", "theirs")["params"] for number in range(3)],
                         [{"layers": text, "clip": "Infinity"} for text in ("[64,32]", "[128]", None)])

    def test_a_parameter_that_cannot_be_imported_is_named_with_what_to_do(self):
        import optuna
        self.start_server()
        for name, low, high, said in (("seed", 0, 2**63 - 1, "expected whole numbers within"),
                                      ("größe 1", 0, 9, "expected a name of letters")):
            path = self.folder / f"{low}-{high}.db"
            study = optuna.create_study(storage=f"sqlite:///{path}", study_name=f"theirs-{high}")
            study.optimize(lambda trial, *of: trial.suggest_float("x", 0.0, 1.0), n_trials=1)
            study.optimize(lambda trial, *of, name=name, low=low, high=high: trial.suggest_float("x", 0.0, 1.0) +
                           trial.suggest_int(name, low, high), n_trials=1)
            refused = self.hpo("import", "optuna", path, status=2)
            self.assertIn(f"trial 1: parameter {name}: {said}", refused)
            # What the error says helps.
            copy = self.folder / f"{high}.db"
            copy.write_bytes(path.read_bytes())
            cure = re.search(r'sqlite3 COPY "(.*)"', refused).group(1)
            with contextlib.closing(sqlite3.connect(copy)) as database:
                database.execute(cure)
                database.commit()
            self.assertIn("imported into", self.hpo("import", "optuna", copy))

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
