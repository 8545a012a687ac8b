"""Optuna, "Batch optimization": several trials at once, evaluated together."""
import numpy as np

import hpo

with hpo.Study("batches", {"x": hpo.uniform(-10, 10), "y": hpo.uniform(-10, 10)}, trials=12, seed=1) as study:
    while not study.finished:
        batch = [trial for trial in (study.ask() for _ in range(4)) if trial is not None]
        x = np.array([trial["x"] for trial in batch])
        y = np.array([trial["y"] for trial in batch])
        for trial, value in zip(batch, x ** 2 + y):
            study.tell(trial, value)
    assert [one.state for one in study.trials] == ["completed"] * 12
