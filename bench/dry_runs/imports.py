"""What a dry run takes beyond the imports of its program.

A dry run of the program and a process that only imports what the program imports run in turns, and the difference
of each pair counts: wall seconds, and processor seconds of all their processes.
"""

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "python" / "dryrun"))
import figures  # noqa: E402
from dry_runs import command  # noqa: E402
from hpo_dryrun import launch, stand_ins  # noqa: E402

FOLDER = ROOT / "bench" / "dry_runs"
GPU = "a100-40gb"
PAIRS = 7
# Program, its arguments, the seconds that it may take beyond its imports.
RUNS = (("bert_trainer", ["fp32"], 4.0), ("resnet50", [], 3.0))


def emulated(build, scratch):
    """The environment in which torch can be imported without a GPU, as a dry run makes it."""
    found = launch.torch_of([sys.executable])
    env = stand_ins.environment(found, (build / "python" / "hpo_dryrun" / "lib").resolve(), scratch)
    return dict(env, HPO_EMULATED_CARD=GPU, HPO_EMULATED_STATE=str(pathlib.Path(scratch) / "state"),
                OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")


def seconds(action):
    """(wall, processor) seconds of an action that waits for its processes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    action()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pairs(build, program, arguments, count):
    """Rows of a program: the seconds of the dry run and of the imports, each (wall, processor)."""
    words = [sys.executable, FOLDER / "programs" / f"{program}.py", *arguments]
    documents = []
    with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as scratch:
        env = emulated(build, scratch)
        names = os.path.join(scratch, "modules")
        modules = [sys.executable, FOLDER / "modules.py"]
        subprocess.run([*modules, "record", names, *words[1:]], env=env, check=True, stdout=subprocess.DEVNULL)

        def dry_run():
            documents.append(command.dry_run(build, ["--gpu", GPU], words))

        def load():
            subprocess.run([*modules, "load", names], env=env, check=True)

        dry_run(), load()  # once from disk
        rows = [{"run": seconds(dry_run), "imports": seconds(load)} for _ in range(count)]
    if documents[-1]["error"]:
        sys.exit(f"dry_run: {program}: {documents[-1]['error']}")
    return rows, documents[-1]["steps"]


def beyond(rows, clock):
    """The median difference of the pairs, by the wall (0) or the processor (1)."""
    return statistics.median(row["run"][clock] - row["imports"][clock] for row in rows)


def run(build, quick, tell):
    """{program: (rows, steps that were seen)}."""
    found = {}
    for program, arguments, _ in RUNS[1:] if quick else RUNS:
        rows, steps = pairs(build, program, arguments, 1 if quick else PAIRS)
        found[program] = rows, steps
        for row in rows:
            tell(f"{program}: dry run {row['run'][0]:.2f} s (processor {row['run'][1]:.2f}), "
                 f"imports {row['imports'][0]:.2f} s ({row['imports'][1]:.2f}), {steps} steps")
    return found


def judged(found):
    result = []
    for program, _, goal in RUNS:
        if program in found:
            rows, _ = found[program]
            result.append(figures.at_most(f"seconds_over_import_{program}", round(beyond(rows, 0), 2), "s", goal))
            result.append(figures.figure(f"processor_seconds_over_import_{program}", round(beyond(rows, 1), 2), "s",
                                         "reported", True))
    return result
