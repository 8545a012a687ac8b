"""What the service acknowledged, kept apart from it, and an own reader of its database."""

import json
import sqlite3
import threading

TERMINAL = {"COMPLETED", "PRUNED", "FAILED", "CANCELLED"}


class Ledger:
    """Results that were acknowledged. Thread-safe."""

    def __init__(self):
        self._mutex = threading.Lock()
        self.stored = {}  # (study, trial) -> value, where the answer said "stored"
        self.queued = {}  # (study, trial) -> x
        self.cancelled = set()  # (study, trial)
        self.imported = []  # (study, value)
        self.told_twice = 0
        self.acknowledged = 0

    def acknowledge(self, study, trial, value, answer):
        with self._mutex:
            self.acknowledged += 1
            if not answer["stored"]:
                return
            if (study, int(trial)) in self.stored:
                self.told_twice += 1
            self.stored[(study, int(trial))] = value

    def queue(self, study, trial, x):
        with self._mutex:
            if (study, int(trial)) in self.queued:
                self.told_twice += 1
            self.queued[(study, int(trial))] = x

    def cancel(self, study, trial):
        with self._mutex:
            self.cancelled.add((study, int(trial)))

    def import_one(self, study, value):
        with self._mutex:
            self.imported.append((study, value))

    def count(self):
        with self._mutex:
            return self.acknowledged

    def audit(self, database):
        """Holds the file of a server that has ended against the record. Returns figures and what was found."""
        found = []
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as reader:
            integrity = reader.execute("PRAGMA integrity_check").fetchone()[0]
            orphans = reader.execute("PRAGMA foreign_key_check").fetchall()
            rows = {(study, number): (state, outcome, params)
                    for study, number, state, outcome, params in reader.execute(
                        "SELECT s.name, t.number, t.state, t.outcome, t.params FROM trial t "
                        "JOIN study s ON s.id = t.study_id")}
            open_attempts = reader.execute(
                "SELECT count(*) FROM attempt a JOIN trial t USING (study_id, number) WHERE "
                "a.state IN ('LEASED', 'SUSPECT') AND t.state != 'RUNNING'").fetchone()[0]
        lost = self._lost(rows)
        found += lost
        stuck = [key for key, (state, *_) in rows.items() if state not in TERMINAL]
        found += [f"trial {study} #{number} is {rows[study, number][0]}" for study, number in stuck]
        if orphans or open_attempts:
            integrity = f"{len(orphans)} orphans, {open_attempts} leases of trials that do not run"
        return {"acknowledged_lost": len(lost), "told_twice": self.told_twice, "trials_stuck": len(stuck),
                "integrity": integrity, "trials": len(rows), "acknowledged": self.acknowledged,
                "acknowledged_to_people": len(self.queued) + len(self.cancelled) + len(self.imported)
                }, found

    def _lost(self, rows):
        """What was acknowledged and is not in the rows, and what is there more than once."""
        absent = ("absent", None, None)
        found = []
        for key, value in self.stored.items():
            state, outcome, _ = rows.get(key, absent)
            if state != "COMPLETED" or _metric(json.loads(outcome or "{}")) != value:
                found.append(f"trial {key[0]} #{key[1]}: told {value}, stored {state} {outcome}")
        params_of = {key: json.loads(params) for key, (_, _, params) in rows.items()}
        for key, x in self.queued.items():
            state, _, stored = rows.get(key, absent)
            same = [other for other, params in params_of.items() if _has(params, x)]
            if same != [key]:
                found.append(f"trial {key[0]} #{key[1]}: queued with x {x}, stored {state} {stored}, "
                             f"with that x: {same}")
        for key in self.cancelled:
            state = rows.get(key, absent)[0]
            if state != "CANCELLED":
                found.append(f"trial {key[0]} #{key[1]}: cancelled, stored {state}")
        for study, value in self.imported:
            same = [key for key, (state, outcome, _) in rows.items() if key[0] == study and
                    state == "COMPLETED" and _metric(json.loads(outcome or "{}")) == value]
            if len(same) != 1:
                found.append(f"import into {study} with {value}: stored as {same}")
        return found


def _has(node, value):
    """Whether the value stands anywhere in stored parameters."""
    if isinstance(node, dict):
        node = list(node.values())
    return any(_has(child, value) for child in node) if isinstance(node, list) else node == value


def _metric(node):
    """The value of macro_f1 anywhere in a stored outcome."""
    if isinstance(node, dict):
        if isinstance(node.get("macro_f1"), (int, float)):
            return node["macro_f1"]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            value = _metric(child)
            if value is not None:
                return value
    return None
