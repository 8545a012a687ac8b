"""Optuna, "First optimization": a quadratic function."""
import hpo


def objective(trial):
    x = trial["x"]
    return (x - 2) ** 2


best = hpo.minimize(objective, {"x": hpo.uniform(-10, 10)}, trials=30, seed=1)
print("best x:", best.params["x"], "value:", best.value, "trial:", best.number)
assert abs(best.params["x"] - 2) < 1
