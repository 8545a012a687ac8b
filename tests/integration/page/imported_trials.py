"""Trials of every kind for the tests of the page, imported by its API: completed, pruned, failed, out of memory."""

import datetime
import json
import math
import random

STUDY = """\
name: toy
objective: {{metric: loss, direction: minimize}}
trainer: {{task: custom, epochs: 5}}
budget: {{trials: {trials}}}
memory: {{policy: "off"}}
sampler: {{type: random, seed: 3}}
pruner: {{type: none}}
parameters:
  lr: {{float: [1.0e-6, 1.0e-2], log: true}}
  batch_size: {{int: [8, 512], log: true}}
  optimizer: {{choices: [adamw, sgd]}}
"""
BEGIN = 1_764_300_000  # seconds since 1970
PIECE = 1000  # trials of one line of the import


def _time(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _outcome(number, loss, needed):
    if needed > 24e9:
        return {"out_of_memory": {"kind": "OOM_KIND_CONFIGURATION", "requested_bytes": 192 << 20,
                                  "peak_bytes": int(23.5e9), "limit_bytes": int(24e9), "needed_bytes": int(needed),
                                  "phase": "backward", "step": 3,
                                  "error_message": "CUDA out of memory. Tried to allocate 192.00 MiB"}}
    if number % 19 == 7:
        return {"failed": {"failure_class": "FAILURE_CLASS_DIVERGED", "message": "the loss is not a number at step 120"}}
    if number % 5 == 4:
        return {"stopped_by_pruner": {"pruner": "asha", "step": 3, "metrics": {"loss": loss + 0.1}}}
    return {"completed": {"metrics": {"loss": loss, "seconds": 50.0 + number % 400}}}


def trial(number, draw, steps=5):
    """One of ImportTrials. Its loss is lowest at a learning rate of 2e-4, so that `lr` is most important."""
    rate, batch, optimizer = 10 ** draw.uniform(-6, -2), int(2 ** draw.uniform(3, 9)), draw.choice(["adamw", "sgd"])
    loss = 0.3 + 0.3 * abs(math.log10(rate) + 3.7) ** 1.5 + (0.2 if optimizer == "sgd" else 0.0) + draw.gauss(0, 0.02)
    outcome = _outcome(number, loss, 2e9 + 45e6 * batch)
    curve = [{"step": step, "epoch": step, "metrics": {"loss": loss + 1.0 / step}} for step in range(1, steps + 1)]
    begin = BEGIN + 60 * number
    return {"origin": f"import#{number}", "outcome": outcome, "started": _time(begin), "ended": _time(begin + 50),
            "params": {"lr": {"double_value": rate}, "batch_size": {"int_value": batch},
                       "optimizer": {"string_value": optimizer}},
            "measurements": curve if "completed" in outcome else []}


def lines(study, trials, steps=5, seed=1):
    """The body of ImportTrials in pieces, each a line of JSON."""
    draw = random.Random(seed)
    for first in range(0, trials, PIECE):
        piece = [trial(number, draw, steps) for number in range(first, min(first + PIECE, trials))]
        yield json.dumps({"study": study, "count_against_budget": True, "trials": piece}) + "\n"


def numbers(kind, trials, seed=1):
    """Of those that ended in this way: "completed", "failed", "out_of_memory", "stopped_by_pruner"."""
    wires = [wire for line in lines("", trials, seed=seed) for wire in json.loads(line)["trials"]]
    return [number for number, wire in enumerate(wires) if kind in wire["outcome"]]
