"""Values of parameters: what Python has, and what the server keeps of it. A scalar of JSON is kept as it is;
any other object by a label, a text by which a process that knows the space finds the object again."""

import math
import operator
from typing import Any, Callable, Mapping, Optional, Sequence, Union, cast

from . import checks
from .errors import InvalidInput

Value = Union[bool, int, float, str, None]
_INT64 = 1 << 63


def plain(given: Any) -> Any:
    """Python's own number, text or bool of a scalar of numpy or torch; anything else as it is."""
    if given is None or type(cast(object, given)) in (bool, int, float, str, tuple, list):
        return given
    if getattr(given, "ndim", None) == 0 and callable(getattr(given, "item", None)):
        return given.item()
    for base in (int, float, str):
        if isinstance(given, base) and not isinstance(given, bool) and not hasattr(given, "name"):
            return base(given)
    return given


def plain_tree(given: Any) -> Any:
    """The same with the scalars within dicts and lists: what is written as JSON."""
    if isinstance(given, Mapping):
        return {key: plain_tree(one) for key, one in cast("Mapping[Any, Any]", given).items()}
    if isinstance(given, (list, tuple)):
        return [plain_tree(one) for one in cast("Sequence[Any]", given)]
    return plain_tree(given.tolist()) if hasattr(given, "tolist") and getattr(given, "ndim", 0) else plain(given)


def is_number(given: object) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given)


def whole(given: Any, what: str) -> int:
    """A whole number, also one of numpy's."""
    given = plain(given)
    try:
        if isinstance(given, bool):
            raise TypeError
        return operator.index(given)
    except TypeError:
        raise InvalidInput(f"{what}: expected a whole number, got {given!r}") from None


def real(given: Any, what: str) -> float:
    given = plain(given)
    if not is_number(given):
        raise InvalidInput(f"{what}: expected a finite number, got {given!r}")
    return float(given)


def _is_json(given: object) -> bool:
    """Whether the server keeps it as it is."""
    if isinstance(given, float):
        return math.isfinite(given)
    if isinstance(given, int):
        return isinstance(given, bool) or -_INT64 <= given < _INT64
    return given is None or isinstance(given, str)


def _label(given: Any) -> str:
    """The same in each process, or an error that says how to give one."""
    if isinstance(given, (tuple, list)):
        parts = cast("Sequence[Any]", given)
        inner = ", ".join(_label(part) if not _is_json(plain(part)) else repr(plain(part)) for part in parts)
        if isinstance(given, list):
            return f"[{inner}]"
        return f"({inner},)" if len(parts) == 1 else f"({inner})"
    if isinstance(given, Mapping):
        pairs = cast("Mapping[Any, Any]", given).items()
        return "{" + ", ".join(f"{_label(key)}: {_label(value)}" for key, value in pairs) + "}"
    if hasattr(given, "tolist") and getattr(given, "ndim", 0):
        return f"array({_label(given.tolist())})"
    if hasattr(given, "__qualname__") and hasattr(given, "__module__") and "<" not in given.__qualname__:
        return f"{given.__module__}.{given.__qualname__}".replace("builtins.", "")
    text = repr(plain(given))
    if " at 0x" in text or "<lambda>" in text:
        raise InvalidInput(f"a choice: expected a value whose repr names it, got {text}; name it yourself: "
                           "hpo.choice({\"its name\": the object, ...})")
    return text


def kept(given: Any) -> Value:
    """What the server keeps of a value: itself, or its label."""
    given = plain(given)
    value = given if _is_json(given) else _label(given)
    return checks.text(value, "a choice") if isinstance(value, str) else cast(Value, value)


class Objects:
    """The objects of a space's choices by parameter and label."""

    def __init__(self, by_label: "Optional[Mapping[str, Mapping[str, Any]]]" = None) -> None:
        self._by_label = {name: labels for name, labels in (by_label or {}).items() if labels}

    def __bool__(self) -> bool:
        return bool(self._by_label)

    def given(self, params: "Mapping[str, Any]") -> "dict[str, Any]":
        """Parameters as a trial gets them. A label that the space does not have stays a text."""
        if not self._by_label:
            return dict(params)
        return {name: self._by_label.get(name, {}).get(value, value) if isinstance(value, str) else value
                for name, value in params.items()}

    def kept(self, name: str, value: Any) -> Value:
        """The label of an object of the space, also of one that was named; else as `kept`."""
        for label, one in self._by_label.get(name, {}).items():
            if one is value:
                return label
        return kept(value)

    def added(self, by_label: "Mapping[str, Mapping[str, Any]]") -> "Objects":
        return Objects({**self._by_label, **by_label})


class WithObjects:
    """A function of a trial, which gets the objects of the space's choices in place of their labels."""

    def __init__(self, train: "Callable[[Any], Any]", objects: Objects) -> None:
        self.train = train
        self.objects = objects

    def __call__(self, trial: Any) -> Any:
        trial.objects = self.objects
        trial.params = self.objects.given(trial.params)
        return self.train(trial)
