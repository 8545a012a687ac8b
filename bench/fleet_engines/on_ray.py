"""A fleet of actors on a real Ray that loses a node."""

import time

import deployment
import ray_cluster
from fleet_engines.losses import losses
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
    """Figures of a study on three nodes whose last one is killed."""
    environment = {"PYTHONPATH": str(BIN.parent / "python"), "HPO_BIN_DIR": str(BIN)}
    with deployment.running(Fleets()) as fleet, ray_cluster.Cluster(environment=environment) as cluster:
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
        return {"ended": status == 0 and fleet.study()["state"] == "FINISHED", **losses(fleet, TRIALS)}
