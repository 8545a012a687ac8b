#!/usr/bin/env python3
"""Writes tests/golden/several_objectives.json: reference numbers for sampler/numeric/hypervolume,
sampler/numeric/non_domination and sampler/priors/trial_split.

Ranks, volumes, choices and good sets come from Optuna's own functions; none of it from our code. Run in
a virtual environment with
    pip install numpy optuna==5.0.0
    scripts/reference/several_objectives.py tests/golden/several_objectives.json
"""

import json
import sys

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume
from optuna._hypervolume.hssp import _solve_hssp
from optuna.samplers._tpe.sampler import _get_reference_point, _split_complete_trials_multi_objective
from optuna.study._multi_objective import _fast_non_domination_rank


def rows(array):
    return [[float(value) for value in row] for row in array]


def short(array):
    """With four digits, for a small file."""
    return np.array([[float(f"{value:.4g}") for value in row] for row in array])


def clouds(rng):
    """Points of two to six losses, some of them more than once."""
    for num_losses in (2, 3, 4, 6):
        for num_points in (1, 2, 7, 40):
            points = short(rng.normal(size=(num_points, num_losses)))
            yield points
            yield points[rng.integers(num_points, size=num_points)]
            yield np.round(points)


def ranks(rng):
    return [{"points": rows(points), "ranks": [int(rank) for rank in _fast_non_domination_rank(points)]}
            for points in clouds(rng)]


def volumes(rng):
    cases = []
    for num_sides in (2, 3, 4, 5, 6):
        for num_corners in (1, 2, 3, 8, 20):
            corners = short(rng.uniform(0.0, 2.0, size=(num_corners, num_sides)))
            cases.append({"corners": rows(corners),
                          "volume": float(compute_hypervolume(-corners, np.zeros(num_sides)))})
    return cases


def front(rng, num_points, num_losses):
    """Points that do not dominate each other, of losses of different sizes and signs."""
    angles = np.abs(rng.normal(size=(num_points, num_losses)))
    sphere = angles / np.linalg.norm(angles, axis=1, keepdims=True)
    sign = rng.choice([-1.0, 1.0])  # bent to the inside or to the outside
    return short(sign * sphere * 10.0 ** rng.integers(-3, 4, size=num_losses) + rng.integers(-1, 2, size=num_losses))


def choices(rng):
    cases = []
    for num_losses in (2, 3, 4, 5):
        for num_points, count in ((2, 1), (9, 3), (9, 8), (40, 1), (40, 25), (100, 10)):
            points = front(rng, num_points, num_losses)
            if count == 8:
                points[5:] = points[:4]  # too few different ones
            chosen = _solve_hssp(points, np.arange(num_points), count, _get_reference_point(points))
            cases.append({"points": rows(points), "chosen": sorted(int(i) for i in chosen)})
    return cases


def splits(rng):
    """The good trials of studies, by number."""
    cases = []
    for num_losses in (2, 3):
        for num_trials, num_good in ((3, 1), (30, 3), (200, 20)):
            for scale in (0.2, 3.0):  # few fronts, many fronts
                losses = front(rng, num_trials, num_losses)
                losses = short(losses + scale * np.abs(losses) * rng.uniform(size=(num_trials, 1)))
                study = optuna.create_study(directions=["minimize"] * num_losses)
                study.add_trials([optuna.create_trial(values=row) for row in rows(losses)])
                good, _ = _split_complete_trials_multi_objective(study.trials, study, num_good)
                cases.append({"losses": rows(losses), "good": sorted(trial.number for trial in good)})
    return cases


def main():
    assert optuna.__version__.startswith("5.0"), optuna.__version__
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = np.random.default_rng(20261122)
    golden = {"versions": {"optuna": optuna.__version__, "numpy": np.__version__}, "ranks": ranks(rng),
              "volumes": volumes(rng), "choices": choices(rng), "splits": splits(rng)}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(golden, file, allow_nan=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
