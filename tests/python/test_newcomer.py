"""What newcomers write first, as the tutorials of Optuna and W&B have it: each program of newcomer/ runs."""

import pathlib
import re
import subprocess
import sys

import pytest

SCRIPTS = sorted(pathlib.Path(__file__).with_name("newcomer").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs(script, tmp_path):
    for module in re.findall(r"^import (numpy|sklearn|matplotlib|optuna|pandas)\b", script.read_text(), re.MULTILINE):
        pytest.importorskip(module)
    if "dataframe" in script.stem:
        pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
