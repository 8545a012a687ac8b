"""Torch's distributed code on two emulated GPUs: one process for each, as torchrun starts them. Values
that are known are true, bytes are those of each rank. Run by scripts/with_emulated_card."""

import ctypes
import os
import pickle
import signal
import sys
import tempfile
import traceback

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if "HPO_EMULATED_CARD" not in os.environ:
    pytest.skip("there is no emulated GPU", allow_module_level=True)
# Here, so that the ranks, which are forked, need not load them.
import torch._dynamo  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.fsdp as fsdp  # noqa: E402
import torch.distributed.run  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

WIDTH = 256


def run_rank(work, rank, num_ranks, meeting_place, result):
    """In a child process: never returns."""
    try:
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", init_method=f"file://{meeting_place}", rank=rank,
                                world_size=num_ranks, device_id=torch.device("cuda", rank))
        outcome = work(rank)
    except BaseException as error:  # whatever it is, the test shows it
        traceback.print_exc()
        outcome = error if isinstance(error, dist.DistBackendError) else f"{type(error)}: {error}"
    with os.fdopen(result, "wb") as pipe:
        pickle.dump(outcome, pipe)
    sys.stderr.flush()
    os._exit(0)


def ranks(work, num_ranks=2):
    """What `work(rank)` returns in a process for each rank, by rank; None where the process died."""
    pipes, children = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for rank in range(num_ranks):
            result, written = os.pipe()
            child = os.fork()
            if child == 0:
                run_rank(work, rank, num_ranks, os.path.join(scratch, "store"), written)
            os.close(written)
            pipes.append(result)
            children.append(child)
        results = []
        for pipe in pipes:
            with os.fdopen(pipe, "rb") as file:
                data = file.read()
            results.append(pickle.loads(data) if data else None)
        for child in children:
            os.waitpid(child, 0)
    return results


def on_gpu(*values, **options):
    return torch.tensor(values, **options).cuda()


def transformer():
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


def train(model, steps=2):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        model(torch.zeros(2, 16, WIDTH, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return optimizer


def allocated_by(action):
    before = torch.cuda.memory_allocated()
    made = action()
    return made, torch.cuda.memory_allocated() - before


def test_collectives_of_known_values_are_true():
    def work(rank):
        other = 1 - rank
        total, largest = on_gpu(rank + 1.0, 2.0), on_gpu(rank + 7)
        dist.all_reduce(total)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        half = on_gpu(2.0 * (rank + 1), dtype=torch.float16)
        dist.all_reduce(half, op=dist._make_nccl_premul_sum(0.5))
        shared = on_gpu(rank * 5 + 7)
        dist.broadcast(shared, 1)
        gathered = torch.empty(4, dtype=torch.int64, device="cuda")
        dist.all_gather_into_tensor(gathered, on_gpu(rank, rank + 10))
        exchanged = torch.empty(2, dtype=torch.int64, device="cuda")
        dist.all_to_all_single(exchanged, on_gpu(10 * rank, 10 * rank + 1))
        scattered = torch.empty(1, dtype=torch.float32, device="cuda")
        dist.reduce_scatter_tensor(scattered, on_gpu(1.0, 2.0))
        received = torch.empty(1, device="cuda")
        for request in dist.batch_isend_irecv([dist.P2POp(dist.irecv, received, other),
                                               dist.P2POp(dist.isend, on_gpu(rank + 0.5), other)]):
            request.wait()
        group = dist.split_group(dist.group.WORLD, [[0, 1]])
        dist.all_reduce(split := on_gpu(rank), group=group)
        results = [part.tolist() for part in (total, largest, half, shared, gathered, exchanged,
                                              scattered, received, split)]
        dist.barrier()  # it launches a kernel, after which no value is known
        return results

    same = [[3.0, 4.0], [8], [3.0], [12], [0, 10, 1, 11]]
    assert ranks(work) == [same + [[0, 10], [2.0], [1.5], [1]], same + [[1, 11], [4.0], [0.5], [1]]]


class KnownIntegers(TorchDispatchMode):
    """Keeps values of small integer tensors over kernels, as the dry run does: a kernel makes the
    emulator forget all values, so they are set again, and each result is computed on the CPU."""

    def __init__(self):
        super().__init__()
        self.emulator = ctypes.CDLL("libhpo_emulated_card.so")
        self.values = {}  # address -> bytes of a whole tensor

    def find(self, tensor):
        size = tensor.numel() * tensor.element_size()
        found = ctypes.create_string_buffer(max(size, 1))
        known = self.emulator.hpoEmulatedKnownBytes(ctypes.c_void_p(tensor.data_ptr()), found,
                                                    ctypes.c_size_t(size))
        if not known or not tensor.is_contiguous():
            return None
        return torch.frombuffer(bytearray(found.raw), dtype=tensor.dtype)[:tensor.numel()].reshape(
            tensor.shape).clone()

    def keep(self, tensor, value):
        self.values[tensor.data_ptr()] = value.contiguous().flatten().view(torch.uint8).numpy().tobytes()

    def drop(self, tensor):
        start, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
        self.values = {address: value for address, value in self.values.items()
                       if address >= end or address + len(value) <= start}

    def restore(self):
        for address, value in self.values.items():
            self.emulator.hpoEmulatedRemember(ctypes.c_void_p(address), value,
                                              ctypes.c_size_t(len(value)))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        tree = torch.utils._pytree
        kwargs = kwargs or {}
        self.restore()
        sources = {id(leaf): self.find(leaf) for leaf in tree.tree_leaves((args, kwargs))
                   if isinstance(leaf, torch.Tensor) and leaf.is_cuda}
        result = function(*args, **kwargs)
        if function.namespace == "c10d":  # what came from other ranks is known by now
            for leaf in tree.tree_leaves(args):
                if isinstance(leaf, torch.Tensor) and (value := self.find(leaf)) is not None:
                    self.drop(leaf)
                    self.keep(leaf, value)
            return result
        outputs = [leaf for leaf in tree.tree_leaves(result)
                   if isinstance(leaf, torch.Tensor) and leaf.is_cuda and not leaf.is_floating_point()]
        if function.is_view:
            return result
        for output in outputs:  # an older tensor's address
            self.drop(output)
        if any(value is None for value in sources.values()):
            return result

        def on_cpu(leaf):
            return torch.device("cpu") if isinstance(leaf, torch.device) else sources.get(id(leaf), leaf)

        host_args, host_kwargs = tree.tree_map(on_cpu, (args, kwargs))
        for output, value in zip(outputs, tree.tree_leaves(function(*host_args, **host_kwargs))):
            if not function.__name__.startswith("empty"):
                self.keep(output, value)
        self.restore()
        return result


def test_objects_travel_with_a_shadow_of_small_integers():
    def work(rank):
        with KnownIntegers():
            gathered = [None, None]
            dist.all_gather_object(gathered, {"rank": rank, "text": "x" * (5 + 20 * rank)})
            sent = [("a", 3), [1, 2]] if rank == 0 else [None, None]
            dist.broadcast_object_list(sent, 0)
        return gathered, sent

    gathered = [{"rank": 0, "text": "x" * 5}, {"rank": 1, "text": "x" * 25}]
    assert ranks(work) == [(gathered, [("a", 3), [1, 2]])] * 2


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_ddp_holds_a_bucket_of_gradients_on_each_rank(num_ranks):
    def work(rank):
        model, bytes_of_model = allocated_by(lambda: transformer().cuda())
        parallel, more = allocated_by(
            lambda: nn.parallel.DistributedDataParallel(model, device_ids=[rank]))
        train(parallel)
        return bytes_of_model, more

    for bytes_of_model, more in ranks(work, num_ranks):
        assert 0 <= more - bytes_of_model < 1 << 20


def test_fsdp_halves_parameters_and_optimizer_state():
    def fully_shard(model):
        for layer in model.layers:
            fsdp.fully_shard(layer)
        return fsdp.fully_shard(model)

    def work(rank):
        whole = sum(parameter.nbytes for parameter in transformer().parameters())
        second = fully_shard(transformer().cuda())
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        after_second = torch.cuda.memory_allocated()
        optimizer = train(second)
        state = sum(moment.to_local().nbytes for moments in optimizer.state.values()
                    for name, moment in moments.items() if name != "step")
        torch.nn.utils.clip_grad_norm_(second.parameters(), 1.0)
        del second, optimizer
        first, after_first = allocated_by(
            lambda: fsdp.FullyShardedDataParallel(transformer(), device_id=rank,
                                                  sync_module_states=True))
        train(first)
        return whole, after_second, state, after_first

    for whole, after_second, state, after_first in ranks(work):
        assert after_second == pytest.approx(whole / 2, rel=0.01)
        assert after_first == pytest.approx(whole / 2, rel=0.01)
        assert state == pytest.approx(whole, rel=0.01)  # two moments of a half


def test_tensors_are_distributed():
    def work(rank):
        mesh = init_device_mesh("cuda", (2,))
        part = distribute_tensor(torch.arange(8.0).cuda(), mesh, [Shard(0)])
        return list(part.to_local().shape), list(part.full_tensor().shape)

    assert ranks(work) == [([4], [8])] * 2


def test_a_graph_transfers_nothing_that_is_known():
    def work(rank):
        buffer = on_gpu(1.0)
        dist.all_reduce(buffer)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            dist.all_reduce(buffer)
        buffer.copy_(torch.tensor([4.0]))
        copied = buffer.item()
        for _ in range(1 + rank):  # no rank waits for another
            graph.replay()
        return copied, buffer.item()

    assert ranks(work) == [(4.0, 0.0)] * 2


def test_a_rank_that_dies_fails_the_others():
    def work(rank):
        dist.all_reduce(on_gpu(1.0))
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(on_gpu(1.0))

    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"  # torch would end the process meanwhile
    try:
        failure, nothing = ranks(work)
    finally:
        del os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"]
    assert nothing is None
    assert "AllReduce of 1 float32 (sum), collective 2" in str(failure)
    assert "rank 1 (process" in str(failure) and "has ended" in str(failure)


def test_ranks_that_disagree_on_a_size_fail():
    def work(rank):
        dist.all_reduce(torch.zeros(4 + rank, device="cuda"))

    for failure in ranks(work):
        assert "ranks disagree on AllReduce" in str(failure)
        assert "AllReduce of 4 float32 (sum)" in str(failure)
        assert "AllReduce of 5 float32 (sum)" in str(failure)


PROGRAM = """
import sys
import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = torch.nn.Linear(16, 16)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(16, 16)), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), loader)
for (batch,) in loader:
    accelerator.backward(model(batch).sum())
    optimizer.step()
    optimizer.zero_grad()
accelerator.wait_for_everyone()
gathered = accelerator.gather(torch.tensor([accelerator.process_index + 1], device=accelerator.device))
with open(f"{sys.argv[1]}/{accelerator.process_index}", "w") as file:
    file.write(f"{type(model).__name__} {gathered.tolist()}")
"""


def test_accelerate_launches_a_program_on_two_gpus(tmp_path):
    launch = pytest.importorskip("accelerate.commands.launch", reason="accelerate is not installed")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    child = os.fork()  # its torchrun is loaded already
    if child == 0:
        sys.argv = ["accelerate-launch", "--multi_gpu", "--num_processes", "2", "--main_process_port",
                    "0", str(program), str(tmp_path)]
        os.environ["PYTHONWARNINGS"] = "ignore"
        try:
            launch.main()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    for rank in range(2):
        assert (tmp_path / str(rank)).read_text() == "DistributedDataParallel [1, 2]"


def test_one_process_uses_two_gpus():
    def work(rank):
        model = nn.DataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU()).cuda())
        model(torch.zeros(8, 64, device="cuda")).sum().backward()
        parts = [torch.tensor([1.0, 2.0]).cuda(0), torch.tensor([3.0, 4.0]).cuda(1)]
        torch.cuda.nccl.all_reduce(parts)
        return [part.tolist() for part in parts]

    assert ranks(work, num_ranks=1) == [[[4.0, 6.0]] * 2]
