"""What differs between the versions of torch, 2.4 to 2.13, that run inside the program.

All else that is called of torch is the same in all of them: the figure `versions_run` of
bench/dry_run runs them.
"""


def memory_snapshot(torch):
    """The caching allocator's segments and history, as torch.cuda.memory._snapshot has them."""
    call = torch._C._cuda_memorySnapshot
    try:
        return call(None)  # of all pools: torch 2.9
    except TypeError:
        return call()  # torch 2.7, which takes no pool


def memory_fraction(torch, device):
    """What the program gave to set_per_process_memory_fraction; 1 before torch 2.7, which has no call for it."""
    get = getattr(torch._C, "_cuda_getMemoryFraction", None)
    return get(device) if get else 1
