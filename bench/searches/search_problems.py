"""The problems of bench/search: the functions of BBOB as coco-experiment defines them, variants of them, quadratics.

A problem is a space, in the JSON of common/space/search_space_json.h, and an objective with a known optimum. Everything
that is drawn, the noise of a trial too, depends on the problem's name and the trial's number alone, so that every
sampler meets the same.
"""

import functools
import itertools
import math
import os
import random
import statistics
import tempfile

import cocoex
import numpy

LOW, HIGH = -5.0, 5.0  # of every axis of BBOB; optima lie within 4 of the centre
FIRST_REPORTED = 21  # instances below are for tuning, from here to LAST_INSTANCE for reports
LAST_INSTANCE = 40
DIMENSION = 5  # of variants and quadratics
ALL = list(range(1, 25))


class Problem:
    """`value(params)` is the true value, infinite where trials fail; `optimum` its least, at `best`."""

    def __init__(self, name, space, value, optimum, best, noise=0.0, lost=0.0):
        self.name = name
        self.space = space
        self.value = value
        self.optimum = optimum
        self.best = best
        self.noise = noise  # standard deviation of what is observed
        self.lost = lost  # share of the trials that fail, whatever their configuration

    def regret(self, params):
        return self.value(params) - self.optimum

    def configuration(self, value_of):
        """`value_of(parameter)` for each that exists, parents before children."""
        params = {}
        for parameter in self.space:
            if is_active(parameter, params):
                params[parameter["name"]] = value_of(parameter)
        return params

    def random_configuration(self, draw):
        return self.configuration(lambda parameter: random_value(parameter, draw))

    def observed(self, number, params):
        """What trial `number` reports; None where it is lost."""
        draw = random.Random(f"{self.name} {number}")
        if draw.random() < self.lost:
            return None
        return self.value(params) + self.noise * draw.gauss(0.0, 1.0)

    @functools.cached_property
    def start(self):
        """The median regret of ten random configurations that do not fail: what regrets are measured by."""
        draw = random.Random(f"{self.name} start")
        drawn = (self.regret(self.random_configuration(draw)) for _ in itertools.count())
        return statistics.median(itertools.islice(filter(math.isfinite, drawn), 10))


def real(name, low=LOW, high=HIGH, log=False, when=()):
    return {"name": name, "kind": "float", "low": low, "high": high, "log": log, "when": list(when)}


def integer(name, low, high, step=1):
    return {"name": name, "kind": "int", "low": low, "high": high, "step": step, "log": False, "when": []}


def choice(name, choices):
    return {"name": name, "kind": "choices", "choices": choices, "when": []}


def is_active(parameter, params):
    return all(params.get(condition["name"]) in condition["values"] for condition in parameter["when"])


def random_value(parameter, draw):
    if parameter["kind"] == "choices":
        return draw.choice(parameter["choices"])
    if parameter["kind"] == "int":
        return draw.randrange(parameter["low"], parameter["high"] + 1, parameter["step"])
    low, high = parameter["low"], parameter["high"]
    return math.exp(draw.uniform(math.log(low), math.log(high))) if parameter["log"] else draw.uniform(low, high)


# ---- BBOB ------------------------------------------------------------------------------------------


@functools.lru_cache
def suite(dimension):
    return cocoex.Suite("bbob", f"instances: 1-{LAST_INSTANCE}", f"dimensions: {dimension}")


def bbob_function(function, dimension, instance):
    """The function of a vector, and where its least value is."""
    problem = suite(dimension).get_problem_by_function_dimension_instance(function, dimension, instance)
    # The only way to learn where: a file that it writes into the working folder.
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.chdir(folder)
            problem._best_parameter("print")  # pylint: disable=protected-access
            return problem, numpy.loadtxt(os.listdir()[0])
        finally:
            os.chdir(before)


def axes(dimension):
    return [f"x{i:02}" for i in range(dimension)]


def bbob(dimension, function, instance, name):
    value, best = bbob_function(function, dimension, instance)
    names = axes(dimension)
    return Problem(name, [real(axis) for axis in names],
                   lambda params: float(value([params[axis] for axis in names])), float(value(best)),
                   dict(zip(names, best.tolist())))


# ---- Variants --------------------------------------------------------------------------------------
# Each changes how a plain function's point is written. They take the plain problem and a source of randomness.


def changed(plain, space, point, best, cost=lambda params: 0.0, **features):
    """`plain` in another space; `point(params)` is its configuration, `cost` what is added."""
    return Problem(plain.name, space, lambda params: plain.value(point(params)) + cost(params), plain.optimum, best,
                   **features)


def log_scales(plain, draw):
    """Three of the axes are written as powers."""
    ranges = {}
    for axis in draw.sample(list(plain.best), 3):
        low = draw.uniform(-8.0, 1.0)
        ranges[axis] = low, low + draw.uniform(2.0, 6.0)
    space = [real(axis, 10.0 ** ranges[axis][0], 10.0 ** ranges[axis][1], log=True) if axis in ranges else real(axis)
             for axis in plain.best]

    def point(params):
        return params | {axis: LOW + (HIGH - LOW) * (math.log10(params[axis]) - low) / (high - low)
                         for axis, (low, high) in ranges.items()}

    best = plain.best | {axis: 10.0 ** (low + (high - low) * (plain.best[axis] - LOW) / (HIGH - LOW))
                         for axis, (low, high) in ranges.items()}
    return changed(plain, space, point, best)


def integer_steps(plain, draw):
    """Three of the axes are integers, on a grid that the optimum lies on."""
    grids, best = {}, dict(plain.best)
    for axis in draw.sample(list(plain.best), 3):
        count, low, step = draw.choice([4, 8, 16, 32]), draw.choice([0, 1, 16]), draw.choice([1, 2, 8])
        width = (HIGH - LOW) / (count - 1)
        nearest = round((plain.best[axis] - LOW) / width)
        grids[axis] = low, step, count, width, plain.best[axis] - nearest * width
        best[axis] = low + step * nearest
    space = [integer(axis, grids[axis][0], grids[axis][0] + grids[axis][1] * (grids[axis][2] - 1), grids[axis][1])
             if axis in grids else real(axis) for axis in plain.best]

    def point(params):
        return params | {axis: start + width * ((params[axis] - low) // step)
                         for axis, (low, step, _, width, start) in grids.items()}

    return changed(plain, space, point, best)


def moving_choices(plain, draw):
    """Two choices; each moves the optimum along axes of its own, and all but one of each cost something."""
    names = list(plain.best)
    draw.shuffle(names)
    shifts, costs, best = {}, {}, dict(plain.best)
    for name, moved, count in (("kind", names[:2], 3), ("mode", names[2:4], 2)):
        options = [f"{name}{i}" for i in range(count)]
        best[name] = draw.choice(options)
        for option in options:
            away = option != best[name]
            shifts[name, option] = {axis: plain.best[axis] - draw.uniform(-4.0, 4.0) if away else 0.0 for axis in moved}
            costs[name, option] = plain.start * 10.0 ** draw.uniform(-2.5, -1.0) if away else 0.0
    space = [real(axis) for axis in plain.best] + [choice("kind", ["kind0", "kind1", "kind2"]),
                                                   choice("mode", ["mode0", "mode1"])]

    def point(params):
        shift = shifts["kind", params["kind"]] | shifts["mode", params["mode"]]
        return {axis: params[axis] + shift.get(axis, 0.0) for axis in plain.best}

    return changed(plain, space, point, best,
                   lambda params: costs["kind", params["kind"]] + costs["mode", params["mode"]])


def conditions(plain, draw):
    """Two axes exist only in the full form; they are one in the tied form, and fixed in the plain one."""
    names = list(plain.best)
    first, second = draw.sample(names, 2)
    fixed = {axis: draw.uniform(-4.0, 4.0) for axis in (first, second)}
    turn = draw.choice([-1.0, 1.0])

    def only(form):
        return [{"name": "form", "values": [form]}]

    space = [choice("form", draw.sample(["full", "tied", "plain"], 3))]
    space += [real(axis, when=only("full")) if axis in fixed else real(axis) for axis in names]
    space.append(real("tie", when=only("tied")))

    def point(params):
        if params["form"] == "full":
            ends = params
        elif params["form"] == "tied":
            ends = {first: params["tie"], second: turn * params["tie"]}
        else:
            ends = fixed
        return {axis: ends[axis] if axis in fixed else params[axis] for axis in names}

    return changed(plain, space, point, plain.best | {"form": "full"})


def noise(plain, draw):
    share = draw.choice([0.01, 0.1])
    return changed(plain, plain.space, lambda params: params, plain.best, noise=share * plain.start)


def lost_trials(plain, draw):
    del draw
    return changed(plain, plain.space, lambda params: params, plain.best, lost=0.2)


KINDS = [log_scales, integer_steps, moving_choices, conditions, noise, lost_trials]


def kind_of(function, half):
    """Each kind of variant for four functions of a half, by lot."""
    kinds = [kind for kind in KINDS for _ in range(4)]
    random.Random(f"variants {half}").shuffle(kinds)
    return kinds[function - 1]


def variant(function, instance, name):
    kind = kind_of(function, "tune" if instance < FIRST_REPORTED else "report")
    return kind(bbob(DIMENSION, function, instance, name), random.Random(f"{name} {kind.__name__}"))


# ---- Quadratics ------------------------------------------------------------------------------------


def quadratic(_, instance, name):
    """Convex, rotated, its optimum inside; its condition grows with the instance from 10 to 10,000 in each half."""
    draw = numpy.random.default_rng(instance)
    turned = numpy.linalg.qr(draw.normal(size=(DIMENSION, DIMENSION)))[0]
    best = draw.uniform(LOW + 1.0, HIGH - 1.0, DIMENSION)
    condition = 10.0 ** (1.0 + 3.0 * ((instance - 1) % 20) / 19.0)
    scales = condition ** (numpy.arange(DIMENSION) / (DIMENSION - 1))
    names = axes(DIMENSION)

    def value(params):
        return float(scales @ (turned @ (numpy.array([params[axis] for axis in names]) - best)) ** 2)

    return Problem(name, [real(axis) for axis in names], value, 0.0, dict(zip(names, best.tolist())))
