"""Published reserved peaks of PEFT's method comparison against those of dry runs.

The data set is not here. The length of the longest batch is fitted on one row, which is not scored.
"""

import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import figures  # noqa: E402
from dry_runs import forked, versions  # noqa: E402

ROWS = ROOT / "bench" / "results" / "dry_run" / "peft_rows.json"
PROGRAM = ROOT / "bench" / "dry_runs" / "programs" / "peft_step.py"
PACKAGES = ("torch", "transformers", "peft", "transformers.models.llama.modeling_llama")
GPU, TORCH = "l40s", "2.13"
PEFT = "0.20.0"  # the first after the state that the rows were written with
# 690 tokens come to 22.25 GB, 698 to 22.31; 22.29 is published.
FITTED, LENGTH = "lora--rank32", 698


def run(build, torches, pefts, tell, length=LENGTH, names=None):
    """Rows with "predicted", bytes, or "error". Without the folder of their torch, or of their PEFT, that of the
    environment runs."""
    wanted = [versions.folder_of(TORCH, torches) if torches is not None and torches.is_dir() else None,
              pefts / PEFT if pefts is not None else None]
    for name, folder in zip((f"torch {TORCH}", f"PEFT {PEFT}"), wanted):
        if folder is None or not folder.is_dir():
            tell(f"{name} is not here: the environment's runs")
    server = forked.Server(build, GPU, PACKAGES, folders=[folder for folder in wanted if folder and folder.is_dir()])
    results = []
    for row in json.loads(ROWS.read_text(encoding="utf-8"))["rows"]:
        if names is not None and row["name"] not in names:
            continue
        found = server.document(PROGRAM, [row["name"], length])
        results.append({"name": row["name"], "published": row["reserved_bytes"], "error": found["error"],
                        "predicted": None if found["error"] else found["peak_reserved_bytes"]})
        tell(described(results[-1]))
    server.close()
    return results


def difference(row):
    return row["predicted"] / row["published"] - 1


def described(row):
    return f"{row['name']:44} published {row['published'] / 1e9:6.2f} GB: " + (
        row["error"] or f"{row['predicted'] / 1e9:6.2f} GB, {100 * difference(row):+.2f} %")


def judged(results):
    scored = [abs(difference(row)) for row in results if row["error"] is None and row["name"] != FITTED]
    if not scored:
        return []
    return [
        figures.at_least("peft_rows_scored", len(scored), f"of {len(results)} rows", 31),
        figures.at_most("peft_reserved_median_error", round(100 * statistics.median(scored), 2), "%", 0.6),
        figures.at_most("peft_reserved_worst", round(100 * max(scored), 2), "%", 5)]
