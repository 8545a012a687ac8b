"""The libraries that are preloaded, for each build of torch, and for one of the future."""

import pathlib
import subprocess

import pytest

from hpo_dryrun import stand_ins, torch_build


@pytest.fixture(name="future")
def a_torch_of_the_future(tmp_path):
    """A build whose library wants a call that no stand-in has, and one that they have."""
    folder = tmp_path / "torch" / "lib"
    folder.mkdir(parents=True)
    source = tmp_path / "torch.c"
    source.write_text("int cuCallOfTheFuture(void); int cuInit(unsigned); int other(void);"
                      "int use(void) { return cuCallOfTheFuture() + cuInit(0) + other(); }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libtorch_cuda.so", source], check=True)
    return torch_build.TorchBuild("3.0.0", folder, (13, 4), (9, 25, 1), (2, 30, 0), (80, 90))


@pytest.fixture(name="libraries")
def a_folder_of_stand_ins(tmp_path):
    folder = tmp_path / "stand-ins"
    folder.mkdir()
    for name, call in [("libcudart.so.13", "cudaMalloc"), ("libcuda.so.1", "cuInit")]:
        source = tmp_path / "stand-in.c"
        source.write_text(f"int {call}(void) {{ return 0; }}")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / name, source], check=True)
    return folder


def test_a_call_of_the_future_gets_a_stub(future, libraries, tmp_path):
    assert stand_ins.wanted_by(future) == {("cuda", "cuCallOfTheFuture"), ("cuda", "cuInit")}
    files = stand_ins.preloaded(future, libraries, tmp_path)
    assert [path.name for path in files] == ["libcuda.so.1", "libcudart.so.13", "libhpo_missing_calls.so"]
    written = files[-1].read_bytes()
    assert b"\0cuCallOfTheFuture\0" in written and b"cuInit" not in written
    assert stand_ins.MISSING.encode() in written


def test_the_environment_names_versions_and_keeps_what_was_there(future, libraries, tmp_path):
    found = stand_ins.environment(future, libraries, tmp_path, {"LD_PRELOAD": "mine.so /other/libcudart.so.13", "A": "b"})
    assert found["LD_PRELOAD"].endswith(":mine.so") and found["A"] == "b"
    assert found["LD_PRELOAD"].count("/libcudart.so.13") == 1
    assert found["HPO_EMULATED_VERSIONS"] == "cuda=13040,cudnn=92501,nccl=23000"
    assert found["HPO_EMULATED_CAPABILITIES"] == "80,90"


def test_an_installation_without_the_right_cuda_is_said(future, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"libcudart\.so\.13: missing, so torch 3\.0\.0 with CUDA 13"):
        stand_ins.preloaded(future, tmp_path, tmp_path)


@pytest.mark.parametrize("call, version, library", [
    ("cudaMalloc", "libcudart.so.13", "cudart"), ("cusparseLtInit", "", "cusparseLt"), ("ncclSend", "", "nccl"),
    ("cuMemMap", "", "cuda"), ("nvshmem_ptr", "NVSHMEM", "nvshmem_host"), ("memcpy", "GLIBC_2.14", None),
    ("deflate", "libz.so.1", None), ("custom", "", None)])
def test_calls_belong_to_a_library(call, version, library):
    assert stand_ins.owner_of(call, version) == library


def test_the_list_of_calls_has_those_of_the_torch_that_is_installed():
    torch = pathlib.Path.home() / ".cache" / "hpo" / "torch-2.11.0" / "torch"
    if not torch.exists():
        pytest.skip(f"no torch in {torch}: scripts/bootstrap fetches it")
    collect = pathlib.Path(__file__).resolve().parents[3] / "emulator" / "collect_calls.py"
    done = subprocess.run([collect, "--check", torch], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
