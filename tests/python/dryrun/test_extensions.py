"""Libraries of other packages that want a call of CUDA which no stand-in has."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = """
import ctypes, sys
from hpo_dryrun import extensions
extensions.install("/no/torch")
library = ctypes.CDLL(sys.argv[1])
print(library.known(), flush=True)
library.unknown()
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


def test_a_library_is_loaded_and_the_call_ends_the_program_with_its_name(tmp_path):
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    for folder in ("emulator", "genuine"):
        (tmp_path / folder).mkdir()
    named = ("-Wl,-soname,libcudart.so.13", "-Wl,--version-script=map")
    cc(tmp_path, "-o", "emulator/libcudart.so.13", "stand_in.c", *named)
    cc(tmp_path, "-o", "genuine/libcudart.so.13", "genuine.c", *named)
    cc(tmp_path, "-o", "libuser.so", "user.c", "genuine/libcudart.so.13", "-Wl,-z,now")
    done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path / "libuser.so"], capture_output=True, text=True,
                          check=False, env={"LD_PRELOAD": str(tmp_path / "emulator" / "libcudart.so.13"),
                                            "PYTHONPATH": str(ROOT / "python" / "dryrun")})
    assert (done.returncode, done.stdout) == (3, "7\nmissing cudaOfTheFuture\n"), done.stderr
