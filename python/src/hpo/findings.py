"""What a study has found: its trials, the best of them, what mattered."""

import importlib
import math
from typing import TYPE_CHECKING, Any, Iterator

from . import _wire
from ._advice import in_python
from ._keywords import ours
from .errors import HpoError, InvalidInput, StudyFailed
from .records import Reader, TrialRecord, noted_of
from .space import Domain

_PAGE = 1000
_ROWS = 20_000  # of a table
_METHODS = {"ped-anova": "PED_ANOVA", "fanova": "FANOVA"}
_STATES = ("queued", "running", "completed", "pruned", "failed", "cancelled")


def importance_messages(channel: _wire.Channel, study: str, metric: "str | None", method: str = "ped-anova") -> "list[Any]":
    """The server's messages ParameterImportance, the largest share first: with the fifth and the ninety-fifth
    percentile of each share over resamples of the trials."""
    if method not in _METHODS:
        raise InvalidInput(f"study.importances: method: expected one of {', '.join(_METHODS)}, got {method!r}")
    chosen = _wire.number("ImportanceMethod", f"IMPORTANCE_METHOD_{_METHODS[method]}")
    request = _wire.message("GetImportanceRequest")(study=study, metric=metric or "", method=chosen)
    try:
        return list(channel.call("AnalysisService/GetImportance", request).parameters)
    except HpoError as error:
        raise HpoError(f"study.importances: {error}") from None


def read_columns(channel: _wire.Channel, study: str, names: "list[str]", where: "tuple[str, ...]" = ()) -> "dict[str, list[float]]":
    """Columns of numbers of the trials for which all conditions hold, in order; NaN where a trial has no value.
    Names and conditions are those of QueryTrials (proto/hpo/v1/study.proto)."""
    request: Any = _wire.message("QueryTrialsRequest")(study=study, columns=names, where=where, page_size=_ROWS)
    found: "dict[str, list[float]]" = {name: [] for name in names}
    while True:
        answer = channel.call("StudyService/QueryTrials", request)
        for name, column in zip(names, answer.columns):
            missing = set(column.missing)
            found[name] += [math.nan if row in missing else float(value) for row, value in enumerate(column.numbers)]
        request.page_token = answer.next_page_token
        if not request.page_token:
            return found


class Findings:
    """The part of a Study that only reads. Safe from any thread."""

    name: str
    channel: _wire.Channel
    _reader: Reader
    _domains: "dict[str, Domain] | None"

    def state(self) -> Any:
        """The server's message Study (proto/hpo/v1/study.proto), with the counts of its trials."""
        request = _wire.message("GetStudyRequest")(name=self.name)
        return self.channel.call("StudyService/GetStudy", request).study

    @property
    def finished(self) -> bool:
        """Whether the study has ended, so that ask() returns no trial any more."""
        return _wire.name("StudyState", self.state().state) == "finished"

    def has_limit(self) -> bool:
        """Whether its budget ends the study at some time."""
        ends: Any = self.state().budget
        return any(field.name not in ("failures_in_a_row", "failed_share", "trial_wall_clock")
                   for field, _ in ends.ListFields())

    @property
    def waiting_for(self) -> str:
        """What the study waits for, and what would help; empty: nothing."""
        return in_python(str(self.state().waiting_for), "study", self.channel.address) or self.untold()

    def untold(self) -> str:
        """Which trials alone are waited for, since this process asked for them; empty: there are none."""
        return ""

    @property
    def objectives(self) -> "dict[str, str]":
        """The direction of each objective's metric: {"value": "minimize"}."""
        return {str(one.metric): _wire.name("Direction", one.direction) for one in self.state().objectives}

    @property
    def space(self) -> "dict[str, Domain]":
        """What is searched, by the parameters' names."""
        if self._domains is None:
            from .ranges import domain_of_parameter  # what only this needs is imported by it

            self._domains = {str(one.name): domain_of_parameter(one) for one in self.state().space.parameters}
        return dict(self._domains)

    @property
    def note(self) -> str:
        """The note of the study; empty: there is none."""
        return str(noted_of(self.state())["note"])

    @property
    def tags(self) -> "list[str]":
        """The tags of the study."""
        return list(noted_of(self.state())["tags"])

    @property
    def attributes(self) -> "dict[str, Any]":
        """The attributes of the study, by key."""
        return dict(noted_of(self.state())["attributes"])

    def trial(self, number: int) -> TrialRecord:
        """One trial, with everything that is kept of it."""
        return self._reader.whole(self._message(number))

    def _message(self, number: int) -> Any:
        request = _wire.message("GetTrialRequest")(study=self.name, number=number)
        return self.channel.call("StudyService/GetTrial", request).trial

    @property
    def trials(self) -> "list[TrialRecord]":
        """All trials in order, also those that wait and run."""
        return [self._reader.record(one) for one in self.messages()]

    def messages(self, states: "tuple[str, ...]" = (), full: bool = False, newest: int = 0) -> "Iterator[Any]":
        """The server's messages Trial, those of some states alone. `full`: with measurements and attempts.
        `newest`: so many, from the newest on; 0: all in order."""
        for state in states:
            if state not in _STATES:
                raise InvalidInput(f"a trial's state: expected one of {', '.join(_STATES)}, got {state!r}")
        request: Any = _wire.message("ListTrialsRequest")(
            study=self.name, page_size=newest or (_PAGE if not full else 100), newest_first=newest > 0,
            states=[_wire.number("TrialState", f"TRIAL_STATE_{state.upper()}") for state in states],
            view=_wire.number("TrialView", "TRIAL_VIEW_FULL" if full else "TRIAL_VIEW_BASIC"))
        while True:
            answer = self.channel.call("StudyService/ListTrials", request)
            yield from answer.trials
            request.page_token = answer.next_page_token
            if not request.page_token or newest:
                return

    def best_trials(self, count: int = 0) -> "list[TrialRecord]":
        """The best `count` trials in order; 0: the best one, of several objectives the Pareto front."""
        request = _wire.message("ListBestTrialsRequest")(study=self.name, count=count)
        answer = self.channel.call("StudyService/ListBestTrials", request)
        return [self._reader.record(trial) for trial in answer.trials]

    @property
    def best(self) -> TrialRecord:
        """The best completed trial of a study with one objective. Raises HpoError where none has completed, or
        where the study has several objectives, so that there is no single best."""
        if len(self._reader.objectives) > 1:
            raise HpoError(f"study {self.name}: expected one objective, got {len(self._reader.objectives)} "
                           f"({', '.join(self._reader.objectives)}), so that no single trial is the best; "
                           "study.best_trials() are those that no other one beats in all of them")
        found = self.best_trials()
        if not found:
            raise self._nothing_completed()
        return self.trial(found[0].number)

    def _nothing_completed(self) -> HpoError:
        state = self.state()
        if state.failure:
            return StudyFailed(f"study {state.name}: {state.failure}")
        counts = state.counts
        text = (f"study {self.name}: no trial completed ({counts.pruned} pruned, {counts.failed} failed, "
                f"{counts.cancelled} cancelled)")
        for one in self.messages(("failed",), newest=1):
            text += f"; the last that failed was trial {one.number}:\n{self.trial(one.number).error.rstrip()}"
            return HpoError(text)
        for one in self.messages(("pruned",), newest=1):
            text += f"; the last that was pruned was trial {one.number}: {self.trial(one.number).why}"
        return HpoError(text)

    def importances(self, metric: "str | None" = None, *, method: str = "ped-anova") -> "dict[str, float]":
        """The share of each parameter in what moved the metric (of an objective; default: the first), the
        largest first; they add up to 1. `method`: "ped-anova" or "fanova". Needs a few completed trials."""
        shares = importance_messages(self.channel, self.name, metric, method)
        return {str(one.parameter): float(one.share) for one in shares}

    def dataframe(self) -> Any:
        """A pandas DataFrame with a row for each trial: number, state, value, why, times, then
        parameters and metrics."""
        try:
            pandas: Any = importlib.import_module("pandas")
        except ImportError:
            raise HpoError("study.dataframe() needs pandas: pip install pandas") from None
        rows = [{"number": one.number, "state": one.state, "value": one.value, "why": one.why,
                 "started": one.started, "ended": one.ended, "duration": one.duration,
                 **{f"params_{key}": value for key, value in one.params.items()},
                 **{f"metrics_{key}": value for key, value in one.metrics.items()},
                 **{f"attributes_{key}": value for key, value in one.attributes.items()}}
                for one in self.trials]
        return pandas.DataFrame(rows)

    def watch(self) -> "Iterator[tuple[str, TrialRecord]]":
        """Yields each change from now on as ("queued", trial), ("started", trial), ..."""
        request = _wire.message("WatchStudyRequest")(study=self.name)
        for answer in self.channel.stream("StudyService/WatchStudy", request):
            if answer.WhichOneof("kind") == "change":
                yield answer.change.kind, self._reader.record(answer.change.trial)

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"a study has no attribute {name!r}{ours(name)}")

    def _repr_html_(self) -> "str | None":
        """A card of the study for notebooks; None, so that repr() is shown, where the server does not answer."""
        from .notebook.card import card  # what only notebooks need is imported by them

        try:
            return card(self.channel, self.name)
        except HpoError:
            return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.channel.address!r})"

