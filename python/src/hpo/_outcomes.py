"""How a trial ended: from the trainer protocol's words to the server's messages."""

import math
from typing import Any, Mapping

from . import _wire, checks


def numbers(metrics: "Mapping[str, Any]") -> "dict[str, float]":
    """The protocol writes what is not finite by its name, or as null."""
    return {key: math.nan if value is None else float(value) for key, value in metrics.items()}


def outcome(told: "Mapping[str, Any]") -> Any:
    """`told`: the outcome of a message "outcome" (docs/TRAINER_PROTOCOL.md)."""
    kind = told["kind"]
    if kind == "completed":
        fields: "dict[str, Any]" = {"metrics": numbers(told["metrics"])}
    elif kind == "stopped_by_pruner":
        fields = {"step": told["step"], "metrics": numbers(told["metrics"]), "pruner": told.get("pruner", "")}
    elif kind == "out_of_memory":
        fields = {key: told[key] for key in ("error_message", "error_traceback", "needed_bytes",
                                             "peak_bytes", "limit_bytes") if told.get(key)}
        for key in ("error_message", "error_traceback"):
            if key in fields:
                fields[key] = checks.shortened(fields[key])
        fields["kind"] = _wire.number("OomKind", "OOM_KIND_CONFIGURATION")
    elif kind == "cancelled":
        fields = {}
    else:
        fields = {"message": checks.shortened(told["message"]),
                  "failure_class": _wire.number("FailureClass", "FAILURE_CLASS_" + told["class"])}
    return _wire.message("Outcome")(**{kind: fields})


def memory(told: "Mapping[str, int]", limit_bytes: int) -> Any:
    return _wire.message("MemoryReport")(limit_bytes=limit_bytes, **told)


def headline(message: str) -> str:
    """The line that says most of a failure's message: of a traceback the exception's type and the first
    line of its text, else the last line, as of a program's output."""
    lines = message.rstrip().splitlines()
    if message.startswith("  + Exception Group Traceback"):
        return next((line[4:] for line in lines if line.startswith("  | ") and not line[4].isspace()), lines[0])
    frames = [index for index, line in enumerate(lines) if line.startswith("  File ")]
    after = lines[frames[-1] + 1:] if frames and message.lstrip().startswith("Traceback") else []
    return next((line for line in after if line and not line[0].isspace()), lines[-1] if lines else "").strip()
