"""Every command of the manual runs as printed; those of pages that train: test_manual_trainer.py."""

import importlib.util
import os
import unittest

from pages import MINE, PAGES, PROGRAM, Manual
from test_manual_trainer import TRAINED

EXAMPLES = ("examples/argparse_script/README.md", "examples/sklearn_trainer/README.md")


class Pages(Manual):
    def test_pages_that_take_nothing_for_granted(self):
        for page in PAGES:
            if str(page) not in (*TRAINED, *EXAMPLES, "docs/other-tools.md"):
                with self.subTest(page):
                    self.read(page)

    def test_argparse_script(self):
        self.expect_gain(self.read("examples/argparse_script/README.md"), 0.05)

    def test_sklearn(self):
        self.read("examples/sklearn_trainer/README.md", HPO_TRIALS="3")

    def test_other_tools(self):
        with_mlflow = "HPO_MANUAL_MINUTES" in os.environ and importlib.util.find_spec("mlflow")
        mlflow = ["mlflow server --port 5000 --workers 1"] if with_mlflow else []
        study = ["hpo-server --study ./mine.yaml",
                 "hpo-worker --device cpu --memory-limit 1GiB --trainer 'python train.py --lr {train.lr}'",
                 "hpo watch --until-finished"]
        self.read("docs/other-tools.md", before=mlflow + study, files={"mine.yaml": MINE, "train.py": PROGRAM})


if __name__ == "__main__":
    unittest.main()
