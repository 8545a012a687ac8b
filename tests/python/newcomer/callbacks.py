"""Optuna, "Callback for Study.optimize": stop after some trials in a row that are no better."""
import hpo


class StopWhenNoBetter:
    def __init__(self, patience):
        self.patience, self.since_best = patience, 0

    def __call__(self, study, record):
        self.since_best = 0 if study.best.number == record.number else self.since_best + 1
        if self.since_best == self.patience:
            study.stop()


with hpo.Study("callback", {"x": hpo.uniform(-10, 10)}, trials=200, seed=1) as study:
    study.optimize(lambda trial: abs(trial["x"]) // 3, callbacks=[StopWhenNoBetter(5)])
    assert 6 <= len(study.trials) < 200
