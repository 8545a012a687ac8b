"""Values on an emulated GPU, whose kernels compute nothing: those of small tensors are true all the same.

Runs under scripts/with_emulated_card with one GPU. Torch is loaded once. What is followed cannot be
switched off again, so the measurement without it comes first (the fixture `shadow`).
"""

import collections
import threading

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no emulated GPU", allow_module_level=True)

from hpo_dryrun import shadow as module  # noqa: E402
from hpo_dryrun.shadow_store import ASSUMED, KNOWN, UNKNOWN  # noqa: E402


def train(optimizer_class, amp, **settings):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 64), torch.nn.Flatten(), torch.nn.Linear(640, 300),
                                torch.nn.GELU(), torch.nn.LayerNorm(300), torch.nn.Dropout(0.1),
                                torch.nn.Linear(300, 10)).cuda()
    optimizer = optimizer_class(model.parameters(), lr=1e-3, **settings)
    scaler = torch.amp.GradScaler("cuda", enabled=amp)
    for _ in range(3):
        inputs = torch.randint(0, 1000, (32, 10)).pin_memory().cuda(non_blocking=True)
        labels = torch.randint(0, 10, (32,), device="cuda")
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        loss.item()


def integer_arithmetic():
    x = torch.arange(10_000, device="cuda").reshape(100, 100)
    floats = torch.cat([x, x]).float()
    floats[:, ::2] = 3
    floats.t().contiguous().add_(1).mul_(2).clamp_(0, 5)
    torch.where(floats > 1, floats, 0.0).cumsum(0).sort(0)
    torch.stack([floats, floats]).flip(0).roll(1, 0).sum((0, 1)).max().item()
    x.remainder(7), x // 3, x % 2.5, x.bitwise_and(3), x.topk(3), x.cpu(), x.tolist()
    torch.tensor(3, device="cuda", dtype=torch.int32) * 2.0
    (torch.ones(4, device="cuda", dtype=torch.bool) * 3).sum()
    torch.zeros(5, device="cuda").scatter_add_(0, x[0, :2], torch.ones(2, device="cuda"))


def memory_of(program):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()
    program()
    after = torch.cuda.memory_stats()
    change = {name: after[name] - before[name] for name in ("allocation.all.allocated", "allocated_bytes.all.allocated",
                                                            "segment.all.allocated")}
    return {**change, **{name: after[name] for name in ("allocated_bytes.all.peak", "reserved_bytes.all.peak")}}


PROGRAMS = {
    "adam": lambda: train(torch.optim.Adam, amp=False),
    "adam one by one": lambda: train(torch.optim.Adam, amp=False, foreach=False),
    "adam on the GPU": lambda: train(torch.optim.Adam, amp=True, capturable=True),
    "fused": lambda: train(torch.optim.AdamW, amp=True, fused=True),
    "sgd": lambda: train(torch.optim.SGD, amp=True, momentum=0.9),
    "arithmetic": integer_arithmetic,
}


def take_memory():
    PROGRAMS["adam"]()  # cuBLAS takes its workspace
    return {name: memory_of(program) for name, program in PROGRAMS.items()}


@pytest.fixture(scope="module")
def memory_without():
    return take_memory()


@pytest.fixture(scope="module", autouse=True)
def shadow(memory_without):
    module.install(torch)
    return module


@pytest.fixture(autouse=True)
def fresh_findings(shadow):
    follower = module._follower
    follower.errors = 0
    follower.reads.__init__()
    sizes = follower.sizes
    sizes._found.clear()
    sizes._out_of_memory = False
    for peak in sizes._peaks.values():
        peak.live = False


def unknown(*shape):
    """Values that only a GPU computes."""
    width = 64
    return torch.nn.functional.linear(torch.empty(*shape[:-1], width, device="cuda").normal_(),
                                      torch.empty(shape[-1], width, device="cuda").normal_())


def state(tensor):
    return module._follower.store.state(tensor)


def here(row):
    return __file__ in row["where"]


# ---- Memory ----


def test_takes_no_memory_of_the_gpu(memory_without):
    assert take_memory() == memory_without
    assert module.findings()["not_followed"] == 0


# ---- Known values ----

IDS = [[3, 0, 5, 5], [0, 7, 9, 2], [4, 4, 1, 0]]
F = torch.nn.functional


def ids(device):
    return torch.tensor(IDS, device=device)


def written_in_views(device):
    x = ids(device)
    kept = x.clone()
    x[0, 1] = 4
    x[:, 2].add_(1)
    x.t()[1:3] *= 2
    x.view(-1)[::5].zero_()
    x[x > 8] = 1
    x.masked_fill_(x == 4, -100)
    x[[0, 2]] = x[[2, 0]]
    return x, kept


def filled_by_parts(device):
    buffer = torch.empty(8, 3, dtype=torch.long, device=device)
    buffer[:4] = 7
    buffer[4:, 0] = torch.arange(4, device=device)
    buffer[4:, 1:] = ids(device)[:1, :2]
    return buffer, buffer.sum(0)


def of_other_types(device):
    x = ids(device)
    return (x * 2.5, x / 2, x.to(torch.int32) * 3, x.half().sum(), x.float().mean(), x.bool() * 3, 2 - x, 2 ** x,
            x.view(torch.int32)[0], torch.tensor(3, device=device, dtype=torch.int32) + 1,
            torch.tensor(2.0, device=device, dtype=torch.half) * 3, x.remainder(3), x // 2, 7 % (x + 1),
            torch.bitwise_xor(x, 5), x.bool() & (x > 3), ~(x > 3))


def masks_of_lengths(device):
    lengths = torch.tensor([2, 4, 1], device=device)
    mask = torch.arange(int(lengths.max()), device=device)[None] < lengths[:, None]
    positions = mask.long().cumsum(-1) - 1
    positions.masked_fill_(~mask, 1)
    shifted = F.pad(lengths.cumsum(0), (1, 0))
    causal = torch.ones(4, 4, dtype=torch.bool, device=device).tril()
    return mask, positions, shifted, (causal[None] & mask[:, None]).sum((1, 2)), torch.repeat_interleave(lengths), \
        torch.repeat_interleave(ids(device), lengths, dim=0), ids(device)[mask], mask.any(1), mask.all(), \
        mask.nonzero(), mask.flatten().nonzero().flatten(), torch.where(mask), (mask.sum(1) == lengths).all()


def counts(device):
    x = ids(device)
    values, inverse, count = x.unique(return_inverse=True, return_counts=True)
    return values, inverse, count, torch.bincount(x.flatten()), torch.bincount(x.flatten(), minlength=20), \
        F.one_hot(x), F.one_hot(x, 12).sum(0), torch.histc(x.float(), bins=10, min=0, max=9), x.unique_consecutive(), \
        torch.unique(x, dim=1), x.masked_select(x > 4), torch.isin(x, torch.tensor([4, 9], device=device)), \
        torch.searchsorted(torch.arange(0, 10, 3, device=device), x), torch.count_nonzero(x), \
        torch.bucketize(x, torch.arange(0, 10, 3, device=device))


def orders(device):
    x = ids(device)
    return x.sort(dim=1, stable=True), x.argsort(dim=1, stable=True), torch.topk(torch.arange(9, device=device), 3), \
        x.max(0), x.min(), x.argmax(), x.flip(1), x.roll(1, 0), x.cummax(0), x.amax(1), \
        torch.gather(x, 1, x.clamp(max=3)), torch.cat([x, x + 1]), torch.stack([x, x]).sum(1), x.repeat(2, 1), \
        x.index_select(1, torch.tensor([2, 0], device=device)), x.triu(), torch.where(x > 3, x, -1), \
        torch.zeros_like(x).scatter_(1, x.clamp(max=3), 1), torch.zeros(6, device=device).index_add_(
            0, torch.tensor([1, 1, 5], device=device), torch.ones(3, device=device))


def factories(device):
    return torch.arange(5, device=device), torch.linspace(0, 1, 4, device=device), torch.eye(3, device=device), \
        torch.full((2,), 7, device=device), ids(device).new_zeros(3), torch.ones_like(ids(device)), \
        torch.tensor([True, False], device=device), torch.scalar_tensor(4, device=device)


def packed_sequences(device):
    positions = torch.tensor([[0, 1, 2, 0, 1, 0, 1, 2]], device=device)
    starts = (positions == 0).nonzero()[:, 1]
    lengths = torch.diff(torch.cat([starts, starts.new_tensor([positions.size(1)])]))
    return starts, lengths, int(lengths.max()), (torch.diff(positions) != 1).cumsum(-1), \
        torch.split(positions[0], lengths.tolist())


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, value.tolist(), value.cpu().tolist()
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return value


@pytest.mark.parametrize("program", [written_in_views, filled_by_parts, of_other_types, masks_of_lengths, counts,
                                     orders, factories, packed_sequences], ids=lambda program: program.__name__)
def test_known_values_are_those_of_the_cpu(program):
    assert plain(program("cuda")) == plain(program("cpu"))
    found = module.findings()
    assert (found["reads_of_unknown_values"], found["unknown_sizes"], found["not_followed"]) == (0, [], 0)


def test_the_cpu_has_no_histogram_of_integers():
    assert torch.histc(ids("cuda"), bins=10, min=0, max=9).tolist() == [3, 1, 1, 1, 2, 2, 0, 1, 0, 1]


def test_random_values_are_drawn():
    drawn = torch.randint(3, 9, (1000,), device="cuda")
    assert set(drawn.tolist()) == set(range(3, 9))
    assert sorted(torch.randperm(50, device="cuda").tolist()) == list(range(50))
    share = (torch.rand(1000, device="cuda") < 0.15).sum().item()
    assert 100 < share < 200
    before = torch.random.get_rng_state()
    torch.randint(0, 5, (9,), device="cuda")
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_storage_that_is_written_by_an_unknown_value_is_unknown_there():
    x = torch.zeros(4, 4, dtype=torch.long, device="cuda")
    x[1] = unknown(1, 4)[0].long()
    assert [state(row) for row in x] == [KNOWN, UNKNOWN, KNOWN, KNOWN]
    assert state(x) == UNKNOWN
    x[1] = 3
    assert state(x) == KNOWN and x.sum().item() == 12
    x += unknown(4, 4).long()
    assert state(x[0]) == UNKNOWN


def test_large_tensors_are_not_kept():
    assert state(torch.zeros(1 << 22, dtype=torch.bool, device="cuda")) == UNKNOWN
    assert state(torch.zeros(100_000, dtype=torch.long).cuda()) == UNKNOWN
    assert state(torch.nn.Linear(8, 8).cuda().weight) == UNKNOWN


def test_shadows_of_freed_storages_go():
    for _ in range(3000):
        torch.zeros(4, device="cuda", dtype=torch.long)
    assert len(module._follower.store._shadows) < 2500
    again = torch.empty(4, device="cuda", dtype=torch.long)
    assert state(again) == UNKNOWN


# ---- Where the program's own machinery stands between ----


def test_threads_and_backward_passes():
    found = []
    thread = threading.Thread(target=lambda: found.append((ids("cuda") > 3).nonzero().tolist()))
    thread.start()
    thread.join()
    weight = torch.nn.Parameter(torch.randn(4, 4, device="cuda"))
    weight.register_hook(lambda gradient: found.append(torch.arange(3, device="cuda").sum().item()))
    (weight @ weight).sum().backward()
    assert found == [(torch.tensor(IDS) > 3).nonzero().tolist(), 3]


def test_modes_and_transforms():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            Counting.calls += 1
            return function(*args, **(kwargs or {}))

    with Counting():
        assert (ids("cuda") + 1).sum().item() == sum(map(sum, IDS)) + 12
    assert Counting.calls > 0
    with FakeTensorMode():
        fake = torch.zeros(3, device="cuda") + 1.5
    assert fake.shape == (3,) and (torch.zeros(3) + 1.5).tolist() == [1.5] * 3
    with torch.device("cuda"):
        assert torch.arange(4)[torch.arange(4) > 1].tolist() == [2, 3]
    assert torch.vmap(lambda row: row.sum() + 1)(ids("cuda")).tolist() == [14, 19, 10]
    with torch.inference_mode():
        assert (ids("cuda") > 3).sum().item() == 6


def test_compiled_functions():
    compiled = torch.compile(lambda x: (x + 1).relu() * 2, backend="aot_eager")
    assert compiled(ids("cuda")).tolist() == ((torch.tensor(IDS) + 1) * 2).tolist()
    assert compiled(torch.tensor(IDS)).tolist() == ((torch.tensor(IDS) + 1) * 2).tolist()


def test_what_a_graph_writes_stays_unknown():
    store = module._follower.store
    counter, static = torch.zeros(2, dtype=torch.long, device="cuda"), torch.arange(3, device="cuda")
    store.capturing += 1  # as torch.cuda.CUDAGraph.capture_begin does
    counter += 1
    result = static + 1
    store.capturing -= 1
    counter.zero_()
    assert (state(counter), state(result), state(static)) == (UNKNOWN, UNKNOWN, KNOWN)


# ---- Unknown values ----


def test_indices_of_unknown_values_are_valid_and_balanced():
    routed = unknown(64, 8).topk(2, -1)[1]
    assert state(routed) == ASSUMED
    assert set(torch.bincount(routed.flatten(), minlength=8).tolist()) == {16}
    assert (routed[:, 0] != routed[:, 1]).all()
    words = unknown(4, 50_000).argmax(-1)
    assert all(2 < word < 49_990 for word in words.tolist())
    drawn = torch.multinomial(torch.softmax(unknown(4, 100), -1), 2)
    assert drawn.shape == (4, 2) and all(0 <= word < 100 for row in drawn.tolist() for word in row)
    assert unknown(3, 5).sort(0)[1].tolist() == [[row] * 5 for row in range(3)]
    assert 0 <= unknown(3, 5).argmax().item() < 15 and unknown(3, 5).max(0)[1].shape == (5,)


def test_checks_of_unknown_values_pass():
    x = unknown(100, 100)
    assert torch.isfinite(x).all() and not torch.isnan(x).any() and not (x < 0).any() and torch.equal(x, x)
    assert not x.sum() > 100
    torch.distributions.Normal(x, x.exp()).log_prob(x)
    assert module.findings()["reads_of_unknown_values"] > 0


def test_sizes_of_unknown_values_are_bounded_and_named():
    x = unknown(20, 10)
    mask = x > 0
    assert x[mask].shape == (200,) and mask.nonzero().shape == (200, 2) and mask.sum().item() == 200
    assert x.masked_select(mask).shape == (200,) and x.unique().shape == (200,)
    y = torch.zeros(20, 10, device="cuda")
    y[mask] = torch.ones(7, device="cuda")
    assert torch.bincount(x[0].long(), minlength=5).shape == (5,)
    assert torch.repeat_interleave(x[0].long()).shape == (10,)
    rows = module.findings()["unknown_sizes"]
    assert all(here(row) for row in rows)
    found = collections.Counter()
    for row in rows:
        found[row["call"], row["elements_used"], row["bound"]] += row["count"]
    assert found == {("nonzero", 200, "upper bound"): 2, ("masked_select", 200, "upper bound"): 1,
                     ("_unique2", 200, "upper bound"): 1, ("nonzero", 7, "size of what is written"): 1,
                     ("bincount", 5, "guess"): 1, ("repeat_interleave", 10, "guess"): 1}


def test_sizes_of_assumed_values_are_named():
    tokens = unknown(64, 16)
    expert = unknown(64, 4).argmax(-1)
    for number in range(4):
        assert tokens[expert == number].shape == (16, 16)
    row, = module.findings()["unknown_sizes"]
    assert (row["call"], row["count"], row["elements_used"], row["bound"]) == ("nonzero", 4, 16, "assumed values")


def test_tells_whether_such_a_size_is_alive_at_the_peak():
    torch.cuda.reset_peak_memory_stats()
    mask = unknown(1000, 100) > 0
    selected = mask.nonzero()
    large = torch.empty(64 << 20, device="cuda")
    assert module.findings()["live_at_peak"]
    del selected, large
    module.findings()  # looks at what is alive
    largest = torch.empty(128 << 20, device="cuda")
    assert not module.findings()["live_at_peak"]
    del largest
    derived = torch.nn.functional.linear(unknown(1000, 100)[unknown(1000, 1)[:, 0] > 0], unknown(50, 100))
    assert derived.shape == (1000, 50)
    largest = torch.empty(256 << 20, device="cuda")
    assert module.findings()["live_at_peak"]
    del derived, largest
    with pytest.raises(torch.OutOfMemoryError):
        selected = mask.nonzero()
        torch.empty(64 << 30, device="cuda")
    assert module.findings()["live_at_peak"]


def test_reads_are_counted_and_end_in_a_guard():
    loss = unknown(4, 4).sum()
    messages = []
    module.set_guard(messages.append, max_reads=10)
    for _ in range(9):
        loss.item()
    module.note_step()
    for _ in range(12):
        loss.item()
    ids("cuda").sum().item()
    found = module.findings()
    assert found["reads_of_unknown_values"] == 21 and found["places"][0]["count"] == 12 and here(found["places"][0])
    assert len(messages) == 1 and "10 values" in messages[0] and __file__ in messages[0]


def test_what_cannot_be_computed_leaves_the_program_as_it_is():
    wrong = torch.zeros(4, 3, dtype=torch.long, device="cuda").gather(1, ids("cuda"))
    assert wrong.shape == (3, 4) and state(wrong) == UNKNOWN
    assert module.findings()["not_followed"] == 1


# ---- Packages ----


def test_torchvision_finds_boxes():
    ops = pytest.importorskip("torchvision").ops
    corners = torch.rand(40, 2)
    boxes, scores = torch.cat([corners, corners + torch.rand(40, 2)], 1), torch.rand(40)
    assert ops.nms(boxes.cuda(), scores.cuda(), 0.5).tolist() == ops.nms(boxes, scores, 0.5).tolist()
    assert not module.findings()["unknown_sizes"]
    assert ops.nms(unknown(30, 4), unknown(30, 1)[:, 0], 0.5).shape == (30,)
    assert [row["call"] for row in module.findings()["unknown_sizes"]] == ["torchvision::nms"]


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


def padded():
    tokens = torch.randint(5, 900, (3, 7)).cuda()
    mask = torch.ones_like(tokens)
    mask[0, :3] = 0
    return {"input_ids": tokens, "attention_mask": mask}


@pytest.mark.parametrize("how", [{}, {"do_sample": True, "top_k": 10, "top_p": 0.9}, {"num_beams": 4},
                                 {"num_beams": 3, "do_sample": True}], ids=["greedy", "sample", "beam", "beam sample"])
def test_generation_ends_at_its_longest_length(transformers, how):
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=1, n_embd=32, n_head=2, vocab_size=1000, bos_token_id=0, eos_token_id=999)).cuda().eval()
    made = model.generate(**padded(), max_new_tokens=8, pad_token_id=999, **{"do_sample": False, **how})
    assert made.shape == (3, 15)
    assert all(0 <= word < 1000 for row in made.tolist() for word in row)


@pytest.mark.parametrize("experts", ["eager", "grouped_mm", "batched_mm"])
def test_experts_get_equally_many_tokens(transformers, experts):
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        num_local_experts=4, vocab_size=1000)).cuda()
    model.set_experts_implementation(experts)
    batch = padded()
    model(**batch, labels=batch["input_ids"]).loss.backward()
    rows = module.findings()["unknown_sizes"]
    assert all(row["bound"] == "assumed values" and row["elements_used"] in range(4, 12) for row in rows)
    assert bool(rows) == (experts == "eager")


def test_trainer_stops_early_and_scores_tokens(transformers, tmp_path):
    class Sentences(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            length = 3 + index % 4
            mask = (torch.arange(8) < length).long()
            return {"input_ids": 5 + torch.arange(8), "attention_mask": mask,
                    "labels": torch.arange(8).remainder(3).masked_fill(mask == 0, -100)}

    def metrics(predictions):
        scored = predictions.label_ids != -100
        return {"tokens": int(scored.sum()), "right": float((predictions.predictions == predictions.label_ids)[scored].mean())}

    model = transformers.BertForTokenClassification(transformers.BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=100, num_labels=3))
    trainer = transformers.Trainer(
        model=model, train_dataset=Sentences(), eval_dataset=Sentences(), compute_metrics=metrics,
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
        callbacks=[transformers.EarlyStoppingCallback(1)],
        args=transformers.TrainingArguments(
            output_dir=str(tmp_path), per_device_train_batch_size=4, num_train_epochs=50, eval_strategy="epoch",
            save_strategy="best", metric_for_best_model="loss", load_best_model_at_end=True, report_to=[],
            disable_tqdm=True))
    trainer.train()
    assert trainer.state.epoch < 50
    assert trainer.evaluate()["eval_tokens"] == sum(3 + index % 4 for index in range(8))
