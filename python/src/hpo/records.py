"""Trials as the server keeps them."""

import datetime
import json
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence

from . import _outcomes, _wire
from .errors import HpoError
from .values import Objects


@dataclass(frozen=True)
class Report:
    """An intermediate value: what trial.report said."""

    step: int
    epoch: float
    metrics: "dict[str, float]"
    value: Optional[float]  # of the first objective


@dataclass(frozen=True)
class Attempt:
    """One run of a trial: there are several where a process or a machine was lost."""

    number: int
    state: str  # "leased", "finished", "released", "lost", ...
    worker: str
    started: Optional[datetime.datetime]
    ended: Optional[datetime.datetime]
    why: str  # how it ended, in words
    peak_bytes: int  # of its memory; 0: it was not measured


@dataclass(frozen=True)
class Details:
    """What lists leave out."""

    error: str = ""
    reports: "tuple[Report, ...]" = ()
    attempts: "tuple[Attempt, ...]" = ()


@dataclass(frozen=True)
class TrialRecord:
    """A trial as the server keeps it. `error`, `reports` and `attempts` of one that a list gave are asked for
    when they are first read; a closed study cannot be asked."""

    number: int
    state: str  # "queued", "running", "completed", "pruned", "failed" or "cancelled"
    params: "dict[str, Any]"
    value: Optional[float]  # of the first objective
    metrics: "dict[str, float]"
    why: str  # of one that was pruned, failed or cancelled, in a line
    started: Optional[datetime.datetime]
    ended: Optional[datetime.datetime]
    note: str
    tags: "list[str]"
    attributes: "dict[str, Any]"
    objectives: "tuple[str, ...]" = ()  # metrics, in the study's order
    details: "Details | Callable[[], Details] | None" = field(default=None, compare=False, repr=False)

    @property
    def values(self) -> "list[float]":
        """Of all objectives, in the study's order; empty where the trial has not completed."""
        return [self.metrics[name] for name in self.objectives] if self.state == "completed" else []

    @property
    def duration(self) -> "datetime.timedelta | None":
        """From its first attempt's start to its end; None where it has not ended or never ran."""
        return self.ended - self.started if self.started and self.ended else None

    @property
    def error(self) -> str:
        """The whole message or traceback of a trial that failed or ran out of memory."""
        return self._details().error

    @property
    def reports(self) -> "tuple[Report, ...]":
        """The intermediate values that it reported, in order."""
        return self._details().reports

    @property
    def attempts(self) -> "tuple[Attempt, ...]":
        """How often it was run, and how each run ended."""
        return self._details().attempts

    def _details(self) -> Details:
        if callable(self.details):
            object.__setattr__(self, "details", self.details())
        if self.details is None:
            raise HpoError(f"trial {self.number}: its details were not read while the study was open: "
                           "study.trial(number) reads them")
        return self.details if isinstance(self.details, Details) else Details()

    def __repr__(self) -> str:
        told = {"value": self.value if len(self.objectives) < 2 else None, "values": self.values or None, "why": self.why}
        if len(self.objectives) < 2:
            del told["values"]
        parts = [str(self.number), self.state, *(f"{key}={one!r}" for key, one in told.items() if one not in (None, ""))]
        return f"TrialRecord({', '.join(parts)}, params={self.params!r})"

    def __getstate__(self) -> "dict[str, Any]":
        return {**self.__dict__, "details": None if callable(self.details) else self.details}


class Reader:
    """Makes records of a study's messages."""

    def __init__(self, objectives: "Sequence[str]", objects: Objects, whole: "Callable[[int], Any]") -> None:
        """`whole`: asks for a trial's message with everything, by its number."""
        self.objectives = tuple(objectives)
        self.objects = objects
        self._whole = whole

    def record(self, trial: Any) -> TrialRecord:
        number = int(trial.number)
        return self._record(trial, lambda: self.details(self._whole(number)))

    def whole(self, trial: Any) -> TrialRecord:
        """`trial`: with measurements and attempts."""
        return self._record(trial, self.details(trial))

    def _record(self, trial: Any, details: "Details | Callable[[], Details]") -> TrialRecord:
        kind, end = _end_of(trial)
        metrics = end.metrics if kind in ("completed", "stopped_by_pruner") else None
        return TrialRecord(
            number=int(trial.number), state=_wire.name("TrialState", trial.state),
            params=self.objects.given(_wire.params_of(trial.params)),
            value=self._value(trial, metrics),
            metrics=dict(metrics if metrics is not None else trial.last_measurement.metrics),
            why=_why(kind, end), started=_time(trial, "started"), ended=_time(trial, "ended"),
            objectives=self.objectives, details=details, **noted_of(trial))

    def _value(self, trial: Any, metrics: "Mapping[str, float] | None") -> "float | None":
        """Of the first objective. The server ranks by finite values alone; another one stays what it was."""
        if trial.HasField("value"):
            return float(trial.value)
        return metrics.get(self.objectives[0]) if metrics is not None and len(self.objectives) == 1 else None

    def details(self, trial: Any) -> Details:
        kind, end = _end_of(trial)
        error = ""
        if kind == "failed":
            error = str(end.message)
        elif kind == "out_of_memory":
            error = str(end.error_traceback or end.error_message)
        return Details(error, tuple(map(self.report, trial.measurements)), tuple(map(_attempt, trial.attempts)))

    def report(self, measurement: Any) -> Report:
        metrics = dict(measurement.metrics)
        return Report(int(measurement.step), float(measurement.epoch), metrics, metrics.get(self.objectives[0]))


def _end_of(trial: Any) -> "tuple[str, Any]":
    kind = str(trial.outcome.WhichOneof("kind") or "") if trial.HasField("outcome") else ""
    return kind, getattr(trial.outcome, kind) if kind else None


def _why(kind: str, end: Any) -> str:
    if kind == "failed":
        return _outcomes.headline(str(end.message))
    if kind == "out_of_memory":
        return _outcomes.headline(str(end.error_message))
    return str(getattr(end, {"cancelled": "reason", "stopped_by_pruner": "pruner"}.get(kind, ""), ""))


def _time(message: Any, name: str) -> "datetime.datetime | None":
    return getattr(message, name).ToDatetime(datetime.timezone.utc) if message.HasField(name) else None


def _attempt(attempt: Any) -> Attempt:
    peak = int(attempt.memory.live_peak_bytes) if attempt.HasField("memory") else 0
    return Attempt(int(attempt.number), _wire.name("AttemptState", attempt.state), str(attempt.worker),
                   _time(attempt, "started"), _time(attempt, "ended"), str(attempt.end_note), peak)


def noted_of(thing: Any) -> "dict[str, Any]":
    """Note, tags and attributes of a message Study or Trial."""
    noted: "Mapping[str, Any]" = {key: json.loads(text) for key, text in sorted(thing.attributes.items())}
    return {"note": str(noted.get("hpo.note", "")), "tags": list(noted.get("hpo.tags", [])),
            "attributes": {key: value for key, value in noted.items() if not key.startswith("hpo.")}}


