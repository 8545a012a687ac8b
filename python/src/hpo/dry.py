"""Dry runs of functions on emulated GPUs: the GPU memory that they require, without a GPU."""

import dataclasses
import importlib.util
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
from typing import Any, Callable

from ._pickled import dumps, lines_of_cells
from ._server import program
from .errors import HpoError, InvalidInput

# The program that is dry-run: it reads what _setup() wrote.
_CALL = """
import linecache, pickle, sys
with open(sys.argv[1], "rb") as file:
    state = pickle.load(file)
    sys.path[:], sys.argv[:] = state["path"], state["argv"]
    for name, lines in state["cells"].items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    function, arguments = pickle.load(file)
function(*arguments)
"""


@dataclasses.dataclass(frozen=True)
class DryRun:
    """What a dry run found for one GPU. Sizes are in bytes.

    `verdict` is "fits", "tight" (within the margin of the figures), "does not fit" or "unknown".
    `required_bytes` is what the function requires of the GPU: torch's reserved memory at the peak, the CUDA
    context and workspaces. `document` holds all that is known: peaks by phase and by module, torch's
    out-of-memory message, notes."""

    gpu: str
    verdict: str
    required_bytes: int
    total_bytes: int
    document: "dict[str, Any]" = dataclasses.field(repr=False)

    @property
    def fits(self) -> bool:
        """Whether it runs without an out-of-memory error; a tight one does."""
        return self.verdict in ("fits", "tight")


def dry_run(function: "Callable[..., Any]", *arguments: Any, gpu: str, steps: "int | None" = None,
            timeout: float = 300.0, allocator: "str | None" = None, count: int = 1) -> DryRun:
    """Runs function(*arguments) on an emulated GPU until enough is seen, and returns the memory that it requires.

    The function trains with PyTorch on device "cuda". It runs in a fresh interpreter, as trials do. Nothing is
    computed: a loss reads 0. `gpu` is a name such as "a100-40gb", or with another size "a100:12GiB". `steps` is
    the number of optimizer steps to see, by default until three are alike. `allocator` is what
    PYTORCH_ALLOC_CONF holds. `count` is the number of GPUs of the machine. Raises HpoError where the function
    cannot be dry-run, with one line that says why."""
    if not gpu or "," in gpu or gpu in ("all", "list"):
        raise InvalidInput(f"gpu: expected the name of one GPU, such as 'a100-40gb', got {gpu!r}")
    options = ["--gpu", gpu, "--timeout", str(timeout), "--count", str(count)]
    options += ["--steps", str(steps)] if steps is not None else []
    options += ["--allocator", allocator] if allocator is not None else []
    with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as folder:
        call = pathlib.Path(folder) / "call"
        call.write_bytes(_setup(function, arguments))
        done: Any = subprocess.run([*_command(), "--json", *options, "--", sys.executable, "-c", _CALL, str(call)],
                                   capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if not done.stdout:
        raise HpoError(done.stderr.strip().removeprefix("hpo memory dry-run: ") or
                       f"the dry run ended with status {done.returncode}")
    found: "dict[str, Any]" = json.loads(done.stdout)["gpus"][0]
    return DryRun(found["gpu"], found["verdict"], found["required_bytes"], found["total_bytes"], found)


def _setup(function: "Callable[..., Any]", arguments: "tuple[Any, ...]") -> bytes:
    """What _CALL reads: the state of this interpreter, then the call."""
    state = pickle.dumps({"path": sys.path, "argv": sys.argv, "cells": lines_of_cells()})
    return state + dumps((function, arguments), "a dry run needs torch to meet the emulated GPU first",
                         "the function runs in a fresh interpreter", "")


def _command() -> "list[str]":
    if importlib.util.find_spec("hpo_dryrun") is not None:
        return [sys.executable, "-m", "hpo_dryrun"]
    return [program("hpo"), "memory", "dry-run"]
