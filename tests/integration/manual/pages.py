"""A fresh install by README's own lines, and pages of the manual read by manual_page.py in homes of their own."""

import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import manual_page
from harness import BIN, SOURCE

TINY = SOURCE / "tests" / "golden" / "tiny_models" / "tiny-bert"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"word{chr(97 + a)}{chr(97 + b)}" for a in range(5) for b in range(23)]
PAGES = [path.relative_to(SOURCE) for pattern in ("README.md", "docs/*.md", "python/README.md", "examples/**/README.md")
         for path in sorted(SOURCE.glob(pattern))]
IN_A_NETWORK_OF_ITS_OWN = ["unshare", "--user", "--map-root-user", "--net"]
# Packages of others are on PYTHONPATH.
PIP = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
KEPT = {name: os.environ[name] for name in ("HPO_TORCH_ROOT", "HPO_MANUAL_MINUTES") if name in os.environ}
MANUAL_PAGE = SOURCE / "tests/integration/manual/manual_page.py"
MINE = """\
name: mine
objective: {metric: accuracy, direction: maximize}
trainer: {task: custom}
budget: {trials: 4}
memory: {policy: plan}
parameters:
  train.lr: {float: [1.0e-6, 1.0e-4], log: true}
  train.batch_size: {choices: [8, 16]}
"""
PROGRAM = "import sys\nprint({'accuracy': float(sys.argv[sys.argv.index('--lr') + 1])})\n"


def without_head(weights):
    """The file of a pretrained model: no tensor of a classifier."""
    size, = struct.unpack_from("<Q", weights)
    kept, data = {}, b""
    for name, tensor in json.loads(weights[8:8 + size]).items():
        if not name.startswith(("classifier", "__metadata__")):
            start, end = tensor["data_offsets"]
            kept[name] = {**tensor, "data_offsets": [len(data), len(data) + end - start]}
            data += weights[8 + size + start:8 + size + end]
    header = json.dumps(kept).encode()
    return struct.pack("<Q", len(header)) + header + data


def write_model(folder):
    """Weights for a test under the name of a real model, as a reader has downloaded it."""
    folder.mkdir(parents=True)
    config = json.loads((TINY / "config.json").read_text())
    del config["num_labels"]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(without_head((TINY / "model.safetensors").read_bytes()))
    (folder / "vocab.txt").write_text("\n".join(SPECIAL + WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')


def write_data(folder):
    draw = random.Random(1)
    folder.mkdir()
    for name, rows in (("train.jsonl", 32), ("valid.jsonl", 16)):
        with open(folder / name, "w") as out:
            for i in range(rows):
                out.write(json.dumps({"text": " ".join(draw.sample(WORDS, 8)), "label": ("no", "yes")[i % 2]}) + "\n")


def write_peers(folder):
    """The programs that pip makes of these packages; PYTHONPATH has the packages alone."""
    folder.mkdir()
    for program, module in (("mlflow", "mlflow"), ("tensorboard", "tensorboard.main")):
        if importlib.util.find_spec(program):
            (folder / program).write_text(f'#!/bin/sh\nexec python -m {module} "$@"\n')
            (folder / program).chmod(0o755)


def run(command, folder, **environment):
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("HPO_", "XDG_"))}
    return subprocess.run([str(word) for word in command], cwd=folder, env={**plain, **PIP, **KEPT, **environment},
                          capture_output=True, text=True, timeout=manual_page.COMMAND_S + 40, check=False)


class Manual(unittest.TestCase):
    WITH_TRAINER = False

    @classmethod
    def setUpClass(cls):
        if run([*IN_A_NETWORK_OF_ITS_OWN, "true"], "/").returncode != 0:
            raise unittest.SkipTest(f"{' '.join(IN_A_NETWORK_OF_ITS_OWN)}: not allowed here")
        scratch = tempfile.TemporaryDirectory(prefix="hpo-test-manual-")
        cls.addClassCleanup(scratch.cleanup)
        cls.checkout = pathlib.Path(scratch.name, "checkout")
        cls.checkout.mkdir()
        trainer = ["--trainer"] if cls.WITH_TRAINER else []
        made = run([SOURCE / "scripts" / "wheel", *trainer, "--build", BIN.parent, "--out", cls.checkout / "dist"], "/")
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)
        for name in ("scripts", "examples"):
            shutil.copytree(SOURCE / name, cls.checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        write_peers(cls.checkout / "peers")
        install = [block for block in manual_page.blocks((SOURCE / "README.md").read_text())
                   if "pip install" in block.text][:2 if cls.WITH_TRAINER else 1]
        done = run(["bash", "-ec", "\n".join(block.text for block in install)], cls.checkout)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)

    def read(self, page, card=None, before=(), files=(), models=(), **environment):
        """Reads the page in a new home folder, after some commands, with what the page takes for granted. Returns what the
        commands printed."""
        scratch = tempfile.TemporaryDirectory(prefix="hpo-test-reader-")
        self.addCleanup(scratch.cleanup)
        home = pathlib.Path(scratch.name)
        for name in ("dist", "scripts", "examples"):
            (home / name).symlink_to(self.checkout / name)
        for model in models:
            write_model(home / "models" / model)
        write_data(home / "data")
        for name, text in dict(files).items():
            (home / name).write_text(text)
        path = f"{self.checkout}/env/bin:{self.checkout}/peers:/usr/bin:/bin"
        command = ["env", f"PATH={path}", *IN_A_NETWORK_OF_ITS_OWN, "python", MANUAL_PAGE, SOURCE / page,
                   "--folder", home, *(word for line in before for word in ("--before", line))]
        if self.WITH_TRAINER:  # torch for Python wants the libraries of the emulated card, with a card and without
            cards = [card] if card else ["--cards", "0", "t4"]
            command = [SOURCE / "scripts" / "with_emulated_card", "--build", BIN.parent, *cards, *command]
        done = run(command, home, HOME=home, **environment)
        self.assertEqual(done.returncode, 0, f"{page}\n{done.stdout}{done.stderr}")
        counts = json.loads(done.stdout.splitlines()[-1])
        print(f"{page}: {counts['run']} run, {len(counts['excepted'])} excepted")
        for line in counts["excepted"]:
            print(f"  {line}")
        return done.stdout

    def expect_gain(self, printed, least):
        """The best trial of `hpo run` beats its first one, which took the defaults, by `least`."""
        first = re.search(r"^trial 0 COMPLETED: \S+ ([-+.\de]+)", printed, re.MULTILINE)
        best = re.search(r"^best trial of \S+: #\d+, \S+ ([-+.\de]+)", printed, re.MULTILINE)
        self.assertTrue(first and best, printed)
        self.assertGreaterEqual(float(best[1]), float(first[1]) + least, printed)
