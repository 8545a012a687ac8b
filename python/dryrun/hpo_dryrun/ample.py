"""One run with more memory than any GPU has, replayed for each GPU (`--ample`).

It answers for every total at once, and takes one run also where the program does not fit. What a program does where
memory is short is not seen: one that makes its batch smaller after an out-of-memory error is said not to fit, and
the second choice of cuDNN's engines, which torch takes where the first does not get its workspace, is not counted.
"""

import copy
import os
import tempfile

from . import overheads, replay, several, verdict


def documents(gpus, allocators, run_with_ample_memory, run):
    """As several.documents, from one run for each compute capability, by `run_with_ample_memory`. A program that asks
    how much memory is free may do something else with more of it, so it runs again, by `run`."""
    found = {}
    for capability in dict.fromkeys(gpu.capability for gpu in gpus):
        alike = [gpu for gpu in gpus if gpu.capability == capability]
        # On GPUs that hold no more threads it is known what kernels request.
        base = max(alike, key=lambda gpu: gpu.threads or 0)
        with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as folder:
            recorded = run_with_ample_memory(base, allocators[0], os.path.join(folder, "events"))
            if recorded["reads_free_memory"]:
                made = several.documents(alike, allocators, run)
            else:
                made = [_of_gpu(recorded, base, gpu, allocator) for gpu in alike for allocator in allocators]
        found.update(((one["gpu"], one["allocator"]), one) for one in made)
    return [found[gpu.label, allocator] for gpu in gpus for allocator in allocators]


def _of_gpu(recorded, base, gpu, allocator):
    there = copy.deepcopy(recorded)
    more = _context(gpu) - _context(base)
    there.update(gpu=gpu.label, total_bytes=gpu.total_bytes, allocator=allocator,
                 context_bytes=there["context_bytes"] + more, required_bytes=there["required_bytes"] + more)
    shape = None
    if gpu.threads != base.threads:
        shape = replay.Gpu(gpu.capability, gpu.multiprocessors, gpu.threads // gpu.multiprocessors)
    result, = several.replays(there, [several.target(there, gpu, allocator, shape)], least=True)
    if result is None or result.unknown_sizes:
        # What it requires where its cache is never freed.
        there.update(spare_bytes=gpu.total_bytes - there["required_bytes"])
        there["verdict"] = verdict.DOES_NOT_FIT if there["spare_bytes"] < 0 else verdict.of(there)
    else:
        notes, least = there["notes"], several.least_bytes(there, result)
        there = several.replayed(there, gpu, allocator, result)
        there.update(notes=notes, seconds=recorded["seconds"], least_bytes=least)
        there["verdict"] = verdict.of(there)
    there["source"] = "run with ample memory" if gpu is base else f"replay of {base.label} with ample memory"
    return there


def _context(gpu):
    """As far as it depends on the GPU."""
    return overheads.overhead(gpu.capability, None, None, threads=gpu.threads).context_bytes
