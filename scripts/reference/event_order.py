"""The order in which events of an allocator are written, where torch's own is another in every run."""


def ordered(events):
    """Frees between two allocations by number: autocast ends its cache of weights in the order of a
    hash table of addresses, another one in every run."""
    result = []
    for event in events:
        at = len(result)
        while event < 0 and at > 0 and event > result[at - 1] and result[at - 1] < 0:
            at -= 1
        result.insert(at, event)
    return result
