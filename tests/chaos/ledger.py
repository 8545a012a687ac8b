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

    def count(self):
        with self._mutex:
            return self.acknowledged

    def audit(self, database):
        """Holds the file of a server that has ended against the record. Returns figures and what was found."""
        found = []
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as reader:
            integrity = reader.execute("PRAGMA integrity_check").fetchone()[0]
            orphans = reader.execute("PRAGMA foreign_key_check").fetchall()
            rows = {(study, number): (state, outcome) for study, number, state, outcome in
                    reader.execute("SELECT s.name, t.number, t.state, t.outcome FROM trial t "
                                   "JOIN study s ON s.id = t.study_id")}
            open_attempts = reader.execute(
                "SELECT count(*) FROM attempt a JOIN trial t USING (study_id, number) WHERE "
                "a.state IN ('LEASED', 'SUSPECT') AND t.state != 'RUNNING'").fetchone()[0]
        lost = 0
        for key, value in self.stored.items():
            state, outcome = rows.get(key, ("absent", None))
            kept = json.loads(outcome) if outcome else {}
            if state != "COMPLETED" or _metric(kept) != value:
                lost += 1
                found.append(f"trial {key[0]} #{key[1]}: told {value}, stored {state} {outcome}")
        stuck = [key for key, (state, _) in rows.items() if state not in TERMINAL]
        found += [f"trial {study} #{number} is {rows[study, number][0]}" for study, number in stuck]
        if orphans or open_attempts:
            integrity = f"{len(orphans)} orphans, {open_attempts} leases of trials that do not run"
        return {"acknowledged_lost": lost, "told_twice": self.told_twice, "trials_stuck": len(stuck),
                "integrity": integrity, "trials": len(rows), "acknowledged": self.acknowledged}, found


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
