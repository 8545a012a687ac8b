"""Searches of one's own making: callbacks, catch, timeout, samplers and pruners."""

import random
import time

import pytest

import hpo

SPACE = {"x": hpo.uniform(0, 1)}


def train(trial):
    return trial["x"]


def fails_at(*numbers, error=ValueError):
    def function(trial):
        if trial.number in numbers:
            raise error("broken")
        return trial["x"]

    return function


@pytest.mark.parametrize("isolate", [True, False])
def test_callbacks(isolate):
    seen = []

    def stop_after_three(study, record):
        seen.append((record.number, record.state, [one.value for one in record.reports]))
        if len(seen) == 3:
            study.stop()

    def reports(trial):
        trial.report(1, 0.5)
        return trial["x"]

    hpo.minimize(reports, SPACE, trials=10, callbacks=[stop_after_three], verbose=False, isolate=isolate)
    assert seen == [(number, "completed", [0.5]) for number in range(3)]


def test_a_callback_that_raises_ends_the_search():
    def broken(study, record):
        raise RuntimeError("in the callback")

    with pytest.raises(RuntimeError, match="in the callback"):
        hpo.minimize(train, SPACE, trials=10, callbacks=broken, verbose=False)


@pytest.mark.parametrize("isolate", [True, False])
def test_catch(tmp_path, isolate):
    best = hpo.minimize(fails_at(*range(7)), SPACE, trials=9, catch=(ValueError,), storage=tmp_path, verbose=False,
                        isolate=isolate)
    assert best.number in (7, 8)
    with pytest.raises(hpo.StudyFailed, match="trial 10 failed by an exception that catch= does not have:\nTraceback"):
        hpo.minimize(fails_at(10, error=KeyError), SPACE, trials=20, catch=[ValueError], storage=tmp_path, verbose=False,
                     isolate=isolate)
    hpo.minimize(fails_at(12, error=KeyError), SPACE, trials=20, catch=LookupError, storage=tmp_path, verbose=False)
    with hpo.load("study", storage=tmp_path) as study:
        assert [one.number for one in study.trials if one.state == "failed"] == [*range(7), 10, 12]


@pytest.mark.parametrize("isolate", [True, False])
def test_timeout(isolate):
    def slow(trial):
        time.sleep(0.3)
        return trial["x"]

    begin = time.monotonic()
    best = hpo.minimize(slow, SPACE, timeout=1.5, verbose=False, isolate=isolate)
    assert best.state == "completed" and time.monotonic() - begin < 60


@pytest.mark.parametrize("options, said", [
    ({}, "the search never ends: expected trials=, timeout=, target= or budget="), ({"timeout": 0}, "timeout: expected seconds"),
    ({"trials": 3, "catch": ("ValueError",)}, "catch: expected classes of exceptions, got 'ValueError'"),
    ({"trials": 3, "callbacks": [3]}, "callbacks: expected functions"), ({"trials": 2.5}, "trials: expected a whole number"),
    ({"trials": 3, "sampler": 5}, "sampler: expected a type such as"), ({"trials": 3, "sampler": "tpee"}, "tpee"),
    ({"trials": 3, "memory": {"limit": "lots"}}, "memory: limit: expected bytes")])
def test_what_is_no_search(options, said):
    with pytest.raises(hpo.InvalidInput, match=said):
        hpo.minimize(train, SPACE, verbose=False, **options)


def test_sections_of_a_study(tmp_path):
    hpo.minimize(train, {**SPACE, "n": hpo.int(1, 9)}, trials=3, sampler="random", pruner={"type": "median", "warmup_steps": 3},
                 memory={"limit": "1GiB", "relevant": ["n"]}, budget={"failures_in_a_row": 2}, storage=tmp_path, verbose=False,
                 constraints=[{"metric": "value", "at_least": 0.0}])
    with hpo.load("study", storage=tmp_path) as study:
        state = study.state()
    assert (state.sampler, state.pruner, state.memory_policy) == ("random", "median", "strict")
    assert state.budget.failures_in_a_row == 2 and state.constraints[0].at_least == 0.0


def test_optimize_runs_some_more_trials(tmp_path):
    with hpo.Study("mine", SPACE, storage=tmp_path) as study:
        study.optimize(train, trials=3, verbose=False)
        study.optimize(train, trials=2, verbose=False, isolate=False)
        study.optimize(train, trials=4, verbose=False, parallel=2)
        assert [one.state for one in study.trials] == ["completed"] * 9


class Halving(hpo.Sampler):
    """Nearer to the best, step by step."""

    def __init__(self):
        self.rng = random.Random(0)

    def suggest(self, study):
        ended = [one for one in study.trials if one.state == "completed"]
        if len(ended) < 3:
            return {name: domain.draw(self.rng) for name, domain in study.space.items()}
        return {"x": study.best.params["x"] / 2}


@pytest.mark.parametrize("options", [{"parallel": 1}, {"parallel": 3}, {"isolate": False}])
def test_a_sampler_of_ones_own(options):
    best = hpo.minimize(train, SPACE, trials=12, sampler=Halving(), verbose=False, **options)
    assert best.number >= 3 and best.value < 0.3


def test_a_sampler_by_ask(tmp_path):
    class Fixed(hpo.Sampler):
        def suggest(self, study):
            return {"x": len(study.trials) / 10}

    with hpo.Study("mine", SPACE, trials=3, sampler=Fixed(), storage=tmp_path) as study:
        while (trial := study.ask()) is not None:
            study.tell(trial, 1.0)
        assert [one.params["x"] for one in study.trials] == [0.0, 0.1, 0.2]


class Above(hpo.Pruner):
    """A trial above the worst that has ended."""

    def should_prune(self, trial, history):
        assert trial.reports[-1].value is not None and trial.number not in history
        at_step = [one.value for told in history.values() for one in told if one.step == trial.reports[-1].step]
        return bool(at_step) and trial.reports[-1].value > min(at_step)


@pytest.mark.parametrize("isolate", [True, False])
def test_a_pruner_of_ones_own(tmp_path, isolate):
    def reports(trial):
        for step in range(3):
            trial.report(step, float(trial.number))
            deadline = time.monotonic() + (20 if trial.number else 0)
            while not trial.should_stop() and time.monotonic() < deadline:
                time.sleep(0.01)
            if trial.should_stop():
                raise hpo.Stopped
        return float(trial.number)

    hpo.minimize(reports, SPACE, trials=3, pruner=Above(), storage=tmp_path, verbose=False, isolate=isolate)
    hpo.minimize(reports, SPACE, trials=4, pruner=Above(), storage=tmp_path, verbose=False, isolate=isolate)
    with hpo.load("study", storage=tmp_path) as study:
        assert [one.state for one in study.trials] == ["completed", "pruned", "pruned", "pruned"]
        assert [len(one.reports) for one in study.trials] == [3, 1, 1, 1]


def test_what_would_never_end(tmp_path):
    with hpo.Study("mine", SPACE, storage=tmp_path, budget={"trial_wall_clock": "1h"}) as study:
        with pytest.raises(hpo.InvalidInput, match="the study mine has no budget: expected trials= or timeout="):
            study.optimize(train)


def test_a_sampler_that_gives_nothing(tmp_path):
    class Nothing(hpo.Sampler):
        def suggest(self, study):
            return None

    with pytest.raises(hpo.InvalidInput, match="Nothing.suggest: expected a dict of parameters, got None"):
        hpo.minimize(train, SPACE, trials=3, sampler=Nothing(), verbose=False)


def test_the_first_failure_ends_a_search_that_catches_nothing():
    with pytest.raises(hpo.StudyFailed, match="trial 2 failed"):
        hpo.minimize(fails_at(2), SPACE, trials=9, catch=(), verbose=False)


def test_an_address_where_nothing_listens():
    begin = time.monotonic()
    with pytest.raises(hpo.ServerError, match="127.0.0.1:9 does not answer"):
        hpo.connect("127.0.0.1:9")
    assert time.monotonic() - begin < 30
