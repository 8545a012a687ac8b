"""Optuna, "User attributes": of a study and of trials."""
import hpo


def objective(trial):
    trial.annotate(accuracy=1 - trial["x"], rows={"train": 900, "valid": 100})
    return trial["x"]


with hpo.Study("attributes", {"x": hpo.uniform(0, 1)}, trials=3) as study:
    study.annotate({"contributors": ["Akiba", "Sano"], "dataset": "MNIST"}, note="a first look", tags=["paper"])
    study.optimize(objective)
    assert study.attributes["dataset"] == "MNIST" and study.tags == ["paper"]
    assert all(one.attributes["accuracy"] == 1 - one.params["x"] for one in study.trials)
