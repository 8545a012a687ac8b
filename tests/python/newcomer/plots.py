"""Optuna, "Quick visualization"; W&B, "parallel coordinates"."""
import pathlib
import tempfile

import matplotlib

import hpo

matplotlib.use("Agg")
with hpo.Study("plots", {"lr": hpo.log(1e-5, 1e-1), "layers": hpo.int(1, 4)}, trials=15, seed=1) as study:
    study.optimize(lambda trial: trial["lr"] * trial["layers"])
    with tempfile.TemporaryDirectory() as folder:
        for name, axes in (("history", hpo.plot.history(study)), ("importances", hpo.plot.importances(study)),
                           ("parallel", hpo.plot.parallel(study)), ("slice", hpo.plot.slice(study)[0]),
                           ("memory", hpo.plot.memory(study))):
            file = pathlib.Path(folder, f"{name}.png")
            axes.figure.savefig(file)
            assert file.stat().st_size > 1000
