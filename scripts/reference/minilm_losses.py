#!/usr/bin/env python3
"""Writes tests/golden/minilm_losses.json: twenty AdamW steps of MiniLM-L6 by Hugging Face's transformers.

    python3 scripts/reference/minilm_losses.py MODEL_DIR [OUT]

MODEL_DIR is the folder all-minilm-l6-v2 (scripts/fetch_minilm). Needs torch and transformers; made with
torch 2.13.0 and the transformers version that the file names. No dropout, fixed batches of token ids (random
pieces of the vocabulary with padding, both segments used), a fixed head, so that nothing depends on a random
generator's version: tests/worker/trainer/models/minilm_golden_test.cc repeats the steps with this project's
model and optimizer and compares the losses.
"""
import json
import random
import sys

import torch
import transformers

STEPS = 20
ROWS = 8
LABELS = 3
LR = 1e-4
WEIGHT_DECAY = 0.01
CLS, SEP, PAD = 101, 102, 0
FIRST_WORD, LAST_WORD = 1996, 29000


def make_batch(rng):
    """Rows of different lengths, padded to the longest rounded up to 16; the label is in the words."""
    rows, labels = [], []
    for _ in range(ROWS):
        label = rng.randrange(LABELS)
        first = [rng.randrange(FIRST_WORD, LAST_WORD, 3) + label for _ in range(rng.randrange(2, 24))]
        second = [rng.randrange(FIRST_WORD, LAST_WORD) for _ in range(rng.randrange(0, 12))]
        ids = [CLS] + first + [SEP] + (second + [SEP] if second else [])
        types = [0] * (len(first) + 2) + ([1] * (len(second) + 1) if second else [])
        rows.append((ids, types))
        labels.append(label)
    width = (max(len(ids) for ids, _ in rows) + 15) // 16 * 16
    return {
        "ids": [ids + [PAD] * (width - len(ids)) for ids, _ in rows],
        "mask": [[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows],
        "types": [types + [0] * (width - len(types)) for _, types in rows],
        "labels": labels,
    }


def head_weight(hidden_size):
    """[LABELS][hidden_size]: a pattern anyone can write down again."""
    return [[((7 * i + 3 * j) % 11 - 5) / 100.0 for j in range(hidden_size)] for i in range(LABELS)]


def main():
    model_dir = sys.argv[1]
    out = sys.argv[2] if len(sys.argv) > 2 else "tests/golden/minilm_losses.json"
    torch.set_num_threads(1)
    model = transformers.BertForSequenceClassification.from_pretrained(
        model_dir, num_labels=LABELS, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        attn_implementation="eager", dtype=torch.float32)
    model.train()
    with torch.no_grad():
        model.classifier.weight.copy_(torch.tensor(head_weight(model.config.hidden_size)))
        model.classifier.bias.zero_()
    decays, plain = [], []
    for name, parameter in model.named_parameters():
        (plain if name.endswith("bias") or "LayerNorm" in name else decays).append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": decays, "weight_decay": WEIGHT_DECAY}, {"params": plain, "weight_decay": 0.0}],
        lr=LR, betas=(0.9, 0.999), eps=1e-8)
    rng = random.Random(20)
    batches = [make_batch(rng) for _ in range(4)]
    losses = []
    for step in range(STEPS):
        batch = batches[step % len(batches)]
        result = model(input_ids=torch.tensor(batch["ids"]), attention_mask=torch.tensor(batch["mask"]),
                       token_type_ids=torch.tensor(batch["types"]), labels=torch.tensor(batch["labels"]))
        losses.append(result.loss.item())
        result.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    golden = {
        "made_by": f"scripts/reference/minilm_losses.py, torch {torch.__version__}, "
                   f"transformers {transformers.__version__}",
        "lr": LR, "weight_decay": WEIGHT_DECAY, "max_grad_norm": 1.0, "num_labels": LABELS,
        "head_weight": "weight[i][j] = ((7 i + 3 j) mod 11 - 5) / 100, bias 0",
        "batches": batches, "losses": losses,
    }
    with open(out, "w", encoding="utf-8") as file:
        json.dump(golden, file, separators=(",", ":"))
        file.write("\n")
    print("\n".join(f"{step} {loss:.7f}" for step, loss in enumerate(losses)))


if __name__ == "__main__":
    main()
