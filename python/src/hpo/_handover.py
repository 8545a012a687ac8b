"""Trials that one process asked for and another one tells: the asking process keeps their leases alive."""

import base64
import functools
import os
import pathlib
import threading
from typing import Any, Collection

from . import _wire
from ._session import Lease, Session
from .errors import ServerError

_PREFIX = ".asked-"
_MOST_LINES = 1000


class Asked:
    """Notes what this process asked for in the storage folder, for others that know a trial by its number.
    Safe from any thread."""

    def __init__(self, folder: pathlib.Path, worker: str) -> None:
        self._path = _sessions(folder) / f"{_PREFIX}{worker}"
        self._lock = threading.Lock()
        self._fd = self._open(self._path)
        self._num_lines = 0

    @staticmethod
    def _open(path: pathlib.Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def note(self, lease: Lease, running: "Collection[Lease]") -> None:
        """`running`: all that have not been told, this one among them. The file keeps little more than these."""
        with self._lock:
            os.write(self._fd, _line(lease))
            self._num_lines += 1
            if self._num_lines > _MOST_LINES + 2 * len(running):
                self._rewrite(running)

    def _rewrite(self, running: "Collection[Lease]") -> None:
        aside = self._path.with_name(f".new{self._path.name}")
        fd = self._open(aside)
        os.write(fd, b"".join(map(_line, running)))
        os.rename(aside, self._path)
        os.close(self._fd)
        self._fd, self._num_lines = fd, len(running)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._fd)


def _line(lease: Lease) -> bytes:
    return b"%d %s\n" % (lease.assignment.trial, base64.b64encode(lease.packed()))


def _sessions(folder: pathlib.Path) -> pathlib.Path:
    path = folder.resolve() / "sessions"
    path.mkdir(parents=True, exist_ok=True)
    return path


def find(folder: pathlib.Path, study: str, number: int) -> "Lease | None":
    """The newest lease of a trial that a process of the folder has asked for."""
    found: "Lease | None" = None
    for path in _sessions(folder).glob(f"{_PREFIX}*"):
        for line in path.read_bytes().splitlines():
            trial, _, data = line.partition(b" ")
            if int(trial) == number:
                assignment: Any = _wire.message("Assignment").FromString(base64.b64decode(data))
                newer = found is None or assignment.attempt > found.assignment.attempt
                found = Lease(assignment) if assignment.study == study and newer else found
    return found


class Borrowed(Session):
    """The session of the process that asked: it lives as long as that one."""

    is_borrowed = True

    def __init__(self, address: str, session: str) -> None:  # pyright: ignore[reportMissingSuperCall]
        self._channel = _channel_to(address)
        self._id = session
        self.judge = None
        self._leases = []
        self._lock = threading.Lock()

    def _register_now(self) -> None:
        raise ServerError("ABORTED", "the process that asked for the trial has ended, and so the trial waits again")


@functools.lru_cache(maxsize=None)
def _channel_to(address: str) -> _wire.Channel:
    return _wire.Channel(address)


def borrowed(address: str, session: str, assignment: bytes) -> "tuple[Session, Lease]":
    return Borrowed(address, session), Lease(_wire.message("Assignment").FromString(assignment))
