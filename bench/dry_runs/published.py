"""Training programs that others measured on an A100, by the command as users call it.

Rows: configurations and "Max GPU Memory (MiB)" (nvidia-smi, A100-SXM4-40GB, October 2024) chosen by file offset from
trans_data.csv of github.com/itu-rad/GPUMemNet; "samples" is of the same file's names. What nvidia-smi read beyond
torch's reserved peak is taken from the eight rows of memory_published_base.csv alone. Two of the 35 rows were measured
while another process held memory of the same GPU: two of the eight rows have the same excess.
"""

import csv
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import figures  # noqa: E402
from dry_runs import command  # noqa: E402

PROGRAM = ROOT / "bench" / "dry_runs" / "programs" / "encoder.py"
MEASURED = "measured_mib"
MIB = 2**20
# More steps than the program has: it ends by itself, beyond an epoch's smaller last batch.
STEPS = "100"


def rows(name):
    with open(ROOT / "bench" / "published" / name, newline="", encoding="utf-8") as lines:
        return [{key: int(value) for key, value in row.items()} for row in csv.DictReader(lines)]


def dry_run(build, row, folder):
    arguments = [value for key, value in row.items() if key != MEASURED]
    return command.dry_run(build, ["--gpu", "a100-40gb", "--steps", STEPS], [sys.executable, PROGRAM, *arguments],
                           folder)


def run(build, folder, quick, tell):
    """(row, its document) of those that the base is from, and of those that are judged."""
    found = []
    for name in ("memory_published_base.csv", "memory_published.csv"):
        answers = []
        for row in rows(name)[:1 if quick else None]:
            answer = dry_run(build, row, folder)
            answers.append((row, answer))
            tell(f"measured {row[MEASURED]} MiB: " + (
                answer["error"] or f"{answer['peak_reserved_bytes'] / MIB:.0f} reserved, "
                                   f"{answer['required_bytes'] / MIB:.0f} required  {row}"))
        found.append(answers)
    return found


def beyond(row, answer):
    return row[MEASURED] - answer["peak_reserved_bytes"] / MIB


def base(answers):
    """MiB that nvidia-smi read beyond torch's reserved peak."""
    return statistics.median(beyond(*answer) for answer in answers)


def errors(answers, predict):
    return [abs(predict(answer) / row[MEASURED] - 1) for row, answer in answers]


def judged(found):
    base_rows, answers = found
    failed = [answer["error"] for _, answer in base_rows + answers if answer["error"]]
    if failed:
        return [figures.at_most("published_failed", len(failed), f"runs, the first: {failed[0]}", 0)]
    beyond_torch = base(base_rows)
    reserved = errors(answers, lambda answer: answer["peak_reserved_bytes"] / MIB + beyond_torch)
    required = errors(answers, lambda answer: answer["required_bytes"] / MIB)
    within = sum(error <= 0.04 for error in reserved)
    return [figures.at_most("published_median_error", round(100 * statistics.median(reserved), 3), "%", 0.25),
            figures.at_least("published_within_4_percent", within, f"of {len(answers)}", min(33, len(answers))),
            figures.figure("published_base", round(beyond_torch), "MiB", "reported", True),
            figures.figure("published_required_median_error", round(100 * statistics.median(required), 1), "%",
                           "reported", True)]
