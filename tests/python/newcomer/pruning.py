"""Optuna, "Pruning unpromising trials": intermediate values and should_stop."""
import sklearn.datasets
import sklearn.linear_model
import sklearn.model_selection

import hpo

data, target = sklearn.datasets.load_iris(return_X_y=True)
train_x, valid_x, train_y, valid_y = sklearn.model_selection.train_test_split(data, target, random_state=0)


def objective(trial):
    model = sklearn.linear_model.SGDClassifier(alpha=trial["alpha"], random_state=0)
    for step in range(20):
        model.partial_fit(train_x, train_y, classes=[0, 1, 2])
        trial.report(step, 1.0 - model.score(valid_x, valid_y), epoch=step + 1)
        if trial.should_stop():
            raise hpo.Stopped
    return 1.0 - model.score(valid_x, valid_y)


with hpo.Study("pruning", {"alpha": hpo.log(1e-5, 1e1)}, trials=12, seed=1,
               pruner={"type": "median", "startup_trials": 3}) as study:
    study.optimize(objective)
    print([one.state for one in study.trials])
    assert all(len(one.reports) == 20 for one in study.trials if one.state == "completed")
    assert study.best.value < 0.5
