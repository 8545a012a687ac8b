#!/usr/bin/env python3
"""Writes tests/golden/optimizers.json: parameters after some steps of each optimizer.

torch.optim's AdamW and SGD, transformers' Adafactor, and a plain NumPy AdamW with states of 8 bits.
Parameters and gradients are formulas, which the test evaluates too.

    python scripts/reference/optimizers.py tests/golden/optimizers.json
"""

import json
import sys

import numpy
import torch
import transformers
from transformers.optimization import Adafactor

SHAPES = {"matrix": (70, 61), "small": (3, 5), "vector": (9,)}  # the first has 4,270 elements
RATES = [0.01, 0.02, 0.005, 0.01]
DECAY = 0.1
BETA1, BETA2, EPS = 0.8, 0.95, 1e-6
MOMENTUM = 0.7
EVERY = 61  # elements of a parameter that are written: one of this many
BLOCK = 256
LEAST_QUANTIZED = 4096


def start(shape):
    index = numpy.arange(numpy.prod(shape), dtype=numpy.float64)
    return numpy.cos(0.1 * index).astype(numpy.float32).reshape(shape)


def gradient(shape, step):
    """Magnitudes over seven powers of ten."""
    index = numpy.arange(numpy.prod(shape), dtype=numpy.float64)
    values = numpy.sin(0.37 * index + step) * 10.0 ** (index % 7 - 4)
    return values.astype(numpy.float32).reshape(shape)


def run_torch(make):
    parameters = {name: torch.nn.Parameter(torch.tensor(start(s))) for name, s in SHAPES.items()}
    optimizer = make(list(parameters.values()))
    for step, rate in enumerate(RATES):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for name, shape in SHAPES.items():
            parameters[name].grad = torch.tensor(gradient(shape, step))
        optimizer.step()
    return {name: p.detach().numpy() for name, p in parameters.items()}


def dynamic_map(signed):
    """The 256 numbers of Dettmers et al. 2022: seven decades, halved in number with each."""
    values = [0.0, 1.0]
    for exponent in range(7):
        edges = numpy.linspace(0.1, 1.0, 2 ** (exponent if signed else exponent + 1) + 1)
        middles = (edges[:-1] + edges[1:]) / 2 * 10.0 ** (exponent - 6)
        values.extend(middles)
        if signed:
            values.extend(-middles)
    return numpy.sort(numpy.array(values)).astype(numpy.float32)


class Quantized:
    def __init__(self, count, signed):
        self.map = dynamic_map(signed)
        self.count = count
        self.store(numpy.zeros(count, numpy.float32))

    def load(self):
        values = self.map[self.codes] * self.scales[:, None]
        return values.reshape(-1)[: self.count]

    def store(self, values):
        padded = numpy.zeros(-(-self.count // BLOCK) * BLOCK, numpy.float32)
        padded[: self.count] = values
        blocks = padded.reshape(-1, BLOCK)
        self.scales = numpy.abs(blocks).max(axis=1)
        scaled = blocks / numpy.maximum(self.scales, numpy.float32(1e-38))[:, None]
        middles = (self.map[:-1] + self.map[1:]) / 2
        self.codes = numpy.searchsorted(middles, scaled)


def run_adamw_8bit():
    result = {}
    for name, shape in SHAPES.items():
        parameter = start(shape).reshape(-1)
        count = parameter.size
        states = [numpy.zeros(count, numpy.float32) for _ in range(2)]
        quantized = [Quantized(count, True), Quantized(count, False)]
        for step, rate in enumerate(RATES):
            g = gradient(shape, step).reshape(-1)
            m, v = [q.load() for q in quantized] if count >= LEAST_QUANTIZED else states
            m = (BETA1 * m + (1 - BETA1) * g).astype(numpy.float32)
            v = (BETA2 * v + (1 - BETA2) * g * g).astype(numpy.float32)
            denominator = numpy.sqrt(v) / numpy.sqrt(1 - BETA2 ** (step + 1)) + EPS
            parameter = parameter * (1 - rate * DECAY)
            parameter = parameter - rate / (1 - BETA1 ** (step + 1)) * m / denominator
            parameter = parameter.astype(numpy.float32)
            states = [m, v]
            for q, values in zip(quantized, states):
                q.store(values)
        result[name] = parameter
    return result


def main():
    runs = {
        "adamw": run_torch(
            lambda p: torch.optim.AdamW(p, betas=(BETA1, BETA2), eps=EPS, weight_decay=DECAY)
        ),
        "sgd": run_torch(lambda p: torch.optim.SGD(p, momentum=MOMENTUM, weight_decay=DECAY)),
        "adafactor": run_torch(
            lambda p: Adafactor(
                p, lr=1.0, scale_parameter=False, relative_step=False, weight_decay=DECAY
            )
        ),
        "adamw_8bit": run_adamw_8bit(),
    }
    golden = {
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "rates": RATES,
        "weight_decay": DECAY,
        "betas": [BETA1, BETA2],
        "eps": EPS,
        "momentum": MOMENTUM,
        "every": EVERY,
        "shapes": SHAPES,
        "after": {
            kind: {name: values.reshape(-1)[::EVERY].tolist() for name, values in run.items()}
            for kind, run in runs.items()
        },
        "dynamic_map": {
            "signed": dynamic_map(True).tolist(),
            "unsigned": dynamic_map(False).tolist(),
        },
    }
    with open(sys.argv[1], "w") as file:
        json.dump(golden, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
