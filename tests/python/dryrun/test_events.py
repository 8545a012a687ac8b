"""hpo_dryrun.events in programs that run on an emulated GPU, and what is replayed of them against torch itself.
Each program runs in a child that is forked from this process, which has loaded torch."""

import json
import os
import traceback

import pytest

from hpo_dryrun import events, replay

torch = pytest.importorskip("torch")
if not torch.backends.cuda.is_built() or "HPO_EMULATED_CARD" not in os.environ:
    pytest.skip("needs torch with CUDA and an emulated GPU", allow_module_level=True)
import torch._dynamo  # noqa: E402  what an optimizer's first step would import in every child

MIB = 1 << 20
CONTEXT = 300 * MIB  # of an emulated GPU's memory


class Run:
    """What torch counted in a run, and the lines of its recording."""

    def __init__(self, folder):
        self.path = folder / "events"
        stats = json.loads((folder / "stats").read_text())
        self.lost, self.usable, self.total = stats["lost"], stats["usable"], stats["total"]
        self.gpu = replay.Gpu(*stats["gpu"])
        self.counted = tuple(stats["counted"])  # allocated peak, reserved peak, retries, ran out
        self.lines = self.path.read_text().splitlines()

    def replayed(self, **target):
        result, = replay.run(self.path, [replay.Target(**{"usable_bytes": self.usable, **target})])
        return (result.allocated_peak, result.reserved_peak, result.retries, result.ran_out)


def record(program, folder):
    events_started = events._recorder is not None
    ran_out = False
    try:
        program()
    except torch.OutOfMemoryError:
        ran_out = True
    if not events_started:
        events.start(torch)
    lost = events.write(folder / "events")["lost"]
    stats = torch.cuda.memory_stats()
    free, total = torch.cuda.mem_get_info()
    gpu = torch.cuda.get_device_properties(0)
    counted = [stats["allocated_bytes.all.peak"], stats["reserved_bytes.all.peak"], stats["num_alloc_retries"], ran_out]
    (folder / "stats").write_text(json.dumps({
        "lost": lost, "counted": counted, "usable": free + torch.cuda.memory_reserved(), "total": total,
        "gpu": [10 * gpu.major + gpu.minor, gpu.multi_processor_count, gpu.max_threads_per_multi_processor]}))


@pytest.fixture(name="run")
def _run(tmp_path_factory):
    def run(program, gpu="a100", usable=None, settings="", start=True, **options):
        folder = tmp_path_factory.mktemp("run")
        child = os.fork()
        if child == 0:
            try:
                os.environ.update(HPO_EMULATED_STATE=str(folder / "state"), HPO_EMULATED_CARD=gpu)
                if usable:
                    os.environ["HPO_EMULATED_MEMORY"] = f"{usable + CONTEXT}B"
                if settings:
                    torch._C._accelerator_setAllocatorSettings(settings)
                if start:
                    events.start(torch, **options)
                record(program, folder)
                os._exit(0)
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        return Run(folder)

    return run


def step(model, optimizer, rows, stream):
    """Data that is made on one stream and used on another."""
    with torch.cuda.stream(stream):
        data = torch.zeros(rows, 1024, device="cuda")
    torch.cuda.current_stream().wait_stream(stream)
    data.record_stream(torch.cuda.current_stream())
    model(data).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def training():
    layers = [torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(6)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    for number, rows in enumerate((2048, 3000, 1000, 4096, 3500, 2500, 4000)):
        step(model, optimizer, rows, streams[number % 2])
        if number == 3:
            torch.cuda.empty_cache()
            pool = torch.cuda.MemPool()
            with torch.cuda.use_mem_pool(pool):
                kept = [torch.zeros(size << 18, device="cuda") for size in (1, 5, 30)]
            del kept[1]


def test_a_replay_is_what_torch_does_on_another_gpu_and_under_other_settings(run):
    recorded = run(training)
    assert recorded.lost == [] and recorded.replayed() == recorded.counted
    allocated, reserved, *_ = recorded.counted
    between = allocated + (reserved - allocated) // 3
    cases = [({}, {"settings": "expandable_segments:True"}),
             ({}, {"settings": "max_split_size_mb:32"}),
             ({}, {"settings": "roundup_power2_divisions:4"}),
             ({"usable": between}, {}),
             ({"usable": between}, {"settings": "expandable_segments:True"}),
             ({"usable": allocated - 20 * MIB}, {})]
    retried = ran_out = 0
    for gpu, settings in cases:
        own = run(training, **gpu, **settings)
        replayed = recorded.replayed(usable_bytes=own.usable, total_bytes=own.total, **settings)
        assert replayed == own.counted, (gpu, settings)
        retried += own.counted[2] > 0
        ran_out += own.counted[3]
    assert retried >= 2 and ran_out == 1


def test_libraries_that_empty_the_cache_do_so_in_a_replay(run):
    """torch empties its cache where it has searched for the fastest engine of a convolution."""
    def convolutions():
        torch.backends.cudnn.benchmark = True
        images = torch.zeros(8, 64, 256, 256, dtype=torch.float16, device="cuda")
        layer = torch.nn.Conv2d(64, 16, 3, padding=1, device="cuda", dtype=torch.float16)
        with torch.no_grad():
            for rows in (8, 6, 4):
                layer(images[:rows])

    recorded = run(convolutions)
    assert recorded.lines.count("e") == 3
    assert recorded.replayed() == recorded.counted


def test_a_recording_is_adapted_to_gpus_that_run_fewer_threads_at_once(run):
    def sums():
        training()
        tensor = torch.zeros(8192, 3072, device="cuda")  # as large as the workspace of an H100 in some part
        return [tensor.sum(dim) for dim in (0, 1, (0, 1))], torch.zeros(8 * MIB, device="cuda")

    recorded = run(sums, gpu="h100")
    assert sum(line.startswith("s ") for line in recorded.lines) > 2
    assert recorded.lines.count("w") == 2  # of the threads that run forward and backward
    for gpu in ("a100", "l4", "rtx3060", "t4"):
        own = run(sums, gpu=gpu)
        assert recorded.replayed(usable_bytes=own.usable, gpu=own.gpu) == own.counted, gpu
    larger, = replay.run(own.path, [replay.Target(recorded.usable, gpu=recorded.gpu)])
    assert larger.unknown_sizes > 0


def test_what_limits_the_program_itself_is_recorded(run):
    def limited():
        torch.cuda.set_per_process_memory_fraction(0.05)
        training()

    recorded = run(limited, settings="garbage_collection_threshold:0.6")
    assert recorded.replayed(total_bytes=recorded.total) == recorded.counted


def test_draining_often_records_the_same(run):
    def drained():
        for name in ("allocated", "freed"):
            block = torch.zeros(1000, device="cuda")
            events.drain()
            del block
            torch.zeros(2000, device="cuda")
            events.mark(name)

    lines = run(drained).lines
    assert lines[2:-1] == ["device 0", "gpu 80 108 2048 0", "fraction 1.0", "pool 0 shared",
                           "a 4000 0", "f 0", "a 8000 0", "f 1", "m allocated",
                           "a 4000 0", "f 2", "a 8000 0", "f 3", "m freed"]


def test_calls_that_empty_the_cache_are_events_also_where_they_free_nothing(run):
    def emptied():
        kept = torch.zeros(1000, device="cuda")
        torch.cuda.empty_cache()
        torch.zeros(MIB, device="cuda")
        torch.accelerator.empty_cache()
        return kept

    lines = [line for line in run(emptied).lines if line[0] in "aef" and not line.startswith(("end", "fraction"))]
    assert lines[:5] == ["a 4000 0", "e", f"a {4 * MIB} 0", "f 1", "e"]


def test_private_pools_are_told_apart_and_released(run):
    def pooled():
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            block = torch.zeros(MIB, device="cuda")
        events.drain()
        del block, pool
        torch.cuda.empty_cache()

    lines = run(pooled).lines
    assert "pool 0 private" in lines and "r 0" in lines


def captured():
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    data = torch.zeros(4096, 1024, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        model(data).square().mean().backward()
    torch.cuda.current_stream().wait_stream(side)
    model.zero_grad()
    step_graph, other_graph = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(step_graph):
        model(data).square().mean().backward()
    step_graph.replay()
    torch.zeros(16 * MIB, device="cuda")
    torch.cuda.empty_cache()
    with torch.cuda.graph(other_graph, pool=step_graph.pool()):
        model(data).sum()
    other_graph.replay()


def test_the_pools_of_graphs_are_replayed(run):
    recorded = run(captured)
    assert sum(line.startswith("pool ") and line.endswith(" private") for line in recorded.lines) >= 1
    assert recorded.replayed() == recorded.counted
    own = run(captured, settings="expandable_segments:True")
    assert recorded.replayed(settings="expandable_segments:True") == own.counted


def test_a_program_that_goes_on_after_running_out_is_followed_on_smaller_gpus_only(run):
    def adapts():
        try:
            torch.zeros(300 * MIB // 4, device="cuda")
        except torch.OutOfMemoryError:
            torch.zeros(100 * MIB // 4, device="cuda")

    recorded = run(adapts, usable=200 * MIB)
    assert f"o {300 * MIB} 0" in recorded.lines
    smaller, larger = replay.run(recorded.path, [replay.Target(size * MIB) for size in (150, 400)])
    assert smaller.ran_out and smaller.unknown_from_event is None and smaller.reserved_peak == 100 * MIB
    assert not larger.ran_out and larger.unknown_from_event == 0


def test_frames_say_which_line_requested_an_allocation(run):
    def framed():
        return torch.zeros(1000, device="cuda")

    lines = run(framed, frames=True).lines
    assert "a 4000 0 0" in lines
    site = next(line for line in lines if line.startswith("site 0 "))
    assert "test_events.py:" in site and " framed < " in site


def test_events_that_are_missing_are_reported(run, monkeypatch):
    def one():
        torch.zeros(1000, device="cuda")

    def many():
        for _ in range(30):
            one()

    def stopped():
        one()
        torch.cuda.memory._record_memory_history(None)
        one()

    assert run(many).lost == []
    assert run(stopped).lost == ["2 allocations of GPU 0 are not in torch's history"]
    late = run(lambda: setattr(run, "kept", torch.zeros(1000, device="cuda")), start=False)
    assert late.lost == ["memory was allocated before the recording began"]
    assert "a 4000 0" in late.lines
    monkeypatch.setattr(events, "MAX_ENTRIES", 20)
    assert run(many).lost[0] == "torch's history of 20 entries was too short"
    monkeypatch.undo()
    monkeypatch.setattr(events, "MAX_EVENTS", 10)

    def drained():
        many()
        events.drain()
        many()

    assert run(drained).lost[0] == "there were more than 10 events"


def test_a_program_without_cuda_has_no_events(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "_recorder", events.Recorder(torch))
    assert events.write(tmp_path / "events") == {"lost": [], "events": 0}
    assert (tmp_path / "events").read_text() == "hpo-allocation-events 1\nsettings\nend 2\n"
    monkeypatch.setattr(events, "_recorder", None)
    with pytest.raises(RuntimeError, match="expected a call of events.start"):
        events.write(tmp_path / "events")
