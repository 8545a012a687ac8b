"""Optuna, FAQ "How can I obtain reproducible optimization results?"."""
import hpo


def search():
    return hpo.minimize(lambda trial: (trial["x"] - 1) ** 2, {"x": hpo.uniform(-5, 5)}, trials=6, seed=7, isolate=False)


assert search().params == search().params
