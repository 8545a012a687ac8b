"""The limits of docs/limits.md that a trial's words are held to where they are said, so that the error has
the frames of the code that said them."""

import json
import math
import numbers
import operator
from typing import Any, Mapping, cast

from .errors import InvalidInput

NUMBER = 1 << 53  # a size, step, count or other whole number
NAME_BYTES = 200
TEXT_BYTES = 4096
ERROR_BYTES = 64 << 10
METRICS = 1000
MEASUREMENTS = 20_000
ATTRIBUTES = 100
_RESERVED = "hpo."
_ORDER = "the order is trial.report(step, value)"


def utf8(text: str) -> str:
    """The text, with halves of surrogate pairs, which UTF-8 does not have, written out: \\udc80."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def shortened(text: str, most: int = ERROR_BYTES) -> str:
    """A message or traceback as the server takes it: what is longer loses its middle."""
    data = utf8(text).encode()
    if len(data) <= most:
        return data.decode()
    said = f"\n... {len(data) - most + 64} bytes left out ...\n"
    room = most - len(said)
    return data[:room // 2].decode(errors="ignore") + said + data[-(room - room // 2):].decode(errors="ignore")


def text(given: str, what: str, most: int = TEXT_BYTES) -> str:
    if given.isascii():
        size = len(given)
    else:
        try:
            size = len(given.encode())
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{what}: expected text that UTF-8 has, got {given[:60]!r} with "
                               f"{given[error.start]!r} at {error.start}") from None
    if size > most:
        raise InvalidInput(f"{what}: expected at most {most:,} bytes, got {size:,}: {given[:60]!r}...")
    return given


def name(given: object, what: str) -> str:
    if not isinstance(given, str) or not given:
        raise InvalidInput(f"{what}: expected a name, got {given!r}")
    return text(given, what, NAME_BYTES)


def number(given: Any, what: str) -> float:
    """A number, also one that is not finite, or a tensor or array of one element."""
    if type(given) is float:
        return given
    try:
        if isinstance(given, (str, bytes)):
            raise TypeError
        return float(given.item() if hasattr(given, "item") else given)
    except Exception:
        raise InvalidInput(f"{what}: expected a number, got {given!r:.200} ({type(given).__name__})") from None


def step(given: Any, value: Any = None) -> int:
    """Of a report. `value`: what was reported, since other tools take the two in another order."""
    if type(given) is int and 0 <= given <= NUMBER:
        return given
    return _unusual_step(given, given, value)


def _unusual_step(given: Any, plain: Any, value: Any) -> int:
    if hasattr(plain, "item") and getattr(plain, "ndim", 0) == 0:
        plain = plain.item()
    is_real = isinstance(cast(object, plain), float)
    if is_real and isinstance(value, numbers.Integral):
        raise InvalidInput(f"trial.report: step: expected a whole number, got {given!r} with the value {value!r}; "
                           f"{_ORDER}, not report(value, step)")
    if is_real and math.isfinite(plain) and plain == int(plain):
        plain = int(plain)
    try:
        if isinstance(plain, bool):
            raise TypeError
        told = operator.index(plain)
    except TypeError:
        raise InvalidInput(f"trial.report: step: expected a whole number, got {given!r}; {_ORDER}, and a part of an "
                           "epoch goes into epoch=") from None
    if not 0 <= told <= NUMBER:
        raise InvalidInput(f"trial.report: step: expected 0 to {NUMBER}, got {given!r}; {_ORDER}")
    return told


def epoch(given: Any) -> float:
    if type(given) is float and math.isfinite(given):
        return given
    told = number(given, "trial.report: epoch")
    if not math.isfinite(told):
        raise InvalidInput(f"trial.report: epoch: expected a finite number, got {given!r}")
    return told


def metrics(given: "Mapping[str, Any]", what: str = "metrics") -> "dict[str, float]":
    if len(given) > METRICS:
        raise InvalidInput(f"{what}: expected at most {METRICS:,}, got {len(given):,}")
    return {name(key, f"{what}: a name"): number(value, f"metric {key!r}") for key, value in given.items()}


def _plain(given: Any) -> Any:
    """A scalar or an array of numpy or torch, as JSON has it."""
    if hasattr(given, "tolist"):
        return given.tolist()
    raise TypeError(f"a {type(given).__name__} is none")


def attributes(given: "Mapping[str, Any]") -> "dict[str, str]":
    """As the server takes them: JSON texts."""
    told: "dict[str, str]" = {}
    for key, value in given.items():
        name(key, "attribute")
        if key.startswith(_RESERVED):
            raise InvalidInput(f"attribute {key!r}: expected a key that does not begin with {_RESERVED}")
        try:
            written = json.dumps(value, allow_nan=False, default=_plain)
            text(json.dumps(value, ensure_ascii=False, default=_plain), f"attribute {key!r}")
        except (TypeError, RecursionError) as error:
            raise InvalidInput(f"attribute {key!r}: expected a value that JSON has, got {value!r:.200} "
                               f"({error})") from None
        except ValueError as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"attribute {key!r}: expected a value that JSON has, got {value!r:.200} "
                               f"({error})") from None
        told[key] = text(written, f"attribute {key!r}")
    return told
