"""A running trial, as the function that trains sees it."""

import json
import pathlib
from typing import Any, Callable, Mapping, Optional, Protocol

from .errors import InvalidInput
from .sizes import num_bytes


def texts(noted: "Mapping[str, Any]") -> "dict[str, str]":
    """Attributes as the server takes them: JSON texts."""
    told: "dict[str, str]" = {}
    for key, value in noted.items():
        try:
            told[str(key)] = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"attribute {key!r}: expected a value that JSON has, got {value!r} "
                               f"({error})") from None
    return told


class Sink(Protocol):
    """Where a trial's words go: to the server, or to the worker that started the process."""

    def measurement(self, step: int, epoch: float, metrics: "Mapping[str, Any]") -> None: ...

    def stage(self, name: str, memory: "Mapping[str, Any]") -> None: ...

    def attributes(self, noted: "Mapping[str, Any]") -> None: ...

    def stop_reason(self) -> str: ...


class Trial:
    """One configuration being trained. Not for several threads at once."""

    def __init__(self, job: "Mapping[str, Any]", sink: Sink) -> None:
        self.job = job  # every field of the protocol's job
        self.number = int(job["trial"])
        self.params: "dict[str, Any]" = dict(job["params"])
        self.used_bytes = 0
        self.memory: "dict[str, int]" = {}  # of the protocol's outcome: what was measured so far
        self.final_plan: "dict[str, int] | None" = None
        self.last_step = 0
        self.last_metrics: "dict[str, Any]" = {}
        self.attributes: "dict[str, Any]" = {}  # what annotate has noted so far
        self._metric = str(job["objective"]["metric"])
        self._sink = sink

    def __getitem__(self, name: str) -> Any:
        if name not in self.params:
            raise InvalidInput(f"trial {self.number} has no parameter {name!r}, only "
                               f"{', '.join(map(repr, self.params))}")
        return self.params[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter's value, or `default` where the trial lacks it (one with `when=`)."""
        return self.params.get(name, default)

    @property
    def seed(self) -> int:
        return int(self.job.get("seed", 0))

    @property
    def limit_bytes(self) -> int:
        """How much memory the trial may use; 0: no limit."""
        return int(self.job.get("limit_bytes", 0))

    @property
    def checkpoint_dir(self) -> Optional[pathlib.Path]:
        """A folder that all attempts of this trial share; None: nothing is kept."""
        folder = str(self.job.get("checkpoint_dir") or "")
        return pathlib.Path(folder) if folder else None

    def report(self, step: int, value: "float | None" = None, *, epoch: float = 0.0,
               **metrics: float) -> None:
        """Reports an intermediate value of the objective, metrics or both; the pruner judges by the
        objective."""
        if value is not None:
            metrics = {self._metric: value, **metrics}
        self.last_step, self.last_metrics = int(step), dict(metrics)
        self._sink.measurement(int(step), float(epoch), metrics)

    def annotate(self, attributes: "Optional[Mapping[str, Any]]" = None, **more: Any) -> None:
        """Sets attributes of the trial: JSON values by key, kept and shown with its result. A new
        value replaces that of the same key."""
        noted = {**(attributes or {}), **more}
        texts(noted)
        self.attributes.update(noted)
        self._sink.attributes(noted)

    def should_stop(self) -> bool:
        """Whether the trial has to end now: then return the result so far, or raise hpo.Stopped."""
        return self.stop_reason() != ""

    def stop_reason(self) -> str:
        """"pruned", "time limit", "cancelled", ...; empty: go on."""
        return self._sink.stop_reason()

    def stage(self, name: str) -> None:
        """Records that a stage begins, with the memory used so far; `hpo trial show` lists them."""
        self._sink.stage(name, {"peak_bytes": self.used_bytes})

    def out_of_memory(self, plan: "Mapping[str, int] | None", **memory: int) -> None:
        """One was met, and the trial goes on by a smaller plan; None: with none."""
        self._count("num_ooms")
        self._sink.stage("OOM Error", {"step": self.last_step, **memory})
        if plan is not None:
            self._count("num_replans")
            self.final_plan = dict(plan)
            self._sink.stage("replan", {"step": self.last_step, "plan": self.final_plan})

    def measured(self, **memory: int) -> None:
        """Peaks of what was measured: the most of several counts."""
        for name, size in memory.items():
            self.memory[name] = max(self.memory.get(name, 0), size)

    def _count(self, name: str) -> None:
        self.memory[name] = self.memory.get(name, 0) + 1

    def used(self, size: "int | str") -> None:
        """Tells how much memory the trial has used so far; the largest of several calls counts.
        Without it, torch's peak on the card counts, or the peak of the process."""
        self.used_bytes = max(self.used_bytes, num_bytes(size, "used"))


Train = Callable[[Trial], Any]
