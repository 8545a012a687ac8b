"""The Python in which a benchmark's peers run: a virtual environment with pinned packages."""

import importlib.util
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "hpo"


def installed(name):
    """Its folder in the cache, with the packages of bench/peers/<name>.txt, made again when they change."""
    requirements = HERE / "peers" / f"{name}.txt"
    folder = CACHE / "bench-python" / name
    stamp = folder / "requirements.txt"
    wanted = requirements.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return folder
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    subprocess.run(
        [folder / "bin/pip", "install", "--quiet", "--requirement", requirements],
        check=True,
        stdout=sys.stderr,
    )
    stamp.write_text(wanted, encoding="utf-8")
    return folder


def need(name, modules):
    """Restarts this program in that environment where this Python lacks one of `modules`."""
    if all(importlib.util.find_spec(module) for module in modules):
        return
    python = installed(name) / "bin/python"
    os.execv(python, [str(python)] + sys.argv)
