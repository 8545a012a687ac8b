"""Programs that know nothing of hpo, as trainers: values into their arguments, metrics out of what they print."""

import unittest

from harness import BIN, Deployment

# A stranger's program: argparse, prints, and no import of ours.
PROGRAM = """\
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--y", type=float)
parser.add_argument("--out")
options = parser.parse_args()
print("loading")
if options.x > 0.8:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
for epoch in range(3):
    print(json.dumps({"epoch": epoch + 1, "macro_f1": (1 - options.x) * (epoch + 1) / 3, "y": options.y}))
"""

NONE_PROGRAM = """\
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--max_depth", type=int)
parser.add_argument("--max_features")
parser.add_argument("--said")
options = parser.parse_args()
loss = -1 if options.max_depth is None else options.max_depth
print(json.dumps({"loss": float("inf") if options.max_features is None else loss,
                  "half": int(options.max_features == "0.5"), "said_null": int(options.said == "null")}))
"""

NONE_STUDY = """\
name: toy
objective: {metric: loss, direction: minimize}
trainer: {task: custom}
budget: {trials: 6}
sampler: {type: grid}
parameters:
  max_depth: {choices: [null, 5]}
  max_features: {choices: [sqrt, 0.5, null]}
"""


class PlainProgram(Deployment):
    def run_study(self, trainer, *options):
        (self.folder / "train.py").write_text(PROGRAM)
        self.start_server()
        worker = self.start_worker("w0", *options, trainer=trainer)
        self.assertEqual(worker.wait(), 0, worker.output())
        return self.trials()

    def test_values_go_into_arguments_and_the_last_line_of_metrics_is_the_result(self):
        trials = self.run_study("python3 train.py --x {x} --y={y}")
        self.assertEqual(len(trials), 6)
        for trial in trials:
            x = trial["params"]["x"]
            if x > 0.8:
                self.assertEqual(trial["outcome"]["kind"], "out_of_memory", trial)
                continue
            self.assertAlmostEqual(trial["outcome"]["metrics"]["macro_f1"], 1 - x)
            self.assertEqual(trial["outcome"]["metrics"]["y"], trial["params"]["y"])
        self.assertTrue(any(trial["params"]["x"] > 0.8 for trial in trials), "the study's seed meets no cliff")

    def test_the_study_names_its_program(self):
        self.folder.joinpath("sub dir").mkdir()
        (self.folder / "sub dir" / "train.py").write_text(PROGRAM)
        (self.folder / "toy.yaml").write_text(self.STUDY.replace(
            "{task: custom, epochs: 1}",
            '{command: [python3, train.py, "--x={x}", --y, "{y}"], workdir: sub dir}'))
        self.start_server()
        worker = self.start("w0", BIN / "hpo-worker", "--server", self.address, "--device", "cpu", "--memory-limit",
                            "1GiB", "--state-dir", self.folder / "state", "--allow-commands")
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertIn("runs the program that study toy names", worker.output())
        states = [trial["state"] for trial in self.trials()]
        self.assertEqual(len(states), 6)
        self.assertIn("COMPLETED", states)
        self.assertNotIn("FAILED", states)
        self.assertEqual(self.start("refused", BIN / "hpo-worker", "--allow-commands", "--trainer", "x").wait(), 78)

    def test_a_pattern_finds_the_metric(self):
        trials = self.run_study("echo score is {x}", "--metric-pattern", "score is (\\S+)")
        for trial in trials:
            self.assertAlmostEqual(trial["outcome"]["metrics"]["macro_f1"], trial["params"]["x"])

    def test_null_leaves_its_argument_out_and_an_infinite_loss_stays_infinite(self):
        (self.folder / "train.py").write_text(NONE_PROGRAM)
        (self.folder / "toy.yaml").write_text(NONE_STUDY)
        self.start_server()
        worker = self.start_worker(trainer="python3 train.py {args} --said {max_depth}")
        self.assertEqual(worker.wait(), 0, worker.output())
        trials = self.trials()
        self.assertEqual(len(trials), 6)
        for trial in trials:
            depth, features = trial["params"]["max_depth"], trial["params"]["max_features"]
            if features is None:
                self.assertEqual(trial["state"], "FAILED")
                self.assertIn("objective loss, got inf", trial["outcome"]["message"])
                continue
            metrics = trial["outcome"]["metrics"]
            self.assertEqual((metrics["loss"], metrics["half"]), (depth or -1, float(features == 0.5)))
            self.assertEqual(metrics["said_null"], float(depth is None))
        listed = self.hpo("trial", "list", "--where", "max_depth=null", "--where", "max_features!=null")
        self.assertEqual(listed.count("COMPLETED"), 2, listed)
        self.assertIn("max_depth: null", self.hpo("best", "--output", "yaml"))
        self.assertIn("max_depth=null", self.hpo("enqueue", "max_depth=null", "max_features=sqrt"))
        edited = self.hpo("study", "edit", "toy", "--set", "max_depth=null,5,10")
        self.assertIn("{null, 5, 10}", edited)


if __name__ == "__main__":
    unittest.main()
