"""Optuna's search spaces and trials, as hpo-sampler takes them."""

import json
import math
import random
from typing import Any, Mapping, Sequence

from ..errors import imported
from ..space import Domain

optuna: Any = imported("optuna", "hpo.optuna")

_CHUNK = 2000  # characters: some storages of Optuna keep no longer attribute
_PROPOSED = "hpo:proposed:"  # attributes of a trial: parts of a JSON text, what was proposed for it
_STATES = {"RUNNING": "RUNNING", "COMPLETE": "COMPLETED", "PRUNED": "PRUNED", "FAIL": "FAILED"}


def attributes_of(params: "Mapping[str, Any]", space: "Mapping[str, Any]") -> "dict[str, str]":
    """What a trial's attributes say of its proposal, so that other processes know what is in flight."""
    text = json.dumps({name: space[name].to_internal_repr(value) for name, value in params.items()})
    return {f"{_PROPOSED}{at // _CHUNK}": text[at:at + _CHUNK] for at in range(0, len(text), _CHUNK)}


def _proposed(attributes: "Mapping[str, Any]") -> "dict[str, float]":
    """By name, in Optuna's internal form."""
    text, part = "", attributes.get(f"{_PROPOSED}0")
    for index in range(1, len(attributes) + 1):
        if part is None:
            break
        text, part = text + str(part), attributes.get(f"{_PROPOSED}{index}")
    try:
        found: "dict[str, float]" = json.loads(text or "{}")
    except ValueError:
        return {}  # Its end is not written yet.
    return found


def fixed_of(trial: Any) -> "dict[str, Any]":
    """What was enqueued for a trial."""
    return dict(trial.system_attrs.get("fixed_params") or {})


def constraints_of(trial: Any) -> "dict[str, float]":
    """By their names; above 0: violated. In both forms that Optuna stores."""
    told: "Mapping[str, Any]" = trial.system_attrs
    found: "dict[str, float]" = {str(index): value for index, value in enumerate(told.get("constraints") or ())}
    found.update({key.partition(":")[2]: value for key, value in told.items() if key.startswith("constraints:")})
    return found


class Axis:
    """A distribution of Optuna's as a domain of ours, and its values in both."""

    def __init__(self, name: str, distribution: Any) -> None:
        self.name = name
        self.distribution = distribution
        of = optuna.distributions
        if isinstance(distribution, of.CategoricalDistribution):  # by index: any object may be a choice
            self.domain = Domain("choices", tuple(range(len(distribution.choices))))
        elif isinstance(distribution, of.IntDistribution):
            self.domain = Domain("int", (distribution.low, distribution.high), distribution.log,
                                 None if distribution.step == 1 else distribution.step)
        else:
            self.domain = Domain("float", (distribution.low, distribution.high), distribution.log, distribution.step)

    def ours(self, value: Any) -> "float | int | None":
        """None where the distribution does not have the value."""
        try:
            internal = self.distribution.to_internal_repr(value)
        except (ValueError, TypeError):
            return None
        return self.of_internal(internal)

    def of_internal(self, internal: float) -> "float | int | None":
        if not self.distribution._contains(internal):
            return None
        return self._on_grid(internal) if self.domain.kind == "float" else int(internal)

    def theirs(self, value: Any) -> Any:
        if self.domain.kind == "choices":
            return self.distribution.choices[int(value)]
        return int(value) if self.domain.kind == "int" else self._on_grid(float(value))

    def drawn(self, seed: str) -> Any:
        return self.theirs(self.domain.draw(random.Random(seed)))

    def _on_grid(self, value: float) -> float:
        low, high, step = self.distribution.low, self.distribution.high, self.distribution.step
        if step is not None:
            value = low + round((value - low) / step) * step
        return float(min(max(value, low), high))


class Axes:
    """A search space: a parameter is known to hpo-sampler by its place, as any text may be its name."""

    def __init__(self, space: "Mapping[str, Any]") -> None:
        self.by_name = {name: Axis(f"p{index}", space[name]) for index, name in enumerate(sorted(space))}
        self._by_axis = {axis.name: name for name, axis in self.by_name.items()}

    @property
    def names(self) -> "tuple[str, ...]":
        return tuple(self.by_name)

    @property
    def domains(self) -> "dict[str, Domain]":
        return {axis.name: axis.domain for axis in self.by_name.values()}

    def params_of(self, trial: Any) -> "dict[str, float | int]":
        """Ours, of those that the trial has; of one that runs also those that it is to have, by what was
        enqueued or proposed."""
        runs = not trial.state.is_finished()
        proposed = _proposed(trial.system_attrs) if runs else {}
        fixed = fixed_of(trial) if runs else {}
        found: "dict[str, float | int]" = {}
        for name, axis in self.by_name.items():
            if name in trial.params:
                value = axis.ours(trial.params[name])
            elif name in fixed:
                value = axis.ours(fixed[name])
            else:
                value = axis.of_internal(proposed[name]) if name in proposed else None
            if value is not None:
                found[axis.name] = value
        return found

    def miss_some_of(self, trial: Any) -> bool:
        """Whether the trial has other parameters, of more than one value."""
        return not trial.params.keys() <= self.by_name.keys() and any(
            name not in self.by_name and not trial.distributions[name].single() for name in trial.params)

    def theirs(self, params: "Mapping[str, Any]") -> "dict[str, Any]":
        return {self._by_axis[key]: self.by_name[self._by_axis[key]].theirs(value) for key, value in params.items()}


def told(trial: Any, axes: Axes, signs: "Sequence[float]", constraints: "Sequence[str]") -> "dict[str, Any] | None":
    """A trial for hpo-sampler; None where it is no configuration of the space. `signs`: -1 of what is maximized."""
    params = axes.params_of(trial)
    if len(params) < len(axes.by_name):
        return None
    line: "dict[str, Any]" = {"number": trial.number, "params": params, "state": _STATES[trial.state.name]}
    if trial.state == optuna.trial.TrialState.COMPLETE:
        line["losses"] = [_finite(sign * value) for sign, value in zip(signs, trial.values)]
    if trial.state.is_finished() and len(signs) == 1 and trial.intermediate_values:
        line["reports"] = [[step, _finite(signs[0] * value)] for step, value in trial.intermediate_values.items()]
    if constraints and trial.state == optuna.trial.TrialState.COMPLETE:
        own = constraints_of(trial)
        line["excesses"] = [_finite(own.get(name, 0.0)) for name in constraints]
    return line


def _finite(value: float) -> "float | None":
    """None: the worst."""
    return float(value) if math.isfinite(value) else None
