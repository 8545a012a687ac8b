"""The sources' numbers in docs/memory.md are what `hpo memory` answers."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import BIN, DEADLINE_S, SOURCE

SCRIPT = SOURCE / "scripts" / "reference" / "memory_sources"


class MemorySources(unittest.TestCase):
    def check(self, script):
        return subprocess.run([str(script), "--hpo", str(BIN / "hpo"), "--check"],
                              capture_output=True, text=True, timeout=4 * DEADLINE_S, check=False)

    def test_the_page_is_up_to_date(self):
        done = self.check(SCRIPT)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_wrong_figure_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "scripts" / "reference" / "memory_sources"
            copy.parent.mkdir(parents=True)
            shutil.copy(SCRIPT, copy)
            page = pathlib.Path(folder) / "docs" / "memory.md"
            page.parent.mkdir()
            text = (SOURCE / "docs" / "memory.md").read_text(encoding="utf-8")
            self.assertIn("| 546 |", text)
            page.write_text(text.replace("| 546 |", "| 547 |"), encoding="utf-8")
            done = self.check(copy)
            self.assertEqual(done.returncode, 1)
            self.assertIn("547", done.stderr)


if __name__ == "__main__":
    unittest.main()
