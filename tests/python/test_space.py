"""Spaces: what can be a range and a choice, and what a trial gets of it."""

import enum
import pickle
import random
import subprocess
import sys

import pytest

import hpo
from hpo import space as spaces

numpy = pytest.importorskip("numpy")


class Act(enum.Enum):
    RELU = 1
    GELU = 2


class Net:
    pass


def domain(given):
    return spaces.domain_of("x", given)


def test_what_numpy_has_is_plain():
    assert domain(list(numpy.arange(20, 60, 20))) == hpo.choice([20, 40])
    assert domain(numpy.array([16, 32])) == hpo.choice([16, 32])
    assert domain(numpy.array(["a", "b"])) == hpo.choice(["a", "b"])
    assert domain([numpy.float32(0.5), numpy.bool_(True)]) == hpo.choice([0.5, True])
    assert [type(one) for one in domain(numpy.array([16, 32])).values] == [int, int]
    assert hpo.int(numpy.int64(1), numpy.int32(3), default=numpy.int8(2)) == hpo.int(1, 3, default=2)
    assert hpo.uniform(numpy.float32(0.5), numpy.int64(2)) == hpo.uniform(0.5, 2)
    assert hpo.log(*numpy.logspace(-5, -1, 2)).kind == "float"


def test_a_range_is_one_of_whole_numbers():
    assert domain(range(16, 33, 16)) == hpo.int(16, 32, step=16)
    assert domain(range(3, 0, -1)) == hpo.int(1, 3)
    assert domain(range(1, 11)) == hpo.int(1, 10)
    with pytest.raises(hpo.InvalidInput, match="x: a range: expected at least one number"):
        domain(range(0))


class Tensor:
    """As torch's of one element."""

    ndim = 0

    def __init__(self, value):
        self._value = value

    def item(self):
        return self._value


def test_scalars_of_torch():
    assert domain([Tensor(3), Tensor(4)]) == hpo.choice([3, 4])
    assert hpo.uniform(Tensor(0.25), 1) == hpo.uniform(0.25, 1)


def test_any_scalar_of_json_is_a_choice():
    assert domain([None, 5, 10]).values == (None, 5, 10)
    assert domain(["sqrt", "log2", 0.5, None, True]).values == ("sqrt", "log2", 0.5, None, True)
    assert hpo.choice([None, 5], default=None).has_default
    assert not hpo.choice([1, 5]).has_default
    assert domain([True, 1]).values == (True, 1)


@pytest.mark.parametrize("given, label", [
    ((64, 64), "(64, 64)"), ([128], "[128]"), ((1,), "(1,)"), ((), "()"), (("a", (1.5, None)), "('a', (1.5, None))"),
    ({"a": 1}, "{'a': 1}"), (Net, "test_space.Net"), (len, "len"), (Act.GELU, "<Act.GELU: 2>"),
    (numpy.array([1, 2]), "array([1, 2])"), (float("inf"), "inf"), (1 << 70, str(1 << 70)), (b"x", "b'x'")])
def test_other_objects_have_labels(given, label):
    made = hpo.choice([given, 1])
    assert made.values == (label, 1)
    assert made.objects[label] is given
    assert spaces.objects_of({"x": made}).given({"x": label})["x"] is given
    assert spaces.objects_of({"x": made}).kept("x", given) == label


def test_labels_of_your_own():
    small, large = Net(), Net()
    made = hpo.choice({"small": small, "large": large}, default=large)
    assert (made.values, made.default) == (("small", "large"), "large")
    assert made.objects == {"small": small, "large": large}
    with pytest.raises(hpo.InvalidInput, match="expected a value whose repr names it, got <test_space.Net"):
        hpo.choice([small])
    with pytest.raises(hpo.InvalidInput, match="name it yourself"):
        hpo.choice([lambda x: x])


@pytest.mark.parametrize("given, said", [
    ((0.0, 1.0), r"x: .*a tuple may mean either: write hpo.uniform\(0.0, 1.0\) for a range, or \[0.0, 1.0\] for choices"),
    ((1, 10), r"write hpo.int\(1, 10\) for a range, or \[1, 10\] for choices"),
    ((numpy.int64(1), numpy.int64(10)), r"write hpo.int\(1, 10\)"),
    (("a", "b"), r"write \['a', 'b'\] for choices"),
    ((1e-5, 1e-1, "log"), r"write hpo.uniform\(1e-05, 0.1\) for a range"),
    ({"a", "b"}, "the order of a set"),
    ({"values": [1, 2]}, r"write hpo.choice\(\{...\}\)"),
    ({"min": 0, "max": 1}, r"hpo.uniform\(low, high\)"),
    ("abc", "expected hpo.uniform, hpo.log, hpo.int or a list of choices, got 'abc'"),
    (3, "got 3"), (None, "got None"),
    ([1, 2, 1], "x: a choice: expected each value once, got 1 twice"),
    ([1, 1.0], "got 1.0 twice"), ([(1, 2), (1, 2)], r"got '\(1, 2\)' twice"),
    ([(1, 2), "(1, 2)"], r"got '\(1, 2\)' twice"),
    ([], "expected at least one value"), (["\udc80"], "expected text that UTF-8 has"), (["x" * 5000], "at most 4,096")])
def test_what_is_no_entry(given, said):
    with pytest.raises(hpo.InvalidInput, match=said):
        domain(given)


@pytest.mark.parametrize("make, said", [
    (lambda: hpo.uniform("0", 1), "hpo.uniform: low: expected a finite number, got '0'"),
    (lambda: hpo.uniform(0, float("inf")), "high: expected a finite number, got inf"),
    (lambda: hpo.int(True, 3), "low: expected a whole number, got True"),
    (lambda: hpo.int(1, 8, step=0), "step: expected more than 0, got 0"),
    (lambda: hpo.log(0, 1), "expected low > 0"),
    (lambda: hpo.choice("abc"), "expected a list of values, got 'abc'"),
    (lambda: hpo.choice([1, 2], default=3), "default: expected one of"),
    (lambda: hpo.uniform(0, 1, when={}), "when: expected a parameter and its values, got nothing")])
def test_what_is_no_domain(make, said):
    with pytest.raises(hpo.InvalidInput, match=said):
        make()


@pytest.mark.parametrize("one, shown", [
    (hpo.log(1e-5, 0.1), "hpo.log(1e-05, 0.1)"), (hpo.uniform(0, 1, step=0.5), "hpo.uniform(0.0, 1.0, step=0.5)"),
    (hpo.int(1, 8, log=True), "hpo.int(1, 8, log=True)"), (hpo.choice(["a", (1, 2)]), "hpo.choice(['a', (1, 2)])"),
    (hpo.choice([None, 1], default=None), "hpo.choice([None, 1], default=None)"),
    (hpo.int(1, 2, when={"a": [1, 2]}), "hpo.int(1, 2, when={'a': [1, 2]})")])
def test_how_a_domain_is_shown(one, shown):
    assert repr(one) == shown
    assert hash(one) == hash(pickle.loads(pickle.dumps(one)))


def test_conditions_by_labels():
    assert hpo.int(1, 2, when={"layers": (64, 64), "kind": ["a", numpy.int64(1)]}).when == {
        "layers": "(64, 64)", "kind": ["a", 1]}


def test_a_value_at_random():
    rng = random.Random(1)
    for one in (hpo.log(1e-5, 0.1), hpo.uniform(0, 1), hpo.int(2, 64, log=True)):
        assert all(one.values[0] <= one.draw(rng) <= one.values[1] for _ in range(100))
    assert {hpo.int(1, 7, step=3).draw(rng) for _ in range(50)} == {1, 4, 7}
    assert {hpo.choice([(1, 2), "a"]).draw(rng) for _ in range(50)} == {(1, 2), "a"}
    assert {hpo.uniform(0, 1, step=0.5).draw(rng) for _ in range(50)} == {0.0, 0.5, 1.0}


SPACE = {"layers": [(64, 64), (128,)], "width": range(8, 33, 8), "net": hpo.choice({"net": Net}),
         "n": numpy.array([1, 2])}


@pytest.mark.parametrize("isolate", [True, False])
def test_a_trial_gets_the_objects(isolate):
    def train(trial):
        assert isinstance(trial["layers"], tuple) and trial["net"] is Net and isinstance(trial["n"], int)
        return sum(trial["layers"]) + trial["width"]

    best = hpo.minimize(train, SPACE, trials=8, verbose=False, isolate=isolate)
    assert best.params["layers"] in SPACE["layers"] and best.params["net"] is Net


def test_another_process_gets_the_label_or_by_the_same_space_the_object(tmp_path):
    with hpo.Study("s", {"layers": [(64, 64), [1]]}, trials=3, storage=tmp_path) as study:
        number = study.enqueue({"layers": (64, 64)})
        code = ("import hpo, sys\n"
                f"with hpo.Study('s', {{'layers': [(64, 64), [1]]}}, trials=3, storage={str(tmp_path)!r}) as study:\n"
                "    trial = study.ask(timeout=10)\n    print(trial.number, trial['layers'])\n    study.tell(trial, 1.0)\n")
        assert subprocess.check_output([sys.executable, "-c", code], text=True) == f"{number} (64, 64)\n"
        assert study.trial(number).params == {"layers": (64, 64)}
    with hpo.load("s", storage=tmp_path) as study:
        assert study.trial(number).params == {"layers": "(64, 64)"}
        assert repr(study.space["layers"]) == "hpo.choice(['(64, 64)', '[1]'])"


def test_none_and_mixed_types(tmp_path):
    space = {"depth": [None, 5, 10], "features": ["sqrt", 0.5, 1, True, None]}
    with hpo.Study("s", space, trials=20, storage=tmp_path) as study:
        study.enqueue({"depth": None, "features": None})
        first = study.ask()
        assert first["depth"] is None and first["features"] is None and first.params == {"depth": None, "features": None}
        study.tell(first, 1.0)
        study.optimize(lambda trial: float(trial["depth"] or 0), verbose=False)
        assert {(type(one.params["depth"]), one.params["depth"]) for one in study.trials} == {
            (type(one), one) for one in space["depth"]}
        kinds = {type(one.params["features"]) for one in study.trials}
        assert kinds <= {str, float, int, bool, type(None)} and len(kinds) > 2
        assert study.best.params["depth"] is None
