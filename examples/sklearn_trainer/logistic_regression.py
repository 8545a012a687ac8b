"""Logistic regression over hashed words in plain Python: what train.py does, without any package."""
import json
import math
import random
import zlib

import hpo_trainer


def read_rows(path, size):
    """[(indices of the words present, 0 or 1)]; the first label in sorted order is 0."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    labels = sorted({str(row["label"]) for row in rows})
    if len(labels) != 2:
        raise hpo_trainer.BadData(f"{path}: expected two labels, got {labels}")
    return [(sorted({zlib.crc32(word.encode()) % size for word in row["text"].lower().split()}),
             labels.index(str(row["label"]))) for row in rows]


def probability(weights, words):
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, sum(weights[i] for i in words)))))


def macro_f1(weights, rows):
    counts = {0: [0, 0, 0], 1: [0, 0, 0]}  # true positives, false positives, false negatives
    for words, label in rows:
        guess = int(probability(weights, words) > 0.5)
        counts[guess][0 if guess == label else 1] += 1
        if guess != label:
            counts[label][2] += 1
    return sum(2 * tp / max(1, 2 * tp + fp + fn) for tp, fp, fn in counts.values()) / 2


def train(job, report):
    params = job["params"]
    size = 2 ** params["features.log2"]
    if job["limit_bytes"] and size * 8 > job["limit_bytes"]:
        raise hpo_trainer.OutOfMemory(f"{size} weights need {size * 8} bytes")
    hpo_trainer.used(size * 8)
    rows = read_rows(job["train_path"], size)
    valid = read_rows(job["validation_path"], size)
    weights = [0.0] * size
    shuffle = random.Random(job["seed"])
    score = 0.0
    for epoch in range(1, job["epochs"] + 1):
        shuffle.shuffle(rows)
        for words, label in rows:
            step = params["rate"] * (label - probability(weights, words))
            for i in words:
                weights[i] += step
        score = macro_f1(weights, valid)
        report(step=epoch, epoch=epoch, macro_f1=score)
    return {"macro_f1": score}


hpo_trainer.main(train)
