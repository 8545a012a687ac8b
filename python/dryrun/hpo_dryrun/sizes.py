"""Sizes in bytes, as the command line takes them and the report shows them."""

import re

from .errors import UsageError

_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
          "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_size(text, where):
    """The bytes of a text such as "12GiB"."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if not found or found[2] not in _UNITS:
        raise UsageError(f"{where}: expected a size with its unit, such as 12GiB, got '{text}'")
    return int(float(found[1]) * _UNITS[found[2]])


def show(count):
    """At most four digits and a binary unit."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}" if unit == "GiB" else f"{count / size:.0f} {unit}"
    return f"{count} B"
