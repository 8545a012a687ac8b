#!/usr/bin/env python3
"""Writes tests/golden/importance.json: what Optuna's evaluators say of random histories.

For each study its space, its trials as [parameters, loss], the shares of PedAnovaImportanceEvaluator
and, where every trial has every parameter and none is logarithmic (Optuna's fANOVA measures those
on their linear scale), those of FanovaImportanceEvaluator. None of it comes from our code. Run in a
virtual environment with
    pip install optuna==5.0.0 scikit-learn==1.9.1
    scripts/reference/importance.py tests/golden/importance.json
"""

import json
import math
import random
import sys
import warnings

import optuna
from optuna.distributions import (CategoricalDistribution, FloatDistribution, IntDistribution)
from optuna.importance import (FanovaImportanceEvaluator, PedAnovaImportanceEvaluator,
                               get_param_importances)

SPACES = {
    "reals": {"x": FloatDistribution(-5, 10), "y": FloatDistribution(0, 15),
              "z": FloatDistribution(0, 1)},
    "grids": {"s": FloatDistribution(0.0, 0.9, step=0.1), "i": IntDistribution(1, 9),
              "j": IntDistribution(8, 64, step=8), "w": IntDistribution(0, 1000)},
    "logs": {"lr": FloatDistribution(1e-6, 1e-2, log=True),
             "n": IntDistribution(1, 1024, log=True), "two": IntDistribution(1, 2, log=True)},
    "choices": {"a": CategoricalDistribution(["p", "q", "r", "s", "t"]),
                "b": CategoricalDistribution([1, 2, 4]), "x": FloatDistribution(0, 1)},
    "conditional": {"kind": CategoricalDistribution(["sgd", "adam"]),
                    "momentum": FloatDistribution(0, 0.99),
                    "lr": FloatDistribution(1e-5, 1e-1, log=True)},
    "one_value": {"x": FloatDistribution(0, 1), "fixed": IntDistribution(3, 3),
                  "only": CategoricalDistribution(["it"])},
}


def draw(dist, rng):
    if isinstance(dist, CategoricalDistribution):
        return rng.choice(dist.choices)
    if dist.log:
        value = math.exp(rng.uniform(math.log(dist.low), math.log(dist.high)))
        return value if isinstance(dist, FloatDistribution) else max(dist.low, round(value))
    if dist.step is None:
        return rng.uniform(dist.low, dist.high)
    value = dist.low + dist.step * rng.randint(0, round((dist.high - dist.low) / dist.step))
    return value if isinstance(dist, IntDistribution) else round(value, 10)


def position(dist, value):
    if isinstance(dist, CategoricalDistribution):
        return dist.choices.index(value) / len(dist.choices)
    low, high, value = (math.log(v) if dist.log else v for v in (dist.low, dist.high, value))
    return 0.5 if low == high else (value - low) / (high - low)


def loss_of(space, params, rng):
    """The earlier a parameter is in its space, the more it matters; the best is off the middle."""
    weights = {name: 4.0 / 4 ** i for i, name in enumerate(space)}
    return sum(weights[name] * (position(space[name], value) - 0.3) ** 2
               for name, value in params.items()) + rng.gauss(0, 0.01)


def describe(dist):
    if isinstance(dist, CategoricalDistribution):
        return {"choices": list(dist.choices)}
    kind = "int" if isinstance(dist, IntDistribution) else "float"
    return {kind: [dist.low, dist.high], "log": dist.log, "step": dist.step}


def make_study(name, num_trials, ties, seed):
    rng = random.Random(f"{name} {num_trials} {seed}")
    space = SPACES[name]
    study = optuna.create_study(direction="minimize")
    trials = []
    for _ in range(num_trials):
        params = {key: draw(dist, rng) for key, dist in space.items()}
        if params.get("kind") == "adam":
            del params["momentum"]
        loss = round(loss_of(space, params, rng), 1 if ties else 12)
        trials.append([params, loss])
        study.add_trial(optuna.trial.create_trial(
            params=params, distributions={key: space[key] for key in params}, value=loss))
    result = {"name": f"{name} {num_trials}{' ties' if ties else ''}",
              "space": {key: describe(dist) for key, dist in space.items()}, "trials": trials,
              "ped_anova": get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())}
    if name in ("reals", "choices", "grids") and num_trials >= 100:
        result["fanova"] = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    return result


def main():
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    studies = [make_study(name, count, ties, seed) for seed, name in enumerate(SPACES)
               for count, ties in ((3, False), (25, True), (120, False))]
    with open(sys.argv[1], "w") as out:
        out.write('{"optuna": "%s", "studies": [\n' % optuna.__version__)
        out.write(",\n".join(json.dumps(study) for study in studies))
        out.write("\n]}\n")


if __name__ == "__main__":
    main()
