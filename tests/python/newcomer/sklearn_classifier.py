"""Optuna, "Sklearn": which classifier, and its parameters, by cross-validation."""
import sklearn.datasets
import sklearn.ensemble
import sklearn.model_selection
import sklearn.svm

import hpo

data, target = sklearn.datasets.load_iris(return_X_y=True)


def objective(trial):
    if trial["classifier"] == "SVC":
        model = sklearn.svm.SVC(C=trial["svc_c"], gamma="auto")
    else:
        model = sklearn.ensemble.RandomForestClassifier(max_depth=trial["rf_max_depth"], n_estimators=10, random_state=0)
    return sklearn.model_selection.cross_val_score(model, data, target, cv=3).mean()


space = {
    "classifier": ["SVC", "RandomForest"],
    "svc_c": hpo.log(1e-3, 1e3, when={"classifier": "SVC"}),
    "rf_max_depth": hpo.int(2, 32, log=True, when={"classifier": "RandomForest"}),
}
best = hpo.maximize(objective, space, trials=8, seed=1)
print(best.params)
assert best.value > 0.9
