"""hpo-sampler, the process that proposes (sampler/proposer/proposal_service.h): a request is a line of JSON, and so
is its answer."""

import contextlib
import json
import os
import subprocess
import weakref
from typing import Any, Mapping

from .._server import program
from ..errors import HpoError


def _end(process: "subprocess.Popen[bytes]", owner: int) -> None:
    """A process that was forked leaves it to the one that started it."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    if os.getpid() == owner:
        process.terminate()  # it ends with its input, but a forked process may still hold that open
        process.wait()


class Proposer:
    """Starts the process. For one caller at a time, and for the process that made it."""

    def __init__(self) -> None:
        path = program("hpo-sampler")
        try:
            self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             start_new_session=True)  # an interrupt is for this process alone
        except OSError as error:
            raise HpoError(f"{path} cannot be started: {error}") from None
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _end, self._process, self._owner)

    def is_usable(self) -> bool:
        """Whether it is open, and this process has started it and was not forked since."""
        return self._finalizer.alive and self._owner == os.getpid()

    def ask(self, request: "Mapping[str, Any]") -> "dict[str, Any]":
        """The answer. Raises HpoError where the process has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps(request, allow_nan=False).encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
        except OSError:
            line = b""
        except BaseException:
            self.close()  # else its answer would be taken for that to the next request
            raise
        if not line.endswith(b"\n"):
            self.close()
            raise HpoError(f"hpo-sampler ended with status {self._process.returncode}")
        return dict(json.loads(line))

    def close(self) -> None:
        self._finalizer()
