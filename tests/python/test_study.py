"""hpo.Study: ask and tell."""

import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest

import hpo

SPACE = {"x": hpo.uniform(0, 1)}


@pytest.fixture
def study(tmp_path):
    with hpo.Study("mine", SPACE, trials=6, storage=tmp_path) as opened:
        yield opened


def test_a_loop(study):
    while (trial := study.ask()) is not None:
        assert study.tell(trial, trial["x"]) == "completed"
    assert [one.state for one in study.trials] == ["completed"] * 6
    assert study.best.value == min(one.value for one in study.trials)
    assert study.best.value == study.best.params["x"]


def test_several_asked_at_once_told_in_any_order(study):
    asked = [study.ask() for _ in range(3)]
    assert len({trial.number for trial in asked}) == 3
    for trial in reversed(asked):
        study.tell(trial, trial["x"])
    assert {one.state for one in study.trials} == {"completed"}


def test_what_was_enqueued_comes_first(study):
    number = study.enqueue({"x": 0.25})
    trial = study.ask()
    assert (trial.number, trial["x"]) == (number, 0.25)


def test_how_a_trial_can_end(study):
    assert study.tell(study.ask(), hpo.OutOfMemory("too big")) == "pruned"
    assert study.tell(study.ask(), ValueError("broken")) == "failed"
    assert study.tell(study.ask(), {"value": 1.0, "time": 2.0}) == "completed"
    why = [one.why for one in study.trials]
    assert why[0] == "too big" and "ValueError: broken" in why[1] and why[2] == ""
    assert study.trials[2].metrics == {"value": 1.0, "time": 2.0}


def test_what_is_no_result_leaves_the_trial_open(study):
    trial = study.ask()
    for result in (None, "good", {"loss": 1.0}):
        with pytest.raises(hpo.InvalidInput):
            study.tell(trial, result)
    assert study.tell(trial, 1.0) == "completed"
    with pytest.raises(hpo.InvalidInput, match="was told already"):
        study.tell(trial, 1.0)


def test_reports_reach_the_server(study):
    trial = study.ask()
    trial.report(3, 0.5)
    assert study.trials[0].metrics == {"value": 0.5}
    assert not trial.should_stop()


def test_what_was_not_told_is_queued_again(tmp_path):
    with hpo.Study("mine", SPACE, trials=6, storage=tmp_path) as first:
        params = first.ask().params
    with hpo.Study("mine", storage=tmp_path) as again:
        assert again.ask().params == params


def test_it_outlives_the_thread_that_opened_it(tmp_path):
    opened = []
    thread = threading.Thread(
        target=lambda: opened.append(hpo.Study("mine", SPACE, trials=6, storage=tmp_path)))
    thread.start()
    thread.join()
    with opened[0] as study:
        time.sleep(0.5)  # A server that ends with the thread takes a moment.
        assert study.tell(study.ask(), 1.0) == "completed"


def test_a_killed_process_takes_its_server_along(tmp_path):
    program = f"""
import hpo, os, signal, threading
def use():
    study = hpo.Study("mine", {{"x": hpo.uniform(0, 1)}}, storage={str(tmp_path)!r})
    print(study.channel.address, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=use).start()
"""
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    path = killed.stdout.strip().removeprefix("unix:")
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            break
        assert time.monotonic() < deadline, "it still listens"
        time.sleep(0.02)


def test_a_program_that_cannot_be_started_is_an_error(tmp_path, monkeypatch):
    broken = tmp_path / "hpo-server"
    broken.write_text("no program")
    broken.chmod(0o755)
    monkeypatch.setenv("HPO_BIN_DIR", str(tmp_path))
    with pytest.raises(hpo.HpoError, match="hpo-server cannot be started"):
        hpo.Study("mine", SPACE, storage=tmp_path)


def test_stop(study):
    trial = study.ask()
    study.stop()
    study.tell(trial, 1.0)
    assert study.ask() is None


def test_watch(study):
    seen = []
    watching = threading.Event()

    def watch():
        for kind, one in study.watch():
            seen.append((kind, one.number, one.state))
            watching.set()
            if kind == "finished" and one.number == 1:
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    while not watching.wait(0.05):
        study.enqueue({"x": 0.5})
        assert len(study.trials) < 100
    while watcher.is_alive() and (trial := study.ask()) is not None:
        study.tell(trial, 1.0)
        watcher.join(0.05)
    watcher.join(10)
    assert ("finished", 1, "completed") in seen


def test_two_objectives(tmp_path):
    with hpo.Study("two", SPACE, objectives={"a": "minimize", "b": "maximize"}, trials=4,
                   storage=tmp_path) as study:
        while (trial := study.ask()) is not None:
            study.tell(trial, {"a": trial["x"], "b": trial["x"]})
        assert len(study.best_trials()) == 4


def test_errors_of_the_server_say_what_it_said(tmp_path):
    with pytest.raises(hpo.ServerError, match="nothing"):
        hpo.Study("nothing", storage=tmp_path)
    with pytest.raises(hpo.InvalidInput, match="direction of value: expected"):
        hpo.Study("mine", SPACE, direction="down", storage=tmp_path)
    with hpo.Study("mine", SPACE, storage=tmp_path) as study:
        with pytest.raises(hpo.InvalidInput, match="y"):
            study.enqueue({"y": 1.0})


def test_what_is_noted_of_a_study_and_its_trials(study):
    trial = study.ask()
    trial.annotate({"data": {"rows": [1, 2]}}, seen=True)
    trial.annotate(seen=None)
    assert trial.attributes == {"data": {"rows": [1, 2]}, "seen": None}
    assert study.trials[0].attributes == trial.attributes
    study.tell(trial, 1.0)
    study.annotate({"owner": "me", "gone": 1}, note="the first", tags=["b", "a"])
    study.annotate({"gone": None}, untags=["b"])
    study.annotate({"data": None}, trial=trial.number, note="look", tags=["good"])
    assert (study.note, study.tags, study.attributes) == ("the first", ["a"], {"owner": "me"})
    record = study.trials[0]
    assert (record.note, record.tags, record.attributes) == ("look", ["good"], {"seen": None})
    with pytest.raises(hpo.InvalidInput, match="attribute 'f': expected a value that JSON has"):
        trial.annotate(f=test_watch)
    with pytest.raises(hpo.InvalidInput, match="attribute 'f'"):
        study.annotate({"f": float("nan")})
    with pytest.raises(hpo.InvalidInput, match="does not begin with hpo."):
        study.annotate({"hpo.note": "mine"})


def test_failed_trials_are_tried_again(study):
    trial = study.ask()
    study.tell(trial, ValueError("broken"))
    assert study.retry(trial.number) == [1]
    assert study.retry() == []
    again = study.ask()
    assert (again.number, again.params) == (1, trial.params)
    study.tell(again, 1.0)
    assert study.retry() == []
    with pytest.raises(hpo.ServerError, match="expected one that failed"):
        study.retry(again.number)


def test_a_target_ends_the_study(tmp_path):
    with hpo.Study("mine", SPACE, trials=100, target=0.5, storage=tmp_path) as study:
        study.tell(study.ask(), 0.6)
        study.tell(study.ask(), 0.5)
        assert study.ask() is None
        assert "trial #1 reached the target" in study.state().waiting_for


def tell_all(study, trials):
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, trial["x"])


def test_other_ranges(tmp_path):
    space = {"x": hpo.uniform(0, 1), "n": hpo.int(1, 9, step=2), "kind": ["a", "b"]}
    with hpo.Study("mine", space, trials=30, storage=tmp_path, seed=1) as study:
        tell_all(study, 6)
        waits = study.enqueue({"x": 0.9})
        outside = sum(one.params["x"] > 0.5 for one in study.trials)
        change = {"x": hpo.uniform(0, 0.5), "kind": ["a", "b", "c"]}
        planned = study.edit(change, dry_run=True)
        assert planned.before == {"x": hpo.uniform(0, 1), "kind": hpo.choice(["a", "b"])}
        assert planned.after == {"x": hpo.uniform(0, 0.5), "kind": hpo.choice(["a", "b", "c"])}
        assert study.edit({"x": hpo.uniform(0, 1), "n": hpo.int(1, 9, step=2)}).after == {}
        edited = study.edit(change)
        assert (edited.outside, edited.cancelled) == (outside, [waits])
        tell_all(study, 12)
        assert max(one.params["x"] for one in study.trials[waits + 1:]) <= 0.5
        back = study.edit({"x": hpo.log(1e-3, 1), "n": hpo.int(1, 20)})
        assert back.before == {"x": hpo.uniform(0, 0.5), "n": hpo.int(1, 9, step=2)}
        assert back.after == {"x": hpo.log(1e-3, 1), "n": hpo.int(1, 20)}


def test_what_is_no_edit(study):
    for space, said in (({"y": [1, 2]}, "parameter y: expected one of the study's parameters"),
                        ({"x": hpo.uniform(0, 1, default=0.5)}, "x: expected a range or choices alone, got default="),
                        ({"x": 3}, "x: expected hpo.uniform, hpo.log, hpo.int or a list of choices, got 3"),
                        ({}, "ranges: expected them or yaml, got neither")):
        with pytest.raises(hpo.InvalidInput, match=said):
            study.edit(space)
    with pytest.raises(hpo.ServerError, match="parameter x: expected the kind that its trials have"):
        study.edit({"x": hpo.int(1, 2)})


def test_delete_and_restore(study, tmp_path):
    tell_all(study, 4)
    study.annotate({"owner": "me"}, note="kept")
    trials = study.trials
    file = tmp_path / "kept"
    assert study.delete(file) == file
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    with pytest.raises(hpo.ServerError, match="mine"):
        study.state()
    assert hpo.restore(file, server=study.channel.address) == "mine"
    assert (study.trials, study.note, study.attributes) == (trials, "kept", {"owner": "me"})
    with pytest.raises(hpo.ServerError, match="expected a name that no study has"):
        hpo.restore(file, server=study.channel.address)
    assert hpo.restore(file, "again", storage=tmp_path / "other") == "again"
    with hpo.Study("again", storage=tmp_path / "other") as again:
        assert again.trials == trials
        tell_all(again, 2)
        assert again.ask() is None


def test_an_archive_in_this_folder(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert study.delete() == pathlib.Path("mine.hpo-study")
    assert hpo.restore("mine.hpo-study", server=study.channel.address) == "mine"
    assert study.delete(no_archive=True) is None
    assert [path.name for path in tmp_path.glob("*hpo-study*")] == ["mine.hpo-study"]


def test_where_nothing_is_deleted(study, tmp_path):
    file = tmp_path / "kept"
    trial = study.ask()
    with pytest.raises(hpo.ServerError, match="without running trials"):
        study.delete(file)
    assert not file.exists()  # it is no archive of something that is gone
    study.tell(trial, 1.0)
    file.write_text("mine")
    with pytest.raises(hpo.InvalidInput, match="kept is there: expected a new file"):
        study.delete(file)
    assert file.read_text() == "mine"
    with pytest.raises(FileNotFoundError):
        study.delete(tmp_path / "nowhere" / "kept")
    with pytest.raises(hpo.InvalidInput, match="expected a file or no_archive=True, got both"):
        study.delete(file, no_archive=True)
    assert len(study.trials) == 1
    assert not list(tmp_path.glob(".kept*"))


def test_what_is_no_archive(study, tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    tell_all(study, 1)
    study.delete(whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    for content in (b"", b"".join(lines[:-1]), b"".join(lines[:2] + lines[3:])):
        part.write_bytes(content)
        with pytest.raises(hpo.InvalidInput):
            hpo.restore(part, server=study.channel.address)
    with pytest.raises(FileNotFoundError):
        hpo.restore(tmp_path / "none", server=study.channel.address)
    for both in ({}, {"server": study.channel.address, "storage": tmp_path}):
        with pytest.raises(hpo.InvalidInput, match="expected storage= or server=, got"):
            hpo.restore(whole, **both)
    assert hpo.restore(whole, server=study.channel.address) == "mine"
