"""Every command of the manual's pages that train runs as printed, on an emulated card; and those of `hpo --help`."""

import os
import re
import subprocess
import unittest

import manual_page
from harness import BIN, SOURCE
from pages import MINE, PROGRAM, Manual

EXAMPLES = ("examples/hf_trainer/README.md", "examples/torchvision_script/README.md")
TRAINED = ("README.md", "docs/tutorial.md", "docs/workers.md", *EXAMPLES)
# The environment beats the file. The tutorial speaks of trial 12.
SHORT = {"HPO_TRIALS": "14", "HPO_EPOCHS": "1"}


# Each example of `hpo --help` is run once, in that order but for these. A watch ends only while the study is finished.
FIRST = ("hpo study presets", "hpo export optuna", "hpo watch")
LAST = ("hpo study edit", "hpo study create", "hpo study stop", "hpo study resume", "hpo study delete", "hpo study restore", "hpo admin")
NOT_HERE = {"hpo trial stop 12": "that trial has ended", "hpo trial preempt 12": "that trial has ended",
            "hpo trial cancel 12": "that trial has ended", "hpo trial retry 12": "that trial has completed",
            "hpo study importance": "its trials may all have one value", "hpo export mlflow": "takes minutes",
            "hpo memory dry-run": "the wheel hpo-dryrun is not installed",
            "hpo fleet": "there is no cluster", "hpo connect": "the server has no TLS",
            "hpo admin token": "the server has no TLS", "hpo worker drain slurm": "that worker is not there"}


def examples(*words):
    """Those of a command's help and of its subcommands', without the words next to them."""
    text = subprocess.run([BIN / words[0], *words[1:], "--help"], capture_output=True, text=True, check=True).stdout
    text = text.replace("\\\n   ", "")  # a line that goes on
    found = [re.split(r"\s{3,}", line.strip())[0] for line in text.splitlines() if line.startswith("  hpo ")]
    _, _, below = text.partition("Subcommands:\n")
    for line in below.partition("\n\n")[0].splitlines():
        if re.match(r"  \S", line):
            found += examples(*words, line.split()[0])
    return list(dict.fromkeys(found))


def help_page():
    """The examples of `hpo --help` as a page of the manual, and those left out with the reason."""
    left = {line: why for line in examples("hpo") for start, why in NOT_HERE.items() if line.startswith(start)}
    rank = [line for line in examples("hpo") if line not in left]
    rank.sort(key=lambda line: (-line.startswith(FIRST), next((i for i, s in enumerate(LAST, 1) if line.startswith(s)), 0)))
    restore = [line for line in rank if line.startswith("hpo admin restore")]
    text = "\n".join(line for line in rank if line not in restore)
    return f"```sh\n{text}\n```\n<!-- ended: hpo-server -->\n```sh\n" + "\n".join(restore) + "\n```\n", left


class TrainedPages(Manual):
    WITH_TRAINER = True

    def test_readme(self):
        self.read("README.md", card="a100", models=["bert-base-uncased"], **SHORT)

    def test_tutorial(self):
        self.read("docs/tutorial.md", card="a100", models=["all-minilm-l6-v2"], **SHORT)

    def test_workers(self):
        readme = manual_page.blocks((SOURCE / "README.md").read_text())
        study, = (block.text for block in readme if block.kind == "yaml")
        self.read("docs/workers.md", card="a100", models=["bert-base-uncased"],
                  before=["hpo-server --study ./sentiment.yaml --study ./mine.yaml"],
                  files={"sentiment.yaml": study, "mine.yaml": MINE, "train.py": PROGRAM})

    def test_help(self):
        text, left = help_page()
        page = self.checkout / "help.md"
        page.write_text(text)
        before = ["hpo-server --study criteria --http 127.0.0.1:8080", "cp data/train.jsonl .",
                  "hpo-worker --device cpu --memory-limit 2GiB --models ~/models --data ~/data",
                  "hpo watch --until-finished"]
        self.read(page, models=["bert-base-uncased", "bert-large-uncased", "roberta-large"], before=before,
                  files={"study.yaml": MINE, "train.py": PROGRAM}, **SHORT)
        for line, why in left.items():
            print(f"  {line} ({why})")

    def test_examples(self):
        short = {} if "HPO_MANUAL_MINUTES" in os.environ else {"HPO_TRIALS": "1", "HPO_EPOCHS": "1"}
        for page in EXAMPLES:
            with self.subTest(page):
                printed = self.read(page, **short)
                if not short:
                    self.expect_gain(printed, 0.05)


if __name__ == "__main__":
    unittest.main()
