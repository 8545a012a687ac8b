"""Samplers and pruners of one's own, as small classes. They run in the process of the search: the server keeps
what they chose. Several processes of one study each ask their own."""

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from . import _wire
from .records import Report

if TYPE_CHECKING:
    from ._session import Lease
    from .study import Study


class Sampler:
    """Proposes configurations: pass an object of a subclass as sampler=. It is called for one trial after the
    other, while others may run; `study.trials` are those so far, and `study.space` the parameters."""

    def suggest(self, study: "Study") -> "Mapping[str, Any]":
        """Parameters of the next trial by their names. What is left out is drawn at random by the server."""
        raise NotImplementedError


@dataclass(frozen=True)
class RunningTrial:
    """The trial that a pruner judges."""

    number: int
    params: "Mapping[str, Any]"
    reports: "Sequence[Report]"  # so far, the newest last


class Pruner:
    """Ends trials early: pass an object of a subclass as pruner=. It is called at each report of the objective
    that a trial of this process makes, for one trial at a time."""

    def should_prune(self, trial: RunningTrial, history: "Mapping[int, Sequence[Report]]") -> bool:
        """Whether the trial has to end. `history`: the reports of the study's other trials, by number: of those
        that had ended when the first report came, and of all that this process has run since."""
        raise NotImplementedError


class Judge:
    """Asks a pruner at each report of a study's sessions. Safe from any thread."""

    def __init__(self, pruner: Pruner, study: "Study") -> None:
        self._pruner, self._study = pruner, study
        self._lock = threading.Lock()
        self._history: "dict[int, Sequence[Report]] | None" = None
        self._running: "dict[tuple[int, int], list[Report]]" = {}  # by trial and attempt

    def __call__(self, lease: "Lease", step: int, epoch: float, metrics: "dict[str, float]") -> bool:
        given = lease.assignment
        value = metrics.get(given.objective.metric)
        if value is None:
            return False
        with self._lock:
            if self._history is None:
                self._history = self._study.reports_of_ended()
            reports = self._running.setdefault((given.trial, given.attempt), [])
            reports.append(Report(step, epoch, dict(metrics), value))
            self._history[given.trial] = reports
            others = {number: told for number, told in self._history.items() if number != given.trial}
            trial = RunningTrial(given.trial, self._study.given(_wire.params_of(given.params)), tuple(reports))
            return bool(self._pruner.should_prune(trial, others))
