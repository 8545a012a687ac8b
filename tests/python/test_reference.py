"""docs/python-api.md is what scripts/api_reference writes of the docstrings."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_is_the_docstrings():
    written = subprocess.run([sys.executable, ROOT / "scripts" / "api_reference", "-"], capture_output=True, text=True,
                             check=True).stdout
    assert (ROOT / "docs" / "python-api.md").read_text() == written, "scripts/api_reference writes it anew"
