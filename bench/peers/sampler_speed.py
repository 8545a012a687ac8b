"""Optuna's or Rustuna's suggestions in turns with ours, for bench/sampler_speed; runs in the peers' own Python.

usage: sampler_speed.py optuna|rustuna tpe|gp TRIALS.jsonl < one line per turn
Writes what bin/sampler_speed does: for each turn the microseconds of processor time of a suggestion (ask and the
ten parameters; telling is not counted).
"""

import json
import pathlib
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from sampler import history  # noqa: E402


def sampler_of(peer, library, kind):
    if kind == "gp":
        return library.samplers.GPSampler(seed=7)
    # Both of them joint, as ours; Rustuna's default is per parameter.
    return library.samplers.TPESampler(seed=7, **({"multivariate": True} if peer == "rustuna" else {}))


def distributions_of(library):
    of = library.distributions
    return {
        "f0": of.FloatDistribution(-5, 5),
        "f1": of.FloatDistribution(0, 1),
        "f2": of.FloatDistribution(1e-5, 1, log=True),
        "f3": of.FloatDistribution(1e-3, 1e3, log=True),
        "i0": of.IntDistribution(1, 32),
        "i1": of.IntDistribution(0, 100, step=5),
        "i2": of.IntDistribution(1, 1024, log=True),
        **{name: of.CategoricalDistribution(list(choices)) for name, choices in history.CHOICES.items()},
    }


def suggest(trial):
    return {
        "f0": trial.suggest_float("f0", -5, 5),
        "f1": trial.suggest_float("f1", 0, 1),
        "f2": trial.suggest_float("f2", 1e-5, 1, log=True),
        "f3": trial.suggest_float("f3", 1e-3, 1e3, log=True),
        "i0": trial.suggest_int("i0", 1, 32),
        "i1": trial.suggest_int("i1", 0, 100, step=5),
        "i2": trial.suggest_int("i2", 1, 1024, log=True),
        **{name: trial.suggest_categorical(name, list(choices)) for name, choices in history.CHOICES.items()},
    }


def main():
    peer, kind, path = sys.argv[1:]
    warnings.filterwarnings("ignore")
    library = __import__(peer)
    if peer == "optuna":
        library.logging.set_verbosity(library.logging.WARNING)
    if kind == "gp":
        __import__("torch").set_num_threads(1)
    study = library.create_study(sampler=sampler_of(peer, library, kind), direction="minimize")
    distributions = distributions_of(library)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            study.add_trial(library.trial.create_trial(distributions=distributions, **json.loads(line)))
    for _ in sys.stdin:
        begin = time.process_time()
        trial = study.ask()
        params = suggest(trial)
        print(1e6 * (time.process_time() - begin), flush=True)
        study.tell(trial.number, history.value(params))


if __name__ == "__main__":
    main()
