"""The package is typed: pyright, as python/pyrightconfig.json has it, finds nothing."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"


@pytest.mark.skipif(not importlib.util.find_spec("pyright") or not shutil.which("node"),
                    reason="pyright or Node.js is not installed: scripts/bootstrap --tests")
def test_pyright():
    done = subprocess.run([sys.executable, "-m", "pyright", "--warnings"], cwd=PACKAGE, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
