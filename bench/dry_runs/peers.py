"""The command and the tools of others on five programs whose memory others published.

The programs are the first five rows of bench/published/memory_published.csv: "Max GPU Memory (MiB)" of nvidia-smi on an
A100-SXM4-40GB, from trans_data.csv of github.com/itu-rad/GPUMemNet. What nvidia-smi read beyond torch's reserved peak
is the median of eight other rows (memory_published_base.csv), and is added to every tool's figure alike.
Tools run as bench/peers/memory_tools.py says, on the emulated GPU where they ask for one.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import figures  # noqa: E402
from dry_runs import imports, published  # noqa: E402

PEER = ROOT / "bench" / "peers" / "memory_tools.py"
MIB = 1 << 20
COUNT = 5
OURS, PEERS = "dry-run", ("accelerate", "memtracker", "fakegpu")
LIMIT_S = 600


def base_bytes(build, folder):
    rows = published.rows("memory_published_base.csv")
    return published.base([(row, published.dry_run(build, row, folder)) for row in rows]) * MIB


def by_dry_run(build, row, folder):
    found = published.dry_run(build, row, folder)
    return {"bytes": found.get("peak_reserved_bytes"), "error": found["error"]}


def by_peer(tool, columns, env):
    try:
        done = subprocess.run([sys.executable, PEER, tool, *map(str, columns)], env=env, capture_output=True, text=True,
                              check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"bytes": None, "error": f"no end in {LIMIT_S} s"}
    if done.returncode != 0:
        return {"bytes": None, "error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "error": None}


def run(build, fakegpu, quick, tell):
    """Rows of programs and tools: row, tool, bytes, seconds (wall, processor), relative error (None: refused)."""
    found = []
    with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as scratch:
        base = base_bytes(build, scratch)
        env = imports.emulated(build, scratch)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(fakegpu or ""), env.get("PYTHONPATH")]))
        for row in published.rows("memory_published.csv")[:1 if quick else COUNT]:
            columns = [value for key, value in row.items() if key != published.MEASURED]
            for tool in (OURS, *PEERS):
                answer = {}
                seconds = imports.seconds(lambda: answer.update(
                    by_dry_run(build, row, scratch) if tool == OURS else by_peer(tool, columns, env)))
                size = answer["bytes"]
                error = None if size is None else abs((size + base) / (row[published.MEASURED] * MIB) - 1)
                found.append({"row": row, "tool": tool, "bytes": size, "seconds": seconds, "error": error})
                tell(f"{row[published.MEASURED]} MiB measured, {tool}: " + (
                    f"refused: {answer['error']}" if error is None else
                    f"{(size + base) / MIB:.0f} MiB, {100 * error:.1f} % off") +
                    f", {seconds[0]:.1f} s (processor {seconds[1]:.1f})")
    return found


def judged(found):
    """Ours is smallest where no other tool's error is smaller or equal. A refusal is no answer."""
    best = 0
    programs = list({id(row["row"]): row["row"] for row in found}.values())
    for program in programs:
        errors = {row["tool"]: row["error"] for row in found if row["row"] is program and row["error"] is not None}
        best += OURS in errors and all(errors[OURS] < error for tool, error in errors.items() if tool != OURS)
    result = [figures.at_least("peer_smallest_error_programs", best, f"of {len(programs)} programs", len(programs))]
    for tool in (OURS, *PEERS):
        of_tool = [row for row in found if row["tool"] == tool]
        errors = [row["error"] for row in of_tool if row["error"] is not None]
        name = tool.replace("-", "_")
        if errors:
            worst = round(100 * max(errors), 2)
            result.append(figures.figure(f"peer_worst_error_{name}", worst, "%", "reported", True))
        result.append(figures.figure(f"peer_processor_seconds_{name}", round(statistics.median(
            row["seconds"][1] for row in of_tool), 1), "s", "reported", True))
    return result
