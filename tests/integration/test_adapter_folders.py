"""What hpo-trainer writes of a model with low-rank adapters, opened by the packages that it is for:
`adapter/` by peft on the model it was trained on, the merged folder by transformers alone. Both must
answer alike, and measure on the validation rows what the trainer measured.

Needs torch, transformers and peft in addition to the tests' own packages; run by hand with a Python that
has them (versions: THIRD_PARTY.md):
    python3 -m venv --system-site-packages V && V/bin/pip install torch transformers==5.23.0 peft==0.21.2
    HPO_BIN_DIR=build/dev/bin HPO_FAKE_TRAINER= V/bin/python -m unittest test_adapter_folders
"""

import importlib.util
import json
import pathlib
import random
import shutil
import tempfile
import unittest

from harness import SOURCE
from trainer_job import make_job, run_job

TINY = SOURCE / "tests" / "golden" / "tiny_models"
MISSING = [name for name in ("torch", "transformers", "peft") if not importlib.util.find_spec(name)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"word{chr(97 + a)}{chr(97 + b)}" for a in range(5) for b in range(26)]
CLOSE = 2e-5  # of logits of order 1, in float32, by two orders of summation


def write_rows(path, count, seed, labels):
    draw = random.Random(seed)
    with open(path, "w") as out:
        for _ in range(count):
            label = draw.choice(["a", "b", "c"])
            first = 5 * "abc".index(label)
            row = {"text": " ".join(draw.choices(WORDS[first:first + 8], k=draw.randint(3, 20)))}
            out.write(json.dumps({**row, "label": label} if labels else row) + "\n")


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class AdapterFolders(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hpo-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write_model(self, name):
        """The golden model `name` with a tokenizer of whole words."""
        model = self.folder / "model"
        model.mkdir()
        for file in ("config.json", "model.safetensors"):
            shutil.copy(TINY / name / file, model / file)
        size = json.loads((model / "config.json").read_text())["vocab_size"]
        vocabulary = (SPECIAL + WORDS)[:size]
        if name in ("tiny-bert", "distilbert", "electra"):
            (model / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
            (model / "tokenizer_config.json").write_text(
                '{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')
        else:
            self.write_tokenizer_json(model, vocabulary)
        return model

    @staticmethod
    def write_tokenizer_json(model, vocabulary):
        import tokenizers
        words = tokenizers.models.WordPiece({word: i for i, word in enumerate(vocabulary)},
                                            unk_token="[UNK]")
        tokenizer = tokenizers.Tokenizer(words)
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        tokenizer.add_special_tokens(SPECIAL[:2])
        tokenizer.save(str(model / "tokenizer.json"))
        (model / "tokenizer_config.json").write_text(
            '{"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}')

    def train(self, name, task, **parameters):
        """The folder of the best weights, and what was measured of them."""
        for used in ("model", "out"):
            shutil.rmtree(self.folder / used, ignore_errors=True)
        labels = task == "text-classification"
        write_rows(self.folder / "train.jsonl", 96, 1, labels)
        write_rows(self.folder / "valid.jsonl", 24, 2, labels)
        out = self.folder / "out"
        out.mkdir()
        params = {"train.batch_size": 8, "train.lr": 1e-2, "tok.max_length": 24, "lora.rank": 4,
                  "lora.alpha": 8.0, **parameters}
        job = make_job(self.folder, self.write_model(name), out, params, task=task, epochs=2,
                       model_init="pretrained", model_name=str(self.folder / "model"),
                       objective={"metric": "loss", "direction": "minimize"})
        status, messages = run_job(job, self.folder)
        self.assertEqual(status, 0, messages[-1])
        return pathlib.Path(messages[-1]["outcome"]["model_path"]), messages[-1]["outcome"]["metrics"]

    def open_all(self, best, auto):
        """The model trained on, with `adapter/` on it, and the merged one."""
        import peft
        base = auto.from_pretrained(self.folder / "model")
        adapted = auto.from_pretrained(self.folder / "model")
        adapted = peft.PeftModel.from_pretrained(adapted, best / "adapter")
        return [model.eval() for model in (base, adapted, auto.from_pretrained(best))]

    def rows(self):
        return [json.loads(line) for line in (self.folder / "valid.jsonl").read_text().splitlines()]

    def check_alike(self, base, adapted, merged, inputs):
        import torch
        with torch.no_grad():
            plain, beside, whole = (model(**inputs).logits for model in (base, adapted, merged))
        self.assertLess((beside - whole).abs().max().item(), CLOSE)
        self.assertGreater((plain - whole).abs().max().item(), 100 * CLOSE, "it has learnt")

    def measure(self, model, best, check=lambda inputs: None):
        """Loss and accuracy of a classifier on the validation rows; `check` sees each one's inputs."""
        import torch
        import transformers
        tokenizer = transformers.AutoTokenizer.from_pretrained(best)
        loss, right, rows = 0.0, 0, self.rows()
        for row in rows:
            inputs = tokenizer(row["text"], truncation=True, max_length=24, return_tensors="pt")
            check(inputs)
            with torch.no_grad():
                logits = model(**inputs).logits
            target = torch.tensor(["abc".index(row["label"])])
            loss += torch.nn.functional.cross_entropy(logits, target).item()
            right += int(logits.argmax(1) == target)
        return loss / len(rows), right / len(rows)

    def check_classifier(self, name, **parameters):
        import transformers
        best, measured = self.train(name, "text-classification", **parameters)
        models = self.open_all(best, transformers.AutoModelForSequenceClassification)
        loss, accuracy = self.measure(models[2], best,
                                      lambda inputs: self.check_alike(*models, inputs))
        self.assertAlmostEqual(loss, measured["loss"], delta=CLOSE)
        self.assertAlmostEqual(accuracy, measured["accuracy"], places=9)
        self.assertEqual(models[2].config.id2label, {0: "a", 1: "b", 2: "c"})

    def measure_language_model(self, model, best, check=lambda inputs: None):
        """The mean loss of the validation rows' tokens; `check` sees each row's inputs."""
        import torch
        import transformers
        # AutoTokenizer would make the family's own kind of vocabulary of it.
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(best / "tokenizer.json"))
        loss, tokens = 0.0, 0
        for row in self.rows():
            inputs = tokenizer(row["text"], truncation=True, max_length=24, return_tensors="pt",
                               return_token_type_ids=False)
            check(inputs)
            predicted = inputs["input_ids"].shape[1] - 1
            with torch.no_grad():
                loss += model(**inputs, labels=inputs["input_ids"]).loss.item() * predicted
            tokens += predicted
        return loss / tokens

    def check_language_model(self, name, **parameters):
        import transformers
        best, measured = self.train(name, "language-modeling", **parameters)
        models = self.open_all(best, transformers.AutoModelForCausalLM)
        loss = self.measure_language_model(models[2], best,
                                           lambda inputs: self.check_alike(*models, inputs))
        self.assertAlmostEqual(loss, measured["loss"], delta=CLOSE)

    def test_encoders(self):
        for name, targets in {"tiny-bert": {}, "distilbert": {"lora.targets": "q_lin,v_lin"},
                              "electra": {}}.items():
            with self.subTest(name):
                self.check_classifier(name, **targets)

    def test_every_linear_layer(self):
        self.check_classifier("tiny-bert", **{"lora.targets": "all-linear", "lora.rank": 2})

    def test_a_classifier_on_a_decoder(self):
        self.check_classifier("llama")

    def test_a_base_of_fewer_bits(self):
        """The rounded model with which adapters learn is not kept: the merged one alone is compared."""
        import transformers
        best, measured = self.train("tiny-bert", "text-classification", **{"lora.base": "nf4"})
        merged = transformers.AutoModelForSequenceClassification.from_pretrained(best).eval()
        loss, _ = self.measure(merged, best)
        self.assertAlmostEqual(loss, measured["loss"], delta=CLOSE)
        for name in ("gpt2-lm", "qwen2-lm"):
            best, measured = self.train(name, "language-modeling", **{"lora.base": "nf4"})
            merged = transformers.AutoModelForCausalLM.from_pretrained(best).eval()
            self.assertAlmostEqual(self.measure_language_model(merged, best), measured["loss"],
                                   delta=CLOSE)

    def test_language_models(self):
        for name in ("gpt2-lm", "qwen2-lm"):
            with self.subTest(name):
                self.check_language_model(name)


if __name__ == "__main__":
    unittest.main()
