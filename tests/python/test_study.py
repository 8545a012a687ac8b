"""hpo.Study: ask and tell."""

import threading

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
