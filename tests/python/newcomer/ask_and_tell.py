"""Optuna, "Ask-and-tell interface"."""
import hpo

with hpo.Study("ask", {"x": hpo.uniform(-5, 5), "power": [2, 4]}, trials=10, seed=1) as study:
    while (trial := study.ask()) is not None:
        value = trial["x"] ** trial["power"]
        study.tell(trial, value)
    assert study.finished
    assert len(study.trials) == 10 and study.best.value >= 0
