"""From Optuna: its study's trials, continued here."""
import optuna

import hpo

optuna.logging.set_verbosity(optuna.logging.WARNING)
theirs = optuna.create_study()
theirs.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 1) ** 2, n_trials=8)

with hpo.Study("ours", {"x": hpo.uniform(-5, 5)}, trials=10, seed=1) as study:
    for one in theirs.trials:
        study.add_trial(one.params, one.value, reports=one.intermediate_values.items(), attributes=one.user_attrs)
    assert study.best.value == theirs.best_value
    study.optimize(lambda trial: (trial["x"] - 1) ** 2)
    assert len(study.trials) == 18 and study.best.value <= theirs.best_value
