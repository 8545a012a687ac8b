"""hpo_dryrun.replay without torch: settings, targets and recordings that are not as described."""

import dataclasses
import json
import pathlib

import pytest

from hpo_dryrun import replay

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "allocator_settings.json"
MIB = 1 << 20


def recording(path, lines, settings=""):
    path.write_text("\n".join(["hpo-allocation-events 1", f"settings {settings}".rstrip(), *lines,
                               f"end {len(lines) + 2}\n"]))
    return path


@pytest.fixture(name="path")
def _path(tmp_path):
    """Two blocks, of which one is freed before a third is requested: 80 MiB live, 120 MiB reserved."""
    return recording(tmp_path / "events", [
        "device 0", "fraction 1.0", "pool 0 shared", f"a {40 * MIB} 0", f"a {30 * MIB} 0", "f 0", f"a {50 * MIB} 0"])


@pytest.mark.parametrize("row", json.loads(GOLDEN.read_text()), ids=lambda row: row["settings"])
def test_settings_are_read_as_the_allocator_model_reads_them(row):
    if "complaint" in row:
        with pytest.raises(replay.ReplayError) as raised:
            replay.read_settings(row["settings"])
        assert str(raised.value) == row["complaint"]
    else:
        options = dataclasses.asdict(replay.read_settings(row["settings"]))
        assert options.pop("memory_fraction") is None
        assert options == row["options"]


def test_settings_without_an_effect_on_gpu_memory_are_passed_over():
    text = "backend:native,pinned_use_cuda_host_register:True,per_process_memory_fraction:0.5"
    assert replay.read_settings(text) == replay.Options(memory_fraction=0.5)
    with pytest.raises(replay.ReplayError, match="got 'backend'"):
        replay.read_settings("backend:cudaMallocAsync")


def test_each_target_has_its_result(path):
    large, short, small = replay.run(path, [replay.Target(size * MIB) for size in (200, 100, 79)])
    assert (large.allocated_peak, large.reserved_peak) == (80 * MIB, 120 * MIB)
    assert (large.fragmentation, large.retries, large.ran_out) == (40 * MIB, 0, False)
    assert (short.reserved_peak, short.retries, short.ran_out) == (80 * MIB, 1, False)
    assert (small.out_of_memory_event, small.ran_out) == (3, True)


def test_the_least_memory_is_found_where_it_is_asked_for(path):
    targets = [replay.Target(200 * MIB), replay.Target(10 * MIB)]
    assert [result.least_bytes for result in replay.run(path, targets)] == [None, None]
    # Also of a GPU on which it does not fit.
    assert [result.least_bytes for result in replay.run(path, targets, least=True)] == [80 * MIB] * 2
    half, = replay.run(path, [replay.Target(200 * MIB, total_bytes=240 * MIB, memory_fraction=0.5)], least=True)
    assert half.least_bytes == 120 * MIB


def test_a_fraction_is_of_the_whole_gpu(path):
    def ran_out(**fields):
        return replay.run(path, [replay.Target(200 * MIB, total_bytes=160 * MIB, **fields)])[0].ran_out

    assert not ran_out()
    assert not ran_out(memory_fraction=0.5)
    assert ran_out(memory_fraction=0.49)
    assert ran_out(settings="per_process_memory_fraction:0.49")
    assert not ran_out(settings="per_process_memory_fraction:0.49", memory_fraction=1.0)


def test_settings_of_the_recorded_run_count_where_the_target_has_none(path, tmp_path):
    lines = path.read_text().splitlines()[2:-1]
    lines[1] = "fraction 0.45"
    limited = recording(tmp_path / "limited", lines, "per_process_memory_fraction:0.45,expandable_segments:True")
    as_recorded, with_others = replay.run(limited, [replay.Target(160 * MIB),
                                                    replay.Target(160 * MIB, settings="")])
    assert as_recorded.ran_out
    assert not with_others.ran_out and with_others.reserved_peak == 120 * MIB


def test_of_several_gpus_the_one_that_needs_most_counts(tmp_path):
    lines = [line for gpu, size in enumerate((10, 30, 20))
             for line in (f"device {gpu}", "pool 0 shared", f"a {size * MIB} 0")]
    result, = replay.run(recording(tmp_path / "events", lines), [replay.Target(200 * MIB)])
    assert (result.device, result.reserved_peak) == (1, 30 * MIB)


def test_what_is_no_recording_is_rejected_in_one_line(path, tmp_path):
    def complaint(recorded, target=replay.Target(MIB)):
        with pytest.raises(replay.ReplayError) as raised:
            replay.run(recorded, [target])
        assert "\n" not in str(raised.value)
        return str(raised.value)

    assert "No such file" in complaint(tmp_path / "none")
    path.write_text(path.read_text().rsplit("end", 1)[0])
    assert "cut off" in complaint(path)
    assert "program that used a GPU" in complaint(recording(tmp_path / "empty", []))
    assert "expected True or False" in complaint(path, replay.Target(MIB, "expandable_segments:1"))
    assert "target 0: expected USABLE" in complaint(recording(tmp_path / "empty", []), replay.Target(-1))


def test_a_program_that_is_not_there_is_named(path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("HPO_BIN_DIR", raising=False)
    with pytest.raises(replay.ReplayError, match="hpo-replay: expected it in the package"):
        replay.run(path, [replay.Target(MIB)])
