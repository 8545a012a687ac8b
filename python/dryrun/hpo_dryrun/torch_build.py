"""Which build of torch an interpreter imports, found without importing it.

A dry run needs to know it beforehand: the stand-ins of CUDA 12 differ from those of CUDA 13, and
torch refuses a cuDNN or an NCCL other than the one that it was built with.
"""

import ast
import dataclasses
import json
import mmap
import pathlib
import re
import subprocess

# Run by the interpreter that runs the program: prints where its torch is.
FIND = """
import importlib.util, json
found = importlib.util.find_spec("torch")
print(json.dumps(found.origin if found else None))
"""
# Libraries whose version torch compares with the one that it was built with; `default` is what
# torch 2.11 has, taken where the package does not say (a build of one's own).
LIBRARIES = {"cudnn": (9, 19, 0), "nccl": (2, 28, 9)}
CUDA_MAJORS = (12, 13)


class TorchMissing(Exception):
    """The interpreter has no torch that can be dry-run; the text says what to install."""


@dataclasses.dataclass(frozen=True)
class TorchBuild:
    """A build of torch.

    Attributes:
      version: as torch.__version__, "2.11.0+cu130".
      libraries: its folder of shared libraries.
      cuda: major and minor version of CUDA, (13, 0).
      cudnn, nccl: major, minor and patch version, (9, 19, 0).
      capabilities: the compute capabilities that it has kernels for, 10 x major + minor, rising.
    """
    version: str
    libraries: pathlib.Path
    cuda: tuple
    cudnn: tuple
    nccl: tuple
    capabilities: tuple


def _assignments(path):
    """The constants that a Python file assigns at its top level."""
    found = {}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else \
            [statement.target] if isinstance(statement, ast.AnnAssign) else []
        if targets and isinstance(statement.value, ast.Constant):
            found.update((target.id, statement.value.value) for target in targets
                         if isinstance(target, ast.Name))
    return found


def _required_versions(folder, version):
    """{library: version} of the packages of NVIDIA's libraries that torch's package requires."""
    found = dict(LIBRARIES)
    for metadata in folder.parent.glob(f"torch-{version}*.dist-info/METADATA"):
        text = metadata.read_text(encoding="utf-8")
        for name, numbers in re.findall(r"^Requires-Dist: nvidia-(\w+)-cu\d+ ?\(?==([0-9.]+)", text,
                                        re.MULTILINE):
            if name in found:
                found[name] = tuple(int(number) for number in numbers.split(".")[:3])
    return found


def capabilities_of(library):
    """The compute capabilities in libtorch_cuda.so: the flags of its kernels' compiler."""
    with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        flags = re.compile(rb"(?:-gencode;arch=compute_\d+a?,code=\w+;?)+").match(
            data, max(data.find(b"-gencode;arch=compute_"), 0))
        found = re.findall(rb"code=sm_(\d+)", flags.group()) if flags else ()
        return tuple(sorted({int(number) for number in found}))


def of_folder(folder):
    """The build in `folder`, the one of torch's __init__.py. Raises TorchMissing."""
    folder = pathlib.Path(folder)
    found = _assignments(folder / "version.py")
    version = found.get("__version__", "of unknown version")
    if found.get("hip"):
        raise TorchMissing(f"torch {version} in {folder} is built for AMD's ROCm; a dry run emulates "
                           "NVIDIA GPUs and needs a build with CUDA: pip install torch")
    if not found.get("cuda"):
        raise TorchMissing(f"torch {version} in {folder} is built without CUDA, so no program can use "
                           "a GPU with it; install the build with CUDA, which needs no GPU: "
                           "pip install --index-url https://pypi.org/simple "
                           f"torch=={version.partition('+')[0]}")
    cuda = tuple(int(number) for number in found["cuda"].split(".")[:2])
    if cuda[0] not in CUDA_MAJORS:
        raise TorchMissing(f"torch {version} in {folder} is built with CUDA {found['cuda']}; expected "
                           f"CUDA {' or '.join(map(str, CUDA_MAJORS))} (torch 2.4 or newer)")
    versions = _required_versions(folder, version.partition("+")[0])
    kernels = folder / "lib" / "libtorch_cuda.so"
    if not kernels.exists():
        raise TorchMissing(f"{kernels}: missing; torch {version} is not installed as a whole")
    return TorchBuild(version, folder / "lib", cuda, versions["cudnn"], versions["nccl"],
                      capabilities_of(kernels))


def of_interpreter(python, environment=None):
    """The build that the interpreter `python` imports. Raises TorchMissing."""
    try:
        done = subprocess.run([str(python), "-c", FIND], env=environment, capture_output=True, text=True,
                              timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TorchMissing(f"{python}: expected a Python interpreter: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise TorchMissing(f"{python}: expected a Python interpreter, it says: {last}")
    origin = json.loads(done.stdout.strip().splitlines()[-1])
    if origin is None:
        raise TorchMissing(f"{python} has no torch; a dry run runs the program itself, so everything "
                           "that it imports must be installed: pip install torch")
    return of_folder(pathlib.Path(origin).parent)
