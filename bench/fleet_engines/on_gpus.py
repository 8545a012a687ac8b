"""Two workers on one host, each with some of its emulated GPUs."""

import deployment
from test_engines import Engines

SHOWN = {"a": ("3,1", {3, 1}), "b": ("0", {0})}  # CUDA_VISIBLE_DEVICES, and the GPUs that this means


def beyond_their_own():
    """The number of GPUs that a worker used although it was not given them; fails where one used none."""
    with deployment.running(Engines()) as host:
        used = host.gpus_used({name: visible for name, (visible, _) in SHOWN.items()})
        return sum(len(used[name] - {host.uuid(gpu) for gpu in own}) for name, (_, own) in SHOWN.items())
