"""Real workers behind a server that fails in every way: none ends, and no result is lost."""

import errno
import os
import socket
import sqlite3
import subprocess
import time
import unittest

from harness import BIN, Deployment, wait_until

try:
    import grpc

    from faulty_proxy import FaultyProxy
    MISSING = None
except ImportError as error:
    MISSING = f"{error.name} is not installed; scripts/bootstrap --tests brings it"

NUM_WORKERS = 4
# Codes of a wrong configuration, which may end a worker (docs/status_codes.md).
ENDING = {"OK", "PERMISSION_DENIED", "UNAUTHENTICATED", "INVALID_ARGUMENT"}


@unittest.skipIf(MISSING, MISSING)
class WorkersStay(Deployment):
    STUDY = Deployment.STUDY.replace("trials: 6", "trials: 100000")

    def setUp(self):
        super().setUp()
        self.server = self.start_server("--lease-ttl", "30s")
        self.real = self.address
        self.proxy = FaultyProxy(self.real)
        self.addCleanup(self.proxy.stop)

    def start_workers(self, count=NUM_WORKERS):
        self.address = self.proxy.address
        environment = {"HPO_FAKE_MEASUREMENTS": "3"}
        self.workers = [self.start_worker(f"w{i}", environment=environment) for i in range(count)]
        self.address = self.real
        self.wait_completed(count)

    def completed(self):
        return self.study()["counts"]["completed"]

    def wait_completed(self, more):
        goal = self.completed() + more
        wait_until(lambda: self.completed() >= goal, f"{goal} completed trials")

    def assert_all_alive(self, what):
        ends = {worker.name: worker.child.poll() for worker in self.workers}
        self.assertEqual(list(ends.values()), [None] * len(ends), f"after {what}: {ends}")

    def assert_nothing_lost(self):
        """No trial took more than one attempt: whatever was finished was also told."""
        for worker in self.workers:
            self.assertIn(worker.terminate(), (0, 75))
            outbox = self.folder / f"state-{worker.name}" / worker.name / "outbox"
            self.assertEqual(outbox.stat().st_size, 0, worker.name)
        database = sqlite3.connect(self.folder / "hpo.db")
        self.addCleanup(database.close)
        ends = database.execute("SELECT number, attempt, worker, state, end_note FROM attempt "
                                "WHERE state NOT IN ('FINISHED', 'RELEASED')").fetchall()
        self.assertEqual(ends, [])
        states = dict(database.execute("SELECT state, count(*) FROM trial GROUP BY state"))
        self.assertLessEqual(set(states), {"COMPLETED", "QUEUED"}, states)

    def test_every_code_of_every_call(self):
        self.start_workers()
        for code in grpc.StatusCode:
            if code.name in ENDING:
                continue
            self.proxy.fail(code)
            # A worker that owes a result does not ask while the server seems to be away.
            before = self.proxy.num_failed("AcquireTrial", "FinishTrial")
            wait_until(lambda b=before: self.proxy.num_failed("AcquireTrial", "FinishTrial")
                       >= b + NUM_WORKERS, f"calls that fail with {code.name}")
            self.proxy.fail(None)
            self.assert_all_alive(code.name)
            self.wait_completed(NUM_WORKERS)
        wait_until(lambda: not any(self.owed(w) for w in self.workers), "everything told")
        self.assert_nothing_lost()

    def test_results_that_are_refused_wait_and_hold_up_nothing(self):
        self.start_workers()
        for code in ("NOT_FOUND", "FAILED_PRECONDITION", "ABORTED", "ALREADY_EXISTS", "DATA_LOSS"):
            self.proxy.fail(grpc.StatusCode[code], {"FinishTrial", "ReportMeasurements"})
            before = self.proxy.num_failed("FinishTrial")
            wait_until(lambda b=before: self.proxy.num_failed("FinishTrial") >= b + NUM_WORKERS,
                       f"results refused with {code}")
            self.proxy.fail(None)
            self.assert_all_alive(code)
            self.wait_completed(NUM_WORKERS)
        wait_until(lambda: not any(self.owed(w) for w in self.workers), "everything told")
        self.assert_nothing_lost()

    def owed(self, worker):
        return (self.folder / f"state-{worker.name}" / worker.name / "outbox").stat().st_size

    def test_another_database_for_a_while(self):
        self.start_workers()
        other_address = self.folder / "other_address"
        other = self.start(
            "other", BIN / "hpo-server", "--db", self.folder / "other.db", "--listen",
            "127.0.0.1:0", "--address-file", other_address)
        wait_until(lambda: other_address.exists() and other_address.read_text().strip(),
                   "the other server")
        self.proxy.point_at(other_address.read_text().strip())
        # In the middle of trials: their results meet a database that has never heard of them.
        wait_until(lambda: all("registered" in w.output() for w in self.workers), "log lines")
        time.sleep(3)
        self.assert_all_alive("another database")
        self.proxy.point_at(self.real)
        self.wait_completed(NUM_WORKERS)
        wait_until(lambda: not any(self.owed(w) for w in self.workers), "everything told")
        self.assert_nothing_lost()

    def test_restarts(self):
        self.start_workers()
        for _ in range(3):
            self.server.kill9()
            time.sleep(0.5)
            self.server = self.start_server("--lease-ttl", "30s", listen=self.real)
            self.wait_completed(NUM_WORKERS)
            self.assert_all_alive("a restart")
        self.assert_nothing_lost()


class FullDisk(Deployment):
    def test_a_worker_that_is_started_on_one_waits_for_it(self):
        self.start_server()
        fault = self.folder / "fault"
        fault.write_text(f"1 1000000 {errno.ENOSPC}")
        worker = self.start_worker(environment={
            "LD_PRELOAD": str(BIN.parent / "tests" / "libhpo_chaos_faults.so"),
            "HPO_CHAOS_FAULT": str(fault), "HPO_CHAOS_MATCH": "/lock"})
        wait_until(lambda: "waiting for this machine" in worker.output(), "a log line")
        self.assertIn("lock: No space left on device", worker.output())
        self.assertIsNone(worker.child.poll(), worker.output())
        fault.unlink()
        self.assertEqual(worker.wait(), 0, worker.output())
        self.assertEqual(self.study()["counts"]["completed"], 6)


class Descriptors(Deployment):
    """A server that may open 96 files."""

    STUDY = WorkersStay.STUDY
    LIMIT = 96

    def setUp(self):
        super().setUp()
        shell = f'ulimit -n {self.LIMIT}; exec "$@"'
        address_file = self.folder / "address"
        self.server = self.start(
            "server", "sh", "-c", shell, "sh", BIN / "hpo-server", "--study",
            self.folder / "toy.yaml", "--db", self.folder / "hpo.db", "--listen", "127.0.0.1:0",
            "--address-file", address_file)
        wait_until(lambda: address_file.exists() and address_file.read_text().strip(), "an address")
        self.address = address_file.read_text().strip()

    def connect_many(self, count):
        host, port = self.address.rsplit(":", 1)
        idle = []
        for _ in range(count):
            connection = socket.create_connection((host, int(port)), timeout=5)
            self.addCleanup(connection.close)
            idle.append(connection)
        return idle

    def status(self):
        return subprocess.run([str(BIN / "hpo"), "status", "--server", self.address],
                              capture_output=True, text=True, timeout=60, check=False)

    def completed(self):
        return self.study()["counts"]["completed"]

    def wait_for_answer(self):
        """gRPC notices in its own time that a connection is closed."""
        wait_until(lambda: self.status().returncode == 0, "an answer")

    def test_the_bound_is_told_and_the_server_hears_again(self):
        idle = self.connect_many(3 * self.LIMIT)
        wait_until(lambda: "connections are refused" in self.server.output(), "a log line")
        refused = self.status()
        self.assertNotEqual(refused.returncode, 0, refused.stdout)
        self.assertIn("hpo-server serves 32 connections", refused.stderr)
        self.assertLessEqual(len(os.listdir(f"/proc/{self.server.pid}/fd")), self.LIMIT - 16)
        for connection in idle:
            connection.close()
        self.wait_for_answer()

    def test_a_worker_outlives_the_exhaustion(self):
        worker = self.start_worker("w0", environment={"HPO_FAKE_MEASUREMENTS": "3"})
        for _ in range(3):
            before = self.completed()
            wait_until(lambda: self.completed() > before, "a completed trial")
            for connection in self.connect_many(3 * self.LIMIT):
                connection.close()
            self.wait_for_answer()
        before = self.completed()
        wait_until(lambda: self.completed() > before, "a completed trial")
        self.assertIsNone(worker.child.poll(), worker.output())


if __name__ == "__main__":
    unittest.main()
