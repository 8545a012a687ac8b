"""Optuna, "Multi-objective optimization": accuracy against cost, and the Pareto front."""
import hpo


def objective(trial):
    cost = trial["width"] * trial["depth"]
    accuracy = 1 - 1 / (1 + trial["width"]) - 0.01 * trial["depth"]
    return accuracy, cost


with hpo.Study("pareto", {"width": hpo.int(1, 64), "depth": hpo.int(1, 8)},
               objectives={"accuracy": "maximize", "cost": "minimize"}, trials=25, seed=1) as study:
    study.optimize(objective)
    front = study.best_trials()
    for one in front:
        print(one.number, one.values, one.params)
    assert 1 <= len(front) <= 25
    assert not any(a.values[0] > b.values[0] and a.values[1] < b.values[1] for a in front for b in front)
    try:
        study.best
    except hpo.HpoError as error:
        assert "best_trials" in str(error)
