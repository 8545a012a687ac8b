"""Stand-ins of Python packages that cannot be installed everywhere (stand_in_modules): --stand-in NAME.

A folder for each, with modules that allocate what the package's modules allocate. The launcher names the folders
(HPO_DRY_RUN_MODULES); the hook puts them last in the program's path.
"""

import os
import pathlib
import re
import sys

VARIABLE = "HPO_DRY_RUN_MODULES"
# What a program says where the package is not installed.
_MISSES = {"flash-attn": re.compile(r"No module named 'flash_attn['.]|FlashAttention2 .*installed")}


def folders():
    """{name: folder}"""
    root = pathlib.Path(__file__).resolve().parent / "stand_in_modules"
    return {name: root / name for name in _MISSES}


def hint(error):
    """What to do where `error` says that such a package is not installed; else empty."""
    name = next((name for name, misses in _MISSES.items() if misses.search(error)), None)
    return f"; --stand-in {name} takes the place of {name}, where that cannot be installed" if name else ""


def imported():
    """Inside the program: names of the packages whose stand-ins it imported."""
    named = [folder for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())] if named else []
    return [os.path.basename(folder) for folder in named if any(file.startswith(folder + os.sep) for file in files)]
