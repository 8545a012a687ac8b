#!/usr/bin/env python3
"""Adds to wanted_calls.txt what a build of torch wants of CUDA's libraries.

usage: collect_calls.py TORCH...    folders of builds of torch: those of its __init__.py
       collect_calls.py --check TORCH...   changes nothing, and exits with 1 where a call is missing

wanted_calls.txt has a line for each call: the library, the name, and the major versions of CUDA for which
a build of torch wants it. It is the union of torch 2.4 to 2.13.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python" / "dryrun"))

from hpo_dryrun import stand_ins, torch_build  # pylint: disable=wrong-import-position

CALLS = HERE / "wanted_calls.txt"


def read():
    """{(library, call): major versions of CUDA} of wanted_calls.txt."""
    calls = {}
    for line in CALLS.read_text(encoding="utf-8").splitlines() if CALLS.exists() else []:
        library, name, *majors = line.split()
        calls[library, name] = {int(major) for major in majors}
    return calls


def main():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("torch", type=pathlib.Path, nargs="+")
    given = parser.parse_args()
    calls, added = read(), []
    for folder in given.torch:
        build = torch_build.of_folder(folder)
        for call in sorted(stand_ins.wanted_by(build)):
            if build.cuda[0] not in calls.setdefault(call, set()):
                calls[call].add(build.cuda[0])
                added.append(call)
                print(f"torch {build.version}: {call[0]} {call[1]}")
    if given.check:
        return 1 if added else 0
    CALLS.write_text("".join(f"{library} {name} {' '.join(map(str, sorted(majors)))}\n"
                             for (library, name), majors in sorted(calls.items())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
