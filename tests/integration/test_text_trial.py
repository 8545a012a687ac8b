"""The whole loop with the real trainer on the CPU: text in, an exported model out, a real
out-of-memory error on the way; and what the trainer says of bad input."""

import json
import random
import struct
import time
import unittest

from harness import BIN, SOURCE, Deployment, wait_until
from trainer_job import make_job, run_job

TINY = SOURCE / "tests" / "golden" / "tiny_models" / "tiny-bert"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"word{chr(97 + a)}{chr(97 + b)}" for a in range(5) for b in range(23)]
# A first part of all rows needs more than this; a half or a quarter of them does not.
LIMIT = "32MiB"
ROWS = 1024


def write_rows(path, count, seed):
    """Texts whose label is whether the criterion's word is in them."""
    draw = random.Random(seed)
    with open(path, "w") as out:
        for _ in range(count):
            words = draw.sample(WORDS[:8], 4)
            label = draw.choice(["no", "yes"])
            asked = draw.choice(words if label == "yes"
                                else [w for w in WORDS[:8] if w not in words])
            out.write(json.dumps({"text": " ".join(words), "pair": asked, "label": label}) + "\n")


def write_model(folder):
    folder.mkdir(parents=True)
    config = json.loads((TINY / "config.json").read_text())
    del config["num_labels"]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(SPECIAL + WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')


def tensor_names(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        return {name for name in json.loads(file.read(size)) if name != "__metadata__"}


class TextDeployment(Deployment):
    STUDY = """\
name: toy
objective: {metric: macro_f1, direction: maximize}
trainer: {task: text-classification, train: train.jsonl, validation: valid.jsonl, epochs: 2,
          init: random, labels: ["no", "yes"]}
budget: {trials: 3}
memory: {policy: plan}
sampler: {type: tpe, seed: 3}
pruner: {type: none}
parameters:
  model.name: {choices: [tiny-bert]}
  tok.max_length: {int: [16, 32], step: 16}
  train.batch_size: {choices: [8, 16]}
  train.lr: {float: [1.0e-4, 1.0e-2], log: true}
"""

    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        self.models = self.folder / "models"
        self.data.mkdir()
        write_rows(self.data / "train.jsonl", ROWS, seed=1)
        write_rows(self.data / "valid.jsonl", 64, seed=2)
        write_model(self.models / "tiny-bert")

    def start_text_worker(self, limit="1GiB", options=()):
        return self.start("worker", BIN / "hpo-worker", "--server", self.address, "--device", "cpu",
                          "--memory-limit", limit, "--name", "w0", "--state-dir",
                          self.folder / "state", "--models", self.models, "--data", self.data,
                          *options)


class TextTrial(TextDeployment):
    STUDY = TextDeployment.STUDY.replace("choices: [8, 16]", f"choices: [32, 64, {ROWS}]")

    def test_a_study_trains_meets_an_oom_and_exports_its_best_model(self):
        self.start_server()
        self.hpo("enqueue", "--demonstration", "--no-admission", "--micro-batch", ROWS,
                 f"train.batch_size={ROWS}", "train.lr=1e-3", "tok.max_length=16")
        worker = self.start_text_worker(LIMIT)
        self.hpo("watch", "--until-finished")
        self.assertEqual(worker.wait(), 0, worker.output())

        counts = self.study()["counts"]
        self.assertEqual((counts["completed"], counts["demonstration"]), (3, 1))
        self.assertEqual(counts["oom_met"], 0, "demonstrations are counted apart")
        for number in range(4):
            attempt, = self.trial(number)["attempts"]
            self.assertEqual(attempt["memory"]["baseline_bytes"], 0)
            self.assertLessEqual(attempt["memory"]["live_peak_bytes"],
                                 attempt["memory"]["limit_bytes"])
            if number > 0:
                self.assertLessEqual(attempt["memory"]["live_peak_bytes"],
                                     attempt["predicted_bytes"])

        trial = self.trial(0)
        self.assertEqual(trial["state"], "COMPLETED")
        attempt, = trial["attempts"]
        self.assertGreaterEqual(attempt["memory"]["num_ooms"], 1)
        self.assertEqual(attempt["plan"]["micro_batch"], ROWS)
        self.assertGreater(attempt["predicted_bytes"], attempt["memory"]["limit_bytes"])
        self.assertLess(attempt["final_plan"]["micro_batch"], ROWS)
        self.assertEqual(attempt["final_plan"]["effective_batch"], ROWS)

        export = self.folder / "export"
        self.hpo("best", "--export", export)
        self.assertEqual({f.name for f in export.iterdir()},
                         {"config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"})
        config = json.loads((export / "config.json").read_text())
        self.assertEqual(config["id2label"], {"0": "no", "1": "yes"})
        self.assertEqual(tensor_names(export / "model.safetensors"),
                         tensor_names(TINY / "model.safetensors"))


class PreemptedTrial(TextDeployment):
    EPOCHS = 24  # some seconds: the order comes with a heartbeat, a second after it was given
    STUDY = (TextDeployment.STUDY.replace("epochs: 2", f"epochs: {EPOCHS}, measure_every_steps: 32")
             .replace("trials: 3", "trials: 1").replace("choices: [8, 16]", "choices: [8]"))

    def test_a_preempted_trial_goes_on_from_what_it_saved(self):
        self.start_server("--lease-ttl", "3s")
        worker = self.start_text_worker()
        wait_until(lambda: self.trials() and self.trial(0)["last_measurement"], "a measurement")
        self.hpo("trial", "preempt", 0)
        self.assertEqual(worker.wait(), 0, worker.output())
        trial = self.trial(0)
        self.assertEqual((trial["state"], [a["state"] for a in trial["attempts"]]),
                         ("COMPLETED", ["RELEASED", "FINISHED"]))
        self.assertIn("goes on after step", worker.output())
        self.assertEqual([m["step"] for m in trial["measurements"]],
                         list(range(32, self.EPOCHS * ROWS // 8 + 1, 32)))
        stages = [stage["stage"] for stage in trial["attempts"][1]["stages"]]
        self.assertEqual((stages[0], stages[-1]), ("Trial Start", "Trial Success"))


class TimeLimits(TextDeployment):
    """A trial without an end meets its worker's limit, then its own."""
    WORKER_LIMIT_S = 20  # it drains half way
    STUDY = (TextDeployment.STUDY.replace("epochs: 2", "epochs: 100000")
             .replace("trials: 3", "trials: 1, trial_wall_clock: 16s"))

    def test_a_trial_is_saved_before_its_workers_limit_and_kept_at_its_own(self):
        self.start_server("--lease-ttl", "3s")
        began = time.monotonic()
        worker = self.start_text_worker(options=["--time-limit", f"{self.WORKER_LIMIT_S}s"])
        self.assertEqual(worker.wait(), 75, worker.output())
        self.assertLess(time.monotonic() - began, self.WORKER_LIMIT_S)
        self.assertIn("the time limit is near: giving the trial back", worker.output())
        trial = self.trial(0)
        self.assertEqual((trial["state"], trial["attempts"][0]["state"]), ("QUEUED", "RELEASED"))
        trial, = (self.folder / "state" / "checkpoints").glob("*/toy/000000")
        saved, = trial.iterdir()
        step = int(saved.name.split("-")[0])
        self.assertGreater(step, 0)

        worker = self.start_text_worker()
        self.assertEqual(worker.wait(), 0, worker.output())
        trial = self.trial(0)
        self.assertEqual((trial["state"], trial["outcome"]["pruner"]), ("PRUNED", "time limit"))
        self.assertGreaterEqual(trial["outcome"]["step"], step)
        self.assertIn("macro_f1", trial["outcome"]["metrics"])
        self.assertEqual(trial["measurements"][-1]["step"], trial["outcome"]["step"],
                         "it was measured where it stood")
        resumed, = (s for s in trial["attempts"][1]["stages"] if s["stage"] == "Resumed")
        self.assertEqual(resumed["step"], step)
        self.assertFalse(saved.parent.exists(), "nobody goes on from it")
        best = self.folder / "state" / "w0" / "runs" / "toy" / "000000-2" / "best"
        self.assertEqual(tensor_names(best / "model.safetensors"),
                         tensor_names(TINY / "model.safetensors"))


class BadTrainerInput(TextDeployment):
    """`hpo-trainer --job` says what is wrong in one line, and leaves no model."""

    def fail(self, *expected, model=None, **changes):
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        job = make_job(self.data, model or self.models / "tiny-bert", out,
                       {"train.batch_size": 8, "train.lr": 1e-3, "tok.max_length": 16},
                       **{"labels": ["no", "yes"], **changes})
        status, messages = run_job(job, self.folder)
        self.assertNotEqual(status, 0, messages)
        outcome = messages[-1]["outcome"]
        self.assertEqual(outcome["kind"], "failed")
        self.assertNotIn("\n", outcome["message"])
        for text in expected:
            self.assertIn(text, outcome["message"])
        self.assertEqual(list(out.iterdir()), [])

    def test_broken_safetensors(self):
        whole = (TINY / "model.safetensors").read_bytes()
        path = self.models / "tiny-bert" / "model.safetensors"
        for name, content in {"truncated": whole[:-100], "empty": b"",
                              "header": b"\xff" * 8 + whole[8:]}.items():
            with self.subTest(name):
                path.write_bytes(content)
                self.fail("model.safetensors", model_init="pretrained")

    def test_missing_weights_name_the_folder_and_the_files(self):
        self.fail(str(self.models / "tiny-bert"), "model.safetensors", model_init="pretrained")

    def test_wrong_vocabulary(self):
        vocabulary = self.models / "tiny-bert" / "vocab.txt"
        vocabulary.write_text("\n".join(SPECIAL + WORDS + ["onemore"]) + "\n")
        self.fail("vocab.txt", "121", "120")
        vocabulary.write_text("\n".join(["a"] + SPECIAL[1:] + WORDS) + "\n")
        self.fail("vocab.txt", "[PAD]")

    def test_missing_data_file(self):
        self.fail("gone.jsonl", train_path=str(self.data / "gone.jsonl"))

    def test_a_label_that_the_data_lacks(self):
        self.fail("maybe", labels=["maybe", "no", "yes"])
        with open(self.data / "valid.jsonl", "a") as out:
            out.write(json.dumps({"text": "x", "pair": "y", "label": "perhaps"}) + "\n")
        self.fail("valid.jsonl:65", "perhaps", labels=[])

    def test_malformed_rows_name_their_line(self):
        with open(self.data / "train.jsonl", "a") as out:
            out.write('{"text": \n')
        self.fail(f"train.jsonl:{ROWS + 1}")


if __name__ == "__main__":
    unittest.main()
