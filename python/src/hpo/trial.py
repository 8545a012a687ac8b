"""A running trial, as the function that trains sees it."""

import pathlib
from typing import (TYPE_CHECKING, Any, Callable, ItemsView, Iterator, KeysView, Mapping, Optional, Protocol, Sequence,
                    ValuesView)

from . import checks
from ._keywords import ours
from .errors import InvalidInput, UnknownParameter
from .sizes import num_bytes
from .values import Objects


class Sink(Protocol):
    """Where a trial's words go: to the server, or to the worker that started the process."""

    def measurement(self, step: int, epoch: float, metrics: "Mapping[str, Any]") -> None: ...

    def stage(self, name: str, memory: "Mapping[str, Any]") -> None: ...

    def attributes(self, noted: "Mapping[str, Any]") -> None: ...

    def stop_reason(self) -> str: ...


def alike(name: object, known: "Sequence[str]") -> str:
    """"; did you mean 'lr'?", where one of the known names is like this one."""
    import difflib  # of errors alone

    found = difflib.get_close_matches(str(name), known, 1)
    return f"; did you mean {found[0]!r}?" if found else ""


class Trial:
    """One configuration being trained: trial["lr"] is a parameter's value. Not for several threads at once.
    It can be pickled, and then reports from another process while the one that asked for it lives."""

    def __init__(self, job: "Mapping[str, Any]", sink: Sink, objects: "Optional[Objects]" = None) -> None:
        """`objects`: of the space's choices that are no scalars."""
        self.job = job  # every field of the protocol's job
        self.number = int(job["trial"])
        self.objects = objects or Objects()
        self.params: "dict[str, Any]" = self.objects.given(job["params"])
        self.used_bytes = 0
        self.memory: "dict[str, int]" = {}  # of the protocol's outcome: what was measured so far
        self.final_plan: "dict[str, int] | None" = None
        self.last_step = 0
        self.last_metrics: "dict[str, Any]" = {}
        self.attributes: "dict[str, Any]" = {}  # what annotate has noted so far
        self._metric = str(job["objective"]["metric"])
        self._num_reports = 0
        self.sink = sink  # where its words go

    def __getitem__(self, name: str) -> Any:
        """A parameter's value. Raises UnknownParameter, a KeyError, where the trial has none of that name."""
        if name not in self.params:
            raise UnknownParameter(f"trial {self.number} has no parameter {name!r}, only "
                                   f"{', '.join(map(repr, self.params))}{alike(name, list(self.params))}")
        return self.params[name]

    def __contains__(self, name: object) -> bool:
        return name in self.params

    def __iter__(self) -> "Iterator[str]":
        return iter(self.params)

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("suggest_"):
                raise AttributeError(f"a trial has no {name}(), only suggest_float, suggest_int and suggest_categorical; "
                                     "trial[\"lr\"] is the value of the parameter \"lr\"")
            raise AttributeError(f"a trial has no attribute {name!r}" + (
                ours(name) or f"; trial[{name!r}] is a parameter's value"))

    def __repr__(self) -> str:
        return f"Trial({', '.join([str(self.number), *(f'{key}={value!r}' for key, value in self.params.items())])})"

    def keys(self) -> "KeysView[str]":
        """The names of its parameters; so `dict(trial)` and `**trial` work."""
        return self.params.keys()

    def values(self) -> "ValuesView[Any]":
        """The values of its parameters."""
        return self.params.values()

    def items(self) -> "ItemsView[str, Any]":
        """Names and values of its parameters."""
        return self.params.items()

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter's value, or `default` where the trial lacks it (one with `when=`)."""
        return self.params.get(name, default)

    def suggest_float(self, name: str, low: float, high: float, *, step: "float | None" = None,
                      log: bool = False) -> float:
        """A parameter's value, as trial[name], in functions that were written for Optuna: their ranges have to be
        those of the space that the search was given. Raises UnknownParameter where that lacks the name, and
        InvalidInput where its range is another one. A program under hpo-worker does not know the space: there
        the value has to lie in the range."""
        from . import _suggest, space  # what only functions for Optuna need is imported by them

        asked = space.log(low, high) if log else space.uniform(low, high, step=step)
        return float(_suggest.value_of(name, asked, self.params, self.job.get("space"), self.objects))

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """As suggest_float, of a whole number."""
        from . import _suggest, space

        asked = space.integer(low, high, step=None if step == 1 else step, log=log)
        return int(_suggest.value_of(name, asked, self.params, self.job.get("space"), self.objects))

    def suggest_categorical(self, name: str, choices: "Sequence[Any]") -> Any:
        """As suggest_float, of one of several choices, in any order."""
        from . import _suggest

        asked = _suggest.choices_of(name, choices, self.objects)
        return _suggest.value_of(name, asked, self.params, self.job.get("space"), self.objects)

    @property
    def seed(self) -> int:
        """For the random numbers of the trial: the parameter `seed`, else drawn from the study's."""
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

    @property
    def output_dir(self) -> Optional[pathlib.Path]:
        """Where a program under hpo-worker saves its model: `hpo best --export` copies this folder. A child process
        finds it in the variable HPO_OUTPUT_DIR. None: the trial has no such folder, as in hpo.minimize."""
        folder = str(self.job.get("output_dir") or "")
        return pathlib.Path(folder) if folder else None

    def report(self, step: int, value: "float | None" = None, *, epoch: float = 0.0,
               **metrics: float) -> None:
        """Reports an intermediate value of the objective, metrics or both, at a step: a whole number, such as
        that of optimizer steps. `epoch`: passes over the data so far, by which a pruner compares trials whose
        steps differ. The pruner judges by the objective. Several reports of one step are one: of each metric the
        first value counts. What docs/limits.md does not allow raises InvalidInput."""
        told = checks.step(step, value)
        epoch = checks.epoch(epoch)
        if value is not None:
            metrics = {self._metric: value, **metrics}
        numbers = checks.metrics(metrics, "trial.report: metrics")
        if self._num_reports >= checks.MEASUREMENTS:
            raise InvalidInput(f"trial.report: expected at most {checks.MEASUREMENTS:,} reports of a trial, got one "
                               "more; report less often")
        self._num_reports += 1
        self.last_step, self.last_metrics = told, numbers
        self.sink.measurement(told, epoch, numbers)

    def annotate(self, attributes: "Optional[Mapping[str, Any]]" = None, **more: Any) -> None:
        """Sets attributes of the trial: JSON values by key, kept and shown with its result. A new
        value replaces that of the same key."""
        noted = {**(attributes or {}), **more}
        checks.attributes(noted)
        if len({*self.attributes, *noted}) > checks.ATTRIBUTES:
            raise InvalidInput(f"trial.annotate: expected at most {checks.ATTRIBUTES} attributes of a trial, got "
                               f"{len({*self.attributes, *noted})}")
        self.attributes.update(noted)
        self.sink.attributes(noted)

    def should_stop(self) -> bool:
        """Whether the trial has to end now: then return the result so far, or raise hpo.Stopped."""
        return self.stop_reason() != ""

    def stop_reason(self) -> str:
        """"pruned", "time limit", "cancelled", ...; empty: go on."""
        return self.sink.stop_reason()

    def stage(self, name: str) -> None:
        """Records that a stage begins, with the memory used so far; `hpo trial show` lists them."""
        self.sink.stage(checks.name(name, "trial.stage"), {"peak_bytes": self.used_bytes})

    def out_of_memory(self, plan: "Mapping[str, int] | None", **memory: int) -> None:
        """One was met, and the trial goes on by a smaller plan; None: with none."""
        self._count("num_ooms")
        self.sink.stage("OOM Error", {"step": self.last_step, **memory})
        if plan is not None:
            self._count("num_replans")
            self.final_plan = dict(plan)
            self.sink.stage("replan", {"step": self.last_step, "plan": self.final_plan})

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
