#!/usr/bin/env python3
"""How well a study on an emulated 12 GB card keeps clear of what does not fit: one line of JSON.

usage: emulated_study.py --policy plan|strict [--trials N] [--seed N] [--card NAME]

Half of the trials are drawn evenly from a space of which about half does not fit, so that what is
refused is known; the sampler proposes the other half. All that is refused runs again, unchecked and
in its smallest plan, on the same card: what then trains without running out was refused wrongly.

  study_oom_share         trials that met an out-of-memory error
  study_refused_feasible  trials that were refused and do run

Needs HPO_BIN_DIR and the target emulated_cuda.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import random
import sys
import tempfile

os.environ.setdefault("HPO_FAKE_TRAINER", "none")
from emulated import BERT, EmulatedDeployment, profile_card, write_model, write_rows  # noqa: E402
from harness import BIN, wait_until  # noqa: E402

ROWS = 256
LONGEST_S = 1800

# What differs between the models; the rest is BERT's.
MODELS = {
    # Under `strict` batches decide, and small models are quick.
    "strict": {"small": (512, 6, 8), "wide": (1024, 4, 16), "base": (768, 12, 12)},
    # Under `plan` batches are split, so that weights decide: 0.3 to 2 billion parameters.
    "plan": {f"bert-{hidden}-{layers}": (hidden, layers, hidden // 64)
             for hidden, layers in [(1024, 24), (2048, 10), (3072, 8), (2560, 12), (3072, 12),
                                    (4096, 7), (4096, 8), (4096, 10)]},
}
CHOICES = {
    "strict": {"tok.max_length": [192, 256, 320, 384, 448, 512],
               "train.batch_size": [32, 48, 64, 96, 128, 192, 256],
               "train.precision": ["fp32", "bf16"],
               "train.optimizer": ["adamw", "sgd"]},
    "plan": {"tok.max_length": [64, 128, 256, 384, 512],
             "train.batch_size": [1, 2, 4, 8],
             "train.precision": ["fp32", "bf16"],
             "train.optimizer": ["adamw", "adamw_8bit", "adafactor"]},
}


def study_text(policy, trials):
    parameters = "\n".join(f"  {name}: {{choices: {json.dumps(values)}}}"
                           for name, values in space_of(policy).items())
    return f"""\
name: emulated
objective: {{metric: macro_f1, direction: maximize}}
trainer: {{task: text-classification, train: train.jsonl, validation: valid.jsonl, epochs: 1,
          init: random, labels: ["no", "yes"]}}
budget: {{trials: {trials}}}
memory: {{policy: {policy}}}
sampler: {{type: tpe, seed: 7}}
pruner: {{type: none}}
parameters:
{parameters}
  train.lr: {{float: [1.0e-5, 1.0e-4], log: true}}
"""


def space_of(policy):
    return {"model.name": list(MODELS[policy]), **CHOICES[policy]}


def words_of(params):
    return [f"{name}={value}" for name, value in params.items()]


@dataclasses.dataclass
class Options:
    policy: str
    trials: int
    seed: int
    card: str


class Study:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        (folder / "data").mkdir()
        rows = ROWS if options.policy == "strict" else 8
        draw = random.Random(3)
        write_rows(folder / "data" / "train.jsonl",
                   [draw.randint(20, 510) for _ in range(rows)], seed=1)
        write_rows(folder / "data" / "valid.jsonl", [draw.randint(20, 510) for _ in range(8)],
                   seed=2)
        for name, (hidden, layers, heads) in MODELS[options.policy].items():
            write_model(folder / "models" / name,
                        {**BERT, "hidden_size": hidden, "num_hidden_layers": layers,
                         "num_attention_heads": heads, "intermediate_size": 4 * hidden})
        self.profile = profile_card(options.card, {"HPO_EMULATED_STATE": str(folder / "card")})

    def deployment(self, trials):
        return EmulatedDeployment(
            study_text(self.options.policy, trials), self.options.card, self.folder / "data",
            self.folder / "models", {"HPO_TOKEN_CACHE": str(self.folder / "tokens")}, self.profile)

    def trials_of(self, deployment, trials):
        """All trials of a study, once they are over."""
        # Weights are not kept: a limit on files' sizes stands for a full disk.
        worker = deployment.start_worker("--gpu", "0", shell="ulimit -f 20000; trap '' XFSZ")
        wait_until(lambda: not worker.alive(), "the study's end", LONGEST_S)
        if worker.wait() != 0:
            raise AssertionError(deployment.logs())
        return [deployment.trial(number) for number in range(trials)]

    def first_run(self):
        draw = random.Random(self.options.seed)
        with self.deployment(self.options.trials) as deployment:
            for _ in range(self.options.trials // 2):
                params = {n: draw.choice(v) for n, v in space_of(self.options.policy).items()}
                deployment.hpo("enqueue", *words_of(params), "train.lr=5e-5")
            return self.trials_of(deployment, self.options.trials)

    def run_unchecked(self, refused):
        """The refused trials again, with the micro-batch that needs the least."""
        if not refused:
            return []
        with self.deployment(len(refused)) as deployment:
            for trial in refused:
                batch = trial["params"]["train.batch_size"]
                smallest = batch if self.options.policy == "strict" else 1
                deployment.hpo("enqueue", "--no-admission", "--micro-batch", smallest,
                               *words_of(trial["params"]))
            return self.trials_of(deployment, len(refused))


def met_oom(trial):
    outcome = trial["outcome"] or {}
    told = outcome.get("kind") == "out_of_memory" and not outcome["predicted"]
    return told or any((a["memory"] or {}).get("num_ooms", 0) for a in trial["attempts"])


def was_refused(trial):
    return trial["prune_reason"] == "PREDICTED_OUT_OF_MEMORY"


def described(trial):
    """A trial that was judged wrongly, for whoever corrects the prediction."""
    attempts = [{"plan": a["final_plan"] or a["plan"], "predicted": a["predicted_bytes"],
                 "memory": a["memory"], "end_note": a["end_note"]} for a in trial["attempts"]]
    return {"params": trial["params"], "outcome": trial["outcome"], "attempts": attempts}


def run_study(policy, trials, seed, card):
    """The figures of one study, and each trial that was judged wrongly."""
    with tempfile.TemporaryDirectory(prefix="hpo-study-") as folder:
        study = Study(Options(policy, trials, seed, card), pathlib.Path(folder))
        first = study.first_run()
        refused = [t for t in first if was_refused(t)]
        again = study.run_unchecked(refused)
    ran_out = [t for t in first if met_oom(t)]
    do_run = [(before, now) for before, now in zip(refused, again)
              if now["state"] == "COMPLETED" and not met_oom(now)]
    drawn = first[:trials // 2]
    return {
        "card": f"{card} (emulated)", "policy": policy, "trials": trials,
        "completed": sum(t["state"] == "COMPLETED" for t in first),
        "refused_share_of_drawn": sum(map(was_refused, drawn)) / len(drawn),
        "study_oom_share": len(ran_out) / trials,
        "study_refused_feasible": len(do_run) / trials,
        "ran_out": [described(t) for t in ran_out],
        "refused_wrongly": [{"refused": before["outcome"], **described(now)}
                            for before, now in do_run],
        "other_ends": [described(t) for t in first if t["state"] not in ("COMPLETED", "PRUNED")],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", choices=list(MODELS), required=True)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--card", default="rtx3060")
    given = parser.parse_args()
    print(json.dumps(run_study(given.policy, given.trials, given.seed, given.card)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
