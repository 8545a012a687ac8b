"""Dry runs of a study's configurations, on an emulated 12 GB GPU: what does not fit never reaches it."""

import os
import pathlib
import unittest

from emulated import EmulatedDeployment
from harness import BIN, DEADLINE_S, wait_until

PROGRAM = pathlib.Path(__file__).parent / "programs" / "preflight_program.py"
FITS, TOO_LARGE = [1, 6], [18, 30]
EMPTY = PROGRAM.parent  # neither data nor models are there
STUDY = f"""\
name: preflight
objective: {{metric: loss, direction: minimize}}
trainer: {{command: [python3, {PROGRAM}, --layers, "{{layers}}"]}}
budget: {{trials: 2}}
sampler: {{type: random, seed: 3}}
memory: {{preflight: dry-run}}
parameters:
  layers: {{choices: {FITS + TOO_LARGE}}}
"""


class Preflight(unittest.TestCase):
    def test_what_does_not_fit_never_reaches_the_gpu(self):
        with EmulatedDeployment(STUDY, "rtx3060", data=EMPTY, models=EMPTY) as machine:
            runs = machine.folder / "runs"
            # The context is hidden from the dry run.
            worker = machine.start_worker("--gpu", "0", "--allow-commands", environment={
                "RUNS": str(runs), "OMP_NUM_THREADS": "1", "HPO_EMULATED_CONTEXT": "500MiB",
                "PATH": f"{BIN}:{os.environ['PATH']}"})
            wait_until(lambda: not worker.alive(), "the end of the worker", 3 * DEADLINE_S)
            self.assertIn("every study is finished", worker.output(), machine.logs())
            ran = [line.split() for line in runs.read_text().splitlines()]
            on_gpu = [int(layers) for kind, layers in ran if kind == "gpu"]
            dry = [int(layers) for kind, layers in ran if kind == "dry"]
            self.assertEqual(len(on_gpu), 2, machine.logs())
            self.assertLessEqual(set(on_gpu), set(FITS), machine.logs())
            self.assertLessEqual(len(dry), len(FITS + TOO_LARGE))
            self.assertTrue(dry, machine.logs())
            self.assertIn("dry-run in ", worker.output())
            self.assertFalse((machine.folder / "state" / "w0" / "preflight").exists())


if __name__ == "__main__":
    unittest.main()
