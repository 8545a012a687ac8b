"""The libraries that take the place of CUDA's in a dry run, for one build of torch."""

import functools
import os
import pathlib
import re
import tempfile

from . import elf

# The name that each library is loaded by, for CUDA 12 and for CUDA 13; None: not wanted.
SONAMES = {
    "cublas": ("libcublas.so.12", "libcublas.so.13"),
    "cublasLt": ("libcublasLt.so.12", "libcublasLt.so.13"),
    "cuda": ("libcuda.so.1", "libcuda.so.1"),
    "cudart": ("libcudart.so.12", "libcudart.so.13"),
    "cudnn": ("libcudnn.so.9", "libcudnn.so.9"),
    "cufft": ("libcufft.so.11", "libcufft.so.12"),
    "cufile": ("libcufile.so.0", "libcufile.so.0"),
    "cupti": ("libcupti.so.12", "libcupti.so.13"),
    "curand": ("libcurand.so.10", "libcurand.so.10"),
    "cusolver": ("libcusolver.so.11", "libcusolver.so.12"),
    "cusparse": ("libcusparse.so.12", "libcusparse.so.12"),
    "cusparseLt": ("libcusparseLt.so.0", "libcusparseLt.so.0"),
    "nccl": ("libnccl.so.2", "libnccl.so.2"),
    "nvToolsExt": ("libnvToolsExt.so.1", None),
    "nvrtc": ("libnvrtc.so.12", "libnvrtc.so.13"),
    "nvshmem_host": ("libnvshmem_host.so.3", "libnvshmem_host.so.3"),
}
# Whose a call is that is wanted without a version, by the beginning of its name; the first counts.
OWNERS = [("cusparseLt", "cusparseLt"), ("nccl", "nccl"), ("pnccl", "nccl"), ("nvshmem", "nvshmem_host"),
          ("cuFile", "cufile"), ("cufile", "cufile"), ("cu[A-Z]", "cuda")]
# Ends the program with the name of a call that is not emulated; of libhpo_emulated_card.so.
MISSING = "hpoEmulatedMissing"


def soname(library, major):
    """The name that `library` is loaded by with CUDA `major`, or None."""
    return SONAMES[library][major - 12]


def owner_of(call, version):
    """The library of SONAMES, of a call that is wanted in `version` ("": in none); None for others."""
    if version:
        library = re.fullmatch(r"lib(\w+)\.so\.\d+", version)
        known = library is not None and library.group(1) in SONAMES
        return library.group(1) if known else "nvshmem_host" if version == "NVSHMEM" else None
    return next((library for prefix, library in OWNERS if re.match(prefix, call)), None)


def wanted_by(build):
    """{(library, call)} that the libraries of a torch_build.TorchBuild want of CUDA's."""
    found, own = {}, set()
    for path in sorted(build.libraries.glob("*.so*")):
        symbols = elf.symbols(path)
        found.update(symbols.wanted)
        own |= set(symbols.defined)
    owned = {(owner_of(name, version), name) for name, version in found.items() if name not in own}
    return {(library, name) for library, name in owned if library is not None}


def write_stubs(path, wanted, defined):
    """Writes a library to `path` with the calls of `wanted` that are not in `defined`: each ends the
    program with its name. Returns the calls; where there are none, nothing is written."""
    missing = set(wanted) - set(defined)
    if missing:
        pathlib.Path(path).write_bytes(elf.stub_library(missing, MISSING, pathlib.Path(path).name))
    return missing


@functools.lru_cache(maxsize=None)  # a search asks for each run
def _calls(build, files):
    """(calls that torch wants of CUDA's libraries, those that the stand-ins `files` define)."""
    return ({call for _, call in wanted_by(build)},
            frozenset().union(*(elf.symbols(path).defined for path in files)))


def keep_caches_apart(environment):
    """What torch compiles or measures for an emulated GPU is not for a real one: sets its caches so."""
    environment["USE_PYTORCH_KERNEL_CACHE"] = "0"
    environment.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(
        tempfile.gettempdir(), f"torchinductor_emulated_{os.getuid()}"))


def preloaded(build, libraries, scratch):
    """The files that the program is to load before all others, in order.

    All of them: torch's libraries name the folders of NVIDIA's (DT_RPATH), and what is loaded already
    is taken instead. Calls that no stand-in has, of a torch that is newer than this package, are in a
    last library that is written to the folder `scratch`: each ends the program with its name.
    """
    files = []
    for library in SONAMES:
        name = soname(library, build.cuda[0])
        if name is not None and (libraries / name).exists():
            files.append(libraries / name)
        elif library == "cudart":
            raise FileNotFoundError(f"{libraries / name}: missing, so torch {build.version} with CUDA "
                                    f"{build.cuda[0]} cannot be dry-run with this installation")
    stubs = pathlib.Path(scratch) / "libhpo_missing_calls.so"
    if write_stubs(stubs, *_calls(build, tuple(files))):
        files.append(stubs)
    return files


def _without_cudas(preload):
    """The files of LD_PRELOAD, but for those in whose place the stand-ins are."""
    names = {name for pair in SONAMES.values() for name in pair}
    return [path for path in preload.replace(" ", ":").split(":") if path and os.path.basename(path) not in names]


def environment(build, libraries, scratch, inherited=None):
    """`inherited` (default: this process's), with what makes torch use the emulated GPU.

    The GPU itself is chosen by HPO_EMULATED_CARD and the like (docs/EMULATOR.md).
    """
    found = dict(os.environ if inherited is None else inherited)
    preload = [str(path) for path in preloaded(build, libraries, scratch)]
    cudnn, nccl = ("".join(f"{part:02d}" for part in version) for version in (build.cudnn, build.nccl))
    found.update(LD_PRELOAD=":".join([*preload, *_without_cudas(found.get("LD_PRELOAD", ""))]),
                 LD_LIBRARY_PATH=":".join(filter(None, [str(libraries), found.get("LD_LIBRARY_PATH")])),
                 HPO_EMULATED_VERSIONS=f"cuda={build.cuda[0] * 1000 + build.cuda[1] * 10},"
                                       f"cudnn={int(cudnn)},nccl={int(nccl)}",
                 HPO_EMULATED_CAPABILITIES=",".join(map(str, build.capabilities)))
    keep_caches_apart(found)
    return found
