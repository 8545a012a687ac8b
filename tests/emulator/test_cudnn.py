"""The emulated cuDNN (emulator/cudnn) as torch's own code uses it: what runs, and how much memory it
takes. Run by scripts/with_emulated_card on an A100 (device 0) and an H100 (device 1)."""

import ctypes
import gc
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if torch.cuda.device_count() < 2:
    pytest.skip("there are no emulated GPUs", allow_module_level=True)

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

TYPES = [torch.float32, torch.float16, torch.bfloat16]
MIB = 1 << 20


@pytest.fixture(autouse=True)
def fresh_peak():
    torch.backends.cudnn.benchmark = False
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def peak_above(work, device=0):
    """Bytes that `work` allocates at most above what was held before."""
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    kept = work()
    peak = torch.cuda.max_memory_allocated(device) - before
    del kept
    return peak


def backward(module, *inputs):
    out = module(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    out.float().sum().backward()
    return out


class Residual(nn.Module):
    """A block of a ResNet-50."""

    def __init__(self, channels):
        super().__init__()
        narrow = channels // 4
        self.body = nn.Sequential(
            nn.Conv2d(channels, narrow, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(),
            nn.Conv2d(narrow, narrow, 3, padding=1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU(),
            nn.Conv2d(narrow, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return functional.relu(x + self.body(x))


def residual_network():
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                         nn.MaxPool2d(3, 2, 1), Residual(64), Residual(64),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()


def train(model, steps, dtype, memory_format):
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(steps):
        x = torch.zeros(8, 3, 64, 64, device="cuda").to(memory_format=memory_format)
        with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
            loss = functional.cross_entropy(model(x), torch.zeros(8, dtype=torch.long,
                                                                  device="cuda"))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("tries_engines", [False, True])
def test_a_residual_network_trains_and_evaluates(dtype, memory_format, tries_engines):
    torch.backends.cudnn.benchmark = tries_engines
    model = residual_network().to(memory_format=memory_format)
    train(model, 2, dtype, memory_format)
    peak = torch.cuda.max_memory_allocated()
    assert peak > 8 * 64 * 32 * 32 * 4  # the first activation alone
    train(model, 2, dtype, memory_format)
    assert torch.cuda.max_memory_allocated() == pytest.approx(peak, rel=0.02)
    model.eval()
    with torch.no_grad():
        assert model(torch.zeros(8, 3, 64, 64, device="cuda")).shape == (8, 10)


CONVOLUTIONS = [
    (lambda: nn.Conv1d(16, 32, 3), (2, 16, 40)),
    (lambda: nn.Conv2d(16, 32, 3, groups=4), (2, 16, 9, 9)),
    (lambda: nn.Conv2d(16, 16, 3, groups=16), (2, 16, 9, 9)),
    (lambda: nn.Conv2d(16, 32, 3, dilation=2, stride=2, padding=2), (2, 16, 9, 9)),
    (lambda: nn.Conv3d(4, 8, 3), (2, 4, 8, 8, 8)),
    (lambda: nn.ConvTranspose2d(16, 8, 3, 2), (2, 16, 9, 9)),
    (lambda: nn.ConvTranspose3d(4, 8, 3, groups=2), (2, 4, 5, 5, 5)),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("make, shape", CONVOLUTIONS)
def test_convolutions_of_all_kinds_go_forward_and_back(make, shape, dtype):
    module = make().to("cuda", dtype)
    x = torch.zeros(shape, device="cuda", dtype=dtype, requires_grad=True)
    backward(module, x)
    assert x.grad.shape == x.shape
    assert all(p.grad.shape == p.shape for p in module.parameters())


def test_a_convolution_in_16_bits_copies_its_inputs_unless_channels_are_last():
    x = torch.zeros(4, 64, 128, 128, device="cuda", dtype=torch.float16)
    convolution = nn.Conv2d(64, 64, 3, padding=1, bias=False).to("cuda", torch.float16)
    output = x.nbytes
    with torch.no_grad():
        nchw = peak_above(lambda: convolution(x))
        wide = x.float()
        in_32_bits = peak_above(lambda: convolution.float()(wide)) - convolution.weight.nbytes
        convolution.half().to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
        channels_last = peak_above(lambda: convolution(x))
    assert channels_last == output
    assert in_32_bits <= 2 * output
    assert nchw == 2 * output + convolution.weight.nbytes


def test_a_convolution_does_without_its_copies_where_memory_is_short():
    x = torch.zeros(8, 64, 256, 256, device="cuda", dtype=torch.float16)
    convolution = nn.Conv2d(64, 64, 3, padding=1, bias=False).to("cuda", torch.float16)
    allowed = torch.cuda.memory_reserved() + 1.5 * x.nbytes  # the output, and not the copy
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(allowed / total)
    try:
        with torch.no_grad():
            assert convolution(x).shape == x.shape
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_batch_norm_keeps_statistics_and_no_more(dtype, memory_format):
    norm = nn.BatchNorm2d(256).cuda()
    x = torch.zeros(8, 256, 32, 32, device="cuda", dtype=dtype).to(memory_format=memory_format)
    x.requires_grad_()
    assert x.nbytes <= peak_above(lambda: norm(x)) < x.nbytes + 256 * 1024
    backward(norm, x)
    assert x.grad.shape == x.shape
    norm.eval()
    with torch.no_grad():
        assert norm(x).shape == x.shape


NETWORKS = [
    (nn.LSTM, {}),
    (nn.LSTM, {"num_layers": 3, "bidirectional": True, "dropout": 0.1}),
    (nn.LSTM, {"proj_size": 8}),
    (nn.LSTM, {"proj_size": 8, "num_layers": 2, "bidirectional": True}),
    (nn.LSTM, {"bias": False}),
    (nn.LSTM, {"bias": False, "proj_size": 8, "num_layers": 2}),
    (nn.GRU, {"batch_first": True}),
    (nn.GRU, {"num_layers": 2, "bidirectional": True, "dropout": 0.1}),
    (nn.RNN, {"num_layers": 2}),
    (nn.RNN, {"nonlinearity": "relu", "bidirectional": True}),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind, options", NETWORKS)
def test_recurrent_networks(kind, options, dtype):
    network = kind(16, 32, **options).to("cuda", dtype)
    in_one_piece = dtype != torch.bfloat16  # torch does not flatten those
    if in_one_piece:
        check_weights(network, options)
    lengths = [7, 5, 2]
    x = torch.zeros(7, 3, 16, device="cuda", dtype=dtype, requires_grad=True)
    batch = x.transpose(0, 1) if options.get("batch_first") else x
    packed = nn.utils.rnn.pack_padded_sequence(batch.detach(), lengths,
                                               batch_first=options.get("batch_first", False))
    with warnings.catch_warnings():
        warnings.simplefilter("error" if in_one_piece else "ignore")  # torch warns of others
        backward(network, batch)
        network(packed)[0].data.float().sum().backward()
        network.eval()
        with torch.no_grad():
            network(batch)
    assert x.grad.shape == x.shape
    assert all(p.grad.shape == p.shape for p in network.parameters())


def check_weights(network, options):
    """They are views of one buffer, without gaps; it holds biases where there are none, too."""
    parameters = list(network.parameters())
    storages = {p.untyped_storage().data_ptr() for p in parameters}
    assert len(storages) == 1
    ranges = sorted((p.data_ptr(), p.data_ptr() + p.nbytes) for p in parameters)
    assert all(end == start for (_, end), (start, _) in zip(ranges, ranges[1:]))
    expected = sum(p.nbytes for p in type(network)(16, 32, **{**options, "bias": True})
                   .to(parameters[0].dtype).parameters())
    assert parameters[0].untyped_storage().nbytes() == expected


def test_an_lstm_keeps_what_was_published():
    """github.com/pytorch/pytorch/issues/2895: 736,000,000 bytes for 1,000 steps of 25."""
    lstm = nn.LSTM(123, 320, 4).cuda()
    x = torch.zeros(1000, 25, 123, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()
    out = lstm(x)
    kept = torch.cuda.memory_allocated() - before
    outputs = sum(t.nbytes for t in (out[0], *out[1]))
    zeros = sum(t.nbytes for t in out[1])  # the first states
    assert kept == pytest.approx(736_000_000 + outputs + zeros, abs=MIB)


def test_ctc_and_spatial_transformers():
    scores = torch.zeros(50, 3, 20, device="cuda", requires_grad=True)
    labels = torch.ones(30, dtype=torch.int)
    lengths = [torch.full((3,), n, dtype=torch.int, device="cuda") for n in (50, 10)]
    functional.ctc_loss(scores.log_softmax(2), labels, *lengths).backward()
    assert scores.grad.shape == scores.shape
    angles = torch.zeros(2, 2, 3, device="cuda", requires_grad=True)
    image = torch.zeros(2, 3, 8, 8, device="cuda", requires_grad=True)
    grid = functional.affine_grid(angles, (2, 3, 8, 8), align_corners=True)
    functional.grid_sample(image, grid, align_corners=True).sum().backward()
    assert (angles.grad.shape, image.grad.shape) == (angles.shape, image.shape)


ATTENTIONS = [
    {},
    {"is_causal": True},
    {"dropout_p": 0.125},  # torch 2.13 wants a multiple of 1 / 16
    {"mask": True},
    {"kv_heads": 2, "kv_length": 90, "enable_gqa": True},
]


def attend(options, device, dtype=torch.bfloat16, length=128):
    options = dict(options)
    kv_shape = (2, options.pop("kv_heads", 4), options.pop("kv_length", length), 64)
    q, k, v = (torch.zeros(shape, device=device, dtype=dtype, requires_grad=True)
               for shape in ((2, 4, length, 64), kv_shape, kv_shape))
    if options.pop("mask", False):
        options["attn_mask"] = torch.zeros(2, 1, length, kv_shape[2], device=device, dtype=dtype)
    out = functional.scaled_dot_product_attention(q, k, v, **options)
    out.sum().backward()
    assert (q.grad.shape, k.grad.shape, v.grad.shape) == (q.shape, k.shape, v.shape)
    return out


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("options", ATTENTIONS)
def test_attention_by_cudnn(options, dtype):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        out = attend(options, "cuda:1", dtype)
    assert out.grad_fn.name() == "ScaledDotProductCudnnAttentionBackward0"


def test_attention_keeps_no_scores():
    length = 4096
    scores = 2 * 4 * length * length * 2
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        assert peak_above(lambda: attend({}, "cuda:1", length=length), device=1) < scores // 2


def used_host_bytes():
    """Of the C library's heap."""
    class Heap(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost")]
    measure = ctypes.CDLL(None).mallinfo2
    measure.restype = Heap
    gc.collect()
    return measure().uordblks


def test_nothing_is_left_of_many_steps():
    model = residual_network()
    lstm = nn.LSTM(16, 32, 2, dropout=0.1).cuda()

    def step():
        train(model, 1, torch.float16, torch.contiguous_format)
        backward(lstm, torch.zeros(5, 3, 16, device="cuda"))

    for _ in range(5):
        step()
    before = used_host_bytes()
    for _ in range(40):
        step()
    # A step makes some 100 descriptors: had they stayed, it would be hundreds of KiB.
    assert used_host_bytes() - before < 64 * 1024


UNKNOWN = """
import ctypes
cudnn = ctypes.CDLL("libcudnn.so.9")
made = ctypes.c_void_p()
assert cudnn.cudnnBackendCreateDescriptor(17, ctypes.byref(made)) == 0
number = ctypes.c_int64(1)
cudnn.cudnnBackendSetAttribute(made, 999, 3, ctypes.c_int64(1), ctypes.byref(number))
"""


def test_an_unknown_attribute_ends_the_program_with_its_name():
    done = subprocess.run([sys.executable, "-c", UNKNOWN], capture_output=True, text=True,
                          check=False)
    assert done.returncode != 0
    assert done.stderr == ("emulated card: cudnnBackendSetAttribute of attribute 999 of "
                           "CUDNN_BACKEND_TENSOR_DESCRIPTOR is not emulated\n")
