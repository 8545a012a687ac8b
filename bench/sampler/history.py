"""The space of the samplers' timings (mixed10), what its configurations come to and a history of random
ones; no library is needed."""

import json
import math
import random

CHOICES = {"c0": "abc", "c1": "abcde", "c2": "ab"}


def draw(source):
    return {
        "f0": source.uniform(-5, 5),
        "f1": source.uniform(0, 1),
        "f2": math.exp(source.uniform(math.log(1e-5), 0)),
        "f3": math.exp(source.uniform(math.log(1e-3), math.log(1e3))),
        "i0": source.randint(1, 32),
        "i1": 5 * source.randint(0, 20),
        "i2": min(1024, max(1, round(math.exp(source.uniform(math.log(0.5), math.log(1024.5)))))),
        **{name: source.choice(choices) for name, choices in CHOICES.items()},
    }


def value(p):
    return (p["f0"] ** 2 + (p["f1"] - 0.3) ** 2 + (math.log10(p["f2"]) + 3) ** 2 / 4
            + (math.log10(p["f3"]) - 1) ** 2 / 9 + ((p["i0"] - 8) / 16) ** 2 + ((p["i1"] - 40) / 50) ** 2
            + (math.log2(p["i2"]) - 6) ** 2 / 16 + (p["c0"] != "b") * 0.5 + "abcde".index(p["c1"]) * 0.1
            + (p["c2"] != "a") * 0.3)


def write(path, count):
    """`count` trials as JSON lines, the same every time."""
    source = random.Random(1234)
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(count):
            params = draw(source)
            out.write(json.dumps({"params": params, "value": value(params)}) + "\n")
