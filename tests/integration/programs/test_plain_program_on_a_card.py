"""A program that knows nothing of hpo, on an emulated card: what it takes of the card is seen, and learnt from."""

import json
import tempfile
import unittest

from emulated import BIN, EmulatedDeployment, wait_until

MIB = 1 << 20
PROBE = BIN.parent / "tests" / "card_probe"
TRIALS = 24
STUDY = f"""\
name: cliff
objective: {{metric: score, direction: maximize}}
trainer: {{task: custom, epochs: 1}}
budget: {{trials: {TRIALS}}}
sampler: {{type: auto, seed: 3, startup_trials: 6}}
pruner: {{type: none}}
parameters:
  mib: {{int: [1000, 30000]}}
"""
# The best is as much as fits: 15,095 MiB less the context.
TRAINER = f"""sleep 2 | {PROBE} hold {{mib}} && echo '{{"score": {{mib}}}}'"""


class PlainProgramOnACard(unittest.TestCase):
    def test_its_memory_is_measured_and_the_cliff_is_learnt(self):
        with tempfile.TemporaryDirectory() as folder, EmulatedDeployment(STUDY, "t4", folder, folder) as machine:
            worker = machine.start_worker("--gpu", "0", "--trainer", TRAINER)
            wait_until(lambda: not worker.alive(), "the study's end", seconds=280)
            self.assertEqual(worker.wait(), 0, machine.logs())
            numbers = range(TRIALS)
            trials = [machine.trial(number) for number in numbers]
        overheads = set()
        for trial in trials:
            memory = trial["attempts"][-1]["memory"]
            if trial["state"] == "COMPLETED":
                overheads.add(memory["device_peak_bytes"] // MIB - trial["params"]["mib"])
            else:
                self.assertEqual(trial["outcome"]["kind"], "out_of_memory", trial)
        # The context, and up to 2 MiB by which torch rounds.
        self.assertTrue(overheads and min(overheads) >= 300 and max(overheads) <= 303, overheads)
        late = trials[TRIALS // 2:]
        ran_out = [trial["number"] for trial in late if trial["state"] != "COMPLETED"]
        self.assertLessEqual(len(ran_out), 1, json.dumps(trials)[:4000])
        best = max(trial["params"]["mib"] for trial in trials if trial["state"] == "COMPLETED")
        self.assertGreater(best, 0.9 * (15095 - 300))


if __name__ == "__main__":
    unittest.main()
