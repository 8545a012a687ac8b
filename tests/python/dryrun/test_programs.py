"""Programs of torch's on the emulated GPU: each run imports torch, so there are few, with many questions each."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

torch_spec = pytest.importorskip("importlib.util").find_spec("torch")
if torch_spec is None:
    pytest.skip("torch is not installed", allow_module_level=True)

HERE = pathlib.Path(__file__).parent
TRAINING = [sys.executable, str(HERE / "training.py")]
MIB = 1 << 20
WEIGHTS = 4 * (64 * 1024 + 3 * 1024 * 1024 + 10 * 1024 + 4 * 1024 + 10)


def dry_run(options, command, status=0, **environment):
    done = subprocess.run([sys.executable, "-m", "hpo_dryrun", *options, "--", *command], capture_output=True,
                          text=True, check=False, timeout=300, env={**os.environ, **environment})
    assert done.returncode == status, done.stderr
    return done


def document(options, command, status=0, **environment):
    return json.loads(dry_run(["--json", *options], command, status, **environment).stdout)


@pytest.fixture(scope="module")
def trained():
    found = document(["--gpu", "a100", "--context", "300MiB"], [*TRAINING, "--workers", "1"])
    assert len(found["gpus"]) == 1 and found["largest"] == []
    return found["gpus"][0]


def test_it_ends_when_it_has_seen_enough(trained):
    assert trained["verdict"] == "fits"
    assert trained["steps_alike"] and trained["evaluation"] and trained["notes"] == []
    assert 4 <= trained["steps"] < 200
    assert list(trained["phases"]) == ["load", "first_step", "steady_step", "evaluation"]


def test_an_evaluation_at_the_end_of_a_longer_epoch_is_awaited():
    found = document(["--gpu", "a100"], [*TRAINING, "--batches", "300", "--batch", "8"])["gpus"][0]
    assert found["evaluation"], found["steps"]
    assert 300 <= found["steps"] < 600


def test_an_evaluation_that_would_take_long_to_come_is_named():
    lines = dry_run(["--gpu", "a100"], [*TRAINING, "--batches", "1000000", "--batch", "2"]).stdout.splitlines()
    seen, = [line for line in lines if line.startswith("Seen: ")]
    assert "no evaluation until then: if the program has one, --steps 100000" in seen
    assert "goes on to the next epoch" in seen


def test_the_required_memory_is_the_sum_of_its_parts(trained):
    assert trained["context_bytes"] == 300 * MIB and trained["overhead_source"] == "--context"
    assert trained["required_bytes"] == trained["peak_reserved_bytes"] + 300 * MIB + trained["workspace_bytes"] + \
        trained["other_bytes"]
    assert trained["spare_bytes"] == trained["total_bytes"] - trained["required_bytes"]
    peaks = [phase["peak_allocated_bytes"] for phase in trained["phases"].values()]
    assert trained["peak_allocated_bytes"] == max(peaks)
    load, first, steady, evaluation = peaks
    assert WEIGHTS <= load < 1.1 * WEIGHTS
    assert first <= steady and steady > 4 * WEIGHTS and steady > evaluation > 3 * WEIGHTS


def test_the_modules_account_for_the_peak(trained):
    rows = {row["module"]: row for row in trained["modules"]}
    layers = rows["layers.*.*"]
    weights = 4 * 3 * (1024 * 1024 + 1024)
    assert layers["weights_bytes"] == weights
    assert layers["optimizer_bytes"] == pytest.approx(2 * weights, abs=100)
    assert layers["total_bytes"] == sum(layers[f"{kind}_bytes"] for kind in (
        "weights", "gradients", "optimizer", "activations"))
    assert rows["stem"]["activations_bytes"] > 0
    total = sum(row["total_bytes"] for row in rows.values())
    assert total == pytest.approx(trained["peak_allocated_bytes"], rel=0.02)


def test_out_of_memory_and_what_it_would_need(trained):
    text = dry_run(["--gpu", "a100:370MiB", "--context", "300MiB"], TRAINING, status=3, PEAKS="1").stdout
    needs = text.splitlines()[0].partition("does not fit: it needs ")[2]
    assert needs.endswith(" of 370 MiB")
    assert int(needs.split()[0]) == pytest.approx(trained["required_bytes"] / MIB, abs=25)
    assert "step 1: CUDA out of memory. Tried to allocate " in text
    assert "GPU 0 has a total capacity of 370.00 MiB" in text


def test_the_least_memory_is_where_the_program_begins_to_fit():
    # Below an emulated GPU, as of a worker in tests.
    outer = {"HPO_EMULATED_MEMORY": "64MiB", "HPO_EMULATED_FAULTS": "cudaMalloc:1:2:always"}
    program = [*TRAINING, "--batch", "5000"]
    run = ["--context", "300MiB", "--ample", "--gpu", "a100:500MiB,a100"]
    found = document(run, program, **outer)["gpus"]
    assert [one["verdict"] for one in found] == ["does not fit", "fits"]
    least = found[0]["least_bytes"]
    assert found[1]["least_bytes"] == least < found[1]["required_bytes"] - 50 * MIB
    assert found[0]["needs_bytes"] == found[1]["required_bytes"]
    for total, status in ((least, 0), (least - 2 * MIB, 3)):
        document(["--gpu", f"a100:{total}B", "--context", "300MiB"], program, status=status)


def test_a_program_that_asks_for_free_memory_runs_with_its_own():
    asks = [sys.executable, "-c", "import torch\nfree, _ = torch.cuda.mem_get_info()\n"
            "torch.empty(free // 2, dtype=torch.uint8, device='cuda')"]
    found = document(["--gpu", "t4", "--ample"], asks)["gpus"][0]
    assert found["reads_free_memory"] and found["source"] == "run"
    assert 6 << 30 < found["peak_allocated_bytes"] < 8 << 30


def test_the_program_reads_its_own_peaks_and_the_output_is_shown():
    """The observer resets torch's peaks; the program must not see that."""
    plain = [sys.executable, "-c", "import torch\nx = torch.empty(50 << 20, dtype=torch.uint8, device='cuda'); del x\n"
             "torch.nn.Linear(4, 4).cuda()(torch.zeros(4, 4, device='cuda')).sum().backward()\n"
             "torch.nn.Linear(4, 4).cuda()(torch.zeros(4, 4, device='cuda')).sum().backward()\n"
             "print('peak', torch.cuda.max_memory_allocated(), torch.cuda.memory_stats()['allocated_bytes.all.peak'])\n"
             "torch.cuda.reset_peak_memory_stats(); print('then', torch.cuda.max_memory_allocated() < 50 << 20)\n"]
    done = dry_run(["--gpu", "t4", "--show-output"], plain)
    assert f"peak {50 << 20} {50 << 20}\nthen True\n" in done.stdout
    assert "2 optimizer steps" in done.stdout


def test_out_of_memory_at_the_first_allocation():
    first = [sys.executable, "-c", "import torch; torch.empty(1 << 40, dtype=torch.uint8, device='cuda')"]
    found = document(["--gpu", "t4"], first, status=3)["gpus"][0]
    assert found["needs_bytes"] > 1 << 40
    assert found["out_of_memory"]["phase"] == "load"


SLOW_TO_INITIALIZE = """
import threading, time, torch
class Slow(threading.local):
    def __delattr__(self, name):  # Torch holds a lock; then it notes that CUDA is initialized.
        super().__delattr__(name)
        time.sleep(1)
torch.cuda._tls = Slow()
torch.ones(1 << 20, device="cuda")
"""


def test_a_look_at_the_program_waits_for_the_initialization_of_cuda():
    found = document(["--gpu", "t4", "--timeout", "60"], [sys.executable, "-c", SLOW_TO_INITIALIZE])["gpus"][0]
    assert found["peak_allocated_bytes"] == 4 << 20


LOOP = """
import os, sys, torch
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(8):
    {before}
    model(torch.rand(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
{after}
"""


def loop(before="pass", after=""):
    return [sys.executable, "-c", LOOP.format(before=before, after=after)]


@pytest.mark.parametrize("reset", ["torch.accelerator.reset_peak_memory_stats()",
                                   "torch.cuda.reset_accumulated_memory_stats()"])
def test_a_peak_that_the_program_has_reset_counts(reset):
    found = document(["--gpu", "a100"], loop(f"torch.empty(4 << 30, dtype=torch.uint8, device='cuda'); {reset}"))["gpus"][0]
    assert found["peak_reserved_bytes"] >= 4 << 30 and found["steps"] == 8


def test_a_program_that_goes_by_free_memory_runs_on_each_gpu():
    command = loop("held = torch.empty(torch.cuda.mem_get_info()[0] // 2, dtype=torch.uint8, device='cuda'); del held")
    found = document(["--gpu", "a100-40gb,a100-80gb"], command)["gpus"]
    assert [gpu["verdict"] for gpu in found] == ["fits", "fits"]
    assert found[0]["required_bytes"] < 0.6 * found[1]["required_bytes"]


def test_a_process_that_ends_itself_at_once():
    found = document(["--gpu", "t4"], loop("os._exit(0) if step == 2 else None"))["gpus"][0]
    assert found["steps"] == 2 and found["notes"] == ["the program ended after 2 optimizer steps"]


def test_an_optimizer_without_a_step_leaves_the_need_unknown():
    found = document(["--gpu", "t4"], loop("continue"), status=1)["gpus"][0]
    assert found["verdict"] == "unknown" and "no step" in found["notes"][0]


def test_values_that_were_read_are_named_and_a_pipe_may_be_closed():
    command = loop("n = int((torch.rand(64, 1024, device='cuda') * 100).max().item()) + 1; torch.zeros(n, device='cuda')")
    text = dry_run(["--gpu", "t4"], command).stdout
    assert "Values: 8 that are not known were read at " in text
    with subprocess.Popen([sys.executable, "-m", "hpo_dryrun", "--gpu", "t4", "--", *loop()], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == "hpo memory dry-run: the report cannot be written: Broken pipe\n"
    assert process.returncode == 1


def test_the_allocator_of_the_driver():
    done = dry_run(["--gpu", "t4"], loop(), status=1, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    assert done.stderr == "hpo memory dry-run: dry runs are of torch's native allocator, got cudaMallocAsync\n"


def test_a_loop_without_an_end_is_ended():
    loop = [sys.executable, "-c", "import torch\nx = torch.ones(9, 9, device='cuda')\nwhile not (x @ x).sum().item(): x = x @ x"]
    found = document(["--gpu", "t4", "--readbacks", "50"], loop, status=1)["gpus"][0]
    assert found["verdict"] == "unknown"
    assert "ended after 0 optimizer steps: the program has read 50 values" in found["notes"][0]


def test_the_largest_batch():
    done = dry_run(["--gpu", "t4:512MiB", "--context", "300MiB", "--largest", "batch=2000:2400", "--json"],
                   [*TRAINING, "--batch", "{batch}"])
    found = json.loads(done.stdout)
    search = found["largest"][0]
    assert search["value"] in [tried["value"] for tried in search["tries"] if tried["verdict"] != "does not fit"]
    assert len(done.stderr.splitlines()) == len(search["tries"])
    assert found["gpus"][0]["verdict"] in ("fits", "tight")


def test_several_processes():
    run = ["--gpu", "a100", "--count", "2", "--json"]
    script = ("import os, torch\nrank = int(os.environ['LOCAL_RANK']); torch.cuda.set_device(rank)\n"
              "model = torch.nn.Linear(4000 * (1 + rank), 4000).cuda()\n"
              "optimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
              "while True:\n  model(torch.zeros(8, 4000 * (1 + rank), device='cuda')).sum().backward()\n"
              "  optimizer.step(); optimizer.zero_grad()\n")
    folder = pathlib.Path(os.environ.get("TMPDIR", "/tmp"))
    program = folder / f"ranks-{os.getpid()}.py"
    program.write_text(script)
    try:
        done = dry_run(run, [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0",
                             str(program)])
    finally:
        program.unlink()
    found = json.loads(done.stdout)["gpus"][0]
    assert found["ranks"] == 2 and found["rank"] == 1 and found["device"] == 1
    assert [(row["rank"], row["device"]) for row in found["devices"]] == [(0, 0), (1, 1)]


@pytest.mark.parametrize(("command", "line"), [
    ([*TRAINING, "--device", "cpu"], "does not use a GPU: its model is on the CPU"),
    ([sys.executable, "-c", "import torch"], "the program ended without using a GPU"),
    ([sys.executable, "-c", "import torch; torch.zeros(1, device='cuda:1')"], "a GPU that is not emulated: --count"),
])
def test_programs_that_cannot_be_dry_run(command, line):
    done = dry_run(["--gpu", "t4"], command, status=1)
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1


def train(width):
    import torch

    model = torch.nn.Linear(width, width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1)
    while True:
        model(torch.zeros(8, width, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_a_function():
    hpo = pytest.importorskip("hpo")
    found = hpo.dry_run(train, 2000, gpu="a100:4GiB")
    assert (found.gpu, found.verdict, found.fits) == ("a100-40gb:4096MiB", "fits", True)
    assert found.total_bytes == 4 << 30
    assert found.required_bytes == found.document["required_bytes"] > 2 * 4 * 2000 * 2000
    with pytest.raises(hpo.HpoError, match="--gpu: no GPU 'a1000'"):
        hpo.dry_run(train, 2000, gpu="a1000")
    with pytest.raises(hpo.InvalidInput, match="expected the name of one GPU"):
        hpo.dry_run(train, 2000, gpu="a100,t4")
