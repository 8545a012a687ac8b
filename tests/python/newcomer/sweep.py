"""W&B, "Define a sweep configuration": method, metric and parameters in one place, and early_terminate."""
import hpo

sweep = {
    "sampler": "tpe",
    "pruner": {"type": "hyperband", "min_resource": 3},
    "metric": "val_loss",
    "space": {
        "batch_size": [16, 32, 64],
        "epochs": [5, 10],
        "lr": hpo.log(1e-4, 1e-1),
        "optimizer": ["adam", "sgd"],
    },
}


def train(trial):
    loss = 1.0
    for epoch in range(trial["epochs"]):
        loss *= 0.7 + trial["lr"]
        trial.report(epoch, loss, epoch=epoch + 1, val_acc=1 - loss)
        if trial.should_stop():
            break
    return {"val_loss": loss, "val_acc": 1 - loss}


best = hpo.minimize(train, trials=12, seed=1, **sweep)
print(best.metrics, best.params)
assert best.metrics["val_acc"] == 1 - best.value
