"""The files in docs/study-file.md are studies, and the defaults that it states are those that hold."""

import re
import unittest

from harness import SOURCE, Deployment

PAGE = SOURCE / "docs/study-file.md"
NAME, OBJECTIVE = "name: page\n", "objective: {metric: macro_f1, direction: maximize}\n"
TRAINER, PARAMETERS = "trainer: {task: custom}\n", """\
parameters:
  model.name: {choices: [bert-base-uncased, bert-large-uncased]}
  tok.max_length: {int: [64, 512], step: 32}
  train.batch_size: {choices: [8, 12, 16, 32]}
"""


def blocks(page=PAGE):
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class StudyFilePage(Deployment):
    def setUp(self):
        super().setUp()
        self.start_server()

    def write(self, text):
        path = self.folder / "page.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def test_the_defaults_written_out_are_the_small_study(self):
        """A study that has trials takes no file that differs, apart from its budget."""
        small, written_out = [block for block in blocks() if block.startswith("name: ")]
        self.hpo("study", "create", self.write(small))
        self.hpo("enqueue", "train.lr=3e-5", "--study", "sentiment")
        before = self.json("study", "show", "sentiment")
        self.hpo("study", "create", self.write(written_out))
        self.assertEqual(self.json("study", "show", "sentiment"), before)
        other = written_out.replace("startup_trials: 10", "startup_trials: 11")
        self.assertIn("startup_trials", self.hpo("study", "create", self.write(other), status=4))

    def test_every_other_block_is_part_of_a_study(self):
        parts = [block for block in blocks() if not block.startswith("name: ")]
        self.assertEqual(len(parts), 3)
        for part in parts:
            with self.subTest(part):
                rest = "" if part.startswith("parameters:") else PARAMETERS
                self.hpo("study", "validate", self.write(NAME + OBJECTIVE + TRAINER + rest + part))

    def test_studies_of_other_pages_are_valid(self):
        for page in (SOURCE / "README.md", SOURCE / "docs/tutorial.md"):
            with self.subTest(page.name):
                (study,) = blocks(page)
                self.hpo("study", "validate", self.write(study))


if __name__ == "__main__":
    unittest.main()
