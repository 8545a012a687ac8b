"""What a process holds of a GPU beyond torch's caching allocator. A placeholder: one figure for every GPU.

Source: nvidia-smi minus torch.cuda.memory_reserved() of users' reports lies between 300 and 600 MiB on
GPUs of capability 7.5 to 9.0 with CUDA 12 and lazy loading of kernels.
"""

import dataclasses

_MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Overhead:
    context_bytes: int  # the CUDA context and the kernels that are loaded
    workspace_bytes: int  # what cuDNN and others take at the peak, which the emulator does not know
    margin_bytes: int  # a program that fits with less than this to spare is "tight"
    source: str


def overhead(capability, cuda, torch, libraries):
    """Of one process that uses a GPU of `capability`, with these versions."""
    return Overhead(500 * _MIB, 0, 512 * _MIB, "placeholder")
