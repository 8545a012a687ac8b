#!/usr/bin/env python3
"""Writes the calls of CUDA's libraries that torch wants and the sources here do not define.

usage: make_libraries.py OUT SOURCE... [--cuda MAJOR...] [--torch TORCH]

OUT/LIBRARY.cc exports every call of wanted_calls.txt of that library, for each library of CUDA MAJOR:
those in its table (calls/) do what their row says, all others end the program with their name. They
are weak: what a source here defines takes their place. OUT/LIBRARY.map gives them the version that
torch asks for. OUT/known_calls.inc names the calls that can fail, OUT/driver_entries.inc
the driver's that programs may look up; OUT/torch_capabilities.inc, of the
torch whose libraries are in TORCH, the compute capabilities that it has kernels for.
"""

import argparse
import pathlib
import re
import sys

import collect_calls
import host_calls
from collect_calls import stand_ins, torch_build

# Libraries whose calls have another version than the name of the library, or none.
VERSIONS = {"cuda": "", "cufile": "", "cusparseLt": "", "nccl": "", "nvshmem_host": "NVSHMEM"}
# Calls of the driver that programs look up in libcuda and torch does not ask for: not emulated.
LOOKED_UP = ["cuCtxCreate_v2", "cuCtxDestroy_v2", "cuLibraryLoadData", "cuModuleGetGlobal_v2",
             "cuModuleLoadFatBinary", "cuOccupancyMaxActiveClusters", "cuTensorMapEncodeIm2col"]
DRIVER_CALL = re.compile(r"HPO_DRIVER_CALL\((cu\w+)\)")
WRITTEN = re.compile(r'(?:HPO_[A-Z]+_CALL\(|CountCall\(")(\w+)')


def wanted_by_library(majors):
    """{library: {call}} by the libraries' names, such as libcudart.so.13; empty for one that is only loaded."""
    names = {stand_ins.soname(library, major) for library in stand_ins.SONAMES for major in majors}
    wanted = {name: set() for name in names if name is not None}
    for (library, call), theirs in collect_calls.read().items():
        for major in theirs & set(majors):
            wanted[stand_ins.soname(library, major)].add(call)
    return wanted


def write(path, text):
    """Leaves a file alone that says so already: nothing is built again then."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_library(out, library, calls):
    """The calls of the library that are in its table."""
    rows = host_calls.read(host_calls.table_of(library))
    lines = ["#include <algorithm>", '#include "emulator/library_call.h"',
             "using namespace hpo::emulator;", 'extern "C" {']
    known = set()
    for name in sorted(calls):
        row = host_calls.row_of(rows, name)
        if row is None:
            lines.append(f'__attribute__((weak)) int {name}() {{ hpoEmulatedMissing("{name}"); }}')
        else:
            known.add(name)
            lines.append(row.definition(name))
    lines.append("}")
    write(out / f"{library}.cc", "\n".join(lines) + "\n")
    write_map(out, library, calls)
    return known


def write_map(out, library, calls):
    version = VERSIONS.get(library.partition(".")[0].removeprefix("lib"), library)
    exported = f"global: {' '.join(f'{name};' for name in sorted(calls))} " if calls else ""
    write(out / f"{library}.map", f"{version} {{ {exported}local: *; }};\n".lstrip())


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("sources", type=pathlib.Path, nargs="+")
    parser.add_argument("--cuda", type=int, nargs="+", default=[])
    parser.add_argument("--torch", type=pathlib.Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    calls, driver_calls = set(), set(LOOKED_UP)
    for source in given.sources:
        driver_calls.update(DRIVER_CALL.findall(source.read_text()))
        calls.update(name for name in WRITTEN.findall(source.read_text()) if name != "name")
    for library, wanted in wanted_by_library(given.cuda).items():
        if library == stand_ins.soname("cuda", 13):
            wanted |= driver_calls
        calls.update(write_library(given.out, library, wanted))
    numbers = torch_build.capabilities_of(given.torch / "libtorch_cuda.so") if given.torch is not None else []
    write(given.out / "known_calls.inc", "".join(f'"{name}",\n' for name in sorted(calls)))
    write(given.out / "driver_entries.inc",
          "".join(f"HPO_DRIVER_ENTRY({name})\n" for name in sorted(driver_calls & calls)))
    write(given.out / "torch_capabilities.inc", "".join(f"{number},\n" for number in numbers))


if __name__ == "__main__":
    main()
