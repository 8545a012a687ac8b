"""A hand-written loop in torch that out-of-memory errors cannot stop.

    for batch in loader:
        optimizer.zero_grad()
        loss = hpo.torch.oom_guard(lambda part: criterion(model(part[0]), part[1]), batch, model, trial)
        optimizer.step()

The call stands for `loss = step(batch); loss.backward()`. It runs the batch in parts of as many
rows as fit: same gradients up to rounding, whatever the size of the parts."""

import contextlib
import gc
import weakref
from typing import Any, Callable, Mapping, Optional, Sequence, cast

from . import _host
from ._plan import Planner
from .errors import HpoError, InvalidInput, OutOfMemory, imported
from .trainer import current, is_out_of_memory
from .trial import Trial

torch: Any = imported("torch", "hpo.torch")

_FRAGMENTED = 0.05  # of a card's memory: what torch's allocator holds in pieces too small
# Buffers by which layers keep what they have seen: a part that is run again would count twice.
_RUNNING = ("running_mean", "running_var", "num_batches_tracked")


def num_rows(batch: Any) -> int:
    """Of a tensor, or of the first one in a dict, tuple or list of them."""
    if torch.is_tensor(batch):
        return int(batch.shape[0]) if batch.dim() else 0
    values: "Sequence[Any]" = ()
    if isinstance(batch, Mapping):
        values = list(cast("Mapping[str, Any]", batch).values())
    elif isinstance(batch, (tuple, list)):
        values = cast("Sequence[Any]", batch)
    return next((rows for rows in map(num_rows, values) if rows), 0)


def rows_of(batch: Any, first: int, last: int, rows: int) -> Any:
    """Rows [first, last) of all in `batch` that has `rows` of them; what has not stays as it is."""
    if torch.is_tensor(batch):
        return batch[first:last] if batch.dim() and batch.shape[0] == rows else batch
    if isinstance(batch, Mapping):
        given = cast("Mapping[str, Any]", batch)
        return {key: rows_of(value, first, last, rows) for key, value in given.items()}
    if isinstance(batch, (tuple, list)):
        several = cast("Sequence[Any]", batch)
        if any(torch.is_tensor(one) or isinstance(one, (Mapping, tuple, list)) for one in several):
            made = [rows_of(value, first, last, rows) for value in several]
            make: Any = type(several)
            return make(*made) if hasattr(several, "_fields") else make(made)
        return several[first:last] if len(several) == rows else several
    return batch


def oom_guard(step: "Callable[[Any], Any]", batch: Any, model: Any, trial: "Trial | None" = None, *,
              weight: "Callable[[Any], float] | None" = None) -> Any:
    """Runs forward and backward of a batch in parts that fit. Returns the loss of the whole batch,
    detached.

    `step(part)` returns the mean loss of the part and must not call backward. `batch`: a tensor, or
    dicts, tuples and lists of tensors whose first dimension is rows. `model`: the module, or a list
    of modules, that gets the gradients. `weight(part)`: how many items `step` averages over, where
    these are not rows: `lambda part: (part["labels"] != -100).sum()`.

    After an out-of-memory error the batch is run again from its start, with the same random
    numbers and smaller parts. Raises hpo.OutOfMemory where a single row does not fit. The size that
    fits is kept for later batches of the model."""
    rows = num_rows(batch)
    if not rows:
        raise InvalidInput("oom_guard: expected a batch with a tensor of at least one row, got "
                           f"{type(batch).__name__}")
    count = weight or num_rows
    whole = float(count(batch))

    def run(first: int, last: int) -> Any:
        part = rows_of(batch, first, last, rows)
        share = float(count(part)) / whole if whole else 0.0
        loss = step(part) * share
        loss.backward()
        return loss.detach()

    return guard_of(model, trial or current()).run(run, rows)


class Guard:
    """Runs batches of a model in parts that fit, and remembers what did."""

    def __init__(self, model: Any, trial: "Trial | None") -> None:
        self._modules = list(cast("Sequence[Any]", model)) if isinstance(model, (tuple, list)) \
            else [model]
        self._trial = trial
        self._memory = _memory_of(self._modules, trial)
        self._literal = trial is not None and trial.job.get("policy") == "strict"
        self._planner: "Planner | None" = None

        self._running = 0  # rows of the part that runs
        self._most_rows = 0

    def run(self, part: "Callable[[int, int], Any]", rows: int) -> Any:
        """`part(first, last)` adds the gradients of its share of the loss and returns that."""
        if self._planner is None:
            self._planner = Planner() if self._literal else Planner(
                self._memory.measured_limit(), self._planned(rows))
        planner = self._planner
        self._planner.begin(self._memory.held_bytes())
        start = _Start(self._modules)
        while True:
            failure, loss = "", None
            try:
                loss = self._parts(part, rows, planner)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                failure = str(error).splitlines()[0] if str(error) else type(error).__name__
            if not failure:
                start.add_gradients()
                self._tell(rows, planner)
                return loss
            # Outside of the except block: the exception's frames hold tensors no longer.
            start.restore()
            self._plan_smaller(planner, rows, failure)

    def _parts(self, part: "Callable[[int, int], Any]", rows: int, planner: Planner) -> Any:
        total: Any = None
        first = 0
        while first < rows:
            last = min(first + planner.size, rows)
            self._memory.begin_part()
            self._running = last - first
            with self._memory.enforced():
                loss = part(first, last)
            total = loss if total is None else total + loss
            planner.ran(last - first, self._memory.end_part(), rows)
            first = last
        return total

    def _plan_smaller(self, planner: Planner, rows: int, failure: str) -> None:
        used = self._memory.free()
        smaller = not self._literal and planner.failed(self._running)
        plan = {"effective_batch": rows, "micro_batch": planner.size} if smaller else None
        if self._trial is not None:
            self._trial.out_of_memory(plan, **used)
        if self._literal:
            raise OutOfMemory(f"{failure}; the study's memory policy is strict: with plan=True, or "
                              "memory: {policy: plan} in its file, the batch would run in parts")
        if not smaller:
            raise OutOfMemory(f"one row does not fit: {failure}")

    def _tell(self, rows: int, planner: Planner) -> None:
        self._most_rows = max(rows, self._most_rows)
        if self._trial is not None and rows == self._most_rows:
            self._trial.final_plan = {"effective_batch": rows,
                                      "micro_batch": min(planner.size, rows)}

    def _planned(self, rows: int) -> int:
        """The job's micro-batch, where its plan is of this batch and splits it."""
        plan = self._trial.job.get("plan") if self._trial is not None else None
        if not plan or int(plan["effective_batch"]) != rows:
            return 0
        micro_batch = int(plan["micro_batch"])
        return micro_batch if micro_batch < rows else 0


_guards: "weakref.WeakKeyDictionary[Any, Guard]" = weakref.WeakKeyDictionary()


def guard_of(model: Any, trial: "Trial | None") -> Guard:
    """The one of a model: of several the first one's."""
    distributed: Any = torch.distributed
    ranks = distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
    if ranks > 1:
        raise HpoError(f"hpo.torch plans for one GPU: a rank that ran its batch in more parts than the others would "
                       f"leave them waiting; expected one rank, got {ranks}; on several GPUs, call backward without "
                       "oom_guard and give the study a command with {micro_batch} (trainer.gpus)")
    first: Any = cast("Sequence[Any]", model)[0] if isinstance(model, (tuple, list)) else model
    if first not in _guards:
        _guards[first] = Guard(model, trial)
    return _guards[first]


class _Start:
    """What a batch must find again when it is run again: random state, gradients, running means."""

    def __init__(self, modules: "Sequence[Any]") -> None:
        self._parameters = [one for module in modules for one in module.parameters()]
        self._cuda = any(one.is_cuda for one in self._parameters)
        self._random = torch.get_rng_state()
        self._random_cuda = torch.cuda.get_rng_state() if self._cuda else None
        # Set aside, so that a batch that fails half-way leaves nothing in them.
        self._gradients = [one.grad for one in self._parameters]
        self._clear_gradients()
        self._running = [(buffer, buffer.clone()) for module in modules
                         for name, buffer in module.named_buffers() if name.endswith(_RUNNING)]

    def restore(self) -> None:
        self._clear_gradients()
        torch.set_rng_state(self._random)
        if self._random_cuda is not None:
            torch.cuda.set_rng_state(self._random_cuda)
        with torch.no_grad():
            for buffer, before in self._running:
                buffer.copy_(before)

    def add_gradients(self) -> None:
        """Of batches before this one, where the caller accumulates."""
        for parameter, before in zip(self._parameters, self._gradients):
            if before is not None:
                if parameter.grad is not None:
                    before.add_(parameter.grad)
                parameter.grad = before

    def _clear_gradients(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None


class _HostMemory:
    """Without a card: of the whole process, measured and held to the trial's limit."""

    def __init__(self, trial: "Trial | None") -> None:
        self._trial = trial
        self._limit = _host.Limit(trial.limit_bytes if trial is not None else 0)

    def measured_limit(self) -> int:
        """0: there is none, or peaks cannot be told apart here."""
        if not self._limit.bytes:
            return 0
        self.end_part()
        return self._limit.planned_bytes if _host.reset_peak() else 0

    def held_bytes(self) -> int:
        return _host.resident_bytes() if self._limit.bytes else 0

    def enforced(self) -> "contextlib.AbstractContextManager[None]":
        return self._limit.held()

    def begin_part(self) -> None:
        if self._limit.bytes:
            self.end_part()
            _host.reset_peak()

    def end_part(self) -> int:
        if not self._limit.bytes:
            return 0
        peak = _host.peak_bytes()
        if self._trial is not None:
            self._trial.measured(live_peak_bytes=peak)
        return peak

    def free(self) -> "dict[str, int]":
        peak = self.end_part()
        gc.collect()
        return {"peak_bytes": peak, "allocated_bytes": self.held_bytes()}


class _CardMemory:
    """Of torch's allocator on the card of the parameters, held to the trial's limit."""

    def __init__(self, trial: "Trial | None", device: Any) -> None:
        self._trial = trial
        self._device = device
        free, total = torch.cuda.mem_get_info(device)
        limit = trial.limit_bytes if trial is not None else 0
        if limit and limit < total:
            torch.cuda.set_per_process_memory_fraction(limit / total, device)
        here = free + torch.cuda.memory_reserved(device)
        self._limit_bytes = int(min(limit or here, here))

    def measured_limit(self) -> int:
        return int(self._limit_bytes * (1 - _FRAGMENTED))

    def held_bytes(self) -> int:
        return int(torch.cuda.memory_allocated(self._device))

    def enforced(self) -> "contextlib.AbstractContextManager[None]":
        return contextlib.nullcontext()

    def begin_part(self) -> None:
        self.end_part()
        torch.cuda.reset_peak_memory_stats(self._device)

    def end_part(self) -> int:
        peak = int(torch.cuda.max_memory_allocated(self._device))
        if self._trial is not None:
            self._trial.measured(
                live_peak_bytes=peak,
                reserved_peak_bytes=int(torch.cuda.max_memory_reserved(self._device)))
        return peak

    def free(self) -> "dict[str, int]":
        peak = self.end_part()
        gc.collect()
        torch.cuda.empty_cache()
        return {"peak_bytes": peak, "allocated_bytes": self.held_bytes(),
                "reserved_bytes": int(torch.cuda.memory_reserved(self._device))}


def _memory_of(modules: "Sequence[Any]", trial: "Optional[Trial]") -> "_HostMemory | _CardMemory":
    for module in modules:
        for parameter in module.parameters():
            if parameter.is_cuda:
                return _CardMemory(trial, parameter.device)
    return _HostMemory(trial)
