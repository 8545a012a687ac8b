"""What a run says of one GPU: figures, a verdict, or the one line that says why there is neither."""

import os
import re

from . import packages
from .errors import DryRunError
from .sizes import show
from .steps import steps_left

FITS, TIGHT, DOES_NOT_FIT, UNKNOWN = "fits", "tight", "does not fit", "unknown"
_OOM = re.compile(r"^.*?((?:CUDA|HIP) out of memory\. Tried to allocate .*)$", re.MULTILINE)
_ERROR = re.compile(r"^[\w.]+(Error|Exception|Exit|Interrupt)\b: ")
_MISSING = re.compile(r"^emulated (?:card|GPU): (.*)$", re.MULTILINE)


def assess(run, gpu):
    """The document of one GPU (package docstring). Raises DryRunError where the run says nothing."""
    records = run.gpu_records
    out_of_memory = next((record["out_of_memory"] for record in records if record["out_of_memory"]), None)
    if out_of_memory is None:
        _check(run, records)
    devices = [(record, _device(record, device)) for record in records for device in record["devices"]]
    record, worst = max(devices, key=lambda pair: pair[1]["required_bytes"] - pair[1]["total_bytes"])
    overhead = record["overhead"]
    found = {
        "gpu": gpu.label, "name": worst["name"], "capability": gpu.capability, **worst,
        "margin_bytes": overhead["margin_bytes"], "overhead_source": overhead["source"],
        "spare_bytes": worst["total_bytes"] - worst["required_bytes"],
        "phases": _phases(records), "modules": record.get("modules", {}).get(str(worst["device"]), [])[:10],
        "steps": min(record["steps"] for record in records), "steps_alike": all(r["alike"] for r in records),
        "evaluation": any("evaluation" in r["phases"] for r in records), "ended_early": _ended_early(run, records),
        "epoch_steps": max(map(_epoch_steps, records)) or None, "ranks": len(records),
        "devices": [device for _, device in devices] if len(devices) > 1 else [],
        "values": record["values"], "events": record.get("events"), "torch": record["torch"],
        "least_bytes": None, "reads_free_memory": any(r.get("reads_free_memory") for r in records),
        "seconds": round(run.seconds, 1), "out_of_memory": None, "notes": _notes(run, records)}
    if out_of_memory is not None:
        found["out_of_memory"] = {"message": _oom_message(run, out_of_memory), **out_of_memory}
    found["never_stepped"] = _never_stepped(records)
    found["endless"] = found["steps"] == 0 and any(record["end"] == "readbacks" for record in records)
    found["verdict"] = of(found)
    return found


def _ended_early(run, records):
    """Whether the dry run ended the program, not the program itself."""
    return run.timed_out or any(record["end"] != "exit" for record in records)


def _never_stepped(records):
    return any(r.get("never_stepped") for r in records) and not any(r["out_of_memory"] for r in records)


def _epoch_steps(record):
    """Optimizer steps at the end of the epoch that the program was in; 0: not known."""
    if not record.get("epoch"):
        return 0
    return record["steps"] + steps_left(record["steps"], *record["epoch"])


def _device(record, device):
    overhead = record["overhead"]
    known = overhead["context_bytes"] + overhead["workspace_bytes"]
    return {"device": device["index"], "rank": record["rank"], "name": device["name"],
            "total_bytes": device["total_bytes"],
            "required_bytes": device["reserved_bytes"] + max(device["beyond_torch_bytes"], known),
            "peak_allocated_bytes": device["allocated_bytes"], "peak_reserved_bytes": device["reserved_bytes"],
            "fragmentation_bytes": device["reserved_bytes"] - device["allocated_bytes"],
            "context_bytes": overhead["context_bytes"], "workspace_bytes": overhead["workspace_bytes"],
            "other_bytes": max(device["beyond_torch_bytes"] - known, 0), "retries": device["retries"]}


def _phases(records):
    """{phase: peaks} of the device that needs most in it."""
    found = {}
    for record in records:
        for phase, devices in record["phases"].items():
            for allocated, reserved in devices.values():
                before = found.get(phase, {"peak_allocated_bytes": 0, "peak_reserved_bytes": 0})
                found[phase] = {"peak_allocated_bytes": max(allocated, before["peak_allocated_bytes"]),
                                "peak_reserved_bytes": max(reserved, before["peak_reserved_bytes"])}
    return found


def of(found):
    """The verdict of a document."""
    if found["values"]["live_at_peak"] or found["endless"] or found["never_stepped"]:
        return UNKNOWN
    if found["out_of_memory"]:
        return DOES_NOT_FIT
    least = found["least_bytes"]
    with_margin = least is not None and least + found["margin_bytes"] <= found["total_bytes"]
    surely = not found["retries"] and found["spare_bytes"] >= found["margin_bytes"]
    return FITS if surely or with_margin else TIGHT


def _notes(run, records):
    """What the reader should know of how far the run went."""
    first = records[0]
    notes = []
    if any(record["end"] == "readbacks" for record in records):
        notes.append(f"ended after {first['steps']} optimizer steps: {first['endless']} (--readbacks)")
    elif run.timed_out:
        notes.append(f"ended after {run.seconds:.0f} s (--timeout)")
    if _never_stepped(records):
        notes.append("the program ended and its optimizer has made no step: what steps need is not known")
    elif first["steps"] == 0 and first["out_of_memory"] is None:
        notes.append("the program ended before an optimizer step: the figures are those of what it ran")
    elif not first["enough"] and first["end"] in ("exit", None) and first["steps"] and not run.timed_out:
        notes.append(f"the program ended after {first['steps']} optimizer "
                     f"step{'s' if first['steps'] > 1 else ''}")
    elif first["enough"] and not first["alike"] and first["steps"] >= 30:
        notes.append("the peaks of the steps differ; later steps may need more")
    notes += [f"{name}: its stand-in was used" for name in first["stand_in"]]
    sizes = first["values"].get("unknown_sizes", [])
    if sizes:
        count = sum(size["count"] for size in sizes)
        named = ", ".join(f"{size['call']} at {size['where']}" for size in sizes[:3])
        notes.append(f"{count} size{'s' if count > 1 else ''} depended on values that are not known: {named}"
                     f"{', ...' if len(sizes) > 3 else ''}")
    oom = first["out_of_memory"]
    if oom and (first["end"] == "enough" or run.status == 0):
        notes.append(f"the program caught {oom['count']} out-of-memory error{'s' if oom['count'] > 1 else ''} and went on")
    return notes


def _oom_message(run, oom):
    """Torch's own, where the program let it through."""
    found = _OOM.findall(run.output)
    if found:
        return found[0].partition("  See documentation")[0].strip()
    for record in run.gpu_records:
        if record["error"] and "out of memory" in record["error"]:
            return " ".join(record["error"].split())
    return f"CUDA out of memory. Tried to allocate {show(oom['requested_bytes'])}."


def _check(run, records):
    """Raises what a run without an out-of-memory error failed with."""
    if records and all(record["end"] for record in records) and (
            run.status == 0 or any(record["end"] != "exit" for record in records)):
        return
    if run.timed_out and records and min(record["steps"] for record in records) >= 2:
        return
    if not run.timed_out and records and all(record["enough"] for record in records):
        return
    # Processes that ended without their end being seen, as by os._exit.
    if not run.timed_out and run.status == 0 and any(record["steps"] for record in records):
        return
    raise DryRunError(explain(run))


def explain(run):
    """One line: why the program could not be dry-run."""
    lines = [line for line in run.output.strip().splitlines() if line.strip()]
    text = run.output
    missing = _MISSING.search(text)
    if missing:
        return (f"the emulated GPU: {missing[1]}; please report this line and the program, so that it can be added"
                if "is not emulated" in missing[1] else f"the emulated GPU: {missing[1]}")
    if run.timed_out:
        used = run.gpu_records
        where = f"in the phase '{used[0]['phase']}' after {used[0]['steps']} optimizer steps" if used else \
            "and had not used a GPU"
        return f"the program did not end in {run.seconds:.0f} s, {where}; --timeout gives it longer"
    if "No module named 'torch'" in text:
        return "torch is not installed for the Python that runs the program: pip install torch"
    if "do you have enough GPUs?" in text or "invalid device ordinal" in text:
        return "the program asks for a GPU that is not emulated: --count gives it more of them"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if "No CUDA GPUs are available" in text and visible is not None:
        return f"the program sees no GPU: CUDA_VISIBLE_DEVICES is {visible!r}, and a dry run has GPU 0 unless --count is given"
    if "Cannot re-initialize CUDA in forked subprocess" in text:
        return ("the program uses CUDA in a process that it forked after its first use of CUDA, which torch does not "
                "allow: use the start method 'spawn'")
    for record in run.records:
        if record.get("error_type") in ("NoGpu", "NotNative", "TorchMissing") and run.status in (0, 1):
            if record["end"] == "error" or run.status == 0:
                return record["error"]
    errors = [line for line in lines if _ERROR.match(line)]
    last = (errors or lines or ["it printed nothing"])[-1]
    if run.status == 0:
        return ("no process of the program imported torch where a dry run sees it (python3 -I, -E and -S hide it): "
                f"{last}")
    how = f"status {run.status}" if run.status > 0 else f"signal {-run.status}"
    hint = packages.hint(last)
    return f"the program failed with {how}: {last.rstrip('.') if hint else last}{hint}"
