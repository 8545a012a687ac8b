"""The suite's own eyes: what is lost, told twice, stuck or different is seen."""

import pathlib
import sqlite3
import tempfile
import unittest

from comparison import differences
from ledger import Ledger

SCHEMA = """
CREATE TABLE study (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE trial (study_id INTEGER, number INTEGER, state TEXT, outcome TEXT, params TEXT);
CREATE TABLE attempt (study_id INTEGER, number INTEGER, state TEXT);
INSERT INTO study VALUES (1, 's');
"""
STORED = {"stored": True}


def completed(value):
    return f'{{"completed": {{"metrics": {{"macro_f1": {value}}}}}}}'


class LedgerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.database = pathlib.Path(folder.name) / "hpo.db"
        self.ledger = Ledger()
        self.ledger.acknowledge("s", "0", 0.5, STORED)

    def audit(self, *rows, attempts=(), params="{}"):
        with sqlite3.connect(self.database) as writer:
            writer.executescript(SCHEMA)
            writer.executemany("INSERT INTO trial VALUES (1, ?, ?, ?, ?)",
                               [(*row, params) for row in rows])
            writer.executemany("INSERT INTO attempt VALUES (1, ?, ?)", attempts)
        return self.ledger.audit(self.database)[0]

    def test_what_was_told_and_is_stored_is_well(self):
        figures = self.audit((0, "COMPLETED", completed(0.5)))
        self.assertEqual((0, 0, 0, "ok"), tuple(figures[name] for name in (
            "acknowledged_lost", "told_twice", "trials_stuck", "integrity")))

    def test_a_row_that_is_missing_or_says_something_else_is_lost(self):
        self.assertEqual(1, self.audit()["acknowledged_lost"])

    def test_another_value_is_lost(self):
        self.assertEqual(1, self.audit((0, "COMPLETED", completed(0.25)))["acknowledged_lost"])

    def test_an_open_trial_is_lost_and_stuck(self):
        figures = self.audit((0, "RUNNING", None))
        self.assertEqual((1, 1), (figures["acknowledged_lost"], figures["trials_stuck"]))

    def test_a_queued_trial_is_there_once_with_its_parameters(self):
        self.ledger.queue("s", "0", 0.125)
        row = (0, "COMPLETED", completed(0.5))
        self.assertEqual(0, self.audit(row, params='{"x": 0.125}')["acknowledged_lost"])

    def test_a_queued_trial_with_other_parameters_or_twice_is_lost(self):
        self.ledger.queue("s", "0", 0.125)
        row, again = ((number, "COMPLETED", completed(0.5)) for number in (0, 1))
        self.assertEqual(1, self.audit(row, params='{"x": 0.25}')["acknowledged_lost"])
        self.database.unlink()
        self.assertEqual(1, self.audit(row, again, params='{"x": 0.125}')["acknowledged_lost"])

    def test_a_cancelled_trial_that_ran_is_lost(self):
        self.ledger.cancel("s", "0")
        self.assertEqual(1, self.audit((0, "COMPLETED", completed(0.5)))["acknowledged_lost"])

    def test_an_import_that_is_missing_or_twice_is_lost(self):
        self.ledger.import_one("s", 0.75)
        rows = [(number, "COMPLETED", completed(0.75)) for number in (1, 2)]
        own = (0, "COMPLETED", completed(0.5))
        for imported, lost in (([], 1), (rows[:1], 0), (rows, 1)):
            self.assertEqual(lost, self.audit(own, *imported)["acknowledged_lost"])
            self.database.unlink()

    def test_a_second_end_is_told_twice(self):
        self.ledger.acknowledge("s", "0", 0.75, {"stored": False})
        self.assertEqual(0, self.ledger.told_twice)
        self.ledger.acknowledge("s", "0", 0.75, STORED)
        self.assertEqual(1, self.ledger.told_twice)

    def test_a_lease_of_a_trial_that_is_over_is_no_integrity(self):
        figures = self.audit((0, "COMPLETED", completed(0.5)), attempts=[(0, "LEASED")])
        self.assertNotEqual("ok", figures["integrity"])


class DifferencesTest(unittest.TestCase):
    def test_the_field_is_named(self):
        self.assertEqual([], differences({"a": {"b": 1}}, {"a": {"b": 1}}))
        self.assertEqual(["a.b: 1 became 2"], differences({"a": {"b": 1}}, {"a": {"b": 2}}))
        self.assertEqual(["c: None became 1"], differences({}, {"c": 1}))


if __name__ == "__main__":
    unittest.main()
