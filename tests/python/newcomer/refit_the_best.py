"""Optuna, "Re-use the best trial": the best parameters, for a last and longer run."""
import sklearn.datasets
import sklearn.metrics
import sklearn.model_selection
import sklearn.neighbors

import hpo

data, target = sklearn.datasets.load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = sklearn.model_selection.train_test_split(data, target, random_state=1)


def model_of(n_neighbors, weights):
    return sklearn.neighbors.KNeighborsClassifier(n_neighbors=n_neighbors, weights=weights)


def objective(trial):
    return sklearn.model_selection.cross_val_score(model_of(**trial), train_x[:400], train_y[:400], cv=3).mean()


best = hpo.maximize(objective, {"n_neighbors": hpo.int(1, 9), "weights": ["uniform", "distance"]}, trials=6, seed=1)
final = model_of(**best.params).fit(train_x, train_y)
assert sklearn.metrics.accuracy_score(test_y, final.predict(test_x)) > 0.95
