"""Optuna, "study.optimize(timeout=...)"."""
import time

import hpo


def objective(trial):
    time.sleep(0.2)
    return trial["x"]


begin = time.monotonic()
best = hpo.minimize(objective, {"x": hpo.uniform(0, 1)}, timeout=2)
assert best.value < 1 and time.monotonic() - begin < 60
