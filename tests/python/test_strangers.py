"""What strangers met who used the package from its documents alone, each case as they met it."""

import asyncio
import math
import os
import pathlib
import subprocess
import sys
import threading
import time

import numpy
import pytest

import hpo
from hpo import _outcomes, _runner

SPACE = {"x": hpo.uniform(0, 1)}


class StopsLate(hpo.Pruner):
    """Decides when the trial has long ended."""

    def should_prune(self, trial, study):
        time.sleep(0.3)
        return True


def test_a_trial_that_returns_before_it_hears_that_it_is_pruned_is_not_lost():
    def train(trial):
        trial.report(1, trial["x"])
        return trial["x"]

    with hpo.Study("s", SPACE, pruner=StopsLate(), trials=3) as study:
        study.optimize(train, verbose=False)
        assert [one.state for one in study.trials] == ["completed"] * 3


def test_a_search_does_not_wait_for_trials_that_this_process_holds_itself(monkeypatch):
    monkeypatch.setattr(_runner, "_UNTOLD_S", 1.0)
    with hpo.Study("s", SPACE, trials=2) as study:
        study.ask()
        assert "trial 0 was asked for by this process and never told" in study.waiting_for
        with pytest.warns(hpo.EndedEarly, match=r"study.tell\(0, value\)"):
            study.optimize(lambda trial: trial["x"], verbose=False)
        assert [one.state for one in study.trials] == ["running", "completed"]


def test_another_thread_may_tell_what_a_search_waits_for(monkeypatch):
    monkeypatch.setattr(_runner, "_UNTOLD_S", 0.1)
    with hpo.Study("s", SPACE, trials=2) as study:
        trial = study.ask()

        def tell():
            while study.state().counts.completed < 1:
                time.sleep(0.02)
            time.sleep(3)
            study.tell(trial, 0.5)

        teller = threading.Thread(target=tell)
        teller.start()
        study.optimize(lambda one: one["x"], verbose=False)
        teller.join()
        assert [one.state for one in study.trials] == ["completed", "completed"]


def test_a_stopped_study_with_a_running_trial_says_that_it_was_stopped():
    with hpo.Study("s", SPACE, trials=5) as study:
        study.ask()
        study.stop()
        said = study.ask() or study.waiting_for
        assert "stopped" in said and "wall clock" not in said


def test_optimize_runs_as_many_trials_as_it_was_told_where_one_is_tried_again(tmp_path):
    def train(trial):
        if trial.number == 0 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), 9)
        return trial["x"]

    with hpo.Study("s", SPACE) as study:
        study.optimize(train, trials=3, verbose=False)
        assert [one.state for one in study.trials] == ["completed"] * 3


def test_catch_of_optimize_lets_any_number_fail():
    def train(trial):
        raise ZeroDivisionError

    with hpo.Study("s", SPACE, trials=7) as study:
        study.optimize(train, catch=ZeroDivisionError, verbose=False)
        assert [one.state for one in study.trials] == ["failed"] * 7


def test_optimize_says_why_it_runs_nothing():
    with hpo.Study("s", SPACE, trials=1) as study:
        study.optimize(lambda trial: trial["x"], verbose=False)
        with pytest.warns(hpo.EndedEarly, match=r"no trial has run: its budget is used up; study.extend\(10\)"):
            study.optimize(lambda trial: trial["x"], trials=3, verbose=False)
        study.extend(2)
        study.optimize(lambda trial: trial["x"], verbose=False)
        assert len(study.trials) == 3
        study.extend(2)
        study.stop()
        with pytest.warns(hpo.EndedEarly, match=r"it was stopped; study.resume\(\)"):
            study.optimize(lambda trial: trial["x"], verbose=False)


def test_add_trial_takes_what_a_result_may_be():
    with hpo.Study("s", SPACE) as study:
        for value, said in ((math.nan, "finite value"), ([0.25, 7.0], "one number")):
            with pytest.raises(hpo.InvalidInput, match=said):
                study.add_trial({"x": 0.5}, value)
        assert study.trials == []
    with hpo.Study("s", SPACE, objectives={"a": "minimize", "b": "minimize"}) as study:
        with pytest.raises(hpo.InvalidInput, match="2 objectives"):
            study.add_trial({"x": 0.5}, [1.0, 2.0, 3.0])


def test_reports_of_one_step_are_one():
    with hpo.Study("s", SPACE) as study:
        trial = study.ask()
        trial.report(1, lr=0.1)
        trial.report(1, accuracy=0.7)
        trial.report(1, 0.3)
        trial.report(1, 0.2)
        study.tell(trial, 0.3)
        [report] = study.trial(0).reports
        assert report.metrics == {"lr": 0.1, "accuracy": 0.7, "value": 0.3}
        for late in (lambda: trial.report(2, 0.5), lambda: trial.annotate(a=1)):
            with pytest.raises(hpo.InvalidInput, match="trial 0 was told already"):
                late()


class Own(BaseException):
    pass


@pytest.mark.parametrize("error", [KeyboardInterrupt("key"), GeneratorExit("gen"), asyncio.CancelledError("task"), Own("own")])
def test_exceptions_that_are_none_of_exception_are_recorded_as_they_are(error):
    def train(trial):
        if trial.number == 0:
            raise error
        return trial["x"]

    with hpo.Study("s", SPACE, trials=2) as study:
        study.optimize(train, verbose=False)
        failed = study.trials[0]
        assert failed.state == "failed"
        assert failed.why == f"{type(error).__module__ + '.' if type(error).__module__ != 'builtins' else ''}" \
                             f"{type(error).__name__}: {error}"


def test_a_group_of_exceptions_is_named_by_its_first_line():
    lines = ["  + Exception Group Traceback (most recent call last):", '  |   File "a.py", line 2, in f',
             "  |     raise ExceptionGroup('two of them', [ValueError(1), KeyError(2)])",
             "  | ExceptionGroup: two of them (2 sub-exceptions)", "  +-+---------------- 1 ----------------",
             "    | ValueError: 1", "    +---------------- 2 ----------------", "    | KeyError: 2",
             "    +------------------------------------"]
    assert _outcomes.headline("\n".join(lines)) == "ExceptionGroup: two of them (2 sub-exceptions)"


PIPE = """
import hpo, sys
print(hpo.minimize(lambda trial: trial["x"], {"x": hpo.uniform(0, 1)}, trials=4).number >= 0)
"""


def test_a_search_whose_progress_nobody_reads_goes_on():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", PIPE], stdout=subprocess.PIPE, stderr=writer, timeout=60, check=True)
    os.close(writer)
    assert done.stdout == b"True\n"


@pytest.mark.parametrize("name", ["lr=0.1,wd=0.2", "run #3", "a?b", "50%20", "a;b", "päth ✓"])
def test_a_folder_may_have_any_name(tmp_path, name):
    for trials in (1, 2):
        hpo.minimize(lambda trial: trial["x"], SPACE, trials=trials, storage=tmp_path / name, verbose=False)
    with hpo.load(storage=tmp_path / name) as study:
        assert len(study.trials) == 2


def test_a_folder_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with hpo.Study("s", SPACE, storage="rel", trials=1) as study:
        monkeypatch.chdir("/")
        study.optimize(lambda trial: trial["x"], verbose=False)
        assert study.folder == tmp_path / "rel"
    monkeypatch.setenv("HOME", str(tmp_path))
    with hpo.Study("s", SPACE, storage="~/home") as study:
        assert study.folder == tmp_path / "home"
    with pytest.raises(hpo.InvalidInput, match="storage: expected a folder, got an empty text"):
        hpo.Study("s", SPACE, storage="")
    assert not pathlib.Path("~").exists()


FORK_HANDLER = """
import hpo, os, threading
end = threading.Event()
thread = threading.Thread(target=end.wait)  # so that a fork would be unsafe
thread.start()
os.register_at_fork(before=lambda: 1 / 0 if False else None, after_in_child=lambda: threading.Event().wait())
with hpo.Study("s", {"x": hpo.uniform(0, 1)}, trials=1) as study:
    study.tell(study.ask(), 0.5)
end.set()
"""


def test_the_server_starts_without_a_fork_of_this_process():
    subprocess.run([sys.executable, "-c", FORK_HANDLER], timeout=60, check=True)


def test_any_character_may_be_in_a_space():
    odd = ["a 😀", "b\u2028c", "d\x85e", "\ufefff"]
    with hpo.Study("s", {"x": odd, "y": [("😀", 1), ("b", 2)]}, metric="m 😀") as study:
        seen = {study.ask()["x"] for _ in range(8)}  # all that there are
        assert seen == set(odd)


def test_scalars_of_numpy_are_numbers_everywhere():
    space = {"x": hpo.uniform(0, 1), "y": [1, 2, 3], "z": hpo.uniform(0, 1, when={"y": [numpy.int64(1), numpy.int64(2)]})}
    constraints = [{"metric": "seconds", "at_most": numpy.float32(3)}]
    with hpo.Study("s", space, seed=numpy.int64(3), constraints=constraints, trials=numpy.int64(9)) as study:
        study.annotate({"rows": numpy.int64(3)})
        trial = study.ask()
        trial.annotate(rows=numpy.float32(0.5), shape=numpy.array([1, 2]))
        study.tell(numpy.int64(trial.number), {"value": numpy.float64(0.5), "seconds": 1})
        assert study.attributes == {"rows": 3}
        assert study.trial(0).attributes == {"rows": 0.5, "shape": [1, 2]}
        trial = study.ask()
        for value in (numpy.int64(1), 1):
            with pytest.raises(hpo.InvalidInput, match="not report"):
                trial.report(1.0, value)


class WithItem:
    def __init__(self, name):
        self.name = name

    def item(self, index):
        return index

    def __repr__(self):
        return self.name


def test_a_choice_may_have_a_method_item():
    a, b = WithItem("a"), WithItem("b")
    with hpo.Study("s", {"x": [a, b]}) as study:
        assert study.ask()["x"] in (a, b)


def test_a_short_time_limit_leaves_the_trial_its_time():
    def train(trial):
        begin = time.monotonic()
        while not trial.should_stop():
            trial.report(int((time.monotonic() - begin) * 100), 1.0, ran=time.monotonic() - begin)
            time.sleep(0.05)

    with hpo.Study("s", SPACE, trials=1, budget={"trial_wall_clock": "4s"}, pruner="none") as study:
        study.optimize(train, verbose=False)
        [trial] = study.trials
        assert (trial.state, trial.why) == ("pruned", "time limit")
        assert trial.reports[-1].metrics["ran"] > 2


def test_infinite_values_of_an_objective_stay_what_they_are(tmp_path):
    with hpo.Study("s", SPACE, trials=3) as study:
        for value in (0.5, math.inf, -math.inf):
            study.tell(study.ask(), value)
        for one in study.trials:
            if one.state == "completed":
                assert one.values[0] == one.value


def test_slips_are_named():
    for call, said in (
            (lambda: hpo.Study({"x": hpo.uniform(0, 1)}), "hpo.Study\\(\"study\", space\\)"),
            (lambda: hpo.Study(3, SPACE), "name: expected a text, got 3"),
            (lambda: hpo.Study("s", [1, 2]), "space: expected a dict"),
            (lambda: hpo.uniform(2, 2), "one value alone is a list"),
            (lambda: hpo.minimize(lambda trial: 0, SPACE, trials=1, callbacks=3), "callbacks: expected functions"),
            (lambda: hpo.minimize(lambda trial: 0, SPACE, trials=1, catch=3), "catch: expected classes"),
            (lambda: hpo.minimize(lambda trial: 0, SPACE, trials=1, memory="1KiB"), "memory: expected at least 1MiB")):
        with pytest.raises(hpo.InvalidInput, match=said):
            call()
    for call, said in ((lambda: hpo.uniform(1, 2, log=True), "hpo.log\\(low, high\\)"),
                       (lambda: hpo.log(1, 2, step=1), "hpo.choice")):
        with pytest.raises(TypeError, match=said):
            call()
