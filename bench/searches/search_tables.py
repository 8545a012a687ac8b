"""Published tables (bench/sampler/table.cc) as problems of bench/search, and their learning curves replayed.

An instance is a seed. A trial reports one of its row's objectives at random; regret is of their mean. HPO_TABLES names
the folder of the tables.
"""

import csv
import functools
import gzip
import math
import os
import pathlib
import random
import shutil
import statistics
import tempfile

import sampler_jobs
from searches import search_problems
import table_folders

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def folders():
    """Of the tables, in the order of their names, which numbers them from 1."""
    folder = pathlib.Path(os.environ.get("HPO_TABLES") or ROOT.parent / "shared/bench")
    return table_folders.found(folder) if folder.is_dir() else []


def numbers():
    return list(range(1, len(folders()) + 1))


def with_curves():
    """The numbers of the tables that have learning curves."""
    return [number for number, folder in enumerate(folders(), 1) if table_folders.space_of(folder).get("fidelity")]


class Rows:
    """The rows of a table by configuration, smaller objectives being better: lists of (objective, curve)."""

    def __init__(self, folder):
        space = table_folders.space_of(folder)
        self.params = space["params"]
        self.sign = -1.0 if space["objective"]["goal"] == "max" else 1.0
        self.rows = {}
        names = [param["name"] for param in self.params]
        fidelity = space.get("fidelity") or {}
        with gzip.open(folder / "table.csv.gz", "rt", encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if row.get("status", "ok") == "ok":
                    key = tuple(row[name] for name in names)
                    curve = self.curve_of(row, fidelity)
                    self.rows.setdefault(key, []).extend(
                        (self.sign * float(row[column]), curve) for column in space["objective"]["columns"]
                        if row[column])

    def curve_of(self, row, fidelity):
        """By step; empty where the table has none."""
        if "column" in fidelity:
            return {step: self.sign * float(word) for step, word in enumerate(row[fidelity["column"]].split(), 1)}
        return {step: self.sign * float(row[column])
                for step, column in zip(fidelity.get("at", []), fidelity.get("columns", []))}

    def at(self, params):
        return self.rows.get(tuple(str(params.get(param["name"], "")) for param in self.params), [])

    def mean(self, params):
        """Of the objectives; infinite where the trial fails."""
        found = self.at(params)
        return statistics.fmean(objective for objective, _ in found) if found else math.inf

    def space(self):
        """Ordinals are integers, choices the texts of their numbers."""
        space = []
        for param in self.params:
            count = len(param["values"])
            if param["kind"] == "ordinal":
                member = {"kind": "int", "low": 0, "high": count - 1, "step": 1, "log": False}
            else:
                member = {"kind": "choices", "choices": [str(i) for i in range(count)]}
            space.append({"name": param["name"], "when": self.conditions(param)} | member)
        return space

    def conditions(self, param):
        condition = param.get("active_if")
        if not condition:
            return []
        parent, = (other for other in self.params if other["name"] == condition["param"])
        indices = [parent["values"].index(value) for value in condition["in"]]
        values = indices if parent["kind"] == "ordinal" else [str(i) for i in indices]
        return [{"name": condition["param"], "values": values}]


@functools.lru_cache
def rows_of(number):
    return Rows(folders()[number - 1])


class TableProblem(search_problems.Problem):
    """Its trials report one of the objectives of their row."""

    def __init__(self, rows, name):
        best = min(rows.rows, key=lambda key: statistics.fmean(objective for objective, _ in rows.rows[key]))
        best = {param["name"]: int(index) if param["kind"] == "ordinal" else index
                for param, index in zip(rows.params, best) if index}
        super().__init__(name, rows.space(), rows.mean, rows.mean(best), best)
        self.rows = rows

    def drawn(self, number, params):
        """The objective and the curve that trial `number` reports; None where it fails."""
        found = self.rows.at(params)
        return random.Random(f"{self.name} {number}").choice(found) if found else None

    def observed(self, number, params):
        drawn = self.drawn(number, params)
        return None if drawn is None else drawn[0]


def problem(function, _, name):
    return TableProblem(rows_of(function), name)


# ---- Learning curves -------------------------------------------------------------------------------


def least(number):
    """The best that a trial of a table can complete with: what regrets of curves are counted from."""
    return min(objective for found in rows_of(number).rows.values() for objective, _ in found)


def ours_on_curves(program, sampler, pruner, number, seed, counts):
    """The best value that a trial completed with, after each of `counts` checkpoints."""
    folder = folders()[number - 1]
    with tempfile.TemporaryDirectory() as parent:
        shutil.copy(folder / "space.json", parent)
        with gzip.open(folder / "table.csv.gz") as packed, open(f"{parent}/table.csv", "wb") as rows:
            shutil.copyfileobj(packed, rows)
        result = sampler_jobs.run(program, "--table", parent, "--sampler", sampler, "--pruner", pruner, "--seeds", 1,
                                  "--first-seed", seed, "--checkpoints", ",".join(map(str, counts)))
    return [sampler_jobs.best_at(result, count)[0] for count in counts]


def optuna_on_curves(study, table, counts):
    """As above, of a search_runs.Optuna. A trial that fails costs one checkpoint."""
    best, spent, number, kept = math.inf, 0, 0, []
    while len(kept) < len(counts):
        trial, params = study.ask()
        drawn = table.drawn(number, params)
        number += 1
        objective, curve = drawn or (None, {0: None})
        for step in sorted(curve):
            spent += 1
            ends = step == max(curve)
            if ends and drawn:
                best = min(best, objective)
            if spent == counts[len(kept)]:
                kept.append(best)
                if len(kept) == len(counts):
                    return kept
            if not ends and study.prunes(trial, curve[step], step):
                break
        else:
            study.tell(trial, objective)
    return kept
