"""What a program that nobody knows needs of memory: a law drawn by seed over batch, length, hidden
size and layers."""

import itertools
import math
import random

BATCHES = [2, 4, 8, 16, 32, 64]
LENGTHS = list(range(64, 513, 64))
WIDTHS = [128, 256, 384, 512, 768, 1024]
LAYERS = list(range(1, 13))
NAMES = ("batch", "length", "hidden", "layers")
NOISE = 0.01  # standard deviation of the logarithm, from run to run
GIB = 2**30


def configurations():
    """All of them, without what memory does not depend on."""
    for values in itertools.product(BATCHES, LENGTHS, WIDTHS, LAYERS):
        yield dict(zip(NAMES, values))


class Law:
    """base + two or three terms a * batch^p * length^q * hidden^r * layers^s."""

    # Of each size: what programs have. Powers that are no whole numbers are for what is not a sum
    # of tensors, such as workspaces.
    POWERS = {"batch": [0, 1, 1, 1], "length": [0, 1, 1, 1.3, 2], "hidden": [0.5, 1, 1, 1.9, 2],
              "layers": [0, 0.5, 1, 1]}

    def __init__(self, seed):
        draw = random.Random(f"law {seed}")
        self.base = draw.uniform(0.2, 1.0) * GIB
        self.terms = []
        for _ in range(draw.choice([2, 3])):
            powers = {name: draw.choice(choices) for name, choices in self.POWERS.items()}
            self.terms.append((draw.uniform(4, 12) * GIB, powers))
        # At least one grows with the batch, as in every program that trains.
        self.terms[0][1]["batch"] = 1

    def need(self, sizes):
        """Bytes, without noise."""
        largest = dict(batch=BATCHES[-1], length=LENGTHS[-1], hidden=WIDTHS[-1], layers=LAYERS[-1])
        return self.base + sum(
            weight * math.prod((sizes[name] / largest[name]) ** powers[name] for name in NAMES)
            for weight, powers in self.terms)

    def run(self, sizes, draw):
        """Bytes that one run uses; `draw` is its source of randomness."""
        return int(self.need(sizes) * math.exp(draw.gauss(0.0, NOISE)))

    def limit(self, seed):
        """MiB that 30 to 60 % of the configurations exceed, and that share."""
        needs = sorted(self.need(sizes) for sizes in configurations())
        feasible = random.Random(f"limit {seed}").uniform(0.4, 0.7)
        limit = int(needs[int(feasible * len(needs))] / 2**20)
        if limit > 1024:
            limit -= limit % 64  # as capacities count
        return limit, sum(need > limit * 2**20 for need in needs) / len(needs)
