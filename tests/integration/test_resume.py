"""kill -9 of the real trainer at twenty random points of one trial: the attempts together measure
what an undisturbed one measures, bit for bit."""

import json
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import DEADLINE_S
from test_text_trial import write_model, write_rows
from trainer_job import TRAINER

KILLS = 20
LONGEST_LIFE_S = 0.8  # of an attempt, from its job on


class ResumeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hpo-resume-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        write_model(self.folder / "model")
        write_rows(self.folder / "train.jsonl", 512, seed=1)
        write_rows(self.folder / "valid.jsonl", 64, seed=2)

    def start(self, name, attempt):
        """The trainer, alone with its job, once it has said hello."""
        output = self.folder / f"{name}-{attempt}"
        output.mkdir()
        job = {
            "type": "job", "study": "resume", "trial": 3, "attempt": attempt,
            "params": {"model.name": "tiny-bert", "tok.max_length": 32, "train.batch_size": 8,
                       "train.lr": 1e-3, "model.dropout": 0.1},
            "train_path": str(self.folder / "train.jsonl"),
            "validation_path": str(self.folder / "valid.jsonl"), "labels": ["no", "yes"],
            "epochs": 6, "measure_every_steps": 10, "model_name": "tiny-bert",
            "model_path": str(self.folder / "model"), "model_init": "random",
            "objective": {"metric": "macro_f1", "direction": "maximize"}, "device": "cpu",
            "policy": "plan", "admission": False,
            "plan": {"effective_batch": 8, "micro_batch": 8}, "seed": 5,
            "output_dir": str(output), "checkpoint_dir": str(self.folder / name / "000003"),
            "checkpoint_every_steps": 3}
        job_file = self.folder / f"{name}-{attempt}.json"
        job_file.write_text(json.dumps(job))
        process = subprocess.Popen(
            [TRAINER, "--job", job_file, "--threads", "1", "--log-level", "off"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            bufsize=0)  # communicate() reads the pipe itself: a buffer would keep lines from it
        self.addCleanup(process.stdout.close)
        self.assertEqual(json.loads(process.stdout.readline())["type"], "hello")
        return process

    @staticmethod
    def messages(text):
        """Of a trainer that is gone; its last line may be torn."""
        return [json.loads(line) for line in text.splitlines() if line.endswith(b"}")]

    @staticmethod
    def measurements(messages):
        return [message for message in messages if message["type"] == "measurement"]

    def finish(self, name, attempt):
        process = self.start(name, attempt)
        text, _ = process.communicate(timeout=DEADLINE_S)
        messages = self.messages(text)
        self.assertEqual(process.returncode, 0, messages[-1])
        return self.measurements(messages)

    def live_and_die(self, name, attempt, seconds):
        process = self.start(name, attempt)
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            text, _ = process.communicate()
        return self.messages(text)

    def test_twenty_kills_change_nothing(self):
        undisturbed = self.finish("whole", 1)
        self.assertEqual(undisturbed[-1]["step"], 6 * 64)
        draw = random.Random(11)
        resumed = 0
        for attempt in range(1, KILLS + 1):
            messages = self.live_and_die("killed", attempt, draw.uniform(0.05, LONGEST_LIFE_S))
            resumed += any(message["type"] == "log" and "goes on after step" in message["text"]
                           for message in messages)
            for measured in self.measurements(messages):
                self.assertIn(measured, undisturbed)
        self.assertGreater(resumed, 0, "no attempt ever got as far as a checkpoint")
        self.assertEqual(self.finish("killed", KILLS + 1), undisturbed)
        weights = "best/model.safetensors"
        self.assertEqual((self.folder / f"killed-{KILLS + 1}" / weights).read_bytes(),
                         (self.folder / "whole-1" / weights).read_bytes())


if __name__ == "__main__":
    unittest.main()
