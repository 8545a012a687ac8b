"""hpo.torch.oom_guard: gradients of a batch are the same in whatever parts it is run."""

import copy
import gc
import subprocess
import sys
import textwrap
import weakref

import pytest

import hpo

torch = pytest.importorskip("torch", reason="torch is not installed")
import hpo.torch  # noqa: E402
from hpo.torch import Guard, num_rows, oom_guard, rows_of  # noqa: E402
from hpo.trial import Trial  # noqa: E402

OOM = "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried"


class Heard:
    """What a trial says."""

    def __init__(self):
        self.stages = []

    def measurement(self, step, epoch, metrics):
        pass

    def stage(self, name, memory):
        self.stages.append((name, dict(memory)))

    def stop_reason(self):
        return ""


def trial(limit_bytes=0, **more):
    job = {"trial": 0, "params": {}, "objective": {"metric": "loss"}, "device": "cpu",
           "limit_bytes": limit_bytes, **more}
    return Trial(job, Heard())


def model_of(dropout=0.0, norm=False):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Dropout(dropout)]
    if norm:
        layers.append(torch.nn.BatchNorm1d(16))
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, 3))


def batches(count=5, rows=12):
    made = torch.Generator().manual_seed(2)
    return [(torch.randn(rows, 6, generator=made), torch.randint(0, 3, (rows,), generator=made))
            for _ in range(count)]


class TooMuch:
    """A step that runs out of memory above so many rows, in one of the two directions, from a batch
    on; backward is undone half-way, as the real one is."""

    def __init__(self, model, most, where="backward", after=0):
        self.model, self.most, self.where, self.after = model, most, where, after
        self.sizes = []
        list(model.children())[0].weight.register_hook(self.in_backward)

    def too_much(self):
        return self.sizes[-1] > self.most and len(self.sizes) > self.after

    def in_backward(self, gradient):
        if self.where == "backward" and self.too_much():
            raise RuntimeError(OOM)
        return gradient

    def __call__(self, part):
        self.sizes.append(len(part[0]))
        output = self.model(part[0])
        if self.where == "forward" and self.too_much():
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB")
        return torch.nn.functional.cross_entropy(output, part[1])


def trained(model, step, given=None, told=None):
    """Losses by batch; the model holds the weights."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    torch.manual_seed(3)
    losses = []
    for batch in given or batches():
        optimizer.zero_grad()
        losses.append(float(oom_guard(step, batch, model, told)))
        optimizer.step()
    return losses


def same(one, other, exactly=False):
    for mine, theirs in zip(one.state_dict().values(), other.state_dict().values()):
        if exactly:
            assert torch.equal(mine, theirs)
        else:
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def plain(model, given=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    torch.manual_seed(3)
    losses = []
    for inputs, labels in given or batches():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def test_without_an_oom_it_is_the_plain_loop():
    guarded, reference = model_of(dropout=0.3), model_of(dropout=0.3)
    step = TooMuch(guarded, most=100)
    assert trained(guarded, step) == plain(reference)
    same(guarded, reference, exactly=True)
    assert step.sizes == [12] * 5


@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("most, parts", [(6, [6, 6]), (5, [3, 3, 3, 3]), (1, [1] * 12)])
def test_an_oom_leaves_losses_and_weights_as_they_were(where, most, parts):
    guarded, reference = model_of(), model_of()
    step = TooMuch(guarded, most, where)
    told = trial()
    assert trained(guarded, step, told=told) == pytest.approx(plain(reference), rel=1e-5)
    same(guarded, reference)
    assert step.sizes[-len(parts):] == parts
    assert told.final_plan == {"effective_batch": 12, "micro_batch": parts[0]}


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_with_dropout_it_is_the_run_that_was_smaller_from_the_start(where):
    guarded, reference = model_of(dropout=0.4), model_of(dropout=0.4)
    given = batches()
    smaller = trial(plan={"effective_batch": 12, "micro_batch": 3})
    undisturbed = TooMuch(reference, most=100)
    told = trial()
    assert trained(guarded, TooMuch(guarded, 5, where), given, told) == trained(
        reference, undisturbed, given, smaller)
    same(guarded, reference, exactly=True)
    assert undisturbed.sizes == [3] * 20
    assert told.memory == {"num_ooms": 2, "num_replans": 2}


def test_an_oom_in_a_later_batch_redoes_that_batch_alone():
    guarded, reference = model_of(), model_of()
    step = TooMuch(guarded, most=6, after=3)
    assert trained(guarded, step) == pytest.approx(plain(reference), rel=1e-5)
    same(guarded, reference)
    assert step.sizes == [12, 12, 12, 12, 6, 6, 6, 6]


def test_running_means_count_a_batch_once():
    guarded, reference = model_of(norm=True), model_of(norm=True)
    given = batches(count=1)
    trained(guarded, TooMuch(guarded, 6), given)
    planned = trial(plan={"effective_batch": 12, "micro_batch": 6})
    trained(reference, TooMuch(reference, 100), given, planned)
    same(guarded, reference, exactly=True)


def test_gradients_of_earlier_batches_are_kept():
    guarded, reference = model_of(), model_of()
    step = TooMuch(guarded, 4)
    for inputs, labels in batches(count=3):
        oom_guard(step, (inputs, labels), guarded)
        torch.nn.functional.cross_entropy(reference(inputs), labels).backward()
    for mine, theirs in zip(guarded.parameters(), reference.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_a_mean_over_tokens_is_weighted_by_tokens():
    torch.manual_seed(4)
    guarded = torch.nn.Linear(5, 7)
    reference = copy.deepcopy(guarded)
    inputs, labels = torch.randn(8, 9, 5), torch.randint(0, 7, (8, 9))
    for row in range(8):
        labels[row, row + 1:] = -100  # row 0 has one token, row 7 eight

    def loss_of(model, part):
        return torch.nn.functional.cross_entropy(model(part["x"]).flatten(0, 1),
                                                 part["labels"].flatten(), ignore_index=-100)

    batch = {"x": inputs, "labels": labels}
    planned = trial(plan={"effective_batch": 8, "micro_batch": 3})
    loss = oom_guard(lambda part: loss_of(guarded, part), batch, guarded, planned,
                     weight=lambda part: (part["labels"] != -100).sum())
    expected = loss_of(reference, batch)
    expected.backward()
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(guarded.weight.grad, reference.weight.grad)


def test_where_one_row_does_not_fit_the_trial_is_told():
    model, told = model_of(), trial()
    with pytest.raises(hpo.OutOfMemory, match="one row does not fit: .*can't allocate memory"):
        trained(model, TooMuch(model, 0), told=told)
    assert [name for name, _ in told.sink.stages] == ["OOM Error", "replan"] * 3 + ["OOM Error"]
    assert told.sink.stages[1][1]["plan"] == {"effective_batch": 12, "micro_batch": 6}
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_strict_study_has_its_batch_literally():
    model, told = model_of(), trial(policy="strict")
    step = TooMuch(model, 6)
    with pytest.raises(hpo.OutOfMemory, match="can't allocate memory.*with plan=True"):
        trained(model, step, told=told)
    assert step.sizes == [12] and told.memory == {"num_ooms": 1}


def test_other_errors_pass():
    model = model_of()

    def step(part):
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        oom_guard(step, batches()[0], model)


def test_what_the_failed_part_held_is_gone_when_the_smaller_one_runs():
    model, held = model_of(), []

    def step(part):
        big = torch.zeros(1000)
        if len(part[0]) > 6:
            held.append(weakref.ref(big))
            raise RuntimeError(OOM)
        gc.disable()
        assert held and held[0]() is None
        return torch.nn.functional.cross_entropy(model(part[0]), part[1])

    try:
        oom_guard(step, batches()[0], model)
    finally:
        gc.enable()


def test_rows_of_what_batches_are_made_of():
    tensor = torch.arange(8).reshape(4, 2)
    batch = {"x": tensor, "names": ["a", "b", "c", "d"], "pair": (tensor, torch.tensor(3)), "n": 7}
    cut = rows_of(batch, 1, 3, num_rows(batch))
    assert torch.equal(cut["x"], tensor[1:3]) and torch.equal(cut["pair"][0], tensor[1:3])
    assert cut["names"] == ["b", "c"] and int(cut["pair"][1]) == 3 and cut["n"] == 7
    with pytest.raises(hpo.InvalidInput, match="expected a batch with a tensor"):
        oom_guard(lambda part: 0, {"n": 7}, model_of())


def test_a_limit_of_the_host_is_kept_without_a_card(tmp_path):
    """Real allocations in a process of its own, beyond the trial's limit until they are split."""
    program = textwrap.dedent("""
        import torch, hpo.torch
        from hpo import _host
        from test_torch import trial
        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.Linear(256, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1))
        x = torch.randn(8192, 256)
        model(x[:1]).sum().backward()
        limit = _host.resident_bytes() + (128 << 20)
        told = trial(limit)
        if PLANNED:
            told.job["plan"] = {"effective_batch": 8192, "micro_batch": PLANNED}
        for _ in range(3):
            hpo.torch.oom_guard(lambda part: model(part).square().mean(), x, model, told)
        used = told.memory["live_peak_bytes"]
        print(used / limit, told.memory.get("num_ooms", 0), told.final_plan["micro_batch"])
    """)
    for planned, least_ooms in ((0, 0), (8000, 1)):
        done = subprocess.run([sys.executable, "-c", program.replace("PLANNED", str(planned))],
                              capture_output=True, text=True, cwd=__file__.rsplit("/", 1)[0])
        assert done.returncode == 0, done.stderr
        share, ooms, micro_batch = done.stdout.split()
        assert 0.8 < float(share) <= 1.0, done.stdout
        assert int(ooms) >= least_ooms, done.stdout
        assert int(micro_batch) < 8000
        if not planned:
            assert int(ooms) == 0, done.stdout


def test_several_ranks_are_refused(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with pytest.raises(hpo.HpoError, match="expected one rank, got 2; on several GPUs, call backward without"):
        oom_guard(lambda part: part.sum(), torch.ones(4, 2), model_of())
