"""hpo.optuna.HpoSampler: Optuna's own tests of samplers, and what a study of Optuna's may be and do."""

import copy
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import threading

import pytest

optuna = pytest.importorskip("optuna")
samplers = pytest.importorskip("optuna.testing.pytest_samplers")
from hpo import optuna as hpo_optuna  # noqa: E402  # pylint: disable=wrong-import-position
from hpo.optuna import HpoSampler  # noqa: E402  # pylint: disable=wrong-import-position

optuna.logging.set_verbosity(optuna.logging.WARNING)
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


# Of the test classes one is left out: SingleOnlySamplerTestCase, that several objectives are refused. They are not.
class TestByOptuna(samplers.BasicSamplerTestCase, samplers.RelativeSamplerTestCase, samplers.MultiObjectiveSamplerTestCase):
    @pytest.fixture(params=[{}, {"group": True}], ids=["intersection", "group"])
    def sampler(self, request):
        return lambda: HpoSampler(seed=0, **request.param)


def mixed(trial):
    """Least at x=1, n=4, kind=b."""
    x = trial.suggest_float("x", -5, 5)
    n = trial.suggest_int("n", 1, 16, log=True)
    kind = trial.suggest_categorical("kind", ["a", "b", None])
    return (x - 1) ** 2 + math.log2(n / 4) ** 2 + (kind != "b")


def branching(trial):
    if trial.suggest_categorical("model", ["svm", "forest"]) == "svm":
        return 1 + math.log10(trial.suggest_float("c", 1e-3, 1e3, log=True)) ** 2
    return abs(trial.suggest_int("depth", 1, 20) - 7) / 7


def study_of(sampler, objective=mixed, trials=20, **more):
    study = optuna.create_study(sampler=sampler, **more)
    study.optimize(objective, n_trials=trials)
    return study


def params_of(study):
    return [trial.params for trial in study.trials]


def test_it_learns():
    best = {name: [study_of(sampler(seed), trials=40).best_value for seed in range(3)] for name, sampler in (
        ("ours", lambda seed: HpoSampler(seed=seed)), ("random", lambda seed: optuna.samplers.RandomSampler(seed=seed)))}
    assert max(best["ours"]) < 0.1 * min(best["random"]), best


@pytest.mark.parametrize("group", [False, True])
def test_it_learns_where_parameters_depend_on_others(group):
    study = study_of(HpoSampler(seed=1, group=group), branching, 50)
    assert study.best_value < 0.2 and study.best_params["model"] == "forest"


def test_the_same_seed_proposes_the_same_and_another_one_does_not():
    first = study_of(HpoSampler(seed=1))
    assert params_of(first) == params_of(study_of(HpoSampler(seed=1)))
    assert params_of(first) == params_of(study_of(HpoSampler({"type": "auto", "seed": 1})))
    assert params_of(first) != params_of(study_of(HpoSampler(seed=2)))
    anew = HpoSampler(seed=1)
    anew.reseed_rng()
    assert params_of(first) != params_of(study_of(anew))
    assert params_of(study_of(HpoSampler(), trials=1)) != params_of(study_of(HpoSampler(), trials=1))


def test_parameters_of_one_range_are_drawn_apart():
    def objective(trial):
        return trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)

    first = study_of(HpoSampler(seed=1), objective, 1).trials[0].params
    assert first["x"] != first["y"]


def test_another_process_with_another_order_of_sets_proposes_the_same():
    program = ("import sys; sys.path.insert(0, sys.argv[1]); from test_optuna_sampler import *; "
               "print([sorted(one.items()) for one in params_of(study_of(HpoSampler(seed=1, group=True), branching, 15))])")
    told = {subprocess.run([sys.executable, "-c", program, os.path.dirname(__file__)], check=True, capture_output=True,
                           text=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
    assert len(told) == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
def test_a_copy_goes_on_alike(copied):
    study = study_of(HpoSampler(seed=1), trials=12)
    study.sampler = copied(study.sampler)
    study.optimize(mixed, n_trials=3)
    assert params_of(study) == params_of(study_of(HpoSampler(seed=1), trials=15))


def test_a_study_is_resumed(tmp_path):
    kept = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "s", "load_if_exists": True}
    study_of(HpoSampler(seed=1), trials=12, **kept)
    study = study_of(HpoSampler(seed=1), trials=3, **kept)
    assert params_of(study) == params_of(study_of(HpoSampler(seed=1), trials=15))


def test_it_goes_on_after_the_death_of_its_process():
    study = study_of(HpoSampler(seed=1), trials=12)
    process = study.sampler._models._proposer._process
    process.send_signal(signal.SIGKILL)
    process.wait()
    study.optimize(mixed, n_trials=3)
    assert params_of(study) == params_of(study_of(HpoSampler(seed=1), trials=15))


def test_its_process_ends_with_it():
    study = study_of(HpoSampler(seed=1), trials=1)
    process = study.sampler._models._proposer._process
    study.sampler = optuna.samplers.RandomSampler()
    assert process.poll() is not None


def test_an_interrupt_leaves_no_answer_behind(monkeypatch):
    study = study_of(HpoSampler(seed=1), trials=12)

    class Interrupted:
        def readline(self):
            raise KeyboardInterrupt

        def close(self):
            pass

    monkeypatch.setattr(study.sampler._models._proposer._process, "stdout", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        study.ask().suggest_float("x", -5, 5)
    study.optimize(mixed, n_trials=2)
    assert len(study.trials) == 15


def test_a_forked_process_has_its_own():
    study = study_of(HpoSampler(seed=1), trials=12)
    pid = os.fork()
    if pid == 0:
        study.optimize(mixed, n_trials=1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    study.optimize(mixed, n_trials=3)
    assert params_of(study) == params_of(study_of(HpoSampler(seed=1), trials=15))


def test_what_runs_is_in_flight_for_other_processes(tmp_path):
    """Two samplers of one seed, as in two processes, ask by turns."""
    kept = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "s", "load_if_exists": True}

    def objective(trial):
        return (trial.suggest_float("x", 0, 1) - 0.3) ** 2

    study_of(HpoSampler(seed=1), objective, 15, **kept)
    both = [optuna.create_study(sampler=HpoSampler(seed=1), **kept) for _ in range(2)]
    asked = [both[index % 2].ask().suggest_float("x", 0, 1) for index in range(6)]
    assert len(set(asked)) == 6
    running = [one for one in both[0].trials if one.state == optuna.trial.TrialState.RUNNING]
    assert [json.loads(one.system_attrs["hpo:proposed:0"]) for one in running] == [{"x": value} for value in asked]


def test_threads_run_one_study():
    study = optuna.create_study(sampler=HpoSampler(seed=1))
    study.optimize(mixed, n_trials=24, n_jobs=4)
    assert len(study.trials) == 24 and len({repr(trial.params) for trial in study.trials}) == 24


def finite(trial):
    """Of twelve configurations, the constant aside."""
    trial.suggest_categorical("data", ["one"])
    return trial.suggest_int("n", 1, 6) - (trial.suggest_categorical("kind", ["a", "b"]) == "b")


@pytest.mark.parametrize("sampler", ["auto", "tpe", "gp", "random", "qmc"])
def test_no_configuration_is_repeated_until_all_have_been_tried(sampler, recwarn):
    study = study_of(HpoSampler(sampler, seed=1), finite, 12)
    assert len({repr(trial.params) for trial in study.trials}) == 12
    assert not recwarn
    study.optimize(finite, n_trials=4)  # Optuna's loop goes on, and says so once
    assert len(study.trials) == 16
    assert [str(one.message) for one in recwarn] == [
        "HpoSampler: kind, n: every configuration has been tried, and each is proposed again from now on"]


def test_trials_in_flight_count_as_tried(recwarn):
    study = study_of(HpoSampler(seed=1), finite, 1)
    asked = [study.ask() for _ in range(11)]
    for trial in asked:
        finite(trial)
    assert len({repr(trial.params) for trial in study.trials}) == 12 and not recwarn


def test_the_first_trials_of_several_threads_differ():
    together = threading.Barrier(4, timeout=30)

    def objective(trial):
        value = finite(trial)
        if trial.number < 4:
            together.wait()
        return value

    for seed in range(3):
        study = optuna.create_study(sampler=HpoSampler(seed=seed))
        study.optimize(objective, n_trials=12, n_jobs=4)
        assert len({repr(sorted(trial.params.items())) for trial in study.trials}) == 12


def test_the_first_trials_differ_where_each_repeats_a_part_of_another():
    for seed in range(60, 75):
        study = optuna.create_study(sampler=HpoSampler(seed=seed))
        for trial in [study.ask() for _ in range(4)]:
            finite(trial)
        assert len({repr(sorted(trial.params.items())) for trial in study.trials}) == 4, seed


def test_a_part_of_a_configuration_may_be_repeated(recwarn):
    """Of all trials it has only "model", which is used up after two; of some "depth" or "c"."""
    for group in (False, True):
        study = study_of(HpoSampler(seed=1, group=group), branching, 20)
        assert study.best_params["model"] == "forest" and not recwarn


def test_enqueued_configurations_may_be_repeated(recwarn):
    study = study_of(HpoSampler(seed=1), finite, 2)
    for _ in range(2):
        study.enqueue_trial({"n": 3, "kind": "a"})
    study.optimize(finite, n_trials=10)
    assert not recwarn and sum(trial.params["n"] == 3 for trial in study.trials[2:4]) == 2
    assert len({repr(trial.params) for trial in study.trials}) == 11


def test_enqueued_values_are_taken_and_the_others_fit_them():
    study = study_of(HpoSampler(seed=1), trials=30)
    study.enqueue_trial({"x": 4.5})
    study.enqueue_trial({"x": 50.0, "kind": "a"})  # outside the range: it counts for nothing
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(mixed, n_trials=3)
    assert study.trials[30].params["x"] == 4.5 and study.trials[31].params["x"] == 50.0


@pytest.mark.parametrize("told", ["constraints_func", "set_constraint"])
def test_constraints_are_learned(told):
    def objective(trial):
        x = trial.suggest_float("x", -5, 5)
        excess = 1 - x  # feasible from 1 on
        trial.set_user_attr("excess", excess)
        if told == "set_constraint":
            trial.set_constraint("low", excess)
        return x * x

    sampler = HpoSampler(seed=1, constraints_func=(lambda trial: (trial.user_attrs["excess"],))
                         if told == "constraints_func" else None)
    study = study_of(sampler, objective, 40)
    assert study.best_params["x"] >= 1 and study.best_value < 1.2
    assert sum(trial.params["x"] >= 0.9 for trial in study.trials[20:]) >= 12


def test_several_objectives_by_tpe():
    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        return x, 1 - x - y  # the best have y = 1

    study = study_of(HpoSampler(seed=1), objective, 60, directions=["minimize", "minimize"])
    assert sum(trial.params["y"] for trial in study.trials[30:]) / 30 > 0.7


def test_maximizing_is_the_mirror_image():
    study = study_of(HpoSampler(seed=1), lambda trial: -mixed(trial), direction="maximize")
    assert params_of(study) == params_of(study_of(HpoSampler(seed=1)))


def test_trials_that_fail_are_pruned_or_are_nothing_do_no_harm():
    def objective(trial):
        x = trial.suggest_float("x", -5, 5)
        if x < -3:
            raise ValueError
        if x < -1:
            return math.nan
        if x > 4:
            return math.inf
        trial.suggest_categorical("kind", [int, (1, 2), None, math.nan, True, 1.5])
        trial.report(x * x, 0)
        if trial.number % 3 == 0:
            raise optuna.TrialPruned
        return (x - 2) ** 2

    study = optuna.create_study(sampler=HpoSampler(seed=1))
    study.optimize(objective, n_trials=40, catch=ValueError)
    assert len(study.trials) == 40 and study.best_value < 0.1


def test_hyperband_has_a_model_for_each_bracket():
    def objective(trial):
        value = mixed(trial)
        for step in range(9):
            trial.report(value + 1 / (1 + step), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = study_of(HpoSampler(seed=1), objective, 40, pruner=optuna.pruners.HyperbandPruner(1, 9))
    assert study.best_value < 1


def test_one_sampler_may_serve_several_studies():
    sampler = HpoSampler(seed=1)
    both = [study_of(sampler), study_of(sampler, branching)]
    for study, objective in zip(both, (mixed, branching)):
        study.optimize(objective, n_trials=2)
    assert params_of(both[0]) == params_of(study_of(HpoSampler(seed=1), trials=22))


def test_trials_of_other_samplers_count():
    others = study_of(optuna.samplers.RandomSampler(seed=0), trials=40)
    study = optuna.create_study(sampler=HpoSampler(seed=1))
    study.add_trials(others.trials)
    study.optimize(mixed, n_trials=10)
    assert study.best_trial.number >= 40


def test_any_of_our_samplers_and_what_is_wrong():
    for name in ("random", "tpe", "gp", "cma-es", "qmc"):
        assert len(study_of(HpoSampler(name, seed=1), trials=12).trials) == 12
    for options, said in (({"sampler": "magic"}, "expected one of auto, .*, got 'magic'"),
                          ({"sampler": {"type": "tpe", "foo": 1}}, "expected keys of type, .*, got 'foo'"),
                          ({"seed": "a"}, "seed: expected a whole number, got 'a'"), ({"seed": -1}, "seed: expected 0 to")):
        with pytest.raises(hpo_optuna.InvalidInput, match=said):
            HpoSampler(**options)
    with pytest.raises(hpo_optuna.InvalidInput, match="trials: expected 1 or more, got 0"):
        HpoSampler(trials=0)
    with pytest.raises(TypeError, match="n_startup_trials"):
        HpoSampler(n_startup_trials=5)


