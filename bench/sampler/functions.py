"""The functions of bench/sampler/functions.cc, asked of an Optuna trial."""

import math

A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
P = [
    [1312, 1696, 5569, 124, 8283, 5886],
    [2329, 4135, 8307, 3736, 1004, 9991],
    [2348, 1451, 3522, 2883, 3047, 6650],
    [4047, 8828, 8732, 5743, 1091, 381],
]
ALPHA = [1.0, 1.2, 3.0, 3.2]


def vector(trial, size, low, high):
    return [trial.suggest_float(f"x{i}", low, high) for i in range(size)]


def branin(trial):
    x, y = trial.suggest_float("x1", -5, 10), trial.suggest_float("x2", 0, 15)
    root = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return root**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann6(trial):
    x = vector(trial, 6, 0, 1)
    return -sum(
        weight * math.exp(-sum(a * (v - 1e-4 * p) ** 2 for a, v, p in zip(row, x, centre)))
        for weight, row, centre in zip(ALPHA, A, P)
    )


def rosenbrock5(trial):
    x = vector(trial, 5, -5, 10)
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def ackley10(trial):
    x = vector(trial, 10, -32.768, 32.768)
    root = math.sqrt(sum(v * v for v in x) / 10)
    waves = sum(math.cos(2 * math.pi * v) for v in x) / 10
    return -20 * math.exp(-0.2 * root) - math.exp(waves) + 20 + math.e


def optimizer_cost(trial, name, rate):
    if name == "adam":
        return 0.05 + 0.5 * (rate + 3) ** 2
    if name == "rmsprop":
        return 0.10 + 0.5 * (rate + 3.5) ** 2
    momentum = trial.suggest_float("mom", 0.0, 0.99)
    return 0.5 * (rate + 1 + 1.5 * momentum) ** 2 + 2 * (momentum - 0.9) ** 2


def conditional(trial):
    activation = trial.suggest_categorical("act", ["relu", "tanh", "gelu"])
    optimizer = trial.suggest_categorical("opt", ["adam", "sgd", "rmsprop"])
    rate = math.log10(trial.suggest_float("lr", 1e-5, 1.0, log=True))
    cost = {"relu": 0.03, "tanh": 0.08, "gelu": 0.0}[activation] + optimizer_cost(trial, optimizer, rate)
    cost += 0.01 * (math.log10(trial.suggest_float("wd", 1e-8, 1e-1, log=True)) + 4) ** 2
    drop = trial.suggest_float("drop", 0.0, 0.6, step=0.05)
    layers = trial.suggest_int("n_layers", 1, 4)
    cost += (0.5 if layers >= 3 else 0.25) * (drop - 0.2) ** 2 + 0.05 * (layers - 3) ** 2
    for i, goal in zip(range(layers), (7, 6, 5, 4)):
        cost += 0.02 * (math.log2(trial.suggest_int(f"u{i}", 8, 512, log=True)) - goal) ** 2
    return cost


# Each with its least value.
FUNCTIONS = {
    "branin": (branin, 0.39788735772973816),
    "hartmann6": (hartmann6, -3.322368011391339),
    "rosenbrock5": (rosenbrock5, 0.0),
    "ackley10": (ackley10, 0.0),
    "conditional": (conditional, 0.0),
}
