"""docs/python-api.md is what scripts/api_reference writes of the docstrings."""

import inspect
import pathlib
import re
import subprocess
import sys

import hpo

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_page_is_the_docstrings():
    written = subprocess.run([sys.executable, ROOT / "scripts" / "api_reference", "-"], capture_output=True, text=True,
                             check=True).stdout
    assert (ROOT / "docs" / "python-api.md").read_text() == written, "scripts/api_reference writes it"


def test_the_manual_names_everything():
    manual = (ROOT / "docs" / "python.md").read_text()
    names = [name for name in hpo.__all__ if f"hpo.{name}" not in manual]
    keywords = {name for call in (hpo.minimize, hpo.Study.__init__) for name in inspect.signature(call).parameters}
    missing = [name for name in keywords - {"self", "train"} if not re.search(rf"`{name}`|`{name}=", manual)]
    assert (names, missing) == ([], [])
