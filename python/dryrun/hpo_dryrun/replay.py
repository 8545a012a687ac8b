"""A recorded run (events.py) on other GPUs and under other settings of the caching allocator, without
running the program again: hpo-replay sends the recorded requests through a model of torch's allocator.

This answers for a GPU on which the program requests the same memory in the same order: same_kernels.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
from typing import List, Optional

PROGRAM = "hpo-replay"
# Options of PYTORCH_ALLOC_CONF that do not change which GPU memory is taken.
_FRACTION = "per_process_memory_fraction"
_WITHOUT_EFFECT = ("pinned_", "release_lock_on_cudamalloc", "throw_on_cudamalloc_oom")
_KNOWN = ("expandable_segments", "max_split_size_mb", "garbage_collection_threshold", "roundup_power2_divisions")


class ReplayError(Exception):
    """One line: what was expected, what came, where."""


@dataclasses.dataclass
class Options:
    """The options of PYTORCH_ALLOC_CONF that change which GPU memory is taken."""

    expandable_segments: bool = False
    max_split_bytes: int = 0  # 0: none
    garbage_collection_threshold: float = 0.0
    roundup_power2_divisions: int = 0
    memory_fraction: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Gpu:
    """What the sizes of a program's requests depend on."""

    capability: int  # 10 x major + minor
    multiprocessors: int
    threads_per_multiprocessor: int


@dataclasses.dataclass(frozen=True)
class Target:
    """A GPU, and the settings of the allocator there."""

    usable_bytes: int  # what the program may hold: without contexts, other processes, NCCL's buffers
    settings: Optional[str] = None  # as PYTORCH_ALLOC_CONF; None: those of the recorded run
    total_bytes: Optional[int] = None  # of the GPU, which a fraction is a share of; None: usable_bytes
    memory_fraction: Optional[float] = None  # None: as the recorded program set it
    gpu: Optional[Gpu] = None  # None: of the shape of the recorded one


@dataclasses.dataclass(frozen=True)
class Result:
    """What a target needs; of a program that uses several GPUs, the one that needs most of it."""

    device: int
    allocated_peak: int
    reserved_peak: int
    retries: int  # times that the cache was freed for a request
    out_of_memory_event: Optional[int]  # number of the first request that ran out of memory
    # Number of the first request that ran out of memory in the recorded run and does not here: the
    # program goes on in another way, so the peaks are those until then. Run it on this GPU.
    unknown_from_event: Optional[int]
    # Number of allocations whose size on this GPU is not known. 0 on a GPU that runs no more threads at
    # once than the recorded one; else run it on this GPU.
    unknown_sizes: int
    # The least usable_bytes with which no request runs out of memory; None: not asked for, or not known.
    least_bytes: Optional[int] = None

    @property
    def fragmentation(self) -> int:
        """What the allocator needs above the peak of allocated bytes."""
        return self.reserved_peak - self.allocated_peak

    @property
    def ran_out(self) -> bool:
        return self.out_of_memory_event is not None


def read_settings(text) -> Options:
    """PYTORCH_ALLOC_CONF. Raises ReplayError with one line that names the option.

    As memory/allocator/allocator_settings.cc, but for options that it does not have: hpo-replay is
    without that parser so that it stays small. tests/golden/allocator_settings.txt is for both."""
    options = Options()
    seen = set()
    for setting in text.split(",") if text.strip() else ():
        name, colon, value = (part.strip() for part in setting.partition(":"))
        if not name or not colon:
            raise _unexpected("setting", "OPTION:VALUE", setting)
        if name in seen:
            raise _unexpected(name, "it once", text)
        seen.add(name)
        if not name.startswith(_WITHOUT_EFFECT):
            _set(options, name, value)
    return options


def _set(options, name, value):
    if name == "expandable_segments":
        if value not in ("True", "False"):
            raise _unexpected(name, "True or False", value)
        options.expandable_segments = value == "True"
    elif name == "max_split_size_mb":
        if not value.isdecimal() or not 20 < int(value) < 1 << 43:
            raise _unexpected(name, "a whole number of MiB above 20", value)
        options.max_split_bytes = int(value) << 20
    elif name == "garbage_collection_threshold":
        options.garbage_collection_threshold = _between_0_and_1(name, value)
    elif name == "roundup_power2_divisions":
        if not value.isdecimal() or int(value) & (int(value) - 1):
            raise _unexpected(name, "0 or a power of two", value)
        options.roundup_power2_divisions = int(value)
    elif name == _FRACTION:
        options.memory_fraction = 1.0 if value in ("1", "1.0") else _between_0_and_1(name, value)
    elif (name, value) != ("backend", "native"):
        raise _unexpected("option", f"{', '.join(_KNOWN[:-1])} or {_KNOWN[-1]}", name)


def _between_0_and_1(name, value):
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0.0 < number < 1.0:
        raise _unexpected(name, "a number above 0 and below 1", value)
    return number


def _unexpected(where, expected, got):
    return ReplayError(f"{where}: expected {expected}, got '{got}'")


def run(path, targets, least=False) -> List[Result]:
    """The result for each target, in their order; with `least`, also Result.least_bytes. Raises ReplayError."""
    recorded = _recorded_settings(path)
    lines = "".join(_line(target, recorded) + "\n" for target in targets)
    try:
        done = subprocess.run([_program(), os.fspath(path), *["--least"] * least], input=lines, capture_output=True,
                              text=True, check=False)
    except OSError as error:
        raise ReplayError(f"{PROGRAM}: {error.strerror}") from error
    if done.returncode != 0:
        raise ReplayError(done.stderr.strip() or f"{PROGRAM} ended with status {done.returncode}")
    found = {}
    for line in done.stdout.splitlines():
        fields = json.loads(line)
        target, result = fields.pop("target"), Result(**fields)
        if target not in found or _need(result) > _need(found[target]):
            found[target] = result
    if len(found) != len(targets):
        raise ReplayError(f"{path}: expected the events of a program that used a GPU, got none")
    return [found[number] for number in range(len(targets))]


def _need(result):
    return (result.ran_out, result.reserved_peak)


def _recorded_settings(path):
    try:
        with open(path, encoding="utf-8") as file:
            file.readline()
            return file.readline().partition(" ")[2].strip()
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}") from error


def _line(target, recorded_settings):
    """The target as hpo-replay reads it."""
    total = target.usable_bytes if target.total_bytes is None else target.total_bytes
    options = read_settings(recorded_settings if target.settings is None else target.settings)
    fraction = target.memory_fraction
    if fraction is None:
        fraction = options.memory_fraction
    if fraction is None and target.settings is not None and _FRACTION in recorded_settings:
        fraction = 1.0  # what was recorded came from the settings, which are replaced
    numbers = (target.usable_bytes, total, "-" if fraction is None else fraction,
               int(options.expandable_segments), options.max_split_bytes,
               options.garbage_collection_threshold, options.roundup_power2_divisions,
               *(dataclasses.astuple(target.gpu) if target.gpu else (0, 0, 0)))
    return " ".join(map(str, numbers))


def _program():
    """In the package, in HPO_BIN_DIR (a build), or on PATH."""
    for folder in (pathlib.Path(__file__).parent / "bin", os.environ.get("HPO_BIN_DIR")):
        if folder and os.access(os.path.join(folder, PROGRAM), os.X_OK):
            return os.path.join(folder, PROGRAM)
    found = shutil.which(PROGRAM)
    if found is None:
        raise ReplayError(f"{PROGRAM}: expected it in the package, in HPO_BIN_DIR or on PATH, and it is in none")
    return found
