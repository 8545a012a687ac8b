"""Optuna, "study.trials_dataframe"."""
import hpo

with hpo.Study("frame", {"x": hpo.uniform(0, 1), "kind": ["a", "b"]}, trials=5) as study:
    study.optimize(lambda trial: {"value": trial["x"], "seconds": 3.0})
    frame = study.dataframe()
    print(frame[["number", "state", "value", "params_x", "params_kind", "duration"]])
    assert frame["value"].tolist() == frame["params_x"].tolist()
    assert frame.sort_values("value").iloc[0]["number"] == study.best.number
