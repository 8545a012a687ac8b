"""Sizes in bytes as people write them."""

import re

from .errors import InvalidInput

_UNITS = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
          "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def num_bytes(size: "int | str", name: str) -> int:
    """24 * 2**30 of "24GiB"; `name` is what an error calls the size."""
    if isinstance(size, int) and not isinstance(size, bool):
        value = size
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(size))
        if match is None or match[2].lower() not in _UNITS:
            raise InvalidInput(f'{name}: expected bytes or a size such as "24GiB", got {size!r}')
        value = int(float(match[1]) * _UNITS[match[2].lower()])
    if value <= 0:
        raise InvalidInput(f"{name}: expected more than 0 bytes, got {size!r}")
    return value


def readable(size: int) -> str:
    """"1.50 GiB" of 1610612736."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} B"
