#!/usr/bin/env python3
"""What server and worker make of faults of a card: each case end to end, on an emulated card.

usage: fault_cases.py [CASE...]

Prints, for each case, the end that is expected and the one that came, then one line of JSON with
the counts. Exits 0 if all ended as expected, else 3. Needs HPO_BIN_DIR and the target emulated_cuda.
"""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ.setdefault("HPO_FAKE_TRAINER", "none")
from emulated import BERT, EmulatedDeployment, profile_card, write_model, write_rows  # noqa: E402
from harness import BIN, wait_until  # noqa: E402

CARD = "a100"
MEMORY = {"HPO_EMULATED_MEMORY": "24GiB"}
PARALLEL = 3
ROWS = 32
STUDY = """\
name: faults
objective: {{metric: macro_f1, direction: maximize}}
trainer: {{task: text-classification, train: train.jsonl, validation: valid.jsonl, epochs: 2,
          init: random, labels: ["no", "yes"]}}
budget: {{trials: 1}}
memory: {{policy: {policy}}}
sampler: {{type: random, seed: 1}}
pruner: {{type: none}}
parameters:
  model.name: {{choices: [bert]}}
  tok.max_length: {{choices: [512]}}
  train.batch_size: {{choices: [8, 32]}}
  train.lr: {{float: [1.0e-5, 1.0e-4]}}
"""
# Stands in for hpo-trainer beside the worker: the fault is met by the first process that serves
# trials, and by no other; or by every one of them.
TRAINER = """\
#!/bin/sh
case "$*" in
  *--profile-device*) unset HPO_EMULATED_FAULTS ;;
  *) [ -z "$HPO_FAULT_ONCE" ] || mkdir "$HPO_FAULT_ONCE" 2>/dev/null || unset HPO_EMULATED_FAULTS ;;
esac
exec "{bin}/hpo-trainer" "$@"
"""


@dataclasses.dataclass
class Case:
    name: str
    expected: str
    faults: str = ""
    every_process: bool = False     # meets the faults, not only the first
    environment: dict = dataclasses.field(default_factory=dict)
    worker: tuple = ("--gpu", "0")
    batch: int = 8
    micro_batch: int = 0            # forced, without admission
    policy: str = "plan"
    held_mib: int = 0               # by another process, until the trial's first attempt is over


def ends(trial):
    """How a trial ended, in the words of Case.expected."""
    outcome = trial["outcome"] or {}
    detail = trial["prune_reason"] or outcome.get("failure_class", "")
    attempts = trial["attempts"]
    memory = [a["memory"] or {} for a in attempts]
    text = (f"{trial['state']} {detail}".strip() + f"; {len(attempts)} attempt"
            + ("" if len(attempts) == 1 else "s")
            + f", {sum(m.get('num_ooms', 0) for m in memory)} OOMs met"
            + f", {sum(m.get('num_replans', 0) for m in memory)} re-plans")
    notes = [a["end_note"] for a in attempts[:-1]]
    return text + "".join(f"; {note}" for note in notes)


def has_frames(trial, worker, state):
    """Whether an error line of the trial, the worker or its trainers holds C++ stack frames."""
    outcome = {**(trial["outcome"] or {}), "error_traceback": ""}
    logs = [log.read_text(errors="replace") for log in state.rglob("*.log")]
    return any("frame #" in text for text in [json.dumps(outcome), worker.output(), *logs])


LOST = "transient failure (DEVICE_LOST), retry {} of 2"
CROWDED = "out of memory on a device that others use, retry {} of 2"
FINE = "COMPLETED; 1 attempt, 0 OOMs met, 0 re-plans"
ONE_REDO = "COMPLETED; 1 attempt, 1 OOMs met, 0 re-plans"
ONE_REPLAN = "COMPLETED; 1 attempt, 1 OOMs met, 1 re-plans"
# Once for the error, once more as the allocator is thrashing: under a tight limit growing segments give
# pages back for each of the parts, step for step (worker/trainer/memory/thrash_guard.h).
TWO_REPLANS = "COMPLETED; 1 attempt, 1 OOMs met, 2 re-plans"
REDO_AND_REPLAN = "COMPLETED; 1 attempt, 2 OOMs met, 1 re-plans"
LOST_ONCE = "COMPLETED; 2 attempts, 0 OOMs met, 0 re-plans; " + LOST.format(1)
LOST_FOR_GOOD = ("FAILED DEVICE_LOST; 3 attempts, 0 OOMs met, 0 re-plans; " + LOST.format(1) + "; "
                 + LOST.format(2))
CROWDED_ONCE = "COMPLETED; 2 attempts, 1 OOMs met, 0 re-plans; " + CROWDED.format(1)
EXPANDABLE = "expandable_segments:True"

# The 26 of the study of the emulated card, but that a product fails in place of a third handle of
# cuBLAS: there are two threads that multiply, and never a third.
CASES = [
    Case("a sticky error 700 at the 300th launch", LOST_ONCE, "cudaLaunchKernel:300:700:sticky"),
    Case("an assertion of the device at a copy, in every process", LOST_FOR_GOOD,
         "cudaMemcpyAsync:4:710:sticky", every_process=True),
    Case("an ECC error at a stream's synchronisation", LOST_ONCE,
         "cudaStreamSynchronize:1:214:sticky"),
    Case("a launch out of memory in training", ONE_REPLAN, "cudaLaunchKernel:300:2"),
    Case("a launch out of memory in the warm-up", CROWDED_ONCE, "cudaLaunchKernel:2:2"),
    Case("cudaMalloc out of memory once: torch tries again", FINE, "cudaMalloc:6:2"),
    Case("cudaMalloc with an unknown error", LOST_ONCE, "cudaMalloc:6:999"),
    Case("the first page-locked memory refused", ONE_REDO, "cudaHostAlloc:1:2"),
    Case("the second page-locked memory refused", ONE_REDO, "cudaHostAlloc:2:2"),
    Case("the first handle of cuBLAS refused, in the warm-up", CROWDED_ONCE, "cublasCreate_v2:1:3"),
    Case("the second handle of cuBLAS refused, in the warm-up", CROWDED_ONCE,
         "cublasCreate_v2:2:3"),
    Case("a product out of memory in training", ONE_REPLAN, "cublasSgemm_v2:100:3"),
    Case("a sticky error 700 at cudaMemGetInfo", LOST_ONCE, "cudaMemGetInfo:1:700:sticky"),
    Case("1.2 GiB of the 1.7 that are needed, without admission", REDO_AND_REPLAN, batch=32,
         micro_batch=32, worker=("--gpu", "0", "--memory-limit", "1229MiB")),
    Case("700 MiB, without admission", REDO_AND_REPLAN, batch=32, micro_batch=32,
         worker=("--gpu", "0", "--memory-limit", "700MiB")),
    Case("340 MiB, in which nothing runs, without admission",
         "PRUNED OUT_OF_MEMORY; 1 attempt, 1 OOMs met, 0 re-plans", batch=32, micro_batch=32,
         worker=("--gpu", "0", "--memory-limit", "340MiB")),
    Case("1.2 GiB under the policy strict, without admission",
         "PRUNED OUT_OF_MEMORY; 1 attempt, 3 OOMs met, 0 re-plans", policy="strict", batch=32,
         micro_batch=32, worker=("--gpu", "0", "--memory-limit", "1229MiB")),
    Case("1.2 GiB in growing segments, by PYTORCH_CUDA_ALLOC_CONF", TWO_REPLANS, batch=32,
         micro_batch=32, worker=("--gpu", "0", "--memory-limit", "1229MiB"),
         environment={"PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE}),
    Case("1.2 GiB in growing segments, by PYTORCH_ALLOC_CONF", TWO_REPLANS, batch=32,
         micro_batch=32, worker=("--gpu", "0", "--memory-limit", "1229MiB"),
         environment={"PYTORCH_ALLOC_CONF": EXPANDABLE}),
    Case("others hold 22.5 of 24 GiB: planned smaller", FINE, batch=32, held_mib=23040),
    Case("others hold all, and go later", CROWDED_ONCE, micro_batch=8, held_mib=23970),
    Case("a card of 200 MiB", "PRUNED PREDICTED_OUT_OF_MEMORY; 0 attempts, 0 OOMs met, 0 re-plans",
         environment={"HPO_EMULATED_MEMORY": "200MiB"}),
    Case("the second of two cards", FINE, worker=("--gpu", "1"),
         environment={"HPO_EMULATED_CARDS": "2"}),
    Case("the sixth of one card", "worker ends with 78: --gpu 5: no such GPU",
         worker=("--gpu", "5")),
    Case("no card", "worker ends with 78: --gpu 0: expected at least one GPU, found none", environment={"HPO_EMULATED_CARDS": "0"}),
    Case("the allocator cudaMallocAsync",
         "worker ends with 78: PYTORCH_CUDA_ALLOC_CONF: hpo-trainer needs torch's native allocator, "
         "got 'backend:cudaMallocAsync'",
         environment={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
]


class Cases:
    def __init__(self, folder):
        self.folder = folder
        (folder / "data").mkdir()
        write_rows(folder / "data" / "train.jsonl", [510] * ROWS, seed=1)
        write_rows(folder / "data" / "valid.jsonl", [510] * 8, seed=2)
        write_model(folder / "models" / "bert", BERT)
        programs = folder / "bin"
        programs.mkdir()
        shutil.copy(BIN / "hpo-worker", programs / "hpo-worker")
        (programs / "hpo-trainer").write_text(TRAINER.format(bin=BIN))
        (programs / "hpo-trainer").chmod(0o755)
        self.profile = profile_card(CARD, {**MEMORY, "HPO_EMULATED_STATE": str(folder / "card")})

    def run(self, case):
        environment = {**MEMORY, **case.environment}
        with EmulatedDeployment(STUDY.format(policy=case.policy), CARD, self.folder / "data",
                                self.folder / "models", environment, self.profile) as deployment:
            try:
                return self.end_of(case, deployment)
            except AssertionError as error:
                return f"{error}\n{deployment.logs()}"

    def end_of(self, case, deployment):
        options = []
        if case.micro_batch:
            options = ["--no-admission", "--micro-batch", case.micro_batch]
        deployment.hpo("enqueue", *options, f"train.batch_size={case.batch}", "train.lr=5e-5")
        holder = self.hold(case, deployment)
        faults = {}
        if case.faults:
            faults["HPO_EMULATED_FAULTS"] = case.faults
        if case.faults and not case.every_process:
            faults["HPO_FAULT_ONCE"] = str(deployment.folder / "met")
        worker = deployment.start_worker(*case.worker, program=self.folder / "bin" / "hpo-worker",
                                         environment=faults)
        if holder:
            wait_until(lambda: not worker.alive() or
                       "RELEASED" in [a["state"] for a in deployment.trial(0)["attempts"]],
                       "the first attempt's end")
            holder.close()
        wait_until(lambda: not worker.alive(), "the worker's end")
        trial = deployment.trial(0)
        if not trial["attempts"] and trial["state"] == "QUEUED":
            reason = worker.output().splitlines()[-1].partition(" error ")[2]
            return f"worker ends with {worker.wait()}: {reason.partition(';')[0]}"
        frames = has_frames(trial, worker, deployment.folder / "state")
        return ends(trial) + ("; C++ frames in an error line" if frames else "")

    def hold(self, case, deployment):
        if not case.held_mib:
            return None
        hold = BIN.parent / "emulator" / "emulated_card"
        holder = deployment.on_card("holder", "sh", "-c",
                                    f"sleep 1000 | {hold} --hold {case.held_mib}MiB")
        wait_until(lambda: "holding" in holder.output(), "the other process")
        return holder


def run_all(names=()):
    """Of each case: name, expected end, end that came."""
    chosen = [case for case in CASES if not names or case.name in names]
    with tempfile.TemporaryDirectory(prefix="hpo-faults-") as folder:
        cases = Cases(pathlib.Path(folder))
        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            results = list(pool.map(cases.run, chosen))
    return [(case.name, case.expected, came) for case, came in zip(chosen, results)]


def main():
    results = run_all(sys.argv[1:])
    for name, expected, came in results:
        print(f"{'ok ' if came == expected else 'BAD'} {name}\n    expected: {expected}")
        if came != expected:
            print(f"    came:     {came}")
    good = sum(came == expected for _, expected, came in results)
    print(json.dumps({"card": f"{CARD} (emulated)", "fault_cases": len(results),
                      "fault_cases_as_expected": good}))
    return 0 if good == len(results) else 3


if __name__ == "__main__":
    sys.exit(main())
