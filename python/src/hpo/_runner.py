"""Runs a search's trials: a process and a thread for each slot, or this process."""

import contextlib
import pathlib
import shutil
import signal
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from . import _outcomes, _wire, checks
from ._advice import in_python
from ._pickled import dumps, why_not_fork
from ._processes import Child, Forker, num_oom_kills, resident_bytes, signal_name
from ._progress import Progress, counts_of, view_of
from ._session import Device, Lease, LeaseLost, Session
from ._slot import SLOW_START_S, is_loading
from .errors import Blocked, EndedEarly, InvalidInput, StudyFailed
from .sizes import readable
from .study import SessionSink, Study, TrialRecord, job_of, next_lease, raise_if_failed, warn_if_used_up
from .trainer import PRUNED, memory_used, outcome_of
from .trial import Train, Trial

STOP_GRACE_S = 30.0  # a function that is to stop and does not ask is ended then
_LEAST_GRACE_S = 5.0  # and of a trial that is out of time after a tenth of that
START_S = 120.0  # a process that has not reached the function then is ended
_WATCH_S = 0.02
_UNTOLD_S = 20.0  # trials that this process asked for and nobody tells are waited for
_FOREVER_S = 1e9
_NO_LIMIT = -1


@dataclass(frozen=True)
class Rules:
    """Of one run of a study. `trials`: how many may start. `timeout_s`: none starts later. `callbacks`: called with
    the study and each trial that ended. `catch`: names of exceptions that fail their trial alone; None: all."""

    trials: "int | None" = None
    timeout_s: "float | None" = None
    callbacks: "Sequence[Callable[[Study, TrialRecord], Any]]" = ()
    catch: "frozenset[str] | None" = None


def search(train: Train, slots: "list[Device]", isolate: bool, verbose: bool,
           open_study: "Callable[[], Study]", rules: Rules, later: str) -> TrialRecord:
    """Runs a study to its end; its best trial. `slots`: the device of each trial that runs at a time. `later`: an
    expression that gives the study when this is over; empty: it is gone then."""
    with contextlib.ExitStack() as cleanup:
        forkers = _forkers(train, len(slots), cleanup) if isolate else []
        study = cleanup.enter_context(open_study())
        _run(study, train, slots, forkers, isolate, verbose, rules, later)
        return study.best


def run(study: Study, train: Train, slots: "list[Device]", isolate: bool, verbose: bool, rules: Rules) -> None:
    """As search, of a study that is open."""
    with contextlib.ExitStack() as cleanup:
        forkers = _forkers(train, len(slots), cleanup) if isolate else []
        runner = _run(study, train, slots, forkers, isolate, verbose, rules, "study")
    if not runner.num_started and not runner.blocked:
        warnings.warn(f"study {study.name}: no trial has run: {why_ended(study)}", EndedEarly, stacklevel=6)


def _is_stopped(state: Any) -> bool:
    return bool(state.order == _wire.number("StudyOrder", "STUDY_ORDER_STOP"))


def why_ended(study: Study) -> str:
    """Why a study that has ended runs nothing more, and how it goes on."""
    state = study.state()
    if _is_stopped(state):
        return "it was stopped; study.resume() has it go on"
    return (in_python(str(state.waiting_for), "study") or
            "its budget is used up; study.extend(10) gives it ten more trials")


def _run(study: Study, train: Train, slots: "list[Device]", forkers: "list[Forker]", isolate: bool, verbose: bool,
         rules: Rules, later: str) -> "_Runner":
    runner = _Runner(study, verbose, rules)
    try:
        if isolate:
            _in_threads(runner, forkers, slots)
        else:
            _in_this_process(runner, train)
    finally:
        runner.progress.close()
    _check_end(study, runner, later)
    return runner


def _forkers(train: Train, count: int, cleanup: contextlib.ExitStack) -> "list[Forker]":
    """One for each slot. They are made before the study is opened: its threads must not be forked."""
    if is_loading():
        raise InvalidInput("a search begins while a module is imported by the interpreter that runs a search's trials: put "
                           "the call under if __name__ == \"__main__\":")
    why = why_not_fork()
    pickled = dumps(train, why) if why else None
    forkers: "list[Forker]" = []
    for _ in range(count):
        forkers.append(Forker(train, pickled))
        cleanup.callback(forkers[-1].close)
    return forkers


def _check_end(study: Study, runner: "_Runner", later: str) -> None:
    """Where the search ended early since nothing is left that can run, says so."""
    state = study.state()
    raise_if_failed(state)
    if runner.blocked:
        text = f"study {study.name} ended before its budget was used: {runner.blocked}"
        if not state.counts.completed:
            raise Blocked(text)
        warnings.warn(text, EndedEarly, stacklevel=7)
    elif not study.was_stopped_here and _is_stopped(state):
        why = in_python(str(state.waiting_for), later)
        warnings.warn(f"study {study.name} was stopped before its budget was used: {why}", EndedEarly, stacklevel=7)
    warn_if_used_up(state, stacklevel=8, study=later)
    if state.counts.completed and state.best_violation > 0:
        warnings.warn(f"study {study.name}: no trial meets the constraints; the best one is the nearest to them",
                      UserWarning, stacklevel=7)


def _in_threads(runner: "_Runner", forkers: "list[Forker]", slots: "list[Device]") -> None:
    """A thread per slot. An interrupt ends the trials, which are queued again, and is passed on."""
    threads = [threading.Thread(target=runner.serve, args=(forker, device), name=f"hpo-slot-{index}")
               for index, (forker, device) in enumerate(zip(forkers, slots))]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            time.sleep(_WATCH_S)
            runner.progress.tick()
    finally:
        runner.stop.set()
        for thread in threads:
            thread.join()
    if runner.error is not None:
        raise runner.error


def _in_this_process(runner: "_Runner", train: Train) -> None:
    ended = threading.Event()

    def tell_what_is_waited_for() -> None:
        while not ended.wait(1.0):
            runner.progress.tick()

    teller = threading.Thread(target=tell_what_is_waited_for, name="hpo-progress", daemon=True)
    teller.start()
    try:
        runner.in_this_process(train)
    finally:
        ended.set()
        teller.join()


class _Slot:
    """What one slot does now, for people."""

    def __init__(self, forker: "Forker | None") -> None:
        self._forker = forker
        self._text = "the server starts"
        self._since = time.monotonic()
        self.runs_trial = False
        self.has_ended = False

    def does(self, text: str, runs_trial: bool = False) -> None:
        if text != self._text:
            self._text, self._since = text, time.monotonic()
        self.runs_trial = runs_trial

    def told(self) -> str:
        text = (self._forker.state if self._forker else "") or self._text
        return f"{text} ({time.monotonic() - self._since:.0f} s)"


class _Runner:
    """Runs a study's trials, in several threads."""

    def __init__(self, study: Study, verbose: bool, rules: Rules) -> None:
        self._rules = rules
        self._left = _NO_LIMIT if rules.trials is None else rules.trials
        self._deadline = time.monotonic() + (_FOREVER_S if rules.timeout_s is None else rules.timeout_s)
        self._lock = threading.Lock()  # of what callbacks see, too
        self.stop = threading.Event()
        self.error: "BaseException | None" = None
        self.blocked = ""  # why nothing that could run is left
        self.num_started = 0
        self._untold_since: "float | None" = None
        self._study = study
        self._slots: "list[_Slot]" = []
        state = study.state()
        self._objectives = [str(one.metric) for one in state.objectives]
        self._space = study.entries()
        self.limit_s = state.budget.trial_wall_clock.ToNanoseconds() / 1e9  # of a trial; 0: none
        shows = verbose and sys.stderr is not None  # pyright: ignore[reportUnnecessaryComparison]
        self.progress = Progress(state, view_of(counts_of(state)[1], counts_of(state)[0]) if shows else None,
                                 self._waits)
        folder = study.folder or pathlib.Path.cwd()
        self._checkpoints = folder / "checkpoints" / study.name

    def _job(self, lease: Lease, device: Device) -> "dict[str, Any]":
        return job_of(lease, device, self._checkpoints, self._objectives, self._space)

    def serve(self, forker: Forker, device: Device) -> None:
        slot = _Slot(forker)
        self._slots.append(slot)
        session = self._study.session(device)
        try:
            if not forker.load(lambda: not self.stop.is_set()):
                return
            while (lease := self._next(session, slot)) is not None:
                attempt = _Attempt(forker, session, lease, self)
                end = attempt.run(self._job(lease, device))
                self._finish(session, lease, end, attempt.used, attempt.final_plan)
        except BaseException as error:  # raised again by the thread that waits for this one
            self.error = self.error or error
            self.stop.set()
        finally:
            slot.has_ended = True
            session.close()

    def in_this_process(self, train: Train) -> None:
        slot = _Slot(None)
        self._slots.append(slot)
        session = self._study.session()
        try:
            while (lease := self._next(session, slot)) is not None:
                trial = Trial(self._job(lease, session.device), SessionSink(session, lease))
                try:
                    end = outcome_of(train, trial, catch_exit=True)
                except BaseException:
                    session.release(lease, "interrupted")
                    raise
                self._finish(session, lease, end, memory_used(trial, own_process=False),
                             trial.final_plan)
        finally:
            session.close()

    def _next(self, session: Session, slot: _Slot) -> "Lease | None":
        """None: the study has ended, or nothing that could run is left."""
        slot.does("the server looks for a configuration")
        if not self._may_start():
            return None
        lease, answer = next_lease(self._study, session, self._deadline - time.monotonic(), self.stop,
                                   lambda what: self._hears(slot, what))
        if lease is not None:
            number = lease.assignment.trial
            self.num_started += 1
            slot.does(f"trial {number} runs", runs_trial=True)
            self.progress.started(number)
        elif answer is not None and (answer.blocked or answer.drained) and not self.stop.is_set():
            self.blocked = str(answer.waiting_for)
        return lease

    def _may_start(self) -> bool:
        with self._lock:
            if self._left == 0 or time.monotonic() >= self._deadline:
                return False
            self._left -= 1
            return True

    def _take_back(self) -> None:
        """A trial that has started did not end here: it does not count."""
        with self._lock:
            self._left += 1

    def _hears(self, slot: _Slot, what: str) -> None:
        """What a slot waits for. Where that are trials of this process alone, the search ends after a while."""
        untold = self._study.untold()
        slot.does(untold or what)
        if not untold:
            self._untold_since = None
        elif self._untold_since is None:
            self._untold_since = time.monotonic()
        elif time.monotonic() > self._untold_since + _UNTOLD_S:
            self.blocked = untold
            self.stop.set()

    def _after(self, number: int, end: "dict[str, Any]", state: str) -> None:
        """What the caller wants of each trial that ended."""
        caught = self._rules.catch
        if state == "failed" and caught is not None and not caught & set(end.get("raised", ())):
            raise StudyFailed(f"study {self._study.name}: trial {number} failed by an exception that catch= does not "
                              f"have:\n{end.get('message', '')}")
        if self._rules.callbacks:
            with self._lock:
                record = self._study.trial(number)
                for callback in self._rules.callbacks:
                    callback(self._study, record)

    def _waits(self) -> "tuple[str, bool]":
        slots = [slot for slot in list(self._slots) if not slot.has_ended]
        trouble = self._study.channel.trouble()
        texts = [trouble] * bool(trouble) + ([slot.told() for slot in slots] or ["the search ends"])
        return "; ".join(dict.fromkeys(texts)), not trouble and all(slot.runs_trial for slot in slots)

    def _finish(self, session: Session, lease: Lease, end: "dict[str, Any] | None",
                used: "dict[str, int]", final_plan: "dict[str, int] | None") -> None:
        if end is None and lease.stop == "cancelled":
            end = {"kind": "cancelled"}
        if end is None:
            session.release(lease, lease.stop or "interrupted")
            self._take_back()
            self.progress.ended(lease.assignment.trial, "queued", None, _line(lease, {}, "queued"))
            return
        try:
            state = session.finish(lease, _outcomes.outcome(end),
                                   _outcomes.memory(used, lease.assignment.limit_bytes), final_plan)
        except LeaseLost:
            state = "lost"  # another attempt has it, and its checkpoints
        if state not in ("queued", "lost"):
            shutil.rmtree(self._checkpoints / str(lease.assignment.trial), ignore_errors=True)
        value = _outcomes.numbers(end.get("metrics", {})).get(lease.assignment.objective.metric)
        self.progress.ended(lease.assignment.trial, state, value, _line(lease, end, state))
        if state in ("queued", "lost"):
            self._take_back()
        else:
            self._after(lease.assignment.trial, end, state)


def _line(lease: Lease, end: "dict[str, Any]", state: str) -> str:
    """A finished trial: its value or why there is none, and its parameters."""
    metric = lease.assignment.objective.metric
    value = _outcomes.numbers(end.get("metrics", {})).get(metric)
    told = f"{metric}={value:.6g}" if value is not None else ""
    told = told or (lease.stop if lease.stop == "time limit" else "") or _outcomes.headline(end.get("error_message") or end.get("message") or "")
    params = " ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                      for key, value in _wire.params_of(lease.assignment.params).items())
    return f"trial {lease.assignment.trial:>4}  {state:<9}  {told}  {params}".rstrip()


class _Attempt:
    """A trial in its child: passes on what it says, ends it where it must end. `used`: its memory,
    once it has run; `final_plan`: by which it did."""

    def __init__(self, forker: Forker, session: Session, lease: Lease, runner: "_Runner") -> None:
        self._forker, self._session, self._lease, self._stop = forker, session, lease, runner.stop
        self._say = runner.progress.said
        self._limit_s, self._begin = runner.limit_s, time.monotonic()
        self._peak_bytes = 0
        self._end: "dict[str, Any] | None" = None
        self.used: "dict[str, int]" = {}
        self.final_plan: "dict[str, int] | None" = None
        self._last: "dict[str, Any]" = {"step": 0, "metrics": {}}
        self._killed = ""
        self._refusal = ""  # the server's
        self._told_at = 0.0

    def run(self, job: "dict[str, Any]") -> "dict[str, Any] | None":
        """The outcome as the trainer protocol says it. None: no result."""
        host_ooms = num_oom_kills()
        child = self._forker.start(self._session.device.environment,
                                   lambda: not self._stop.is_set() and not self._lease.stop)
        if child is None:
            return None
        answered = False
        try:
            child.tell(**job)
            answered = self._follow(child)
        finally:
            if not self._end:
                child.kill()
            status = self._forker.wait(child)
            child.close()
        if answered and self._end and self._end.get("exited"):
            self._end = _failed(self._end["message"], child.last_words)
        if answered:
            return self._end
        return self._without_answer(status, child.last_words, num_oom_kills() > host_ooms)

    def _follow(self, child: Child) -> bool:
        """Until the child says how its trial ended (True), ends without a word or is killed."""
        start = _Start(self._lease.assignment.trial, child.pid, self._say)
        while True:
            message = child.channel.receive(0)
            if message is None:
                child.wait_for(child.channel.socket, _WATCH_S)
                self._watch_memory(child)
                if start.is_overdue():
                    self._killed = "not started"
            elif message["type"] == "started":
                start.has_come()
            elif message["type"] in ("measurement", "attributes"):
                self._pass_on(message)
            elif message["type"] == "outcome":
                self._end, self.used = message["outcome"], message["memory"]
                self.final_plan = message.get("final_plan")
                return True
            elif message["type"] == "shutdown":
                return False
            if self._must_be_killed(child):
                child.kill()
                return False

    def _pass_on(self, message: "dict[str, Any]") -> None:
        """What the server refuses, though the trial's process did not, fails this trial alone."""
        try:
            if message["type"] == "measurement":
                self._last = message
                self._session.report(self._lease, message["step"], message["epoch"],
                                     _outcomes.numbers(message["metrics"]))
            else:
                self._session.note(self._lease, checks.attributes(message["attributes"]))
        except InvalidInput as error:
            self._killed, self._refusal = "refused", str(error)

    def _must_be_killed(self, child: Child) -> bool:
        if self._stop.is_set():
            self._killed = "interrupted"
        now = time.monotonic()
        if self._is_out_of_time():
            self._lease.stop = self._lease.stop or "time limit"
        if not self._killed and self._lease.stop and not self._told_at:
            self._told_at = now
            child.tell(type="stop", reason=self._lease.stop)
        if self._told_at and self._lease.stop != "pruned" and now > self._told_at + self._grace_s():
            self._killed = "stopped"
        if self._limit_s and now > self._begin + self._limit_s + self._grace_s():
            self._killed = self._killed or "stopped"  # whatever else it was told, and ignored
        return bool(self._killed)

    def _is_out_of_time(self) -> bool:
        return self._lease.stop == "time limit" or \
            (self._limit_s > 0 and time.monotonic() > self._begin + self._limit_s)

    def _grace_s(self) -> float:
        if self._lease.stop not in PRUNED or not self._limit_s:
            return STOP_GRACE_S
        return min(STOP_GRACE_S, max(_LEAST_GRACE_S, self._limit_s / 10))

    def _watch_memory(self, child: Child) -> None:
        limit = self._lease.assignment.limit_bytes
        if self._session.device.kind != "cpu" or not limit:
            return
        self._peak_bytes = max(self._peak_bytes, resident_bytes(child.pid))
        if self._peak_bytes > limit:
            self._killed = "memory"

    def _without_answer(self, status: int, said: str, host_oom: bool) -> "dict[str, Any] | None":
        limit = self._lease.assignment.limit_bytes
        if self._killed == "memory":
            self.used = {"live_peak_bytes": self._peak_bytes}
            return {"kind": "out_of_memory", "limit_bytes": limit, "peak_bytes": self._peak_bytes,
                    "error_message": f"the trial used {readable(self._peak_bytes)} of host memory; "
                                     f"its limit is {readable(limit)}"}
        if self._killed == "stopped" and self._lease.stop in PRUNED:
            return {"kind": "stopped_by_pruner", "step": self._last["step"], "metrics": self._last["metrics"],
                    **({"pruner": "time limit"} if self._is_out_of_time() else {})}
        if self._killed == "refused":
            return _failed(f"the server refused what the trial reported: {self._refusal}", said)
        if self._killed == "not started":
            return _failed(f"the trial's process did not start within {START_S:.0f} s", said)
        if self._killed:
            return None
        if status == -signal.SIGKILL and host_oom:
            return {"kind": "out_of_memory", "oom_kind": "HOST", "limit_bytes": limit,
                    "error_message": "the kernel killed the trial's process, since the machine had no memory left"}
        if status == -signal.SIGKILL:  # by somebody else: the trial is tried again
            return {**_failed("the trial's process was killed by SIGKILL", said), "class": "TRAINER_KILLED"}
        if status < 0:
            return _failed(f"the trial's process was killed by {signal_name(-status)}", said)
        return _failed(f"the trial's process ended with status {status} before it had a result", said)


def _failed(what: str, said: str) -> "dict[str, Any]":
    """Of a trial whose process ended by itself: it is not tried again. `said`: the last that it wrote."""
    last = said.splitlines()[-1:]
    return {"kind": "failed", "class": "INTERNAL",
            "message": "\n".join([*said.splitlines(), what + "".join(f"; the last that it wrote: {line}" for line in last)])}


class _Start:
    """Watches that a trial's process begins to run the function."""

    def __init__(self, trial: int, pid: int, say: "Callable[[str], None]") -> None:
        self._what = f"trial {trial} has not started: its process {pid} has not reached the function"
        self._say: "Callable[[str], None] | None" = say
        self._since: "float | None" = time.monotonic()

    def has_come(self) -> None:
        self._since = None

    def is_overdue(self) -> bool:
        if self._since is None:
            return False
        waited = time.monotonic() - self._since
        if waited > SLOW_START_S and self._say is not None:
            self._say(f"{self._what} for {waited:.0f} s; it is ended after {START_S:.0f} s")
            self._say = None
        return waited > START_S
