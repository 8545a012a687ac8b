"""trial.suggest_float and its like: functions that were written for Optuna say their ranges, which have to be
those of the space."""

from typing import Any, Mapping, Optional, Sequence, cast

from .errors import InvalidInput, UnknownParameter
from .space import Domain, entry_of
from .values import Objects, Value

_GRID = 1e-6  # of a step: by how much a value may be off the grid


def choices_of(name: str, choices: "Sequence[Any]", objects: Objects) -> Domain:
    """As the space has them: objects by their labels there."""
    labels = [objects.kept(name, one) for one in choices]
    return Domain("choices", tuple(labels), objects={
        label: one for label, one in zip(labels, choices) if isinstance(label, str) and label is not one})


def value_of(name: str, asked: Domain, params: "Mapping[str, Any]", space: "Optional[Mapping[str, Any]]",
             objects: Objects) -> Any:
    """The trial's value, where `asked` is the range that the space has. `space`: by name, the entries of a study
    file; None, as in a program under hpo-worker: it is enough that `asked` has the value. Raises UnknownParameter,
    and InvalidInput where the two ranges are not the same."""
    if space is not None and name in space:
        known = _domain_of(space[name])
        if not _is_same(asked, known):
            raise InvalidInput(f"{name}: expected the same range in the function and in the space, got {asked!r} in the "
                               f"function and {known!r} in the space")
        if name not in params:
            when: "Mapping[str, Any]" = space[name].get("when") or {}
            where = " and ".join(f"{parent} is {values!r}" for parent, values in when.items())
            raise UnknownParameter(f"{name}: the space has it only where {where}; this trial has "
                                   f"{', '.join(f'{key}={value!r}' for key, value in params.items())}")
    if name not in params:
        raise UnknownParameter(f"the space has no parameter {name!r}: add {name!r}: {asked!r} to the space that is given "
                               "to hpo.minimize or hpo.Study")
    if space is None and not _contains(asked, objects.kept(name, params[name])):
        raise InvalidInput(f"{name}: expected the same range in the function and in the space, got {asked!r} in the "
                           f"function and the value {params[name]!r} from the space")
    return params[name]


def _domain_of(entry: "Mapping[str, Any]") -> Domain:
    kind = next(one for one in ("float", "int", "choices") if one in entry)
    return Domain(kind, tuple(entry[kind]), bool(entry.get("log")), entry.get("step"))


def _is_same(asked: Domain, known: Domain) -> bool:
    if asked.kind != "choices" or known.kind != "choices":
        return entry_of(asked) == entry_of(known)
    return len(asked.values) == len(known.values) and all(_is_one_of(value, known.values) for value in asked.values)


def _is_one_of(value: Value, values: "Sequence[Value]") -> bool:
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values)


def _contains(domain: Domain, value: Value) -> bool:
    if domain.kind == "choices":
        return _is_one_of(value, domain.values)
    if isinstance(value, (bool, str)) or value is None or (domain.kind == "int" and not isinstance(value, int)):
        return False
    low, high = cast("tuple[float, float]", domain.values)
    steps = 0.0 if domain.step is None else (value - low) / domain.step
    return low <= value <= high and abs(steps - round(steps)) <= _GRID
