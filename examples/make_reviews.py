#!/usr/bin/env python3
"""Writes train.jsonl and valid.jsonl, film reviews as {"text": ..., "label": "good" | "bad"}.

usage: make_reviews.py FOLDER [--rows 2000] [--valid-rows 500]

A review judges one to three parts of a film. "not" turns a judgement round, "very" doubles it, and
what "critics" say does not count. The label is the sign of the sum. So single words are not enough
to tell it: a model has to read them together. Equal options write equal bytes.
"""

import argparse
import json
import pathlib
import random

GOOD = "good great lovely clever funny warm brilliant gripping honest bright charming fresh".split()
BAD = "bad poor dull silly boring cold weak tired false grim clumsy stale".split()
PARTS = "acting plot music camera ending dialogue cast script pace humour".split()


def judgement(draw):
    """One clause, and how much it counts."""
    sign = draw.choice((1, -1))
    word = draw.choice(GOOD if sign > 0 else BAD)
    very, negated, reported = draw.random() < 0.3, draw.random() < 0.4, draw.random() < 0.2
    text = f"{draw.choice(PARTS)} was {'not ' * negated}{'very ' * very}{word}"
    if reported:
        return f"critics say the {text}", 0
    return f"the {text}", sign * (2 if very else 1) * (-1 if negated else 1)


def review(draw):
    while True:
        clauses = [judgement(draw) for _ in range(draw.randint(1, 3))]
        total = sum(value for _, value in clauses)
        if total:
            text = " , ".join(clause for clause, _ in clauses)
            return {"text": text, "label": "good" if total > 0 else "bad"}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--valid-rows", type=int, default=500)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train", options.rows), ("valid", options.valid_rows)):
        draw = random.Random(name)
        with open(options.folder / f"{name}.jsonl", "w", encoding="utf-8") as out:
            for _ in range(rows):
                out.write(json.dumps(review(draw)) + "\n")
    print(f"{options.folder}: {options.rows} reviews to train on, {options.valid_rows} to validate")


if __name__ == "__main__":
    main()
