"""The rules of dry runs that need no torch: which steps are seen, the search, names, sizes, errors."""

import os
import pathlib
import subprocess
import sys

import pytest
from hpo_dryrun import ample, command, gpus, largest, launch, replay, report, several, sizes, verdict
from hpo_dryrun.errors import DryRunError, UsageError
from hpo_dryrun.steps import Steps, steps_left

MIB = 1 << 20


# ---- Steps ----

def peaks(mib):
    return {0: (mib * MIB, 2 * mib * MIB)}


class Program:
    """Reports to Steps what a program does. Each forward pass and each step takes a second, and `share` of it is processor time."""

    def __init__(self, share=1.0, **options):
        self.steps = Steps(**options)
        self.share = share
        self.now = 0.0

    def forward(self, with_gradients, mib=0):
        """`mib`: the peak of what ran before."""
        self.now += 1
        if self.steps.changes(with_gradients):
            self.steps.boundary(peaks(mib))
        self.steps.forward(with_gradients, self.now)
        return self.steps.is_over(self.now)

    def step(self, mib, all_stepped=True):
        self.now += 1
        self.steps.step(peaks(mib), self.now, self.share * self.now, all_stepped)
        return self.steps.is_over(self.now)


def test_three_alike_steps_are_enough_and_an_evaluation_is_awaited():
    program = Program(wait=(2.5, 2.5))
    program.forward(True, 10)
    assert program.steps.where == "first_step"
    assert not program.step(50)
    for mib in (80, 80.1, 80):
        program.forward(True, 70)
        program.step(mib)
    assert program.steps.enough and program.steps.alike
    assert program.steps.until == program.now + 2.5
    assert not program.forward(True, 70)
    assert not program.step(80)
    assert program.forward(True, 70), "the time is over"
    found = program.steps.peaks(peaks(1))
    assert {phase: values[0][0] // MIB for phase, values in found.items()} == {
        "load": 10, "first_step": 50, "steady_step": 80}


def test_the_end_of_an_epoch_is_awaited_where_it_comes_soon():
    awaited_steps = {  # three of the batches are taken, in two seconds each
        (7, 1.0): 6,  # to the third step of the next epoch
        (12, 1.0): 2,  # as long as the steps took
        (12, 0.5): 11,  # other processes have half of the processor
        (100, 0.01): 2,  # the program waits for its data
    }
    for (batches, share), expected in awaited_steps.items():
        program = Program(share, wait=(2, 10))
        for _ in range(3):
            program.forward(True, 70)
            program.step(80)
        program.steps.expect_end_of_epoch(3, batches)
        awaited = 0
        while not program.forward(True, 70) and not program.step(80):
            awaited += 1
        assert awaited == expected, (batches, share)
    assert steps_left(steps=5, taken=20, batches=30) == 3, "four batches for each step"
    assert steps_left(steps=0, taken=2, batches=30) == 14


def test_an_evaluation_is_seen_to_its_end():
    program = Program(wait=(2.5, 2.5))
    for mib in (50, 80, 80, 80):
        program.forward(True)
        program.step(mib)
    for _ in range(4):  # it has its own time
        assert not program.forward(False, 85) or program.steps.where == "evaluation"
    assert program.steps.where == "evaluation"
    assert program.forward(True, 120), "it is over"
    assert program.steps.peaks({})["evaluation"][0][0] == 120 * MIB


def test_one_that_was_seen_before_is_not_awaited():
    program = Program()
    program.forward(False, 10)  # at the start
    for mib in (50, 80, 80):
        program.forward(True, 60)
        assert not program.step(mib)
    program.forward(True)
    assert program.step(80)
    assert program.steps.peaks({})["evaluation"][0][0] == 60 * MIB


def test_a_teacher_belongs_to_the_step():
    program = Program(wait=(100, 100))
    for mib in (50, 80, 80, 80, 80):
        for _ in range(3):
            program.forward(False, 5)
        assert program.steps.where != "evaluation" or program.steps.count == 0
        program.forward(True, 90)
        program.step(mib)
    found = program.steps.peaks({})
    assert "evaluation" not in found
    assert found["steady_step"][0][0] == 90 * MIB


def test_steps_that_differ_end_after_thirty_and_a_number_is_kept_to():
    program = Program(wait=(0, 0))
    seen = 0
    while not program.step(10 * (seen % 7 + 1)):
        seen += 1
    assert program.steps.count == 30 and not program.steps.alike
    program = Program(wanted=2, wait=(0, 0))
    assert not program.step(10)
    assert program.step(80)


def test_an_optimizer_that_has_not_stepped_is_awaited():
    program = Program(wait=(0, 0))
    for _ in range(5):
        assert not program.step(80, all_stepped=False)
    assert program.step(80, all_stepped=True)


def test_what_comes_after_the_last_step_is_a_phase_where_it_needs_more():
    program = Program()
    program.step(80)
    assert "after_steps" not in program.steps.peaks(peaks(70))
    assert program.steps.peaks(peaks(90))["after_steps"][0][0] == 90 * MIB


# ---- The search ----

def search(low, high, limit, need, fragmentation=0.08):
    """A program that needs need(value) bytes, and whose cache torch frees when it would not fit."""
    found = largest.Search(largest.Range("batch", low, high))
    value = found.next()
    while value is not None:
        allocated, reserved = int(need(value)), int(need(value) * (1 + fragmentation))
        found.add(largest.Try(value, allocated * 1.01 <= limit, limit, min(reserved, limit), allocated,
                              int(reserved > limit)))
        value = found.next()
    return found


@pytest.mark.parametrize(("low", "high", "need", "value", "most"), [
    (1, 512, lambda b: 1e9 + b * 1e8, 128, 9),
    (1, 512, lambda b: 1e9 + b * b * 1e6, 113, 12),
    (1, 512, lambda b: 1e9 + min(b, 50) * 1e8, 512, 6),  # a data set of 50 rows
    (1, 4, lambda b: 1e9 + b * 3.5e9, 3, 4),
    (7, 7, lambda b: 1e9, 7, 1),
    (1, 512, lambda b: 15e9, None, 1),
    (1, 2, lambda b: 10e9 * b, 1, 2),
])
def test_the_search_finds_the_largest_value_in_few_runs(low, high, need, value, most):
    found = search(low, high, 14 * 10**9, need)
    assert found.largest == value
    assert len(found.tries) <= most
    assert len({tried.value for tried in found.tries}) == len(found.tries)
    if value is not None and value < high:
        assert found.smallest_that_fails == value + 1


def test_beyond_256_the_next_value_is_nearly_the_next():
    found = search(64, 20000, 35 * 10**8, lambda b: 7e8 + b * 1.6e5)
    assert 17200 <= found.largest < found.smallest_that_fails <= found.largest * (1 + 1 / 256)
    assert len(found.tries) <= 11


@pytest.mark.parametrize(("text", "complaint"), [
    ("batch", "--largest: expected NAME=LOW:HIGH, such as batch=1:512, got 'batch'"),
    ("batch=9:8", "--largest: expected LOW of at most HIGH, got 9:8"),
    ("size=1:8", "--largest: expected {size} in the command, got 'train.py --batch {batch}'"),
])
def test_wrong_ranges(text, complaint):
    with pytest.raises(UsageError) as error:
        largest.parse(text, ["train.py", "--batch", "{batch}"])
    assert str(error.value) == complaint


# ---- Names and sizes ----

GPUS = [gpus.Gpu("a100-40gb", "NVIDIA A100-PCIE-40GB", 80, 42298834944, ("a100",)),
        gpus.Gpu("rtx3090", "NVIDIA GeForce RTX 3090", 86, 25 << 30),
        gpus.Gpu("p100", "Tesla P100", 60, 16 << 30, kernels=0)]


def test_gpus_are_named_in_many_ways():
    chosen = gpus.choose(["a100", "NVIDIA GeForce RTX 3090,a100-40gb"], GPUS)
    assert [gpu.name for gpu in chosen] == ["a100-40gb", "rtx3090"]
    assert [gpu.name for gpu in gpus.choose(["all"], GPUS)] == ["a100-40gb", "rtx3090"]
    sized = gpus.choose(["a100:12GiB"], GPUS)[0]
    assert (sized.name, sized.total_bytes, sized.label) == ("a100-40gb", 12 << 30, "a100-40gb:12288MiB")
    with pytest.raises(UsageError, match="--gpu: no GPU 'rtx309'; did you mean rtx3090"):
        gpus.choose(["rtx309"], GPUS)
    with pytest.raises(UsageError, match="--gpu: expected a size with its unit, such as 12GiB, got '12'"):
        gpus.choose(["a100:12"], GPUS)


def test_sizes():
    assert sizes.parse_size("1.5GiB", "x") == 3 << 29
    assert sizes.show(3 << 29) == "1.50 GiB"
    assert sizes.show(40 << 20) == "40 MiB"
    assert sizes.show(12) == "12 B"


# ---- What a run says ----

def record(**changes):
    return {"end": "enough", "until": None, "steps": 4, "alike": True, "enough": True, "phase": "steady_step",
            "backwards": 4, "endless": None, "out_of_memory": None, "error": None, "error_type": None, "rank": 0,
            "world_size": 1, "local_world_size": 1, "torch": "2.11.0", "cuda": "13.0",
            "overhead": {"context_bytes": 400 * MIB, "workspace_bytes": 100 * MIB, "margin_bytes": 200 * MIB,
                         "source": "a test"},
            "devices": [{"index": 0, "name": "A (emulated)", "total_bytes": 8000 * MIB,
                         "allocated_bytes": 5000 * MIB, "reserved_bytes": 6000 * MIB,
                         "beyond_torch_bytes": 530 * MIB, "retries": 0}],
            "phases": {"load": {"0": [1, 2]}}, "values": {"live_at_peak": False}, "stand_in": [], **changes}


def run(*records, status=0, timed_out=False, output=""):
    return launch.Run(list(records), status, 7.0, timed_out, output)


def device(**changes):
    return [{**record()["devices"][0], **changes}]


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, "fits"),
    ({"devices": device(reserved_bytes=7300 * MIB)}, "tight"),
    ({"devices": device(retries=2)}, "tight"),
    ({"out_of_memory": {"requested_bytes": 1, "count": 1, "phase": "load", "step": 1}}, "does not fit"),
    ({"values": {"live_at_peak": True}}, "unknown"),
    ({"end": "readbacks", "steps": 0}, "unknown"),
])
def test_verdicts(changes, expected):
    assert verdict.assess(run(record(**changes)), GPUS[0])["verdict"] == expected


@pytest.mark.parametrize(("least_mib", "unknown_at", "expected"), [
    (7270, None, "fits"), (7271, None, "tight"), (None, None, "tight"), (7000, 7, "tight")])
def test_the_least_memory_decides_where_what_is_reserved_does_not(monkeypatch, least_mib, unknown_at, expected):
    asked = []

    def replays(path, targets, least):
        asked.append((path, targets[0].usable_bytes, targets[0].total_bytes, least))
        return [replay.Result(0, 5000 * MIB, 5500 * MIB, 1, None, unknown_at, 0,
                              least_bytes=None if least_mib is None else least_mib * MIB)]

    monkeypatch.setattr(replay, "run", replays)
    events = {"path": "p", "lost": [], "events": 9}
    found = several.settle(verdict.assess(run(record(devices=device(retries=2), events=events)), GPUS[0]))
    assert found["verdict"] == expected
    assert asked == [("p", (8000 - 530) * MIB, 8000 * MIB, True)]
    assert ("it fits with 200 MiB less" in report.verdict_line(found)) == (expected == "fits")


@pytest.mark.parametrize("changes", [
    {}, {"devices": device(retries=2)}, {"devices": device(retries=2), "events": {"path": "p", "lost": ["one"]}}])
def test_what_fits_for_sure_or_was_not_recorded_is_not_replayed(monkeypatch, changes):
    monkeypatch.setattr(replay, "run", None)
    found = verdict.assess(run(record(**changes)), GPUS[0])
    assert several.settle(dict(found)) == found


def test_required_memory_and_its_parts():
    found = verdict.assess(run(record()), GPUS[0])
    assert found["required_bytes"] == 6530 * MIB
    assert found["other_bytes"] == 30 * MIB
    assert found["fragmentation_bytes"] == 1000 * MIB
    assert found["spare_bytes"] == 1470 * MIB
    text = report.text({"gpus": [{**found, "source": "run", "needs_bytes": None, "allocator": None}],
                        "largest": []})
    assert "fits: 6.38 GiB of 7.81 GiB, 1.44 GiB to spare" in text


def test_of_several_processes_the_one_counts_that_has_least_to_spare():
    other = record(rank=1, devices=device(index=1, reserved_bytes=7000 * MIB))
    found = verdict.assess(run(record(), other), GPUS[0])
    assert (found["rank"], found["device"], found["ranks"]) == (1, 1, 2)
    assert [row["rank"] for row in found["devices"]] == [0, 1]


ERRORS = [
    (run(status=134, output="emulated card: cufftCreate is not emulated\n"),
     "the emulated GPU: cufftCreate is not emulated; please report this line"),
    (run(status=1, output="Traceback\nModuleNotFoundError: No module named 'torch'\n"),
     "torch is not installed for the Python that runs the program"),
    (run(record(end="exit", enough=False), status=1, output="torch.AcceleratorError: CUDA error: invalid device "
                                                            "ordinal\nGPU device may be out of range"),
     "asks for a GPU that is not emulated"),
    (run(record(end="exit", enough=False), status=1, output="a\nValueError: no data\n"),
     "the program failed with status 1: ValueError: no data"),
    (run(status=-9), "the program failed with signal 9: it printed nothing"),
    (run(status=0, output="done\n"), "no process of the program imported torch"),
    (run(record(end=None, steps=1, enough=False, phase="steady_step"), timed_out=True),
     "did not end in 7 s, in the phase 'steady_step' after 1 optimizer steps"),
    (run(timed_out=True), "and had not used a GPU"),
    (run({"end": "exit", "error_type": "NoGpu", "error": "the program ended without using a GPU"}),
     "the program ended without using a GPU"),
]


@pytest.mark.parametrize(("left", "line"), ERRORS)
def test_a_run_that_says_nothing_is_explained_in_one_line(left, line):
    with pytest.raises(DryRunError) as error:
        verdict.assess(left, GPUS[0])
    assert line in str(error.value)
    assert "\n" not in str(error.value)


# ---- The command, without torch ----

def dry_run(*words, **environment):
    return subprocess.run([sys.executable, "-m", "hpo_dryrun", *words], capture_output=True, text=True, check=False,
                          timeout=60, env={**os.environ, **environment})


@pytest.mark.parametrize(("words", "status", "line"), [
    (["--", "true"], 2, "--gpu: expected the name of a GPU"),
    (["--gpu", "a100"], 2, "expected a command after --"),
    (["study.yaml", "--gpu", "t4", "--", "true"], 2,
     "study.yaml: the configurations of a study are dry-run by the program hpo alone: hpo memory dry-run study.yaml"),
    (["--gpu", "a10x", "--", "true"], 2, "--gpu: no GPU 'a10x'; did you mean a10"),
    (["--gpu", "p100", "--", "true"], 2, "has no kernels for p100 of compute capability 6.0"),
    (["--gpus", "a100", "--", "true"], 2, "unrecognized arguments: --gpus; did you mean --gpu?"),
    (["--gpu", "a100", "--steps", "0", "--", "true"], 2, "argument --steps: expected at least 1, got '0'"),
    (["--gpu", "a100", "--", "/no/such/program"], 2, "/no/such/program: there is no such program"),
    (["--gpu", "a100", "--", "true"], 1, "no process of the program imported torch"),
    (["--gpu", "a100", "--timeout", "0.2", "--", "sleep", "60"], 1, "the program did not end in "),
    (["--gpu", "a100", "--", sys.executable, "-c", "import torch_"], 1,
     "the program failed with status 1: ModuleNotFoundError: No module named 'torch_'"),
])
def test_bad_input_gets_one_line(words, status, line):
    done = dry_run(*words)
    assert (done.returncode, done.stdout) == (status, "")
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("hpo memory dry-run: ")


def test_a_torch_without_cuda(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.11.0+cpu'\ncuda = None\n")
    done = dry_run("--gpu", "a100", "--", sys.executable, "-c", "import torch", PYTHONPATH=os.pathsep.join(
        [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert done.returncode == 2
    assert "torch 2.11.0+cpu" in done.stderr and "pip install" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_users_own_sitecustomize_runs_once_and_what_a_program_leaves_running_is_ended(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nif 'HPO_DRY_RUN_RECORD' in os.environ:\n  with open(os.environ['SEEN'], 'a') as file: file.write('x')")
    pids = tmp_path / "pids"
    script = f"import os, subprocess\nopen({str(pids)!r}, 'w').write(str(subprocess.Popen(['setsid', 'sleep', '99']).pid))"
    done = dry_run("--gpu", "a100", "--", sys.executable, "-c", script, SEEN=str(tmp_path / "seen"),
                   PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert "imported torch" in done.stderr
    assert (tmp_path / "seen").read_text() == "x"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids.read_text()), 0)


def test_the_list_of_gpus():
    done = dry_run("--gpu", "list")
    assert done.returncode == 0
    assert any(line.startswith("a100-40gb ") and "39.39 GiB" in line for line in done.stdout.splitlines())


def test_exit_statuses():
    def status(*verdicts):
        return command._exit_status({"gpus": [{"verdict": one} for one in verdicts]})

    assert status("fits") == status("tight") == status("does not fit", "fits") == 0
    assert status("does not fit") == 3
    assert status("unknown") == status("unknown", "does not fit") == 1


# ---- Several GPUs ----

def test_gpus_of_one_kind_are_replayed_and_the_others_run(monkeypatch):
    a40, a80 = (gpus.Gpu(name, name, 80, size << 30, threads=221184) for name, size in (("a40", 40), ("a80", 80)))
    t4 = gpus.Gpu("t4", "t4", 75, 16 << 30, threads=40960)
    runs, targets = [], []

    def run_on(gpu, allocator, events):
        runs.append((gpu.name, allocator))
        found = verdict.assess(run(record(events={"path": events, "lost": [], "events": 9})), gpu)
        found.update(source="run", needs_bytes=None, allocator=allocator)
        return found

    def replays(path, asked, least):
        assert path is not None
        targets.extend([] if least else asked)
        return [replay.Result(device=0, allocated_peak=5000 * MIB, reserved_peak=5500 * MIB, retries=0,
                              out_of_memory_event=7 if target.settings else None, unknown_from_event=None,
                              unknown_sizes=0, least_bytes=5100 * MIB if least else None)
                for target in asked]

    monkeypatch.setattr(replay, "run", replays)
    found = several.documents([a40, t4, a80], [None, "expandable_segments:True"], run_on)
    assert [(one["gpu"], one["allocator"] is not None) for one in found] == [
        ("a40", False), ("a40", True), ("t4", False), ("t4", True), ("a80", False), ("a80", True)]
    assert runs == [("a80", None), ("t4", None)]
    assert [one["source"] for one in found] == ["replay of a80"] * 2 + ["run", "replay of t4", "run", "replay of a80"]
    assert [one["verdict"] for one in found][:2] == ["fits", "does not fit"]
    assert found[0]["required_bytes"] == 6030 * MIB
    assert targets[0].usable_bytes == (40 << 30) - 530 * MIB
    assert {one["least_bytes"] for one in found} == {5630 * MIB}


def test_what_cannot_be_replayed_runs(monkeypatch):
    def refuse(_path, _asked, _least):
        raise replay.ReplayError("hpo-replay: it is not there")

    monkeypatch.setattr(replay, "run", refuse)
    sizes_of_one = [gpus.Gpu(f"a{size}", "a", 80, size << 30, threads=1) for size in (40, 80)]
    runs = []

    def run_on(gpu, allocator, events):
        runs.append(gpu.name)
        found = verdict.assess(run(record(events={"path": events, "lost": [], "events": 9})), gpu)
        found.update(source="run", needs_bytes=None, allocator=allocator)
        return found

    found = several.documents(sizes_of_one, [None], run_on)
    assert runs == ["a80", "a40"]
    assert "could not be replayed: hpo-replay: it is not there" in found[1]["notes"][0]


def ample_runs(monkeypatch, reads_free_memory=False):
    """(documents of two GPUs of one capability by --ample, GPUs that ran, targets)."""
    small, large = (gpus.Gpu(name, name, 86, size << 30, threads=1536 * number, multiprocessors=number)
                    for name, size, number in (("small", 6, 28), ("large", 24, 82)))
    runs, targets = [], []

    def run_on(kind):
        def run_one(gpu, allocator, events):
            runs.append((kind, gpu.name))
            found = verdict.assess(run(record(events={"path": events, "lost": [], "events": 9},
                                              reads_free_memory=reads_free_memory)), gpu)
            found.update(source="run", needs_bytes=None, allocator=allocator)
            return found
        return run_one

    def replays(_path, asked, least):
        targets.extend(asked)
        assert least
        return [replay.Result(device=0, allocated_peak=5000 * MIB, reserved_peak=5500 * MIB, retries=0,
                              out_of_memory_event=7 if target.total_bytes < 8 << 30 else None, unknown_from_event=None,
                              unknown_sizes=0, least_bytes=5100 * MIB) for target in asked]

    monkeypatch.setattr(replay, "run", replays)
    return ample.documents([small, large], [None], run_on("ample"), run_on("own")), runs, targets


def test_one_run_with_ample_memory_answers_for_every_gpu(monkeypatch):
    (small, large), runs, targets = ample_runs(monkeypatch)
    assert runs == [("ample", "large")]
    assert (small["verdict"], large["verdict"]) == ("does not fit", "fits")
    assert (small["gpu"], small["total_bytes"], large["total_bytes"]) == ("small", 6 << 30, 24 << 30)
    assert (small["source"], large["source"]) == ("replay of large with ample memory", "run with ample memory")
    # The context depends on the number of threads.
    more = round(2244 * 1536 * (82 - 28))
    assert large["least_bytes"] - small["least_bytes"] == pytest.approx(more, abs=2)
    assert large["least_bytes"] == 5630 * MIB
    assert targets[0].gpu == replay.Gpu(86, 28, 1536) and targets[1].gpu is None


def test_a_program_that_asks_for_free_memory_runs_on_the_gpu_as_it_is(monkeypatch):
    _, runs, _ = ample_runs(monkeypatch, reads_free_memory=True)
    assert runs == [("ample", "large"), ("own", "small"), ("own", "large")]


# ---- The Python of a command ----

def test_the_python_of_a_command(tmp_path):
    for name in ("env/bin/python3", "path/python3", "path/python3.9"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(mode=0o755)
    script = tmp_path / "path" / "accelerate"
    script.write_text(f"#!{tmp_path}/env/bin/python3\n")
    script.chmod(0o755)

    def python(*words):
        found = launch._interpreter(list(words), str(tmp_path / "path"))
        return str(pathlib.Path(found).relative_to(tmp_path))

    assert python("accelerate", "launch") == "env/bin/python3"
    assert python("a.sh") == "path/python3"
    for text, expected in [
            ("python3.9 train.py --lr '1 2'", "path/python3.9"), ("accelerate launch a.py", "env/bin/python3"),
            (f"cd '{tmp_path}' && env/bin/python3 -u train.py", "env/bin/python3"),
            (f"cd {tmp_path} || exit\n. env/bin/activate\npython3 a.py", "env/bin/python3"),
            ("A=1 exec python3.9 a.py", "path/python3.9"), ("echo accelerate; ./a.sh 'open", "path/python3")]:
        assert python("/bin/sh", "-c", text) == expected, text
