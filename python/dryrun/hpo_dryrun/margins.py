"""Whether a program that fits would also fit in less memory, by the margin. What torch reserved does not say so: it
keeps freed memory, which it frees for good where memory becomes short. A replay of the recorded allocations does."""

from . import replay, verdict


def usable_bytes(found, total_bytes, less=0):
    """What torch's allocator may hold of a GPU of that size, where the rest needs what it does in `found`."""
    return max(total_bytes - (found["required_bytes"] - found["peak_reserved_bytes"]) - less, 0)


def held(result):
    """Whether a replay with less memory ran to its end as the recorded run did."""
    return not result.ran_out and result.unknown_from_event is None


def settled(found):
    """`found`, a document of a run, with its verdict by a replay where what torch reserved leaves it open."""
    events = found["events"]
    if found["verdict"] != verdict.TIGHT or found["ranks"] > 1 or not events or events["lost"]:
        return found
    less = usable_bytes(found, found["total_bytes"], found["margin_bytes"])
    try:
        result, = replay.run(events["path"], [replay.Target(usable_bytes=less, total_bytes=found["total_bytes"])])
    except replay.ReplayError:
        return found
    found["fits_with_margin"] = held(result)
    found["verdict"] = verdict.of(found)
    return found
