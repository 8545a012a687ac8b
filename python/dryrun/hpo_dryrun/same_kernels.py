"""Whether a program that ran on one GPU requests the same memory on another, so that a replay answers
for it (replay.py), or has to run there.

What was compared: the requests of programs on emulated GPUs of capability 7.5 to 9.0, torch 2.11
(`bench/dry_run --only replay`). Torch's own kernels depend on the GPU in three ways; the first two
are no reason to run again:
- The memory in which blocks of threads share the results of a reduction depends on multiprocessors.
  It is recorded, and hpo-replay adapts it (memory/replay/other_gpu.h): exactly where the recorded GPU
  runs as many threads at once or more. Result.unknown_sizes counts the allocations where it does not.
- Torch gives cuBLAS a workspace of 32 MiB at capability 9.0, of 8.125 MiB below. It is adapted
  likewise. What newer GPUs get depends on torch's version.
- CUB's temporary storage depends on multiprocessors and capability: 48.8 to 49.5 MiB to sort 4M
  numbers; a few KiB for a batch of tokens, which changed no peak.
Other kernels are chosen by capability: attention, types that are computed in another one where the
GPU lacks them, the engines of cuDNN, and what is compiled or tuned for the GPU.
"""

from typing import Any, Collection, List

# What a program may use: the names in `libraries_used`.
ATTENTION = "attention"  # scaled_dot_product_attention, heads of at most 64 numbers
LARGE_ATTENTION = "attention with large heads"
BFLOAT16 = "bfloat16"
CUBLAS = "cublas"
CUDNN = "cudnn"
CUSTOM = "custom kernels"  # of Triton or of the program's own
LARGE_SORT = "large sort"  # sort, topk, unique, nonzero or an embedding's gradient, of a million numbers
ALL = (ATTENTION, LARGE_ATTENTION, BFLOAT16, CUBLAS, CUDNN, CUSTOM, LARGE_SORT)


def differences(gpu_a: Any, gpu_b: Any, libraries_used: Collection[str] = ALL) -> List[str]:
    """Which of `libraries_used` request other memory on `gpu_b` than on `gpu_a`; none: a replay answers.
    A GPU has `capability` (10 x major + minor), `multiprocessors` and `threads_per_multiprocessor`."""
    shapes = [(gpu.capability, gpu.multiprocessors, gpu.threads_per_multiprocessor) for gpu in (gpu_a, gpu_b)]
    if shapes[0] == shapes[1]:
        return []
    a, b = gpu_a.capability, gpu_b.capability
    differs = {
        ATTENTION: a != b and (min(a, b) < 75 or _is_newer(a, b)),
        LARGE_ATTENTION: _attention(a) != _attention(b),
        BFLOAT16: (a >= 80) != (b >= 80),
        CUBLAS: a != b and _is_newer(a, b),
        CUDNN: a != b,
        CUSTOM: True,
        LARGE_SORT: True,
    }
    return [library for library in ALL if library in libraries_used and differs[library]]


def same_kernels(gpu_a: Any, gpu_b: Any, libraries_used: Collection[str] = ALL) -> bool:
    """Whether a recording on `gpu_a` answers for `gpu_b`."""
    return not differences(gpu_a, gpu_b, libraries_used)


def _is_newer(*capabilities):
    """Than the GPUs that were compared."""
    return max(capabilities) > 90


def _attention(capability):
    """GPUs of one kind take blocks of the same size, by their shared memory: 163 KiB or more at 8.0 and 9.0, 99 KiB
    at 8.6 and 8.9."""
    if capability < 80 or _is_newer(capability):
        return capability
    return "163 KiB" if capability in (80, 90) else "99 KiB"
