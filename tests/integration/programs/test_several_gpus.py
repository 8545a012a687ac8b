"""Trials on several emulated GPUs: who gets which GPUs; and by torchrun, where a rank that runs out of memory is the
trial's, and named."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "engines"))
import several_gpus  # noqa: E402
from emulated import BIN, EmulatedDeployment, wait_until  # noqa: E402

STUDY = """\
name: sets
objective: {{metric: loss, direction: minimize}}
trainer:
  command: 'echo $CUDA_VISIBLE_DEVICES >> {seen}; sleep {pause}; echo {{"loss": {{gpus}}}} "# {{x}}"'
  gpus: {gpus}
budget: {{trials: 6}}
sampler: {{type: random}}
pruner: {{type: none}}
parameters:
  x: {{float: [0.0, 1.0]}}
"""


class SetsOfGpus(unittest.TestCase):
    def machine(self, gpus, pause=0.5, cards="t4+t4+t4+t4"):
        machine = EmulatedDeployment("", cards, several_gpus.EMPTY, several_gpus.EMPTY)
        self.seen = machine.folder / "seen"
        machine.study_file.write_text(STUDY.format(seen=self.seen, gpus=gpus, pause=pause))
        return machine

    def start(self, machine, *options, program=BIN / "hpo-worker", **environment):
        return machine.on_card("worker", program, "--server", machine.address, "--state-dir",
                               machine.folder / "state", "--study", "sets", "--allow-commands", *options,
                               environment=environment)

    def test_the_visible_gpus_are_divided_as_the_study_says(self):
        for gpus, variables, sets in ((2, {}, 2), (4, {}, 1), (1, {}, 4), (3, {"CUDA_VISIBLE_DEVICES": "3,1,0"}, 1)):
            with self.subTest(gpus), self.machine(gpus, pause=2 if sets > 1 else 0.1) as machine:
                worker = self.start(machine, **variables)
                wait_until(lambda: not worker.alive(), "the end of the study")
                self.assertEqual(worker.wait(), 0, machine.logs())
                self.assertEqual({machine.trial(number)["value"] for number in range(6)}, {gpus})
                seen = {tuple(line.split(",")) for line in self.seen.read_text().split()}
                self.assertEqual(len(seen), sets, seen)
                every = [uuid for one in seen for uuid in one]
                self.assertEqual(len(every), len(set(every)), "a GPU of two workers")
                self.assertEqual(len(every), gpus * sets)

    def test_more_than_the_host_has(self):
        with self.machine(8) as machine:
            worker = self.start(machine)
            wait_until(lambda: not worker.alive(), "the end of the worker")
            self.assertEqual(worker.wait(), 78)
            said = worker.output().strip().splitlines()[-1]
            self.assertIn("expected at least 8 GPUs, as each trial takes so many", said)
            self.assertIn("got 4: ", said)

    def test_a_worker_with_too_few_is_told_why(self):
        with self.machine(2) as machine:
            worker = self.start(machine, "--gpu", "0", "--name", "one")
            why = "study sets trains each trial on 2 GPUs (trainer.gpus), and each trial of worker one takes 1; " \
                  "start hpo-worker with --gpus-per-trial 2"
            wait_until(lambda: why in worker.output() or not worker.alive(), "the reason in its log")
            self.assertIn("gets none of them", worker.output())
            self.assertIn(why, " ".join(machine.hpo("status").split()))
            listed = json.loads(machine.hpo("worker", "list", "--output", "json"))["workers"]
            self.assertEqual([one["notice"] for one in listed], [why])
            self.assertFalse(self.seen.exists())

    def test_no_process_outlives_a_worker_that_is_killed(self):
        with self.machine(4, pause=60) as machine:
            worker = self.start(machine)
            wait_until(self.seen.exists, "the program", 30)
            left = several_gpus.processes_of(machine.folder)
            self.assertTrue(left)
            mother = next(pid for pid in _children(worker.pid) if "hpo-worker" in _name(pid))
            os.kill(mother, signal.SIGKILL)
            wait_until(lambda: not several_gpus.processes_of(machine.folder), "the end of the program", 30)

    def test_hpo_run_says_that_there_are_too_few(self):
        with self.machine(2) as machine:
            done = subprocess.run([BIN / "hpo", "run", machine.study_file, "--device", "cpu", "--memory-limit", "1GiB",
                                   "--dir", machine.folder / "run"], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn("trainer.gpus: expected at most the number of GPUs that a worker may use here, which is 0 with "
                          "the CPU as its device, got 2", done.stderr)


def _name(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text()


def _children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


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
