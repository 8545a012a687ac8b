"""kill -9 of server, worker and trainer: nothing is lost, nothing counts twice."""

import os
import pathlib
import signal
import unittest

from harness import Deployment, wait_until

TERMINAL = {"COMPLETED", "PRUNED", "FAILED", "CANCELLED"}


def children(pid):
    """Ids of the direct children of `pid`."""
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def gone(pid):
    stat = pathlib.Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Survival(Deployment):
    """The fake trainer waits for a byte in a FIFO before each of its two measurements."""

    def setUp(self):
        super().setUp()
        self.fifo = self.folder / "pace"
        os.mkfifo(self.fifo)
        # Open for reading and writing: neither end ever blocks on the other's absence.
        self.pace = os.open(self.fifo, os.O_RDWR)
        self.addCleanup(os.close, self.pace)
        self.paced = {"HPO_FAKE_PACE_FIFO": str(self.fifo), "HPO_FAKE_MEASUREMENTS": "2"}

    def go_on(self, measurements=1):
        os.write(self.pace, b"x" * measurements)

    def running(self):
        return [t for t in self.trials() if t["state"] == "RUNNING"]

    def wait_measured(self):
        """Lets the first trial measure once; returns it."""
        self.go_on()
        return wait_until(
            lambda: next((t for t in self.running() if t.get("last_measurement")), None),
            "a measurement of a running trial")

    def wait_ended(self, number):
        def ended():
            trial = self.trial(number)
            return trial if trial["state"] in TERMINAL else None
        return wait_until(ended, f"the end of trial {number}")

    def trainer_of(self, worker):
        return wait_until(lambda: children(worker.pid), "the worker's trainer")[0]

    def test_restarted_server_adopts_the_running_trial(self):
        server = self.start_server("--lease-ttl", "2s")
        worker = self.start_worker(environment=self.paced)
        number = self.wait_measured()["number"]
        server.kill9()
        self.start_server("--lease-ttl", "2s")
        self.assertEqual(self.trial(number)["state"], "RUNNING")
        self.go_on()
        trial = self.wait_ended(number)
        self.assertEqual(trial["state"], "COMPLETED")
        self.assertEqual([a["state"] for a in trial["attempts"]], ["FINISHED"])
        self.assertEqual([m["step"] for m in trial["measurements"]],
                         sorted({m["step"] for m in trial["measurements"]}))
        self.assertTrue(worker.alive())

    def test_a_preemption_is_delivered_by_the_restarted_server(self):
        server = self.start_server("--lease-ttl", "30s")
        worker = self.start_worker(environment=self.paced)
        number = self.wait_measured()["number"]
        worker.send(signal.SIGSTOP)  # no heartbeat between the order and the server's death
        self.hpo("trial", "preempt", number)
        server.kill9()
        self.start_server("--lease-ttl", "30s")
        worker.send(signal.SIGCONT)

        def given_back():
            first = self.trial(number)["attempts"][0]
            return first if first["state"] == "RELEASED" else None
        released = wait_until(given_back, "the first attempt given back")
        self.assertEqual(released["end_note"], "preempted: ordered by the server")
        self.go_on(2)
        self.assertEqual(self.wait_ended(number)["state"], "COMPLETED")

    def test_a_result_waits_for_a_dead_server_even_when_its_worker_dies_too(self):
        server = self.start_server("--lease-ttl", "30s")
        worker = self.start_worker(environment=self.paced)
        number = self.wait_measured()["number"]
        server.kill9()
        outbox = self.folder / "state-w0"
        before = sum(f.stat().st_size for f in outbox.rglob("*outbox*") if f.is_file())
        self.go_on()
        wait_until(lambda: sum(f.stat().st_size for f in outbox.rglob("*outbox*") if f.is_file())
                   > before, "the result in the outbox")
        worker.kill9()
        self.start_server("--lease-ttl", "30s")
        self.start_worker(environment=self.paced)
        trial = self.wait_ended(number)
        self.assertEqual(trial["state"], "COMPLETED")
        self.assertEqual(len([a for a in trial["attempts"] if a["state"] == "FINISHED"]), 1)

    def test_a_dead_workers_trial_finishes_elsewhere_and_its_trainer_dies_with_it(self):
        self.start_server("--lease-ttl", "1s")
        first = self.start_worker("w0", environment=self.paced)
        number = self.wait_measured()["number"]
        trainer = self.trainer_of(first)
        first.kill9()
        wait_until(lambda: gone(trainer), "the trainer's death")
        self.start_worker("w1")
        trial = self.wait_ended(number)
        self.assertEqual(trial["state"], "COMPLETED")
        self.assertEqual([(a["worker"], a["state"]) for a in trial["attempts"]],
                         [("w0", "LOST"), ("w1", "FINISHED")])

    def test_a_restarted_worker_gives_its_lease_back_at_once(self):
        self.start_server("--lease-ttl", "300s")
        first = self.start_worker("w0", environment=self.paced)
        number = self.wait_measured()["number"]
        first.kill9()
        self.start_worker("w0")
        self.assertEqual(self.wait_ended(number)["state"], "COMPLETED")

    def test_a_killed_trainer_ends_its_attempt_and_the_worker_goes_on(self):
        self.start_server()
        worker = self.start_worker(environment=self.paced)
        number = self.wait_measured()["number"]
        os.kill(self.trainer_of(worker), signal.SIGKILL)
        self.go_on(100)
        trial = self.wait_ended(number)
        self.assertEqual(trial["state"], "COMPLETED")
        self.assertEqual(len(trial["attempts"]), 2)
        self.assertIn("TRAINER_KILLED", trial["attempts"][0]["end_note"])
        self.assertEqual(worker.wait(), 0, worker.output())

    def test_a_draining_worker_gives_its_trial_back(self):
        self.start_server("--lease-ttl", "300s")
        first = self.start_worker("w0", environment=self.paced)
        number = self.wait_measured()["number"]
        self.assertEqual(first.terminate(), 75, first.output())
        self.start_worker("w1")
        trial = self.wait_ended(number)
        self.assertEqual([a["state"] for a in trial["attempts"]], ["RELEASED", "FINISHED"])

    def test_a_draining_server_ends_cleanly_and_a_second_start_continues(self):
        server = self.start_server()
        self.start_worker(environment=self.paced)
        number = self.wait_measured()["number"]
        self.assertEqual(server.terminate(), 0, server.output())
        self.start_server()
        self.go_on(100)
        self.assertEqual(self.wait_ended(number)["state"], "COMPLETED")
        self.hpo("watch", "--until-finished")
        counts = self.study()["counts"]
        self.assertEqual((counts["completed"], counts["running"], counts["queued"]), (6, 0, 0))


if __name__ == "__main__":
    unittest.main()
