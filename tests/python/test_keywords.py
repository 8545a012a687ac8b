"""A misspelt keyword is named, with a suggestion, when the program runs and by type checkers before."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys

import pytest

import hpo

SPACE = {"x": hpo.uniform(0, 1)}
MISSPELT = {  # as Optuna, W&B, Ray Tune, Hyperopt, scikit-learn and fingers have it
    "n_jobs": ("4", "parallel"), "n_trials": ("5", "trials"), "num_samples": ("5", "trials"), "max_evals": ("5", "trials"),
    "count": ("5", "trials"), "n_iter": ("5", "trials"), "trails": ("5", "trials"), "max_concurrent_trials": ("2", "parallel"),
    "num_workers": ("2", "parallel"), "paralel": ("2", "parallel"), "time_budget_s": ("5", "timeout"),
    "time_out": ("5", "timeout"), "random_state": ("1", "seed"), "sead": ("1", "seed"), "study_name": ("'a'", "name"),
    "project": ("'a'", "name"), "search_alg": ("'tpe'", "sampler"), "samplr": ("'tpe'", "sampler"),
    "scheduler": ("'asha'", "pruner"), "early_terminate": ("'asha'", "pruner"), "memory_limit": ("'1GiB'", "memory"),
    "show_progress_bar": ("True", "verbose"), "callback": ("[]", "callbacks"), "storage_path": ("'a'", "storage"),
    "isolated": ("True", "isolate"), "monitor": ("'loss'", "metric")}
OF_A_STUDY = {"directions": ("['minimize']", "objectives"), "mode": ("'min'", "direction"), "study_name": ("'a'", "name"),
              "objective": ("{}", "objectives"), "n_trials": ("3", "trials"), "url": ("'a'", "server")}


@pytest.mark.parametrize("call", [hpo.minimize, hpo.maximize])
@pytest.mark.parametrize("name", MISSPELT)
def test_it_is_named_with_a_suggestion(call, name):
    given, meant = MISSPELT[name]
    with pytest.raises(TypeError) as raised:
        call(lambda trial: 1.0, SPACE, **{"trials": 3, name: eval(given)})
    assert f"hpo.{call.__name__} has no keyword {name!r}; did you mean {meant}=" in str(raised.value)


@pytest.mark.parametrize("name", OF_A_STUDY)
def test_of_a_study(name):
    given, meant = OF_A_STUDY[name]
    with pytest.raises(TypeError, match=f"hpo.Study has no keyword '{name}'; did you mean {meant}="):
        hpo.Study("s", SPACE, **{name: eval(given)})


@pytest.mark.parametrize("name, said", [
    ("direction", "call hpo.minimize or hpo.maximize"), ("load_if_exists", "the study of that name goes on"),
    ("qqqqqqqq", "it takes train=, space=, trials=, ")])
def test_what_has_no_such_keyword(name, said):
    with pytest.raises(TypeError, match=said):
        hpo.minimize(lambda trial: 1.0, SPACE, trials=3, **{name: 1})


RIGHT = """
import hpo
def train(trial: hpo.Trial) -> float:
    return float(trial["x"])
class Mine(hpo.Sampler):
    def suggest(self, study: hpo.Study) -> "dict[str, float]":
        return {"x": 0.5}
best = hpo.minimize(train, {"x": hpo.uniform(0, 1), "n": range(3), "k": [None, (1, 2)]}, trials=3, sampler="tpe",
                    pruner={"type": "median", "warmup_steps": 3}, memory={"limit": "1GiB", "relevant": ["x"]},
                    budget={"trial_wall_clock": "1h"}, catch=(ValueError,), callbacks=[lambda study, one: study.stop()])
value: "float | None" = best.value
with hpo.Study("s", {"x": hpo.log(1, 2)}, objectives={"a": "minimize"}, sampler=Mine()) as study:
    while (trial := study.ask()) is not None:
        study.tell(trial, [trial["x"]])
"""
WRONG = "hpo.minimize(train, {{'x': hpo.uniform(0, 1)}}, {keyword}={value})"
WRONG_KEYS = ("sampler={'typ': 'tpe'}", "pruner={'patence': 3}", "memory={'limits': 3}", "budget={'wallclock': '1h'}")


def program(tmp_path):
    """The file, and the lines of it that are wrong."""
    wrong = [WRONG.format(keyword=name, value=value) for name, (value, _) in MISSPELT.items()]
    wrong += [f"hpo.minimize(train, {{'x': hpo.uniform(0, 1)}}, trials=3, {keys})" for keys in WRONG_KEYS]
    wrong += [f"hpo.Study('s', {name}={value})" for name, (value, _) in OF_A_STUDY.items()]
    file = tmp_path / "program.py"
    file.write_text("\n".join([RIGHT, *wrong]) + "\n")
    first = RIGHT.count("\n") + 2
    return file, set(range(first, first + len(wrong)))


def lines_of(output, file):
    return {int(line.split(":")[1]) for line in output.splitlines() if file.name in line and "error" in line}


@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="mypy is not installed: scripts/bootstrap --tests")
def test_mypy_strict_reports_each(tmp_path):
    file, wrong = program(tmp_path)
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)],
                          capture_output=True, text=True, check=False, cwd=tmp_path,
                          env={"PATH": "/usr/bin", "PYTHONPATH": ":".join(sys.path), "MYPYPATH": str(_package())})
    assert lines_of(done.stdout, file) == wrong, done.stdout + done.stderr


@pytest.mark.skipif(not importlib.util.find_spec("pyright") or not shutil.which("node"),
                    reason="pyright or Node.js is not installed: scripts/bootstrap --tests")
def test_pyright_reports_each(tmp_path):
    file, wrong = program(tmp_path)
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{_package()}"], "pythonVersion": "3.9"}}')
    done = subprocess.run([sys.executable, "-m", "pyright", str(file)], cwd=tmp_path, check=False,
                          capture_output=True, text=True)
    assert lines_of(done.stdout, file) == wrong, done.stdout + done.stderr


def _package():
    return pathlib.Path(hpo.__file__).resolve().parents[1]


def test_names_of_other_tools(tmp_path):
    with hpo.Study("s", SPACE, trials=1, storage=tmp_path) as study:
        with pytest.raises(AttributeError, match="a study has no attribute 'best_params'; it is study.best.params here"):
            study.best_params
        with pytest.raises(AttributeError, match="a study has no attribute 'nothing'$"):
            study.nothing
        with pytest.raises(AttributeError, match=r"'set_user_attr'; it is annotate\(key=value\) here"):
            study.ask().set_user_attr("a", 1)
    with pytest.raises(AttributeError, match=r"'create_study'; it is hpo.Study\(name, space\) here"):
        hpo.create_study


@pytest.mark.parametrize("call, said", [
    (lambda study: study.optimize(lambda trial: 1.0, n_trials=3), "hpo.Study.optimize has no keyword 'n_trials'; did you mean trials="),
    (lambda study: study.add_trial(config={"x": 1}), "'config'; did you mean params="),
    (lambda study: hpo.load(study_name="s"), "hpo.load has no keyword 'study_name'; did you mean name="),
    (lambda study: hpo.uniform(0, 1, q=0.1), "hpo.uniform has no keyword 'q'; did you mean step="),
    (lambda study: hpo.log(min=0.1, max=1), "hpo.log has no keyword 'min'; did you mean low=")])
def test_of_other_functions(call, said, tmp_path):
    with hpo.Study("s", SPACE, trials=1, storage=tmp_path) as study, pytest.raises(TypeError, match=said):
        call(study)
