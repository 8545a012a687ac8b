"""A process for each trial: forked from a child that was forked before anything else, so that functions need
no pickling; or, where this process cannot be forked safely, from a fresh interpreter (_slot.py)."""

import array
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Callable

from . import _channel
from ._pickled import lines_of_cells
from .errors import HpoError
from .trainer import run_job
from .trial import Train

_PR_SET_PDEATHSIG = 1
_TAIL_BYTES = 4096
_POLL_S = 0.01
_PACKAGE_PARENT = str(pathlib.Path(__file__).resolve().parent.parent)
_START_SLOT = "import sys; sys.path.insert(0, sys.argv[2]); from hpo import _slot; _slot.main(int(sys.argv[1]))"


class Child:
    """A trial's process, the channel to it, and what it writes to standard error, which is passed on."""

    def __init__(self, pid: int, channel: _channel.LineChannel, errors: int) -> None:
        self.pid = pid
        self.channel = channel
        self._errors = errors
        self._tail: "collections.deque[bytes]" = collections.deque()
        self._at_end = False

    def tell(self, **message: Any) -> None:
        """Passes it on, unless the child has ended: what it said before is still to be received."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.channel.send(**message)

    def kill(self) -> None:
        """With all that it started."""
        with contextlib.suppress(ProcessLookupError):
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:  # it does not lead a group yet
                os.kill(self.pid, signal.SIGKILL)

    def wait_for(self, other: Any, timeout_s: float) -> bool:
        """Passes on what the child writes until `other` can be read; False: it could not in time."""
        deadline = time.monotonic() + timeout_s
        while True:
            watched = [one for one in (other, None if self._at_end else self._errors) if one is not None]
            ready, _, _ = select.select(watched, [], [], max(0.0, deadline - time.monotonic()))
            if self._errors in ready:
                self._pass_on()
            if other in ready:
                return True
            if time.monotonic() >= deadline:
                return False

    def _pass_on(self) -> None:
        data = os.read(self._errors, 1 << 16)
        self._at_end = not data
        if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]  # else 2 may be anything
            with contextlib.suppress(OSError):
                os.write(2, data)
        self._tail.append(data)
        while sum(map(len, self._tail)) - len(self._tail[0]) > _TAIL_BYTES:
            self._tail.popleft()

    @property
    def last_words(self) -> str:
        """The last that it wrote to standard error."""
        return b"".join(self._tail)[-_TAIL_BYTES:].decode(errors="replace").strip()

    def close(self) -> None:
        while not self._at_end and select.select([self._errors], [], [], 0)[0]:
            self._pass_on()
        os.close(self._errors)
        self.channel.socket.close()


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


def num_oom_kills() -> int:
    """How many processes the kernel has killed for lack of memory, of this machine; 0: it does not say."""
    with contextlib.suppress(OSError), open("/proc/vmstat", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
    return 0


class Forker:
    """Starts a slot's trials, one at a time. Made on a thread that lives as long as it does."""

    def __init__(self, train: Train, pickled: "bytes | None" = None) -> None:
        """`pickled`: the function for a fresh interpreter; None: this process is forked."""
        self._train, self._pickled = train, pickled
        self._lock = threading.Lock()
        self.state = ""  # what it is doing before a trial starts, for people
        self._begin()

    def _begin(self) -> None:
        ours, theirs = socket.socketpair()
        self._socket, self._answers = ours, ours.makefile("rb")
        self._single = False
        self._process: "subprocess.Popen[bytes] | None" = None
        if self._pickled is None:
            self._is_loaded = True
            self._pid = os.fork()
            if self._pid == 0:
                ours.close()
                serve(theirs, self._train, False)
        else:
            self._is_loaded = False
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START_SLOT, str(theirs.fileno()), _PACKAGE_PARENT],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)
            self._pid = self._process.pid
            threading.Thread(target=_send_setup, args=(ours, self._pickled), daemon=True).start()
        theirs.close()

    def start(self, environment: "dict[str, str]", waits: "Callable[[], bool]") -> "Child | None":
        """`waits()`: False ends the wait for a start. None: it ended."""
        if not self.load(waits):
            return None
        ours, theirs = socket.socketpair()
        errors, their_errors = os.pipe()
        with self._lock:
            fds = array.array("i", [theirs.fileno(), their_errors])
            try:
                self._socket.sendmsg([json.dumps(environment).encode() + b"\n"],
                                     [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            except BrokenPipeError:
                pass
            theirs.close()
            os.close(their_errors)
            pid = int(self._answers.readline() or b"0")
        if pid == 0:
            os.close(errors)
            raise HpoError("the process that starts the trials has ended; was it killed?")
        return Child(pid, _channel.LineChannel(ours.detach()), errors)

    def load(self, waits: "Callable[[], bool]") -> bool:
        """Waits until the function is loaded where it runs. False: `waits()` ended that."""
        if not self._is_loaded:
            self.state = f"process {self._pid} loads the function and what it imports"
            while not select.select([self._socket], [], [], 0.1)[0]:
                if not waits():
                    return False
            answer = self._answers.readline()
            told = json.loads(answer) if answer else {"error": self._how_it_ended()}
            self.state = ""
            if "error" in told:
                raise HpoError("the function cannot be loaded in a fresh interpreter, in which each trial runs; "
                               f"pass isolate=False to run the trials in this process:\n{told['error']}")
            self._is_loaded, self._single = True, bool(told["single"])
        return True

    def _how_it_ended(self) -> str:
        status = self._process.wait() if self._process is not None else 0
        how = f"was killed by {signal_name(-status)}" if status < 0 else f"ended with status {status}"
        return f"its process {how} while it loaded the function and what that imports"

    def wait(self, child: Child) -> int:
        """Of the child: its exit status, or minus its signal. All that it started is gone then."""
        if self._single:
            return self._wait_for_single(child)
        child.wait_for(self._socket, 1e9)
        with self._lock:
            return int(self._answers.readline() or b"-9")

    def _wait_for_single(self, child: Child) -> int:
        """The slot's process ran the trial itself, and is replaced."""
        process = self._process
        assert process is not None
        with contextlib.suppress(ChildProcessError):  # this process ignores the end of its children
            while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                child.wait_for(None, _POLL_S)
        child.kill()  # what it started, while its number is not another's
        status = process.wait()
        self._answers.close()
        self._socket.close()
        self._begin()
        return status

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # Later forkers hold copies: closing is not enough.
        self._answers.close()
        self._socket.close()
        if self._process is None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        else:
            self._process.kill()
            self._process.wait()


def _send_setup(slot: socket.socket, pickled: bytes) -> None:
    setup = {"size": len(pickled), "path": sys.path, "argv": sys.argv, "cells": lines_of_cells()}
    with contextlib.suppress(OSError):  # it has ended; who waits for it finds out
        slot.sendall(json.dumps(setup).encode() + b"\n" + pickled)


def die_with_parent(by: int = signal.SIGKILL) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)


def signal_name(number: int) -> str:
    """SIGSEGV, ...; of a real-time signal its number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def serve(requests: socket.socket, train: Train, single: bool) -> None:
    """The process of a slot: never returns. `single`: it runs one trial itself."""
    status = 1
    trial = 0

    def end_all(*_: object) -> None:
        """The search is dead: what its trial had started must not live on."""
        if trial:
            _kill_group(trial)
        os._exit(1)

    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, end_all)
        die_with_parent(signal.SIGTERM)
        while True:
            data, fds = _request(requests)
            if not data:
                break
            if single:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                die_with_parent()
                requests.sendall(b"%d\n" % os.getpid())
                _train_one(fds, json.loads(data), train)
            pid = os.fork()
            if pid == 0:
                requests.close()
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                die_with_parent()
                _train_one(fds, json.loads(data), train)
            trial = pid
            for fd in fds:
                os.close(fd)
            requests.sendall(b"%d\n" % pid)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            _kill_group(pid)  # What it started; the child itself still holds the id.
            trial = 0
            requests.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        status = 0
    except BrokenPipeError:
        status = 0
    finally:
        os._exit(status)


def _request(requests: socket.socket) -> "tuple[bytes, list[int]]":
    data, ancillary, _, _ = requests.recvmsg(1 << 16, socket.CMSG_SPACE(8))
    fds = array.array("i")
    for _, _, given in ancillary:
        fds.frombytes(given[:8])
    return data, list(fds)


def _train_one(fds: "list[int]", environment: "dict[str, str]", train: Train) -> None:
    """A trial's process: never returns."""
    status = 1
    try:
        fd, errors = fds
        os.dup2(errors, 2)
        os.close(errors)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ.update(environment)
        channel = _channel.LineChannel(fd)
        job: Any = channel.receive()
        if job["type"] == "job":
            channel.send(type="started")
            run_job(channel, job, train, own_process=True, catch_exit=True)
        status = 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)
