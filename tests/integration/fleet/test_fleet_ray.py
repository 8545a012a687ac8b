"""hpo.ray on a real Ray: several nodes on this machine, in the Python that has Ray."""

import os
import pathlib
import subprocess
import time
import unittest

from fleets import BIN, Fleets, wait_until

import ledger
import ray_cluster

MISSING = ray_cluster.missing()
FIVE_LINES = """\
import ray, hpo.ray
ray.init("auto")
with hpo.ray.fleet(8, name="toy", study="toy", options={options}) as fleet:
    codes = fleet.wait()
print("statuses", codes)
"""
JOB = """\
import hpo.ray
raise SystemExit(hpo.ray.run(2, name="toy", study="toy", options={options}))
"""
STARTS_S = 120.0


@unittest.skipIf(MISSING, MISSING)
class OnRay(Fleets):
    """One cluster for all tests: three nodes, of which the first one has no GPU."""

    def setUp(self):
        super().setUp()
        self.cluster = ray_cluster.Cluster(environment={
            "PYTHONPATH": str(BIN.parent / "python"), "HPO_BIN_DIR": str(BIN)})
        self.cluster.__enter__()

    def tearDown(self):
        self.cluster.stop()
        super().tearDown()

    def drive(self, script):
        """Starts a program of Ray's user."""
        path = pathlib.Path(self.folder / "fleet.py")
        path.write_text(script.format(options=[*self.WORKER, "--state-dir", str(self.folder / "workers")]))
        return self.start("driver", ray_cluster.python(), path,
                          environment={**self.cluster.environment, "HPO_SERVER": self.address})

    def wait_workers(self, count):
        wait_until(lambda: len(self.cluster.workers()) == count, f"{count} workers", STARTS_S)

    def test_a_lost_node_loses_no_trial(self):
        self.serve(trials=24, steps=60)
        driver = self.drive(FIVE_LINES)
        self.wait_workers(8)
        wait_until(lambda: self.study()["counts"]["running"] == 8, "8 trials that run")
        time.sleep(2)  # some steps and a checkpoint
        self.cluster.kill_node("n2")
        self.assertEqual(driver.wait(180), 0, driver.output())
        self.assertIn("statuses [0, 0, 0, 0, 0, 0, 0, 0]", driver.output())
        self.assertEqual(self.study()["state"], "FINISHED")
        self.assert_nothing_lost(24)
        self.assertEqual(self.worker_names(), {f"ray-toy-{index}" for index in range(8)})
        self.assertLessEqual(max(ledger.steps_lost(self.folder / "ledger")), 5)

    def test_no_worker_outlives_its_actor_or_its_driver(self):
        self.serve(trials=100, pace=1)
        driver = self.drive(JOB)
        self.wait_workers(2)
        wait_until(lambda: self.study()["counts"]["running"] == 2, "2 trials that run")
        actors = {pid: ray_parent(pid) for pid in self.cluster.workers()}
        worker, actor = actors.popitem()
        os.kill(actor, 9)
        wait_until(lambda: worker not in self.cluster.workers(), "the end of the killed actor's worker")
        self.wait_workers(2)
        driver.kill9()
        self.wait_workers(0)
        wait_until(lambda: self.study()["counts"]["running"] == 0, "requeued trials")

    def test_a_terminated_driver_lets_its_workers_save(self):
        self.serve(trials=2, steps=100)
        driver = self.drive(JOB)
        self.wait_workers(2)
        wait_until(lambda: self.study()["counts"]["running"] == 2, "2 trials that run")
        time.sleep(1)
        driver.send(15)
        self.assertEqual(driver.wait(), 75, driver.output())
        self.wait_workers(0)
        self.drive(JOB)
        self.wait_finished()
        self.assertEqual(sum(ledger.steps_lost(self.folder / "ledger")), 0)


def ray_parent(pid):
    """The actor that has started a worker."""
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


@unittest.skipIf(MISSING, MISSING)
class WithoutCluster(unittest.TestCase):
    def test_one_line_says_so(self):
        done = subprocess.run([ray_cluster.python(), "-c", "import hpo.ray; hpo.ray.connect('127.0.0.1:1')"],
                              env={**os.environ, "PYTHONPATH": str(BIN.parent / "python")}, capture_output=True, text=True,
                              timeout=STARTS_S, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("hpo.errors.HpoError: no cluster of Ray at 127.0.0.1:1: expected a running one",
                      done.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
