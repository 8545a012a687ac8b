"""Stand-ins of Python packages: what flash-attn's functions allocate, and what is said where it is missing."""

import importlib.util
import json
import subprocess
import sys

import pytest
from hpo_dryrun import packages

FOLDER = packages.folders()["flash-attn"]
PROGRAM = '''
import importlib.metadata, json, torch
from flash_attn import (__version__, flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func,
                        flash_attn_varlen_func)
from flash_attn_2_cuda import _num_splits
from flash_attn.bert_padding import pad_input, unpad_input

assert importlib.metadata.version("flash_attn") == __version__
assert importlib.metadata.packages_distributions()["flash_attn"] == ["flash-attn"]
BATCH, ROWS, HEADS, SHARED, SIZE = 2, 1000, 16, 4, 128


def tensor(*shape):
    return torch.zeros(shape, dtype=torch.bfloat16, device="cuda", requires_grad=True)


def requested(when):
    return torch.cuda.memory_stats()["requested_bytes.all." + when]


def taken(function, *tensors, **settings):
    """Bytes requested and held after the forward pass, and most in the backward pass, beyond those before; shape."""
    before = requested("current")
    out = function(*tensors, causal=True, **settings)
    kept = requested("current") - before
    gradient = torch.zeros_like(out)
    torch.cuda.reset_peak_memory_stats()
    held = requested("current")
    out.backward(gradient)
    found = [kept, requested("peak") - held, list(out.shape)]
    for one in tensors:
        assert one.grad.shape == one.shape
        one.grad = None
    return found


q, kv = tensor(BATCH, ROWS, HEADS, SIZE), tensor(BATCH, ROWS, 2, HEADS, SIZE)
k, v = (tensor(BATCH, ROWS, SHARED, SIZE) for _ in range(2))
begins = torch.arange(0, (BATCH + 1) * ROWS, ROWS, dtype=torch.int32, device="cuda")
rows = [one.detach().flatten(0, 1).requires_grad_() for one in (q, k, v)]
found = {"kvpacked": taken(flash_attn_kvpacked_func, q, kv),
         "qkvpacked": taken(flash_attn_qkvpacked_func, tensor(BATCH, ROWS, 3, HEADS, SIZE)),
         "grouped": taken(flash_attn_func, q, k, v),
         "padded": taken(flash_attn_func, *(tensor(BATCH, ROWS, HEADS, 100) for _ in range(3))),
         "varlen": taken(lambda *own, causal: flash_attn_varlen_func(*own, begins, begins, ROWS, ROWS, causal=causal),
                         *rows)}
found["splits"] = {f"{blocks}, {places}, {keys}": _num_splits(blocks, places, keys) for blocks, places, keys in (
    (200, 216, 16), (172, 216, 16), (16, 216, 16), (8, 216, 4), (1, 216, 300))}
mask = torch.ones(BATCH, ROWS, dtype=torch.bool, device="cuda")
mask[0, 300:] = False
kept, indices, begins, longest, used = unpad_input(q, mask)
found["unpadded"] = [list(kept.shape), longest, begins.tolist(), list(pad_input(kept, indices, BATCH, ROWS).shape)]
'''
STEPS = '''
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1)
while True:
    model(torch.zeros(8, 8, device="cuda")).sum().backward()
    optimizer.step()
'''


@pytest.fixture(name="run", scope="module")
def a_run_with_the_stand_in(tmp_path_factory):
    """(document of the GPU, what the program printed)"""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if importlib.util.find_spec("flash_attn"):
        pytest.skip("flash-attn is installed, so that no stand-in is imported")
    program = tmp_path_factory.mktemp("program") / "program.py"
    program.write_text(PROGRAM + f"print(json.dumps(found), file=open({str(program)!r} + '.json', 'w'))\n" + STEPS)
    words = ["--json", "--gpu", "a100", "--stand-in", "flash-attn", "--", sys.executable, str(program)]
    done = subprocess.run([sys.executable, "-m", "hpo_dryrun", *words], capture_output=True, text=True, check=False,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["gpus"][0], json.loads(program.with_suffix(".py.json").read_text())


BATCH, ROWS, HEADS, SHARED, SIZE = 2, 1000, 16, 4, 128
OF_HEADS = 2 * BATCH * ROWS * HEADS * SIZE  # bytes in 16 bits
OF_SHARED = 2 * BATCH * ROWS * SHARED * SIZE
LSE = 4 * BATCH * HEADS * ROWS
RNG_STATE = 16
ROUNDED = 4 * BATCH * HEADS * 1024  # softmax_d
ACCUMULATOR = ROUNDED * SIZE


def test_it_is_named_in_the_report(run):
    assert "flash-attn: its stand-in was used" in run[0]["notes"]


def test_the_result_and_what_the_backward_pass_needs_stay(run):
    for name in ("kvpacked", "qkvpacked", "grouped"):
        kept, _, shape = run[1][name]
        assert kept == OF_HEADS + LSE + RNG_STATE, name
        assert shape == [BATCH, ROWS, HEADS, SIZE]
    assert run[1]["varlen"][0] == OF_HEADS + LSE + RNG_STATE
    assert run[1]["varlen"][2] == [BATCH * ROWS, HEADS, SIZE]


def test_the_backward_pass_takes_gradients_and_accumulators(run):
    assert run[1]["kvpacked"][1] == OF_HEADS + 2 * OF_HEADS + ROUNDED + ACCUMULATOR
    assert run[1]["qkvpacked"][1] == 3 * OF_HEADS + ROUNDED + ACCUMULATOR
    shared = OF_HEADS + OF_SHARED + OF_SHARED + OF_HEADS + OF_HEADS
    assert run[1]["grouped"][1] == shared + ROUNDED + ACCUMULATOR
    rows = BATCH * ROWS + 128 * BATCH
    assert run[1]["varlen"][1] == shared + 4 * HEADS * rows + 4 * HEADS * rows * SIZE


def test_heads_of_another_size_are_padded(run):
    kept, _, shape = run[1]["padded"]
    own = 2 * BATCH * ROWS * HEADS * 104
    assert kept == own + own + own + own + LSE + RNG_STATE
    assert shape == [BATCH, ROWS, HEADS, 100]


def test_padding_is_taken_out_by_the_masks_values(run):
    assert run[1]["unpadded"] == [[1300, HEADS, SIZE], ROWS, [0, 300, 1300], [BATCH, ROWS, HEADS, SIZE]]


def test_the_keys_are_split_where_rows_do_not_fill_the_gpu(run):
    # Blocks of rows, places for them on the GPU, blocks of keys. 6 x 172 blocks use 4.8 of 5 times 216 places; 5 would
    # split 16 no further than 4.
    assert run[1]["splits"] == {"200, 216, 16": 1, "172, 216, 16": 6, "16, 216, 16": 8, "8, 216, 4": 4,
                                "1, 216, 300": 100}


@pytest.mark.parametrize(("error", "is_named"), [
    ("ModuleNotFoundError: No module named 'flash_attn'", True),
    ("ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: the package "
     "for FlashAttention2 doesn't seem to be installed.", True),
    ("ModuleNotFoundError: No module named 'flash_attention'", False),
    ("ValueError: FlashAttention2", False)])
def test_where_it_is_missing_the_option_is_named(error, is_named):
    assert ("; --stand-in flash-attn takes the place" in packages.hint(error)) == is_named


def test_every_stand_in_has_a_folder():
    root = FOLDER.parent
    assert sorted(packages.folders()) == sorted(path.name for path in root.iterdir() if path.is_dir())
