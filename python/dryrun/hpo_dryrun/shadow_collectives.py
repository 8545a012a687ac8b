"""Values that processes exchange: each is taken to hold what this one holds.

What is gathered repeats this process's values. What is reduced or broadcast stays as it is: a sum is that
of one process. With more than one process such values count as assumed. Other exchanges make unknown ones.
"""

from .shadow_store import ASSUMED, KNOWN, UNKNOWN

_STAYING = ("c10d::allreduce_", "c10d::allreduce_coalesced_", "c10d::broadcast_", "c10d::reduce_")
_GATHERING = ("c10d::_allgather_base_", "c10d::allgather_")
_READING = ("c10d::send", "c10d::barrier", "c10d::monitored_barrier_")


def kernel(follower, operation):
    def run(keyset, *args, **kwargs):
        result = follower.original(operation, keyset, args, kwargs)
        if not follower.busy.on and operation.name not in _READING and args:
            follower.guarded(_follow, follower.store, follower, operation.name, args)
        return result

    return run


def _follow(store, follower, name, args):
    if name in _STAYING:
        for tensor in follower.tensors(args):
            if store.state(tensor) == KNOWN:
                store.mark(tensor, ASSUMED)
    elif name in _GATHERING:
        outputs, sources = (list(follower.tensors([arg])) for arg in args[:2])
        for i, source in enumerate(sources):
            each = len(outputs) // len(sources)
            for output in outputs[i * each:(i + 1) * each]:
                _repeat(store, source, output)
    else:
        for tensor in follower.tensors(args):
            store.forget(tensor)


def _repeat(store, source, output):
    """Writes the values of `source` to `output` as many times as they fit."""
    if store.state(source) == UNKNOWN:
        store.forget(output)
    else:
        values = store.view(source).flatten()
        times = output.numel() // max(values.numel(), 1)
        store.write(output, values.repeat(times).reshape(output.size()), ASSUMED)
