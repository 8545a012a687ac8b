"""Optuna, "Pythonic search space": categorical, integer, logarithmic, stepped and conditional parameters."""
import hpo

space = {
    "optimizer": ["MomentumSGD", "Adam"],
    "num_layers": hpo.int(1, 3),
    "num_channels": hpo.int(32, 512, log=True),
    "num_units": range(10, 101, 5),
    "dropout_rate": hpo.uniform(0.0, 1.0, step=0.25),
    "learning_rate": hpo.log(1e-5, 1e-2),
    "momentum": hpo.uniform(0.5, 0.99, when={"optimizer": "MomentumSGD"}),
    "units_2": hpo.int(4, 16, when={"num_layers": [2, 3]}),
}


def objective(trial):
    assert ("momentum" in trial) == (trial["optimizer"] == "MomentumSGD")
    assert ("units_2" in trial) == (trial["num_layers"] >= 2)
    assert trial["num_units"] % 5 == 0 and trial["dropout_rate"] in (0, 0.25, 0.5, 0.75, 1)
    return trial["learning_rate"] * trial["num_layers"] + trial.get("momentum", 0.0)


best = hpo.minimize(objective, space, trials=20, seed=2)
assert set(best.params) <= set(space)
