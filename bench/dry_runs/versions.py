"""The command under several versions of torch, from 2.4 with CUDA 12 to 2.13 with CUDA 13.

Each version is a folder of packages, as `pip install --target FOLDER/2.6.0 torch==2.6.0 torchvision` makes it; its
name begins with the version. What is in it comes before what the environment has, so that an older torch can bring
an older transformers.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import figures  # noqa: E402

PROGRAMS = ROOT / "bench" / "dry_runs" / "programs"
VERSIONS = ("2.4", "2.6", "2.7", "2.9", "2.11", "2.13")
RUNS = (("bert_trainer", ["bf16"]), ("resnet50", []))
GPU = "a100-40gb"


def folder_of(version, builds):
    """The folder of a version, or None."""
    return next((path for path in sorted(builds.iterdir()) if path.name.startswith(f"{version}.")), None)


def dry_run(package, packages, program, arguments):
    """The row of one run."""
    path = os.pathsep.join(filter(None, [str(package), str(packages), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "hpo_dryrun", "--gpu", GPU, "--json", "--", sys.executable, PROGRAMS / f"{program}.py",
         *arguments], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    row = {"version": packages.name, "program": program, "verdict": None}
    if done.returncode not in (0, 3):
        return {**row, "error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    gpu, = json.loads(done.stdout)["gpus"]
    row.update({name: gpu[name] for name in ("verdict", "torch", "steps", "seconds", "peak_allocated_bytes",
                                             "peak_reserved_bytes", "required_bytes")})
    return {**row, "error": None}


def run(package, builds):
    """Rows of all versions that `builds`, a folder, has, and sentences about those that it has not. `package`: the
    folder in which the package hpo_dryrun is, with the libraries of the emulated GPU."""
    rows, skipped = [], []
    for version in VERSIONS:
        packages = folder_of(version, builds) if builds is not None and builds.is_dir() else None
        if packages is None:
            skipped.append(f"torch {version} was skipped: no folder {version}.* in {builds}")
            continue
        rows += [dry_run(package, packages, *one) for one in RUNS]
    return rows, skipped


def told(rows, skipped):
    for row in rows:
        yield f"torch {row['version']:7} {row['program']:13} " + (
            row["error"] or f"{row['verdict']}, allocated {row['peak_allocated_bytes'] >> 20} MiB, reserved "
                            f"{row['peak_reserved_bytes'] >> 20} MiB, required {row['required_bytes'] >> 20} MiB, "
                            f"{row['steps']} steps, {row['seconds']} s")
    yield from skipped


def judged(rows):
    """The largest peak of a program by the smallest is reported: versions differ in their kernels."""
    spread = 0.0
    for program, _ in RUNS:
        peaks = [row["peak_reserved_bytes"] for row in rows if row["program"] == program and not row["error"]]
        spread = max(spread, max(peaks) / min(peaks) - 1) if peaks else spread
    return [figures.at_least("versions_run", sum(row["error"] is None for row in rows), "runs",
                             len(VERSIONS) * len(RUNS)),
            figures.figure("versions_peak_spread", round(100 * spread, 1), "%", "reported", True)]
