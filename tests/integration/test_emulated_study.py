"""Short studies on an emulated 12 GB card: nothing runs out, little is refused that would run."""

import unittest

from emulated_study import run_study

TRIALS = 60


class EmulatedStudy(unittest.TestCase):
    def check(self, policy):
        report = run_study(policy, TRIALS, seed=1, card="rtx3060")
        self.assertEqual(report["other_ends"], [])
        self.assertGreaterEqual(report["refused_share_of_drawn"], 0.4)
        self.assertLessEqual(report["refused_share_of_drawn"], 0.6)
        self.assertLessEqual(report["study_oom_share"], 0.005, report["ran_out"])
        self.assertLessEqual(report["study_refused_feasible"], 0.01, report["refused_wrongly"])

    def test_with_the_batch_as_it_is(self):
        self.check("strict")

    def test_with_planned_micro_batches(self):
        self.check("plan")


if __name__ == "__main__":
    unittest.main()
