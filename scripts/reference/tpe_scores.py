#!/usr/bin/env python3
"""Writes tests/golden/tpe_scores.json: what Optuna's TPE makes of fixed histories.

Which trials are good, the log densities of both sides and the acquisition at points come from the
sampler's own functions; none of it from our code. Run in a virtual environment with
    pip install numpy optuna==5.0.0
    scripts/reference/tpe_scores.py tests/golden/tpe_scores.json
"""

import json
import sys

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.samplers._tpe.sampler import _split_trials, default_gamma, default_gamma_multiobjective
from optuna.trial import TrialState, create_trial

# Our description of a parameter, and Optuna's distribution. Wide grids: which of two equal
# observations gets which bandwidth is open, as Optuna sorts unstably.
PARAMETERS = {
    "real": ({"low": -2.0, "high": 5.0}, FloatDistribution(-2.0, 5.0)),
    "real_log": ({"low": 1e-6, "high": 1e-2, "log": True}, FloatDistribution(1e-6, 1e-2, log=True)),
    "whole": ({"low": 1, "high": 100000}, IntDistribution(1, 100000)),
    "whole_step": ({"low": 0, "high": 640000, "step": 32}, IntDistribution(0, 640000, step=32)),
    "choice": ({"choices": ["a", "b", "c", "d"]}, CategoricalDistribution(["a", "b", "c", "d"])),
}
NUM_POINTS = 5


def draw(rng, distribution):
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[rng.integers(len(distribution.choices))]
    low, high = distribution.low, distribution.high
    value = np.exp(rng.uniform(np.log(low), np.log(high))) if distribution.log else rng.uniform(low, high)
    if isinstance(distribution, FloatDistribution):
        return float(f"{value:.6g}")
    return int(low + round((value - low) / distribution.step) * distribution.step)


def drawn_trial(rng, names, num_losses, kinds):
    """As our test reads it; a loss is the smaller the better."""
    trial = {"params": {name: draw(rng, PARAMETERS[name][1]) for name in names}, "losses": []}
    kind = kinds[rng.integers(len(kinds))]
    if kind == "pruned":
        trial["reports"] = [float(f"{value:.4g}") for value in rng.normal(size=rng.integers(4))]
        return trial
    trial["losses"] = [float(f"{value:.4g}") for value in rng.normal(size=num_losses)]
    if kind == "infeasible":
        trial["violation"] = float(f"{rng.uniform(0.1, 2.0):.4g}")
    return trial


def optunas(trial, sign, distributions):
    return create_trial(
        state=TrialState.COMPLETE if trial["losses"] else TrialState.PRUNED,
        values=[sign * loss for loss in trial["losses"]] or None, params=trial["params"],
        distributions=distributions,
        intermediate_values={step: sign * value for step, value in enumerate(trial.get("reports", []))},
        constraints={"limit": trial["violation"]} if "violation" in trial else None)


def case(rng, names, count, num_losses=1, kinds=("completed",), direction="minimize"):
    distributions = {name: PARAMETERS[name][1] for name in names}
    study = optuna.create_study(directions=[direction] * num_losses)
    trials = [drawn_trial(rng, names, num_losses, kinds) for _ in range(count)]
    sign = -1.0 if direction == "maximize" else 1.0
    study.add_trials([optunas(trial, sign, distributions) for trial in trials])
    gamma = default_gamma if num_losses == 1 else default_gamma_multiobjective
    below, above = _split_trials(study, study.trials, gamma(count))
    sampler = TPESampler(seed=0)
    densities = [sampler._build_parzen_estimator(study, distributions, side, handle_below=side is below)
                 for side in (below, above)]
    points = [{name: draw(rng, distributions[name]) for name in names} for _ in range(NUM_POINTS)]
    internal = {name: np.array([distributions[name].to_internal_repr(point[name]) for point in points])
                for name in names}
    log_below, log_above = (density.log_pdf(internal) for density in densities)
    scores = sampler._compute_acquisition_func(internal, *densities)
    return {"parameters": list(names), "trials": trials, "good": [trial.number for trial in below],
            "points": points, "log_below": [float(x) for x in log_below],
            "log_above": [float(x) for x in log_above], "score": [float(x) for x in scores]}


def cases():
    rng = np.random.default_rng(20261122)
    everything = list(PARAMETERS)
    numbers = ["real", "real_log", "whole"]
    return [case(rng, ["real"], 11), case(rng, ["whole_step", "choice"], 30), case(rng, everything, 10),
            case(rng, everything, 60, direction="maximize"),
            case(rng, everything, 40, kinds=("completed", "pruned", "infeasible")),
            case(rng, everything, 21, kinds=("infeasible", "pruned")),
            case(rng, everything, 15, kinds=("infeasible",), direction="maximize"),
            case(rng, numbers, 290),
            case(rng, ["real", "choice"], 60, num_losses=2), case(rng, numbers, 330, num_losses=2)]


def main():
    assert optuna.__version__.startswith("5.0"), optuna.__version__
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    golden = {"parameters": {name: ours for name, (ours, _) in PARAMETERS.items()}, "cases": cases()}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(golden, file, allow_nan=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
