"""A running trial: its parameters, and bad words of it, which are raised where they are said."""

import pathlib
import re

import pytest

import hpo
from hpo import checks
from hpo.space import domain_of, entry_of
from hpo.trial import Trial

SPACE = {"x": hpo.uniform(0, 1)}


class Words:
    """A sink that keeps what it is told."""

    def __init__(self):
        self.said = []

    def measurement(self, step, epoch, metrics):
        self.said.append((step, epoch, metrics))

    def stage(self, name, memory):
        self.said.append(name)

    def attributes(self, noted):
        self.said.append(noted)

    def stop_reason(self):
        return ""


@pytest.fixture
def trial():
    return Trial({"trial": 3, "params": {"lr": 0.5, "kind": "a"}, "objective": {"metric": "loss"}}, Words())


def test_a_trial_is_like_a_dict(trial):
    assert "lr" in trial and "momentum" not in trial
    assert list(trial.keys()) == list(trial) == ["lr", "kind"]
    assert list(trial.items()) == [("lr", 0.5), ("kind", "a")] and list(trial.values()) == [0.5, "a"]
    assert dict(trial) == dict(**trial) == {"lr": 0.5, "kind": "a"}
    assert repr(trial) == "Trial(3, lr=0.5, kind='a')"
    assert trial.get("momentum", 0.9) == 0.9


def test_an_unknown_name_is_a_key_error(trial):
    with pytest.raises(KeyError) as raised:
        trial["l_r"]
    assert isinstance(raised.value, hpo.InvalidInput)
    assert str(raised.value) == "trial 3 has no parameter 'l_r', only 'lr', 'kind'; did you mean 'lr'?"
    with pytest.raises(AttributeError, match="only suggest_float, suggest_int and suggest_categorical"):
        trial.suggest_uniform("lr", 0, 1)
    with pytest.raises(AttributeError, match=r"trial\['lr'\] is a parameter's value"):
        trial.lr


@pytest.mark.parametrize("step, value, kept", [(0, 1.0, 0), (1.0, 0.5, 1), (True + 1, 0.5, 2), (3, 2, 3), (1 << 53, 0, 1 << 53)])
def test_steps(trial, step, value, kept):
    trial.report(step, value, epoch=0.5)
    assert trial.sink.said == [(kept, 0.5, {"loss": value})]


@pytest.mark.parametrize("report, said", [
    (lambda t: t.report(0.25, 1.0), "step: expected a whole number, got 0.25; the order is trial.report(step, value)"),
    (lambda t: t.report(0.9, 1), "got 0.9 with the value 1; the order is trial.report(step, value), not report(value"),
    (lambda t: t.report(2.0, 7), "not report(value, step)"),
    (lambda t: t.report(-1, 1.0), "step: expected 0 to 9007199254740992, got -1"),
    (lambda t: t.report(1 << 60, 1.0), "step: expected 0 to"),
    (lambda t: t.report(float("nan"), 1.0), "step: expected a whole number, got nan"),
    (lambda t: t.report("1", 1.0), "step: expected a whole number, got '1'"),
    (lambda t: t.report(True, 1.0), "step: expected a whole number, got True"),
    (lambda t: t.report(1, "0.5"), "metric 'loss': expected a number, got '0.5' (str)"),
    (lambda t: t.report(1, [0.5]), "metric 'loss': expected a number"),
    (lambda t: t.report(1, 0.5, epoch=float("inf")), "epoch: expected a finite number, got inf"),
    (lambda t: t.report(1, **{"m" * 201: 1.0}), "expected at most 200 bytes, got 201"),
    (lambda t: t.report(1, **{"\ud800": 1.0}), "expected text that UTF-8 has"),
    (lambda t: t.report(1, **{"": 1.0}), "expected a name, got ''"),
    (lambda t: t.report(1, **{f"m{i}": 1.0 for i in range(1001)}), "metrics: expected at most 1,000, got 1,001"),
    (lambda t: t.annotate(x=object()), "attribute 'x': expected a value that JSON has"),
    (lambda t: t.annotate(x=float("nan")), "attribute 'x': expected a value that JSON has"),
    (lambda t: t.annotate(x="y" * 4100), "attribute 'x': expected at most 4,096 bytes"),
    (lambda t: t.annotate(x="a\udc80"), "attribute 'x': expected text that UTF-8 has"),
    (lambda t: t.annotate({"hpo.x": 1}), "a key that does not begin with hpo."),
    (lambda t: t.annotate({1: 1}), "attribute: expected a name, got 1"),
    (lambda t: t.annotate({str(i): 1 for i in range(101)}), "expected at most 100 attributes of a trial, got 101"),
    (lambda t: t.stage("s" * 201), "trial.stage: expected at most 200 bytes")])
def test_bad_words(trial, report, said):
    with pytest.raises(hpo.InvalidInput) as raised:
        report(trial)
    assert said in str(raised.value)
    assert trial.sink.said == [] and trial.attributes == {}


def test_numbers_of_other_packages(trial):
    numpy = pytest.importorskip("numpy")
    trial.report(numpy.int64(1), numpy.float32(0.5), other=numpy.array([2.0]))
    assert trial.sink.said == [(1, 0.0, {"loss": 0.5, "other": 2.0})]
    trial.report(2, float("inf"))
    assert trial.sink.said[-1] == (2, 0.0, {"loss": float("inf")})
    with pytest.raises(hpo.InvalidInput, match="not report"):
        trial.report(numpy.float64(0.5), 1)


def test_no_more_reports_than_are_kept(trial, monkeypatch):
    monkeypatch.setattr(checks, "MEASUREMENTS", 2)
    trial.report(1, 0.5)
    trial.report(2, 0.5)
    with pytest.raises(hpo.InvalidInput, match="expected at most 2 reports of a trial"):
        trial.report(3, 0.5)


def test_what_is_long_loses_its_middle():
    text = checks.shortened("start" + "ü" * 100_000 + "end")
    assert len(text.encode()) <= checks.ERROR_BYTES
    assert text.startswith("start") and text.endswith("end") and "bytes left out" in text
    assert checks.shortened("a\udc80b") == "a\\udc80b"


def test_the_limits_are_those_of_the_manual():
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "limits.md").read_text()
    for what, most in (("a name: of a worker", f"{checks.NAME_BYTES} bytes"), ("a value that is text", f"{checks.TEXT_BYTES:,} bytes"),
                       ("the message or traceback", f"{checks.ERROR_BYTES:,} bytes"), ("| metrics |", f"{checks.METRICS:,} a"),
                       ("| measurements |", f"{checks.MEASUREMENTS:,} an"), ("| attributes, note", f"{checks.ATTRIBUTES} a"),
                       ("a size, step, count", f"{checks.NUMBER:,} ")):
        row = next(line for line in page.splitlines() if what in line)
        assert f"| {most}" in row, row


BAD = {
    "step": lambda trial: trial.report(-1, 1.0),
    "argument order": lambda trial: trial.report(0.5, 1),
    "metrics": lambda trial: {"value": 1.0, **{f"f1_{i}": 0.5 for i in range(1001)}},
    "name": lambda trial: {"value": 1.0, "n" * 300: 0.5},
    "message": lambda trial: (_ for _ in ()).throw(ValueError("x" * 300_000)),
    "text": lambda trial: (_ for _ in ()).throw(ValueError("caf\udce9")),
    "attribute": lambda trial: trial.annotate(log="y" * 5000),
    "attributes": lambda trial: trial.annotate({f"a{i}": i for i in range(101)}),
    "surrogate": lambda trial: trial.annotate(text="\udc80"),
    "value": lambda trial: {"value": "0.5"},
}


@pytest.mark.parametrize("which, isolate", [*((which, True) for which in BAD), ("step", False), ("metrics", False),
                                            ("message", False), ("text", False)])
def test_a_bad_word_fails_its_trial_alone(which, isolate, tmp_path):
    def train(trial):
        got = BAD[which](trial) if trial.number == 1 else None
        return got if isinstance(got, dict) else trial["x"]

    for _ in range(2):  # the second call goes on with the same study
        hpo.minimize(train, SPACE, trials=4, storage=tmp_path, verbose=False, isolate=isolate)
    with hpo.load("study", storage=tmp_path) as study:
        assert [one.state for one in study.trials] == ["completed", "failed", "completed", "completed"]
        error = study.trial(1).error
        assert "Traceback" in error and len(error.encode()) <= checks.ERROR_BYTES
        if which in ("step", "attribute", "argument order"):
            assert "test_trial.py" in error  # the frames of who said it
        assert "\n" not in study.trials[1].why and study.trials[1].why


def test_what_the_server_alone_refuses_fails_the_trial_too(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "MEASUREMENTS", 30_000)

    def train(trial):
        if trial.number == 1:
            trial.sink.measurement(-5, 0.0, {"value": 1.0})
        return trial["x"]

    hpo.minimize(train, SPACE, trials=3, storage=tmp_path, verbose=False)
    with hpo.load("study", storage=tmp_path) as study:
        assert [one.state for one in study.trials] == ["completed", "failed", "completed"]
        assert "the server refused what the trial reported" in study.trials[1].why


@pytest.mark.parametrize("value, said", [(float("inf"), "inf"), (float("-inf"), "-inf"), (float("nan"), "nan")])
@pytest.mark.parametrize("isolate", [True, False])
def test_what_is_not_finite_stays_what_it_was(value, said, isolate, tmp_path):
    hpo.minimize(lambda trial: value if trial.number == 1 else 1.0, SPACE, trials=3, storage=tmp_path, verbose=False,
                 isolate=isolate)
    with hpo.load("study", storage=tmp_path) as study:
        record = study.trials[1]
    assert record.state == "failed" and f"got {said}" in record.why, record.why


def suggesting(objects=None, **space):
    """A trial with x=0.5, n=3, kind="a", as of a search of `space`; without, as under hpo-worker."""
    job = {"trial": 3, "params": {"x": 0.5, "n": 3, "kind": "a"}, "objective": {"metric": "loss"}}
    if space:
        job["space"] = {name: entry_of(domain_of(name, one)) for name, one in space.items()}
    return Trial(job, Words(), objects)


FOR_OPTUNA = {"x": hpo.uniform(0, 1), "n": hpo.int(1, 9), "kind": ["a", "b"], "z": hpo.log(1, 2, when={"kind": "b"})}


def test_a_function_for_optuna_gets_its_values():
    for trial in (suggesting(**FOR_OPTUNA), suggesting()):
        assert trial.suggest_float("x", 0, 1.0) == 0.5
        assert trial.suggest_int("n", 1, 9) == 3
        assert trial.suggest_categorical("kind", ("b", "a")) == "a"


@pytest.mark.parametrize("ask, text", [
    (lambda trial: trial.suggest_float("lr", 1e-5, 0.1, log=True),
     "the space has no parameter 'lr': add 'lr': hpo.log(1e-05, 0.1) to the space that is given to hpo.minimize or hpo.Study"),
    (lambda trial: trial.suggest_categorical("layer", [int, None]),
     "the space has no parameter 'layer': add 'layer': hpo.choice([<class 'int'>, None]) to the space that is given to "
     "hpo.minimize or hpo.Study"),
    (lambda trial: trial.suggest_float("x", 0, 10),
     "x: expected the same range in the function and in the space, got hpo.uniform(0.0, 10.0) in the function and "
     "hpo.uniform(0.0, 1.0) in the space"),
    (lambda trial: trial.suggest_int("n", 1, 9, step=2), r"got hpo.int(1, 9, step=2) in the function and hpo.int(1, 9)"),
    (lambda trial: trial.suggest_int("x", 0, 1), "got hpo.int(0, 1) in the function and hpo.uniform(0.0, 1.0)"),
    (lambda trial: trial.suggest_categorical("kind", ["a", "b", "c"]), "got hpo.choice(['a', 'b', 'c']) in the function"),
    (lambda trial: trial.suggest_float("z", 1, 2, log=True),
     "z: the space has it only where kind is 'b'; this trial has x=0.5, n=3, kind='a'"),
    (lambda trial: trial.suggest_float("x", 1, 0), "expected low <= high, got 1.0 and 0.0"),
])
def test_a_range_that_is_not_the_spaces_is_an_error(ask, text):
    with pytest.raises(hpo.InvalidInput, match=re.escape(text)):
        ask(suggesting(**FOR_OPTUNA))


@pytest.mark.parametrize("ask", [lambda trial: trial.suggest_float("x", 0.6, 1), lambda trial: trial.suggest_int("n", 4, 9),
                                 lambda trial: trial.suggest_float("n", 1, 9, step=5),
                                 lambda trial: trial.suggest_categorical("kind", ["b", "c"])])
def test_without_the_space_a_value_outside_the_range_is_an_error(ask):
    with pytest.raises(hpo.InvalidInput, match="expected the same range in the function and in the space"):
        ask(suggesting())


@pytest.mark.parametrize("isolate", [True, False])
def test_a_search_runs_a_function_for_optuna(isolate):
    def train(trial):
        layer = trial.suggest_categorical("layer", [int, float])
        return trial.suggest_float("x", 0, 1) * trial.suggest_int("n", 1, 8, log=True) + layer(1)

    best = hpo.minimize(train, {"x": hpo.uniform(0, 1), "n": hpo.int(1, 8, log=True), "layer": [int, float]}, trials=3,
                        isolate=isolate, verbose=False)
    assert best.value == pytest.approx(best.params["x"] * best.params["n"] + 1)
