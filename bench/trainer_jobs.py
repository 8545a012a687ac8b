"""Jobs for hpo-trainer without a worker: the process, a BERT of random weights, rows of its words, the job's
description."""

import json
import os
import random
import socket
import subprocess
import sys
import time

VOCABULARY = 8000
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LABELS = ("a", "b")


def write_model(folder, hidden, layers, heads):
    """config.json and a vocabulary of the words w0, w1, ..., each of them one token."""
    folder.mkdir()
    config = {
        "model_type": "bert",
        "vocab_size": VOCABULARY,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    words = SPECIAL + [f"w{i}" for i in range(VOCABULARY - len(SPECIAL))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')


def write_rows(path, lengths, seed):
    """One row for each length, that many tokens with the two special ones; labels in turn."""
    words = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for row, length in enumerate(lengths):
            text = " ".join(f"w{words.randrange(VOCABULARY - len(SPECIAL))}" for _ in range(length - 2))
            file.write(json.dumps({"text": text, "label": LABELS[row % len(LABELS)]}) + "\n")


def job(folder, params, batch, micro_batch, **others):
    """A job over model/, train.jsonl and valid.jsonl of `folder`, one epoch on the CPU, nothing kept."""
    return {
        "type": "job",
        "study": "bench",
        "trial": 1,
        "attempt": 1,
        "params": params,
        "train_path": str(folder / "train.jsonl"),
        "validation_path": str(folder / "valid.jsonl"),
        "labels": list(LABELS),
        "epochs": 1,
        "model_name": "bert",
        "model_path": str(folder / "model"),
        "model_init": "random",
        "objective": {"metric": "macro_f1", "direction": "maximize"},
        "device": "cpu",
        "policy": "plan",
        "admission": False,
        "plan": {"effective_batch": batch, "micro_batch": micro_batch},
        "seed": 1,
        "output_dir": "",
        **others,
    }


class Trainer:
    """A warm hpo-trainer, spoken to as hpo-worker does."""

    def __init__(self, program, threads):
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [program, "--threads", str(threads), "--log-level", "error"],
            env={**os.environ, "HPO_TRAINER_FD": str(theirs.fileno())},
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self.socket = ours
        self.lines = ours.makefile("r", encoding="utf-8")
        self.torch = json.loads(self.lines.readline())["torch_build"]  # hello
        self.outcome = None
        self.measurements = []

    def resident(self):
        """Bytes."""
        with open(f"/proc/{self.process.pid}/statm", encoding="utf-8") as numbers:
            return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def run(self, job):
        """Times, by what was told first: the training's start, the first step's end, the measurement.
        `outcome`: what the trial said last; `measurements`: the metrics of each."""
        begin = time.monotonic()
        self.measurements = []
        self.socket.sendall((json.dumps(job) + "\n").encode())
        times = {}
        for line in self.lines:
            message = json.loads(line)
            what = message["stage"] if message["type"] == "memory" else message["type"]
            times.setdefault(what, time.monotonic() - begin)
            if what == "measurement":
                self.measurements.append(message["metrics"])
            if message["type"] == "outcome":
                if message["outcome"]["kind"] != "completed":
                    sys.exit(f"hpo-trainer: {line}")
                self.outcome = message
                return times
        sys.exit("hpo-trainer ended")

    def close(self):
        self.socket.sendall(b'{"type":"shutdown"}\n')
        self.process.wait(30)
