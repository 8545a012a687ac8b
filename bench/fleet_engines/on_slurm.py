"""A fleet on a real Slurm while all that can happen to it happens."""

import contextlib
import time

import deployment
import slurm
from fleet_engines.losses import losses
from fleets import Fleets, wait_until

WORKERS = 8
EVERY = 5  # steps from one checkpoint to the next
# More steps than eight tasks can do in twice their time. Slurm signals up to a minute early, so that a limit of two
# minutes leaves them one.
STUDY = {"trials": 24, "steps": 72, "pace": 1.0, "every": EVERY}
TIME_LIMIT = "2m"
ENDS_S = 1200


@contextlib.contextmanager
def fleet_on_slurm(**study):
    """A server with a study, a cluster of four nodes with two GPUs each, and eight workers that run there."""
    with deployment.running(Fleets()) as fleet, slurm.Cluster(fleet.folder / "slurm", nodes=4, gpus=2) as cluster:
        fleet.variables = cluster.variables()
        fleet.serve(**study)
        fleet.hpo("fleet", "slurm", "--study", "toy", "--workers", WORKERS, "--time", TIME_LIMIT, "--submit", "--",
                  *fleet.WORKER, "--state-dir", fleet.folder / "workers")
        wait_until(lambda: fleet.study()["counts"]["running"] == WORKERS, "eight trials that run")
        yield fleet, cluster


def _restarts(cluster):
    return {task: int(cluster.task(f"1_{task}").get("Restarts", 0)) for task in range(WORKERS)}


def _disturb(cluster):
    """A preemption of two tasks, a requeue of one, and a node with two that goes and comes back."""
    time.sleep(10)
    cluster.run("sbatch", "--partition=urgent", "--gres=gpu:2", "--nodelist=n1", "--output=/dev/null",
                "--wrap=sleep 3")
    wait_until(lambda: sum(_restarts(cluster).values()) == 2, "the preempted tasks' requeue")
    cluster.run("scontrol", "requeue", "1_0")
    wait_until(lambda: sum(_restarts(cluster).values()) == 3, "the task's requeue")
    cluster.kill_node("n2")
    wait_until(lambda: sum(_restarts(cluster).values()) == 5, "the requeue of the lost node's tasks")
    cluster.start_node("n2")


def survived():
    """Figures of a study that ends in spite of everything."""
    with fleet_on_slurm(**STUDY) as (fleet, cluster):
        _disturb(cluster)
        disturbed = _restarts(cluster)
        fleet.wait_finished(ENDS_S)
        return {
            **losses(fleet, STUDY["trials"]),
            # Nothing else restarts a task from here on: the fewest of a task.
            "time_limits": min(count - disturbed[task] for task, count in _restarts(cluster).items()),
        }


def left_after_stop():
    """The number of processes and queued tasks that `hpo fleet stop` leaves."""
    with fleet_on_slurm(trials=100, steps=600, pace=1.0, every=EVERY) as (fleet, cluster):
        fleet.hpo("fleet", "stop", "toy")
        return len(cluster.processes()) + len(cluster.jobs("hpo-toy"))
