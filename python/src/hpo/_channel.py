"""The trainer's end of the trainer protocol (docs/TRAINER_PROTOCOL.md): JSON lines on a socket. Ranks have no
socket: they read their trial's job from the environment, and rank 0 prints what it reports."""

import json
import math
import os
import select
import socket
from typing import Any, Mapping

from .errors import InvalidInput


_NAMES = {math.inf: "Infinity", -math.inf: "-Infinity"}


def written(metrics: "Mapping[str, float]") -> "dict[str, float | str]":
    """Numbers as the protocol has them: what is not finite by its name."""
    return {name: value if math.isfinite(value) else _NAMES.get(value, "NaN") for name, value in metrics.items()}


class LineChannel:
    """Blocks while it sends and where it is told to receive; one thread at a time."""

    def __init__(self, fd: int) -> None:
        self.socket = socket.socket(fileno=fd)
        self._unread = b""

    def send(self, **message: Any) -> None:
        self.socket.sendall(json.dumps(message, allow_nan=False).encode() + b"\n")

    def receive(self, timeout_s: "float | None" = None) -> "dict[str, Any] | None":
        """None where nothing came in time. The end of the channel is a shutdown."""
        while b"\n" not in self._unread:
            if timeout_s is not None and not select.select([self.socket], [], [], timeout_s)[0]:
                return None
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                return {"type": "shutdown"}
            self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return dict(json.loads(line))


def worker_fd() -> int:
    """The descriptor that hpo-worker names, open or not."""
    named = os.environ.get("HPO_TRAINER_FD", "3")
    if not (named.isascii() and named.isdigit() and len(named) < 10):
        raise InvalidInput(f"HPO_TRAINER_FD: expected a file descriptor, got {named!r}")
    return int(named)


def inherited() -> LineChannel:
    """The one that hpo-worker hands over."""
    fd = worker_fd()
    try:
        return LineChannel(fd)
    except OSError as error:
        raise InvalidInput(f"file descriptor {fd}: expected the worker's end of the trainer protocol, "
                           f"got: {error.strerror}; hpo-worker starts this program") from None


# ---- Ranks: a launcher such as torchrun starts the program several times ------------------------

_RANKS_JOB = "HPO_TRIAL_JOB"


def job_of_ranks() -> "dict[str, Any] | None":
    """The trial's job, where the worker has started the launcher of this rank."""
    text = os.environ.get(_RANKS_JOB)
    return dict(json.loads(text)) if text else None


def own_rank() -> int:
    """Of this process; 0 where no launcher has started it."""
    text = os.environ.get("RANK", "0")
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(f"RANK: expected the number of a rank, as torchrun sets it, got {text!r}")
    return int(text)


class PrintingSink:
    """A trial's words on the standard output of rank 0, which the worker reads; other ranks print nothing. The
    worker ends a trial of several ranks by SIGTERM."""

    def measurement(self, step: int, epoch: float, metrics: "Mapping[str, Any]") -> None:
        if own_rank() == 0:
            print(json.dumps({**written(metrics), "step": step, "epoch": epoch}), flush=True)

    def stage(self, name: str, memory: "Mapping[str, Any]") -> None:
        pass

    def attributes(self, noted: "Mapping[str, Any]") -> None:
        pass

    def stop_reason(self) -> str:
        return ""


def print_result(metrics: "Mapping[str, float]") -> None:
    """The last that rank 0 prints is the result of the trial."""
    if own_rank() == 0:
        print(json.dumps(written(metrics)), flush=True)
