#!/usr/bin/env python3
"""Writes tests/golden/pruners.json: what Optuna's pruners decide at each report of random studies.

A study is a list of events in the order in which they happened: [trial, step, value, stop] for a
report and the decision on it, [trial, state, value] for an end. Up to four trials run at a time,
steps are left out, values are often equal, NaN or infinite. No two trials end equal, as the best of
them would depend on the storage; and where a rung's end decides, no report ends two rungs at once
(sampler/pruners/successive_halving.h says why). None of it comes from our code. Run in a virtual
environment with
    pip install optuna==5.0.0 scipy==1.17.1
    scripts/reference/pruners.py tests/golden/pruners.json
"""

import json
import math
import random
import sys
import warnings

import optuna
from optuna.pruners import (HyperbandPruner, MedianPruner, PatientPruner, PercentilePruner,
                            SuccessiveHalvingPruner, ThresholdPruner, WilcoxonPruner)
from optuna.trial import TrialState

STATES = {"completed": TrialState.COMPLETE, "stopped": TrialState.PRUNED,
          "out_of_memory": TrialState.PRUNED, "failed": TrialState.FAIL}


def median(**spec):
    return MedianPruner(n_startup_trials=spec["startup_trials"], n_warmup_steps=spec["warmup_steps"],
                        interval_steps=spec["interval_steps"], n_min_trials=spec["min_trials"])


def percentile(**spec):
    return PercentilePruner(spec["percentile"], n_startup_trials=spec["startup_trials"],
                            n_warmup_steps=spec["warmup_steps"],
                            interval_steps=spec["interval_steps"], n_min_trials=spec["min_trials"])


def threshold(**spec):
    return ThresholdPruner(lower=spec.get("lower"), upper=spec.get("upper"),
                           n_warmup_steps=spec["warmup_steps"],
                           interval_steps=spec["interval_steps"])


def patient(**spec):
    inner = {"none": lambda **_: None, "median": median, "threshold": threshold}[spec["wrapped"]]
    return PatientPruner(inner(**spec), patience=spec["patience"], min_delta=spec["min_delta"])


def asha(**spec):
    return SuccessiveHalvingPruner(**{k: v for k, v in spec.items() if k != "type"})


def hyperband(**spec):
    return HyperbandPruner(**{k: v for k, v in spec.items() if k != "type"})


def wilcoxon(**spec):
    return WilcoxonPruner(p_threshold=spec["p_threshold"], n_startup_steps=spec["startup_steps"])


def checks(rng):
    return {"startup_trials": rng.randint(0, 4), "warmup_steps": rng.randint(0, 5),
            "interval_steps": rng.randint(1, 4), "min_trials": rng.randint(1, 3)}


def make_spec(kind, rng):
    """The members of our `pruner:`, by their keys."""
    spec = {"type": kind}
    limits = {"lower": rng.choice([0.1, 0.2]), "upper": rng.choice([0.8, 0.9])}
    if kind in ("median", "percentile"):
        spec |= checks(rng)
    if kind == "percentile":
        spec["percentile"] = rng.choice([0.0, 10.0, 25.0, 33.3, 75.0, 100.0])
    if kind == "threshold":
        spec |= {"warmup_steps": rng.randint(0, 5), "interval_steps": rng.randint(1, 4)}
        spec |= rng.choice([limits, {"lower": 0.1}, {"upper": 0.9}])
    if kind == "patient":
        spec |= {"patience": rng.randint(0, 4), "min_delta": rng.choice([0.0, 0.1, 0.25])}
        spec["wrapped"] = rng.choice(["none", "median", "threshold"])
        spec |= checks(rng) if spec["wrapped"] == "median" else {}
        if spec["wrapped"] == "threshold":
            spec |= limits | {"warmup_steps": 0, "interval_steps": 1}
    if kind in ("asha", "hyperband"):
        spec |= {"min_resource": rng.randint(3, 5), "reduction_factor": rng.randint(2, 4),
                 "bootstrap_count": rng.choice([0, 0, 0, 2])}
    if kind == "asha":
        spec["min_early_stopping_rate"] = rng.choice([0, 0, 1])
    if kind == "hyperband":
        spec["max_resource"] = rng.randint(12, 40)
    if kind == "wilcoxon":
        spec |= {"p_threshold": rng.choice([0.05, 0.1, 0.25]), "startup_steps": rng.randint(0, 4)}
    return spec


def draw(rng, level, digits, odd_share):
    if rng.random() < odd_share:
        return rng.choice([math.nan, math.nan, math.inf, -math.inf])
    return round(level + rng.uniform(-0.3, 0.3), digits)


def encode(value):
    return value if math.isfinite(value) else str(value)


class Run:
    """One running trial: its steps, and the level around which its values lie."""

    def __init__(self, study, rng, last_step):
        self.trial = study.ask()
        self.level = rng.random()
        self.steps = [s for s in range(1, last_step + 1) if s % 2 == 0 or rng.random() < 0.7]


def simulate(kind, seed):
    rng = random.Random(f"{kind} {seed}")
    direction = rng.choice(["minimize", "maximize"])
    name = f"{kind}-{seed}"
    spec = make_spec(kind, rng)
    pruner = globals()[kind](**spec)
    study = optuna.create_study(study_name=name, direction=direction, pruner=pruner,
                                sampler=optuna.samplers.RandomSampler(seed=0))
    longest = rng.choice([8, 30, 70]) if kind == "wilcoxon" else rng.choice([8, 30])
    digits = rng.choice([1, 6])
    odd_share = rng.choice([0.0, 0.0, 0.02] if kind == "wilcoxon" else [0.0, 0.05, 0.3])
    events, running = [], []

    def end(run, state, value=None):
        running.remove(run)
        study.tell(run.trial, value, state=STATES[state])
        events.append([run.trial.number, state] + ([] if value is None else [encode(value)]))

    started = 0
    while started < 16 or running:
        if len(running) < 4 and started < 16:
            running.append(Run(study, rng, longest))
            started += 1
        run = rng.choice(running)
        if not run.steps:
            end(run, "completed", round(run.level, 6))
        elif rng.random() < 0.01:
            end(run, rng.choice(["failed", "out_of_memory"]))
        else:
            step = run.steps.pop(0)
            value = draw(rng, run.level, digits, odd_share)
            run.trial.report(value, step)
            stop = bool(run.trial.should_prune())
            events.append([run.trial.number, step, encode(value), stop])
            if stop:
                end(run, "stopped")
    return {"study": name, "direction": direction, "pruner": spec, "events": events}


def main():
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kinds = ["median", "percentile", "threshold", "patient", "asha", "hyperband", "wilcoxon"]
    studies = [simulate(kind, seed) for kind in kinds for seed in range(16)]
    for kind in kinds:
        stops = [e[3] for s in studies if s["pruner"]["type"] == kind
                 for e in s["events"] if len(e) == 4]
        print(kind, len(stops), "decisions,", sum(stops), "stops", file=sys.stderr)
    with open(sys.argv[1], "w") as out:
        out.write('{"optuna": "%s", "studies": [\n' % optuna.__version__)
        out.write(",\n".join(json.dumps(s, separators=(",", ":")) for s in studies))
        out.write("\n]}\n")


if __name__ == "__main__":
    main()
