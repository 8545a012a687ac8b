"""A study by ask and tell: the loop is yours, the search and the memory of it are the server's."""

import contextlib
import datetime
import importlib
import json
import os
import pathlib
import socket
import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Union

from . import _outcomes, _wire
from ._channel import finite
from ._presence import release_dead
from ._server import FolderServer
from ._session import Device, Lease, Session
from .errors import HpoError, InvalidInput, ServerError, StudyFailed
from .ranges import Edited, edit_request, edited_of
from .sizes import num_bytes
from .space import Space, Value, study_file
from .trainer import metrics_of, outcome_of
from .trial import Trial, texts

WAIT_S = 2.0  # of one call
_LOOK_S = 2.0  # between looks for dead processes
_PAGE = 1000


@dataclass(frozen=True)
class TrialRecord:
    """A trial as the server keeps it."""

    number: int
    state: str  # "queued", "running", "completed", "pruned", "failed" or "cancelled"
    params: "dict[str, Value]"
    value: Optional[float]  # of the first objective
    metrics: "dict[str, float]"
    why: str  # of one that was pruned, failed or cancelled
    started: Optional[datetime.datetime]
    ended: Optional[datetime.datetime]
    note: str
    tags: "list[str]"
    attributes: "dict[str, Any]"


def record_of(trial: Any) -> TrialRecord:
    kind = trial.outcome.WhichOneof("kind") if trial.HasField("outcome") else None
    end = getattr(trial.outcome, kind) if kind else None
    metrics = end.metrics if kind in ("completed", "stopped_by_pruner") and end else None
    why = {"out_of_memory": "error_message", "failed": "message", "cancelled": "reason",
           "stopped_by_pruner": "pruner"}.get(kind or "")
    times = [getattr(trial, name).ToDatetime(datetime.timezone.utc) if trial.HasField(name) else None
             for name in ("started", "ended")]
    return TrialRecord(
        number=trial.number, state=_wire.name("TrialState", trial.state),
        params=_wire.params_of(trial.params), value=trial.value if trial.HasField("value") else None,
        metrics=dict(metrics if metrics is not None else trial.last_measurement.metrics),
        why=str(getattr(end, why)) if why else "", started=times[0], ended=times[1],
        **noted_of(trial))


def noted_of(thing: Any) -> "dict[str, Any]":
    """Note, tags and attributes of a message Study or Trial."""
    noted = {key: json.loads(text) for key, text in sorted(thing.attributes.items())}
    return {"note": str(noted.get("hpo.note", "")), "tags": list(noted.get("hpo.tags", [])),
            "attributes": {key: value for key, value in noted.items() if not key.startswith("hpo.")}}


def job_of(lease: Lease, device: Device, checkpoints: "pathlib.Path | None") -> "dict[str, Any]":
    """The trainer protocol's job, as far as a function needs one."""
    given = lease.assignment
    return {"type": "job", "study": given.study, "trial": given.trial, "attempt": given.attempt,
            "params": _wire.params_of(given.params), "objective": {"metric": given.objective.metric},
            "device": device.kind, "limit_bytes": given.limit_bytes, "seed": given.seed,
            "policy": given.memory_policy,
            "epochs": given.epochs,
            "checkpoint_dir": str(checkpoints / str(given.trial)) if checkpoints else ""}


class SessionSink:
    """A trial of this process: its words go straight to the server."""

    def __init__(self, session: Session, lease: Lease) -> None:
        self.session = session
        self.lease = lease

    def measurement(self, step: int, epoch: float, metrics: "Mapping[str, Any]") -> None:
        self.session.report(self.lease, step, epoch, _outcomes.numbers(finite(metrics)))

    def stage(self, name: str, memory: "Mapping[str, Any]") -> None:
        pass  # A worker's records; the peak comes with the trial's end.

    def attributes(self, noted: "Mapping[str, Any]") -> None:
        self.session.note(self.lease, texts(noted))

    def stop_reason(self) -> str:
        return self.lease.stop


class Study:
    """Opens the study `name`. Where a space is given, creates it if it does not exist yet.

    `storage`: a folder that keeps the study; a server runs on it while this object is open.
    `server`: the address of a running hpo-server that keeps it instead. With neither, the study is
    in a temporary folder, deleted on close. `trials`: the budget; None: no limit. `target`: a value
    of the objective that ends the study. `memory`: what one trial may use at most ("24GiB").
    `plan`: batches run in parts that fit (hpo.torch, hpo.hf). A `storage` is for one process;
    several may share one `server`. Close it, or use it in a `with` statement."""

    def __init__(self, name: str = "study", space: "Space | None" = None, *,
                 direction: str = "minimize", metric: str = "value",
                 objectives: "Mapping[str, str] | None" = None, trials: "int | None" = None,
                 memory: "int | str | None" = None, storage: "str | os.PathLike[str] | None" = None,
                 server: "str | None" = None, device: "Device | None" = None,
                 seed: "int | None" = None, plan: bool = False, target: "float | None" = None,
                 **sections: Any) -> None:
        if seed is not None:
            sections["sampler"] = {**sections.get("sampler", {}), "seed": seed}
        if target is not None:
            sections["budget"] = {**sections.get("budget", {}), "target": target}
        self.plan = plan
        limit = num_bytes(memory, "memory") if memory is not None else 0
        given = device or Device()
        self.device = Device(given.kind, given.name, given.uuid, given.total_bytes or limit,
                             limit or given.capacity_bytes, given.environment)
        file = self._file(name, space, objectives or {metric: direction}, trials, sections)
        with contextlib.ExitStack() as cleanup:
            self.folder: "pathlib.Path | None" = None
            if server is None:
                import tempfile

                temporary = storage is None and tempfile.TemporaryDirectory(prefix="hpo-")
                if temporary:
                    cleanup.enter_context(temporary)
                self.folder = pathlib.Path(temporary.name if temporary else storage or ".")
                own = FolderServer(self.folder)
                cleanup.callback(own.close)
                self.channel = _wire.Channel(own.address, own.ensure)
            else:
                self.channel = _wire.Channel(server)
            cleanup.callback(self.channel.close)
            self._lock = threading.Lock()
            self._looked_at = -_LOOK_S
            self.release_dead()
            self.name = self._open(name, file)
            self._cleanup = cleanup.pop_all()
        self._session: "Session | None" = None
        self._asked: "dict[int, Lease]" = {}

    def _file(self, name: str, space: "Space | None", objectives: "Mapping[str, str]",
              trials: "int | None", sections: "dict[str, Any]") -> str:
        for metric, way in objectives.items():
            if way not in ("minimize", "maximize"):
                raise InvalidInput(f"direction of {metric}: expected \"minimize\" or \"maximize\", "
                                   f"got {way!r}")
        if trials is not None and (isinstance(trials, bool) or trials < 1):
            raise InvalidInput(f"trials: expected a whole number from 1, got {trials!r}")
        if space is None:
            return ""
        limited = self.device.capacity_bytes > 0
        policy = "plan" if self.plan else "strict"
        sections.setdefault("memory", {"policy": policy if limited else "off"})
        sections["budget"] = {**({"trials": trials} if trials else {}), **sections.get("budget", {})}
        return study_file(name, space, objectives, **sections)

    def _open(self, name: str, file: str) -> str:
        if not file:
            request = _wire.message("GetStudyRequest")(name=name)
            return str(self.channel.call("StudyService/GetStudy", request).study.name)
        request = _wire.message("CreateStudyRequest")(yaml=file, origin=name)
        return str(self.channel.call("StudyService/CreateStudy", request).study.name)

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session; trials that were asked for and not told are queued again."""
        if self._session is not None:
            for lease in self._asked.values():
                with contextlib.suppress(HpoError):
                    self._session.release(lease, "the study was closed")
            self._session.close()
            self._session = None
        self._cleanup.close()

    def session(self, device: "Device | None" = None) -> Session:
        """A worker of this study, for what runs its trials itself. Its name is like no other's: of
        containers, each has a process 1, and they often have one host name."""
        host = "".join(c if c.isalnum() or c in "-." else "-" for c in socket.gethostname())[:30]
        return Session(self.channel, self.name, device or self.device,
                       f"python-{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}", self.plan, self.folder)

    def release_dead(self) -> None:
        """Has the trials of processes that used the storage folder and are dead queued again."""
        if self.folder is not None and time.monotonic() - self._looked_at > _LOOK_S:
            self._looked_at = time.monotonic()
            release_dead(self.folder, self.channel)

    def ask(self, timeout: float = 0.0) -> "Trial | None":
        """A configuration to try. None: there was none within `timeout` seconds; `finished` says
        whether one may come later, and `waiting_for` what is waited for. Safe from any thread."""
        with self._lock:
            if self._session is None:
                self._session = self.session()
        lease, answer = next_lease(self, self._session, timeout)
        if lease is None:
            if answer is not None and answer.all_studies_finished:
                raise_if_failed(self.state())
            return None
        self._asked[lease.assignment.trial] = lease
        checkpoints = self.folder / "checkpoints" / self.name if self.folder else None
        return Trial(job_of(lease, self.device, checkpoints), SessionSink(self._session, lease))

    @property
    def finished(self) -> bool:
        """Whether the study has ended, so that ask() returns no trial any more."""
        return _wire.name("StudyState", self.state().state) == "finished"

    @property
    def waiting_for(self) -> str:
        """What the study waits for, and what would help; empty: nothing."""
        return str(self.state().waiting_for)

    def tell(self, trial: Trial, result: "Union[float, Mapping[str, float], Exception, None]") -> str:
        """Tells how the trial ended: the objective's value, a dict of all metrics, or the exception
        that was raised (from an OutOfMemory, or that of a framework, the sampler learns the limit).
        None is only for a trial that should_stop. Returns the trial's new state."""
        lease = self._asked.get(trial.number)
        if lease is None or self._session is None:
            raise InvalidInput(f"trial {trial.number} was told already, or another Study object asked "
                               "for it: expected one that this object's ask() returned")
        if not isinstance(result, Exception) and not (result is None and trial.should_stop()):
            try:
                metrics_of(result, lease.assignment.objective.metric)
            except TypeError as error:
                raise InvalidInput(f"trial {trial.number}: "
                                   f"{str(error).replace('the function returned', 'got')}") from None

        def told(_: Trial) -> Any:
            if isinstance(result, Exception):
                raise result
            return result

        end = outcome_of(told, trial)
        del self._asked[trial.number]
        if end is None:
            self._session.release(lease, lease.stop)
            return "queued"
        used = _outcomes.memory({**trial.memory, "live_peak_bytes": trial.used_bytes},
                                trial.limit_bytes)
        return self._session.finish(lease, _outcomes.outcome(end), used, trial.final_plan)

    def enqueue(self, params: "Mapping[str, Value]") -> int:
        """Queues a trial with these parameters as the next one; the sampler chooses those that are
        left out. Returns the trial's number."""
        request = _wire.message("EnqueueTrialRequest")(study=self.name)
        for key, value in params.items():
            request.params[key].CopyFrom(_wire.pack(value))
        return int(self.channel.call("StudyService/EnqueueTrial", request).trial.number)

    def retry(self, *numbers: int) -> "list[int]":
        """Queues the configurations of these trials again, which failed or ran out of memory;
        without numbers, of all such trials. A configuration that is queued, runs or has completed
        since is not queued again. Returns the numbers of the new trials."""
        request = _wire.message("RetryTrialsRequest")(
            study=self.name, numbers=numbers, all_failed=not numbers, request_id=uuid.uuid4().hex)
        answer = self.channel.call("StudyService/RetryTrials", request)
        return [int(trial.number) for trial in answer.trials]

    def annotate(self, attributes: "Mapping[str, Any] | None" = None, *, trial: "int | None" = None,
                 note: "str | None" = None, tags: "Iterable[str]" = (),
                 untags: "Iterable[str]" = ()) -> None:
        """Sets attributes of the study, or of one trial: JSON values by key (None removes the key),
        a note ("" removes it), tags to add and to remove."""
        request = _wire.message("AnnotateRequest")(study=self.name, number=trial, note=note,
                                                   add_tags=tags, remove_tags=untags)
        kept = {key: value for key, value in (attributes or {}).items() if value is not None}
        request.attributes.update({**dict.fromkeys(attributes or {}, ""), **texts(kept)})
        self.channel.call("StudyService/Annotate", request)

    @property
    def note(self) -> str:
        return str(noted_of(self.state())["note"])

    @property
    def tags(self) -> "list[str]":
        return list(noted_of(self.state())["tags"])

    @property
    def attributes(self) -> "dict[str, Any]":
        return dict(noted_of(self.state())["attributes"])

    def state(self) -> Any:
        """The server's message Study (proto/hpo/v1/study.proto), with the counts of its trials."""
        request = _wire.message("GetStudyRequest")(name=self.name)
        return self.channel.call("StudyService/GetStudy", request).study

    def best_trials(self, count: int = 0) -> "list[TrialRecord]":
        """The best `count` trials in order; 0: the best one, of several objectives the Pareto front."""
        request = _wire.message("ListBestTrialsRequest")(study=self.name, count=count)
        answer = self.channel.call("StudyService/ListBestTrials", request)
        return [record_of(trial) for trial in answer.trials]

    @property
    def best(self) -> TrialRecord:
        """The best completed trial of a study with one objective. Raises HpoError if none completed."""
        found = self.best_trials()
        if not found:
            state = self.state()
            raise_if_failed(state)
            counts = state.counts
            raise HpoError(f"study {self.name}: no trial completed ({counts.pruned} pruned, "
                           f"{counts.failed} failed, {counts.cancelled} cancelled)")
        return found[0]

    @property
    def trials(self) -> "list[TrialRecord]":
        return list(self._trials())

    def _trials(self) -> "Iterator[TrialRecord]":
        token = ""
        while True:
            request = _wire.message("ListTrialsRequest")(study=self.name, page_size=_PAGE,
                                                         page_token=token)
            answer = self.channel.call("StudyService/ListTrials", request)
            yield from map(record_of, answer.trials)
            token = answer.next_page_token
            if not token:
                return

    def dataframe(self) -> Any:
        """A pandas DataFrame with a row for each trial: number, state, value, why, times, then
        parameters and metrics."""
        try:
            pandas: Any = importlib.import_module("pandas")
        except ImportError:
            raise HpoError("study.dataframe() needs pandas: pip install pandas") from None
        rows = [{"number": one.number, "state": one.state, "value": one.value, "why": one.why,
                 "started": one.started, "ended": one.ended,
                 **{f"params_{key}": value for key, value in one.params.items()},
                 **{f"metrics_{key}": value for key, value in one.metrics.items()}}
                for one in self._trials()]
        return pandas.DataFrame(rows)

    def watch(self) -> "Iterator[tuple[str, TrialRecord]]":
        """Yields each change from now on as ("queued", trial), ("started", trial), ..."""
        request = _wire.message("WatchStudyRequest")(study=self.name)
        for answer in self.channel.stream("StudyService/WatchStudy", request):
            if answer.WhichOneof("kind") == "change":
                yield answer.change.kind, record_of(answer.change.trial)

    def stop(self, running_trials: bool = False) -> None:
        """Starts no more trials; `running_trials`: also ends those that run."""
        request = _wire.message("OrderStudyRequest")(
            name=self.name, order=_wire.number("StudyOrder", "STUDY_ORDER_STOP"),
            stop_running_trials=running_trials)
        self.channel.call("StudyService/OrderStudy", request)

    def edit(self, space: Space, *, dry_run: bool = False) -> Edited:
        """Gives parameters other ranges or choices, of the same kind as before. Trials outside the
        new ones are kept, but those that are still queued and never ran are cancelled. `dry_run`:
        only returns what would change."""
        answer = self.channel.call("StudyService/EditStudy", edit_request(self.name, space, dry_run))
        return edited_of(answer)

    def delete(self, file: "str | os.PathLike[str] | None" = None, *,
               no_archive: bool = False) -> "pathlib.Path | None":
        """Deletes the study, after it has written an archive of it to a new file (default:
        NAME.hpo-study in this folder), from which hpo.restore restores it. Returns the file. Nothing
        is deleted where the file cannot be written, a trial runs or the study changes meanwhile."""
        if no_archive and file is not None:
            raise InvalidInput(f"study.delete: expected a file or no_archive=True, got both: {file}")
        from . import archive

        path = None if no_archive else pathlib.Path(file or self.name + archive.SUFFIX)
        sha256 = archive.write(self.channel, self.name, path) if path else ""
        request = _wire.message("DeleteStudyRequest")(name=self.name, archive_sha256=sha256)
        try:
            self.channel.call("StudyService/DeleteStudy", request)
        except ServerError as error:
            if path and error.code == "FAILED_PRECONDITION":
                path.unlink()  # It is no archive of something that is gone.
            raise
        return path


def next_lease(study: Study, session: Session, wait_s: float, stop: "threading.Event | None" = None,
               waits: "Callable[[str], None] | None" = None) -> "tuple[Lease | None, Any]":
    """A trial. None where the study has ended, nothing that could run is left (the answer's `blocked`), the
    time is over, or `stop` is set; then with the last answer. `waits`: hears what is waited for."""
    deadline = time.monotonic() + wait_s
    answer = None
    while not (stop is not None and stop.is_set()):
        left = deadline - time.monotonic()
        lease, answer = session.acquire(max(0.0, min(WAIT_S, left)))
        if lease is not None or answer.all_studies_finished or answer.blocked or left <= WAIT_S:
            return lease, answer
        if waits is not None:
            waits(str(answer.waiting_for))
        study.release_dead()
    return None, answer


def raise_if_failed(state: Any) -> None:
    if state.failure:
        raise StudyFailed(f"study {state.name}: {state.failure}")
