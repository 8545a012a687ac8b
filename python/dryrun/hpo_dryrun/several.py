"""Several GPUs and settings of the allocator: one run for each kind of GPU, replayed for the others.

The kernels that torch takes, and so the memory that the program requests, depend on the GPU's compute
capability and on its number of threads. GPUs that have both in common differ only in their memory: there the
recorded allocations are replayed (replay.py). On the others the program runs again.
"""

import copy
import os
import tempfile

from . import replay, verdict


def documents(gpus, allocators, run):
    """A document for each GPU with each of `allocators`, in their order. `run(gpu, allocator, events)` makes one by
    running the program; it writes its allocations to the path `events`."""
    found = {}
    for kind in dict.fromkeys(map(_kind, gpus)):
        alike = [gpu for gpu in gpus if _kind(gpu) == kind]
        found.update(_of_one_kind(alike, allocators, run))
    return [found[gpu.label, allocator] for gpu in gpus for allocator in allocators]


def _kind(gpu):
    return gpu.capability, gpu.threads if gpu.threads is not None else gpu.name


def _of_one_kind(gpus, allocators, run):
    largest = max(gpus, key=lambda gpu: gpu.total_bytes)
    others = [(gpu, allocator) for gpu in gpus for allocator in allocators
              if (gpu, allocator) != (largest, allocators[0])]
    with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as folder:
        recorded = run(largest, allocators[0], os.path.join(folder, "events"))
        found = {(largest.label, allocators[0]): recorded}
        # A program that asks how much memory is free may go by it.
        unsure = recorded["verdict"] in (verdict.DOES_NOT_FIT, verdict.UNKNOWN) or recorded["reads_free_memory"]
        results = [None] * len(others) if unsure else replays(recorded, [target(recorded, *one) for one in others])
        for (gpu, allocator), result in zip(others, results):
            found[gpu.label, allocator] = (run(gpu, allocator, None) if result is None else
                                           replayed(recorded, gpu, allocator, result))
        # The requests are the same on all of them.
        targets = [target(recorded, largest, allocator) for allocator in allocators]
        for allocator, result in zip(allocators, replays(recorded, targets, least=True)):
            for gpu in gpus:
                _go_by_least(found[gpu.label, allocator], least_bytes(recorded, result))
    return found


def target(recorded, gpu, allocator, shape=None):
    """What replays take. `shape`: a replay.Gpu, where it is not that of the recorded GPU."""
    return replay.Target(usable_bytes=max(gpu.total_bytes - beyond_torch(recorded), 0), settings=allocator,
                         total_bytes=gpu.total_bytes, gpu=shape)


def beyond_torch(recorded):
    """Bytes that are required beyond torch's allocator."""
    return recorded["required_bytes"] - recorded["peak_reserved_bytes"]


def replays(recorded, targets, least=False):
    """A replay.Result for each target; None: the recording does not answer."""
    events = recorded["events"]
    if not targets or recorded["ranks"] > 1 or not events or events["lost"]:
        return [None] * len(targets)
    try:
        results = replay.run(events["path"], targets, least)
    except replay.ReplayError as error:
        if not least:
            recorded["notes"].append(f"the program ran on each GPU, since it could not be replayed: {error}")
        return [None] * len(targets)
    return [None if result.unknown_from_event is not None else result for result in results]


def least_bytes(recorded, result):
    """The least memory of the GPU with which the program runs; None: not known."""
    return None if result is None or result.least_bytes is None else result.least_bytes + beyond_torch(recorded)


def settle(found):
    """Goes by the least memory with which the program runs, where what torch reserved leaves the verdict open: torch
    keeps freed memory, which it frees for good where memory becomes short."""
    if found["verdict"] != verdict.TIGHT:
        return found
    usable = replay.Target(usable_bytes=max(found["total_bytes"] - beyond_torch(found), 0),
                           total_bytes=found["total_bytes"])
    result, = replays(found, [usable], least=True)
    _go_by_least(found, least_bytes(found, result))
    return found


def _go_by_least(found, least):
    found["least_bytes"] = least
    found["verdict"] = verdict.of(found)


def replayed(recorded, gpu, allocator, result):
    """The document of another GPU or setting."""
    found = copy.deepcopy(recorded)
    beyond = beyond_torch(recorded)
    found.update(
        gpu=gpu.label, name=f"{gpu.product} (emulated)", allocator=allocator, source=f"replay of {recorded['gpu']}",
        total_bytes=gpu.total_bytes, peak_allocated_bytes=result.allocated_peak,
        peak_reserved_bytes=result.reserved_peak, fragmentation_bytes=result.reserved_peak - result.allocated_peak,
        required_bytes=result.reserved_peak + beyond, retries=result.retries, notes=[], seconds=0.0)
    if result.ran_out:
        # What it needs where its cache is never freed: as on the recorded GPU.
        found.update(needs_bytes=recorded["required_bytes"], out_of_memory={
            "message": f"CUDA out of memory, in the replay at allocation event {result.out_of_memory_event}.",
            "phase": None, "step": None, "device": result.device, "requested_bytes": None, "allocated_bytes": None,
            "reserved_bytes": None, "count": 1})
        found.update({name: recorded[name] for name in ("required_bytes", "peak_allocated_bytes", "peak_reserved_bytes",
                                                        "fragmentation_bytes")})
    found["spare_bytes"] = found["total_bytes"] - found["required_bytes"]
    found["verdict"] = verdict.of(found)
    return found
