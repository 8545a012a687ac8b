#!/usr/bin/env python3
"""The other side of bench/train_quality: the same recipe as a training loop over a transformers model.

Reads lines of JSON from standard input, each a run:

  {"model": FOLDER, "train": FILE, "valid": FILE, "labels": [...], "several": BOOL, "epochs": N, "batch": N,
   "lr": X, "max_length": N, "seed": N}

after a first line {"torch": VERSION, "transformers": VERSION}, and answers each with {"metric": X}: after the last
epoch, the negated loss where rows have several labels, else accuracy.
"""

import json
import sys

import torch
import transformers
from train_speed import parameter_groups

EVALUATED_TOGETHER = 64


def read(path, tokenizer, task):
    """(ids, label or labels' row of zeros and ones) of each row."""
    index = {label: i for i, label in enumerate(task["labels"])}
    result = []
    with open(path, encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            ids = tokenizer(row["text"], truncation=True, max_length=task["max_length"])["input_ids"]
            if task["several"]:
                known = {index[label] for label in row["labels"]}
                result.append((ids, [float(i in known) for i in range(len(index))]))
            else:
                result.append((ids, index[row["label"]]))
    return result


def tensors(rows):
    """Padded to a multiple of 16 tokens."""
    longest = -(-max(len(ids) for ids, _ in rows) // 16) * 16
    ids = torch.zeros(len(rows), longest, dtype=torch.int64)
    mask = torch.zeros(len(rows), longest, dtype=torch.int64)
    for i, (row, _) in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([label for _, label in rows])}


@torch.no_grad()
def evaluate(model, rows, several):
    model.eval()
    right, loss = 0, 0.0
    for begin in range(0, len(rows), EVALUATED_TOGETHER):
        batch = tensors(rows[begin : begin + EVALUATED_TOGETHER])
        result = model(**batch)
        if not several:
            right += int((result.logits.argmax(1) == batch["labels"]).sum())
        loss += result.loss.item() * len(batch["labels"])
    model.train()
    return -loss / len(rows) if several else right / len(rows)


def run(task):
    transformers.set_seed(task["seed"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(task["model"])
    kind = "multi_label_classification" if task["several"] else "single_label_classification"
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        task["model"], num_labels=len(task["labels"]), problem_type=kind)
    model.train()
    train, valid = (read(task[part], tokenizer, task) for part in ("train", "valid"))
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=task["lr"], fused=True)
    steps = -(-len(train) // task["batch"]) * task["epochs"]
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
    for _ in range(task["epochs"]):
        order = torch.randperm(len(train)).tolist()
        for begin in range(0, len(train), task["batch"]):
            batch = [train[row] for row in order[begin : begin + task["batch"]]]
            model(**tensors(batch)).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    return evaluate(model, valid, task["several"])


def main():
    torch.set_num_threads(int(sys.argv[1]))
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"metric": run(json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
