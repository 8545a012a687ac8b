#!/usr/bin/env python3
"""The other side of bench/train_speed: a training loop over a transformers model, as fast as PyTorch has it.

Fused AdamW, scaled dot product attention, no Trainer around it. Reads lines of JSON from standard input,
each a run:

  {"model": FOLDER, "rows": [[id, ...], ...], "labels": [...], "batch": N, "lr": X}

after a first line {"torch": VERSION}, and answers each with {"seconds": S, "tokens": N}: from the end of the first step to the end of the last, and
the tokens of the rows of these steps without padding. A batch is padded to its longest row. The rows are taken
in their order.
"""

import json
import sys
import time

import torch
import transformers


def parameter_groups(model):
    """As Hugging Face's Trainer and ours: biases and norms do not decay."""
    decays, others = [], []
    for name, parameter in model.named_parameters():
        is_vector = name.endswith("bias") or "LayerNorm" in name
        (others if is_vector else decays).append(parameter)
    return [{"params": decays, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]


def tensors(rows, labels):
    longest = max(len(row) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.int64)
    mask = torch.zeros(len(rows), longest, dtype=torch.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor(labels)}


def run(task):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(task["model"])
    model.train()
    optimizer = torch.optim.AdamW(parameter_groups(model), lr=task["lr"], fused=True)
    rows, labels, size = task["rows"], task["labels"], task["batch"]
    steps = len(rows) // size
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
    begin, tokens = 0.0, 0
    for step in range(steps):
        part = slice(step * size, (step + 1) * size)
        loss = model(**tensors(rows[part], labels[part])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step == 0:
            begin = time.monotonic()
        else:
            tokens += sum(len(row) for row in rows[part])
    return {"seconds": time.monotonic() - begin, "tokens": tokens}


def main():
    torch.set_num_threads(int(sys.argv[1]))
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(json.dumps({"torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
