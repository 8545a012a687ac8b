"""W&B and Ray, layer sizes as choices: tuples, None, classes and numpy arrays."""
import numpy as np
import sklearn.datasets
import sklearn.neural_network
import sklearn.preprocessing

import hpo

data, target = sklearn.datasets.load_iris(return_X_y=True)
space = {
    "hidden": [(8,), (16, 8), (32,)],
    "scaler": [sklearn.preprocessing.StandardScaler, sklearn.preprocessing.MinMaxScaler],
    "alpha": np.array([1e-4, 1e-3]),
    "iterations": range(50, 151, 50),
}


def objective(trial):
    scaled = trial["scaler"]().fit_transform(data)
    model = sklearn.neural_network.MLPClassifier(trial["hidden"], alpha=trial["alpha"], max_iter=trial["iterations"],
                                                 random_state=0)
    return model.fit(scaled, target).score(scaled, target)


import warnings

warnings.simplefilter("ignore")
best = hpo.maximize(objective, space, trials=3, seed=1)
assert best.params["hidden"] in space["hidden"] and best.params["scaler"] in space["scaler"]
