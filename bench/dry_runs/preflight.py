"""Three studies of programs that know nothing of us, on emulated 12 GB GPUs, with and without `preflight: dry-run`.

What a GPU holds beyond torch's allocator is drawn by seed (hidden_gpus.py): its worker's programs run into it, the dry
runs do not know it. Each configuration that was dry-run and not given to the GPU runs by itself on that GPU
afterwards: did it fit?
"""

import concurrent.futures
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import signal
import sqlite3
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "integration")]
import figures  # noqa: E402
from dry_runs import hidden_gpus, programs_alone, replays  # noqa: E402

NAMES = ("finetune_lm", "train_images", "forecast")
CONVOLVES = ("train_images",)
SEED = 45  # of the figures that are reported; others serve for development
DRY_RUN_TIMEOUT = "500s"  # other studies and whatever else the machine does slow a dry run down
TRIAL_S = 600  # of a real trial
LONGEST_S = 6 * 3600
# Set by a signal: studies under way end with their processes.
STOPPED = threading.Event()


@dataclasses.dataclass
class Ended:
    """A study that is over."""

    name: str
    preflight: bool
    gpu: hidden_gpus.HiddenGpu
    trials: list  # as `hpo trial show` has them
    dry_runs: list
    wall_s: float

    @property
    def ran_out(self):
        return [trial for trial in self.trials if met_oom(trial)]

    @property
    def retries(self):
        return sum(len(trial["attempts"]) - 1 for trial in self.trials)


def met_oom(trial):
    outcome = trial["outcome"] or {}
    predicted = outcome.get("kind") == "out_of_memory" and outcome.get("predicted")
    return not predicted and (outcome.get("kind") == "out_of_memory" or
                              any((attempt["memory"] or {}).get("num_ooms", 0) for attempt in trial["attempts"]))


def study_text(study, trials, seed, preflight):
    """The study's file for a run: with that budget, its programs' folder, and a name that the harness knows."""
    memory = {key: value for key, value in study["memory"].items() if preflight or key != "preflight"}
    trainer = {**study["trainer"], "workdir": str(replays.PROGRAMS)}
    changed = {**study, "memory": memory, "trainer": trainer, "budget": {"trials": trials},
               "sampler": {**study.get("sampler", {}), "seed": seed}}
    return json.dumps(changed)  # JSON is YAML


def stored_dry_runs(database):
    """Of the worker's own GPU, in their order; none where the server knows no dry runs."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'dry_run'").fetchone():
            return []
        rows = connection.execute("SELECT * FROM dry_run WHERE position = 0 ORDER BY number").fetchall()
    return [{**dict(row), "params": json.loads(row["params"]), "end": row["time"] / 1e6,
             "start": (row["time"] - row["took"]) / 1e6} for row in rows]


def run_study(name, trials, seed, preflight):
    """The study, run to its end by a server and a worker on its emulated GPU."""
    os.environ.setdefault("HPO_FAKE_TRAINER", "none")
    from emulated import EmulatedDeployment  # pylint: disable=import-outside-toplevel
    from harness import BIN, wait_until  # pylint: disable=import-outside-toplevel

    study = programs_alone.read_study(name)
    gpu = hidden_gpus.draw(name, seed, name in CONVOLVES)
    with contextlib.ExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="hpo-dry-run-"))
        deployment = stack.enter_context(EmulatedDeployment(
            study_text(study, trials, seed, preflight), hidden_gpus.GPU, data, data,
            {"HPO_EMULATED_CONTEXT": f"{gpu.beyond_torch}B", "OMP_NUM_THREADS": "1",
             "PYTHONPATH": os.pathsep.join([str(BIN.parent / "python"), os.environ.get("PYTHONPATH", "")])}))
        start = time.monotonic()
        worker = deployment.start_worker("--gpu", "0", "--study", study["name"], "--allow-commands",
                                         "--preflight-timeout", DRY_RUN_TIMEOUT, program=BIN / "hpo-worker")
        wait_until(lambda: STOPPED.is_set() or not worker.alive(), "the study's end", LONGEST_S)
        if STOPPED.is_set():
            raise RuntimeError("stopped by a signal")
        wall = time.monotonic() - start
        if worker.wait() != 0:
            raise RuntimeError(f"{name}: {deployment.logs()}")
        ended = [deployment.trial(number) for number in range(trials)]
        return Ended(name, preflight, gpu, ended, stored_dry_runs(deployment.folder / "hpo.db"), wall)


def overlap(one, other):
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))


def seconds_of(text):
    """A time of the CLI's JSON in seconds."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def busy(ended):
    """The intervals in which the worker had a trial, in their order."""
    return sorted((seconds_of(attempt["started"]), seconds_of(attempt["ended"]))
                  for trial in ended.trials for attempt in trial["attempts"])


def waited(ended):
    """Seconds in which the worker had no trial while a dry run was under way."""
    intervals = busy(ended)
    idle = [(before[1], after[0]) for before, after in zip([(0.0, 0.0), *intervals], intervals)]
    return sum(overlap(gap, (row["start"], row["end"])) for gap in idle for row in ended.dry_runs)


def refused(ended):
    """Configurations that were proposed and not given to the GPU, while there was a trial to be given."""
    ran = [trial["params"] for trial in ended.trials if trial["attempts"]]
    last = max(start for start, _ in busy(ended))
    dropped = [row["params"] for row in ended.dry_runs
               if row["refused"] or (row["params"] not in ran and row["end"] < last)]
    return dropped + [trial["params"] for trial in ended.trials
                      if (trial["outcome"] or {}).get("kind") == "out_of_memory" and not met_oom(trial)]


def alone(build, name, gpu, configurations):
    """For each configuration, whether it fits when it runs by itself."""
    if not configurations:
        return []
    programs = programs_alone.Programs(build, programs_alone.read_study(name))
    try:
        return [not programs.run(params, gpu)["ran_out"] for params in configurations]
    finally:
        programs.close()


def infeasible_share(build, name, seed, count):
    """Of configurations that are drawn evenly from the space."""
    fits = alone(build, name, hidden_gpus.draw(name, seed, name in CONVOLVES),
                 programs_alone.sample(programs_alone.read_study(name), count, seed))
    return 1 - sum(fits) / count


def summary(ended, fits):
    """A study as a row of the results. `fits`: of each refused configuration, whether it does."""
    return {"program": ended.name, "preflight": ended.preflight, "trials": len(ended.trials),
            "context_mib": ended.gpu.context_bytes >> 20, "workspace_mib": ended.gpu.workspace_bytes >> 20,
            "ran_out": len(ended.ran_out), "retries": ended.retries,
            "completed": sum(trial["state"] == "COMPLETED" for trial in ended.trials),
            "dry_runs": len(ended.dry_runs), "refused": len(fits), "refused_feasible": sum(fits),
            "dry_run_s": round(sum(row["end"] - row["start"] for row in ended.dry_runs), 1),
            "waited_s": round(waited(ended), 1),
            "trials_s": round(sum(end - start for start, end in busy(ended)), 1), "wall_s": round(ended.wall_s, 1)}


def described(row):
    return (f"{row['program']:12} {'with' if row['preflight'] else 'without':7} preflight: {row['trials']} trials, "
            f"{row['completed']} completed, {row['ran_out']} ran out, {row['retries']} retries; {row['dry_runs']} dry "
            f"runs in {row['dry_run_s']} s, the GPU waited {row['waited_s']} s; {row['refused']} refused "
            f"({row['refused_feasible']} of them fit); {row['wall_s']} s")


def keep_compiled(folder):
    """Lets Python keep what it compiles, as users have it: hundreds of trials load torch."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "pycache")


def run(build, folder, options, tell):
    """(rows of all studies, the share of each space that does not fit)."""
    def one(name, preflight):
        if STOPPED.is_set():
            raise RuntimeError("stopped by a signal")
        ended = run_study(name, options.trials, options.seed, preflight)
        row = summary(ended, alone(build, name, ended.gpu, refused(ended)))
        tell(described(row))
        return row

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: STOPPED.set())
    keep_compiled(folder)
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        studies = [pool.submit(one, name, preflight) for preflight in (True, False) for name in options.programs]
        shares = [pool.submit(infeasible_share, build, name, options.seed, options.sample)
                  for name in options.programs]
        return [study.result() for study in studies], [share.result() for share in shares]


def judged(rows, shares):
    asked = [row for row in rows if row["preflight"]]
    without = [row for row in rows if not row["preflight"]]

    def total(some, key):
        return sum(row[key] for row in some)

    trials = total(asked, "trials")
    feasible = total(asked, "completed") + total(asked, "refused_feasible")
    percent = [round(100 * share) for share in shares]
    return [
        figures.at_most("study_oom_with_preflight", total(asked, "ran_out"), f"of {trials} trials", 1),
        figures.at_most("study_feasible_refused", round(100 * total(asked, "refused_feasible") / max(feasible, 1), 2),
                        "% of those that fit", 3),
        figures.at_most("study_dry_runs_per_trial", round(total(asked, "dry_runs") / trials, 3), "", 0.5),
        figures.at_most("study_gpu_wait_share", round(100 * total(asked, "waited_s") / (TRIAL_S * trials), 2),
                        f"% of trials of {TRIAL_S} s", 2),
        figures.figure("study_infeasible_share", percent, "% of each space", "40 to 60",
                       all(40 <= share <= 60 for share in percent)),
        figures.figure("study_oom_without_preflight", total(without, "ran_out"), f"of {total(without, 'trials')} trials",
                       "reported", True),
        figures.figure("study_retries_without_preflight", total(without, "retries"), "attempts", "reported", True),
    ]
