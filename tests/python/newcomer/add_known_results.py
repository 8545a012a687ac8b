"""Optuna, "Add trials manually": results that are there already."""
import hpo

with hpo.Study("results", {"x": hpo.uniform(0, 10)}, trials=5, seed=1) as study:
    number = study.add_trial({"x": 3.0}, value=0.5)
    study.add_trial({"x": 9.0}, state="failed", error="it diverged")
    assert study.best.number == number
    study.optimize(lambda trial: 1 + trial["x"])
    assert study.best.number == number and len(study.trials) == 7
