"""Trains a network with one hidden layer to tell on which of two spirals a point lies. The script
uses only the standard library, makes its own points, and does not import hpo."""

import argparse
import json
import math
import random


def spirals(points, seed):
    """[(x, y, label)]: two spirals around each other, with noise."""
    draw = random.Random(seed)
    rows = []
    for number in range(points):
        label, radius = number % 2, draw.uniform(0.2, 1.0)
        angle = 10.0 * radius + math.pi * label
        rows.append((radius * math.cos(angle) + draw.gauss(0, 0.02),
                     radius * math.sin(angle) + draw.gauss(0, 0.02), label))
    return rows


class Network:
    def __init__(self, hidden, seed):
        draw = random.Random(seed)
        self.units = [[draw.gauss(0, 4), draw.gauss(0, 4), draw.gauss(0, 2), draw.gauss(0, 0.1)]
                      for _ in range(hidden)]  # weights of x and y, bias, weight of the output
        self.bias = 0.0

    def forward(self, x, y):
        values = [math.tanh(a * x + b * y + c) for a, b, c, _ in self.units]
        score = self.bias + sum(unit[3] * value for unit, value in zip(self.units, values))
        return values, 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))

    def learn(self, x, y, label, rate, decay):
        values, probability = self.forward(x, y)
        error = label - probability
        self.bias += rate * error
        for unit, value in zip(self.units, values):
            inner = rate * error * unit[3] * (1 - value * value)
            unit[3] += rate * (error * value - decay * unit[3])
            unit[0] += inner * x
            unit[1] += inner * y
            unit[2] += inner

    def accuracy(self, rows):
        return sum((self.forward(x, y)[1] > 0.5) == bool(label) for x, y, label in rows) / len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate")
    parser.add_argument("--decay", type=float, default=0.0, help="weight decay")
    parser.add_argument("--hidden", type=int, default=8, help="hidden units")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows, valid_rows = spirals(400, seed=1), spirals(400, seed=2)
    network = Network(options.hidden, options.seed)
    shuffle = random.Random(options.seed)
    for epoch in range(1, options.epochs + 1):
        shuffle.shuffle(rows)
        for x, y, label in rows:
            network.learn(x, y, label, options.rate, options.decay)
        print(json.dumps({"epoch": epoch, "accuracy": network.accuracy(valid_rows)}), flush=True)


if __name__ == "__main__":
    main()
