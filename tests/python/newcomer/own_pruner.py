"""Optuna, "User-defined pruner": what is above the median of a step is stopped."""
import statistics

import hpo


class AboveMedian(hpo.Pruner):
    def __init__(self, warmup_steps):
        self.warmup_steps = warmup_steps

    def should_prune(self, trial, history):
        now = trial.reports[-1]
        if now.step <= self.warmup_steps:
            return False
        others = [one.value for reports in history.values() for one in reports if one.step == now.step]
        return len(others) > 1 and now.value > statistics.median(others)


def objective(trial):
    for step in range(5):
        trial.report(step, trial["x"] / (step + 1))
        if trial.should_stop():
            raise hpo.Stopped
    return trial["x"]


with hpo.Study("pruner", {"x": hpo.uniform(0, 1)}, trials=12, sampler="random", pruner=AboveMedian(1),
               seed=1) as study:
    study.optimize(objective, isolate=False)
    states = [one.state for one in study.trials]
    print(states)
    assert "pruned" in states and "completed" in states
