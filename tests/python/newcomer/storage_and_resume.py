"""Optuna, "Saving/resuming study with RDB backend": a folder keeps the study."""
import tempfile

import hpo


def objective(trial):
    return (trial["x"] - 2) ** 2


with tempfile.TemporaryDirectory() as folder:
    space = {"x": hpo.uniform(-10, 10)}
    first = hpo.minimize(objective, space, trials=3, storage=folder, name="example-study")
    again = hpo.minimize(objective, space, trials=6, storage=folder, name="example-study")
    assert again.value <= first.value
    with hpo.load("example-study", storage=folder) as study:
        assert [one.number for one in study.trials] == list(range(6))
        assert study.best == again
