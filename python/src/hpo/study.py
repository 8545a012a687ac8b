"""A study by ask and tell: the loop is yours, the search and the memory of it are the server's."""

import contextlib
import os
import pathlib
import socket
import threading
import time
import uuid
import warnings
from typing import Any, Callable, Generator, Iterable, Mapping, Sequence, Type, Union, cast

from . import _outcomes, _wire, archive, checks, options
from ._advice import in_python
from ._keywords import checked
from ._presence import release_dead
from ._session import Device, Lease, Session
from .connection import Connection
from .custom import Judge, Pruner, Sampler
from .errors import EndedEarly, HpoError, InvalidInput, ServerError, StudyFailed
from .findings import Findings
from .options import BudgetOptions, MemoryLike, PrunerLike, SamplerLike
from .ranges import Edited, edit_request, edited_of
from .records import Reader, Report, TrialRecord
from .space import Domain, Space, domains_of, entry_of, objects_of, study_file
from .trainer import metrics_of, outcome_of
from .trial import Train, Trial
from .values import Objects, plain, plain_tree, whole

WAIT_S = 2.0  # of one call
_LOOK_S = 2.0  # between looks for dead processes
_PROPOSE_S = 0.1  # between looks for a place for a sampler's proposal
_SPACE_USED_UP = "every configuration of the space has been tried"  # as sampler/factory/termination.cc says it
Result = Union[float, Sequence[float], Mapping[str, float], Exception, None]
Callback = Callable[["Study", TrialRecord], Any]


def job_of(lease: Lease, device: Device, checkpoints: "pathlib.Path | None", objectives: "Sequence[str]",
           space: "Mapping[str, Any]") -> "dict[str, Any]":
    """The trainer protocol's job, as far as a function needs one. `space`: Study.entries()."""
    given = lease.assignment
    return {"type": "job", "study": given.study, "trial": given.trial, "attempt": given.attempt,
            "params": _wire.params_of(given.params), "objective": {"metric": given.objective.metric},
            "objectives": list(objectives), "space": space,
            "device": device.kind, "limit_bytes": given.limit_bytes,
            "seed": given.seed, "policy": given.memory_policy, "epochs": given.epochs,
            "checkpoint_dir": f"{checkpoints}/{given.trial}" if checkpoints else ""}


class SessionSink:
    """A trial of this process: its words go straight to the server. In another process, to which it was
    pickled, they go there by the session of this one."""

    def __init__(self, session: Session, lease: Lease) -> None:
        self.session = session
        self.lease = lease

    def measurement(self, step: int, epoch: float, metrics: "Mapping[str, Any]") -> None:
        self.session.report(self.lease, step, epoch, dict(metrics))

    def stage(self, name: str, memory: "Mapping[str, Any]") -> None:
        pass  # A worker's records; the peak comes with the trial's end.

    def attributes(self, noted: "Mapping[str, Any]") -> None:
        self.session.note(self.lease, checks.attributes(noted))

    def stop_reason(self) -> str:
        return self.lease.stop

    def __reduce__(self) -> "tuple[Any, ...]":
        return _elsewhere, self.session.hand_over(self.lease)


def _elsewhere(address: str, session: str, assignment: bytes) -> SessionSink:
    from ._handover import borrowed  # what only another process needs is imported by it

    return SessionSink(*borrowed(address, session, assignment))


class Study(Findings):
    """Opens the study `name`. Where a space is given, creates it if it does not exist yet."""

    @checked
    def __init__(self, name: str = "study", space: "Space | None" = None, *,
                 direction: str = "minimize", metric: str = "value",
                 objectives: "Mapping[str, str] | None" = None, trials: "int | None" = None,
                 target: "float | None" = None, budget: "BudgetOptions | None" = None,
                 sampler: SamplerLike = None, seed: "int | None" = None, pruner: PrunerLike = None,
                 memory: MemoryLike = None, plan: bool = False,
                 constraints: "Sequence[Mapping[str, Any]] | None" = None,
                 warm_start: "Sequence[str] | None" = None,
                 storage: "str | os.PathLike[str] | None" = None, server: "str | None" = None,
                 device: "Device | None" = None) -> None:
        """`space`: what is searched, by the parameters' names: hpo.uniform, hpo.log, hpo.int, a list of choices
        or a range. None opens a study that is there. `metric`, `direction`: of the one objective, else
        `objectives`: the direction of each metric, {"loss": "minimize", "seconds": "minimize"}.

        The search ends with the first of `trials`, how many may end, `target`, a value of the objective, and
        what else `budget` says. `sampler`: a type such as "tpe", a dict of the study file's keys or an
        hpo.Sampler of your own; `seed`: of its proposals. `pruner`: likewise, or an hpo.Pruner.
        `constraints`, `warm_start`: as in the study file (docs/study-file.md).

        `memory`: what one trial may use at most ("24GiB"), or a dict such as {"limit": "24GiB",
        "relevant": ["batch"]}, which names the parameters that memory depends on. `plan`: batches run in parts
        that fit (hpo.torch, hpo.hf). `device`: what the trials of ask() run on.

        `storage`: a folder that keeps the study, also for several processes and notebooks at once; a server runs
        on it while one of them has it open. `server`: the address of a running hpo-server that keeps it
        instead, or its join string where it runs on another machine. With neither, the study is in a temporary folder, deleted on close. Close it, or use it in a
        `with` statement."""
        if not isinstance(cast(object, name), str):
            raise InvalidInput(f"name: expected a text, got {name!r:.200}" + (
                "; the space comes after the name: hpo.Study(\"study\", space)" if isinstance(name, Mapping) else ""))
        self.plan = plan
        limit, memory_section = options.memory_section(memory)
        given = device or Device()
        self.device = Device(given.kind, given.name, given.uuid, given.total_bytes or limit,
                             limit or given.capacity_bytes, given.environment)
        self._sampler = sampler if isinstance(sampler, Sampler) else None
        own_pruner = pruner if isinstance(pruner, Pruner) else None
        self._judge = Judge(own_pruner, self) if own_pruner else None
        sections: "dict[str, Any]" = {
            "sampler": options.section(None if self._sampler else sampler, "sampler"),
            "pruner": {"type": "none"} if own_pruner else options.section(pruner, "pruner"),
            "budget": options.budget_section(budget, trials, target), "memory": memory_section,
            "constraints": [plain_tree(one) for one in constraints or ()], "warm_start": list(warm_start or ())}
        if seed is not None:
            sections["sampler"] = {**sections["sampler"], "seed": whole(seed, "seed")}
        self._domains = None if space is None else domains_of(space)
        self._entries: "dict[str, Any] | None" = None
        goals = objectives or {metric: direction}
        file = "" if self._domains is None else self._file(name, self._domains, goals, sections)
        with contextlib.ExitStack() as cleanup:
            self._connection = cleanup.enter_context(Connection(storage, server))
            self.channel, self.folder = self._connection.channel, self._connection.folder
            self._lock, self._proposing = threading.Lock(), threading.Lock()
            self._looked_at = -_LOOK_S
            self.release_dead()
            state = self._open(name, file)
            self.name = str(state.name)
            self._cleanup = cleanup.pop_all()
        self._reader = Reader([str(one.metric) for one in state.objectives], objects_of(self._domains or {}),
                              self._message)
        self._checkpoints = self.folder / "checkpoints" / self.name if self.folder else None
        self.was_stopped_here = False
        self._session: "Session | None" = None
        self._asked_file: Any = None
        self._asked: "dict[int, Lease]" = {}

    def _file(self, name: str, space: "Mapping[str, Domain]", objectives: "Mapping[str, str]",
              sections: "dict[str, Any]") -> str:
        for metric, way in objectives.items():
            if way not in ("minimize", "maximize"):
                raise InvalidInput(f"direction of {metric}: expected \"minimize\" or \"maximize\", "
                                   f"got {way!r}")
        policy = "plan" if self.plan else "strict"
        sections["memory"].setdefault("policy", policy if self.device.capacity_bytes > 0 else "off")
        return study_file(name, space, objectives, **sections)

    def _open(self, name: str, file: str) -> Any:
        if not file:
            request = _wire.message("GetStudyRequest")(name=name)
            return self.channel.call("StudyService/GetStudy", request).study
        request = _wire.message("CreateStudyRequest")(yaml=file, origin=name)
        return self.channel.call("StudyService/CreateStudy", request).study

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
        if self._asked_file is not None:
            self._asked_file.close()
            self._asked_file = None
        self._cleanup.close()

    def session(self, device: "Device | None" = None) -> Session:
        """A worker of this study, for what runs its trials itself. Its name is like no other's: of
        containers, each has a process 1, and they often have one host name."""
        host = "".join(c if c.isalnum() or c in "-." else "-" for c in socket.gethostname())[:30]
        session = Session(self.channel, self.name, device or self.device,
                          f"python-{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}", self.plan, self.folder)
        session.judge = self._judge
        return session

    def release_dead(self) -> None:
        """Has the trials of processes that used the storage folder and are dead queued again."""
        if self.folder is not None and time.monotonic() - self._looked_at > _LOOK_S:
            self._looked_at = time.monotonic()
            release_dead(self.folder, self.channel)

    def entries(self) -> "dict[str, Any]":
        """The space as a study file has it, by the parameters' names."""
        entries = self._entries
        if entries is None:
            entries = self._entries = {name: entry_of(domain) for name, domain in self.space.items()}
        return entries

    def given(self, params: "Mapping[str, Any]") -> "dict[str, Any]":
        """Parameters as a trial gets them, with the objects of the space's choices in place of their labels."""
        return self._reader.objects.given(params)

    @property
    def objects(self) -> Objects:
        """The objects of the space's choices that are no scalars."""
        return self._reader.objects

    def _own_session(self) -> Session:
        with self._lock:
            if self._session is None:
                self._session = self.session()
            return self._session

    def ask(self, timeout: float = 0.0) -> "Trial | None":
        """A configuration to try. None: there was none within `timeout` seconds; `finished` says
        whether one may come later, and `waiting_for` what is waited for. Safe from any thread."""
        session = self._own_session()
        lease, answer = next_lease(self, session, timeout)
        if lease is None:
            if answer is not None and answer.all_studies_finished:
                state = self.state()
                raise_if_failed(state)
                warn_if_used_up(state, stacklevel=3)
            return None
        self._asked[lease.assignment.trial] = lease
        if self.folder is not None:
            self._note_asked(session, lease, self.folder)
        return Trial(job_of(lease, self.device, self._checkpoints, self._reader.objectives, self.entries()),
                     SessionSink(session, lease), self._reader.objects)

    def _note_asked(self, session: Session, lease: Lease, folder: pathlib.Path) -> None:
        """For tell() by the trial's number in another process."""
        with self._lock:
            if self._asked_file is None:
                from ._handover import Asked  # what only ask() needs is imported by it

                self._asked_file = Asked(folder, session.worker)
        self._asked_file.note(lease, list(self._asked.values()))

    def untold(self) -> str:
        """Which trials this process has asked for and not told, where nothing else of the study runs or waits, and
        no other thread of this process is there to tell them; empty: it is otherwise."""
        asked = sorted(self._asked)
        if not asked or any(not thread.daemon and not thread.name.startswith("hpo-") and
                            thread is not threading.main_thread() for thread in threading.enumerate()):
            return ""
        counts = self.state().counts
        if counts.queued or counts.running != len(asked):
            return ""
        named = f"trial {asked[0]} was" if len(asked) == 1 else f"trials {', '.join(map(str, asked[:5]))} were"
        return (f"{named} asked for by this process and never told; study.tell({asked[0]}, value) ends it, or "
                "study.close() gives it back")

    def tell(self, trial: "Trial | int", result: Result) -> str:
        """Tells how a trial ended: the objective's value (several: a list in the study's order), a dict of all
        metrics, or the exception that was raised (from an OutOfMemory, or that of a framework, the sampler
        learns the limit). None is only for a trial that should_stop. Returns the trial's new state.

        A trial that another process has asked for is told by the Trial, which can be pickled, or in the same
        storage folder by its number. While that process lives nobody else gets the trial; when it ends, the
        trial waits again, and can still be told by its number until somebody else gets it."""
        trial = plain(trial)
        number = trial if isinstance(trial, int) else trial.number
        session, lease = self._lease_of(number, trial)
        if isinstance(trial, int):
            job = job_of(lease, self.device, None, self._reader.objectives, self.entries())
            trial = Trial(job, SessionSink(session, lease), self._reader.objects)
        if not isinstance(result, Exception) and not (result is None and trial.should_stop()):
            try:
                metrics_of(result, lease.assignment.objective.metric, self._reader.objectives)
            except TypeError as error:
                raise InvalidInput(f"trial {number}: "
                                   f"{str(error).replace('the function returned', 'got')}") from None

        def told(_: Trial) -> Any:
            if isinstance(result, Exception):
                raise result
            return result

        end = outcome_of(told, trial)
        self._asked.pop(number, None)
        lease.is_told = True
        if end is None:
            session.release(lease, lease.stop)
            return "queued"
        used = _outcomes.memory({**trial.memory, "live_peak_bytes": trial.used_bytes},
                                trial.limit_bytes)
        return session.finish(lease, _outcomes.outcome(end), used, trial.final_plan)

    def _lease_of(self, number: int, trial: "Trial | int") -> "tuple[Session, Lease]":
        lease = self._asked.get(number)
        if lease is not None and self._session is not None:
            return self._session, lease
        state = _wire.name("TrialState", self._message(number).state)
        if state == "queued":
            return self._taken(number)
        if state != "running":
            raise InvalidInput(f"trial {number} was told already: it is {state}")
        sink = None if isinstance(trial, int) else trial.sink
        if isinstance(sink, SessionSink) and sink.session.is_borrowed:
            return sink.session, sink.lease
        if self.folder is not None:
            from ._handover import find  # what only another process needs is imported by it

            found = find(self.folder, self.name, number)
            if found is not None:
                return self._own_session(), found
        raise InvalidInput(f"trial {number} runs elsewhere: expected one that an ask() returned, here or in another "
                           "process of this storage folder; of a server= tell the Trial itself, which can be pickled")

    def _taken(self, number: int) -> "tuple[Session, Lease]":
        """Of a trial that waits, as after the process that had asked for it ended."""
        session = self._own_session()
        others: "list[Lease]" = []
        try:
            for _ in range(int(self.state().counts.queued)):
                lease, _ = session.acquire(0.0)
                if lease is None:
                    break
                if lease.assignment.trial == number:
                    return session, lease
                others.append(lease)
        finally:
            for lease in others:
                session.release(lease, "another trial was looked for")
        raise InvalidInput(f"trial {number} waits, and cannot be taken now: {self.waiting_for}")

    def enqueue(self, params: "Mapping[str, Any]") -> int:
        """Queues a trial with these parameters as the next one; the sampler chooses those that are
        left out. Returns the trial's number."""
        request = _wire.message("EnqueueTrialRequest")(study=self.name)
        self._fill(request.params, params)
        return int(self.channel.call("StudyService/EnqueueTrial", request).trial.number)

    def _fill(self, packed: Any, params: "Mapping[str, Any]") -> None:
        for key, value in params.items():
            packed[checks.name(key, "a parameter")].CopyFrom(_wire.pack(self._reader.objects.kept(key, value)))

    @checked
    def add_trial(self, params: "Mapping[str, Any]", value: "float | Sequence[float] | None" = None, *,
                  metrics: "Mapping[str, float] | None" = None, state: str = "completed", error: str = "",
                  reports: "Iterable[tuple[int, float]]" = (), attributes: "Mapping[str, Any] | None" = None,
                  counts: bool = False) -> int:
        """Adds a trial that ran elsewhere, from which the sampler learns: its `value`, of several objectives a
        list, or all `metrics`; `state` "completed", "pruned" or "failed", with the `error`; `reports`:
        (step, value) of the first objective. `counts`: whether it uses a trial of the budget. Returns its number."""
        from .imported import add, values_of  # what only this needs is imported by it

        told = {} if value is None else values_of(value, self._reader.objectives)
        told.update(metrics or {})
        request = _wire.message("ImportTrialsRequest")(study=self.name, count_against_budget=counts)
        one = request.trials.add(origin=f"python:{uuid.uuid4().hex}")
        self._fill(one.params, params)
        add(one, state, told, self._reader.objectives, error, reports, checks.attributes(attributes or {}))
        self.channel.send("StudyService/ImportTrials", iter([request]), type(request), _wire.CALL_S)
        newest = next((found for found in self.messages(newest=100) if found.origin == one.origin), None)
        return int(newest.number) if newest is not None else -1

    @checked
    def optimize(self, train: Train, *, trials: "int | None" = None, timeout: "float | None" = None,
                 parallel: "int | None" = None, isolate: bool = True, verbose: bool = True,
                 callbacks: "Sequence[Callback]" = (), catch: "Sequence[Type[BaseException]] | None" = None) -> None:
        """Runs `train(trial)` until the study ends, at most `trials` more trials, of which none starts after
        `timeout` seconds. The other keywords are those of hpo.minimize."""
        from . import search

        search.run(self, train, trials, timeout, parallel, isolate, verbose, callbacks, catch)

    def retry(self, *numbers: int) -> "list[int]":
        """Queues the configurations of these trials again, which failed or ran out of memory;
        without numbers, of all such trials. A configuration that is queued, runs or has completed
        since is not queued again. Returns the numbers of the new trials."""
        request = _wire.message("RetryTrialsRequest")(
            study=self.name, numbers=numbers, all_failed=not numbers, request_id=uuid.uuid4().hex)
        answer = self.channel.call("StudyService/RetryTrials", request)
        return [int(trial.number) for trial in answer.trials]

    def annotate(self, attributes: "Mapping[str, Any] | None" = None, *, trial: "int | None" = None,
                 note: "str | None" = None, tags: "Sequence[str]" = (),
                 untags: "Sequence[str]" = ()) -> None:
        """Sets attributes of the study, or of one trial: JSON values by key (None removes the key),
        a note ("" removes it), tags to add and to remove."""
        for one, what in ((note or "", "note"), *((tag, "tag") for tag in (*tags, *untags))):
            checks.text(one, what)
        request = _wire.message("AnnotateRequest")(study=self.name, number=trial, note=note,
                                                   add_tags=tags, remove_tags=untags)
        kept = {key: value for key, value in (attributes or {}).items() if value is not None}
        request.attributes.update({**dict.fromkeys(attributes or {}, ""), **checks.attributes(kept)})
        self.channel.call("StudyService/Annotate", request)

    def stop(self, running_trials: bool = False) -> None:
        """Starts no more trials; `running_trials`: also ends those that run."""
        self.was_stopped_here = True
        self._order("STUDY_ORDER_STOP", running_trials)

    def resume(self) -> None:
        """Has a study that was stopped, or that failures ended, go on."""
        self._order("STUDY_ORDER_RUN", False)

    @checked
    def extend(self, trials: int) -> None:
        """Gives the study so many more trials: on top of its budget, or of what it has used where that is more."""
        if isinstance(trials, bool) or trials < 1:
            raise InvalidInput(f"study.extend: expected a number of trials from 1, got {trials!r}")
        self.update(add_trials=trials)

    def update(self, **changes: Any) -> None:
        """Changes the budget, by fields of the server's UpdateStudyRequest (proto/hpo/v1/study.proto)."""
        request = _wire.message("UpdateStudyRequest")(name=self.name, request_id=uuid.uuid4().hex, **changes)
        self.channel.call("StudyService/UpdateStudy", request)

    def _order(self, order: str, running_trials: bool) -> None:
        request = _wire.message("OrderStudyRequest")(
            name=self.name, order=_wire.number("StudyOrder", order), stop_running_trials=running_trials)
        self.channel.call("StudyService/OrderStudy", request)

    def edit(self, space: Space, *, dry_run: bool = False) -> Edited:
        """Gives parameters other ranges or choices, of the same kind as before. Trials outside the
        new ones are kept, but those that are still queued and never ran are cancelled. `dry_run`:
        only returns what would change."""
        domains = domains_of(space)
        answer = self.channel.call("StudyService/EditStudy", edit_request(self.name, domains, dry_run))
        if not dry_run:
            self._domains = self._entries = None
            self._reader.objects = self._reader.objects.added({name: one.objects for name, one in domains.items()})
        return edited_of(answer)

    def delete(self, file: "str | os.PathLike[str] | None" = None, *,
               no_archive: bool = False) -> "pathlib.Path | None":
        """Deletes the study, after it has written an archive of it to a new file (default:
        NAME.hpo-study in this folder), from which hpo.restore restores it. Returns the file. Nothing
        is deleted where the file cannot be written, a trial runs or the study changes meanwhile."""
        if no_archive and file is not None:
            raise InvalidInput(f"study.delete: expected a file or no_archive=True, got both: {file}")
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

    def reports_of_ended(self) -> "dict[int, Sequence[Report]]":
        """The intermediate values of all trials that completed or were pruned, by number."""
        return {int(one.number): tuple(map(self._reader.report, one.measurements))
                for one in self.messages(("completed", "pruned"), full=True)}

    @contextlib.contextmanager
    def proposed(self) -> "Generator[bool, None, None]":
        """Holds off other threads while a trial is taken that a sampler of one's own proposes; False: the study
        has none."""
        if self._sampler is None:
            yield False
            return
        with self._proposing:
            state = self.state()
            runs = _wire.name("StudyState", state.state) == "active"
            if not state.counts.queued and _has_trials_left(state) and runs:
                suggested: Any = self._sampler.suggest(self)
                if not isinstance(suggested, Mapping):
                    raise InvalidInput(f"{type(self._sampler).__name__}.suggest: expected a dict of parameters, got "
                                       f"{suggested!r}")
                self.enqueue(cast("Mapping[str, Any]", suggested))
            yield True


def next_lease(study: Study, session: Session, wait_s: float, stop: "threading.Event | None" = None,
               waits: "Callable[[str], None] | None" = None) -> "tuple[Lease | None, Any]":
    """A trial. None where the study has ended, nothing that could run is left (the answer's `blocked`), this worker
    gets no more (`drained`), the time is over, or `stop` is set; then with the last answer. `waits`: hears what is waited for."""
    deadline = time.monotonic() + wait_s
    answer = None
    while not (stop is not None and stop.is_set()):
        with study.proposed() as is_own:
            left = deadline - time.monotonic()
            lease, answer = session.acquire(0.0 if is_own else max(0.0, min(WAIT_S, left)))
        is_over = answer.all_studies_finished or answer.blocked or answer.drained
        if lease is not None or is_over or left <= (0.0 if is_own else WAIT_S):
            return lease, answer
        if waits is not None:
            waits(str(answer.waiting_for))
        if is_own:
            (stop or threading.Event()).wait(_PROPOSE_S)
        study.release_dead()
    return None, answer


def _has_trials_left(state: Any) -> bool:
    """Whether the budget has more trials than there are."""
    counts = state.counts
    used = counts.queued + counts.running + counts.completed + counts.pruned + counts.failed + counts.cancelled
    return not state.budget.HasField("trials") or used < state.budget.trials


def warn_if_used_up(state: Any, stacklevel: int, study: str = "study") -> None:
    """Where trials have had every configuration, and the budget is not used. `study`: as in_python's."""
    if _has_trials_left(state) and str(state.waiting_for).startswith(_SPACE_USED_UP):
        why = in_python(str(state.waiting_for), study)
        warnings.warn(f"study {state.name} ended before its budget was used: {why}", EndedEarly,
                      stacklevel=stacklevel)


def raise_if_failed(state: Any) -> None:
    if state.failure:
        raise StudyFailed(f"study {state.name}: {state.failure}")
