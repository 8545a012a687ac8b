"""Keywords that a function does not have: named, with what people meant."""

import functools
from typing import Any, Callable, TypeVar, cast

_F = TypeVar("_F", bound="Callable[..., Any]")

# What Optuna, W&B, Ray Tune, Hyperopt, Keras Tuner, scikit-learn and others call it.
_ALSO_KNOWN = {
    "trials": ("n_trials num_trials max_trials trial num_samples max_evals n_calls count n_iter num_runs max_runs "
               "max_steps iterations run_cap total_trials max_iter n_evaluations"),
    "parallel": ("n_jobs num_workers n_workers workers jobs max_concurrent max_concurrent_trials concurrency "
                 "num_parallel parallelism max_parallel_trials threads processes num_jobs cpus gpus cores devices "
                "num_parallel_trials"),
    "timeout": "time_budget_s time_budget max_time timeout_s time_limit max_duration time_out stop_after "
               "max_seconds seconds deadline max_runtime wall_clock",
    "seed": "random_state random_seed rng rstate",
    "name": "study_name experiment_name project exp_name sweep_name sweep_id study",
    "space": "search_space param_space config params parameters dimensions hyperparameters param_grid "
             "param_distributions pbounds",
    "train": "objective func fn function trainable target_function objective_function f callable",
    "storage": "storage_path dir folder path db database directory storage_dir local_dir storage_url root_dir "
               "output_dir logdir log_dir save_dir results_dir checkpoint_dir out",
    "server": "address url host endpoint server_url tracking_uri",
    "sampler": "search_alg algo algorithm method searcher search_algorithm tuner strategy optimizer "
               "n_startup_trials",
    "pruner": "scheduler early_terminate prune early_stopping early_stopping_rounds early_stop stopper hyperband",
    "callbacks": "callback on_trial_end hooks",
    "catch": "catch_exceptions except_ raise_on_failed_trial ignore_errors exceptions",
    "verbose": "show_progress_bar progress progress_bar verbosity quiet silent disable_progress_bar log "
               "logging log_level disp",
    "metric": "metric_name monitor scoring",
    "objectives": "directions metrics goals",
    "memory": "memory_limit mem gpu_memory resources_per_trial max_memory mem_limit",
    "direction": "mode goal maximize minimize",
    "isolate": "isolation subprocess fork use_processes",
    "budget": "patience max_failures no_progress",
    "step": "q quantization stepsize step_size",
    "low": "min lower minimum start lb",
    "high": "max upper maximum stop ub end",
    "choices": "values options categories",
    "params": "config parameters hyperparameters configuration",
    "value": "score result",
    "reports": "intermediate_values measurements",
    "warm_start": "points_to_evaluate previous_studies",
}
_MEANT: "dict[str, list[str]]" = {}
for _name, _others in _ALSO_KNOWN.items():
    for _other in _others.split():
        _MEANT.setdefault(_other, []).append(_name)
_ADVICE = {
    "direction": "call hpo.minimize or hpo.maximize",
    "mode": "call hpo.minimize or hpo.maximize",
    "goal": "call hpo.minimize or hpo.maximize",
    "load_if_exists": "the study of that name goes on where there is one",
    "resume": "the study of that name goes on where there is one",
    "gc_after_trial": "each trial has a process of its own",
    "points_to_evaluate": "study.enqueue(params) queues a configuration",
    "directions": "hpo.Study(objectives={\"loss\": \"minimize\", ...}) has several",
}


# Of one function alone.
_INSTEAD = {
    ("uniform", "log"): "hpo.log(low, high) is searched on a logarithmic scale",
    ("log", "step"): "it has no grid; hpo.choice takes a list of values",
    ("log", "log"): "it is always searched on a logarithmic scale",
}

# Names of Optuna and W&B that are no keywords.
_OURS = {
    "best_params": "study.best.params", "best_value": "study.best.value", "best_trial": "study.best",
    "trials_dataframe": "study.dataframe()", "get_trials": "study.trials", "enqueue_trial": "study.enqueue(params)",
    "set_user_attr": "annotate(key=value)", "user_attrs": "attributes", "should_prune": "trial.should_stop()",
    "create_trial": "study.add_trial(params, value)", "create_study": "hpo.Study(name, space)",
    "load_study": "hpo.load(name)", "delete_study": "study.delete()", "TrialPruned": "hpo.Stopped",
    "sweep": "hpo.Study(name, space)", "agent": "study.optimize(train)", "init": "trial[\"name\"], in the function",
    "config": "trial.params", "suggest": "hpo.uniform, hpo.log, hpo.int and lists in the space",
    "loguniform": "hpo.log(low, high)", "randint": "hpo.int(low, high)", "importance": "study.importances()",
    "float": "hpo.uniform(low, high)", "categorical": "a list of values",
    "samplers": "sampler=\"tpe\"", "pruners": "pruner=\"median\"", "visualization": "hpo.plot",
    "optimize": "hpo.minimize and hpo.maximize", "fmin": "hpo.minimize", "connect_study": "hpo.connect()",
    "pause": "study.stop()", "direction": "study.objectives", "study_name": "study.name",
}


def ours(name: str) -> str:
    """"; it is study.best.params here", of a name that another tool has."""
    return f"; it is {_OURS[name]} here" if name in _OURS else ""


def _suggestion(name: str, known: "tuple[str, ...]", title: str) -> str:
    if (title, name) in _INSTEAD:
        return f"; {_INSTEAD[title, name]}"
    meant = [one for one in _MEANT.get(name.lower(), ()) if one in known]
    if meant:
        return f"; did you mean {meant[0]}="
    if name in _ADVICE:
        return f"; {_ADVICE[name]}"
    import difflib  # of errors alone

    close = difflib.get_close_matches(name.lower(), known, 1, 0.6)
    if not close:
        others = difflib.get_close_matches(name.lower(), list(_MEANT), 1, 0.75)
        close = [ours for other in others for ours in _MEANT[other] if ours in known]
    return f"; did you mean {close[0]}=" if close else f"; it takes {', '.join(f'{one}=' for one in known)}"


def checked(function: _F) -> _F:
    """The same function, whose TypeError for a keyword that it does not have says which one it has."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    shown = tuple(name for name in known if name != "self" and not name.startswith("_"))
    title = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in known:
                raise TypeError(f"hpo.{title} has no keyword {name!r}{_suggestion(name, shown, title)}")
        return function(*args, **keywords)

    return cast(_F, call)
