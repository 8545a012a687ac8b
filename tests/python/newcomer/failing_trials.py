"""Optuna, FAQ "How are exceptions from trials handled?": catch."""
import hpo


def objective(trial):
    if trial["x"] < 0.3:
        raise ValueError("x is too small")
    return trial["x"]


with hpo.Study("fails", {"x": hpo.uniform(0, 1)}, trials=12, sampler="random", seed=1) as study:
    study.optimize(objective, catch=(ValueError,))
    failed = [one for one in study.trials if one.state == "failed"]
    assert failed and all(one.why == "ValueError: x is too small" and "Traceback" in one.error for one in failed)
    assert study.best.value >= 0.3
