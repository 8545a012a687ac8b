"""Measures on a GPU how well memory is predicted, and writes the table for docs/gpu.

usage: gpu_memory_suite PROGRAMS OUT_DIR    runs bin/hpo-trainer --memory-suite of the package
       gpu_memory_suite --report JSONL MD   writes the table of lines that were recorded before

PROGRAMS the archive of scripts/package, its unpacked folder, or a build folder
OUT_DIR  gets memory_suite.jsonl, memory_suite.md and traces/
Needs one NVIDIA card and a python3 with torch 2.11; takes at most 8 minutes.
Exits 0 if every goal is met, 3 if one is not, 4 if there is nothing to measure.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from gpu_checks.programs import CheckError, find_programs

TIME_LIMIT_S = 480
UNAVAILABLE = 4
MIB = 1 << 20


def of_type(lines, name):
    return [line for line in lines if line["type"] == name]


def errors(configurations, what):
    """Signed relative errors of the prediction, where both numbers are there."""
    pairs = [(c.get(f"predicted_{what}_bytes"), c.get(f"measured_{what}_bytes"))
             for c in configurations if c["completed"]]
    return [predicted / measured - 1 for predicted, measured in pairs if predicted and measured]


def figures(lines):
    """Name, value, text, goal met: one for each figure of issue 4."""
    configurations = of_type(lines, "configuration")
    ladder = of_type(lines, "ladder")
    storm = of_type(lines, "storm")
    found = [("configurations", len(configurations), f"{len(configurations)}",
              ">= 60", len(configurations) >= 60)]
    for what in ("live", "reserved", "device"):
        seen = [abs(error) for error in errors(configurations, what)]
        if not seen:
            continue
        median = statistics.median(seen)
        goal, met = ("<= 0.5 %", median <= 0.005) if what == "reserved" else ("", True)
        found.append((f"{what}_median_error", median,
                      f"{median:.2%} (worst {max(seen):.2%})", goal, met))
    if ladder:
        right = sum(step["expected"] == step["ran"] for step in ladder) / len(ladder)
        broken = sum(step["expected"] and not step["ran"] for step in ladder)
        found.append(("ladder_right_share", right,
                      f"{right:.1%} of {len(ladder)} ({broken} ran out that were to fit)",
                      ">= 99 %", right >= 0.99))
    for one in storm:
        drift = abs(one["live_drift_bytes"]) + abs(one["reserved_drift_bytes"])
        found.append(("storm_baseline_drift", drift,
                      f"{drift} B after {one['met']} of {one['cycles']} out-of-memory errors, "
                      f"{one['at_baseline']} at the baseline", "0 B",
                      drift == 0 and one["met"] == one["cycles"] == one["at_baseline"]))
    return found


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


def mib(count):
    return f"{count / MIB:,.1f}" if count is not None else ""


def configuration_row(line):
    row = [line["name"]]
    for what in ("live", "reserved", "device"):
        predicted = line.get(f"predicted_{what}_bytes")
        measured = line.get(f"measured_{what}_bytes")
        error = f"{predicted / measured - 1:+.2%}" if predicted and measured else ""
        row += [mib(predicted), mib(measured), error]
    return row + ["" if line["completed"] else "did not complete"]


def report(lines, date):
    profiles = of_type(lines, "profile")
    if not profiles:
        raise ValueError("expected a line of type profile first, got none")
    device = profiles[0]["device"]
    text = [f"# Memory suite: {device['name'] or device['kind']}, {date}", ""]
    text += table(["what", "measured"], [
        ["driver", device["driver"]], ["torch", device["torch_build"]],
        ["capability", device["capability"]], ["attention", device["attention"]],
        ["allocator", device["allocator"]],
        ["base (context, libraries)", f"{mib(device['base_bytes'])} MiB"],
        ["workspaces", f"{mib(device['workspace_bytes'])} MiB"]])
    text += ["", "## Figures", ""]
    text += table(["figure", "value", "goal", "met"],
                  [[name, shown, goal, "yes" if met else "NO"]
                   for name, _, shown, goal, met in figures(lines)])
    text += ["", "## Predicted and measured, MiB", ""]
    text += table(["configuration", "live", "measured", "error", "reserved", "measured", "error",
                   "device", "measured", "error", "note"],
                  [configuration_row(line) for line in of_type(lines, "configuration")])
    text += ["", "## Limit ladder", ""]
    text += table(["configuration", "limit, MiB", "of the need", "expected", "ran", "retries"],
                  [[s["name"], mib(s["limit_bytes"]), s["share"], "runs" if s["expected"] else "OOM",
                    "ran" if s["ran"] else "OOM", s["alloc_retries"]]
                   for s in of_type(lines, "ladder")])
    text += ["", "## Golden traces", ""]
    text += table(["configuration", "file", "events"],
                  [[t["name"], t["file"], t["events"]] for t in of_type(lines, "trace")])
    skipped = [line["name"] for line in of_type(lines, "skipped")]
    if skipped:
        text += ["", f"Skipped for time: {len(skipped)} ({', '.join(skipped)})."]
    if not of_type(lines, "done"):
        text += ["", "The run did not come to its end."]
    return "\n".join(text) + "\n"


def read_lines(text):
    """One object a line. What follows the last line end was cut off with the run."""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def write_report(lines, path, date):
    path.write_text(report(lines, date))
    missed = [name for name, _, _, _, met in figures(lines) if not met]
    print(f"{path}: " + (f"missed: {', '.join(missed)}" if missed else "every goal is met"))
    return 3 if missed or not of_type(lines, "done") else 0


def run_suite(programs, out, seconds=TIME_LIMIT_S, options=()):
    """What the trainer in bin/ `programs` printed, and in a line why it printed nothing."""
    (out / "traces").mkdir(parents=True, exist_ok=True)
    lines_path = out / "memory_suite.jsonl"
    with open(lines_path, "w", encoding="utf-8") as lines:
        child = subprocess.Popen(
            [str(programs / "hpo-trainer"), "--memory-suite", str(out / "traces"), "--device",
             "cuda:0", "--log-level", "off", *options],
            stdout=lines, stderr=subprocess.PIPE, text=True)
        timed_out = ""
        try:
            _, complaint = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            complaint = child.communicate()[1]
            timed_out = f"timed out after {seconds} s, "
    last = complaint.strip().splitlines()[-1:] or ["no output"]
    return read_lines(lines_path.read_text()), timed_out + last[0]


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--report":
        recorded, path = map(pathlib.Path, sys.argv[2:])
        return write_report(read_lines(recorded.read_text()), path, time.strftime("%Y-%m-%d"))
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    given, out = map(pathlib.Path, sys.argv[1:])
    try:
        with tempfile.TemporaryDirectory(prefix="hpo-gpu-") as folder:
            programs = find_programs(given, pathlib.Path(folder))
            lines, reason = run_suite(programs, out)
    except CheckError as error:
        sys.exit(f"gpu_memory_suite: {error}")
    if not lines:
        print(f"gpu_memory_suite: nothing was measured: {reason}", file=sys.stderr)
        return UNAVAILABLE
    return write_report(lines, out / "memory_suite.md", time.strftime("%Y-%m-%d"))
