"""Optuna, "Easy parallelization": several trials at a time, each in a process of its own."""
import os
import time

import hpo


def objective(trial):
    time.sleep(0.1)
    trial.annotate(process=os.getpid())
    return trial["x"]


with hpo.Study("parallel", {"x": hpo.uniform(0, 1)}, trials=9) as study:
    study.optimize(objective, parallel=3)
    assert len({one.attributes["process"] for one in study.trials}) == 9
