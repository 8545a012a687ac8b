"""Faults of a card, end to end: what the case says is what must come (fault_cases.py)."""

import unittest

from fault_cases import CASES, run_all


class FaultCases(unittest.TestCase):
    def test_every_case_ends_as_expected(self):
        results = run_all()
        self.assertEqual(len(results), len(CASES))
        for name, expected, came in results:
            print(f"{name}: {came}")
            with self.subTest(name):
                self.assertEqual(came, expected)


if __name__ == "__main__":
    unittest.main()
