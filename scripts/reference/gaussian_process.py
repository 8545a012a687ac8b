#!/usr/bin/env python3
"""Writes tests/golden/gaussian_process.json: reference numbers for sampler/gp.

Tails of the normal distribution come from mpmath, kernels, posteriors and likelihoods with their
gradients from scikit-learn (categories as one-hot columns there), priors, transformations and
minima in a box from SciPy; none of it from our code. Run in a virtual environment with
    pip install numpy scipy mpmath scikit-learn
    scripts/reference/gaussian_process.py tests/golden/gaussian_process.json
"""

import json
import sys

import mpmath
import numpy as np
from scipy import optimize, stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

ZS = [-1e8, -1e4, -300, -40, -38, -10, -3, -2.6, -2.5, -2.4, -1, -0.1, 0, 0.1, 0.7, 2, 2.4, 2.6, 5, 9, 40]


def normal_tables():
    mpmath.mp.dps = 60
    improvement, probability = [], []
    for value in ZS:
        z = mpmath.mpf(value)
        # erfc keeps its digits in the left tail.
        phi = mpmath.npdf(z)
        cdf = mpmath.erfc(-z / mpmath.sqrt(2)) / 2
        if value < -1000:  # where even so many digits cancel: 1 - t R(t) by its series
            ratio = 1 / z**2 - 3 / z**4 + 15 / z**6 - 105 / z**8
            mills = -(1 / z) * (1 - ratio)
            log_phi = -z * z / 2 - mpmath.log(2 * mpmath.pi) / 2
            improvement.append([value, float(log_phi + mpmath.log(ratio)), float(mills / ratio)])
            probability.append([value, float(log_phi + mpmath.log(mills)), float(1 / mills)])
            continue
        with mpmath.workdps(200):
            gain = mpmath.npdf(z) + z * mpmath.erfc(-z / mpmath.sqrt(2)) / 2
        improvement.append([value, float(mpmath.log(gain)), float(cdf / gain)])
        probability.append([value, float(mpmath.log(cdf)), float(phi / cdf)])
    return {"log_improvement": improvement, "log_probability": probability}


def kernel_of(weights, scale, noise):
    lengths = [w**-0.5 for w in weights]
    return ConstantKernel(scale) * Matern(length_scale=lengths, nu=2.5) + WhiteKernel(noise)


def likelihoods(rng):
    """ln p(y) + ln prior and its gradient by the logs of weights, scale and noise."""
    prior = {"length": [0.3, 0.8], "scale": [0.1, 1.5], "noise": [-8.0, 3.0]}
    cases = []
    for count, axes in ((1, 1), (2, 1), (7, 3), (40, 5)):
        points = rng.uniform(size=(count, axes))
        targets = np.sin(5 * points).sum(axis=1) + 0.1 * rng.normal(size=count)
        logs = np.concatenate([rng.normal(0.5, 1.0, axes), [0.4, -5.0]])
        kernel = kernel_of(np.exp(logs[:axes]), np.exp(logs[axes]), np.exp(logs[axes + 1]))
        model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(points, targets)
        # theta: ln scale, ln lengths, ln noise.
        value, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
        by_logs = np.concatenate([-0.5 * gradient[1:axes + 1], [gradient[0], gradient[axes + 1]]])
        means = np.array([-2 * prior["length"][0] - np.log(axes)] * axes +
                         [prior["scale"][0], prior["noise"][0]])
        deviations = np.array([2 * prior["length"][1]] * axes +
                              [prior["scale"][1], prior["noise"][1]])
        value += stats.norm.logpdf(logs, means, deviations).sum()
        by_logs -= (logs - means) / deviations**2
        cases.append({"points": points.tolist(), "targets": targets.tolist(), "logs": logs.tolist(),
                      "prior": prior, "value": float(value), "gradient": by_logs.tolist()})
    return cases


def one_hot(points, choices):
    columns = []
    for axis, count in enumerate(choices):
        column = points[:, axis]
        columns += [column] if count == 0 else [(column == k).astype(float) for k in range(count)]
    return np.stack(columns, axis=1)


def posteriors(rng):
    """Mixed points: per axis the number of choices, 0 for a number in [0, 1]."""
    cases = []
    for count, choices in ((1, [0]), (5, [0, 0]), (30, [0, 3, 0, 2]), (60, [0, 0, 5, 0, 0])):
        def draw(size, choices=choices):
            return np.stack([rng.uniform(size=size) if k == 0 else
                             rng.integers(k, size=size).astype(float) for k in choices], axis=1)
        points, asked = draw(count), draw(8)
        weights = rng.uniform(0.5, 6.0, len(choices))
        scale, noise = 1.7, 1e-3
        spread = []  # a category that differs moves two one-hot columns by one each
        for weight, k in zip(weights, choices):
            spread += [weight] if k == 0 else [weight / 2] * k
        targets = np.cos(3 * points.sum(axis=1)) + 0.05 * rng.normal(size=count)
        process = ConstantKernel(scale) * Matern(length_scale=[w**-0.5 for w in spread], nu=2.5)
        model = GaussianProcessRegressor(process, alpha=noise, optimizer=None)
        model.fit(one_hot(points, choices), targets)
        mean, deviation = model.predict(one_hot(asked, choices), return_std=True)
        covariances = process(one_hot(asked, choices), one_hot(points, choices))
        cases.append({"points": points.tolist(), "targets": targets.tolist(),
                      "weights": weights.tolist(), "scale": scale, "noise": noise,
                      "asked": asked.tolist(), "mean": mean.tolist(),
                      "deviation": deviation.tolist(), "covariances": covariances.tolist()})
    return cases


def rosenbrock(x):
    return sum(100 * (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)


def branin(x):
    return ((x[1] - 5.1 / (4 * np.pi**2) * x[0]**2 + 5 / np.pi * x[0] - 6)**2 +
            10 * (1 - 1 / (8 * np.pi)) * np.cos(x[0]) + 10)


def bowl(x):
    """A quadratic whose axes are turned against the box's."""
    d = x - np.arange(1.0, len(x) + 1.0)
    return float(np.sum(d**2 * np.arange(1.0, len(x) + 1.0)) + np.sum(d)**2)


def boxes():
    problems = [
        ("rosenbrock", rosenbrock, [-1.2, 1.0], [-5, -5], [10, 10]),
        ("rosenbrock", rosenbrock, [-1.2, 1.0], [-2, -2], [0.5, 2]),
        ("rosenbrock", rosenbrock, [3.0] * 10, [-5] * 10, [10] * 10),
        ("rosenbrock", rosenbrock, [3.0] * 6, [1.5, -5, -5, -5, -5, -5], [10, 2, 10, 10, 10, 10]),
        ("branin", branin, [9.0, 3.0], [-5, 0], [10, 15]),
        ("branin", branin, [-4.0, 1.0], [-5, 0], [0, 8]),
        ("bowl", bowl, [0.0] * 5, [-9] * 5, [9] * 5),
        ("bowl", bowl, [0.0] * 5, [-9] * 5, [2.5] * 5),
        ("bowl", bowl, [7.0] * 30, [0] * 30, [8] * 30),
        ("bowl", bowl, [4.0] * 3, [4] * 3, [4] * 3),
    ]
    cases = []
    for name, function, start, lower, upper in problems:
        found = optimize.minimize(function, start, method="L-BFGS-B", bounds=list(zip(lower, upper)),
                                  options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10000,
                                           "maxfun": 100000})
        cases.append({"function": name, "start": start, "lower": lower, "upper": upper,
                      "x": found.x.tolist(), "value": float(found.fun)})
    return cases


def main():
    rng = np.random.default_rng(20261122)
    golden = normal_tables()
    golden["likelihoods"] = likelihoods(rng)
    golden["posteriors"] = posteriors(rng)
    golden["boxes"] = boxes()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(golden, file, allow_nan=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
