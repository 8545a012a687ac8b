"""Folders of tables in format hpo-table/1 (bench/sampler/table.cc), and one of them asked of an Optuna trial."""

import csv
import gzip
import json
import pathlib
import sys


def found(folder):
    """The tables in a folder, or the folder itself where it is one."""
    folder = pathlib.Path(folder)
    tables = [folder] if (folder / "space.json").exists() else sorted(p.parent for p in folder.glob("*/space.json"))
    if not tables:
        sys.exit(f"expected a folder with tables (space.json, table.csv.gz), got {folder}")
    return tables


def space_of(folder):
    return json.loads((folder / "space.json").read_text(encoding="utf-8"))


class Table:
    def __init__(self, folder):
        space = space_of(folder)
        self.params = space["params"]
        self.maximized = space["objective"]["goal"] == "max"
        columns = space["objective"]["columns"]
        names = [param["name"] for param in self.params]
        self.rows = {}
        with gzip.open(folder / "table.csv.gz", "rt", encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if row.get("status", "ok") == "ok":
                    key = tuple(row[name] for name in names)
                    self.rows[key] = [float(row[column]) for column in columns if row[column]]

    def evaluate(self, trial, noise):
        """One of the row's objective columns by `noise`; LookupError where the trial fails."""
        indices, chosen = {}, {}
        for param in self.params:
            name, values, condition = param["name"], param["values"], param.get("active_if")
            if condition and chosen.get(condition["param"]) not in condition["in"]:
                continue
            if param["kind"] == "ordinal":
                indices[name] = trial.suggest_int(name, 0, len(values) - 1)
            else:
                indices[name] = trial.suggest_categorical(name, list(range(len(values))))
            chosen[name] = values[indices[name]]
        return noise.choice(self.rows[tuple(str(indices.get(param["name"], "")) for param in self.params)])
