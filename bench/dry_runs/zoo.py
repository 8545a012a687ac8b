"""Whether unmodified programs of many kinds are dry-run to a verdict, by the command as users call it."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import figures  # noqa: E402

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
    """The command's document for one program, or {"error": line}."""
    command = [sys.executable, str(PROGRAM), name]
    options = ["--gpu", "a100-80gb", "--timeout", str(LIMIT_S), "--json"]
    if name in DISTRIBUTED:
        options += ["--count", "2"]
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *command[1:]]
    env = dict(os.environ, OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    env["PYTHONPATH"] = os.pathsep.join([str(build.resolve() / "python"), env.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-m", "hpo_dryrun", *options, "--", *command], env=env, cwd=folder,
                          capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)["gpus"][0]
    except (json.JSONDecodeError, IndexError, KeyError):
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}


def run(build, folder, quick, tell):
    """{program: its document}."""
    found = {}
    for name in QUICK if quick else names():
        found[name] = dry_run(build, name, folder)
        row = found[name]
        tell(f"{name}: " + (row["error"] if "error" in row else
                            f"{row['verdict']}, {row['peak_allocated_bytes'] >> 20} MiB allocated, "
                            f"{row['peak_reserved_bytes'] >> 20} reserved, {row['steps']} steps, {row['seconds']:.0f} s"))
    return found


def judged(found):
    ran = [name for name, row in found.items() if "error" not in row]
    return [figures.at_least("programs_run", len(ran), f"of {len(found)} programs", len(found) - (2 if len(found) > 2 else 0))]
