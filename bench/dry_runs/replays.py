"""Replays of one recorded run against runs of their own: on other GPUs, with less memory, and under other settings
of the caching allocator."""

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "python" / "dryrun"))
import figures  # noqa: E402
from hpo_dryrun import replay, same_kernels  # noqa: E402

PROGRAMS = ROOT / "bench" / "dry_runs" / "programs"
CONTEXT = 300 << 20  # of an emulated GPU
EXPANDABLE = "expandable_segments:True"

# Program, arguments, and what it uses of same_kernels' libraries.
TRAINER = (same_kernels.ATTENTION, same_kernels.CUBLAS)
RUNS = [
    ("mlp_streams", [], (same_kernels.CUBLAS,)),
    ("bert_trainer", ["fp32"], TRAINER),
    ("bert_trainer", ["bf16"], (*TRAINER, same_kernels.BFLOAT16)),
    ("gpt2_checkpointing", [], (*TRAINER, same_kernels.BFLOAT16)),
]
# The GPU that runs the most threads at once, and one that does not.
RECORDED = ["h100", "l4"]
OTHERS = ["a100", "h200", "rtx3060", "t4"]
# For the time alone: capability, multiprocessors, threads of one, GiB.
TWENTY = [(60, 56, 2048, 16), (70, 80, 2048, 16), (70, 80, 2048, 32), (75, 40, 1024, 15), (75, 68, 1024, 11),
          (80, 108, 2048, 40), (80, 108, 2048, 80), (86, 28, 1536, 12), (86, 72, 1536, 23), (86, 80, 1536, 22),
          (86, 82, 1536, 24), (86, 84, 1536, 48), (89, 34, 1536, 8), (89, 58, 1536, 22), (89, 128, 1536, 24),
          (89, 142, 1536, 45), (90, 114, 2048, 79), (90, 132, 2048, 79), (90, 132, 2048, 140), (100, 148, 2048, 178)]


class Runner:
    """Programs on emulated GPUs, one after the other, in children of a process that has loaded torch."""

    def __init__(self, build, modules=()):
        command = [ROOT / "scripts" / "with_emulated_card", "--build", build, "t4", sys.executable,
                   ROOT / "bench" / "dry_runs" / "runs.py", *modules]
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True)

    def run(self, program, arguments, gpu, **options):
        task = {"program": str(PROGRAMS / f"{program}.py"), "arguments": arguments, "gpu": gpu, **options}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        result = json.loads(self._process.stdout.readline() or '{"error": "the programs cannot be run here"}')
        if "error" in result:
            sys.exit(f"dry_run: {program} on {gpu}: {result['error']}")
        return result

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def shape(result):
    return replay.Gpu(*result["gpu"])


def compared(path, own, settings=None):
    """The run of its own and its replay as one row."""
    result, = replay.run(path, [replay.Target(own["usable"], settings, own["total"], gpu=shape(own))])
    error = abs(result.reserved_peak - own["reserved"]) / own["reserved"]
    return {"own": own["reserved"], "replayed": result.reserved_peak, "error": error, "retries": own["retries"],
            "ran_out": own["ran_out"], "same_verdict": result.ran_out == own["ran_out"],
            "unknown_sizes": result.unknown_sizes}


def processor_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def milliseconds(path):
    """(wall, processor) milliseconds of a replay for 20 GPUs, each the median of several."""
    targets = [replay.Target(gib << 30, gpu=replay.Gpu(*numbers)) for *numbers, gib in TWENTY]
    times = []
    for _ in range(9):
        start, used = time.perf_counter(), processor_seconds()
        replay.run(path, targets)
        times.append((1000 * (time.perf_counter() - start), 1000 * (processor_seconds() - used)))
    return tuple(map(statistics.median, zip(*times)))


def short_memory(recorded):
    """Sizes at which the allocator must free its cache, and one at which memory runs out."""
    allocated, reserved = recorded["allocated"], recorded["reserved"]
    sizes = {"cache short": allocated + (reserved - allocated) * 3 // 4,
             "cache very short": allocated + (reserved - allocated) // 4, "too small": allocated * 9 // 10}
    return {name: f"{size + CONTEXT}B" for name, size in sizes.items()}


def rows_of(runner, folder, program, arguments, libraries):
    """Rows, each with where it ran and whether the kernels are the same; and the times of a replay for 20 GPUs."""
    rows, times = [], []
    own = {gpu: runner.run(program, arguments, gpu) for gpu in OTHERS}
    for recorded_on in RECORDED:
        path = folder / f"{program}-{'-'.join(arguments)}-{recorded_on}"
        recorded = runner.run(program, arguments, recorded_on, events=str(path))
        if recorded["lost"]:
            sys.exit(f"dry_run: {program} on {recorded_on}: {recorded['lost'][0]}")
        times.append(milliseconds(path))
        cases = [(recorded_on, recorded, None), *((gpu, result, None) for gpu, result in own.items())]
        if recorded_on == RECORDED[0]:
            cases.append((EXPANDABLE, runner.run(program, arguments, recorded_on, settings=EXPANDABLE), EXPANDABLE))
            for name, memory in short_memory(recorded).items():
                for settings in ("", EXPANDABLE):
                    result = runner.run(program, arguments, recorded_on, memory=memory, settings=settings)
                    cases.append((f"{name} {settings}".strip(), result, settings))
        for where, result, settings in cases:
            row = {"program": " ".join([program, *arguments]), "recorded": recorded_on, "where": where,
                   "differs": same_kernels.differences(shape(recorded), shape(result), libraries)}
            row.update(compared(path, result, settings))
            if row.pop("unknown_sizes"):
                row["differs"].append("more threads at once")
            rows.append(row)
    return rows, tuple(map(max, zip(*times)))


def run(build, folder, quick, tell):
    """All rows, which `tell` is given in words as they come, and (wall, processor) ms of a replay for 20 GPUs."""
    runner = Runner(build)
    rows, slowest = [], (0.0, 0.0)
    for program, arguments, libraries in RUNS[:1] if quick else RUNS:
        found, took = rows_of(runner, folder, program, arguments, libraries)
        tell("\n".join(map(described, found)))
        rows += found
        slowest = tuple(map(max, slowest, took))
    runner.close()
    return rows, slowest


def described(row):
    kernels = f"run again: {', '.join(row['differs'])}" if row["differs"] else "same kernels"
    return (f"{row['program']:22} recorded on {row['recorded']:5} {row['where']:44} own {row['own'] >> 20:6} MiB, "
            f"replayed {row['replayed'] >> 20:6} MiB, {100 * row['error']:5.2f} %, retries {row['retries']}, "
            f"{'ran out' if row['ran_out'] else 'completed'}{'' if row['same_verdict'] else ' (WRONG)'}, {kernels}")


def judged(rows, slowest):
    same = [row for row in rows if not row["differs"]]
    other = [row["error"] for row in rows if row["differs"]]
    short = sum(row["retries"] > 0 and not row["ran_out"] for row in same)
    return [
        figures.at_most("replay_other_cards_ms", round(slowest[0], 1), "ms", 500),
        figures.figure("replay_other_cards_processor_ms", round(slowest[1], 1), "ms", "reported", True),
        figures.at_most("replay_worst_error", round(100 * max(row["error"] for row in same), 3), "%", 0.5),
        figures.at_least("replay_equal_verdicts", sum(row["same_verdict"] for row in same) / len(same), "share", 1.0),
        figures.at_least("replay_runs_that_retried", short, "runs", 1),
        figures.figure("replay_runs_compared", len(same), "runs", "reported", True),
        figures.figure("replay_worst_error_where_run_again", round(100 * max(other, default=0.0), 3), "%", "reported",
                       True),
    ]
