"""The command under several versions of torch, from 2.4 with CUDA 12 to 2.13 with CUDA 13.

Each version is a folder of packages, as `pip install --target FOLDER/2.6.0 torch==2.6.0 torchvision` makes it; its
name begins with the version. What is in it comes before what the environment has, so that an older torch can bring
an older transformers.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import figures  # noqa: E402
from dry_runs import command  # noqa: E402

PROGRAMS = ROOT / "bench" / "dry_runs" / "programs"
VERSIONS = ("2.4", "2.6", "2.7", "2.9", "2.11", "2.13")
RUNS = (("bert_trainer", ["bf16"]), ("resnet50", []))
GPU = "a100-40gb"


def folder_of(version, torches):
    """The folder of a version, or None."""
    return next((path for path in sorted(torches.iterdir()) if path.name.startswith(f"{version}.")), None)


def run(build, torches, tell):
    """Rows of all versions that the folder `torches` has; `tell` is given each in words, and what was skipped."""
    rows = []
    for version in VERSIONS:
        packages = folder_of(version, torches) if torches is not None and torches.is_dir() else None
        if packages is None:
            tell(f"torch {version} was skipped: no folder {version}.* in {torches}")
            continue
        for program, arguments in RUNS:
            row = command.dry_run(build, ["--gpu", GPU], [sys.executable, PROGRAMS / f"{program}.py", *arguments],
                                  packages=[packages])
            rows.append({**row, "version": packages.name, "program": program})
            tell(described(rows[-1]))
    return rows


def described(row):
    return f"torch {row['version']:7} {row['program']:13} " + (
        row["error"] or f"{row['verdict']}, allocated {row['peak_allocated_bytes'] >> 20} MiB, reserved "
                        f"{row['peak_reserved_bytes'] >> 20} MiB, required {row['required_bytes'] >> 20} MiB, "
                        f"{row['steps']} steps, {row['seconds']} s")


def judged(rows):
    """The largest peak of a program by the smallest is reported: versions differ in their kernels."""
    if not rows:
        return []
    spread = 0.0
    for program, _ in RUNS:
        peaks = [row["peak_reserved_bytes"] for row in rows if row["program"] == program and not row["error"]]
        spread = max(spread, max(peaks) / min(peaks) - 1) if peaks else spread
    return [figures.at_least("versions_run", sum(row["error"] is None for row in rows), "runs",
                             len(VERSIONS) * len(RUNS)),
            figures.figure("versions_peak_spread", round(100 * spread, 1), "%", "reported", True)]
