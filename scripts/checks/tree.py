"""The files of the tree and what they include."""

import functools
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PRODUCT = ("common", "memory", "proto", "sampler", "server", "worker", "cli")


@functools.cache
def files():
    """All files that git knows and that are there, relative to the root, sorted."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, cwd=ROOT, check=True).stdout.splitlines()
    return sorted({name for name in listed if (ROOT / name).is_file()})


@functools.cache
def sources(*folders):
    """The C++ files below these top-level folders."""
    return tuple(name for name in files()
                 if name.endswith((".h", ".cc")) and name.split("/")[0] in folders)


@functools.cache
def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


@functools.cache
def code(name):
    """The text without comments and without what stands in quotes; lines stay where they are."""
    def blank(found):
        return "\n" * found.group().count("\n")
    shorn = re.sub(r'R"(\w*)\(.*?\)\1"', blank, text(name), flags=re.DOTALL)
    shorn = re.sub(r"/\*.*?\*/", blank, shorn, flags=re.DOTALL)
    return re.sub(r"//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", "", shorn)


@functools.cache
def includes(name):
    """The files of the tree that a file includes, as (line number, name)."""
    found = []
    for number, line in enumerate(text(name).splitlines(), 1):
        included = re.match(r'#include "([^"]+)"', line)
        if included and (ROOT / included.group(1)).is_file():
            found.append((number, included.group(1)))
    return tuple(found)


def folder(name):
    return name.rpartition("/")[0]
