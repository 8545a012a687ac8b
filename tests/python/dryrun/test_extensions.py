"""Libraries that a program loads: those of other packages, with a call that no stand-in has, and NVIDIA's."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = """
import ctypes, sys
from hpo_dryrun import extensions
extensions.install("/no/torch")
library = ctypes.CDLL(sys.argv[1])
print(library.known(), flush=True)
library.unknown()
"""
LOADS = """
import ctypes, sys
from hpo_dryrun import extensions
extensions.install("/no/torch")
try:
    ctypes.CDLL(sys.argv[1])
except OSError as error:
    print(error)
print(ctypes.CDLL("libcudart.so.13").cudaKnown())
"""
SOURCES = {
    "stand_in.c": """
#include <stdio.h>
#include <stdlib.h>
int cudaKnown(void) { return 7; }
void hpoEmulatedMissing(const char* name) { printf("missing %s\\n", name); fflush(stdout); exit(3); }
""",
    "genuine.c": "int cudaKnown(void) { return 1; } int cudaOfTheFuture(void) { return 1; }",
    "user.c": """
int cudaKnown(void);
int cudaOfTheFuture(void);
int known(void) { return cudaKnown(); }
int unknown(void) { return cudaOfTheFuture(); }
""",
    "map": "libcudart.so.13 { global: cuda*; hpoEmulatedMissing; local: *; };"}


def cc(folder, *words):
    subprocess.run(["cc", "-shared", "-fPIC", *words], cwd=folder, check=True)


def run(folder, program, *arguments):
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False,
                          env={"LD_PRELOAD": str(folder / "emulator" / "libcudart.so.13"),
                               "PYTHONPATH": str(ROOT / "python" / "dryrun")})


@pytest.fixture(name="folder", scope="module")
def a_stand_in_a_genuine_library_and_one_that_uses_it(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    named = ("-Wl,-soname,libcudart.so.13", "-Wl,--version-script=map")
    for place, source in (("emulator", "stand_in.c"), ("genuine", "genuine.c")):
        (folder / place).mkdir()
        cc(folder, "-o", f"{place}/libcudart.so.13", source, *named)
    cc(folder, "-o", "libuser.so", "user.c", "genuine/libcudart.so.13", "-Wl,-z,now")
    return folder


def test_a_library_is_loaded_and_the_call_ends_the_program_with_its_name(folder):
    done = run(folder, PROGRAM, folder / "libuser.so")
    assert (done.returncode, done.stdout) == (3, "7\nmissing cudaOfTheFuture\n"), done.stderr


def test_a_library_of_nvidias_is_not_loaded(folder):
    done = run(folder, LOADS, folder / "genuine" / "libcudart.so.13")
    assert (done.returncode, done.stdout) == (0, f"{folder}/genuine/libcudart.so.13: a dry run does not load "
                                                 "libraries of NVIDIA's\n7\n"), done.stderr
