"""The report as text."""

from .sizes import show
from .verdict import DOES_NOT_FIT, TIGHT, UNKNOWN

_PHASES = {"load": "load", "first_step": "first step", "steady_step": "steady step", "evaluation": "evaluation",
           "after_steps": "after the steps"}


def text(document):
    """For one GPU all that is known; for several a table, then the details of the first that was run."""
    gpus = document["gpus"]
    lines = _table(gpus) if len(gpus) > 1 else []
    detailed = next((gpu for gpu in gpus if gpu["source"] == "run"), gpus[0])
    if lines:
        lines += ["", f"Details of {detailed['gpu']}:"]
    lines += _details(detailed)
    if document["largest"]:
        lines += ["", *map(largest_line, document["largest"])]
    return "\n".join(lines) + "\n"


def largest_line(largest):
    name, value = largest["name"], largest["value"]
    if value is None:
        return f"{largest['gpu']}: not even {name}={largest['low']} fits."
    end = ", the end of the range" if value == largest["high"] else f"; {name}={largest['fails']} does not fit"
    return f"{largest['gpu']}: the largest {name} that fits is {value}{end} ({len(largest['tries'])} runs)."


def verdict_line(gpu):
    total, required = show(gpu["total_bytes"]), show(gpu["required_bytes"])
    if gpu["verdict"] == DOES_NOT_FIT:
        needs = gpu.get("needs_bytes")
        more = f"it needs {show(needs)} of {total}" if needs else f"out of memory at {total}"
        return f"does not fit: {more}"
    if gpu["verdict"] == UNKNOWN:
        return f"unknown: {required} of {total} as far as it ran"
    if gpu["verdict"] == TIGHT:
        why = (f"torch freed its cache {_times(gpu['retries'])} to stay within {total}" if gpu["retries"] else
               f"{show(gpu['spare_bytes'])} to spare is less than the margin of {show(gpu['margin_bytes'])}")
        return f"tight: {required} of {total}; {why}"
    if gpu["retries"] or gpu["spare_bytes"] < gpu["margin_bytes"]:
        freed = f"torch freed its cache {_times(gpu['retries'])}, and " if gpu["retries"] else ""
        return f"fits: {required} of {total}; {freed}it fits with {show(gpu['margin_bytes'])} less by freeing the cache"
    return f"fits: {required} of {total}, {show(gpu['spare_bytes'])} to spare"


def _details(gpu):
    lines = [f"{gpu['name']}: {verdict_line(gpu)}"]
    if gpu["out_of_memory"]:
        oom = gpu["out_of_memory"]
        where = f"In the phase '{_PHASES[oom['phase']]}', step {oom['step']}: " if oom["phase"] else ""
        lines.append(f"  {where}{oom['message']}")
    lines += [f"  {line}" for line in gpu["notes"]]
    lines += ["", *_parts(gpu), "", *_aligned(_phase_rows(gpu), 1)]
    if gpu["modules"]:
        lines += ["", "Memory at the peak, by module:", *_aligned(_module_rows(gpu), 1)]
    alike = ", the last three alike" if gpu["steps_alike"] else ""
    seen = f"{gpu['steps']} optimizer step{'' if gpu['steps'] == 1 else 's'}{alike}"
    lines += ["", f"Seen: {seen}; {_evaluation(gpu)}; {_ranks(gpu)}torch {gpu['torch']}; {gpu['seconds']:.0f} s."]
    reads = gpu["values"].get("reads_of_unknown_values", 0)
    if reads:
        places = ", ".join(place["where"] for place in gpu["values"]["places"][:3])
        lines.append(f"Values: {reads} that are not known {'was' if reads == 1 else 'were'} read at {places}; a size that "
                     f"the program computes from them is not true.")
    return lines


def _evaluation(gpu):
    if gpu["evaluation"]:
        return "an evaluation"
    if not gpu["ended_early"]:
        return "no evaluation"
    if gpu["epoch_steps"] is None:
        return "no evaluation until then: if the program has one, --steps goes on for longer"
    return f"no evaluation until then: if the program has one, --steps {gpu['epoch_steps'] + 1} goes on to the next epoch"


def _ranks(gpu):
    return f"{gpu['ranks']} processes; " if gpu["ranks"] > 1 else ""


def _times(count):
    return "once" if count == 1 else f"{count} times"


def _parts(gpu):
    rows = [["Required memory", show(gpu["required_bytes"]), ""],
            ["  reserved by torch", show(gpu["peak_reserved_bytes"]),
             f"{show(gpu['peak_allocated_bytes'])} allocated, {show(gpu['fragmentation_bytes'])} fragmentation"],
            ["  CUDA context", show(gpu["context_bytes"]), gpu["overhead_source"]],
            ["  workspaces", show(gpu["workspace_bytes"]), ""],
            ["  other libraries", show(gpu["other_bytes"]), ""]]
    return _aligned([row for row in rows if row[1] != "0 B"], 1)


def _phase_rows(gpu):
    rows = [["PHASE", "ALLOCATED", "RESERVED"]]
    for phase, name in _PHASES.items():
        peaks = gpu["phases"].get(phase)
        if peaks:
            rows.append([name, show(peaks["peak_allocated_bytes"]), show(peaks["peak_reserved_bytes"])])
    return rows


def _module_rows(gpu):
    kinds = ("total", "weights", "gradients", "optimizer", "activations")
    return [["MODULE", *map(str.upper, kinds)],
            *([row["module"], *(show(row[f"{kind}_bytes"]) if row[f"{kind}_bytes"] else "-" for kind in kinds)]
              for row in gpu["modules"])]


def _table(gpus):
    settings = any(gpu["allocator"] for gpu in gpus)
    rows = [["GPU", *["ALLOCATOR"] * settings, "VERDICT", "REQUIRED", "TOTAL", "SOURCE"]]
    for gpu in gpus:
        required = gpu.get("needs_bytes") or (None if gpu["verdict"] == DOES_NOT_FIT else gpu["required_bytes"])
        rows.append([gpu["gpu"], *[gpu["allocator"] or "default"] * settings, gpu["verdict"], show(required) if required else "-", show(gpu["total_bytes"]),
                     gpu["source"]])
    return _aligned(rows, 2 + settings)


def _aligned(rows, first_right):
    """Columns from `first_right` on are aligned to the right where they hold sizes."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    sizes = [all(row[column][:1].isdigit() or row[column] in ("", "-") for row in rows[1:])
             for column in range(len(widths))]
    return ["  ".join(cell.rjust(width) if column >= first_right and right else cell.ljust(width)
                      for column, (cell, width, right) in enumerate(zip(row, widths, sizes))).rstrip()
            for row in rows]
