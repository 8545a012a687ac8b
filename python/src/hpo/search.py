"""minimize and maximize: a function, a space and a number of trials; all else is done here."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from . import _outcomes, _wire
from ._processes import Child, Forker, resident_bytes
from ._session import Device, Lease, LeaseLost, Session
from .errors import InvalidInput
from .sizes import num_bytes, readable
from .space import Space
from .study import SessionSink, Study, TrialRecord, job_of, next_lease, raise_if_failed
from .trainer import memory_used, outcome_of
from .trial import Train, Trial, texts

STOP_GRACE_S = 30.0  # a function that is to stop and does not ask ends then
_WATCH_S = 0.02
_FOREVER_S = 1e9


def minimize(train: Train, space: Space, *, trials: int, **options: Any) -> TrialRecord:
    """Searches for the smallest value that `train(trial)` returns. Returns the best trial.

    `metric`: the one to minimize, where train returns a dict of metrics.
    `memory`: what a trial may use of its card, or of this machine where there is no card. A trial
    that uses more is out of memory, and the sampler learns to avoid such configurations.
    `plan`: train runs its batches in parts that fit (hpo.torch, hpo.hf), so that no configuration
    is out of reach for its batch size.
    `parallel`: how many trials run at a time; default: one on each card, without a card one.
    `storage`: a folder that keeps the study; the same call continues it later.
    `server`: the address of an hpo-server that keeps it instead. `name`: of the study.
    `isolate`: run each trial in its own process (default). `verbose`: print a line for each trial
    to stderr.
    Further sections of a study file go by their names: sampler={...}, pruner={...}, budget={...}.
    `seed`: the same seed, with one trial at a time, gives the same search."""
    return _search(train, space, "minimize", trials, **options)


def maximize(train: Train, space: Space, *, trials: int, **options: Any) -> TrialRecord:
    """As minimize, for the largest value."""
    return _search(train, space, "maximize", trials, **options)


def cards() -> "list[Device]":
    """The NVIDIA cards of this machine that the process may use, by nvidia-smi. One that does not
    tell its memory, as where it is the host's, counts as none."""
    if shutil.which("nvidia-smi") is None:
        return []
    told = subprocess.run(["nvidia-smi", "--query-gpu=name,uuid,memory.total",
                           "--format=csv,noheader,nounits"], capture_output=True, text=True, check=False)
    lines = told.stdout.splitlines() if told.returncode == 0 else []
    found = [(str(index), *line.rsplit(", ", 2)) for index, line in enumerate(lines)]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    words = None if visible is None else [word.strip() for word in visible.split(",")]
    return [Device("cuda", name, uuid, int(mib) << 20, int(mib) << 20, {"CUDA_VISIBLE_DEVICES": uuid})
            for index, name, uuid, mib in found if mib.isdigit() and _is_visible(index, uuid, words)]


def _is_visible(index: str, uuid: str, words: "list[str] | None") -> bool:
    """`words` of CUDA_VISIBLE_DEVICES: indices, or the beginnings of uuids; None: it is not set."""
    return words is None or index in words or any(word and uuid.startswith(word) for word in words)


def _search(train: Train, space: Space, direction: str, trials: int, *, metric: str = "value",
            memory: "int | str | None" = None, parallel: "int | None" = None,
            storage: "str | os.PathLike[str] | None" = None, server: "str | None" = None,
            name: str = "study", isolate: bool = True, verbose: bool = True, plan: bool = False,
            **sections: Any) -> TrialRecord:
    if not callable(train):
        raise InvalidInput(f"train: expected a function of one trial, got {train!r}")
    if parallel is not None and (isinstance(parallel, bool) or parallel < 1):
        raise InvalidInput(f"parallel: expected a whole number from 1, got {parallel!r}")
    if not isolate and (parallel or 1) > 1:
        raise InvalidInput(f"parallel: expected 1 with isolate=False, got {parallel}")
    limit = num_bytes(memory, "memory") if memory is not None else 0
    devices = cards() or [Device(total_bytes=limit, capacity_bytes=limit)]
    slots = [devices[index % len(devices)] for index in range(parallel or len(devices))]
    for device in slots:
        device.capacity_bytes = min(limit or device.capacity_bytes, device.capacity_bytes)
    with contextlib.ExitStack() as cleanup:
        forkers = [Forker(train) for _ in slots[: len(slots) if isolate else 0]]
        for forker in forkers:
            cleanup.callback(forker.close)
        study = cleanup.enter_context(Study(
            name, space, direction=direction, metric=metric, trials=trials, storage=storage,
            server=server, device=slots[0], plan=plan, **sections))
        runner = _Runner(study, verbose)
        if isolate:
            _in_threads(runner, forkers, slots)
        else:
            runner.in_this_process(train)
        raise_if_failed(study.state())
        return study.best


def _in_threads(runner: "_Runner", forkers: "list[Forker]", slots: "list[Device]") -> None:
    """A thread per slot. An interrupt ends the trials, which are queued again, and is passed on."""
    threads = [threading.Thread(target=runner.serve, args=(forker, device), name=f"hpo-slot-{index}")
               for index, (forker, device) in enumerate(zip(forkers, slots))]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            time.sleep(_WATCH_S)
    finally:
        runner.stop.set()
        for thread in threads:
            thread.join()
    if runner.error is not None:
        raise runner.error


class _Runner:
    """Runs a study's trials, in several threads."""

    def __init__(self, study: Study, verbose: bool) -> None:
        self.stop = threading.Event()
        self.error: "BaseException | None" = None
        self._study = study
        self._verbose = verbose
        folder = study.folder or pathlib.Path.cwd()
        self._checkpoints = folder / "checkpoints" / study.name

    def serve(self, forker: Forker, device: Device) -> None:
        session = Session(self._study.channel, self._study.name, device,
                          f"python-{os.getpid()}-{threading.current_thread().name}",
                          self._study.plan)
        try:
            while (lease := next_lease(session, _FOREVER_S, self.stop)) is not None:
                attempt = _Attempt(forker, session, lease, self.stop)
                end = attempt.run(job_of(lease, device, self._checkpoints))
                self._finish(session, lease, end, attempt.used, attempt.final_plan)
        except BaseException as error:  # told by the thread that waits for this one
            self.error = self.error or error
            self.stop.set()
        finally:
            session.close()

    def in_this_process(self, train: Train) -> None:
        session = self._study.session()
        try:
            while (lease := next_lease(session, _FOREVER_S, self.stop)) is not None:
                trial = Trial(job_of(lease, session.device, self._checkpoints),
                              SessionSink(session, lease))
                try:
                    end = outcome_of(train, trial)
                except BaseException:
                    session.release(lease, "interrupted")
                    raise
                self._finish(session, lease, end, memory_used(trial, own_process=False),
                             trial.final_plan)
        finally:
            session.close()

    def _finish(self, session: Session, lease: Lease, end: "dict[str, Any] | None",
                used: "dict[str, int]", final_plan: "dict[str, int] | None") -> None:
        if end is None and lease.stop == "cancelled":
            end = {"kind": "cancelled"}
        if end is None:
            session.release(lease, lease.stop or "interrupted")
            return
        try:
            state = session.finish(lease, _outcomes.outcome(end),
                                   _outcomes.memory(used, lease.assignment.limit_bytes), final_plan)
        except LeaseLost:
            state = "lost"  # another attempt has it, and its checkpoints
        if state not in ("queued", "lost"):
            shutil.rmtree(self._checkpoints / str(lease.assignment.trial), ignore_errors=True)
        if self._verbose:
            print(_line(lease, end, state), file=sys.stderr, flush=True)


def _line(lease: Lease, end: "dict[str, Any]", state: str) -> str:
    """A finished trial: its value or why there is none, and its parameters."""
    metric = lease.assignment.objective.metric
    value = end.get("metrics", {}).get(metric)
    told = f"{metric}={value:.6g}" if value is not None else ""
    why = end.get("error_message") or (end.get("message") or "").strip().splitlines()[-1:]
    told = told or (why if isinstance(why, str) else "".join(why))
    params = " ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                      for key, value in _wire.params_of(lease.assignment.params).items())
    return f"trial {lease.assignment.trial:>4}  {state:<9}  {told}  {params}".rstrip()


def _signal_name(number: int) -> str:
    """SIGSEGV, ...; of a real-time signal its number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Attempt:
    """A trial in its child: passes on what it says, ends it where it must end. `used`: its memory,
    once it has run; `final_plan`: by which it did."""

    def __init__(self, forker: Forker, session: Session, lease: Lease, stop: threading.Event) -> None:
        self._forker, self._session, self._lease, self._stop = forker, session, lease, stop
        self._peak_bytes = 0
        self._end: "dict[str, Any] | None" = None
        self.used: "dict[str, int]" = {}
        self.final_plan: "dict[str, int] | None" = None
        self._last: "dict[str, Any]" = {"step": 0, "metrics": {}}
        self._killed = ""

    def run(self, job: "dict[str, Any]") -> "dict[str, Any] | None":
        """The outcome as the trainer protocol says it. None: no result."""
        child = self._forker.start(self._session.device.environment)
        try:
            child.channel.send(**job)
            answered = self._follow(child)
        except (BrokenPipeError, ConnectionResetError):
            answered = False
        finally:
            if not self._end:
                child.kill()
            status = self._forker.wait()
            child.channel.socket.close()
        return self._end if answered else self._without_answer(status)

    def _follow(self, child: Child) -> bool:
        """Until the child says how its trial ended (True), ends without a word or is killed."""
        told_at = 0.0
        while True:
            message = child.channel.receive(_WATCH_S)
            if message is None:
                self._watch_memory(child)
            elif message["type"] == "measurement":
                self._last = message
                self._session.report(self._lease, message["step"], message["epoch"],
                                     _outcomes.numbers(message["metrics"]))
            elif message["type"] == "attributes":
                self._session.note(self._lease, texts(message["attributes"]))
            elif message["type"] == "outcome":
                self._end, self.used = message["outcome"], message["memory"]
                self.final_plan = message.get("final_plan")
                return True
            elif message["type"] == "shutdown":
                return False
            if self._stop.is_set():
                self._killed = "interrupted"
            if self._killed:
                child.kill()
                return False
            if self._lease.stop and not told_at:
                told_at = time.monotonic()
                child.channel.send(type="stop", reason=self._lease.stop)
            if told_at and self._lease.stop != "pruned" and time.monotonic() > told_at + STOP_GRACE_S:
                self._killed = "stopped"

    def _watch_memory(self, child: Child) -> None:
        limit = self._lease.assignment.limit_bytes
        if self._session.device.kind != "cpu" or not limit:
            return
        self._peak_bytes = max(self._peak_bytes, resident_bytes(child.pid))
        if self._peak_bytes > limit:
            self._killed = "memory"

    def _without_answer(self, status: int) -> "dict[str, Any] | None":
        limit = self._lease.assignment.limit_bytes
        if self._killed == "memory":
            self.used = {"live_peak_bytes": self._peak_bytes}
            return {"kind": "out_of_memory", "limit_bytes": limit, "peak_bytes": self._peak_bytes,
                    "error_message": f"the trial used {readable(self._peak_bytes)} of host memory; "
                                     f"its limit is {readable(limit)}"}
        if self._killed == "stopped" and self._lease.stop == "time limit":
            return {"kind": "stopped_by_pruner", "step": self._last["step"],
                    "metrics": self._last["metrics"]}
        if self._killed:
            return None
        if status < 0:
            return {"kind": "failed", "class": "TRAINER_KILLED",
                    "message": f"the trial's process was killed by {_signal_name(-status)}"}
        return {"kind": "failed", "class": "TRAINER_CRASHED",
                "message": f"the trial's process ended with status {status} before it had a result"}
