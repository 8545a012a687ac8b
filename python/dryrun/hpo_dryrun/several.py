"""Several GPUs and settings of the allocator: one run for each kind of GPU, replayed for the others.

The kernels that torch takes, and so the memory that the program requests, depend on the GPU's compute
capability and on its number of threads. GPUs that have both in common differ only in their memory: there the
recorded allocations are replayed (replay.py). On the others the program runs again.
"""

import copy
import os
import tempfile

from . import margins, replay, verdict


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
        recorded = run(largest, allocators[0], os.path.join(folder, "events") if others else None)
        found = {(largest.label, allocators[0]): recorded}
        replayed = _replays(recorded, others)
        for (gpu, allocator), result in zip(others, replayed):
            found[gpu.label, allocator] = (run(gpu, allocator, None) if result is None else
                                           _replayed(recorded, gpu, allocator, result))
    return found


def _replays(recorded, targets):
    """For each target its replay.Result, and one with less memory by the margin; None: it has to run."""
    events = recorded["events"]
    unsure = recorded["verdict"] in (verdict.DOES_NOT_FIT, verdict.UNKNOWN) or recorded["ranks"] > 1
    if not targets or unsure or not events or events["lost"]:
        return [None] * len(targets)
    try:
        results = replay.run(events["path"], [
            replay.Target(usable_bytes=margins.usable_bytes(recorded, gpu.total_bytes, less), settings=allocator,
                          total_bytes=gpu.total_bytes)
            for less in (0, recorded["margin_bytes"]) for gpu, allocator in targets])
    except replay.ReplayError as error:
        recorded["notes"].append(f"the program ran on each GPU, since it could not be replayed: {error}")
        return [None] * len(targets)
    pairs = zip(results[:len(targets)], results[len(targets):])
    return [None if result.unknown_from_event is not None else (result, with_less) for result, with_less in pairs]


def _replayed(recorded, gpu, allocator, results):
    result, with_less = results
    found = copy.deepcopy(recorded)
    beyond = recorded["required_bytes"] - recorded["peak_reserved_bytes"]
    found.update(
        gpu=gpu.label, name=f"{gpu.product} (emulated)", allocator=allocator, source=f"replay of {recorded['gpu']}",
        total_bytes=gpu.total_bytes, peak_allocated_bytes=result.allocated_peak,
        peak_reserved_bytes=result.reserved_peak, fragmentation_bytes=result.reserved_peak - result.allocated_peak,
        required_bytes=result.reserved_peak + beyond, retries=result.retries, fits_with_margin=margins.held(with_less), notes=[], seconds=0.0)
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
