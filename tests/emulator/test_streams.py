"""Stream capture, memory pools, values, compiled kernels: torch's own code on an emulated GPU.
Run by scripts/with_emulated_card."""

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU, not even an emulated one", allow_module_level=True)

MIB = 1 << 20


@pytest.fixture(autouse=True)
def clean_gpu():
    yield
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def zeros(*shape):
    return torch.zeros(*shape, device="cuda")


# Values of small copies.


def test_what_is_copied_to_the_gpu_is_read_back():
    given = torch.tensor([3, 1, 2])
    there = given.cuda()
    assert there.tolist() == [3, 1, 2] and there[1].item() == 1
    again = torch.empty_like(there)
    again.copy_(there)
    assert again.tolist() == [3, 1, 2]
    pinned = torch.arange(10).pin_memory()
    back = torch.empty_like(pinned).pin_memory()
    back.copy_(pinned.to("cuda", non_blocking=True), non_blocking=True)
    torch.cuda.synchronize()
    assert back.tolist() == list(range(10))
    assert torch.tensor(True, device="cuda").item() is True


def test_a_kernel_leaves_no_value_that_may_be_false():
    there = torch.tensor([3, 1, 2], device="cuda")
    there += 1
    assert there.tolist() == [0, 0, 0]
    other = torch.tensor([5], device="cuda")
    zeros(4)
    assert other.item() == 0
    left = torch.tensor([[1.0, 2.0]], device="cuda")
    torch.mm(left, left.t())
    assert left.tolist() == [[0.0, 0.0]]


def test_a_convolution_leaves_no_value_in_its_result():
    x, weight = torch.ones(1, 1, 4, 4).cuda(), torch.ones(1, 1, 3, 3).cuda()
    freed = torch.full((1, 1, 2, 2), 7.0).cuda()
    address = freed.data_ptr()
    del freed
    result = torch.nn.functional.conv2d(x, weight)
    assert result.data_ptr() == address
    assert result.cpu().abs().max() == 0


def test_python_code_reads_and_sets_values_of_the_gpu():
    shared = ctypes.CDLL("libhpo_emulated_card.so")
    there, out = torch.tensor([258], device="cuda"), ctypes.create_string_buffer(8)
    address = ctypes.c_void_p(there.data_ptr())
    assert shared.hpoEmulatedKnownBytes(address, out, ctypes.c_size_t(8)) == 1
    assert out.raw == bytes([2, 1, 0, 0, 0, 0, 0, 0])
    there.zero_()  # a kernel
    assert shared.hpoEmulatedKnownBytes(address, out, ctypes.c_size_t(8)) == 0
    shared.hpoEmulatedRemember(address, b"\5", ctypes.c_size_t(1))
    assert shared.hpoEmulatedKnownBytes(address, out, ctypes.c_size_t(8)) == 0
    shared.hpoEmulatedRemember(address, bytes([5] + 7 * [0]), ctypes.c_size_t(8))
    assert there.item() == 5


def test_a_graph_repeats_its_copies():
    source, target = torch.tensor([1, 2]).pin_memory(), torch.tensor([0, 0]).pin_memory()
    there = torch.empty(2, dtype=torch.long, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        there.copy_(source, non_blocking=True)
        target.copy_(there, non_blocking=True)
    assert target.tolist() == [0, 0]
    source[0] = 7
    graph.replay()
    assert target.tolist() == [7, 2]


# Streams. They come before captures that fail: torch's allocator looks at no events after those.


def test_a_tensor_recorded_on_another_stream_is_not_reused_before_it_has_been_seen():
    side = torch.cuda.Stream(priority=-1)
    assert side.priority == -1

    def active():
        return torch.cuda.memory_stats().get("active_bytes.all.current", 0)

    before = active()
    with torch.cuda.stream(side):
        x = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
        x.record_stream(torch.cuda.default_stream())
    address = x.data_ptr()
    del x
    assert active() == before + 4 * MIB  # until the allocator looks at its events
    with torch.cuda.stream(side):
        y = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    assert y.data_ptr() == address


def test_events_profiler_and_host_functions():
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    end.synchronize()
    assert start.query() and start.elapsed_time(end) > 0
    with torch.cuda.profiler.profile():
        zeros(8)


# Capture and graphs.


def test_a_capture_takes_memory_of_its_own_pool_and_spreads_over_streams():
    layer, x, side = torch.nn.Linear(256, 256).cuda(), zeros(256, 256), torch.cuda.Stream()
    layer(x)
    graph, second = torch.cuda.CUDAGraph(keep_graph=True), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = layer(x)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            assert torch.cuda.is_current_stream_capturing()
            z = y * 2
        torch.cuda.current_stream().wait_stream(side)
        out = y + z
    assert not torch.cuda.is_current_stream_capturing()
    with torch.cuda.stream(side):
        assert not torch.cuda.is_current_stream_capturing()
    pools = {segment["segment_pool_id"] for segment in torch.cuda.memory_snapshot()}
    assert graph.pool() in pools and (0, 0) in pools
    graph.instantiate()
    for _ in range(2):
        graph.replay()
    reserved = torch.cuda.memory_reserved()
    with torch.cuda.graph(second, pool=graph.pool()):
        del z
        out = out * 2
    second.replay()
    assert torch.cuda.memory_reserved() == reserved
    graph.reset()
    second.reset()


def test_graphed_callables_train():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    graphed = torch.cuda.make_graphed_callables(model, (zeros(8, 64).requires_grad_(),))
    for _ in range(3):
        optimizer.zero_grad()
        graphed(zeros(8, 64)).sum().backward()
        optimizer.step()
    assert model[0].weight.grad.shape == (64, 64)


def test_a_graph_is_drawn_and_an_empty_one_is_noticed(tmp_path):
    x = zeros(8)
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    graph.enable_debug_mode()
    with torch.cuda.graph(graph):
        y = (x * 2) + 1
    graph.debug_dump(str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text().count("kernel") == 2
    assert y.shape == x.shape
    with pytest.warns(UserWarning, match="CUDA Graph is empty"), \
            torch.cuda.graph(torch.cuda.CUDAGraph()):
        pass


@pytest.mark.parametrize("spoil", [
    lambda x: x.sum().item(),
    lambda x: torch.cuda.current_stream().synchronize(),
    lambda x: torch.cuda.synchronize(),
    lambda x: torch.ones(2).pin_memory().copy_(x[:2]),
], ids=["item", "stream", "device", "copy"])
def test_waiting_during_a_capture_is_an_error_that_leaves_torch_usable(spoil):
    x, graph = zeros(1024), torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="captur"):
        with torch.cuda.graph(graph):
            spoil(x * 2)
    del graph
    assert not torch.cuda.is_current_stream_capturing()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    graph.replay()
    assert y.shape == x.shape


def test_a_stream_that_was_not_joined_ends_a_capture_with_an_error():
    x, side = zeros(8), torch.cuda.Stream()
    with pytest.raises(RuntimeError, match="does not wait for all streams"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                x * 2


def test_running_out_of_memory_in_a_capture():
    with pytest.raises(torch.OutOfMemoryError):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    assert zeros(8).shape == (8,)


# The driver, as programs find it.


def test_programs_use_the_driver_library():
    cuda = ctypes.CDLL("libcuda.so.1")
    value, size, free = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_size_t()
    text = ctypes.create_string_buffer(100)
    assert cuda.cuInit(0) == 0
    assert cuda.cuDriverGetVersion(ctypes.byref(value)) == 0 and value.value >= 12000
    assert cuda.cuDeviceGetCount(ctypes.byref(value)) == 0
    assert value.value == torch.cuda.device_count()
    assert cuda.cuDeviceGet(ctypes.byref(value), 99) == 101
    assert cuda.cuDeviceGetName(text, 100, 0) == 0
    assert text.value.decode() == torch.cuda.get_device_name()
    properties = torch.cuda.get_device_properties(0)
    for attribute, expected in [(16, properties.multi_processor_count), (75, properties.major),
                                (97, properties.shared_memory_per_block_optin)]:
        assert cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0) == 0
        assert value.value == expected
    assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(size)) == 0
    assert (free.value, size.value) == torch.cuda.mem_get_info()

    pointer, back = ctypes.c_uint64(), ctypes.create_string_buffer(6)
    assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), 4 * MIB) == 0
    assert torch.cuda.mem_get_info()[0] == free.value - 4 * MIB
    assert cuda.cuMemcpyHtoD_v2(pointer, b"hello", 6) == 0
    assert cuda.cuMemcpyDtoH_v2(back, pointer, 6) == 0 and back.value == b"hello"
    assert cuda.cuMemFree_v2(pointer) == 0 and cuda.cuMemFree_v2(pointer) == 1
    assert cuda.cuPointerGetAttribute(ctypes.byref(pointer), 3, ctypes.c_uint64(4096)) == 1

    found = ctypes.c_void_p()
    assert cuda.cuGetProcAddress_v2(b"cuMemGetInfo", ctypes.byref(found), 13000,
                                    ctypes.c_uint64(0), None) == 0
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    assert prototype(found.value)(ctypes.byref(free), ctypes.byref(size)) == 0
    assert size.value == properties.total_memory


def child(program, **environment):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], text=True, timeout=120,
                          env={**os.environ, **environment}, capture_output=True, check=False)


def test_a_call_of_the_driver_that_is_not_emulated_names_itself():
    done = child("""
        import ctypes
        cuda, found = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        cuda.cuGetProcAddress_v2(b"cuGreenCtxCreate", ctypes.byref(found), 13000, 0, None)
        ctypes.CFUNCTYPE(ctypes.c_int)(found.value)()
    """)
    assert done.returncode == -6 and "cuGreenCtxCreate is not emulated" in done.stderr


def test_a_library_with_a_runtime_of_its_own_is_named(tmp_path):
    (tmp_path / "own.c").write_text("""
        #include <dlfcn.h>
        int begin(void) {
          int (*call)(const void**, const void*) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetExportTable");
          const void* table;
          return call(&table, 0) + 1;
        }
    """)
    library = tmp_path / "libown.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library, tmp_path / "own.c", "-ldl"], check=True)
    done = child(f"import ctypes; ctypes.CDLL('{library}').begin()")
    assert done.returncode == 2 and f"{library} has a CUDA runtime of its own, linked statically" in done.stderr


# The driver's own pools.


def test_cuda_malloc_async():
    done = child("""
        import json, torch
        MIB = 1 << 20
        empty = lambda bytes: torch.empty(bytes, dtype=torch.uint8, device="cuda")
        stats = lambda: (torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
        seen = [torch.cuda.get_allocator_backend()]
        x, y = empty(4 * MIB), empty(30 * MIB)
        seen.append(stats())
        del y
        seen.append(stats())
        torch.cuda.empty_cache()
        seen.append(stats())
        seen.append((torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()))
        torch.cuda.reset_peak_memory_stats()
        seen.append((torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()))
        layer = torch.nn.Linear(64, 64).cuda()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            z = layer(torch.ones(64, 64, device="cuda"))
            z.record_stream(torch.cuda.default_stream())
        z.sum().backward()
        seen.append(torch.tensor([1, 2], device="cuda").tolist())
        try:
            empty(1 << 40)
        except torch.OutOfMemoryError as error:
            seen.append(str(error).splitlines()[0])
        print(json.dumps(seen))
    """, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        "cudaMallocAsync", [34 * MIB, 34 * MIB],
        [4 * MIB, 34 * MIB], [4 * MIB, 4 * MIB], [34 * MIB, 34 * MIB], [4 * MIB, 4 * MIB], [1, 2],
        "Allocation on device 0 would exceed allowed memory. (out of memory)"]


# Compiled programs.


def compiled(**options):
    torch._dynamo.reset()
    layer = torch.nn.Linear(64, 32).cuda()
    run = torch.compile(lambda x: torch.nn.functional.gelu(layer(x)).sum(), **options)
    for _ in range(4):
        layer.zero_grad()
        run(zeros(16, 64)).backward()
    torch.cuda.synchronize()
    return layer.weight.grad.shape


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_without_kernels_of_its_own(backend):
    assert compiled(backend=backend) == (32, 64)


needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None,
                                  reason="triton is not installed")


@needs_triton
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_by_inductor(mode, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    with torch._inductor.config.patch(compile_threads=1):
        assert compiled(mode=mode) == (32, 64)


@needs_triton
def test_a_triton_kernel_of_the_program(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    source = tmp_path / "kernels.py"  # triton reads the source of its kernels
    source.write_text(textwrap.dedent("""
        import triton
        import triton.language as tl

        @triton.jit
        def double(x, out, n, block: tl.constexpr):
            at = tl.program_id(0) * block + tl.arange(0, block)
            tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)
    """))
    spec = importlib.util.spec_from_file_location("kernels", source)
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    x = torch.ones(5000, device="cuda")
    out = torch.tensor([1.0], device="cuda").expand(5000).contiguous()
    kernels.double[(5,)](x, out, 5000, block=1024)
    assert out[0].item() == 0
    with pytest.raises(ValueError, match="cannot be accessed"):
        kernels.double[(5,)](torch.ones(5000), out, 5000, block=1024)


# Managed memory, as bitsandbytes' paged optimizers allocate it.


def test_managed_memory_is_the_hosts():
    cudart = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    pointer = ctypes.c_void_p()
    assert cudart.cudaMallocManaged(ctypes.byref(pointer), ctypes.c_size_t(8 * MIB), 1) == 0
    ctypes.memset(pointer, 7, 8 * MIB)
    assert ctypes.string_at(pointer.value + 8 * MIB - 1, 1) == b"\7"
    assert torch.cuda.mem_get_info()[0] == free
    assert cudart.cudaFree(pointer) == 0
    assert cudart.cudaFree(pointer) != 0
    cudart.cudaGetLastError()  # else torch's next call reports it
