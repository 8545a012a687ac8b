"""Data files and model folders as people have them (odd_inputs.py): a trial trains on each, or one message names the
file, the place, the cause and the cure."""

import re
import subprocess
import unittest

import odd_inputs
from harness import BIN, Deployment, wait_until

STUDY = """\
name: {name}
objective: {{metric: {metric}}}
trainer: {{task: {task}, train: {train}, validation: {validation}, epochs: 1}}
budget: {{trials: 1, failures_in_a_row: 1}}
memory: {{policy: plan}}
parameters:
  model.name: {{choices: [{model}]}}
  tok.max_length: {{choices: [16]}}
  train.batch_size: {{choices: [8]}}
  train.lr: {{choices: [1.0e-3]}}
"""
METRICS = {"text-classification": "accuracy, direction: maximize", "text-regression": "rmse, direction: minimize"}
LEAST_CASES = 150
LONGEST = 500
WORKER = "w0"


class OddInputs(Deployment):
    def name_of(self, number):
        return f"case{number}"

    def create(self, number, case):
        file = self.folder / f"{number}.yaml"
        file.write_text(STUDY.format(name=self.name_of(number), metric=METRICS[case.task], task=case.task, train=case.train,
                                     validation=case.validation, model=case.model))
        self.hpo("study", "create", file)

    def said_of(self, number):
        """What the server says of a study that has ended, or that the worker cannot serve; None: neither yet. And
        whether it trained."""
        study = self.json("study", "show", self.name_of(number))
        trials = self.json("trial", "list", "--study", self.name_of(number))["trials"]
        if trials and trials[0]["state"] == "COMPLETED":
            return "", True
        if trials and trials[0]["state"] == "FAILED":
            return trials[0]["outcome"]["message"], False
        return (study["waiting_for"], False) if f"worker {WORKER} " in study["waiting_for"] else None

    def converted_by(self, said):
        """What the iconv command at the end of a message makes, run as printed in the folder of the data."""
        command = re.search(r"iconv -f \S+ -t UTF-8 \S+ > (\S+\.utf8\.[a-z]+)", said)
        subprocess.run(command[0], shell=True, check=True, cwd=self.folder / "data")
        return (self.folder / "data" / command[1]).read_text()

    def test_each_trains_or_is_named(self):
        cases = odd_inputs.make(self.folder)
        self.assertGreaterEqual(len(cases), LEAST_CASES)
        self.start_server()
        self.hpo("study", "stop", "toy")
        for number, case in enumerate(cases):
            self.create(number, case)
        worker = self.start(WORKER, BIN / "hpo-worker", "--server", self.address, "--device", "cpu", "--memory-limit", "1GiB",
                            "--name", WORKER, "--state-dir", self.folder / "state", "--models", self.folder / "models",
                            "--data", self.folder / "data")
        for number, case in enumerate(cases):
            with self.subTest(case.name):
                said, trained = wait_until(lambda of=number: self.said_of(of), f"{case.name}: an end", 300)
                self.assertEqual(trained, not case.said, said)
                for part in case.said:
                    self.assertIn(part, said)
                self.assertLess(len(said.replace(str(self.folder), "")), LONGEST, said)
                if case.converted:
                    self.assertEqual(self.converted_by(said), case.converted)
                self.assertIn(case.warned, worker.output())


if __name__ == "__main__":
    unittest.main()
