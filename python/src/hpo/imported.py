"""Trials that ran elsewhere, as the server takes them."""

import math
from typing import Any, Iterable, Mapping, Sequence

from . import _wire, checks
from .errors import InvalidInput

_STATES = ("completed", "pruned", "failed")


def values_of(value: "float | Sequence[float]", objectives: "Sequence[str]") -> "dict[str, Any]":
    """By the objectives' names: one number of one objective, else a list in their order."""
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(listed) != len(objectives):
        raise InvalidInput(f"add_trial: value: expected {'one number' if len(objectives) == 1 else 'a list'}, as the study "
                           f"has {'one objective' if len(objectives) == 1 else f'{len(objectives)} objectives'}, got {value!r}")
    return dict(zip(objectives, listed))


def add(one: Any, state: str, metrics: "Mapping[str, Any]", objectives: "Sequence[str]", error: str,
        reports: "Iterable[tuple[int, float]]", attributes: "Mapping[str, str]") -> None:
    """Fills a message ImportedTrial, but for its parameters."""
    if state not in _STATES:
        raise InvalidInput(f"add_trial: state: expected one of {', '.join(_STATES)}, got {state!r}")
    numbers = checks.metrics(metrics, "add_trial: metrics")
    missing = [name for name in objectives if name not in numbers]
    if state == "completed" and missing:
        raise InvalidInput(f"add_trial: expected value= or metrics= with each objective of a completed trial, got none "
                           f"of {', '.join(map(repr, missing))}")
    worst = [name for name in objectives if name in numbers and not math.isfinite(numbers[name])]
    if state == "completed" and worst:
        raise InvalidInput(f"add_trial: expected a finite {worst[0]} of a completed trial, got {numbers[worst[0]]}; one "
                           "without a usable value is added with state=\"failed\" and its error=")
    one.attributes.update(attributes)
    for step, value in reports:
        one.measurements.add(step=checks.step(step), metrics={objectives[0]: checks.number(value, "add_trial: report")})
    if state == "completed":
        one.outcome.completed.metrics.update(numbers)
    elif state == "pruned":
        last = one.measurements[-1].step if one.measurements else 0
        one.outcome.stopped_by_pruner.step = last
        one.outcome.stopped_by_pruner.metrics.update(numbers)
    else:
        one.outcome.failed.message = checks.shortened(error or "it failed elsewhere")
        one.outcome.failed.failure_class = _wire.number("FailureClass", "FAILURE_CLASS_INTERNAL")
