"""The wheel hpo-dryrun, made of the build under test: installed into a folder, it runs a program on a machine that
has NVIDIA's packages and its driver. Those are libraries here which end the process that loads them."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
GENUINE = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) {
  Dl_info here;
  dladdr((void*)loaded, &here);
  fprintf(stderr, "%s was loaded\\n", here.dli_fname);
  abort();
}
"""
PROGRAM = """
import ctypes, subprocess, torch
assert ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2() == 0
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
assert "A100" in subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True,
                                check=True).stdout
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
while True:
    model(torch.randn(512, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def run(*command, **variables):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=200,
                          env={**os.environ, **{name: str(value) for name, value in variables.items()}})
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(name="wheel", scope="module")
def made_of_the_build(tmp_path_factory):
    if "HPO_BIN_DIR" not in os.environ:
        pytest.skip("HPO_BIN_DIR names no build")
    build = pathlib.Path(os.environ["HPO_BIN_DIR"]).parent
    if not (build / "emulator" / "libcudart.so.12").exists():
        pytest.skip(f"no emulated GPU of CUDA 12 and CUDA 13 in {build}")
    folder = tmp_path_factory.mktemp("wheel")
    run(ROOT / "scripts" / "wheel", "--dry-run", "--build", build, "--out", folder)
    (wheel,) = folder.glob("hpo_dryrun-*.whl")
    return wheel


@pytest.fixture(name="installed", scope="module")
def installed_without_a_network(wheel):
    site = wheel.parent / "site"
    run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps",
        "--target", site, wheel)
    return site


def test_it_says_what_it_is(wheel):
    assert re.fullmatch(r"hpo_dryrun-[0-9.]+-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (metadata,) = (packed.read(name).decode() for name in names
                       if re.fullmatch(r"hpo_dryrun-[^/]*/METADATA", name))
    for text in ("Name: hpo-dryrun\n", "License-Expression: Apache-2.0\n", "contains nothing of NVIDIA's", "(emulated)"):
        assert text in metadata
    assert "hpo_dryrun/lib/libcudart.so.12" in names and "hpo_dryrun/hook/sitecustomize.py" in names
    assert any(name.endswith("licenses/LICENSE.txt") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".a")]


def with_nvidias_packages(torch, folder, genuine):
    """A folder with torch, all of it links, and `genuine` under every name in the folders that torch looks into."""
    shutil.copytree(torch, folder / "torch", copy_function=os.symlink,
                    ignore=shutil.ignore_patterns("include", "__pycache__", "test", "testing"))
    shutil.copytree(torch / "testing", folder / "torch" / "testing", copy_function=os.symlink)
    dynamic = run("readelf", "-dW", torch / "lib" / "libtorch_cuda.so")
    places = re.search(r"R(?:UN)?PATH.*\[(.*)\]", dynamic)[1].split(":")
    needed = re.findall(r"NEEDED.*\[(libcu.*|libnccl.*|libnv.*)\]", dynamic)
    assert len(needed) > 5
    for place in places:
        if "nvidia" in place:
            there = pathlib.Path(os.path.normpath(place.replace("$ORIGIN", str(folder / "torch" / "lib"))))
            there.mkdir(parents=True, exist_ok=True)
            for name in needed:
                shutil.copy(genuine, there / name)


def test_a_program_runs_without_touching_nvidias_libraries(installed, tmp_path):
    torch = next((pathlib.Path(folder, "torch") for folder in sys.path
                  if pathlib.Path(folder, "torch", "lib", "libtorch_cuda.so").exists()), None)
    if torch is None:
        pytest.skip("there is no torch with CUDA in this Python's path")
    (tmp_path / "genuine.c").write_text(GENUINE)
    (tmp_path / "program.py").write_text(PROGRAM)
    run("cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", tmp_path / "genuine.so", tmp_path / "genuine.c")
    with_nvidias_packages(torch, tmp_path / "packages", tmp_path / "genuine.so")
    driver = tmp_path / "driver"
    driver.mkdir()
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        shutil.copy(tmp_path / "genuine.so", driver / name)
    document = json.loads(run(
        installed / "bin" / "hpo-dryrun", "--gpu", "a100-40gb", "--json", "--", sys.executable,
        tmp_path / "program.py", LD_LIBRARY_PATH=driver,
        PYTHONPATH=os.pathsep.join([str(installed), str(tmp_path / "packages"), os.environ.get("PYTHONPATH", "")])))
    (gpu,) = document["gpus"]
    assert gpu["verdict"] == "fits" and gpu["name"].endswith("(emulated)") and gpu["steps_alike"]
    parameters = 4 * 2 * 256 * 1024  # in bytes
    assert 4 * parameters < gpu["peak_allocated_bytes"] < 32 * parameters
