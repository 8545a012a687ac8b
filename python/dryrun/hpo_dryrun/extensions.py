"""Inside the program: what Python loads, before it is loaded.

A library of another package than torch, such as bitsandbytes', may want a call of CUDA that no stand-in has, which
would keep it from being loaded at all. The call gets a stub, as torch's own calls do (stand_ins.py), so that only a
program which makes the call is ended, with its name.

NVIDIA's own libraries are not loaded. Torch loads some of its packages' by their paths, and goes on without them.
"""

import ctypes
import os
import re
import sys
import tempfile

from . import elf, stand_ins

_NVIDIAS = re.compile(r"lib(cuda|cudart|cublas|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|nccl|nvJitLink"
                      r"|nvToolsExt|nvidia-ml|nvrtc|nvshmem)(\w*|-builtins)\.so\b")
_MARKS = (b"libcudart.so.", b"libcuda.so.", b"libcublas", b"libcusparse", b"libcusolver", b"libcufft", b"libnccl.so.")


def install(torch_folder):
    """Looks at each extension module, and at what ctypes loads, before it is loaded."""
    preloaded = [path for path in os.environ.get("LD_PRELOAD", "").split(os.pathsep) if os.path.exists(path)]
    if preloaded:
        sys.addaudithook(_Hook(preloaded, torch_folder))


class _Hook:
    def __init__(self, preloaded, torch_folder):
        self._preloaded = preloaded
        self._defined = None
        self._seen = set()
        self._stand_ins = os.path.dirname(preloaded[0])
        self._others = (os.path.join(torch_folder, ""), os.path.join(self._stand_ins, ""))

    def __call__(self, event, arguments):
        path = arguments[1] if event == "import" else arguments[0] if event == "ctypes.dlopen" else None
        if event == "ctypes.dlopen" and isinstance(path, str):
            folder, name = os.path.split(path)
            is_stand_in = folder in ("", self._stand_ins) and os.path.exists(os.path.join(self._stand_ins, name))
            if _NVIDIAS.match(name) and not is_stand_in:
                raise OSError(f"{path}: a dry run does not load libraries of NVIDIA's")
        if isinstance(path, str) and path not in self._seen and os.path.isfile(path):
            self._seen.add(path)
            if not path.startswith(self._others) and _names_cuda(path):
                self._add_stubs(path)

    def _add_stubs(self, path):
        if self._defined is None:
            self._defined = set().union(*(elf.symbols(library).defined for library in self._preloaded))
        wanted = {name for name, version in elf.symbols(path).wanted.items() if stand_ins.owner_of(name, version)}
        with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as folder:
            stubs = os.path.join(folder, "libhpo_missing_calls_of_" + os.path.basename(path))
            missing = stand_ins.write_stubs(stubs, wanted, self._defined)
            if missing:
                self._defined |= missing
                self._seen.add(stubs)
                ctypes.CDLL(stubs, ctypes.RTLD_GLOBAL)


def _names_cuda(path):
    """Whether the loader would look for calls of CUDA's. Its names are read alone: imports load hundreds of files."""
    try:
        text = elf.names(path)
    except (OSError, ValueError):  # ValueError: an empty file, or no library
        return False
    return any(mark in text for mark in _MARKS)
