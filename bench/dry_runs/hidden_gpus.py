"""Emulated GPUs of 12 GB whose share beyond torch's allocator nobody but the GPU knows.

The context is drawn from the published messages of bench/results/dry_run/overhead_rows.csv (torch 2.4 or later): the
line that python/dryrun/hpo_dryrun/overheads.py computes for the GPU, and how far one message is from its own line. The
messages are those between the 2.5th and the 97.5th percentile. Programs with convolutions also hold workspaces, 0 to
twice the figure of overheads.py.
"""

import csv
import dataclasses
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts" / "reference"), str(ROOT / "python" / "dryrun")]
import dry_run_overheads  # noqa: E402
from hpo_dryrun import overheads  # noqa: E402

GPU = "rtx3060"
CAPABILITY, THREADS = 86, 28 * 1536
LEAST_BYTES = 32 << 20
LEFT_OUT = 0.025


@dataclasses.dataclass(frozen=True)
class HiddenGpu:
    context_bytes: int
    workspace_bytes: int

    @property
    def beyond_torch(self):
        return self.context_bytes + self.workspace_bytes


def _line(capability, threads):
    return overheads.overhead(capability, None, None, threads=threads).context_bytes


def published_errors():
    """Bytes that processes held beyond their line, in ascending order, without both ends."""
    with open(dry_run_overheads.RESULTS / "overhead_rows.csv", newline="", encoding="utf-8") as file:
        rows = [dry_run_overheads.Row(fields) for fields in csv.DictReader(file)]
    others = dry_run_overheads.OWN_MEMORY | {dry_run_overheads.EAGER, dry_run_overheads.SEVERAL}
    errors = sorted(row.beyond - _line(row.capability, row.threads) for row in rows
                    if row.is_supported and row.program not in others)
    end = round(LEFT_OUT * len(errors))
    return errors[end:len(errors) - end]


def draw(name, seed, convolves):
    """The GPU of a study: another for each name and seed."""
    dice = random.Random(f"{name} {seed}")
    context = max(LEAST_BYTES, round(_line(CAPABILITY, THREADS) + dice.choice(published_errors())))
    workspace = dice.randrange(2 * overheads.CUDNN_WORKSPACE_BYTES) if convolves else 0
    return HiddenGpu(context, workspace)
