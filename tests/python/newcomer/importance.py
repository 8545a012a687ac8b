"""Optuna, "get_param_importances"; W&B, "parameter importance"."""
import hpo

space = {"x": hpo.uniform(-1, 1), "y": hpo.uniform(-1, 1), "kind": ["a", "b"]}
with hpo.Study("importance", space, trials=40, sampler="random", seed=3) as study:
    study.optimize(lambda trial: trial["x"] ** 2 + 0.01 * trial["y"], isolate=False)
    shares = study.importances()
    print(shares)
    assert next(iter(shares)) == "x" and abs(sum(shares.values()) - 1) < 1e-6
