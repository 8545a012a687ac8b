#!/usr/bin/env python3
"""Adds to wanted_calls.txt what a build of torch wants of CUDA's libraries.

usage: collect_calls.py TORCH...    folders of builds of torch: those of its __init__.py
       collect_calls.py --check TORCH...   changes nothing, and exits with 1 where a call is missing

wanted_calls.txt has a line for each call: the library, the name, and the major versions of CUDA for which
a build of torch wants it. It is the union of torch 2.4 to 2.13.
"""

import argparse
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python" / "dryrun"))

from hpo_dryrun import elf, torch_build  # pylint: disable=wrong-import-position

CALLS = HERE / "wanted_calls.txt"
# Whose a call is that is wanted without a version, by the beginning of its name; the first counts.
OWNERS = [("cusparseLt", "cusparseLt"), ("nccl", "nccl"), ("pnccl", "nccl"), ("nvshmem", "nvshmem_host"),
          ("cuFile", "cufile"), ("cufile", "cufile"), ("cu[A-Z]", "cuda")]
# CUDA's libraries, by the version that a symbol of theirs has: libcudart.so.13.
VERSION = re.compile(r"lib(cudart|cublas|cublasLt|cudnn|cufft|cupti|curand|cusolver|cusparse|nvrtc|nvToolsExt)\.so\.\d+")


def owner_of(name, version):
    """The library, as wanted_calls.txt names it, of a call that is wanted in `version`; None for others."""
    known = VERSION.fullmatch(version)
    if known:
        return known.group(1)
    if version:
        return "nvshmem_host" if version == "NVSHMEM" else None
    return next((library for prefix, library in OWNERS if re.match(prefix, name)), None)


def read():
    """{(library, call): major versions of CUDA} of wanted_calls.txt."""
    calls = {}
    for line in CALLS.read_text(encoding="utf-8").splitlines() if CALLS.exists() else []:
        library, name, *majors = line.split()
        calls[library, name] = {int(major) for major in majors}
    return calls


def wanted_by(build):
    """{(library, call)} of a torch_build.TorchBuild."""
    found, own = {}, set()
    for path in sorted(build.libraries.glob("*.so*")):
        symbols = elf.symbols(path)
        found.update(symbols.wanted)
        own |= set(symbols.defined)
    owned = {(owner_of(name, version), name) for name, version in found.items() if name not in own}
    return {(library, name) for library, name in owned if library is not None}


def main():
    parser = argparse.ArgumentParser(usage=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("torch", type=pathlib.Path, nargs="+")
    given = parser.parse_args()
    calls, added = read(), []
    for folder in given.torch:
        build = torch_build.of_folder(folder)
        for call in sorted(wanted_by(build)):
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
