"""Runs a function as the trainer of hpo-worker:

    hpo-worker --device cpu --memory-limit 4GiB --trainer "python train.py"

where train.py ends with hpo.trainer.main(train). A script without such a function asks for its
trial by hpo.trainer.current()."""

import atexit
import os
import resource
import signal
import stat
import sys
import threading
import traceback
from types import TracebackType
from typing import Any, Mapping, Optional, Sequence, Type, cast

from . import _channel, checks
from .errors import BadData, InvalidInput, OutOfMemory, Stopped
from .trial import Train, Trial

PRUNED = ("pruned", "time limit")
_OOM_TYPES = ("OutOfMemoryError", "ResourceExhaustedError")  # torch's; TensorFlow's
_OOM_TEXTS = ("CUDA out of memory", "CUDNN_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_ALLOC_FAILED",
              "CUDA error: out of memory", "RESOURCE_EXHAUSTED: Out of memory",
              "cudaErrorMemoryAllocation", "DefaultCPUAllocator: can't allocate memory",
              "DefaultCPUAllocator: not enough memory", "std::bad_alloc")


def is_out_of_memory(error: BaseException) -> bool:
    """Of this program, Python, torch, TensorFlow or JAX, without importing any of them."""
    return (isinstance(error, (OutOfMemory, MemoryError))
            or type(error).__name__ in _OOM_TYPES
            or any(text in _said(error) for text in _OOM_TEXTS))


def _said(error: BaseException) -> str:
    """An exception's text; empty where that raises another one."""
    try:
        return str(error)
    except Exception:
        return ""


class _WorkerSink:
    """A trial's words on the trainer protocol."""

    def __init__(self, channel: _channel.LineChannel) -> None:
        self._channel = channel
        self._reason = ""

    def measurement(self, step: int, epoch: float, metrics: "Mapping[str, Any]") -> None:
        self._channel.send(type="measurement", step=step, epoch=epoch,
                           metrics=_channel.written(metrics))

    def stage(self, name: str, memory: "Mapping[str, Any]") -> None:
        self._channel.send(type="memory", stage=name, **memory)

    def attributes(self, noted: "Mapping[str, Any]") -> None:
        self._channel.send(type="attributes", attributes=dict(noted))

    def stop_reason(self) -> str:
        message = self._channel.receive(timeout_s=0) if not self._reason else None
        if message is not None:
            self._reason = str(message.get("reason", "drain"))
        return self._reason


def _cuda() -> Any:
    torch = sys.modules.get("torch")
    return torch.cuda if torch and torch.cuda.is_available() else None


def memory_used(trial: Trial, own_process: bool) -> "dict[str, int]":
    """The trial's peak in bytes: what it told, else torch's on a card, else the process' own; and
    how often it ran out of memory and went on."""
    if trial.used_bytes:
        return {**trial.memory, "live_peak_bytes": trial.used_bytes}
    if _cuda():
        trial.measured(live_peak_bytes=int(_cuda().max_memory_allocated()),
                       reserved_peak_bytes=int(_cuda().max_memory_reserved()))
    elif own_process and trial.job.get("device") == "cpu":
        trial.measured(
            live_peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    return trial.memory


def metrics_of(returned: Any, metric: str, objectives: "Sequence[str]" = ()) -> "dict[str, float]":
    """Metrics of what a function returned: a number is the objective's, a list has one for each of several
    `objectives`."""
    by_name: "Mapping[str, Any]" = {metric: returned}
    kind: str = type(returned).__name__
    shown = repr(cast(object, returned))[:200]
    if isinstance(returned, Mapping):
        by_name = cast("Mapping[str, Any]", returned)
    elif isinstance(returned, (tuple, list)) and len(objectives) > 1:
        values = cast("Sequence[Any]", returned)
        if len(values) != len(objectives):
            raise TypeError(f"the function returned {len(values)} values, but the study has the {len(objectives)} "
                            f"objectives {', '.join(map(repr, objectives))}")
        by_name = dict(zip(objectives, values))
    try:
        numbers = checks.metrics(by_name, "metrics of the result")
    except InvalidInput as error:
        raise TypeError(f"the function must return a number or a dict of metrics, got {shown} "
                        f"({kind}){f': {error}' if by_name is returned else ''}") from None
    for one in objectives or (metric,):
        if one not in numbers:
            raise TypeError(f"the function returned the metrics {', '.join(map(repr, numbers))}, but "
                            f"the study's objective is {one!r}")
    return numbers


def _exited(error: SystemExit) -> "dict[str, Any]":
    """Of a function that ended its process. `exited`: what it wrote, such as the error of an option, says
    why."""
    code = error.code
    said = f"sys.exit({code!r})" if isinstance(code, int) or code is None else f"sys.exit: {code}"
    return {"kind": "failed", "class": "INTERNAL", "exited": not isinstance(code, str),
            "message": said if isinstance(code, str) else f"{said} before the function had returned a result"}


def _types(error: BaseException) -> "list[str]":
    """The names of an exception's classes, for who compares them in another process."""
    return [f"{one.__module__}.{one.__qualname__}" for one in type(error).__mro__]


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def _failed(error: BaseException) -> "dict[str, Any]":
    return {"kind": "failed", "class": "INTERNAL", "message": _traceback(error), "raised": _types(error)}


def outcome_of(train: Train, trial: Trial, catch_exit: bool = False) -> "dict[str, Any] | None":
    """Runs the function; how the trial ended, as the protocol says it. None: without a result.
    `catch_exit`: sys.exit fails the trial; else the process ends, and its status decides."""
    metric = str(trial.job["objective"]["metric"])
    try:
        returned = train(trial)
        reason = trial.stop_reason()
        if reason not in PRUNED and (not reason or returned is not None):
            return {"kind": "completed", "metrics": _channel.written(metrics_of(returned, metric, trial.job.get("objectives", ())))}
    except Stopped:
        reason = trial.stop_reason() or "pruned"
    except BadData as error:
        return {"kind": "failed", "class": "BAD_DATA", "message": str(error), "raised": _types(error)}
    except SystemExit as error:
        if not catch_exit:
            raise
        return _exited(error)
    except BaseException as error:  # the trial fails, the study goes on
        if not isinstance(error, Exception) and (not catch_exit or isinstance(error, KeyboardInterrupt)):
            raise
        said = _said(error)
        if is_out_of_memory(error):
            return {"kind": "out_of_memory", "error_message": said or type(error).__name__,
                    "limit_bytes": trial.limit_bytes, "error_traceback": _traceback(error),
                    "needed_bytes": int(getattr(error, "needed_bytes", 0))}
        return _failed(error)
    if reason in PRUNED:
        return {"kind": "stopped_by_pruner", "step": trial.last_step,
                **({"pruner": reason} if reason == "time limit" else {}),
                "metrics": _channel.written(trial.last_metrics)}
    return None


def _shortened(outcome: "dict[str, Any] | None") -> "dict[str, Any] | None":
    """With texts that the protocol takes: what is longer loses its middle."""
    if outcome is None:
        return None
    return {key: checks.shortened(value) if isinstance(value, str) else value for key, value in outcome.items()}


def _send_outcome(channel: _channel.LineChannel, trial: Trial, train: Train,
                  own_process: bool, catch_exit: bool = False) -> None:
    try:
        end = outcome_of(train, trial, catch_exit)
    except KeyboardInterrupt as error:
        if not (own_process and catch_exit):
            raise
        end = _failed(error)  # the function's own: a terminal's interrupt ends the process
    outcome = _shortened(end)
    plan = {"final_plan": trial.final_plan} if trial.final_plan else {}
    channel.send(type="outcome", outcome=outcome, memory=memory_used(trial, own_process), **plan)


def _show_folder(job: "Mapping[str, Any]") -> None:
    """As programs of the user's own find it (docs/programs.md)."""
    if job.get("output_dir"):
        os.environ["HPO_OUTPUT_DIR"] = str(job["output_dir"])


def run_job(channel: _channel.LineChannel, job: "dict[str, Any]", train: Train,
            own_process: bool, catch_exit: bool = False) -> None:
    _show_folder(job)
    if _cuda():
        _cuda().reset_peak_memory_stats()
    _send_outcome(channel, Trial(job, _WorkerSink(channel)), train, own_process, catch_exit)


def _leave_signals_to_worker() -> None:
    """Slurm sends SIGTERM to every process of a job step: the worker has it, too, and asks to stop, so
    that the function can save. A handler, as SIG_IGN would stay with programs that are started."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        def note(*_: object) -> None:
            """Nothing: the worker says what is to happen."""

        signal.signal(signal.SIGTERM, note)
        _default_in_forks(signal.SIGTERM)


def _default_in_forks(number: signal.Signals) -> None:
    """Forked processes get the default action of the signal. It is blocked until they have it: the handler that they
    inherit would take a signal that comes at once, and do nothing."""
    kept = threading.local()

    def block() -> None:
        kept.mask = signal.pthread_sigmask(signal.SIG_BLOCK, [number])

    def restore() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept.mask)

    def reset() -> None:
        signal.signal(number, signal.SIG_DFL)
        restore()

    os.register_at_fork(before=block, after_in_parent=restore, after_in_child=reset)


def _hello(channel: _channel.LineChannel, *capabilities: str) -> None:
    _leave_signals_to_worker()
    channel.send(type="hello", version=1, program=os.path.basename(sys.argv[0]),
                 capabilities=["stop", *capabilities])


def main(train: Train, reuse: bool = False, plan: bool = False) -> None:
    """Serves hpo-worker until it has no more trials. `reuse`: several in one process, which must
    leave no memory behind. `plan`: the function runs its batches in parts that fit (hpo.torch,
    hpo.hf). Started by torchrun, in a study with trainer.gpus, each rank calls the function once;
    what rank 0 reports and returns counts."""
    ranks = _channel.job_of_ranks()
    if ranks is not None:
        _run_rank(ranks, train)
        return
    channel = _channel.inherited()
    _hello(channel, *["reuse"] * reuse, *["plan", "memory"] * plan)
    while True:
        message = channel.receive()
        if message is None or message["type"] == "shutdown":
            return
        if message["type"] == "job":
            run_job(channel, message, train, own_process=not reuse)


def _run_rank(job: "dict[str, Any]", train: Train) -> None:
    """An exception ends the rank, and so the trial: its launcher says which rank it was."""
    _show_folder(job)
    returned = train(Trial(job, _channel.PrintingSink()))
    if returned is not None:
        _channel.print_result(metrics_of(returned, str(job["objective"]["metric"]), job.get("objectives", ())))


class _Script:
    """The trial of a process whose main program knows nothing of trials: it ends as the script
    does. After an orderly end its last report is the result (docs/TRAINER_PROTOCOL.md, "Exit
    status")."""

    def __init__(self) -> None:
        channel = _channel.inherited()
        _hello(channel, "plan", "memory")
        job = channel.receive()
        if job is None or job["type"] != "job":
            sys.exit(0)
        self._channel = channel
        _show_folder(job)
        self.trial = Trial(job, _WorkerSink(channel))
        self._told = False
        self._other_hook = sys.excepthook
        sys.excepthook = self._failed
        atexit.register(self._ended)

    def _failed(self, kind: Type[BaseException], error: BaseException,
                trace: Optional[TracebackType]) -> None:
        if not isinstance(error, Stopped):
            self._other_hook(kind, error, trace)

        def raised(_: Trial) -> Any:
            raise error

        if isinstance(error, Exception):
            self._told = True
            _send_outcome(self._channel, self.trial, raised, own_process=True)

    def _ended(self) -> None:
        if self._told:
            return
        used = memory_used(self.trial, own_process=True)
        self._channel.send(type="memory", stage="Training End",
                           peak_bytes=used.get("live_peak_bytes", 0))
        if self.trial.stop_reason():
            _send_outcome(self._channel, self.trial, lambda _: None, own_process=True)


_script: "_Script | None" = None
_rank_trial: "Trial | None" = None


def current() -> "Trial | None":
    """The trial that hpo-worker started this program for, or each rank of it; None where it did not,
    so that the program runs as ever."""
    global _script, _rank_trial
    ranks = _channel.job_of_ranks()
    if ranks is not None and _rank_trial is None:
        _show_folder(ranks)
        _rank_trial = Trial(ranks, _channel.PrintingSink())
    if _rank_trial is not None:
        return _rank_trial
    if _script is None and _started_by_worker():
        _script = _Script()
    return _script.trial if _script is not None else None


def _started_by_worker() -> bool:
    if "HPO_TRAINER_FD" not in os.environ and "HPO_TRAINER_MARK" not in os.environ:
        return False
    try:
        return stat.S_ISSOCK(os.fstat(_channel.worker_fd()).st_mode)
    except OSError:
        return False
