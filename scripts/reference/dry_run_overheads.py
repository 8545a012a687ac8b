#!/usr/bin/env python3
"""Fits what a process holds of a GPU beyond torch's caching allocator, on published messages.

usage: dry_run_overheads.py           writes python/dryrun/hpo_dryrun/overhead_figures.py and
                                      bench/results/dry_run/overheads.json
       dry_run_overheads.py --check   fails if they are not what it would write

The rows of bench/results/dry_run/overhead_rows.csv (its README says what they are) are split in two
halves by a hash of their source. One half is fitted: bytes = fixed + slope x resident threads, with
the least sum of absolute errors. CUDA keeps a stack and local memory for each thread that a GPU can
hold at once, which is why one line suits all generations. The margin is what covers 95 % of that
half's rows. The other half is only reported.
"""

import csv
import hashlib
import itertools
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results" / "dry_run"
FIGURES = ROOT / "python" / "dryrun" / "hpo_dryrun" / "overhead_figures.py"
MIB = 1 << 20
COVERED = 0.95
EAGER = "all kernels loaded"
SEVERAL = "several GPUs"
# Programs that take memory of the GPU by themselves, beside torch.
OWN_MEMORY = {"tiny-cuda-nn", "TensorRT", "vllm", "sglang", "reinforcement learning with vllm",
              "linear algebra", "text generation server"}


def size(text):
    """Bytes of "12.09GiB" or "213.20MiB"."""
    return float(text[:-3]) * {"GiB": 1 << 30, "MiB": 1 << 20}[text[-3:]]


class Row:
    def __init__(self, fields):
        self.capability = int(fields["capability"])
        self.threads = int(fields["threads"])
        self.program = fields["program"]
        version = fields["torch"].rstrip("+").split(".")
        self.is_supported = [int(part) for part in version] >= [2, 4]
        self.beyond = (size(fields["process"]) - size(fields["allocated"])
                       - size(fields["unallocated"]))
        self.fitted = hashlib.sha256(fields["source"].encode()).digest()[0] % 2 == 0


def fit_line(rows):
    """(fixed, slope) of least absolute errors: such a line goes through two of the points."""
    best = None
    for one, other in itertools.combinations(rows, 2):
        if one.threads == other.threads:
            continue
        slope = (one.beyond - other.beyond) / (one.threads - other.threads)
        fixed = one.beyond - slope * one.threads
        cost = sum(abs(row.beyond - fixed - slope * row.threads) for row in rows)
        if best is None or cost < best[0]:
            best = (cost, fixed, slope)
    return best[1:]


def covering(errors):
    """The least margin that COVERED of `errors` do not exceed."""
    ordered = sorted(errors)
    return ordered[-int(-COVERED * len(ordered) // 1) - 1]


def describe(rows, context, margin):
    errors = [row.beyond - context(row) for row in rows]
    return {"rows": len(rows),
            "median_error_mib": round(statistics.median(errors) / MIB),
            "median_absolute_error_mib": round(statistics.median(map(abs, errors)) / MIB),
            "within_margin": round(sum(error <= margin for error in errors) / len(rows), 3)}


def compute():
    with open(RESULTS / "overhead_rows.csv", newline="", encoding="utf-8") as file:
        rows = [Row(fields) for fields in csv.DictReader(file)]
    plain = [row for row in rows if row.program not in OWN_MEMORY | {EAGER, SEVERAL}]
    several = [row for row in rows if row.program == SEVERAL]
    fitted = [row for row in plain if row.fitted]
    fixed, slope = fit_line(fitted)

    def context(row):
        return fixed + slope * row.threads

    margin = covering([row.beyond - context(row) for row in fitted])
    # One in four rows of several GPUs has less: they range from 0.1 to 7 GiB, with the number of
    # GPUs and process groups, which the messages do not say. The margin covers the rest.
    beyond_context = sorted(row.beyond - context(row) for row in several if row.fitted)
    nccl = beyond_context[len(beyond_context) // 4]
    nccl_margin = covering([row.beyond - context(row) - nccl for row in several if row.fitted])
    capabilities = sorted({row.capability for row in plain})
    figures = {
        "FIXED_BYTES": round(fixed), "BYTES_PER_THREAD": round(slope, 1),
        "MARGIN_BYTES": round(margin), "NCCL_BYTES": round(nccl),
        "NCCL_MARGIN_BYTES": round(nccl_margin),
        "EAGER_BYTES": round(statistics.median(row.beyond - context(row) for row in rows
                                               if row.program == EAGER)),
        "NUM_FITTED": len(fitted), "NUM_EAGER": sum(row.program == EAGER for row in rows),
        "NUM_NCCL": sum(row.fitted for row in several),
        "ROWS": {one: sum(row.capability == one for row in plain) for one in capabilities},
        "THREADS": {one: max(row.threads for row in plain if row.capability == one)
                    for one in capabilities}}

    def report(half):
        by_capability = {str(one): describe([row for row in half if row.capability == one], context,
                                            margin)
                         for one in sorted({row.capability for row in half})}
        supported = [row for row in half if row.is_supported]
        return {**describe(half, context, margin),
                "of_torch_2_4_or_later": describe(supported, context, margin),
                "by_capability": by_capability}

    report_rows = [row for row in plain if not row.fitted]
    return figures, {
        "rows": len(rows), "fixed_mib": round(fixed / MIB, 1),
        "kib_per_thread": round(slope / 1024, 3), "margin_mib": round(margin / MIB),
        "fitted": report(fitted), "reported": report(report_rows),
        "several_gpus_reported": describe([row for row in several if not row.fitted],
                                          lambda row: context(row) + nccl, margin + nccl_margin),
        "own_memory_rows": sum(row.program in OWN_MEMORY for row in rows)}


def main():
    figures, report = compute()
    lines = ['"""Written by scripts/reference/dry_run_overheads.py: figures of overheads.py."""', ""]
    lines += [f"{name} = {value!r}" for name, value in figures.items()]
    texts = {FIGURES: "\n".join(lines) + "\n",
             RESULTS / "overheads.json": json.dumps(report, indent=1) + "\n"}
    for path, text in texts.items():
        if sys.argv[1:] == ["--check"]:
            if path.read_text(encoding="utf-8") != text:
                sys.exit(f"{path}: not what dry_run_overheads.py writes; run it")
        else:
            path.write_text(text, encoding="utf-8")
    print(json.dumps({key: report[key] for key in ("fitted", "reported", "several_gpus_reported")}))


if __name__ == "__main__":
    main()
