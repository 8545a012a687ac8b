"""The figures in docs/memory-cases.md are what `hpo memory` answers."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import BIN, DEADLINE_S, SOURCE

SCRIPT = pathlib.Path("scripts/reference/memory_sources")
PAGE = pathlib.Path("docs/memory-cases.md")
RIGHT, WRONG = "| 546 |", "| 547 |"


class MemorySources(unittest.TestCase):
    def test_a_wrong_figure_is_found_and_no_other_is_there(self):
        """One run for both, as it computes all figures."""
        page = (SOURCE / PAGE).read_text(encoding="utf-8")
        wrong = page.replace(RIGHT, WRONG)
        self.assertNotEqual(page, wrong)
        with tempfile.TemporaryDirectory() as folder:
            for file in (SCRIPT, PAGE):
                (folder / file).parent.mkdir(parents=True)
            shutil.copy(SOURCE / SCRIPT, folder / SCRIPT)
            (folder / PAGE).write_text(wrong, encoding="utf-8")
            done = subprocess.run([folder / SCRIPT, "--hpo", BIN / "hpo", "--check"], capture_output=True,
                                  text=True, timeout=4 * DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        expected = [line for old, new in zip(wrong.splitlines(), page.splitlines()) if old != new
                    for line in (f"- {old}", f"+ {new}")]
        self.assertEqual(done.stderr.splitlines()[1:], expected)


if __name__ == "__main__":
    unittest.main()
