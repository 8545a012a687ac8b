"""The process that starts a slot's trials where the caller's cannot be forked: a fresh interpreter, which
loads the function once and forks a process for each trial. Where what it loads has started threads that no
fork survives, it is used for one trial, without a fork."""

import contextlib
import faulthandler
import json
import linecache
import os
import pickle
import signal
import socket
import sys
import traceback

from ._pickled import num_threads

SLOW_START_S = 10.0
STUCK_S = 30.0  # an import that takes longer shows where it is
_state = {"loading": False}
_SAFE_THREADS = ("jemalloc_bg_thd",)  # pyarrow brings it


def _threads() -> "set[str]":
    """The ids of this process' threads, without those whose library starts them again after a fork."""
    found: "set[str]" = set()
    threads: "list[str]" = []
    while len(threads) != num_threads():  # until the list is whole
        threads = os.listdir("/proc/self/task")
    for thread in threads:
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/comm", encoding="ascii") as file:
            if file.read().strip() not in _SAFE_THREADS:
                found.add(thread)
    return found


def _has_lasting_threads() -> bool:
    """Whether threads survive a fork's preparation. OpenBLAS ends its own then, and starts them again
    when they are needed; OpenMP's and others stay in this process, and would be missing in the child."""
    before = _threads()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return len(before & _threads()) > 1


def is_loading() -> bool:
    """Whether this process is a slot's that loads the function, and what it imports."""
    return _state["loading"]


def main(fd: int) -> None:
    from . import _processes

    _processes.die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent that ignores it hands that down
    requests = socket.socket(fileno=fd)
    with requests.makefile("rb") as lines:
        setup = json.loads(lines.readline())
        data = lines.read(setup["size"])
    sys.path[:] = setup["path"]
    sys.argv[:] = setup["argv"]
    for name, lines_of_cell in setup["cells"].items():
        linecache.cache[name] = (sum(map(len, lines_of_cell)), None, lines_of_cell, name)
    faulthandler.dump_traceback_later(STUCK_S, exit=False)
    _state["loading"] = True
    try:
        train = pickle.loads(data)
    except BaseException:
        requests.sendall(json.dumps({"error": traceback.format_exc()}).encode() + b"\n")
        os._exit(1)
    faulthandler.cancel_dump_traceback_later()
    _state["loading"] = False
    single = _has_lasting_threads()
    requests.sendall(json.dumps({"single": single}).encode() + b"\n")
    _processes.serve(requests, train, single)
