"""Libraries are read as readelf reads them, and the one that is written loads and calls its handler."""

import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

from hpo_dryrun import elf


def of_readelf(path):
    """(wanted, defined) with versions, by readelf."""
    done = subprocess.run(["readelf", "--dyn-syms", "-W", path], capture_output=True, text=True, check=True)
    wanted, defined = {}, {}
    for line in done.stdout.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[0] != "Num:":
            name, _, version = fields[7].partition("@")
            if fields[6] == "UND":
                wanted[name] = version.strip("@")
            else:
                defined[name] = ""
    return wanted, defined


def a_library():
    extension = sysconfig.get_config_var("EXT_SUFFIX")
    modules = pathlib.Path(sysconfig.get_path("stdlib"), "lib-dynload")
    return sorted(modules.glob(f"*{extension}"), key=lambda path: path.stat().st_size)[-1]


def test_symbols_are_those_that_readelf_finds():
    wanted, defined = of_readelf(a_library())
    found = elf.symbols(a_library())
    assert found.wanted == wanted and len(wanted) > 10
    assert set(found.defined) == set(defined)
    assert any(version.startswith("GLIBC_") for version in found.wanted.values())


def test_names_are_those_of_symbols_and_of_libraries():
    found = elf.names(a_library())
    wanted, _ = of_readelf(a_library())
    assert all(name.encode("ascii") + b"\0" in found for name in wanted) and b"libc.so." in found


def test_what_is_no_library_is_rejected(tmp_path):
    text = tmp_path / "text"
    text.write_text("not a library, but longer than a header " * 4)
    for read in (elf.symbols, elf.names):
        with pytest.raises(elf.NotElf, match="64-bit ELF"):
            read(text)


HANDLER = """
#include <stdio.h>
#include <stdlib.h>
void handler(const char* name) { printf("missing %s\\n", name); fflush(stdout); exit(7); }
"""
PROGRAM = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
getattr(ctypes.CDLL(sys.argv[2]), sys.argv[3])()
"""


@pytest.mark.parametrize("count", [1, 3, 900])
def test_a_stub_calls_the_handler_with_its_name(tmp_path, count):
    names = [f"cudaCallOfTheFuture_v{i}" for i in range(count)]
    source, handler, stubs = tmp_path / "h.c", tmp_path / "handler.so", tmp_path / "stubs.so"
    source.write_text(HANDLER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", handler, source], check=True)
    stubs.write_bytes(elf.stub_library(names, "handler", "libstubs.so"))
    for name in {names[0], names[-1], names[count // 2]}:
        done = subprocess.run([sys.executable, "-c", PROGRAM, handler, stubs, name], capture_output=True, text=True,
                              check=False)
        assert (done.returncode, done.stdout) == (7, f"missing {name}\n"), done.stderr


def test_a_stub_answers_a_name_that_is_wanted_in_another_librarys_version(tmp_path):
    """As torch's libraries want their calls: cudaMalloc@libcudart.so.13."""
    (tmp_path / "h.c").write_text(HANDLER)
    (tmp_path / "map").write_text("libreal.so.1 { global: old; future; local: *; };")
    (tmp_path / "real.c").write_text("int old(void) { return 0; } int future(void) { return 0; }")
    (tmp_path / "user.c").write_text("int old(void); int future(void); int main(void) { return old() + future(); }")

    def cc(*words):
        subprocess.run(["cc", *words], cwd=tmp_path, check=True)

    real = ["-shared", "-fPIC", "-o", "libreal.so.1", "real.c", "-Wl,-soname,libreal.so.1", "-Wl,--version-script=map"]
    cc("-shared", "-fPIC", "-o", "handler.so", "h.c")
    cc(*real)
    cc("-o", "user", "user.c", "libreal.so.1")
    assert elf.symbols(tmp_path / "user").wanted["future"] == "libreal.so.1"
    # An older library of that name, without the call.
    (tmp_path / "real.c").write_text("int old(void) { return 0; }")
    (tmp_path / "map").write_text("libreal.so.1 { global: old; local: *; };")
    cc(*real)
    (tmp_path / "stubs.so").write_bytes(elf.stub_library(["future"], "handler", "libstubs.so"))
    preload = f"{tmp_path}/handler.so:{tmp_path}/libreal.so.1:{tmp_path}/stubs.so"
    done = subprocess.run([tmp_path / "user"], env={"LD_PRELOAD": preload, "LD_BIND_NOW": "1"}, capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "missing future\n"), done.stderr
    assert re.fullmatch(r"libstubs\.so", subprocess.run(
        f"readelf -dW {tmp_path}/stubs.so | sed -n 's/.*soname: .\\(.*\\)]/\\1/p'", shell=True, capture_output=True,
        text=True, check=True).stdout.strip())
