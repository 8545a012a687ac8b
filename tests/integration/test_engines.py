"""Workers as Slurm, Ray, Kubernetes and their like start them: their GPUs, names, time, signals and end."""

import os
import signal
import subprocess
import sys
import time
import unittest

from harness import BIN, Deployment, wait_until

EMULATOR = BIN.parent / "emulator"  # NVML of it alone
RESULT = """echo '{"macro_f1": {x}}'"""
SLEEPER = f"sleep 600; {RESULT}"
# A parent that ignores and blocks what ends a worker, as submitit's does.
DEAF = """\
import os, signal, sys
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
os.execv(sys.argv[1], sys.argv[1:])
"""


class Engines(Deployment):
    def setUp(self):
        super().setUp()
        for name in list(os.environ):
            self.assertFalse(name.startswith(("SLURM_", "SKYPILOT_", "JOB_COMPLETION_")), name)

    def worker(self, log, *options, environment=None, before=(), trainer=SLEEPER, state=None, device=None):
        """A worker without a name of its own, on the CPU unless `device` says otherwise."""
        device = ("--device", "cpu", "--memory-limit", "1GiB") if device is None else device
        return self.start(log, *before, BIN / "hpo-worker", "--server", self.address, "--study", "toy", *device,
                          "--state-dir", self.folder / (state or f"state-{log}"), "--trainer", trainer, *options,
                          environment=environment)

    def workers(self):
        return {worker["name"]: worker for worker in self.json("worker", "list")["workers"]}

    def running(self):
        return [trial["number"] for trial in self.trials("--state", "running")]

    def await_running(self):
        return wait_until(self.running, "a trial that runs")[0]

    # -- GPUs -------------------------------------------------------------------------------------

    def on_gpus(self, visible=None, cards=4, **more):
        environment = {"LD_LIBRARY_PATH": str(EMULATOR), "HPO_EMULATED_CARD": "t4", "HPO_EMULATED_CARDS": str(cards),
                       "HPO_EMULATED_STATE": str(self.folder / "gpus"), **more}
        return environment if visible is None else {**environment, "CUDA_VISIBLE_DEVICES": visible}

    @staticmethod
    def uuid(card):
        return f"GPU-68706f{0x65 + card:02x}"

    def gpus_used(self, shown):
        """Runs a study on workers that see these GPUs, {name: CUDA_VISIBLE_DEVICES}: {name: UUIDs that trials saw}."""
        self.start_server()
        for name, visible in shown.items():
            trainer = f"echo $CUDA_VISIBLE_DEVICES >> {self.folder}/used-{name}; sleep 1; {RESULT}"
            self.worker(name, "--name", name, device=(), trainer=trainer, environment=self.on_gpus(visible))
        for process in self.processes[1:]:
            self.assertEqual(process.wait(), 0, process.output())
        return {name: {uuid[:12] for uuid in (self.folder / f"used-{name}").read_text().split()} for name in shown}

    def test_workers_touch_no_gpu_beyond_their_own(self):
        used = self.gpus_used({"a": "3,1", "b": self.uuid(0)})
        for name, own in (("a", {3, 1}), ("b", {0})):
            self.assertEqual(used[name], {self.uuid(card) for card in own})
        self.assertEqual(set(self.workers()), {"a:gpu0", "a:gpu1", "b"})

    def test_without_the_variable_every_gpu_has_a_worker(self):
        self.start_server()
        self.worker("all", device=(), environment=self.on_gpus(cards=2))
        names = wait_until(lambda: len(self.workers()) == 2 and self.workers(), "two workers")
        self.assertEqual({name.rpartition(":")[2] for name in names}, {self.uuid(0), self.uuid(1)})

    def test_mig_devices_have_a_worker_each(self):
        self.start_server()
        environment = self.on_gpus("MIG-68706f66,MIG-68706f65", cards=1, HPO_EMULATED_MIG="3")
        trainer = f"echo $CUDA_VISIBLE_DEVICES >> {self.folder}/used; sleep 1; {RESULT}"
        worker = self.worker("mig", device=(), trainer=trainer, environment=environment)
        self.assertEqual(worker.wait(), 0, worker.output())
        used = {uuid[:12] for uuid in (self.folder / "used").read_text().split()}
        self.assertEqual(used, {"MIG-68706f65", "MIG-68706f66"})

    def test_what_the_variable_hides_is_refused(self):
        self.start_server()
        for visible, options, said in [
                ("1,2", ("--gpu", self.uuid(0)), "CUDA_VISIBLE_DEVICES=1,2 hides this GPU from this process"),
                ("1,2", ("--gpu", "2"), "expected a number from 0 to 1, the place in CUDA_VISIBLE_DEVICES=1,2"),
                ("", (), "CUDA_VISIBLE_DEVICES= hides every GPU from this process"),
                ("-1", ("--gpu", "all"), "CUDA_VISIBLE_DEVICES=-1 hides every GPU"),
                ("9", (), "CUDA_VISIBLE_DEVICES=9: '9' names no GPU of this machine")]:
            with self.subTest(visible=visible, options=options):
                worker = self.worker("refused", *options, device=(), environment=self.on_gpus(visible))
                self.assertEqual(worker.wait(), 78)
                self.assertIn(said, worker.output())
        self.assertEqual(self.workers(), {})

    # -- Names ------------------------------------------------------------------------------------

    def test_a_requeued_job_has_its_name_and_its_trial_back(self):
        self.start_server("--lease-ttl", "6s")
        job = {"SLURM_JOB_ID": "23", "SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "3",
               "SLURM_JOB_END_TIME": str(int(time.time()) + 36000)}
        first = self.worker("first", environment=job)
        number = self.await_running()
        first.kill9()
        second = self.worker("second", environment=job)  # another folder: another host
        wait_until(lambda: len(self.trial(number)["attempts"]) == 2 and number in self.running(), "the second attempt")
        self.assertEqual({attempt["worker"] for attempt in self.trial(number)["attempts"]}, {"slurm-17_3"})
        self.assertEqual(list(self.workers()), ["slurm-17_3"])
        self.assertEqual(second.terminate(), 75)

    def test_gpus_of_one_job_are_told_apart(self):
        self.start_server()
        job = {"SLURM_JOB_ID": "23", "SLURM_JOB_END_TIME": str(int(time.time()) + 36000)}
        one = self.worker("one", device=("--gpu", "1"), environment=self.on_gpus("0,2", **job))
        wait_until(lambda: list(self.workers()) == ["slurm-23:gpu1"], "the worker of the second GPU")
        self.assertEqual(one.terminate(), 75)
        named = self.worker("named", device=("--gpu", "0"),
                            environment=self.on_gpus("0,2", HPO_WORKER_NAME="actor-5", **job))
        wait_until(lambda: "actor-5" in self.workers(), "the worker that the engine named")
        self.assertEqual(named.terminate(), 75)

    # -- Time and signals -------------------------------------------------------------------------

    def test_signals_count_whatever_the_parent_does_with_them(self):
        self.start_server()
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            with self.subTest(number):
                worker = self.worker(f"deaf-{number}", before=(sys.executable, "-c", DEAF))
                trial = self.await_running()
                worker.send(number)
                self.assertEqual(worker.wait(), 75, worker.output())
                self.assertEqual(self.trial(trial)["state"], "QUEUED")

    def test_a_warning_of_the_engine_does_not_end_the_program(self):
        """Slurm sends it to every process of a job."""
        self.start_server()
        self.worker("warned", trainer=f"echo $$ > {self.folder}/pid; sleep 2; {RESULT}")
        number = self.await_running()
        wait_until(lambda: (self.folder / "pid").exists() and (self.folder / "pid").read_text().strip(), "the program")
        for signum in (signal.SIGUSR1, signal.SIGUSR2):
            os.kill(int((self.folder / "pid").read_text()), signum)
        wait_until(lambda: self.trial(number)["state"] == "COMPLETED", "the trial's end")
        self.assertEqual(len(self.trial(number)["attempts"]), 1)

    def test_the_time_that_slurm_leaves_is_the_limit(self):
        self.start_server()
        job = {"SLURM_JOB_ID": "23"}
        squeue = self.folder / "bin" / "squeue"
        squeue.parent.mkdir()
        squeue.write_text("#!/bin/sh\necho 0:06\n")
        squeue.chmod(0o755)
        for source in ({"SLURM_JOB_END_TIME": str(int(time.time()) + 6)},
                       {"PATH": f"{squeue.parent}:{os.environ['PATH']}"}):
            with self.subTest(source):
                if "SLURM_JOB_END_TIME" in source:
                    source = {"SLURM_JOB_END_TIME": str(int(time.time()) + 6)}
                worker = self.worker("timed", environment={**job, **source})
                began = time.monotonic()
                trial = self.await_running()
                self.assertEqual(worker.wait(), 75, worker.output())
                self.assertLess(time.monotonic() - began, 6)
                self.assertEqual(self.trial(trial)["state"], "QUEUED")
        flagged = self.worker("flagged", "--time-limit", "1h",
                              environment={**job, "SLURM_JOB_END_TIME": str(int(time.time()) + 3)})
        self.await_running()
        with self.assertRaises(subprocess.TimeoutExpired):
            flagged.wait(5)

    def test_a_trial_that_can_neither_end_nor_save_is_not_run(self):
        self.start_server()
        trainer = f"echo run >> {self.folder}/runs; sleep 4; {RESULT}"
        self.assertEqual(self.worker("first", "--max-trials", "1", trainer=trainer).wait(), 0)
        short = self.worker("short", "--time-limit", "6s", trainer=trainer)
        self.assertEqual(short.wait(), 75, short.output())
        self.assertRegex(short.output(), r"trials of study toy take up to [45]s, [0-3](\.\d+)?s are left to this worker, "
                                         "and its program saves no checkpoints")
        self.assertEqual((self.folder / "runs").read_text().count("run"), 1)
        self.assertEqual([trial["state"] for trial in self.trials()], ["COMPLETED", "QUEUED"])
        saves = self.worker("saves", "--time-limit", "6s", trainer=f": {{checkpoint_dir}}; {trainer}")
        self.assertEqual(saves.wait(), 75, saves.output())
        self.assertEqual((self.folder / "runs").read_text().count("run"), 2)

    # -- The end ----------------------------------------------------------------------------------

    def test_an_idle_worker_ends(self):
        self.start_server()
        self.hpo("study", "pause", "toy")
        worker = self.worker("idle", "--max-idle", "1s")
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertIn("no trial for 1s (--max-idle)", worker.output())

    def test_a_drained_worker_ends_after_its_trial_until_it_is_resumed(self):
        self.start_server()
        trainer = f"while [ ! -e {self.folder}/go ]; do sleep 0.1; done; {RESULT}"
        worker = self.worker("w", "--name", "w", trainer=trainer)
        number = self.await_running()
        self.assertEqual(self.json("worker", "drain", "w"), {"workers": ["w"]})
        (self.folder / "go").touch()
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertIn("drained: w gets no trials until hpo worker resume w", worker.output())
        self.assertEqual(self.trial(number)["state"], "COMPLETED")
        self.assertEqual(sum(self.study()["counts"][state] for state in ("completed", "running")), 1)
        # As an engine would start it again.
        self.assertEqual(self.worker("w", "--name", "w", trainer=trainer).wait(), 0)
        self.assertEqual(self.study()["counts"]["completed"], 1)
        self.hpo("worker", "resume", "--all")
        last = self.worker("w", "--name", "w", trainer=trainer)
        self.assertEqual(last.wait(), 0, last.output())
        self.assertTrue(self.study()["counts"]["completed"] == 6)

    def test_drained_now_the_trial_is_requeued(self):
        self.start_server("--lease-ttl", "6s")
        worker = self.worker("w", "--name", "w")
        number = self.await_running()
        self.assertIn("w: gets no more trials", self.hpo("worker", "drain", "--all", "--now"))
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual(self.trial(number)["state"], "QUEUED")


if __name__ == "__main__":
    unittest.main()
