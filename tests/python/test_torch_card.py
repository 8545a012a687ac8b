"""hpo.torch on an emulated card: torch's own allocator and errors, of which bytes are true and
numbers are not (docs/EMULATOR.md). Run by scripts/with_emulated_card."""

import pytest

import hpo

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no card, not even an emulated one", allow_module_level=True)
import hpo.torch  # noqa: E402
from test_torch import trial  # noqa: E402

WIDTH = 4096
ROW_BYTES = 3 * 4 * WIDTH * 64  # of a row of 64 tokens: three activations of 32 bits at the peak


@pytest.fixture(autouse=True)
def clean_card():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


def run(told, rows, batches=4):
    model = torch.nn.Sequential(torch.nn.Linear(64, WIDTH), torch.nn.GELU(),
                                torch.nn.Linear(WIDTH, 8)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.zeros(rows, 64, 64, device="cuda")
    for _ in range(batches):
        optimizer.zero_grad()
        hpo.torch.oom_guard(lambda part: model(part).square().mean(), x, model, told)
        optimizer.step()


def test_parts_grow_to_the_limit_of_the_trial_without_an_oom():
    limit = 2 << 30
    told = trial(limit, device="cuda:0")
    run(told, rows=2 * limit // ROW_BYTES)
    assert "num_ooms" not in told.memory
    assert 0.85 < told.memory["live_peak_bytes"] / limit <= 1.0
    assert told.memory["reserved_peak_bytes"] <= limit
    plan = told.final_plan
    assert plan["micro_batch"] < plan["effective_batch"] == 2 * limit // ROW_BYTES


def test_a_real_oom_is_recovered_from_and_leaves_nothing_behind():
    limit = 2 << 30
    rows = 2 * limit // ROW_BYTES
    told = trial(limit, device="cuda:0", plan={"effective_batch": rows, "micro_batch": rows - 1})
    run(told, rows)
    assert told.memory["num_ooms"] == told.memory["num_replans"] >= 1
    names = [name for name, _ in told.sink.stages]
    assert names[:2] == ["OOM Error", "replan"]
    # What the failed part held is free: less than a gradient's worth is left next to the batch.
    after = told.sink.stages[0][1]
    assert after["peak_bytes"] > limit // 2
    assert after["reserved_bytes"] < limit // 2
    assert told.memory["reserved_peak_bytes"] <= limit


def test_the_whole_card_is_the_limit_where_the_trial_has_none():
    total = torch.cuda.mem_get_info()[1]
    told = trial(device="cuda:0")
    run(told, rows=2 * total // ROW_BYTES, batches=2)
    assert "num_ooms" not in told.memory
    assert told.memory["live_peak_bytes"] > 0.7 * total


def test_one_row_that_does_not_fit():
    told = trial(64 << 20, device="cuda:0")
    model = torch.nn.Linear(64, 1 << 16).cuda()
    x = torch.zeros(4, 4096, 64, device="cuda")
    with pytest.raises(hpo.OutOfMemory, match="one row does not fit: CUDA out of memory"):
        hpo.torch.oom_guard(lambda part: model(part).mean(), x, model, told)
