"""The GPU memory of one training program by a tool of others, as its documentation says for a module.

usage: python3 memory_tools.py TOOL COLUMNS...   the columns of bench/published/memory_published.csv from batch to
samples; the program is bench/dry_runs/programs/encoder.py. TOOL is one of
    accelerate   the rule of `accelerate estimate-memory` for training with Adam in float32; the command itself takes
                 models of Hugging Face's hub alone
    memtracker   torch.distributed._tools.mem_tracker.MemTracker under FakeTensorMode, two steps
    fakegpu      fakegpu.estimate_module_memory
Prints one JSON line: bytes.
"""

import json
import pathlib
import sys

TOOL = sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "dry_runs" / "programs"))
import encoder  # noqa: E402
import torch  # noqa: E402


class WithLoss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = encoder.Classifier()

    def forward(self, ids, labels):
        return torch.nn.functional.cross_entropy(self.body(ids), labels)


def inputs(device):
    return (torch.zeros(encoder.BATCH, encoder.LENGTH, dtype=torch.long, device=device),
            torch.zeros(encoder.BATCH, dtype=torch.long, device=device))


def accelerate():
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes
    with torch.device("meta"):
        model = encoder.Classifier()
    return max(estimate_training_usage(calculate_maximum_sizes(model)[0], "float32").values())


def memtracker():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
    with FakeTensorMode(), torch.device("cuda"):
        model = WithLoss()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            for step in range(2):
                model(*inputs("cuda")).backward()
                optimizer.step()
                optimizer.zero_grad()
                if step == 0:
                    tracker.reset_mod_stats()
        peaks = tracker.get_tracker_snapshot("peak")
    return max(parts["Total"] for device, parts in peaks.items() if device.type == "cuda")


def fakegpu():
    from fakegpu import estimate_module_memory
    found = estimate_module_memory(WithLoss(), inputs("cpu"), mode="training", loss_fn=lambda loss: loss,
                                   optimizer="adam", target_device="cuda")
    return found["estimated_peak_bytes"]


print(json.dumps({"bytes": {"accelerate": accelerate, "memtracker": memtracker, "fakegpu": fakegpu}[TOOL]()}))
