"""What a study searches: ranges and choices, and the study file that says so."""

import json
import math
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Union

from .errors import InvalidInput

Value = Union[bool, int, float, str]


@dataclass(frozen=True)
class Domain:
    """A parameter's range or choices. Made by uniform, log, int and choice."""

    kind: str  # the study file's key: "float", "int" or "choices"
    values: "tuple[Value, ...]"
    log: bool = False
    step: "float | None" = None
    default: Optional[Value] = None
    when: "Mapping[str, Any] | None" = None


def _is_finite(given: object) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given)


def _is_whole(given: object) -> bool:
    return isinstance(given, int)


def _is_value(given: object) -> bool:
    return isinstance(given, (bool, int, float, str))


def _range(kind: str, low: float, high: float, **more: Any) -> Domain:
    if not (_is_finite(low) and _is_finite(high)):
        raise InvalidInput(f"a range: expected two finite numbers, got {low!r} and {high!r}")
    if low > high:
        raise InvalidInput(f"a range: expected low <= high, got {low!r} and {high!r}")
    if more.get("log") and low <= 0:
        raise InvalidInput(f"a logarithmic range: expected low > 0, got {low!r}")
    return Domain(kind, (low, high), **more)


def uniform(low: float, high: float, *, step: "float | None" = None, default: "float | None" = None,
            when: "Mapping[str, Any] | None" = None) -> Domain:
    """A real number between low and high, both included."""
    return _range("float", float(low), float(high), step=step, default=default, when=when)


def log(low: float, high: float, *, default: "float | None" = None,
        when: "Mapping[str, Any] | None" = None) -> Domain:
    """A positive real number, searched on a logarithmic scale; both bounds included."""
    return _range("float", float(low), float(high), log=True, default=default, when=when)


def integer(low: int, high: int, *, step: "int | None" = None, log: bool = False,
            default: "int | None" = None, when: "Mapping[str, Any] | None" = None) -> Domain:
    """A whole number between low and high, both included. Also hpo.int."""
    if not (_is_whole(low) and _is_whole(high)):
        raise InvalidInput(f"hpo.int: expected whole numbers, got {low!r} and {high!r}")
    return _range("int", low, high, step=step, log=log, default=default, when=when)


def choice(choices: Sequence[Value], *, default: Optional[Value] = None,
           when: "Mapping[str, Any] | None" = None) -> Domain:
    """One of the given values. A plain list says the same."""
    for value in choices:
        if not _is_value(value):
            raise InvalidInput(f"a choice: expected a bool, a number or a string, got {value!r}")
    if not choices:
        raise InvalidInput("a choice: expected at least one value, got none")
    return Domain("choices", tuple(choices), default=default, when=when)


Space = Mapping[str, Union[Domain, Sequence[Value]]]


def domain_of(name: str, given: "Domain | Sequence[Value]") -> Domain:
    """Of one entry of a space."""
    if isinstance(given, Domain):
        return given
    if isinstance(given, (list, tuple)):
        return choice(given)
    raise InvalidInput(f"{name}: expected hpo.uniform, hpo.log, hpo.int or a list of choices, got "
                       f"{given!r}")


def _entry(name: str, domain: Domain) -> "dict[str, Any]":
    entry: "dict[str, Any]" = {domain.kind: list(domain.values)}
    if domain.log:
        entry["log"] = True
    for key in ("step", "default", "when"):
        given = getattr(domain, key)
        if given is not None:
            entry[key] = dict(given) if key == "when" else given
    if domain.when is not None and not domain.when:
        raise InvalidInput(f"{name}: when: expected a parameter and its values, got nothing")
    return entry


def study_file(name: str, space: Space, objectives: "Mapping[str, str]", **sections: Any) -> str:
    """The text of a study file (JSON, which is YAML). `objectives`: direction by metric."""
    if not space:
        raise InvalidInput("the search space: expected at least one parameter, got none")
    parameters = {key: _entry(key, domain_of(key, given)) for key, given in space.items()}
    goals = [{"metric": metric, "direction": way} for metric, way in objectives.items()]
    return json.dumps({"name": name, "objective": goals[0] if len(goals) == 1 else goals,
                       "trainer": {"task": "function"}, "parameters": parameters,
                       **{key: section for key, section in sections.items() if section}})
