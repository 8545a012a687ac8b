"""Whether unmodified programs of many kinds are dry-run to a verdict, by the command as users call it."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import figures  # noqa: E402
from dry_runs import command  # noqa: E402

PROGRAM = ROOT / "bench" / "dry_runs" / "programs" / "zoo.py"
# Several ranks, one for each of two GPUs.
DISTRIBUTED = ("ddp", "fsdp", "fsdp2")
QUICK = ("timm_resnet50",)
LIMIT_S = 300


def names():
    """All programs: the keys of PROGRAMS, in their order, read without importing torch."""
    text = PROGRAM.read_text(encoding="utf-8")
    table = text[text.index("PROGRAMS = {"):]
    return [word.split('"')[1] for word in table[:table.index("}")].replace("\n", " ").split(", ") if ": " in word]


def dry_run(build, name, folder):
    """The command's document for one program."""
    options = ["--gpu", "a100-80gb", "--timeout", str(LIMIT_S)]
    python = [sys.executable]
    if name in DISTRIBUTED:
        options += ["--count", "2"]
        python += ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    return command.dry_run(build, options, [*python, PROGRAM, name], folder)


def run(build, folder, quick, tell):
    """{program: its document}."""
    found = {}
    for name in QUICK if quick else names():
        found[name] = dry_run(build, name, folder)
        row = found[name]
        tell(f"{name}: " + (row["error"] or
                            f"{row['verdict']}, {row['peak_allocated_bytes'] >> 20} MiB allocated, "
                            f"{row['peak_reserved_bytes'] >> 20} reserved, {row['steps']} steps, {row['seconds']:.0f} s"))
    return found


def judged(found):
    ran = [name for name, row in found.items() if row["error"] is None]
    return [figures.at_least("programs_run", len(ran), f"of {len(found)} programs", len(found) - (2 if len(found) > 2 else 0))]
