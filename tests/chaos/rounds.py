"""Kills and stops of everything, jumps of the clock, a taken name, a wrong database: one accident a round. Beside the
workers a person queues, cancels, stops, preempts, imports and pauses (simulated_person.py). Every second chapter has
a proxy (proxy.py) between them and the server.

Rounds come in chapters of a fresh database each, so that a chapter can be run again by its seed. A chapter ends
with honest workers that finish its study, a stop of the server, and an audit of its file. After every accident, in a
short run after every third, the server's memory is held against a rebuild from rows.
"""

import contextlib
import os
import random
import signal
import sys
import time

import grpc

from client import Channel, Worker
from comparison import differences, image, settled_image
from deployment import TLS, Deployment, trainers_of, wait_until
from ledger import Ledger
from proxy import Proxy
from simulated_client import Gate
from simulated_person import SimulatedPerson
from simulated_workers import SimulatedWorker

LONGEST_CHAPTER = 20
NUM_SIMULATED = 4
NUM_REAL = 2
# What an accident leaves must be over, and work going on, within this.
RECOVERY_S = 60.0
SHORT_RUN = 50


class Chapter:
    def __init__(self, seed, num_rounds, proxied=False, compare_every=1, keep=False):
        self.random = random.Random(seed)
        self.seed = seed
        self.num_rounds = num_rounds
        self.ledger = Ledger()
        self.gate = Gate()
        # No lease may expire between two looks at the server, however slow the machine is.
        self.deployment = Deployment(trials=1_000_000, seed=seed, ttl="20s", keep=keep)
        self.proxied = proxied
        self.compare_every = compare_every  # rounds
        self.proxy = None
        self.differences = []
        self.found = []

    def run(self):
        with self.deployment as deployment, contextlib.ExitStack() as ends:
            deployment.start_server()
            if self.proxied:
                self.proxy = ends.enter_context(
                    contextlib.closing(Proxy(deployment.address, self.seed)))
            self.simulated = [
                SimulatedWorker(self._address(), f"sim{i}", self.ledger, self.gate, self.seed + i)
                for i in range(NUM_SIMULATED)]
            self.real = [self._start_real(i) for i in range(NUM_REAL)]
            person = SimulatedPerson(self._address(), self.ledger, self.gate,
                                     self.seed + NUM_SIMULATED)
            self.clients = [*self.simulated, person]
            for client in self.clients:
                client.start()
            try:
                for number in range(self.num_rounds):
                    self._round(number)
                self._end()
            finally:
                for client in self.clients:
                    client.stop()
            return self._figures()

    def _address(self):
        return self.proxy.address if self.proxy else self.deployment.address

    def _start_real(self, index):
        return self.deployment.start_worker(f"real{index}", server=self._address(), environment={
            "HPO_FAKE_PACE_MS": "30", "HPO_LOG_LEVEL": "warn"})

    def _round(self, number):
        accidents = [self.kill_server, self.kill_server, self.stop_server, self.restart_simulated,
                     self.kill_worker, self.stop_worker, self.kill_trainer, self.jump_clock,
                     self.take_a_name, self.wrong_database]
        accident = self.random.choice(accidents)
        before = self.ledger.count()
        accident()
        try:
            wait_until(lambda: self.ledger.count() >= before + 5, "results after " + accident.__name__,
                       RECOVERY_S)
        except AssertionError as stuck:
            self.found.append(f"seed {self.seed} round {number}: {stuck}")
        for index, worker in enumerate(self.real):
            if not worker.alive():
                self.found.append(f"seed {self.seed} round {number}, {accident.__name__}: worker "
                                  f"{index} ended with {worker.wait()}")
                self.real[index] = self._start_real(index)
        if number % self.compare_every == 0:
            self._compare(f"seed {self.seed} round {number}, {accident.__name__}")

    def _compare(self, after):
        """Memory against a rebuild from rows, while nobody calls."""
        with self._quiet():
            with contextlib.closing(Channel(self.deployment.address)) as channel:
                before = settled_image(channel, "chaos")
            self.deployment.restart_server()
            with contextlib.closing(Channel(self.deployment.address)) as channel:
                found = differences(before, image(channel, "chaos"))
        self.differences += [f"{after}: {text}" for text in found]

    # -- accidents --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _quiet(self):
        """Nobody calls meanwhile."""
        with self.gate, self.proxy.quiet if self.proxy else contextlib.nullcontext():
            for worker in self.real:
                worker.send(signal.SIGSTOP)
            try:
                yield
            finally:
                for worker in self.real:
                    worker.send(signal.SIGCONT)

    def kill_server(self):
        """In the middle of calls, once or twice."""
        for _ in range(self.random.randrange(1, 3)):
            time.sleep(self.random.random() * 0.3)
            self.deployment.restart_server()

    def stop_server(self):
        self.deployment.stopped(self.deployment.server, 0.2 + self.random.random() * 2)

    def restart_simulated(self):
        self.random.choice(self.simulated).restart()

    def kill_worker(self):
        index = self.random.randrange(NUM_REAL)
        self.real[index].kill9()
        self.real[index] = self._start_real(index)

    def stop_worker(self):
        self.deployment.stopped(self.random.choice(self.real), 0.2 + self.random.random() * 2)

    def kill_trainer(self):
        for pid in trainers_of(self.random.choice(self.real)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, self.random.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP]))
                os.kill(pid, signal.SIGCONT)

    def jump_clock(self):
        self.deployment.set_clock(self.random.choice([-1, 1]) * self.random.randrange(60, 40_000))

    def take_a_name(self):
        """Another process of a simulated worker's name. It may be refused, or take over; nothing is lost by it."""
        rival = Worker(self.deployment.address, self.random.choice(self.simulated).worker.name)
        with contextlib.closing(rival), contextlib.suppress(grpc.RpcError):
            rival.register()

    def wrong_database(self):
        """By TLS it is another server, which ends a worker that the right one has never admitted."""
        if TLS:
            with contextlib.closing(Channel(self.deployment.address)) as channel:
                wait_until(lambda: {worker.name for worker in self.real} <= {
                    worker["name"] for worker in channel.study("chaos")["workers"]}, "the workers", RECOVERY_S)
        self.deployment.server.kill9()
        self.deployment.start_server(database="other.db", studies=[])
        time.sleep(0.3)
        self.deployment.restart_server()

    # -- the end ----------------------------------------------------------------------------------

    def _end(self):
        self.deployment.set_clock(0)
        for client in self.clients:
            client.honest.set()
        with contextlib.closing(Channel(self.deployment.address)) as channel:
            budget = int(channel.trials("chaos")[-1]["number"]) + 5
            channel.call("StudyService", "UpdateStudy", name="chaos", trials=budget)
            wait_until(lambda: channel.study("chaos")["state"] == "STUDY_STATE_FINISHED",
                       "the study's end", 2 * RECOVERY_S)
        for worker in self.real:
            worker.terminate()
        self.deployment.server.terminate()

    def _figures(self):
        figures, found = self.ledger.audit(self.deployment.folder / "hpo.db")
        figures["differences"] = len(self.differences)
        for client in self.clients:
            self.found += client.unexpected
        figures["unexpected"] = len(self.found)  # answers, ends of workers, rounds without a result
        self.found += [f"seed {self.seed}: {text}" for text in found] + self.differences
        return figures


def run(num_rounds, seed, keep=False):
    """Figures over all chapters."""
    total = {"acknowledged_lost": 0, "told_twice": 0, "trials_stuck": 0, "integrity": "ok",
             "trials": 0, "acknowledged": 0, "acknowledged_to_people": 0, "differences": 0,
             "unexpected": 0}
    # At least two chapters: with and without a proxy.
    length = min(LONGEST_CHAPTER, (num_rounds + 1) // 2)
    for first in range(0, num_rounds, length):
        chapter = Chapter(seed + first, min(length, num_rounds - first),
                          proxied=first // length % 2 == 1,
                          compare_every=3 if num_rounds < SHORT_RUN else 1, keep=keep)
        figures = chapter.run()
        for name, value in figures.items():
            if name != "integrity":
                total[name] += value
            elif value != "ok":
                total[name] = value
        print(f"rounds {first} to {first + chapter.num_rounds - 1}: {figures}", file=sys.stderr, flush=True)
        for line in chapter.found:
            print("  " + line, file=sys.stderr, flush=True)
    return total
