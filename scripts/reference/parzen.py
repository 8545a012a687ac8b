#!/usr/bin/env python3
"""Writes tests/golden/parzen.json: reference numbers for sampler/numeric/truncated_normal and
sampler/tpe/parzen_estimator.

Normal probabilities come from SciPy and mpmath, bandwidths, weights and densities from Optuna's own
estimator; none of it from our code. Run in a virtual environment with
    pip install numpy scipy mpmath optuna==5.0.0
    scripts/reference/parzen.py tests/golden/parzen.json
"""

import json
import sys

import mpmath
import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator, _ParzenEstimatorParameters
from optuna.samplers._tpe.sampler import default_weights
from scipy import special, stats

INTERVALS = [(-10, 10), (-1, 1), (-1e-3, 1e-3), (10, 100), (-100, -10), (-3, -2.9), (40, 40.5),
             (-0.5, 30), (0, 1e-7), (-60, 2)]


def log_mass(low, high):
    """In the left tail, where ncdf keeps its digits."""
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    if low > 0:
        low, high = -high, -low
    return float(mpmath.log(mpmath.ncdf(high) - mpmath.ncdf(low)))


def normal_tables():
    xs = [-1e6, -1000, -100, -38, -37, -30.5, -30, -29.5, -14, -5, -1, -0.3, 0, 0.3, 1, 5, 9, 40]
    log_ps = [-1e9, -1e5, -5000, -700, -50, -5.1, -4.9, -1, -0.7, -0.69, -0.1, -0.01, -1e-4, -1e-12]
    mpmath.mp.dps = 80
    qs = [1e-6, 0.01, 0.3, 0.5, 0.9, 0.999]
    return {
        "log_normal_cdf": [[x, float(special.log_ndtr(x))] for x in xs],
        "normal_quantile_of_log": [[y, float(special.ndtri_exp(y))] for y in log_ps],
        "log_normal_mass": [[a, b, log_mass(a, b)] for a, b in INTERVALS],
        "truncated_normal_quantile": [
            [q, a, b, float(stats.truncnorm.ppf(q, a, b))]
            for a, b in INTERVALS if b - a > 1e-6 for q in qs
        ],
    }


def parameters(clip=True, ends=False, prior_weight=1.0):
    return _ParzenEstimatorParameters(prior_weight, clip, ends, default_weights, True)


def bandwidths():
    cases = []
    for positions in ([], [0.4], [-0.3, 0.3], [-0.4, 0.4, 0.41, 0.42], [0.9, -0.9, 0.1]):
        for clip in (True, False):
            for ends in (True, False):
                space = {"x": FloatDistribution(-1.0, 1.0)}
                estimator = _ParzenEstimator({"x": np.array(positions)}, space,
                                             parameters(clip, ends))
                sigmas = estimator._mixture_distribution.distributions[0].sigma
                cases.append({"positions": positions, "magic_clip": clip, "use_ends": ends,
                              "expected": [float(s) for s in sigmas[:-1]]})
    return cases


# Our description of a parameter, and Optuna's distribution.
PARAMETERS = {
    "real": ({"low": -2.0, "high": 5.0}, FloatDistribution(-2.0, 5.0)),
    "real_log": ({"low": 1e-6, "high": 1e-2, "log": True}, FloatDistribution(1e-6, 1e-2, log=True)),
    "real_step": ({"low": 0.0, "high": 1.0, "step": 0.125}, FloatDistribution(0.0, 1.0, step=0.125)),
    "whole": ({"low": 1, "high": 100}, IntDistribution(1, 100)),
    "whole_log": ({"low": 1, "high": 1024, "log": True}, IntDistribution(1, 1024, log=True)),
    "whole_step": ({"low": 128, "high": 512, "step": 32}, IntDistribution(128, 512, step=32)),
    "choice": ({"choices": ["a", "b", "c", "d"]}, CategoricalDistribution(["a", "b", "c", "d"])),
}


def draw(rng, distribution):
    """A value in Optuna's internal form (a choice is its index)."""
    if isinstance(distribution, CategoricalDistribution):
        return float(rng.integers(len(distribution.choices)))
    low, high = distribution.low, distribution.high
    value = np.exp(rng.uniform(np.log(low), np.log(high))) if distribution.log else rng.uniform(low, high)
    if distribution.step is not None:
        value = low + round((value - low) / distribution.step) * distribution.step
    return float(value)


def distinct(rng, distribution, count):
    """Draws without repeats where possible: which of two equal ones gets which bandwidth is open."""
    values = []
    while len(values) < count:
        value = draw(rng, distribution)
        if value not in values or isinstance(distribution, CategoricalDistribution):
            values.append(value)
    return values


def density_case(rng, names, count, prior_weight=1.0):
    space = {name: PARAMETERS[name][1] for name in names}
    seen = {name: distinct(rng, space[name], count) for name in names}
    asked = {name: [draw(rng, space[name]) for _ in range(6)] for name in names}
    estimator = _ParzenEstimator({name: np.array(values) for name, values in seen.items()}, space,
                                 parameters(prior_weight=prior_weight))
    densities = estimator.log_pdf({name: np.array(values) for name, values in asked.items()})
    return {"parameters": list(names), "prior_weight": prior_weight, "observations": seen,
            "points": asked, "log_density": [float(d) for d in densities]}


def densities():
    rng = np.random.default_rng(20261121)
    cases = [density_case(rng, [name], count)
             for name in PARAMETERS for count in (0, 1, 2, 7)]
    cases += [density_case(rng, ["real", "real_log", "whole"], 40),
              density_case(rng, ["choice"], 60)]
    cases += [density_case(rng, list(PARAMETERS), count) for count in (0, 1, 2, 7)]
    cases.append(density_case(rng, list(PARAMETERS), 5, prior_weight=0.3))
    return cases


def main():
    assert optuna.__version__.startswith("5.0"), optuna.__version__
    golden = normal_tables()
    golden["bandwidths"] = bandwidths()
    golden["recency_weights"] = {str(n): [float(w) for w in default_weights(n)]
                                 for n in (0, 1, 24, 25, 26, 27, 60)}
    golden["parameters"] = {name: ours for name, (ours, _) in PARAMETERS.items()}
    golden["densities"] = densities()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(golden, file, allow_nan=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
