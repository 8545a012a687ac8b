"""The sections of a study file as keywords take them: their keys, typed, and what else a keyword takes."""

from typing import TYPE_CHECKING, Any, List, Mapping, Optional, TypedDict, Union, cast

from .errors import InvalidInput
from .sizes import num_bytes
from .values import plain, plain_tree

if TYPE_CHECKING:
    from .custom import Pruner, Sampler


class SamplerOptions(TypedDict, total=False):
    """What proposes trials (docs/study-file.md#sampler)."""

    type: str
    seed: int
    startup_trials: int
    startup: str


class PrunerOptions(TypedDict, total=False):
    """What stops trials early (docs/study-file.md#pruner)."""

    type: str
    startup_trials: int
    warmup_steps: int
    interval_steps: int
    min_trials: int
    percentile: float
    lower: float
    upper: float
    wrapped: str
    patience: int
    min_delta: float
    min_resource: Union[int, str]
    max_resource: Union[int, str]
    reduction_factor: Union[int, str]
    min_early_stopping_rate: int
    bootstrap_count: int
    p_threshold: float
    startup_steps: int


class BudgetOptions(TypedDict, total=False):
    """When the study ends (docs/study-file.md#budget)."""

    trials: int
    wall_clock: str
    trial_wall_clock: str
    no_progress: int
    regret_bound: Union[float, str]
    target: float
    failures_in_a_row: int
    failed_share: float


class MemoryOptions(TypedDict, total=False):
    """What a trial may use, and by which parameters its need is known (docs/study-file.md#memory)."""

    limit: Union[int, str]
    policy: str
    headroom: Union[int, str]
    allow_checkpointing: bool
    allow_lower_precision: bool
    relevant: List[str]
    preflight: str


_LEAST_LIMIT = 1 << 20  # less is a slip of the unit: no process runs in it
SamplerLike = Union[str, SamplerOptions, "Sampler", None]
PrunerLike = Union[str, PrunerOptions, "Pruner", None]
MemoryLike = Union[int, str, MemoryOptions, None]


def section(given: Any, name: str) -> "dict[str, Any]":
    """Of a keyword that takes a section, or its type alone."""
    if given is None:
        return {}
    if isinstance(given, str):
        return {"type": given}
    if isinstance(given, Mapping):
        return plain_tree(cast("Mapping[str, Any]", given))
    raise InvalidInput(f"{name}: expected a type such as \"random\", a dict of a study file's keys or an object of "
                       f"a class of hpo.{name.capitalize()}, got {given!r}")


def memory_section(given: Any) -> "tuple[int, dict[str, Any]]":
    """The limit in bytes, 0: none, and the section of the study file."""
    if given is None:
        return 0, {}
    rest = dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else {"limit": given}
    what = "memory: limit" if isinstance(given, Mapping) else "memory"
    limit = rest.pop("limit", None)
    size = 0 if limit is None else num_bytes(plain(limit), what)
    if 0 < size < _LEAST_LIMIT:
        raise InvalidInput(f"{what}: expected at least 1MiB, got {limit!r}")
    return size, rest


def budget_section(given: "Optional[BudgetOptions]", trials: "Optional[int]", target: "Optional[float]") -> "dict[str, Any]":
    told = section(given, "budget")
    for name, value in (("trials", trials), ("target", target)):
        if value is not None:
            told[name] = plain(value)
    number = told.get("trials")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
        raise InvalidInput(f"trials: expected a whole number from 1, got {number!r}")
    return told
