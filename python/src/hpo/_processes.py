"""A process for each trial. A child forked before anything else forks them, so that functions need
no pickling, notebooks work and no thread of ours is ever copied."""

import array
import ctypes
import json
import os
import signal
import socket
import threading
from typing import Any

from . import _channel
from .errors import HpoError
from .trainer import run_job
from .trial import Train

_PR_SET_PDEATHSIG = 1


class Child:
    """A trial's process and the channel to it."""

    def __init__(self, pid: int, channel: _channel.LineChannel) -> None:
        self.pid = pid
        self.channel = channel

    def kill(self) -> None:
        """With all that it started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def resident_bytes(pid: int) -> int:
    """Host memory of a process and its descendants; 0 once it is gone."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        total = pages * os.sysconf("SC_PAGE_SIZE")
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                total += sum(resident_bytes(int(child)) for child in file.read().split())
        return total
    except (OSError, IndexError):
        return 0


class Forker:
    """Forks one child at a time. Made on the thread that lives as long as it does."""

    def __init__(self, train: Train) -> None:
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            _serve(theirs, train)
        theirs.close()
        self._socket = ours
        self._answers = ours.makefile("rb")
        self._lock = threading.Lock()

    def start(self, environment: "dict[str, str]") -> Child:
        ours, theirs = socket.socketpair()
        with self._lock:
            fds = array.array("i", [theirs.fileno()])
            self._socket.sendmsg([json.dumps(environment).encode() + b"\n"],
                                 [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            theirs.close()
            pid = int(self._answers.readline() or b"0")
        if pid == 0:
            raise HpoError("the process that starts the trials has ended; was it killed?")
        return Child(pid, _channel.LineChannel(ours.detach()))

    def wait(self) -> int:
        """Of the child: its exit status, or minus its signal. All that it started is gone then."""
        with self._lock:
            return int(self._answers.readline() or b"-9")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # Later forkers hold copies: closing is not enough.
        self._answers.close()
        self._socket.close()
        os.waitpid(self._pid, 0)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(requests: socket.socket, train: Train) -> None:
    """The forker's own process: never returns."""
    status = 1
    try:
        _die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            data, fds = _request(requests)
            if not data:
                break
            pid = os.fork()
            if pid == 0:
                requests.close()
                _train_one(fds, json.loads(data), train)
            os.close(fds)
            requests.sendall(b"%d\n" % pid)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            try:
                os.killpg(pid, signal.SIGKILL)  # What it started; the child itself still holds the id.
            except (ProcessLookupError, PermissionError):
                pass
            requests.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        status = 0
    except BrokenPipeError:
        status = 0
    finally:
        os._exit(status)


def _request(requests: socket.socket) -> "tuple[bytes, int]":
    data, ancillary, _, _ = requests.recvmsg(1 << 16, socket.CMSG_SPACE(4))
    fds = array.array("i")
    for _, _, given in ancillary:
        fds.frombytes(given[:4])
    return data, (fds[0] if fds else -1)


def _train_one(fd: int, environment: "dict[str, str]", train: Train) -> None:
    """A trial's process: never returns."""
    status = 1
    try:
        os.setsid()
        _die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ.update(environment)
        channel = _channel.LineChannel(fd)
        job: Any = channel.receive()
        if job["type"] == "job":
            run_job(channel, job, train, own_process=True)
        status = 0
    finally:
        import sys

        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
