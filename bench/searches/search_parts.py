"""The parts of bench/search: which functions, how many instances and trials, and the problem of each."""

import dataclasses
import functools
from typing import Callable

from searches import search_problems
from searches import search_tables
from searches.search_problems import ALL, FIRST_REPORTED

NAMED = list(range(2, 25, 2))  # half of every group of BBOB's, named before anything was run


@dataclasses.dataclass
class Part:
    make: Callable  # of function, instance and name
    functions: list
    instances: int  # of each half
    evaluations: int = 200
    halves: tuple = ("tune", "report")


def bbob(dimension):
    return functools.partial(search_problems.bbob, dimension)


PARTS = {
    "bbob5": Part(bbob(5), ALL, 15),
    "bbob10": Part(bbob(10), NAMED, 3),
    "bbob2": Part(bbob(2), ALL, 5, halves=("tune",)),
    "bbob20": Part(bbob(20), NAMED, 3, halves=("tune",)),
    "variants": Part(search_problems.variant, ALL, 15),
    "quadratics": Part(search_problems.quadratic, [1], 20),
    "thousand": Part(bbob(20), NAMED, 3, evaluations=1000),
    "tables": Part(search_tables.problem, search_tables.numbers(), 15),
    "curves": Part(search_tables.problem, search_tables.with_curves(), 15, evaluations=1000),
}


def instances_of(half, count):
    first = 1 if half == "tune" else FIRST_REPORTED
    return list(range(first, first + count))


@functools.lru_cache(maxsize=32)
def problem_of(part, function, instance):
    return PARTS[part].make(function, instance, f"{part} f{function} i{instance}")


def title(part, function, half):
    """For people."""
    if part == "variants":
        return f"{part} f{function} {search_problems.kind_of(function, half).__name__}"
    if part in ("tables", "curves"):
        return f"{part} {search_tables.folders()[function - 1].name}"
    return f"{part} f{function}"
