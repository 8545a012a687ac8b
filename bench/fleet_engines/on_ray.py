"""A fleet of actors on a real Ray, one of whose nodes is lost."""

import time

import ledger
import ray_cluster
from fleets import BIN, Fleets, wait_until

WORKERS = 8
TRIALS = 24
EVERY = 5  # steps from one checkpoint to the next
STARTS_S = 120
ENDS_S = 300
SCRIPT = """\
import ray, hpo.ray
ray.init("auto")
with hpo.ray.fleet({workers}, name="toy", study="toy", options={options}) as fleet:
    fleet.wait()
"""


def survived():
    """Figures of a study on three nodes of which the last one is killed."""
    fleet = Fleets()
    fleet.setUp()
    try:
        with ray_cluster.Cluster(environment={"PYTHONPATH": str(BIN.parent / "python"),
                                              "HPO_BIN_DIR": str(BIN)}) as cluster:
            fleet.serve(trials=TRIALS, steps=60, every=EVERY)
            script = fleet.folder / "fleet.py"
            script.write_text(SCRIPT.format(
                workers=WORKERS, options=[*fleet.WORKER, "--state-dir", str(fleet.folder / "workers")]))
            driver = fleet.start("driver", ray_cluster.python(), script,
                                 environment={**cluster.environment, "HPO_SERVER": fleet.address})
            wait_until(lambda: fleet.study()["counts"]["running"] == WORKERS, "eight trials that run", STARTS_S)
            time.sleep(2)  # some steps and a checkpoint
            cluster.kill_node("n2")
            status = driver.wait(ENDS_S)
            trials = fleet.trials("--limit", "1000")
            return {
                "ended": status == 0 and fleet.study()["state"] == "FINISHED",
                "trials_lost": TRIALS - sum(trial["state"] == "COMPLETED" for trial in trials),
                "most_steps_lost": max(ledger.steps_lost(fleet.folder / "ledger")),
                "workers": len(fleet.worker_names()),
            }
    finally:
        fleet.tearDown()
