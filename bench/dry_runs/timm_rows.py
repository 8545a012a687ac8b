"""Published largest batches of timm's models against the verdicts of dry runs, at the published batch and at the
next larger one that timm tried (bench/results/dry_run/README.md)."""

import csv
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import figures  # noqa: E402
from dry_runs import forked, versions  # noqa: E402

ROWS = ROOT / "bench" / "results" / "dry_run" / "timm_rows.csv"
PROGRAM = ROOT / "bench" / "dry_runs" / "programs" / "timm_step.py"
PACKAGES = ("torch", "timm", "timm.optim")
# The timm that was the newest when a table was written, by the table's torch; for 1.12 the first of the same branch
# that Python 3.11 can import.
TIMMS = {"1.12": "0.6.13", "2.4": "1.0.9", "2.9": "1.0.24"}
REPORTED, TUNING = "reported", "tuning"
# Dry runs need torch 2.4 or later. Programs of 1.12 run with the environment's, and are given the context of theirs.
OLD_TORCH = {"1.12": "11.3"}
FITS, TIGHT = "fits", "tight"


def next_larger(batch):
    """timm tries 512, 384, 256, 192, 128 and so on."""
    return batch * 3 // 2 if batch & (batch - 1) == 0 else batch * 4 // 3


def read(half):
    with open(ROWS, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["half"] == half]


def place_of(table):
    """Its version of torch and its GPU."""
    _, _, version, gpu = table.split("-")
    return version.removeprefix("pt"), gpu


def server_of(version, gpu, build, torches, timms):
    """A server for a GPU, a torch and the timm of its time; None: one of them is not here."""
    folders = [timms / TIMMS[version]] if timms is not None else []
    if version not in OLD_TORCH:
        folders.append(versions.folder_of(version, torches) if torches is not None and torches.is_dir() else None)
    if not folders or not all(folder is not None and folder.is_dir() for folder in folders):
        return None
    written_for = (OLD_TORCH[version], version) if version in OLD_TORCH else None
    return forked.Server(build, gpu, PACKAGES, folders=folders, written_for=written_for)


def compared(row, server):
    """The row with the verdicts at its batch and at the next larger one, and what they come to. timm takes the next
    smaller batch after any RuntimeError, so an error of the program's own at the larger one is as good as no memory."""
    work, layout = row["table"].split("-")[:2]
    batch = int(row["batch"])
    found = [server.document(PROGRAM, [row["model"], row["size"], tried, work, layout])
             for tried in (batch, next_larger(batch))]
    errors = [document["error"] for document in found]
    if errors[0] or errors[1] and "RuntimeError:" not in errors[1]:
        return {**row, "outcome": "error", "verdict": "error", "found": errors[0] or errors[1]}
    at, above = (document.get("verdict") for document in found)
    outcome = ("too high" if above in (FITS, TIGHT) else "equal" if at in (FITS, TIGHT) else
               "unknown" if "unknown" in (at, above) else "too low")
    # Of the largest batch that the dry runs let through.
    verdict = above if outcome == "too high" else at
    spare = [f"{document['spare_bytes'] >> 20} MiB" if not document["error"] else "nothing, as it fails"
             for document in found]
    return {**row, "outcome": outcome, "verdict": verdict, "found": f"{verdict}, to spare {' and '.join(spare)}"}


def drawn(rows, number):
    """`number` of the rows, the same ones each time; all where it is None."""
    order = list(rows)
    random.Random(45).shuffle(order)
    return order[:number]


def run(build, torches, timms, half, number, tell):
    """Results of `number` rows of a half, table by table."""
    rows = drawn(read(half), number)
    results = []
    for place in dict.fromkeys(place_of(row["table"]) for row in rows):
        server = server_of(*place, build, torches, timms)
        if server is None:
            tell(f"rows of {' '.join(place)} were skipped: its torch is not in {torches}, or its timm not in {timms}")
            continue
        for row in rows:
            if place_of(row["table"]) == place:
                results.append(compared(row, server))
                tell(described(results[-1]))
        server.close()
    return results


def described(row):
    return (f"{row['table']:27} {row['model']:40} {row['size']:4} published {row['batch']:>4}: "
            f"{row['outcome']}, {row['found']}")


def judged(results):
    if not results:
        return []

    def share(part, whole):
        return round(part / whole, 3) if whole else 0.0

    fits = [row for row in results if row["verdict"] == FITS]
    return [
        figures.at_least("timm_equal_share", share(sum(row["outcome"] == "equal" for row in results), len(results)),
                         "share", 0.95),
        figures.at_most("timm_too_high_share", share(sum(row["outcome"] == "too high" for row in fits), len(fits)),
                        "share of the verdicts fits", 0.01),
        figures.at_most("timm_tight_share", share(sum(row["verdict"] == TIGHT for row in results), len(results)),
                        "share", 0.1),
        figures.figure("timm_rows", len(results), "rows", "reported", True)]
