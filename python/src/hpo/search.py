"""minimize and maximize: a function, a space and a number of trials; all else is done here."""

import os
import shutil
import subprocess
from typing import Any

from ._session import Device
from .errors import InvalidInput
from .sizes import num_bytes
from .space import Space
from .study import Study, TrialRecord
from .trial import Train


def minimize(train: Train, space: Space, *, trials: int, **options: Any) -> TrialRecord:
    """Searches for the smallest value that `train(trial)` returns. Returns the best trial.

    `metric`: the one to minimize, where train returns a dict of metrics.
    `memory`: what a trial may use of its card, or of this machine where there is no card. A trial
    that uses more is out of memory, and the sampler learns to avoid such configurations.
    `plan`: train runs its batches in parts that fit (hpo.torch, hpo.hf), so that no configuration
    is out of reach for its batch size.
    `parallel`: how many trials run at a time; default: one on each card, without a card one.
    `storage`: a folder that keeps the study; the same call continues it later.
    `server`: the address of an hpo-server that keeps it instead. `name`: of the study.
    `isolate`: run each trial in its own process (default). `verbose`: print a line for each trial
    to stderr.
    Further sections of a study file go by their names: sampler={...}, pruner={...}, budget={...}.
    `seed`: the same seed, with one trial at a time, gives the same search."""
    return _search(train, space, "minimize", trials, **options)


def maximize(train: Train, space: Space, *, trials: int, **options: Any) -> TrialRecord:
    """As minimize, for the largest value."""
    return _search(train, space, "maximize", trials, **options)


def cards() -> "list[Device]":
    """The NVIDIA cards of this machine that the process may use, by nvidia-smi. One that does not
    tell its memory, as where it is the host's, counts as none."""
    if shutil.which("nvidia-smi") is None:
        return []
    told = subprocess.run(["nvidia-smi", "--query-gpu=name,uuid,memory.total",
                           "--format=csv,noheader,nounits"], capture_output=True, text=True, check=False)
    lines = told.stdout.splitlines() if told.returncode == 0 else []
    found = [(str(index), *line.rsplit(", ", 2)) for index, line in enumerate(lines)]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    words = None if visible is None else [word.strip() for word in visible.split(",")]
    return [Device("cuda", name, uuid, int(mib) << 20, int(mib) << 20, {"CUDA_VISIBLE_DEVICES": uuid})
            for index, name, uuid, mib in found if mib.isdigit() and _is_visible(index, uuid, words)]


def _is_visible(index: str, uuid: str, words: "list[str] | None") -> bool:
    """`words` of CUDA_VISIBLE_DEVICES: indices, or the beginnings of uuids; None: it is not set."""
    return words is None or index in words or any(word and uuid.startswith(word) for word in words)


def _search(train: Train, space: Space, direction: str, trials: int, *, metric: str = "value",
            memory: "int | str | None" = None, parallel: "int | None" = None,
            storage: "str | os.PathLike[str] | None" = None, server: "str | None" = None,
            name: str = "study", isolate: bool = True, verbose: bool = True, plan: bool = False,
            **sections: Any) -> TrialRecord:
    if not callable(train):
        raise InvalidInput(f"train: expected a function of one trial, got {train!r}")
    if parallel is not None and (isinstance(parallel, bool) or parallel < 1):
        raise InvalidInput(f"parallel: expected a whole number from 1, got {parallel!r}")
    if not isolate and (parallel or 1) > 1:
        raise InvalidInput(f"parallel: expected 1 with isolate=False, got {parallel}")
    limit = num_bytes(memory, "memory") if memory is not None else 0
    devices = cards() or [Device(total_bytes=limit, capacity_bytes=limit)]
    slots = [devices[index % len(devices)] for index in range(parallel or len(devices))]
    for device in slots:
        device.capacity_bytes = min(limit or device.capacity_bytes, device.capacity_bytes)
    from . import _runner  # what only a search needs is imported by it

    return _runner.search(train, slots, isolate, verbose, lambda: Study(
        name, space, direction=direction, metric=metric, trials=trials, storage=storage,
        server=server, device=slots[0], plan=plan, **sections))
