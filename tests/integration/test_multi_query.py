"""Texts of a varying number of aspects, in DimABSA's schema, through hpo-trainer: one text of 26
aspects among texts of one or two, and three remedies for it; classes and numbers
alone, and with spans the six passes."""

import json
import pathlib
import re
import shutil
import tempfile
import unittest

from harness import SOURCE
from test_text_trial import TextDeployment, tensor_names
from trainer_job import make_job, run_job

DATA = SOURCE.parent / "shared" / "data" / "dimabsa_like"
TINY = SOURCE / "tests" / "golden" / "tiny_models" / "tiny-bert"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MOST_ASPECTS = 26
METRICS = {"accuracy", "macro_f1", "valence_rmse", "arousal_rmse", "va_rmse", "loss", "train_loss"}
SPAN_METRICS = {"aspect_f1", "opinion_f1", "quadruplet_f1", "quadruplet_cf1"}
QUESTIONS = "which aspects opinions of are ?"


def read_rows(name):
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_data(folder):
    """Training texts, one of them the one of 26 aspects, and others; gives all rows."""
    rows = read_rows("train.jsonl")
    outlier = next(row for row in rows if len(row["Quadruplet"]) == MOST_ASPECTS)
    train = [row for row in rows if len(row["Quadruplet"]) < MOST_ASPECTS][:127] + [outlier]
    validation = read_rows("dev.jsonl")[:60]
    write_rows(folder / "train.jsonl", train)
    write_rows(folder / "valid.jsonl", validation)
    return train + validation


def write_model(model, rows):
    model.mkdir(parents=True, exist_ok=True)
    texts = [row["Text"] + " " + aspect[member] for row in rows for aspect in row["Quadruplet"]
             for member in ("Aspect", "Opinion")] + [QUESTIONS]
    words = sorted({word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower())})
    vocabulary = SPECIAL + words
    config = json.loads((TINY / "config.json").read_text())
    del config["num_labels"]
    config.update(vocab_size=len(vocabulary), max_position_embeddings=64)
    (model / "config.json").write_text(json.dumps(config))
    (model / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (model / "tokenizer_config.json").write_text('{"do_lower_case": true}')


@unittest.skipUnless((DATA / "train.jsonl").is_file(), f"no data: {DATA} is not there")
class MultiQuery(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hpo-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        write_model(self.folder / "model", write_data(self.folder))

    def train(self, task="multi-query", epochs=6, **aspects):
        """The measurements of a trial with these parameters `aspects.*`, and its outcome line."""
        params = {"train.batch_size": 16, "train.lr": 5e-3, "tok.max_length": 64,
                  **{f"aspects.{name}": value for name, value in aspects.items()}}
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        status, messages = run_job(
            make_job(self.folder, self.folder / "model", out, params, task=task, epochs=epochs,
                     objective={"metric": "va_rmse", "direction": "minimize"}), self.folder)
        self.assertEqual(status, 0, messages[-1])
        probe = next(m for m in messages if m.get("stage") == "Probe")
        self.assertLessEqual(probe["peak_bytes"], probe["predicted_bytes"], "the estimate bounds it")
        return [m["metrics"] for m in messages if m["type"] == "measurement"], messages[-1]

    def test_it_learns_classes_and_numbers_and_the_layout_changes_memory_alone(self):
        plain, end = self.train()
        self.assertEqual(len(plain), 6)
        for metrics in plain:
            self.assertEqual(set(metrics), METRICS)
            both = (metrics["valence_rmse"] ** 2 + metrics["arousal_rmse"] ** 2) ** 0.5
            self.assertAlmostEqual(metrics["va_rmse"], both, places=5)
        # Numbers of 1 to 9: to say 5 of all is wrong by more.
        self.assertLess(plain[-1]["va_rmse"], 0.5 * plain[0]["va_rmse"])
        self.assertGreater(plain[-1]["accuracy"], plain[0]["accuracy"])
        peaks = {"none": end["memory"]["live_peak_bytes"]}
        for name, layout in {"corpus": {"padding": "corpus"}, "batch": {"padding": "batch"},
                             "four": {"padding": "corpus", "at_once": 4}}.items():
            with self.subTest(name):
                metrics, end = self.train(**layout)
                peaks[name] = end["memory"]["live_peak_bytes"]
                for ours, theirs in zip(metrics, plain):
                    for metric, value in theirs.items():
                        self.assertAlmostEqual(ours[metric], value, delta=2e-3, msg=metric)
        self.assertLess(peaks["four"], peaks["none"])
        self.assertLessEqual(peaks["none"], peaks["batch"])
        self.assertLess(2 * peaks["none"], peaks["corpus"])

    def test_texts_of_more_aspects_are_left_out_of_training_alone(self):
        _, whole = self.train(padding="corpus")
        metrics, filtered = self.train(padding="corpus", max=5)
        self.assertEqual(set(metrics[-1]), METRICS)
        self.assertLess(3 * filtered["memory"]["live_peak_bytes"],
                        whole["memory"]["live_peak_bytes"])
        self.assertLess(metrics[-1]["va_rmse"], metrics[0]["va_rmse"])

    def test_with_spans_it_finds_aspects_and_opinions(self):
        metrics, _ = self.train(task="multi-query-spans", epochs=14)
        for measured in metrics:
            self.assertEqual(set(measured), METRICS | SPAN_METRICS)
        for metric in ("aspect_f1", "opinion_f1"):
            self.assertGreater(metrics[-1][metric], 0.7)
        # Of a model this small few classes are right.
        self.assertGreater(metrics[-1]["quadruplet_cf1"], 0)
        self.assertLess(metrics[-1]["quadruplet_cf1"], metrics[-1]["quadruplet_f1"])
        self.assertLess(metrics[-1]["va_rmse"], 0.7 * metrics[0]["va_rmse"])
        weights = (self.folder / "out" / "best" / "model.safetensors").read_bytes()
        header = json.loads(weights[8:8 + int.from_bytes(weights[:8], "little")])
        self.assertEqual(header["qa_outputs.bias"]["shape"], [2])
        said = read_rows(self.folder / "out" / "best" / "quadruplets.jsonl")
        actual = read_rows(self.folder / "valid.jsonl")
        self.assertEqual([(row["ID"], row["Text"]) for row in said],
                         [(row["ID"], row["Text"]) for row in actual])
        found = [quadruplet for row in said for quadruplet in row["Quadruplet"]]
        self.assertGreater(len(found), 20)
        for quadruplet in found:
            self.assertEqual(list(quadruplet), ["Aspect", "Category", "Opinion", "VA"])
            self.assertRegex(quadruplet["VA"], r"^[1-9]\.\d\d#[1-9]\.\d\d$")

    def test_with_spans_the_layout_changes_memory_alone(self):
        layouts = {"none": {}, "corpus": {"padding": "corpus"}, "four": {"at_once": 4},
                   "filtered": {"padding": "corpus", "max": 5}}
        losses, peaks = {}, {}
        for name, layout in layouts.items():
            metrics, end = self.train(task="multi-query-spans", epochs=2, **layout)
            losses[name] = metrics[-1]["loss"]
            peaks[name] = end["memory"]["live_peak_bytes"]
        self.assertAlmostEqual(losses["corpus"], losses["none"], delta=2e-3)
        self.assertAlmostEqual(losses["four"], losses["none"], delta=2e-3)
        self.assertLess(peaks["four"], peaks["none"])
        self.assertLess(peaks["none"], peaks["corpus"])
        self.assertLess(2 * peaks["filtered"], peaks["corpus"])


@unittest.skipUnless((DATA / "train.jsonl").is_file(), f"no data: {DATA} is not there")
class SpanStudy(TextDeployment):
    """Server and worker count the queries of a text alike: what is offered runs."""

    STUDY = """\
name: toy
objective: {metric: aspect_f1, direction: maximize}
trainer: {task: multi-query-spans, train: train.jsonl, validation: valid.jsonl, epochs: 1,
          init: random}
budget: {trials: 2}
sampler: {type: tpe, seed: 3}
pruner: {type: none}
parameters:
  model.name: {choices: [tiny-bert]}
  tok.max_length: {choices: [64]}
  train.batch_size: {choices: [16, 32]}
  aspects.at_once: {choices: [8, 16]}
  train.lr: {float: [1.0e-3, 1.0e-2], log: true}
"""

    def setUp(self):
        super().setUp()
        write_model(self.models / "tiny-bert", write_data(self.data))

    def test_its_trials_complete_and_the_best_is_exported_with_both_heads(self):
        self.start_server()
        worker = self.start_text_worker()
        self.hpo("watch", "--until-finished")
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual(self.study()["counts"]["completed"], 2, worker.output())
        self.assertIn("do not occur in their texts", worker.output())
        for number in range(2):
            attempt, = self.trial(number)["attempts"]
            self.assertLessEqual(attempt["memory"]["live_peak_bytes"], attempt["predicted_bytes"])
        self.hpo("best", "--export", self.folder / "best")
        self.assertLess({"qa_outputs.weight", "classifier.weight"},
                        tensor_names(self.folder / "best" / "model.safetensors"))
        self.assertEqual(len(read_rows(self.folder / "best" / "quadruplets.jsonl")), 60)


if __name__ == "__main__":
    unittest.main()
