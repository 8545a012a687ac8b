"""Which sessions of a storage folder live. Each holds a lock on a file of its own in the folder's
`sessions`; the kernel releases the lock when the process ends, however that happens and in whichever
container. What a dead one had leased is released by whoever finds its file."""

import contextlib
import fcntl
import json
import os
import pathlib
import threading
from typing import Any, Generator

from . import _wire
from .errors import HpoError

_own: "set[str]" = set()  # closing any descriptor of a file ends this process' lock on it
_own_lock = threading.Lock()


class Presence:
    """The file of one session; the lock is held until close()."""

    def __init__(self, folder: pathlib.Path, register: Any) -> None:
        """`register`: the RegisterWorkerRequest of the session, by which the server knows it again."""
        self._path = _sessions(folder) / str(register.worker)
        aside = self._path.with_name(f".{self._path.name}")
        with _own_lock:
            _own.update((str(self._path), str(aside)))
        self._fd = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        fcntl.lockf(self._fd, fcntl.LOCK_EX)
        os.write(self._fd, json.dumps({"worker": register.worker, "instance_key": register.instance_key,
                                       "study": register.serves.names[0]}).encode())
        os.rename(aside, self._path)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._fd)
        with _own_lock:
            _own.discard(str(self._path))


def _sessions(folder: pathlib.Path) -> pathlib.Path:
    path = folder.resolve() / "sessions"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def _of_the_dead(path: pathlib.Path) -> "Generator[dict[str, str] | None, None, None]":
    """What a session's file says; None where its process lives, or another one looks at the moment."""
    with _own_lock:
        if str(path) in _own:
            yield None
            return
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            yield None
            return
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        try:
            yield dict(json.loads(os.read(fd, 1 << 16)))
        except ValueError:
            yield {}  # its process died before it had written it
    finally:
        os.close(fd)


def release_dead(folder: pathlib.Path, channel: _wire.Channel) -> "list[str]":
    """Releases what the folder's dead sessions had leased, so that it is queued again at once. The
    names of these sessions."""
    released: "list[str]" = []
    for path in sorted(_sessions(folder).glob("[!.]*")):  # others are being written
        with _of_the_dead(path) as session:
            if session is None:
                continue
            if session:
                try:
                    _say_goodbye(channel, session)
                except HpoError:
                    continue  # the next one who looks tries again
                released.append(session["worker"])
            path.unlink(missing_ok=True)
            path.with_name(f".asked-{path.name}").unlink(missing_ok=True)
    return released


def _say_goodbye(channel: _wire.Channel, session: "dict[str, str]") -> None:
    """In the name of the dead one."""
    register = _wire.message("RegisterWorkerRequest")(
        worker=session["worker"], instance_key=session["instance_key"], version="python", trainer="python",
        device=_wire.message("DeviceProfile")(kind="cpu", name="this machine"),
        serves=_wire.message("StudyNames")(names=[session["study"]]))
    registered = channel.call("WorkerService/RegisterWorker", register)
    channel.call("WorkerService/Heartbeat",
                 _wire.message("HeartbeatRequest")(session=registered.session, leaving=True, died=True))
