"""minimize and maximize: a function, a space and a number of trials; all else is done here."""

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Mapping, Sequence, Type

from . import options
from ._keywords import checked
from ._session import Device
from .errors import InvalidInput
from .options import BudgetOptions, MemoryLike, PrunerLike, SamplerLike
from .space import Space, domains_of, objects_of
from .study import Callback, Study, TrialRecord
from .trial import Train
from .values import WithObjects, is_number, plain

if TYPE_CHECKING:
    from ._runner import Rules


@checked
def minimize(train: Train, space: Space, *, trials: "int | None" = None, timeout: "float | None" = None,
             target: "float | None" = None, budget: "BudgetOptions | None" = None,
             metric: str = "value", sampler: SamplerLike = None, seed: "int | None" = None, pruner: PrunerLike = None,
             memory: MemoryLike = None, plan: bool = False, parallel: "int | None" = None, isolate: bool = True,
             callbacks: "Sequence[Callback]" = (), catch: "Sequence[Type[BaseException]] | None" = None,
             constraints: "Sequence[Mapping[str, Any]] | None" = None, warm_start: "Sequence[str] | None" = None,
             storage: "str | os.PathLike[str] | None" = None, server: "str | None" = None, name: str = "study",
             verbose: bool = True) -> TrialRecord:
    """Searches for the smallest value that `train(trial)` returns. Returns the best trial.

    `space`: what is searched, by the parameters' names: hpo.uniform, hpo.log, hpo.int, a list of choices or a
    range. `metric`: the one to minimize, where train returns a dict of metrics.

    The search ends with the first of these: `trials` have ended; `timeout` seconds are over, after which no
    trial starts; a trial has reached the `target`; `budget`, a dict of the study file's keys, is used up.

    `sampler`: a type such as "tpe" or "random", a dict of the study file's keys, or an hpo.Sampler of your own.
    `seed`: the same seed, with one trial at a time, gives the same search. `pruner`: likewise, or an hpo.Pruner.
    `constraints`, `warm_start`: as in the study file.

    `memory`: what a trial may use of its card, or of this machine where there is no card. A trial that uses
    more is out of memory, and the sampler learns to avoid such configurations. A dict says more: {"limit":
    "24GiB", "relevant": ["batch"]} names the parameters that memory depends on. `plan`: train runs its batches
    in parts that fit (hpo.torch, hpo.hf), so that no configuration is out of reach for its batch size.

    `parallel`: how many trials run at a time; default: one on each card, without a card one. `isolate`: run
    each trial in its own process (default); False: in this one. `callbacks`: functions of (study, record), called
    here after each trial. `catch`: exceptions that fail their trial alone; any other one ends the search. By
    default every exception fails its trial, and five before the first success end the search.

    `storage`: a folder that keeps the study; the same call continues it later. `server`: the address of an
    hpo-server that keeps it instead. `name`: of the study. `verbose`: show the progress on standard error."""
    return _search(train, space, "minimize", trials, timeout, parallel, isolate, verbose, callbacks, catch,
                   metric=metric, target=target, budget=budget, sampler=sampler, seed=seed, pruner=pruner,
                   memory=memory, plan=plan, constraints=constraints, warm_start=warm_start, storage=storage,
                   server=server, name=name)


@checked
def maximize(train: Train, space: Space, *, trials: "int | None" = None, timeout: "float | None" = None,
             target: "float | None" = None, budget: "BudgetOptions | None" = None,
             metric: str = "value", sampler: SamplerLike = None, seed: "int | None" = None, pruner: PrunerLike = None,
             memory: MemoryLike = None, plan: bool = False, parallel: "int | None" = None, isolate: bool = True,
             callbacks: "Sequence[Callback]" = (), catch: "Sequence[Type[BaseException]] | None" = None,
             constraints: "Sequence[Mapping[str, Any]] | None" = None, warm_start: "Sequence[str] | None" = None,
             storage: "str | os.PathLike[str] | None" = None, server: "str | None" = None, name: str = "study",
             verbose: bool = True) -> TrialRecord:
    """As minimize, for the largest value."""
    return _search(train, space, "maximize", trials, timeout, parallel, isolate, verbose, callbacks, catch,
                   metric=metric, target=target, budget=budget, sampler=sampler, seed=seed, pruner=pruner,
                   memory=memory, plan=plan, constraints=constraints, warm_start=warm_start, storage=storage,
                   server=server, name=name)


def cards() -> "list[Device]":
    """The NVIDIA cards of this machine that the process may use, by nvidia-smi. One that does not
    tell its memory, as where it is the host's, counts as none."""
    if shutil.which("nvidia-smi") is None:
        return []
    told = subprocess.run(["nvidia-smi", "--query-gpu=name,uuid,memory.total",
                           "--format=csv,noheader,nounits"], capture_output=True, text=True, check=False)
    lines = told.stdout.splitlines() if told.returncode == 0 else []
    found = {uuid: (name, mib) for name, uuid, mib in (line.rsplit(", ", 2) for line in lines)}
    return [Device("cuda", found[uuid][0], uuid, int(found[uuid][1]) << 20, int(found[uuid][1]) << 20,
                   {"CUDA_VISIBLE_DEVICES": uuid})
            for uuid in visible_uuids(list(found), os.environ.get("CUDA_VISIBLE_DEVICES")) if found[uuid][1].isdigit()]


def visible_uuids(uuids: "list[str]", listed: "str | None") -> "list[str]":
    """Those of `uuids`, in the order of their numbers, that CUDA_VISIBLE_DEVICES (`listed`; None: it is not set)
    shows: common/device/visible_gpus.h says the rule, and tests/golden/visible_gpus.json is that of both."""
    if listed is None:
        return uuids
    visible: "list[str]" = []
    for word in (word.strip() for word in listed.split(",")):
        named = [uuid for index, uuid in enumerate(uuids)
                 if (int(word) == index if word.isascii() and word.isdigit()
                     else word.startswith("GPU-") and uuid.startswith(word))]
        if len(named) != 1:
            break
        if named[0] in visible:
            return []
        visible += named
    return visible


def _search(train: Train, space: Space, direction: str, trials: "int | None", timeout: "float | None",
            parallel: "int | None", isolate: bool, verbose: bool, callbacks: "Sequence[Callback]",
            catch: "Sequence[Type[BaseException]] | None", *, memory: MemoryLike, **opening: Any) -> TrialRecord:
    rules = _rules(None, timeout, callbacks, catch)
    budget: "Mapping[str, Any]" = opening["budget"] or {}
    if trials is None and timeout is None and opening["target"] is None and not budget:
        raise InvalidInput("the search never ends: expected trials=, timeout=, target= or budget=, got none of them")
    limit, _ = options.memory_section(memory)
    slots = _slots(train, parallel, isolate, limit)
    if catch is not None:
        opening["budget"] = {"failures_in_a_row": 0, **budget}
    domains = domains_of(space)
    objects = objects_of(domains)
    from . import _runner  # what only a search needs is imported by it

    return _runner.search(WithObjects(train, objects) if objects else train, slots, isolate, verbose, lambda: Study(
        space=domains, direction=direction, trials=trials, device=slots[0], memory=memory, **opening), rules,
        _later(**opening))


def _later(*, name: str, storage: "str | os.PathLike[str] | None", server: "str | None", **_: Any) -> str:
    """The expression that opens the study again once the search is over; empty: it is in a temporary folder."""
    if storage is None and server is None:
        return ""
    return f"hpo.load({name!r}, " + (f"storage={str(storage)!r})" if server is None else f"server={server!r})")


def run(study: Study, train: Train, trials: "int | None", timeout: "float | None", parallel: "int | None",
        isolate: bool, verbose: bool, callbacks: "Sequence[Callback]",
        catch: "Sequence[Type[BaseException]] | None") -> None:
    """Study.optimize."""
    rules = _rules(trials, timeout, callbacks, catch)
    if trials is None and timeout is None and not study.has_limit():
        raise InvalidInput(f"the study {study.name} has no budget: expected trials= or timeout=, or a study with trials=, "
                           "target= or budget=, got none of them")
    slots = _slots(train, parallel, isolate, study.device.capacity_bytes)
    if catch is not None and study.state().budget.failures_in_a_row:
        study.update(failures_in_a_row=0)  # as minimize does: they fail their trial alone, however many
    from . import _runner  # what only a search needs is imported by it

    _runner.run(study, WithObjects(train, study.objects) if study.objects else train, slots, isolate, verbose, rules)


def _slots(train: Train, parallel: "int | None", isolate: bool, limit: int) -> "list[Device]":
    """The device of each trial that runs at a time."""
    if not callable(train):
        raise InvalidInput(f"train: expected a function of one trial, got {train!r}")
    parallel = _count(parallel, "parallel")
    if not isolate and (parallel or 1) > 1:
        raise InvalidInput(f"parallel: expected 1 with isolate=False, got {parallel}")
    devices = cards() or [Device(total_bytes=limit, capacity_bytes=limit)]
    slots = [devices[index % len(devices)] for index in range(parallel or (len(devices) if isolate else 1))]
    for device in slots:
        device.capacity_bytes = min(limit or device.capacity_bytes, device.capacity_bytes)
    return slots


def _count(given: "int | None", name: str) -> "int | None":
    told: Any = plain(given)
    if told is not None and (isinstance(told, bool) or not isinstance(told, int) or told < 1):
        raise InvalidInput(f"{name}: expected a whole number from 1, got {given!r}")
    return told


def _listed(given: Any, expected: str) -> "list[Any]":
    """Of a keyword that takes one or several."""
    if callable(given):
        return [given]
    if not hasattr(given, "__iter__"):
        raise InvalidInput(f"{expected}, got {given!r}")
    return list(given)


def _rules(trials: "int | None", timeout: "float | None", callbacks: "Sequence[Callback]",
           catch: "Sequence[Type[BaseException]] | None") -> "Rules":
    from ._runner import Rules  # what only a search needs is imported by it

    trials = _count(trials, "trials")
    seconds = plain(timeout)
    if seconds is not None and (not is_number(seconds) or seconds <= 0):
        raise InvalidInput(f"timeout: expected seconds, more than 0, got {timeout!r}")
    listed: "list[Any]" = _listed(callbacks, "callbacks: expected functions of a study and a trial's record")
    for one in listed:
        if not callable(one):
            raise InvalidInput(f"callbacks: expected functions of a study and a trial's record, got {one!r}")
    types = None if catch is None else _listed(catch, "catch: expected classes of exceptions")
    for kind in types or ():
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise InvalidInput(f"catch: expected classes of exceptions, got {kind!r}")
    names = None if types is None else frozenset(f"{one.__module__}.{one.__qualname__}" for one in types)
    return Rules(trials, seconds, listed, names)
