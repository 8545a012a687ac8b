"""hpo fleet on a real Slurm: one controller and several nodes on this machine."""

import contextlib
import os
import pathlib
import re
import stat
import subprocess
import time
import unittest

from fleets import BIN, Fleets, join_string, wait_until
from harness import SOURCE

import ledger
import ray_cluster
import slurm

MISSING = slurm.missing()


class OnSlurm(Fleets):
    NODES = {"nodes": 2, "gpus": 2}

    def setUp(self):
        super().setUp()
        self.cluster = slurm.Cluster(self.folder / "slurm", **self.NODES)
        self.cluster.__enter__()
        self.variables = self.cluster.variables()

    def tearDown(self):
        self.cluster.stop()  # before its folder goes
        super().tearDown()

    def submit(self, *words):
        return self.hpo("fleet", "slurm", "--study", "toy", "--time", "10m", "--submit", *words, "--",
                        *self.WORKER, "--state-dir", self.folder / "workers")

    def wait_running(self, count):
        wait_until(lambda: sum(one["state"] == "running" for one in self.fleet().values()) == count,
                   f"{count} workers that run")

    def wait_trials_running(self, count):
        wait_until(lambda: self.study()["counts"]["running"] == count, f"{count} trials that run")

    def told(self):
        return f"{ledger.attempts(self.folder / 'ledger')}\n{self.logs()}"

    def logs(self):
        return "".join(path.read_text() for path in self.folder.glob("hpo-toy-*.log"))


EMULATED = BIN.parent / "emulator" / "libnvidia-ml.so.1"
STUDY_OF_SEVERAL = """\
name: toy
objective: {{metric: loss, direction: minimize}}
trainer:
  command: 'echo $CUDA_VISIBLE_DEVICES >> {seen}; sleep 2; echo {{"loss": {{gpus}}}} "# {{x}}"'
  gpus: {gpus}
budget: {{trials: 8}}
sampler: {{type: random}}
pruner: {{type: none}}
parameters:
  x: {{float: [0.0, 1.0]}}
"""


@unittest.skipIf(MISSING or not EMULATED.exists(), MISSING or f"no {EMULATED}")
class SeveralGpus(OnSlurm):
    """Two tasks with four GPUs each, which are emulated for the worker, by the same commands for all studies."""

    NODES = {"nodes": 2, "gpus": 4}
    WORKER = ("--allow-commands",)

    def check(self, gpus, suffixes):
        emulated = subprocess.run([SOURCE / "scripts" / "with_emulated_card", "--build", BIN.parent, "t4+t4+t4+t4",
                                   "env", "-0"], capture_output=True, text=True, check=True).stdout
        self.variables |= dict(entry.split("=", 1) for entry in emulated.split("\0") if entry.startswith(
            ("HPO_EMULATED_CARD=", "LD_LIBRARY_PATH=")))
        self.variables["HPO_EMULATED_STATE"] = str(self.folder / "cards")
        seen = self.folder / "seen"
        (self.folder / "toy.yaml").write_text(STUDY_OF_SEVERAL.format(seen=seen, gpus=gpus))
        self.start_server()
        self.submit("--workers", "2", "--gpus-per-worker", "4")
        self.wait_finished()
        self.assert_nothing_lost(8)
        self.assertEqual(self.worker_names(), {f"slurm-1_{index}{suffix}" for index in (0, 1) for suffix in suffixes})
        sets = {frozenset(line.split(",")) for line in seen.read_text().split()}
        self.assertEqual({len(one) for one in sets}, {gpus})
        self.assertEqual(sum(map(len, sets)), 4, sets)  # both nodes have the same emulated GPUs

    def test_a_trial_takes_all_gpus_of_its_task(self):
        self.check(4, [""])

    def test_a_task_runs_two_workers_with_two_gpus_each(self):
        self.check(2, [":gpu0", ":gpu2"])


@unittest.skipIf(MISSING, MISSING)
class Life(OnSlurm):
    def test_a_fleet_runs_a_study_and_leaves(self):
        self.serve(trials=8)
        self.assertIn("submitted fleet toy to slurm", self.submit("--workers", "4"))
        self.wait_finished()
        self.assert_nothing_lost(8)
        self.assertEqual(self.worker_names(), {f"slurm-1_{index}" for index in range(4)})
        wait_until(lambda: not self.cluster.jobs("hpo-toy"), "an empty queue")
        self.assertIn("no worker of fleet toy waits or runs", self.hpo("fleet", "status", "toy", "--engine", "slurm", status=3))
        self.assertEqual(self.cluster.task("1_0")["JobState"], "COMPLETED")

    def test_each_worker_has_gpus_of_its_own(self):
        self.serve(trials=100, pace=1)
        self.submit("--workers", "4")
        self.wait_running(4)
        self.wait_trials_running(4)
        seen = sorted((node, variables["CUDA_VISIBLE_DEVICES"]) for node in self.cluster.names
                      for variables in self.environments(node))
        self.assertEqual(seen, [("n0", "0"), ("n0", "1"), ("n1", "0"), ("n1", "1")])

    def environments(self, node):
        """Of the workers on a node."""
        for pid, line in self.cluster.processes(node).items():
            if line.split()[0].endswith("/hpo-worker"):
                entries = pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
                yield dict(entry.split("=", 1) for entry in entries if "=" in entry)

    def test_stop_leaves_nothing_and_resumes_elsewhere(self):
        self.serve(trials=4, steps=60)
        self.submit("--workers", "4")
        self.wait_trials_running(4)
        self.assertIn("no worker is left", self.hpo("fleet", "stop", "toy"))
        self.assertEqual(self.cluster.processes(), {})
        self.assertEqual(self.cluster.jobs("hpo-toy"), {})
        self.assertEqual(self.study()["counts"]["queued"], 4)
        self.submit("--workers", "2")
        self.wait_finished()
        self.assert_nothing_lost(4)
        self.assertEqual(sum(ledger.steps_lost(self.folder / "ledger")), 0, self.told())

    def test_a_cancelled_task_does_not_come_back(self):
        self.serve(trials=100, pace=1)
        self.submit("--workers", "2")
        self.wait_trials_running(2)
        self.cluster.run("scancel", "1_1")
        wait_until(lambda: set(self.cluster.jobs("hpo-toy")) == {"1_0"}, "the task's end")
        self.assertEqual(self.cluster.task("1_1")["JobState"], "CANCELLED")
        self.assertEqual(self.cluster.task("1_1")["Restarts"], "0")


@unittest.skipIf(MISSING, MISSING)
class Size(OnSlurm):
    def test_a_fleet_grows_and_shrinks(self):
        self.serve(trials=100, pace=1)
        self.submit("--workers", "2")
        self.wait_running(2)
        self.assertIn("submitted 1 worker more", self.hpo("fleet", "scale", "toy", "--workers", "3"))
        self.wait_running(3)
        self.assertIn("cancelled 2 workers", self.hpo("fleet", "scale", "toy", "--workers", "1"))
        wait_until(lambda: list(self.fleet()) == ["1_0"], "one worker")
        self.assertIn("has 1 worker already", self.hpo("fleet", "scale", "toy", "--workers", "1"))

    def test_only_so_many_run_at_a_time(self):
        self.serve(trials=6)
        self.submit("--workers", "4", "--max-running", "1")
        self.wait_running(1)
        self.assertEqual(sorted(one["state"] for one in self.fleet().values()), ["running"] + ["waiting"] * 3)
        self.wait_finished()
        self.assert_nothing_lost(6)


@unittest.skipIf(MISSING, MISSING)
class Interruptions(OnSlurm):
    def test_the_signal_of_the_time_limit_requeues_the_task(self):
        self.serve(trials=2, steps=60)
        self.submit("--workers", "2")
        self.wait_trials_running(2)
        self.cluster.run("scancel", "--signal=USR1", "1_0")
        wait_until(lambda: self.cluster.task("1_0")["Restarts"] == "1", "the task's requeue")
        self.wait_finished()
        self.assert_nothing_lost(2)
        self.assertEqual(self.worker_names(), {"slurm-1_0", "slurm-1_1"})
        self.assertEqual(sum(ledger.steps_lost(self.folder / "ledger")), 0, self.told())

    def test_preemption_requeues_the_task(self):
        self.serve(trials=4, steps=80)
        self.submit("--workers", "4")
        self.wait_trials_running(4)
        self.cluster.run("sbatch", "--partition=urgent", "--gres=gpu:2", "--nodelist=n1", "--output=/dev/null",
                         "--wrap=sleep 5")
        self.wait_finished()
        self.assert_nothing_lost(4)
        self.assertEqual(sum(ledger.steps_lost(self.folder / "ledger")), 0, self.told())
        restarts = [int(self.cluster.task(f"1_{index}")["Restarts"]) for index in range(4)]
        self.assertEqual(sum(restarts), 2, restarts)

    def test_a_lost_node_costs_at_most_a_checkpoint_interval(self):
        self.serve(trials=4, steps=80)
        self.submit("--workers", "4")
        self.wait_trials_running(4)
        time.sleep(2)  # some steps and a checkpoint
        self.cluster.kill_node("n1")
        self.wait_finished()
        self.assert_nothing_lost(4)
        self.assertLessEqual(max(ledger.steps_lost(self.folder / "ledger")), 5)

    def test_a_killed_worker_comes_back_but_not_for_ever(self):
        """As the kernel kills it where the node has no memory left. Its lease ends, and it takes it back.

        Of several trials: one that loses its worker a fourth time has failed, and would end the study.
        """
        self.serve(trials=6, steps=600)
        self.submit("--workers", "1")
        for restarts in range(1, 6):
            self.wait_trials_running(1)
            self.kill_worker(restarts - 1)
            wait_until(lambda n=restarts: self.cluster.task("1_0")["Restarts"] == str(n), f"requeue {restarts}")
        self.wait_trials_running(1)
        self.kill_worker(5)
        wait_until(lambda: not self.cluster.jobs("hpo-toy"), "the end of the task")
        self.assertEqual(self.cluster.task("1_0")["JobState"], "FAILED")

    def kill_worker(self, restarts):
        """That of the task after so many restarts: one that was killed before may not have ended yet."""
        def workers():
            return [pid for pid, line in self.cluster.processes().items() if line.split()[0].endswith("/hpo-worker")
                    and self.restarts_seen_by(pid) == restarts]

        for pid in wait_until(workers, f"a worker after {restarts} restarts"):
            with contextlib.suppress(ProcessLookupError):  # it ends as its parent has been killed
                os.kill(pid, 9)

    def restarts_seen_by(self, pid):
        with contextlib.suppress(OSError):
            variables = pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
            return next((int(one.split("=")[1]) for one in variables if one.startswith("SLURM_RESTART_COUNT=")), 0)
        return None

    def test_a_task_whose_trainer_cannot_start_leaves_its_node(self):
        """By status 77 of the worker, on one node of two: there the trainer starts once, and never again."""
        trainer = self.folder / "trainer.sh"
        trainer.write_text('#!/bin/sh\n[ "$SLURMD_NODENAME" = n0 ] && [ -e "$0.once" ] && exit 1\n'
                           f'touch "$0.once"\nexec {os.environ["HPO_FAKE_TRAINER"]}\n')
        trainer.chmod(0o755)
        (self.folder / "toy.yaml").write_text(self.STUDY)
        self.start_server("--lease-ttl", "5s")
        self.variables["HPO_FAKE_CLEAN"] = "0"  # so that each trial has a process of its own
        self.hpo("fleet", "slurm", "--study", "toy", "--workers", "1", "--option=--nodelist=n0", "--submit", "--",
                 "--device", "cpu", "--memory-limit", "1GiB", "--trainer", trainer, "--state-dir",
                 self.folder / "workers")
        wait_until(lambda: self.cluster.task("1_0").get("ExcNodeList") == "n0", "the node's exclusion", 90)
        self.assertIn("ended with status 77 on n0", self.logs())
        self.assertEqual(self.cluster.task("1_0")["Restarts"], "1")
        # Now it waits for a node that it does not take; where it may, it goes on elsewhere.
        self.cluster.run("scontrol", "update", "JobId=1_0", "ReqNodeList=")
        self.wait_finished()


@unittest.skipIf(MISSING, MISSING)
class Secret(OnSlurm):
    def test_it_is_in_a_file_and_nowhere_else(self):
        self.serve(trials=100, pace=1)
        join = join_string()
        self.variables["HPO_JOIN"] = join
        self.submit("--workers", "1")
        folder = self.folder / "state/hpo/fleets/toy"
        self.assertEqual(stat.S_IMODE((folder / "join").stat().st_mode), 0o600)
        self.assertEqual((folder / "join").read_text(), join + "\n")
        self.assertNotIn(join.split(".")[2], (folder / "fleet.sbatch").read_text())
        self.assertIn(f"export HPO_JOIN_FILE={folder}/join", (folder / "fleet.sbatch").read_text())


@unittest.skipIf(MISSING, MISSING)
class WithoutGres(OnSlurm):
    NODES = {"nodes": 1, "gpus": 0}

    def test_one_line_says_what_the_cluster_lacks(self):
        said = self.hpo("fleet", "slurm", "--workers", "2", "--submit", status=2)
        self.assertIn("the GRES of this cluster are: none", said)
        self.assertIn("--gpus-per-worker 0", said)
        self.assertEqual(said.count("\n"), 1, said)

    def test_workers_on_cpus_need_none(self):
        self.serve(trials=4)
        self.hpo("fleet", "slurm", "--study", "toy", "--workers", "2", "--gpus-per-worker", "0", "--cpus", "2",
                 "--memory", "1GiB", "--submit", "--", "--allow-commands", "--state-dir", self.folder / "workers")
        self.wait_finished()
        self.assert_nothing_lost(4)


SUBMITIT = subprocess.run([ray_cluster.python(), "-c", "import submitit"], capture_output=True,
                          check=False).returncode == 0 if ray_cluster.python().exists() else False


@unittest.skipIf(MISSING, MISSING)
@unittest.skipUnless(SUBMITIT, f"{ray_cluster.python()} lacks submitit; scripts/bootstrap --engines brings it")
class BySubmitit(OnSlurm):
    def test_the_recipe_of_the_manual_runs_a_study(self):
        manual = (pathlib.Path(__file__).resolve().parents[3] / "docs/fleet.md").read_text()
        recipe = re.search(r"```python\n(import submitit\n.*?)```", manual, re.DOTALL).group(1)
        words = ["hpo-worker", "--study", "toy", *self.WORKER, "--state-dir", str(self.folder / "workers")]
        for old, new in (('["hpo-worker"]', repr(words)), ("range(32)", "range(2)"), ('"logs/', f'"{self.folder}/logs/')):
            self.assertIn(old, recipe)
            recipe = recipe.replace(old, new)
        self.serve(trials=4)
        done = subprocess.run([ray_cluster.python(), "-c", f"{recipe}\nfor job in jobs: job.result()"], cwd=self.folder, env={
            **self.variables, "HPO_SERVER": self.address, "PATH": f"{BIN}{os.pathsep}{self.variables['PATH']}"},
                              capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_nothing_lost(4)
        self.assertTrue(all(name.startswith("slurm-") for name in self.worker_names()), self.worker_names())


del OnSlurm

if __name__ == "__main__":
    unittest.main()
