#!/usr/bin/env python3
"""Writes what the emulated card takes from the torch it is built for.

usage: make_libraries.py OUT SOURCE...                  known_calls.inc, driver_entries.inc, and an
                                                        empty torch_capabilities.inc
       make_libraries.py OUT SOURCE... --torch TORCH    the same for torch's libraries in TORCH, and
                                                        for each library that they are linked with
                                                        LIBRARY.cc and LIBRARY.map

LIBRARY.cc exports every call that torch's libraries want of that library (readelf): those in its
table (calls/) do what their row says, all others end the program with their name. They are weak:
what a source here defines takes their place. LIBRARY.map gives them the version that torch asks for.
"""

import argparse
import mmap
import pathlib
import re
import subprocess
import sys

import host_calls

READERS = ["libc10_cuda.so", "libtorch_cuda.so", "libtorch_nvshmem.so", "libcaffe2_nvrtc.so",
           "libtorch_cuda_linalg.so", "libtorch_python.so"]
LIBRARIES = ["libcudart.so.13", "libcusparse.so.12", "libcufft.so.12", "libcufile.so.0",
             "libcusparseLt.so.0", "libnccl.so.2", "libcurand.so.10", "libcublas.so.13",
             "libcublasLt.so.13", "libcudnn.so.9", "libcusolver.so.12", "libnvrtc.so.13",
             "libcuda.so.1", "libnvshmem_host.so.3"]
# Whose a call is where torch asks for no version, by the beginning of its name; the first counts.
OWNERS = [("cusparseLt", "libcusparseLt.so.0"), ("nccl", "libnccl.so.2"),
          ("pnccl", "libnccl.so.2"), ("nvshmem", "libnvshmem_host.so.3"),
          ("cuFile", "libcufile.so.0"), ("cufile", "libcufile.so.0")]
OTHER_VERSIONS = {"NVSHMEM": "libnvshmem_host.so.3"}
DRIVER = "libcuda.so.1"
# Calls of the driver that programs look up in libcuda and torch does not ask for: not emulated.
LOOKED_UP = ["cuCtxCreate_v2", "cuCtxDestroy_v2", "cuLibraryLoadData", "cuModuleGetGlobal_v2",
             "cuModuleLoadFatBinary", "cuOccupancyMaxActiveClusters", "cuTensorMapEncodeIm2col"]
DRIVER_CALL = re.compile(r"HPO_DRIVER_CALL\((cu\w+)\)")
WRITTEN = re.compile(r'(?:HPO_[A-Z]+_CALL\(|CountCall\(")(\w+)')


def wanted_of(path):
    """(call, version) of all that a library wants of others."""
    done = subprocess.run(["readelf", "--dyn-syms", "-W", path], capture_output=True, text=True,
                          check=True)
    for line in done.stdout.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[6] == "UND" and fields[4] in ("GLOBAL", "WEAK"):
            name, _, version = fields[7].partition("@")
            yield name, version.strip("@")


def owner_of(name, version):
    if version:
        return version if version in LIBRARIES else OTHER_VERSIONS.get(version)
    for prefix, library in OWNERS:
        if name.startswith(prefix):
            return library
    return DRIVER if re.match(r"cu[A-Z]", name) else None


def wanted_by_library(torch):
    wanted = {library: {} for library in LIBRARIES}
    for reader in READERS:
        if not (torch / reader).exists():
            continue
        for name, version in wanted_of(torch / reader):
            library = owner_of(name, version)
            if library is not None:
                wanted[library][name] = version
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
    # A call that is wanted without a version takes the library's.
    default = max(calls.values(), default="")
    by_version = {}
    for name, version in calls.items():
        by_version.setdefault(version or default, []).append(name)
    blocks = []
    for version in sorted(by_version, reverse=True):
        names = " ".join(f"{name};" for name in sorted(by_version[version]))
        blocks.append(f"{version} {{ global: {names}{'' if blocks else ' local: *;'} }};".strip())
    write(out / f"{library}.map", "\n".join(blocks or ["{ local: *; };"]) + "\n")


def capabilities(torch):
    """What torch's build says of itself ("NVCC architecture flags" of its configuration)."""
    with open(torch / "libtorch_cuda.so", "rb") as file:
        text = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        found = re.search(rb"(?:-gencode;arch=compute_\d+a?,code=\w+;?)+", text)
        if found is None:
            sys.exit("make_libraries.py: torch names no architectures of its kernels")
        return sorted({int(number) for number in re.findall(rb"code=sm_(\d+)", found.group())})


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("sources", type=pathlib.Path, nargs="+")
    parser.add_argument("--torch", type=pathlib.Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    calls, driver_calls = set(), set(LOOKED_UP)
    for source in given.sources:
        driver_calls.update(DRIVER_CALL.findall(source.read_text()))
        calls.update(name for name in WRITTEN.findall(source.read_text()) if name != "name")
    numbers = []
    if given.torch is not None:
        for library, wanted in wanted_by_library(given.torch).items():
            if library == DRIVER:
                wanted.update({call: "" for call in driver_calls if call not in wanted})
            calls.update(write_library(given.out, library, wanted))
        numbers = capabilities(given.torch)
    write(given.out / "known_calls.inc", "".join(f'"{name}",\n' for name in sorted(calls)))
    write(given.out / "driver_entries.inc",
          "".join(f"HPO_DRIVER_ENTRY({name})\n" for name in sorted(driver_calls & calls)))
    write(given.out / "torch_capabilities.inc", "".join(f"{number},\n" for number in numbers))


if __name__ == "__main__":
    main()
