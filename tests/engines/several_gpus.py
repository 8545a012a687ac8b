"""Trials on several emulated GPUs, started by torchrun: one rank runs out of memory. Python's path holds torch, and
HPO_BIN_DIR names the programs of the build; the target emulated_cuda is built.

usage: several_gpus.py GPUS

Prints the figures of `measure` as a line of JSON. The program of the trials is examples/several_gpus/train.py.
"""

import importlib.util
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
os.environ.setdefault("HPO_FAKE_TRAINER", "none")
from emulated import BIN, EmulatedDeployment, wait_until  # noqa: E402

# Rows of each rank: the small GPU has memory for half of them.
ROWS, FEW_ROWS = 512, 64
LARGE, SMALL = "t4", "t4:4GiB"
LONGEST_S = 400
EMPTY = ROOT / "examples" / "several_gpus"  # neither data nor models are there
VISIT = ROOT / "tests" / "engines" / "trial_start.py"
STUDY = """\
name: several
objective: {{metric: loss, direction: minimize}}
trainer:
  command: >-
    python3 {visit} {{output_dir}} {starts} && python3 -m torch.distributed.run --standalone
    --nproc-per-node {{gpus}} {root}/examples/several_gpus/train.py --epochs 1 --width 512 --layers 8
    --rows {rows} --batch-size {{batch}} {{more}}
  gpus: {gpus}
budget: {{trials: 2}}
sampler: {{type: random}}
pruner: {{type: none}}
parameters:
  train.batch_size: {{choices: [{few}, {many}]}}
"""


def missing():
    """Why nothing can be measured here; None: it can be."""
    return None if importlib.util.find_spec("torch") else "no torch in Python's path"


def hungry_rank(gpus):
    return gpus // 2


class _Study:
    """Two trials, of which the first is too large for the smallest GPU."""

    def __init__(self, gpus, plans):
        cards = [LARGE] * gpus
        cards[hungry_rank(gpus)] = SMALL
        self.gpus = gpus
        of_all = 1 if not plans else gpus  # train.batch_size is that of all ranks only where it is planned
        self.batches = ROWS * of_all, FEW_ROWS * of_all
        self.machine = EmulatedDeployment("", "+".join(cards), EMPTY, EMPTY)
        self.starts = self.machine.folder / "starts"
        text = STUDY.format(visit=VISIT, starts=self.starts, root=ROOT, rows=ROWS * gpus, gpus=gpus,
                            few=self.batches[1], many=self.batches[0])
        batch, more = ("{micro_batch}", "--accumulation {accumulation}") if plans else ("{train.batch_size}", "")
        self.machine.study_file.write_text(text.replace("{batch}", batch).replace("{more}", more))

    def run(self):
        with self.machine as machine:
            for batch in self.batches:
                machine.hpo("enqueue", f"train.batch_size={batch}")
            # What it prints goes nowhere else. GPUs are in the order of nvidia-smi.
            worker = machine.start_worker("--allow-commands", environment={
                "OMP_NUM_THREADS": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
            wait_until(lambda: not worker.alive() or "trial #0" in worker.output(), "the first trial", LONGEST_S)
            workers = json.loads(machine.hpo("worker", "list", "--output", "json"))
            wait_until(lambda: not worker.alive(), "the end of the study", LONGEST_S)
            if worker.wait() != 0:
                raise AssertionError(machine.logs())
            return {"trials": [machine.trial(0), machine.trial(1)], "workers": workers, "log": worker.output(),
                    "starts": [json.loads(line) for line in self.starts.read_text().splitlines()],
                    "left": processes_of(machine.folder)}


def processes_of(folder):
    """Processes that still run and have the folder in their environment; not the server."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"HPO_OUTPUT_DIR={folder}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _rank_in(text):
    found = re.search(r"rank (\d+): [^\n]*out of memory", text)
    return int(found[1]) if found else None


def measure(gpus):
    """The figures of trials on so many GPUs, of which one has too little memory: with a command that is planned
    anew, and with one that is not. `rank_...`: the rank that is named; `hungry_rank` is the true one."""
    planned, literal = _Study(gpus, plans=True).run(), _Study(gpus, plans=False).run()
    first, second = planned["trials"]
    pruned, after = literal["trials"]
    starts = planned["starts"] + literal["starts"]
    memory = [trial["attempts"][-1]["memory"] or {} for trial in (second, after)]
    return {
        "gpus": gpus,
        "hungry_rank": hungry_rank(gpus),
        "workers": len(planned["workers"]["workers"]),
        "device": planned["workers"]["workers"][0]["device"],
        "limit_bytes": (pruned["outcome"] or {}).get("limit_bytes"),
        "planned_state": first["state"],
        "planned_ooms": (first["attempts"][-1]["memory"] or {}).get("num_ooms", 0),
        "planned_micro_batch": first["attempts"][-1]["final_plan"]["micro_batch"],
        "rank_of_planned": _rank_in(planned["log"]),
        "pruned_state": pruned["state"],
        "pruned_kind": (pruned["outcome"] or {}).get("kind"),
        "rank_of_pruned": _rank_in((pruned["outcome"] or {}).get("error_message", "")),
        "next_states": [second["state"], after["state"]],
        "next_ooms": sum(one.get("num_ooms", 0) for one in memory),
        "visible_at_starts": sorted({start["visible"] for start in starts}),
        "others_at_starts": sum(start["others"] for start in starts),
        "held_at_starts_mib": max(start["held_mib"] for start in starts),
        "starts": len(starts),
        "processes_left": len(planned["left"]) + len(literal["left"]),
    }


def main():
    why = missing()
    if why or len(sys.argv) != 2 or not sys.argv[1].isdigit():
        print(f"several_gpus: {why or 'expected a number of GPUs'}", file=sys.stderr)
        return 2
    print(json.dumps(measure(int(sys.argv[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
