#!/usr/bin/env python3
"""The other side of bench/end_to_end: Optuna's TPE over Hugging Face's Trainer, as their users join them.

accelerate's find_executable_batch_size shrinks the batch of a trial that runs out of memory; what
still does not fit is told to Optuna as pruned. One process, as in their documentation. Runs until it
is ended from outside; appends one JSON line to --events for each thing that happens:

  {"event": "ready", "time": S}                                   the study begins
  {"event": "attempt", "time": S, "trial": N, "batch_size": B}    a trial starts, or again smaller
  {"event": "oom", "time": S, "trial": N, "error": "..."}         that attempt ran out of memory
  {"event": "completed" | "pruned", "time": S, "trial": N, "value": V, "params": {...}}

Times are seconds of the monotonic clock.
"""

import argparse
import json
import pathlib
import resource
import tempfile
import time

import accelerate.utils
import optuna
import torch
import transformers
import yaml
from sklearn.metrics import f1_score

LABELS = ["no", "yes"]
PADDING_MULTIPLE = 16
MIB = 2**20
# What is not a tensor of the model: tokens, Python objects, gaps in malloc's heap.
BESIDES_TENSORS = 64 * MIB


class Events:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")

    def tell(self, event, **fields):
        line = {"event": event, "time": time.monotonic(), **fields}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()


class Texts(torch.utils.data.Dataset):
    """A file's rows as token ids, cut off at `max_length`."""

    def __init__(self, path, tokenizer, max_length):
        rows = [json.loads(line) for line in path.open(encoding="utf-8")]
        self.rows = tokenizer(
            [row["text"] for row in rows],
            [row["pair"] for row in rows],
            truncation=True,
            max_length=max_length,
        )
        self.labels = [LABELS.index(row["label"]) for row in rows]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        row = {name: values[index] for name, values in self.rows.items()}
        return {**row, "labels": self.labels[index]}


def macro_f1(prediction):
    return {
        "macro_f1": f1_score(
            prediction.label_ids, prediction.predictions.argmax(-1), average="macro", zero_division=0
        )
    }


def arguments_of(config, batch_size, folder):
    """The same training as hpo-trainer's with the study's defaults; nothing saved, nothing logged."""
    return transformers.TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=batch_size,
        per_device_eval_batch_size=batch_size,
        gradient_accumulation_steps=config["train.grad_accum"],
        learning_rate=config["train.lr"],
        num_train_epochs=config["epochs"],
        seed=config["seed"],
        weight_decay=0.01,
        warmup_steps=0.1,
        lr_scheduler_type="linear",
        max_grad_norm=1.0,
        train_sampling_strategy="group_by_length",
        use_cpu=True,
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def train(config, batch_size, options):
    """Trains a fresh model and returns its validation macro-F1."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    length = config["tok.max_length"]
    transformers.set_seed(config["seed"])
    with tempfile.TemporaryDirectory() as folder:
        trainer = transformers.Trainer(
            model=transformers.AutoModelForSequenceClassification.from_pretrained(
                options.model, num_labels=len(LABELS)
            ),
            args=arguments_of(config, batch_size, folder),
            train_dataset=Texts(options.data / "train.jsonl", tokenizer, length),
            eval_dataset=Texts(options.data / "valid.jsonl", tokenizer, length),
            data_collator=transformers.DataCollatorWithPadding(
                tokenizer, pad_to_multiple_of=PADDING_MULTIPLE
            ),
            compute_metrics=macro_f1,
        )
        trainer.train()
        return trainer.evaluate()["eval_macro_f1"]


def ran_out_of_memory(error):
    """True for what the limit causes, whoever asked for the memory: torch, a library, Python."""
    text = str(error)
    return (
        isinstance(error, MemoryError)
        or "can't allocate memory" in text
        or "No executable batch size found" in text
        or "bad_alloc" in text
    )


class Objective:
    def __init__(self, file, options, events):
        self.file = file
        self.options = options
        self.events = events

    def suggest(self, trial):
        config = {"epochs": self.file["trainer"]["epochs"]}
        for name, domain in self.file["parameters"].items():
            if "choices" in domain:
                config[name] = trial.suggest_categorical(name, domain["choices"])
            elif "int" in domain:
                low, high = domain["int"]
                config[name] = trial.suggest_int(name, low, high, step=domain.get("step", 1))
            else:
                low, high = domain["float"]
                config[name] = trial.suggest_float(name, low, high, log=domain.get("log", False))
        return config

    def attempt(self, batch_size, trial, config):
        self.events.tell("attempt", trial=trial.number, batch_size=batch_size)
        try:
            return train(config, batch_size, self.options)
        except (RuntimeError, MemoryError) as error:
            if ran_out_of_memory(error):
                self.events.tell("oom", trial=trial.number, error=str(error)[:200])
            raise

    def __call__(self, trial):
        config = self.suggest(trial)

        @accelerate.utils.find_executable_batch_size(starting_batch_size=config["train.batch_size"])
        def train_smaller_and_smaller(batch_size):
            return self.attempt(batch_size, trial, config)

        try:
            value = train_smaller_and_smaller()
        except (RuntimeError, MemoryError) as error:
            if not ran_out_of_memory(error):
                raise
            self.events.tell("pruned", trial=trial.number, value=None, params=trial.params)
            raise optuna.TrialPruned() from error
        self.events.tell("completed", trial=trial.number, value=value, params=trial.params)
        return value


def limit_memory(tensors):
    """From now on no more than `tensors` bytes on top of what the process has: RLIMIT_DATA counts
    every private writable mapping, so that malloc fails and torch says so."""
    for line in pathlib.Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmData:"):
            here = int(line.split()[1]) * 1024
    limit = here + tensors + BESIDES_TENSORS
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def warm_up(options):
    """One tiny training, so that threads and libraries have what they keep for ever."""
    config = {"train.grad_accum": 1, "train.lr": 1e-5, "epochs": 1, "seed": 1, "tok.max_length": 16}
    with tempfile.TemporaryDirectory() as folder:
        few = pathlib.Path(folder)
        for name in ("train.jsonl", "valid.jsonl"):
            lines = (options.data / name).read_text(encoding="utf-8").splitlines(keepends=True)
            (few / name).write_text("".join(lines[:8]), encoding="utf-8")
        train(config, 4, argparse.Namespace(model=options.model, data=few))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--study", type=pathlib.Path, required=True, help="hpo-server's study file")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--memory-limit", type=int, required=True, help="bytes")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--events", type=pathlib.Path, required=True)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    torch.set_num_threads(options.threads)
    warm_up(options)
    limit_memory(options.memory_limit)
    file = yaml.safe_load(options.study.read_text(encoding="utf-8"))
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=options.seed)
    )
    study.enqueue_trial(
        {n: d["default"] for n, d in file["parameters"].items() if "default" in d}
    )
    events = Events(options.events)
    events.tell("ready")
    study.optimize(Objective(file, options, events))


if __name__ == "__main__":
    main()
