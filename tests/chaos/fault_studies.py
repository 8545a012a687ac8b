"""Calls of a real server on its files fail: ENOSPC, EIO at a drawn k, once or for a while, or a server out
of descriptors.

Every case is a fault in a server that works on: afterwards workers go on by themselves, nothing that was
acknowledged is lost, and what the server says equals what it says after a restart.
"""

import contextlib
import random
import sys
import time

import grpc

from client import Channel
from comparison import differences, image, settled_image
from deployment import Deployment, wait_until
from ledger import Ledger
from simulated_client import Gate
from simulated_workers import SimulatedWorker

CHAPTER = 10
NUM_WORKERS = 4
RECOVERY_S = 60.0
LATEST_K = 300
COUNTS = [1, 1, 3, 40, 100_000]
ERRORS = ["ENOSPC", "EIO", "EMFILE"]
MOST_SPARE = 8


class FaultChapter:
    """Some faults on one database."""

    def __init__(self, seed, num_faults, keep=False):
        self.random = random.Random(seed)
        self.seed = seed
        self.num_faults = num_faults
        self.ledger = Ledger()
        self.gate = Gate()
        # No lease may expire between two looks at the server, however slow the machine is.
        self.deployment = Deployment(trials=1_000_000, seed=seed, ttl="20s", keep=keep)
        self.not_recovered = []
        self.last = "the start"

    def run(self):
        with self.deployment as deployment:
            deployment.start_server()
            workers = [SimulatedWorker(deployment.address, f"sim{i}", self.ledger, self.gate, self.seed + i)
                       for i in range(NUM_WORKERS)]
            for worker in workers:
                worker.start()
            try:
                for _ in range(self.num_faults):
                    self._one_fault()
                self._end(workers)
            finally:
                deployment.heal()
                for worker in workers:
                    worker.stop()
            figures, found = self.ledger.audit(deployment.folder / "hpo.db")
            if found or figures["integrity"] != "ok" or figures["told_twice"]:
                self.not_recovered.append(f"seed {self.seed}: {figures} {found[:5]}")

    def _one_fault(self):
        what = self.last = self._fail_for_a_while()
        if not self.deployment.server.alive():
            self.not_recovered.append(f"{what}: the server ended")
            self.deployment.start_server()
            return
        if not self._work(10, RECOVERY_S):
            self.not_recovered.append(f"{what}: no work is done after it")
            self.deployment.restart_server()
            return
        with self.gate:
            with contextlib.closing(Channel(self.deployment.address)) as channel:
                before = settled_image(channel, "chaos")
            self.deployment.restart_server()
            with contextlib.closing(Channel(self.deployment.address)) as channel:
                found = differences(before, image(channel, "chaos"))
        if found:
            self.not_recovered.append(f"{what}: {found[:3]}")

    def _fail_for_a_while(self):
        """What was done to the server, once it is over."""
        error = self.random.choice(ERRORS)
        if error == "EMFILE":
            spare = self.random.randrange(MOST_SPARE)
            with self.deployment.few_descriptors(spare):
                self._work(10, 2.0)
            return f"seed {self.seed}: {spare} descriptors left"
        first, count = self.random.randrange(1, LATEST_K), self.random.choice(COUNTS)
        self.deployment.fail_calls(first, count, error)
        self._work(10, 2.0)
        self.deployment.heal()
        return f"seed {self.seed}: {error} at {first}, {count} times"

    def _work(self, results, seconds):
        """Whether so many more results were acknowledged within `seconds`."""
        before, end = self.ledger.count(), time.monotonic() + seconds
        while self.ledger.count() < before + results:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def _end(self, workers):
        for worker in workers:
            worker.honest.set()
        with contextlib.closing(Channel(self.deployment.address)) as channel:
            budget = int(channel.trials("chaos")[-1]["number"]) + 2
            channel.call("StudyService", "UpdateStudy", name="chaos", trials=budget, patient=True)
            wait_until(lambda: channel.study("chaos")["state"] == "STUDY_STATE_FINISHED",
                       "the study's end", 2 * RECOVERY_S)
        self.deployment.server.terminate()


def run(num_faults, seed, keep=False):
    """What was not recovered from, a line each."""
    not_recovered = []
    for first in range(0, num_faults, CHAPTER):
        chapter = FaultChapter(seed + first, min(CHAPTER, num_faults - first), keep)
        try:
            chapter.run()
        except (AssertionError, grpc.RpcError) as failure:
            chapter.not_recovered.append(f"seed {chapter.seed}, after {chapter.last}: {failure}")
        not_recovered += chapter.not_recovered
        print(f"faults {first} to {first + chapter.num_faults - 1}: acknowledged "
              f"{chapter.ledger.count()}, not recovered {len(chapter.not_recovered)}",
              file=sys.stderr, flush=True)
        for line in chapter.not_recovered:
            print("  " + line, file=sys.stderr, flush=True)
    return not_recovered
