"""Builds of torch are recognised without importing torch, and those that cannot be dry-run are refused."""

import sys

import pytest

from hpo_dryrun import torch_build

VERSION_FILE = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda!r}
hip: Optional[str] = {hip!r}
"""


@pytest.fixture(name="packages")
def a_folder_of_packages(tmp_path):
    """Writes a package torch whose import fails: it must not be imported."""
    def write(version="2.6.0+cu124", cuda="12.4", hip=None, requires=()):
        package, information = tmp_path / "torch", tmp_path / f"torch-{version}.dist-info"
        package.mkdir()
        information.mkdir()
        (package / "lib").mkdir()
        (package / "lib" / "libtorch_cuda.so").write_bytes(
            b"\0text -gencode;arch=compute_80,code=sm_80;-gencode;arch=compute_75,code=sm_75;"
            b"-gencode;arch=compute_90a,code=sm_90a\0-gencode;arch=compute_10,code=sm_10\0")
        (package / "__init__.py").write_text("raise SystemExit('imported')")
        (package / "version.py").write_text(VERSION_FILE.format(version=version, cuda=cuda, hip=hip))
        (information / "METADATA").write_text("".join(f"Requires-Dist: {line}\n" for line in requires))
        return tmp_path
    return write


def of(packages):
    return torch_build.of_interpreter(sys.executable, {"PYTHONPATH": str(packages)})


def test_versions_are_those_of_the_required_packages(packages):
    folder = packages(requires=['nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == "Linux"',
                                'nvidia-nccl-cu12==2.21.5; platform_system == "Linux"'])
    assert of(folder) == torch_build.TorchBuild("2.6.0+cu124", folder / "torch" / "lib", (12, 4), (9, 1, 0),
                                                (2, 21, 5), (75, 80, 90))


def test_a_package_that_requires_none_gets_those_of_the_newest_supported_build(packages):
    found = of(packages(version="2.11.0", cuda="13.0"))
    assert (found.cuda, found.cudnn, found.nccl) == ((13, 0), (9, 19, 0), (2, 28, 9))


@pytest.mark.parametrize("given, expected", [
    ({"version": "2.13.0+cpu", "cuda": None}, r"built without CUDA.*torch==2\.13\.0$"),
    ({"cuda": None, "hip": "6.2"}, "ROCm"),
    ({"version": "1.13.1", "cuda": "11.7"}, r"CUDA 11\.7; expected CUDA 12 or 13"),
])
def test_other_builds_are_refused_with_what_to_install(packages, given, expected):
    with pytest.raises(torch_build.TorchMissing, match=expected):
        of(packages(**given))


def test_no_torch_and_no_interpreter_are_said(tmp_path):
    with pytest.raises(torch_build.TorchMissing, match="has no torch; .* pip install torch"):
        torch_build.of_interpreter(sys.executable, {"PYTHONPATH": str(tmp_path)})
    with pytest.raises(torch_build.TorchMissing, match="expected a Python interpreter"):
        torch_build.of_interpreter(tmp_path / "python")
    with pytest.raises(torch_build.TorchMissing, match="expected a Python interpreter"):
        torch_build.of_interpreter("/bin/false")
