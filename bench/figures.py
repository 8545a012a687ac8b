"""What every benchmark ends with: one JSON line, and 0 or 3 as exit status."""

import datetime
import json
import os
import platform
import shlex
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def machine():
    """Processor, cores and memory, as the figures name them."""
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {gib:.0f} GiB"


def figure(name, value, unit, goal, met):
    """`goal` is text such as "<= 0.6"; `met` says whether `value` reaches it, None where nothing can tell."""
    return {"name": name, "value": value, "unit": unit, "goal": goal, "met": None if met is None else bool(met)}


def at_most(name, value, unit, goal):
    return figure(name, value, unit, f"<= {goal}", value <= goal)


def at_least(name, value, unit, goal):
    return figure(name, value, unit, f">= {goal}", value >= goal)


def report(benchmark, figures, missed=()):
    """Prints the JSON line and ends the program: 0 when every goal is known to be met, else 3.

    `missed`: names of figures known not to meet their goals, which do not decide the status.
    """
    print(
        json.dumps(
            {
                "benchmark": benchmark,
                "machine": machine(),
                "date": datetime.date.today().isoformat(),
                "command": shlex.join([os.path.relpath(sys.argv[0], ROOT)] + sys.argv[1:]),
                "figures": figures,
            }
        ),
        flush=True,
    )
    sys.exit(0 if all(f["met"] or f["name"] in missed for f in figures) else 3)
