"""What a study has found: records, the best, importances, plots; trials of other processes and programs."""

import concurrent.futures
import datetime
import pickle
import subprocess
import sys

import pytest

import hpo
from hpo.trial import Trial

SPACE = {"x": hpo.uniform(0, 1), "kind": ["a", "b"]}


@pytest.fixture
def study(tmp_path):
    with hpo.Study("mine", SPACE, trials=30, storage=tmp_path, seed=1) as opened:
        yield opened


def tell_all(study, trials, value=lambda trial: (trial["x"] - 0.3) ** 2):
    for _ in range(trials):
        trial = study.ask(timeout=10)
        study.tell(trial, value(trial))


def test_a_record_has_all_that_happened(study):
    trial = study.ask()
    trial.report(1, 0.5, epoch=0.5, accuracy=0.75)
    trial.report(2, 0.25, epoch=1)
    study.tell(trial, {"value": 0.25, "seconds": 3})
    for record in (study.trial(0), study.trials[0], study.best, study.best_trials()[0]):
        assert [(one.step, one.epoch, one.value) for one in record.reports] == [(1, 0.5, 0.5), (2, 1.0, 0.25)]
        assert record.reports[0].metrics == {"value": 0.5, "accuracy": 0.75}
        assert record.values == [0.25] and record.metrics == {"value": 0.25, "seconds": 3.0}
        assert isinstance(record.duration, datetime.timedelta) and record.duration.total_seconds() >= 0
        assert [(one.number, one.state) for one in record.attempts] == [(1, "finished")]
        assert record == study.trial(0)
    assert repr(study.trial(0)) == f"TrialRecord(0, completed, value=0.25, params={trial.params!r})"
    assert pickle.loads(pickle.dumps(study.trials[0])) == study.trial(0)
    assert repr(study).startswith("Study('mine', ")


def test_a_failure_shows_its_line_and_has_the_whole(study):
    class Several(Exception):
        pass

    try:
        raise Several("the first line\nthe second\nthe third")
    except Several as error:
        study.tell(study.ask(), error)
    record = study.trials[0]
    assert record.why.endswith("Several: the first line")
    assert record.error.startswith("Traceback")
    study.tell(study.ask(), ValueError("x" * 3000 + " end"))
    assert len(study.trials[1].error) > 3000
    with pytest.raises(hpo.HpoError) as raised:
        study.best
    assert "no trial completed (0 pruned, 2 failed, 0 cancelled); the last that failed was trial 1:\nTraceback" in str(
        raised.value)
    assert "xxx end" in str(raised.value)


def test_a_record_outlives_its_study(tmp_path):
    with hpo.Study("mine", SPACE, storage=tmp_path) as study:
        tell_all(study, 1)
        best, listed = study.best, study.trials[0]
    assert best.reports == () and best.attempts[0].number == 1
    with pytest.raises(hpo.HpoError, match="the study is closed"):
        listed.reports


def test_several_objectives(tmp_path):
    with hpo.Study("two", SPACE, objectives={"loss": "minimize", "speed": "maximize"}, trials=6, storage=tmp_path) as study:
        study.optimize(lambda trial: (trial["x"], trial["x"] * 2), verbose=False, trials=3)
        tell_all(study, 2, lambda trial: [trial["x"], trial["x"] * 2])
        tell_all(study, 1, lambda trial: {"speed": trial["x"] * 2, "loss": trial["x"]})
        record = study.best_trials()[0]
        assert record.values == [record.params["x"], record.params["x"] * 2]
        assert "values=[" in repr(record)
        assert study.objectives == {"loss": "minimize", "speed": "maximize"}
        with pytest.raises(hpo.HpoError, match=r"expected one objective, got 2 \(loss, speed\).*study.best_trials"):
            study.best
    with hpo.Study("two", storage=tmp_path) as study, pytest.raises(hpo.InvalidInput, match="told already"):
        study.tell(0, [1.0, 2.0])


def test_too_few_values(tmp_path):
    with hpo.Study("two", SPACE, objectives={"a": "minimize", "b": "minimize"}, storage=tmp_path) as study:
        trial = study.ask()
        with pytest.raises(hpo.InvalidInput, match="got 1 values, but the study has the 2 objectives 'a', 'b'"):
            study.tell(trial, [1.0])
        with pytest.raises(hpo.InvalidInput, match="the study's objective is 'b'"):
            study.tell(trial, {"a": 1.0})


def test_trials_that_ran_elsewhere(study):
    first = study.add_trial({"x": 0.3, "kind": "a"}, 0.125, reports=[(1, 0.5), (2, 0.125)], attributes={"from": "notes"})
    failed = study.add_trial({"x": 0.9, "kind": "a"}, state="failed", error="it diverged")
    pruned = study.add_trial({"x": 0.8, "kind": "b"}, state="pruned", reports=[(1, 9.0)])
    assert (study.best.number, study.best.value) == (first, 0.125)
    assert [one.value for one in study.trial(first).reports] == [0.5, 0.125]
    assert study.trial(first).attributes == {"from": "notes"}
    assert (study.trial(failed).state, study.trial(failed).why) == ("failed", "it diverged")
    assert study.trial(pruned).state == "pruned"
    for call, said in ((lambda: study.add_trial({"x": 0.5, "kind": "a"}), "expected value= or metrics="),
                       (lambda: study.add_trial({"x": 5, "kind": "a"}, 1.0), "x"),
                       (lambda: study.add_trial({"x": 0.5, "kind": "a"}, 1.0, state="done"), "state: expected one of")):
        with pytest.raises(hpo.InvalidInput, match=said):
            call()
    assert len(study.trials) == 3


def in_pool(trial):
    trial.report(1, 2.0)
    trial.annotate(where="pool")
    return trial["x"]


def test_a_pool_of_processes(study):
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        asked = [study.ask() for _ in range(4)]
        for trial, value in zip(asked, pool.map(in_pool, asked)):
            assert study.tell(trial, value) == "completed"
    for one in study.trials:
        assert one.value == one.params["x"] and one.attributes == {"where": "pool"}
        assert [report.value for report in one.reports] == [2.0]


def other_process(tmp_path, text):
    program = f"import hpo, pickle, sys\nwith hpo.load('mine', storage={str(tmp_path)!r}) as study:\n    {text}\n"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_another_process_tells(study, tmp_path):
    by_number, by_trial = study.ask(), study.ask()
    assert other_process(tmp_path, f"print(study.tell({by_number.number}, 0.5))").stdout == "completed\n"
    (tmp_path / "trial").write_bytes(pickle.dumps(by_trial))
    text = f"print(study.tell(pickle.load(open({str(tmp_path / 'trial')!r}, 'rb')), ValueError('broken')))"
    assert other_process(tmp_path, text).stdout == "failed\n"
    assert [one.state for one in study.trials] == ["completed", "failed"]
    assert "told already" in other_process(tmp_path, f"study.tell({by_number.number}, 0.5)").stderr
    again = study.ask()
    assert study.tell(again.number, 0.25) == "completed"


def test_a_trial_goes_to_another_process_by_a_server_as_well(study):
    trial = study.ask()
    program = (f"import hpo, pickle\nwith hpo.load('mine', server={study.channel.address!r}) as study:\n"
               f"    trial = pickle.loads({pickle.dumps(trial)!r})\n    trial.report(1, 0.5)\n"
               "    print(study.tell(trial, 0.25))\n"
               f"    study.tell({study.ask().number}, 1.0)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "completed\n" and "trial 1 runs elsewhere" in done.stderr
    assert [one.value for one in study.trial(0).reports] == [0.5]


def test_what_waits_is_told_by_its_number(study, tmp_path):
    waits = [study.enqueue({"x": one / 10, "kind": "a"}) for one in range(4)]
    assert other_process(tmp_path, f"print(study.tell({waits[2]}, 0.5))").stdout == "completed\n"
    assert [one.state for one in study.trials] == ["queued", "queued", "completed", "queued"]
    asked = other_process(tmp_path, "print(study.ask().number)")  # it ends without a word
    assert asked.stdout == "0\n"
    assert study.tell(0, 0.25) == "completed"
    assert study.trial(0).attempts[-1].state == "finished" and study.ask().number == waits[1]
    assert "trial" in other_process(tmp_path, "study.tell(17, 0.5)").stderr


def test_importances(study):
    with pytest.raises(hpo.HpoError, match="study.importances: .*trials"):
        study.importances()
    tell_all(study, 25, lambda trial: (trial["x"] - 0.3) ** 2)
    shares = study.importances()
    assert list(shares) == ["x", "kind"] and shares["x"] > 0.8
    assert sum(shares.values()) == pytest.approx(1)
    assert study.importances("value", method="fanova")["x"] > 0.5
    with pytest.raises(hpo.HpoError, match="expected an objective of mine, value; got 'loss'"):
        study.importances("loss")


def test_plots(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    space = {"lr": hpo.log(1e-5, 1e-1), "kind": ["a", (1, 2), "b"], "n": hpo.int(1, 8)}
    with hpo.Study("mine", space, storage=tmp_path, seed=1) as study:
        with pytest.raises(hpo.HpoError, match="expected a completed trial to plot, got none"):
            hpo.plot.history(study)
        study.optimize(lambda trial: trial["lr"] * trial["n"], trials=12, verbose=False)
        axes = hpo.plot.history(study)
        assert axes.get_ylabel() == "value" and len(axes.lines[0].get_xdata()) == 12
        assert [one.get_text() for one in hpo.plot.importances(study).get_yticklabels()].count("lr") == 1
        slices = hpo.plot.slice(study)
        assert sorted(one.get_xlabel() for one in slices) == ["kind", "lr", "n"]
        assert slices[[one.get_xlabel() for one in slices].index("lr")].get_xscale() == "log"
        assert len(hpo.plot.parallel(study).lines) == 12
        assert hpo.plot.memory(study).get_ylabel() == "GiB"
        axes.figure.savefig(tmp_path / "history.png")
        own = matplotlib.figure.Figure().add_subplot()
        assert hpo.plot.history(study, ax=own) is own
        with pytest.raises(hpo.InvalidInput, match="metric: expected an objective of study mine, 'value', got 'loss'"):
            hpo.plot.history(study, "loss")


def test_plots_without_matplotlib(study):
    tell_all(study, 1)
    code = ("import hpo, sys\nsys.modules['matplotlib'] = sys.modules['matplotlib.pyplot'] = None\n"
            f"with hpo.load('mine', storage={str(study.folder)!r}) as study:\n    hpo.plot.history(study)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "hpo.errors.HpoError: hpo.plot needs matplotlib: pip install matplotlib"


def test_connections(study, tmp_path, monkeypatch):
    tell_all(study, 2)
    with hpo.connect(tmp_path) as there:
        assert there.studies == ["mine"] and there.address == study.channel.address
        with there.load() as loaded:
            assert (loaded.name, len(loaded.trials), loaded.space) == ("mine", 2, study.space)
    with hpo.connect(study.channel.address) as there, there.load("mine") as loaded:
        assert loaded.best == study.best
    monkeypatch.setenv("HPO_SERVER", study.channel.address)
    with hpo.connect() as there, hpo.load("mine") as loaded:
        assert there.studies == [loaded.name]
    with pytest.raises(hpo.ServerError, match="the studies there are: 'mine'"):
        hpo.load("yours", storage=tmp_path)
    with pytest.raises(hpo.InvalidInput, match="expected a folder that is there"):
        hpo.load("mine", storage=tmp_path / "none")
    with pytest.raises(hpo.InvalidInput, match="expected one of them, got"):
        hpo.load("mine", storage=tmp_path, server="localhost:1")
    with pytest.raises(hpo.InvalidInput, match="storage: expected a folder or the address of a server"):
        hpo.Study("mine", SPACE, storage="sqlite:///trials.db")
    for where in (tmp_path / "none", "nowhere", str(tmp_path / "none")):
        with pytest.raises(hpo.InvalidInput, match="hpo.connect: expected a folder that is there"):
            hpo.connect(where)
    assert study.best.number in (0, 1)


def test_a_trial_can_be_copied_without_a_study():
    trial = Trial({"trial": 3, "params": {"x": 1}, "objective": {"metric": "v"}}, None)
    assert pickle.loads(pickle.dumps(trial)).params == {"x": 1}


def test_what_is_noted_of_asked_trials_stays_small(study, tmp_path, monkeypatch):
    monkeypatch.setattr("hpo._handover._MOST_LINES", 3)
    kept = study.ask()
    tell_all(study, 12)
    files = list((tmp_path / "sessions").glob(".asked-*"))
    assert len(files) == 1 and len(files[0].read_bytes().splitlines()) < 9
    assert files[0].stat().st_mode & 0o777 == 0o600
    assert other_process(tmp_path, f"print(study.tell({kept.number}, 0.5))").stdout == "completed\n"
