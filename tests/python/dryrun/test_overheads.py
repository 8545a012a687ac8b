"""What a process holds of a GPU beyond torch's allocator (hpo_dryrun.overheads)."""

import csv
import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FIT = ROOT / "scripts" / "reference" / "dry_run_overheads.py"
RESULTS = ROOT / "bench" / "results" / "dry_run"
MIB = 1 << 20
GIB = 1 << 30

sys.path.insert(0, str(ROOT / "python" / "dryrun"))
from hpo_dryrun import overheads  # noqa: E402


def test_figures_are_those_of_the_rows():
    done = subprocess.run([sys.executable, FIT, "--check"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr


def test_rows_have_sources_and_are_whole():
    with open(RESULTS / "overhead_rows.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 150
    assert len({row["source"] for row in rows}) == len(rows)
    assert all(row["source"].startswith(("https://", "index:")) for row in rows)
    spec = importlib.util.spec_from_file_location("fit", FIT)
    fit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fit)
    for row in rows:
        beyond = fit.Row(row).beyond
        # Both figures are rounded to 0.01 GiB.
        assert 0.05 * GIB < beyond < float(row["total_gib"]) * GIB, row
        assert fit.size(row["process"]) <= (float(row["total_gib"]) + 0.01) * GIB, row


@pytest.mark.parametrize("threads, least, most", [
    (40 * 1024, 120, 150),  # T4
    (82 * 1536, 280, 340),  # RTX 3090
    (128 * 1536, 430, 500),  # RTX 4090
    (108 * 2048, 490, 540),  # A100
    (132 * 2048, 590, 680),  # H100
    (170 * 1536, 560, 640),  # RTX 5090
])
def test_context_grows_with_resident_threads(threads, least, most):
    found = overheads.overhead(80, "13.0", "2.11.0", (), threads)
    assert least * MIB < found.context_bytes < most * MIB
    assert found.workspace_bytes == 0
    assert 100 * MIB < found.margin_bytes < 1024 * MIB


def test_without_threads_the_largest_gpu_of_the_generation_counts():
    assert overheads.overhead(90, (13, 0), (2, 11, 0)) == overheads.overhead(
        90, "13.0", "2.11.0+cu130", (), 132 * 2048)


def test_a_generation_without_messages_says_so():
    source = overheads.overhead(103, "13.0", "2.11.0", (), 148 * 2048).source
    assert source.endswith("none is of compute capability 10.3")
    assert "9 of all" not in source
    known = overheads.overhead(75, "13.0", "2.11.0").source
    assert known.endswith("are of compute capability 7.5")
    # Of the nearest generation.
    assert (overheads.overhead(103, None, None).context_bytes
            == overheads.overhead(100, None, None).context_bytes)


@pytest.mark.parametrize("cuda, torch, loads_all", [
    ("11.3", "1.12.1+cu113", True), ((11, 6), None, True), ("11.8", "2.1.0", False),
    ("11.7", "1.12.0", True), (None, None, False), ("13.0", "unknown", False)])
def test_old_versions_load_all_kernels(cuda, torch, loads_all):
    found = overheads.overhead(86, cuda, torch)
    lazy = overheads.overhead(86, "12.6", "2.7.0")
    assert (found.context_bytes - lazy.context_bytes > 900 * MIB) == loads_all
    assert ("all kernels" in found.source) == loads_all


def test_libraries_add_what_they_take():
    plain = overheads.overhead(80, "13.0", "2.11.0")
    cudnn = overheads.overhead(80, "13.0", "2.11.0", {"cudnn"})
    nccl = overheads.overhead(80, "13.0", "2.11.0", ["nccl"])
    assert cudnn.workspace_bytes == overheads.CUDNN_WORKSPACE_BYTES
    assert nccl.workspace_bytes > 512 * MIB
    assert nccl.margin_bytes > plain.margin_bytes == cudnn.margin_bytes
    assert "NCCL" in nccl.source and "cuDNN" in cudnn.source


def test_the_other_half_is_reported():
    report = json.loads((RESULTS / "overheads.json").read_text(encoding="utf-8"))
    assert report["reported"]["rows"] > 50
    assert report["reported"]["median_absolute_error_mib"] < 50
    assert report["reported"]["of_torch_2_4_or_later"]["within_margin"] >= 0.95
