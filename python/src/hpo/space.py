"""What a study searches: ranges and choices, and the study file that says so."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union, cast

from . import checks
from ._keywords import checked
from .errors import InvalidInput
from .values import Objects, Value, kept, plain, real, whole

if TYPE_CHECKING:
    import random

_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF)}
_NAMES = {"float": "hpo.uniform", "int": "hpo.int", "choices": "hpo.choice"}


@dataclass(frozen=True)
class Domain:
    """A parameter's range or choices. Made by uniform, log, int and choice."""

    kind: str  # the study file's key: "float", "int" or "choices"
    values: "tuple[Value, ...]"  # low and high, or the choices, objects among them by their labels
    log: bool = False
    step: "float | None" = None
    default: Optional[Value] = None
    when: "Mapping[str, Any] | None" = field(default=None, hash=False)
    has_default: bool = False  # also where it is None
    objects: "Mapping[str, Any]" = field(default_factory=lambda: {}, compare=False, hash=False)  # by their labels

    def __repr__(self) -> str:
        if self.kind == "choices":
            told = repr([self.objects.get(value, value) if isinstance(value, str) else value
                         for value in self.values])
        else:
            told = f"{self.values[0]!r}, {self.values[1]!r}"
        maker = "hpo.log" if self.kind == "float" and self.log else _NAMES[self.kind]
        more = {"log": True if self.log and self.kind == "int" else None, "step": self.step, "when": self.when}
        for key, given in more.items():
            told += f", {key}={given!r}" if given is not None else ""
        if self.has_default:
            told += f", default={self.default!r}"
        return f"{maker}({told})"

    def draw(self, rng: "random.Random") -> Any:
        """A value of the domain at random, on a logarithmic scale where it is searched so."""
        if self.kind == "choices":
            value = rng.choice(self.values)
            return self.objects.get(value, value) if isinstance(value, str) else value
        low, high = cast("tuple[float, float]", self.values)
        if self.kind == "int" and not self.log:
            return rng.randrange(int(low), int(high) + 1, int(self.step or 1))
        if self.log:
            value = low * (high / low) ** rng.random()
        else:
            value = rng.uniform(low, high)
            value = low + round((value - low) / self.step) * self.step if self.step else value
        return round(value) if self.kind == "int" else min(max(value, low), high)


def _conditions(when: "Mapping[str, Any] | None") -> "Mapping[str, Any] | None":
    """A list is one of several values; a tuple is a choice by its label."""
    if when is None:
        return None
    if not when:
        raise InvalidInput("when: expected a parameter and its values, got nothing")
    return {name: [kept(one) for one in cast("list[Any]", values)] if isinstance(values, list) else kept(values)
            for name, values in when.items()}


def _range(kind: str, low: float, high: float, more: "dict[str, Any]") -> Domain:
    if kind == "float" and low == high:
        raise InvalidInput(f"{_NAMES[kind]}: expected low < high, got {low!r} twice; one value alone is a list: [{low!r}]")
    if low > high:
        raise InvalidInput(f"{_NAMES[kind]}: expected low <= high, got {low!r} and {high!r}")
    if more.get("log") and low <= 0:
        raise InvalidInput(f"a logarithmic range: expected low > 0, got {low!r}")
    step = more.get("step")
    if step is not None and step <= 0:
        raise InvalidInput(f"{_NAMES[kind]}: step: expected more than 0, got {step!r}")
    default = more.get("default")
    return Domain(kind, (low, high), bool(more.get("log")), step, default, _conditions(more.get("when")),
                  default is not None)


@checked
def uniform(low: float, high: float, *, step: "float | None" = None, default: "float | None" = None,
            when: "Mapping[str, Any] | None" = None) -> Domain:
    """A real number between low and high, both included. `step`: a grid from the low end. `default`: what
    the first trial takes. `when`: the parameter exists only where others have these values."""
    return _range("float", real(low, "hpo.uniform: low"), real(high, "hpo.uniform: high"), {
        "step": None if step is None else real(step, "hpo.uniform: step"),
        "default": None if default is None else real(default, "hpo.uniform: default"), "when": when})


@checked
def log(low: float, high: float, *, default: "float | None" = None,
        when: "Mapping[str, Any] | None" = None) -> Domain:
    """A positive real number, searched on a logarithmic scale; both bounds included."""
    return _range("float", real(low, "hpo.log: low"), real(high, "hpo.log: high"), {
        "log": True, "default": None if default is None else real(default, "hpo.log: default"), "when": when})


@checked
def integer(low: int, high: int, *, step: "int | None" = None, log: bool = False,
            default: "int | None" = None, when: "Mapping[str, Any] | None" = None) -> Domain:
    """A whole number between low and high, both included. Also hpo.int."""
    return _range("int", whole(low, "hpo.int: low"), whole(high, "hpo.int: high"), {
        "step": None if step is None else whole(step, "hpo.int: step"), "log": bool(log),
        "default": None if default is None else whole(default, "hpo.int: default"), "when": when})


_NONE_GIVEN: Any = object()


@checked
def choice(choices: "Union[Sequence[Any], Mapping[str, Any]]", *, default: Any = _NONE_GIVEN,
           when: "Mapping[str, Any] | None" = None) -> Domain:
    """One of the given values; a plain list says the same. Numbers, texts, bools and None are values as they
    are. Any other object, such as a tuple, a list or a class, is known to the server by its label (its repr,
    or its name), and the trial gets the object; a dict gives objects labels of your own."""
    if isinstance(choices, Mapping):
        named = cast("Mapping[Any, Any]", choices)
        pairs = [(kept(str(label)), one) for label, one in named.items()]
    else:
        pairs = [(kept(one), plain(one)) for one in _listed(choices)]
    if not pairs:
        raise InvalidInput("a choice: expected at least one value, got none")
    values = tuple(value for value, _ in pairs)
    _check_distinct(values)
    objects = {value: one for value, one in pairs if isinstance(value, str) and value is not one}
    chosen: Any = next((label for label, one in objects.items() if one is default), None)
    has_default = default is not _NONE_GIVEN and (default is not None or None in values)
    if has_default and chosen is None:
        chosen = kept(default)
    if has_default and _key(chosen) not in set(map(_key, values)):
        raise InvalidInput(f"a choice: default: expected one of {list(values)!r:.200}, got {default!r}")
    return Domain("choices", values, default=chosen if has_default else None, when=_conditions(when),
                  has_default=has_default, objects=objects)


def _listed(choices: Any) -> "Sequence[Any]":
    if isinstance(choices, (str, bytes)) or not hasattr(choices, "__iter__"):
        raise InvalidInput(f"a choice: expected a list of values, got {choices!r}")
    if isinstance(choices, (set, frozenset)):
        raise InvalidInput(f"a choice: expected a list of values, got a set, whose order is another one in each "
                           f"process: {choices!r}")
    if hasattr(choices, "tolist"):
        choices = choices.tolist()
    return list(choices)


def _key(value: Value) -> "tuple[str, Value]":
    """Equal for what is the same choice: 1 and 1.0, but not True."""
    return ("number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__, value)


def _check_distinct(values: "Sequence[Value]") -> None:
    seen: "set[tuple[str, Value]]" = set()
    for value in values:
        if _key(value) in seen:
            raise InvalidInput(f"a choice: expected each value once, got {value!r} twice")
        seen.add(_key(value))


Space = Mapping[str, Union[Domain, Sequence[Any], Any]]


def domain_of(name: str, given: Any) -> Domain:
    """Of one entry of a space: a Domain, a list or an array of choices, or a range, whose numbers are in order."""
    try:
        if isinstance(given, Domain):
            return given
        if isinstance(given, range):
            return _domain_of_range(given)
        if isinstance(given, list) or (hasattr(given, "tolist") and getattr(given, "ndim", 1)):
            return choice(cast("Sequence[Any]", given))
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None
    raise InvalidInput(f"{name}: expected hpo.uniform, hpo.log, hpo.int or a list of choices, got "
                       f"{given!r}{_instead(given)}")


def _domain_of_range(given: range) -> Domain:
    if not given:
        raise InvalidInput(f"a range: expected at least one number, got {given!r}")
    ends = sorted((given[0], given[-1]))
    return integer(ends[0], ends[1], step=abs(given.step) if abs(given.step) > 1 and len(given) > 1 else None)


def _instead(given: Any) -> str:
    """What to write for what other tools take."""
    if isinstance(given, tuple):
        values = cast("tuple[Any, ...]", given)
        ends = [plain(one) for one in values[:2]]
        maker = "hpo.int" if all(isinstance(one, int) for one in ends) else "hpo.uniform"
        between = ", ".join(map(repr, ends))
        is_range = len(values) in (2, 3) and all(isinstance(one, (int, float)) for one in ends)
        either = f"{maker}({between}) for a range, or " if is_range else ""
        return f"; a tuple may mean either: write {either}{list(values)!r} for choices"
    if isinstance(given, Mapping):
        return ("; write hpo.choice({...}) for choices by their labels, [...] for {\"values\": [...]}, "
                "hpo.uniform(low, high) for {\"min\": low, \"max\": high}")
    if isinstance(given, (set, frozenset)):
        return "; the order of a set is another one in each process: write a list"
    return ""


def domains_of(space: Space) -> "dict[str, Domain]":
    if not isinstance(cast(object, space), Mapping):
        raise InvalidInput(f"space: expected a dict of hpo.uniform, hpo.log, hpo.int and lists by the parameters' names, "
                           f"got {space!r:.200}")
    return {checks.name(name, "a parameter"): domain_of(name, given) for name, given in space.items()}


def objects_of(domains: "Mapping[str, Domain]") -> Objects:
    return Objects({name: domain.objects for name, domain in domains.items()})


def entry_of(domain: Domain) -> "dict[str, Any]":
    """The study file's entry of a parameter."""
    entry: "dict[str, Any]" = {domain.kind: list(domain.values)}
    if domain.log:
        entry["log"] = True
    if domain.step is not None:
        entry["step"] = domain.step
    if domain.has_default:
        entry["default"] = domain.default
    if domain.when is not None:
        entry["when"] = dict(domain.when)
    return entry


def study_file(name: str, space: "Mapping[str, Domain]", objectives: "Mapping[str, str]", **sections: Any) -> str:
    """The text of a study file (JSON, which is YAML). `objectives`: direction by metric."""
    if not space:
        raise InvalidInput("the search space: expected at least one parameter, got none")
    parameters = {key: entry_of(domain) for key, domain in space.items()}
    goals = [{"metric": metric, "direction": way} for metric, way in objectives.items()]
    file = {"name": name, "objective": goals[0] if len(goals) == 1 else goals,
            "trainer": {"task": "function"}, "parameters": parameters,
            **{key: section for key, section in sections.items() if section}}
    # Characters as they are, as YAML has no pairs of surrogates; but those that it takes for ends of lines.
    return json.dumps(file, ensure_ascii=False).translate(_ESCAPED)
