"""One job of hpo-trainer without a server and a worker: `hpo-trainer --job FILE`."""

import json
import subprocess

from harness import BIN, DEADLINE_S

TRAINER = BIN / "hpo-trainer"


def make_job(data, model, output, params, **changes):
    """A job of `data`/train.jsonl and valid.jsonl over the tiny model in folder `model`."""
    batch = params["train.batch_size"] * params.get("train.grad_accum", 1)
    return {"type": "job", "study": "toy", "trial": 0, "attempt": 1, "params": params,
            "task": "text-classification", "train_path": str(data / "train.jsonl"),
            "validation_path": str(data / "valid.jsonl"), "labels": [], "epochs": 1,
            "measure_every_steps": 0, "model_name": "tiny", "model_path": str(model),
            "model_init": "random", "objective": {"metric": "macro_f1", "direction": "maximize"},
            "device": "cpu", "policy": "plan", "admission": True, "limit_bytes": 1 << 30,
            "plan": {"effective_batch": batch, "micro_batch": params["train.batch_size"],
                     "checkpointing": False, "precision": "float32"},
            "predicted_bytes": 0, "seed": 1, "output_dir": str(output), **changes}


def run_job(job, folder):
    """The trainer's exit status and its messages, the outcome last."""
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    done = subprocess.run([str(TRAINER), "--job", str(path)], capture_output=True, text=True,
                          timeout=DEADLINE_S, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]
