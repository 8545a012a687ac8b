"""True values of small integer and boolean tensors on an emulated GPU, whose kernels compute nothing.

Tensors of up to 64 Ki elements that come from the host or from operations without inputs, and what is
computed of them, are also kept on the CPU (shadow_store.py, shadow_kernels.py). What the program reads
back of them is true, and so are sizes that depend on them. What is not known is counted (findings).
Nothing is allocated on the GPU for it, but for results whose size depends on values.
"""

from .shadow_follower import Follower
from .shadow_kernels import Kernels
from .shadow_reads import DEFAULT_MAX_READS, Reads
from .shadow_sizes import Sizes

_follower = None


def install(torch):
    """Follows torch's operations as soon as a GPU is used. Called once, when torch has been imported."""
    global _follower
    if _follower is None:
        _follower = Follower(torch, Reads(), Sizes(torch))
        torch.cuda._lazy_call(Kernels(torch, _follower).register)


def note_step():
    """The program has made progress: an optimizer's step, or a batch of an evaluation."""
    if _follower is not None:
        _follower.reads.note_step()


def set_guard(on_endless, max_reads=DEFAULT_MAX_READS):
    """Calls `on_endless` with one sentence where the program reads that many unknown values without a step."""
    _follower.reads.on_endless = on_endless
    _follower.reads.max_reads = max_reads


def findings():
    """What depended on values that are not known, as a JSON object:

    reads_of_unknown_values  number of values or tensors read back that are not known or were assumed
    places                   where most: where (FILE:LINE), count
    unknown_sizes            sizes that depended on them, the largest first: call, where, count,
                             elements_used (the largest size used instead), bound (upper bound, assumed
                             values, size of what is written, guess)
    live_at_peak             whether memory of such a size was alive at the peak, or where memory ran out
    not_followed             number of operations whose values could not be computed on the CPU
    """
    if _follower is None:
        return {"reads_of_unknown_values": 0, "places": [], "unknown_sizes": [], "live_at_peak": False,
                "not_followed": 0}
    return {**_follower.reads.findings(), **_follower.sizes.findings(), "not_followed": _follower.errors}
