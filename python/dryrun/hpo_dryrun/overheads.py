"""What a process holds of a GPU beyond torch's caching allocator.

CUDA keeps a context for each process: its code, the kernels that the process has used (CUDA 11.7 and
later load them when they are first used), and above all a stack and local memory for each thread that
the GPU can hold at once. So the context grows with the GPU's number of resident threads, on one line
for all generations. The line, its margin and NCCL's buffers are fitted on published messages of torch
(overhead_figures.py, by scripts/reference/dry_run_overheads.py).

Not counted here, because torch takes them from its own allocator and the dry run sees them: the
workspaces of cuBLAS and cuBLASLt. For each handle and stream they are 4096 KiB x 2 + 16 KiB x 8
(torch's notes on CUDA semantics, CUBLAS_WORKSPACE_CONFIG), on compute capability 9.0 32 MiB.

NCCL's buffers depend on the number of communicators, which nobody reports: published messages of
processes with several GPUs range from 0 to 7 GiB beyond the context. The figure is what one in four
has not reached, about one communicator; the margin covers the rest, so it is wide.
"""

import dataclasses

from . import overhead_figures as figures

# What convolutions take as workspace where the emulated cuDNN reports none. Published batch sizes of
# 95 timm models (torch 1.12, CUDA 11.3, RTX 3090, mixed precision) fit best with 1,700 MiB beside
# torch's tensors; the context with all kernels loaded is 1,380 MiB of it.
CUDNN_WORKSPACE_BYTES = 320 << 20

# The first versions whose processes load kernels lazily.
LAZY_CUDA = (11, 7)
LAZY_TORCH = (1, 13)


@dataclasses.dataclass(frozen=True)
class Overhead:
    """Bytes that a process requires of a GPU beyond what torch's allocator reserves.

    Attributes:
      context_bytes: the CUDA context with the kernels that are loaded.
      workspace_bytes: workspaces and buffers of libraries.
      margin_bytes: covers 95 % of the published messages that the figures are fitted on. A program
        that fits with less to spare is "tight".
      source: one sentence about where the figures come from.
    """

    context_bytes: int
    workspace_bytes: int
    margin_bytes: int
    source: str


def overhead(capability, cuda, torch, libraries=(), threads=None):
    """The overhead of one process on one GPU.

    Args:
      capability: compute capability of the GPU, 86 for 8.6.
      cuda: version of CUDA that torch was built for, "13.0" or (13, 0); None: a recent one.
      torch: version of torch, "2.11.0+cu130" or (2, 11, 0); None: a recent one.
      libraries: names of those that the program works with beyond cuBLAS: "cudnn" for convolutions,
        "nccl" for several processes.
      threads: threads that the GPU can hold at once ("threads" in `emulated_card --list`). None:
        those of the largest GPU of that compute capability in the published messages.
    """
    rows = figures.ROWS.get(capability, 0)
    if threads is None:
        nearest = min(figures.THREADS, key=lambda known: (abs(known - capability), -known))
        threads = figures.THREADS[nearest]
    context = figures.FIXED_BYTES + figures.BYTES_PER_THREAD * threads
    margin = figures.MARGIN_BYTES
    workspace = 0
    source = f"fitted on {figures.NUM_FITTED} published out-of-memory messages"
    source += (f", {rows} of all {sum(figures.ROWS.values())} are of compute capability "
               if rows else ", none is of compute capability ") + _dotted(capability)
    if _is_before(cuda, LAZY_CUDA) or _is_before(torch, LAZY_TORCH):
        context += figures.EAGER_BYTES
        source += f"; all kernels are loaded: {figures.NUM_EAGER} messages"
    if "cudnn" in libraries:
        workspace += CUDNN_WORKSPACE_BYTES
        source += "; cuDNN: batch sizes of timm models on an RTX 3090"
    if "nccl" in libraries:
        workspace += figures.NCCL_BYTES
        margin += figures.NCCL_MARGIN_BYTES
        source += f"; NCCL: {figures.NUM_NCCL} messages"
    return Overhead(round(context), workspace, margin, source)


def _dotted(capability):
    return f"{capability // 10}.{capability % 10}"


def _is_before(version, first):
    """Whether `version`, as text or numbers, is older than `first`; False where it is not known."""
    if version is None:
        return False
    if isinstance(version, str):
        parts = version.split("+")[0].split(".")[:2]
        if not all(part.isdigit() for part in parts):
            return False
        version = tuple(int(part) for part in parts)
    return tuple(version)[:2] < first
