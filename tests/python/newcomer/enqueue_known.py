"""Optuna, "Specify hyperparameters manually": configurations that are tried first."""
import hpo

with hpo.Study("known", {"lr": hpo.log(1e-5, 1e-1), "bagging": hpo.int(1, 7)}, trials=5, seed=1) as study:
    study.enqueue({"lr": 0.01, "bagging": 5})
    study.enqueue({"lr": 0.001})  # the rest is drawn
    study.optimize(lambda trial: trial["lr"] * trial["bagging"])
    assert study.trials[0].params == {"lr": 0.01, "bagging": 5}
    assert study.trials[1].params["lr"] == 0.001
