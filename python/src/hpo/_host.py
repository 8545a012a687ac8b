"""Memory of this process without a card: what it holds, and a limit at which allocations fail
instead of the process."""

import contextlib
import ctypes
import functools
import resource
from typing import Generator

_SLACK = 0.01  # of the limit, at least _LEAST_SLACK: small things that are touched meanwhile
_LEAST_SLACK = 16 << 20
_M_MMAP_THRESHOLD = -3
_MMAP_THRESHOLD = 1 << 20


def _status() -> "dict[str, int]":
    """In bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        return {name: int(rest.split()[0]) << 10 for name, rest in
                (line.split(":", 1) for line in file if line.endswith("kB\n"))}


def resident_bytes() -> int:
    return _status()["VmRSS"]


def peak_bytes() -> int:
    """The most that was resident since the last reset_peak."""
    return _status()["VmHWM"]


def reset_peak() -> bool:
    """False: this system does not let a process do that."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return False
    return True


@functools.lru_cache(maxsize=None)
def _give_tensors_back() -> None:
    """Has malloc map what is large on its own: freed, it is the system's again at once. In the heap
    it would stay, in pieces, and count."""
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)


class Limit:
    """Holds the process to `limit_bytes` of resident memory while a block runs: what goes beyond
    raises MemoryError, or torch's RuntimeError, and can be recovered from."""

    def __init__(self, limit_bytes: int) -> None:
        self.bytes = limit_bytes
        slack = max(_LEAST_SLACK, int(_SLACK * limit_bytes))
        self.held_to_bytes = limit_bytes - slack
        self.planned_bytes = limit_bytes - 2 * slack  # what was allocated counts, not only touched

    @contextlib.contextmanager
    def held(self) -> "Generator[None, None, None]":
        if not self.bytes:
            yield
            return
        _give_tensors_back()
        before = resource.getrlimit(resource.RLIMIT_DATA)
        most = self._data_bytes()
        resource.setrlimit(resource.RLIMIT_DATA, (
            most if before[1] == resource.RLIM_INFINITY else min(most, before[1]), before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, before)

    def _data_bytes(self) -> int:
        """The kernel counts private data whether it was touched or not. Threads' stacks were not, nor
        what a library keeps for larger products than it has seen (MKL, by the instruction set)."""
        now = _status()
        untouched = max(0, now["VmData"] - now["RssAnon"])
        shared = now["RssFile"] + now["RssShmem"]
        return max(0, self.held_to_bytes - shared) + untouched
