"""The pictures of the README and the draw of paragraphs for a reader's test: the scripts that make them."""

import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from harness import BIN, SOURCE

PROGRESS = "quickstart {}/2 | best - | 1 running"
MET = "trial 0 met an out-of-memory error: goes on with batch 32 = 3 x 9 + 5 in place of 32 = 1 x 32"


def script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(SOURCE / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def texts(svg):
    """The texts of a picture; whatever is no XML raises."""
    return [element.text for element in xml.etree.ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


class Pictures(unittest.TestCase):
    def test_the_screen_has_what_a_terminal_shows_at_the_end(self):
        screen = script("pictures").Screen(10)
        screen.feed("draft\r\x1b[Kdone\r\n\x1b[1;32mgood\x1b[0m\r\n12345678901\r\n")
        self.assertEqual(["".join(character for character, _ in line) for line in screen.lines],
                         ["done", "good", "1234567890", "1", ""])
        self.assertEqual(screen.lines[1][0][1], ("#8ccf7e", True))

    def test_both_are_drawn_from_what_the_programs_print(self):
        recording = [["scripts/quickstart", f"\r\x1b[K{PROGRESS.format(0)}\r\x1b[K{MET}\r\n\r\x1b[K{PROGRESS.format(1)}"],
                     ["hpo best", "best trial of <a&b>: #1\r\n  train.lr=5e-05\r\n"]]
        with tempfile.TemporaryDirectory(prefix="hpo-test-pictures-") as folder:
            kept = pathlib.Path(folder, "recording.json")
            kept.write_text(json.dumps(recording))
            done = subprocess.run([SOURCE / "scripts" / "pictures", "--bin", BIN, "--out", folder, "--recording", kept],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            study = texts(pathlib.Path(folder, "study.svg").read_text())
            frontier = texts(pathlib.Path(folder, "frontier.svg").read_text())
        self.assertEqual(study, ["$", "scripts/quickstart", MET, "…", "$", "hpo best", "best trial of <a&b>: #1",
                                 "train.lr=5e-05"])
        fit = subprocess.run([BIN / "hpo", "memory", "fit", "--model", "bert-large-uncased", "--card", "24GiB",
                              "--lengths", "512", "--output", "json"], capture_output=True, text=True, check=True)
        self.assertIn(f"24 GiB: {json.loads(fit.stdout)['cells'][0]['micro_batch']}", frontier)

    def test_those_of_the_readme_are_there(self):
        for name in ("study", "frontier"):
            self.assertGreater(len(texts((SOURCE / "docs" / "pictures" / f"{name}.svg").read_text())), 10)


class Paragraphs(unittest.TestCase):
    def test_prose_lists_and_tables_are_paragraphs_and_code_is_not(self):
        page = ("# Title\nA first paragraph of some words that\ncontinues on the next line.\n```sh\nhpo run this is code and "
                "no prose at all\n```\n- An entry of a list with enough words to count.\n- Too short.\n\n| key | meaning |\n"
                "|---|---|\n| `a` | a cell with at least eight words in its row |\n| `names and more names of code` | few |\n")
        self.assertEqual([(line, heading, text[:5]) for line, heading, text in script("draw_paragraphs").paragraphs(page)],
                         [(2, "Title", "A fir"), (7, "Title", "- An "), (12, "Title, columns | key | meaning |", "| `a`")])

    def test_the_seed_alone_decides(self):
        module = script("draw_paragraphs")
        pages = {name: (SOURCE / name).read_text() for name in module.PAGES}
        drawn = {seed: module.draw(pages, seed, 10) for seed in ("a", "b")}
        self.assertEqual(drawn["a"], module.draw(pages, "a", 10))
        self.assertNotEqual(drawn["a"], drawn["b"])
        self.assertEqual(len(set(drawn["a"])), 10)


if __name__ == "__main__":
    unittest.main()
