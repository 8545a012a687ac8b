"""A trial on several emulated GPUs by torchrun: a rank that runs out of memory is the trial's, and named."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "engines"))
import several_gpus  # noqa: E402


@unittest.skipIf(several_gpus.missing(), several_gpus.missing())
class SeveralGpus(unittest.TestCase):
    def check(self, gpus):
        figures = several_gpus.measure(gpus)
        rank = several_gpus.hungry_rank(gpus)
        expected = {
            "workers": 1,
            "planned_state": "COMPLETED",
            "planned_ooms": 1,
            "planned_micro_batch": several_gpus.ROWS // 2,
            "rank_of_planned": rank,
            "pruned_state": "PRUNED",
            "pruned_kind": "out_of_memory",
            "rank_of_pruned": rank,
            "next_states": ["COMPLETED", "COMPLETED"],
            "next_ooms": 0,
            "visible_at_starts": [gpus],
            "others_at_starts": 0,
            "held_at_starts_mib": 0,
            "starts": 5,  # of four trials, of which one runs twice
            "processes_left": 0,
        }
        self.assertEqual({key: figures[key] for key in expected}, expected, figures)
        self.assertTrue(figures["device"].startswith(f"{gpus} x "), figures)
        self.assertLess(figures["limit_bytes"], 4 << 30, figures)  # the smallest GPU's

    def test_two(self):
        self.check(2)

    def test_four(self):
        self.check(4)


if __name__ == "__main__":
    unittest.main()
