"""`hpo import optuna` makes a study of a file of Optuna's, and Python goes on with it."""

import json
import math
import subprocess
import time

import pytest

import hpo
from hpo._server import program

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture
def server(tmp_path):
    """Its address."""
    address = tmp_path / "address"
    process = subprocess.Popen([program("hpo-server"), "--listen", "127.0.0.1:0", "--db",
                                tmp_path / "hpo.db", "--address-file", address])
    try:
        deadline = time.monotonic() + 60
        while not address.exists() or not address.read_text().strip():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        yield address.read_text().strip()
    finally:
        process.terminate()
        process.wait()


def cli(server, *words):
    done = subprocess.run([program("hpo"), *map(str, words), "--server", server],
                          check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def made(tmp_path, name, objective, trials, **more):
    study = optuna.create_study(storage=f"sqlite:///{tmp_path / 'theirs.db'}", study_name=name,
                                sampler=optuna.samplers.RandomSampler(seed=1), **more)
    study.optimize(objective, n_trials=trials)
    return study


def words(text):
    """The text on one line, however it was broken."""
    return " ".join(text.split())


def test_infinite_values_come_back_as_they_were(server, tmp_path):
    def objective(trial):
        x = trial.suggest_float("x", -5, 5)
        for step, value in enumerate([math.inf, math.nan, -math.inf, x]):
            trial.report(value, step)
        return [x, math.inf, -math.inf][trial.number % 3]

    theirs = made(tmp_path, "infs", objective, 6)
    said = cli(server, "import", "optuna", tmp_path / "theirs.db", "--from", "infs")
    assert words(said) == ("study infs created; 6 trials of infs imported into infs, outside its budget; 4 "
                           "completed with an infinite value, which the search takes for the worst")
    shown = json.loads(cli(server, "trial", "show", 1, "--study", "infs", "--output", "json"))
    assert shown["state"] == "COMPLETED"
    assert shown["outcome"]["metrics"] == {"value": "Infinity"}
    assert [one["metrics"]["value"] for one in shown["measurements"][:3]] == ["Infinity", None, "-Infinity"]
    assert " inf " in cli(server, "trial", "list", "--study", "infs").splitlines()[2]
    study = json.loads(cli(server, "study", "show", "infs", "--output", "json"))
    assert study["best_value"] == min(one.value for one in theirs.trials if math.isfinite(one.value))
    cli(server, "export", "optuna", tmp_path / "ours.db", "infs")
    ours = optuna.load_study(storage=f"sqlite:///{tmp_path / 'ours.db'}", study_name="infs")
    for before, after in zip(theirs.trials, ours.trials):
        assert (after.state, after.value, after.params) == (before.state, before.value, before.params)
        assert repr(after.intermediate_values) == repr(before.intermediate_values)


def test_python_goes_on_with_the_study(server, tmp_path):
    def objective(trial):
        depth = trial.suggest_categorical("depth", [None, 5, 10])
        features = trial.suggest_categorical("features", ["sqrt", "log2", 0.5])
        kind = trial.suggest_categorical("kind", ["svm", "forest"])
        extra = trial.suggest_float("c", 1e-3, 1, log=True) if kind == "svm" else trial.suggest_int("n", 1, 9)
        return extra + (depth or 0) + (features == "log2")

    theirs = made(tmp_path, "mixed", objective, 30, direction="maximize")
    cli(server, "import", "optuna", tmp_path / "theirs.db")
    again = cli(server, "import", "optuna", tmp_path / "theirs.db")
    assert "30 were there already" in again
    with hpo.Study("mixed", server=server) as study:
        assert [one.params for one in study.trials] == [one.params for one in theirs.trials]
        assert study.best.value == theirs.best_value
        trial = study.ask()
        assert set(trial.params) == {"depth", "features", "kind", "c" if trial["kind"] == "svm" else "n"}
        assert trial["depth"] in (None, 5, 10)
        assert study.tell(trial, 1.0) == "completed"


def test_a_space_that_python_states_is_the_one_that_was_made(server, tmp_path):
    def objective(trial):
        return trial.suggest_float("lr", 1e-5, 1e-1, log=True) * trial.suggest_int("n", 2, 8, step=2)

    made(tmp_path, "same", objective, 5)
    cli(server, "import", "optuna", tmp_path / "theirs.db")
    space = {"lr": hpo.log(1e-5, 1e-1), "n": hpo.int(2, 8, step=2)}
    with hpo.Study("same", space, trials=7, server=server) as study:
        assert len(study.trials) == 5
        assert study.tell(study.ask(), 0.5) == "completed"


def test_trials_without_a_parameter_are_left_out_and_counted(server, tmp_path):
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        return x + (trial.suggest_float("late", 0, 1) if trial.number > 3 else 0)

    made(tmp_path, "grown", objective, 10)
    said = cli(server, "import", "optuna", tmp_path / "theirs.db")
    assert words(said) == ("study grown created; 6 trials of grown imported into grown, outside its budget; 4 "
                           "are left out: they lack a parameter of the study")
