"""Runs a function as the trainer of hpo-worker:

    hpo-worker --device cpu --memory-limit 4GiB --trainer "python train.py"

where train.py ends with hpo.trainer.main(train)."""

import os
import resource
import sys
import traceback
from typing import Any, Mapping

from . import _channel
from .errors import BadData, OutOfMemory, Stopped
from .trial import Train, Trial

_PRUNED = ("pruned", "time limit")
_OOM_TYPES = ("OutOfMemoryError", "ResourceExhaustedError")  # torch's; TensorFlow's
_OOM_TEXTS = ("CUDA out of memory", "CUDNN_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_ALLOC_FAILED",
              "RESOURCE_EXHAUSTED: Out of memory", "cudaErrorMemoryAllocation")


def is_out_of_memory(error: BaseException) -> bool:
    """Of this program, Python, torch, TensorFlow or JAX, without importing any of them."""
    return (isinstance(error, (OutOfMemory, MemoryError))
            or type(error).__name__ in _OOM_TYPES
            or any(text in str(error) for text in _OOM_TEXTS))


class _WorkerSink:
    """A trial's words on the trainer protocol."""

    def __init__(self, channel: _channel.LineChannel) -> None:
        self._channel = channel
        self._reason = ""

    def measurement(self, step: int, epoch: float, metrics: "Mapping[str, Any]") -> None:
        self._channel.send(type="measurement", step=step, epoch=epoch,
                           metrics=_channel.finite(metrics))

    def stage(self, name: str, peak_bytes: int) -> None:
        self._channel.send(type="memory", stage=name, peak_bytes=peak_bytes)

    def stop_reason(self) -> str:
        message = self._channel.receive(timeout_s=0) if not self._reason else None
        if message is not None:
            self._reason = str(message.get("reason", "drain"))
        return self._reason


def _cuda() -> Any:
    torch = sys.modules.get("torch")
    return torch.cuda if torch and torch.cuda.is_available() else None


def memory_used(trial: Trial, own_process: bool) -> "dict[str, int]":
    """The trial's peak in bytes: what it told, else torch's on a card, else the process' own."""
    if not trial.used_bytes and _cuda():
        return {"live_peak_bytes": int(_cuda().max_memory_allocated()),
                "reserved_peak_bytes": int(_cuda().max_memory_reserved())}
    if not trial.used_bytes and own_process and trial.job.get("device") == "cpu":
        return {"live_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    return {"live_peak_bytes": trial.used_bytes}


def metrics_of(returned: Any, metric: str) -> "dict[str, float | None]":
    """Metrics of what a function returned: a number is the objective's."""
    metrics = returned if isinstance(returned, Mapping) else {metric: returned}
    try:
        numbers = _channel.finite(metrics)  # pyright: ignore[reportUnknownArgumentType]
    except ValueError:
        raise TypeError(f"the function must return a number or a dict of metrics, got {returned!r} "
                        f"({type(returned).__name__})") from None
    if metric not in numbers:
        raise TypeError(f"the function returned the metrics {', '.join(map(repr, numbers))}, but "
                        f"the study's objective is {metric!r}")
    return numbers


def outcome_of(train: Train, trial: Trial) -> "dict[str, Any] | None":
    """Runs the function; how the trial ended, as the protocol says it. None: without a result."""
    metric = str(trial.job["objective"]["metric"])
    try:
        returned = train(trial)
        reason = trial.stop_reason()
        if reason not in _PRUNED and (not reason or returned is not None):
            return {"kind": "completed", "metrics": metrics_of(returned, metric)}
    except Stopped:
        reason = trial.stop_reason() or "pruned"
    except BadData as error:
        return {"kind": "failed", "class": "BAD_DATA", "message": str(error)}
    except Exception as error:  # the trial fails, the study goes on
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        if is_out_of_memory(error):
            return {"kind": "out_of_memory", "error_message": str(error) or type(error).__name__,
                    "limit_bytes": trial.limit_bytes, "error_traceback": text,
                    "needed_bytes": int(getattr(error, "needed_bytes", 0))}
        return {"kind": "failed", "class": "INTERNAL", "message": text}
    if reason in _PRUNED:
        return {"kind": "stopped_by_pruner", "step": trial.last_step,
                "metrics": _channel.finite(trial.last_metrics)}
    return None


def run_job(channel: _channel.LineChannel, job: "dict[str, Any]", train: Train,
            own_process: bool) -> None:
    if _cuda():
        _cuda().reset_peak_memory_stats()
    trial = Trial(job, _WorkerSink(channel))
    outcome = outcome_of(train, trial)
    channel.send(type="outcome", outcome=outcome, memory=memory_used(trial, own_process))


def main(train: Train, reuse: bool = False) -> None:
    """Serves hpo-worker until it has no more trials. `reuse`: several in one process, which must
    leave no memory behind."""
    channel = _channel.inherited()
    channel.send(type="hello", version=1, program=os.path.basename(sys.argv[0]),
                 capabilities=["stop", "reuse"] if reuse else ["stop"])
    while True:
        message = channel.receive()
        if message is None or message["type"] == "shutdown":
            return
        if message["type"] == "job":
            run_job(channel, message, train, own_process=not reuse)
