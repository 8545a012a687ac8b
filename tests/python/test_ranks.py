"""A trial of several ranks: torchrun starts them, and rank 0 alone speaks to the worker, by what it prints."""

import json
import os
import subprocess
import sys
import unittest

JOB = {"type": "job", "study": "s", "trial": 3, "attempt": 1, "params": {"x": 0.5}, "objective": {"metric": "loss"},
       "device": "cuda:0", "gpus": 2, "output_dir": "/out"}
MAIN = """
import hpo.trainer
def train(trial):
    trial.report(7, loss=2 * trial["x"])
    return {"loss": trial["x"], "nan": float("nan")}
hpo.trainer.main(train)
"""
CURRENT = """
import os, hpo.trainer
trial = hpo.trainer.current()
assert trial is hpo.trainer.current()
assert os.environ["HPO_OUTPUT_DIR"] == "/out"
trial.report(1, trial["x"])
"""


def printed(program, rank=None, status=0):
    """The lines of JSON that a rank prints."""
    environment = {**os.environ, "HPO_TRIAL_JOB": json.dumps(JOB)}
    if rank is not None:
        environment["RANK"] = rank
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                          env=environment, timeout=60)
    if done.returncode != status:
        raise AssertionError(done.stdout + done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()] if status == 0 else done.stderr


class Ranks(unittest.TestCase):
    def test_rank_0_reports_and_the_others_do_not(self):
        expected = [{"loss": 1.0, "step": 7, "epoch": 0.0}, {"loss": 0.5, "nan": "NaN"}]
        self.assertEqual(printed(MAIN, "0"), expected)
        self.assertEqual(printed(MAIN), expected)
        self.assertEqual(printed(MAIN, "1"), [])

    def test_a_script_that_asks_for_its_trial(self):
        self.assertEqual(printed(CURRENT, "0"), [{"loss": 0.5, "step": 1, "epoch": 0.0}])
        self.assertEqual(printed(CURRENT, "1"), [])

    def test_an_exception_ends_the_rank(self):
        program = MAIN.replace("    trial.report", "    raise RuntimeError('CUDA out of memory')\n    trial.report")
        self.assertIn("RuntimeError: CUDA out of memory", printed(program, "1", status=1))

    def test_a_result_without_the_objective_fails(self):
        program = MAIN.replace('return {"loss"', 'return {"accuracy"')
        self.assertIn("the study's objective is 'loss'", printed(program, "0", status=1))

    def test_a_rank_that_is_no_number(self):
        self.assertIn("RANK: expected the number of a rank", printed(MAIN, "first", status=1))


if __name__ == "__main__":
    unittest.main()
