"""Optuna, "load_study": look at a study while others run it."""
import tempfile

import hpo

with tempfile.TemporaryDirectory() as folder:
    with hpo.Study("shared", {"x": hpo.uniform(0, 1)}, trials=4, storage=folder) as study:
        trial = study.ask()
        with hpo.connect(folder) as there, there.load("shared") as looked_at:
            assert there.studies == ["shared"]
            assert looked_at.trials[0].state == "running" and looked_at.trials[0].params == trial.params
            looked_at.tell(trial.number, 0.25)
        assert study.best.value == 0.25
