"""hpo.ray on a real Ray: several nodes on this machine, in the Python that has Ray."""

import os
import pathlib
import re
import stat
import subprocess
import time
import unittest
import urllib.request

from fleets import BIN, Fleets, join_string, wait_until

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


class OnRay(Fleets):
    """A cluster for each test: three nodes, of which the first one has no GPU."""

    def setUp(self):
        super().setUp()
        self.cluster = ray_cluster.Cluster(environment={
            "PYTHONPATH": str(BIN.parent / "python"), "HPO_BIN_DIR": str(BIN)})
        self.cluster.__enter__()

    def tearDown(self):
        self.cluster.stop()
        super().tearDown()

    def drive(self, script, *options):
        """Starts a program of Ray's user."""
        path = pathlib.Path(self.folder / "fleet.py")
        path.write_text(script.format(options=[*self.WORKER, "--state-dir", str(self.folder / "workers"), *options]))
        return self.start("driver", ray_cluster.python(), path,
                          environment={**self.cluster.environment, "HPO_SERVER": self.address})

    def wait_workers(self, count):
        wait_until(lambda: len(self.cluster.workers()) == count, f"{count} workers", STARTS_S)


@unittest.skipIf(MISSING, MISSING)
class InPython(OnRay):
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

    def test_workers_that_fail_fail_their_script(self):
        self.serve(trials=2)
        driver = self.drive(FIVE_LINES, "--bogus")
        self.assertEqual(driver.wait(STARTS_S), 1, driver.output())
        said = re.search(r"HpoError: 8 of 8 workers of fleet toy have failed: ray-toy-0 ended with status 78: .*",
                         driver.output()).group()
        self.assertIn("--bogus", said)
        log = re.search(r"its log: (\S+) on ", said)
        self.assertIn("--bogus", pathlib.Path(log.group(1)).read_text())

    def test_without_gpus_the_memory_is_asked_for_first(self):
        self.serve(trials=2)
        driver = self.drive("import hpo.ray\nhpo.ray.fleet(2, gpus_per_worker=0)  # {options}\n")
        self.assertEqual(driver.wait(STARTS_S), 1, driver.output())
        self.assertIn("gpus_per_worker=0: expected memory_per_worker too", driver.output())

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


@unittest.skipIf(MISSING, MISSING)
class ByHpoFleet(OnRay):
    """hpo fleet ray --submit, and status, scale and stop, as jobs of the same cluster."""

    def setUp(self):
        super().setUp()
        self.variables = self.cluster.variables()

    def submit(self, *words):
        return self.hpo("fleet", "ray", "--study", "toy", "--submit", *words, "--", *self.WORKER, "--state-dir",
                        self.folder / "workers")

    def status(self):
        return {name: worker["state"] for name, worker in self.fleet("--engine", "ray").items()}

    def test_a_fleet_runs_a_study_and_leaves(self):
        self.serve(trials=6)
        self.assertIn("submitted fleet toy to ray: hpo-toy-", self.submit("--workers", "2"))
        self.wait_finished()
        self.assert_nothing_lost(6)
        self.assertEqual(self.worker_names(), {"ray-toy-0", "ray-toy-1"})
        wait_until(lambda: "no fleet on ray" in self.hpo("fleet", "status", "--engine", "ray"), "the fleet's end", STARTS_S)

    def test_a_fleet_grows_shrinks_and_stops_with_saved_trials(self):
        self.serve(trials=4, steps=100)
        self.submit("--workers", "2")
        self.wait_workers(2)
        wait_until(lambda: self.study()["counts"]["running"] == 2, "2 trials that run", STARTS_S)
        self.assertEqual(self.status(), {"ray-toy-0": "running", "ray-toy-1": "running"})
        ran = [worker["running_for_s"] for worker in self.fleet("--engine", "ray").values()]
        self.assertTrue(all(seconds is not None and 0 <= seconds < STARTS_S for seconds in ran), ran)
        self.assertIn("2 workers", self.hpo("fleet", "ray", "--study", "toy", "--workers", "3", "--submit", status=4))
        self.hpo("fleet", "scale", "toy", "--workers", "3", "--engine", "ray")
        self.wait_workers(3)
        self.hpo("fleet", "scale", "toy", "--workers", "1", "--engine", "ray")
        self.wait_workers(1)
        self.assertIn("no worker is left", self.hpo("fleet", "stop", "toy", "--engine", "ray"))
        self.wait_workers(0)
        self.assertEqual(self.study()["counts"]["running"], 0)
        self.assertEqual(sum(ledger.steps_lost(self.folder / "ledger")), 0)

    def test_a_job_that_has_failed_says_why(self):
        self.serve(trials=2)
        self.hpo("fleet", "ray", "--study", "toy", "--submit", "--workers", "2", "--", *self.WORKER, "--bogus")
        said = self.hpo_until("has ended", "fleet", "status", "toy", "--engine", "ray")
        self.assertRegex(said, r"its last job hpo-toy-\d+ has ended: FAILED: .*--bogus")
        job = re.search(r"ray job logs (hpo-toy-\d+)", said).group(1)
        done = subprocess.run([ray_cluster.python().parent / "ray", "job", "logs", job], capture_output=True, text=True,
                              env=self.variables, timeout=60, check=False)
        self.assertIn("--bogus", done.stdout)

    def hpo_until(self, text, *words):
        """What the command says, once it fails with `text`."""
        said = []

        def has_said():
            done = subprocess.run([str(BIN / "hpo"), *words], capture_output=True, text=True, check=False, timeout=60,
                                  env={**self.variables, "HPO_SERVER": self.address})
            said.append(done.stdout + done.stderr)
            return done.returncode == 3 and text in said[-1]

        wait_until(has_said, text, STARTS_S)
        return said[-1]

    def test_ray_shows_the_secret_nowhere(self):
        join = join_string()
        secret = join.split(".")[2]
        self.variables["HPO_JOIN"] = join  # of no server: the workers try, and wait
        self.submit("--workers", "1")
        wait_until(lambda: "ray-toy-0" in self.status(), "its actor", STARTS_S)
        dashboard = self.cluster.environment["RAY_API_SERVER_ADDRESS"]
        for page in ("api/jobs/", "api/v0/actors?detail=1", "api/v0/runtime_envs?detail=1", "api/v0/tasks?detail=1"):
            with urllib.request.urlopen(f"{dashboard}/{page}", timeout=30) as answer:
                self.assertNotIn(secret, answer.read().decode(), page)
        self.assertFalse([line for line in self.cluster.processes().values() if secret in line])
        holding = [path for path in self.cluster.folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
        self.assertEqual({(path.name, stat.S_IMODE(path.stat().st_mode)) for path in holding}, {("join", 0o600)}, holding)
        self.hpo("fleet", "stop", "toy", "--engine", "ray")

    def test_more_gpus_than_a_node_has_are_named(self):
        self.serve(trials=2)
        said = self.submit("--workers", "1", "--gpus-per-worker", "5")
        self.assertIn("no node of the cluster has 5 GPUs: the largest has 4", said)
        wait_until(lambda: self.status() == {"ray-toy-0": "waiting"}, "an actor that waits", STARTS_S)
        self.assertIn("waits for 1 CPU, 5 GPU", self.hpo("fleet", "status", "toy", "--engine", "ray"))
        self.assertIn("no worker is left", self.hpo("fleet", "stop", "toy", "--engine", "ray"))


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

    def test_one_line_of_hpo_fleet_says_so(self):
        environment = {**os.environ, "PYTHONPATH": str(BIN.parent / "python"), "RAY_API_SERVER_ADDRESS": "http://127.0.0.1:1",
                       "PATH": f"{ray_cluster.python().parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run([BIN / "hpo", "fleet", "status", "--engine", "ray"], env=environment, capture_output=True,
                              text=True, timeout=STARTS_S, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no cluster of Ray at 127.0.0.1:1", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_cluster_of_another_version_is_one_line(self):
        """Ray's own check, with the words of a Ray that believes to be older."""
        code = ("import ray, hpo.ray; import ray._private.utils as utils, ray._private.worker as worker\n"
                "ray.__version__ = '2.1.0'\nhpo.ray.connect('auto')")
        with ray_cluster.Cluster(gpus=(0,)) as cluster:
            environment = {**cluster.variables(), "PYTHONPATH": str(BIN.parent / "python")}
            done = subprocess.run([ray_cluster.python(), "-c", code], env=environment, capture_output=True, text=True,
                                  timeout=STARTS_S, check=False)
        last = done.stderr.splitlines()[-1]
        self.assertIn("hpo.errors.HpoError: the cluster is of another version: expected Ray 2.1.0", last)
        self.assertIn("hpo fleet ray --submit", last)


del OnRay

if __name__ == "__main__":
    unittest.main()
