"""Workers made of calls, each a thread: they ask, report, finish, repeat, give back, fall silent and come late."""

import uuid

import grpc

from client import Worker
from simulated_client import SimulatedClient

PAUSE_S = 0.02


class SimulatedWorker(SimulatedClient):
    def __init__(self, address, name, ledger, gate, seed):
        super().__init__(Worker(address, name), ledger, gate, seed)
        self.worker = self.channel
        self.late = []  # assignments that it fell silent about

    def run(self):
        while not self.ended.is_set():
            try:
                self._run_one()
            except grpc.RpcError as error:
                self._note(error)
                self.ended.wait(0.05)

    def restart(self):
        """As a new process of the same name would."""
        self.worker.instance = uuid.uuid4().hex
        self.worker.session = ""

    def _note(self, error):
        super()._note(error)
        if error.code() == grpc.StatusCode.NOT_FOUND:
            self.worker.session = ""

    def _run_one(self):
        if not self.worker.session:
            self._call(self.worker.register)
        request = uuid.uuid4().hex
        assignment = self._acquire(request)
        if assignment is None:
            self.ended.wait(PAUSE_S)
            return
        self.ended.wait(PAUSE_S * self.random.random())
        fate = "finish" if self.honest.is_set() else self._fate()
        if fate == "silent":
            self.late.append(assignment)
        elif fate == "release":
            self._call(self.worker.release, assignment, uuid.uuid4().hex)
        else:
            value = self.random.random()
            self._report(assignment, value)
            self._finish(assignment, value, repeat=fate == "repeat")
        if self.late and self.random.random() < 0.2:
            self._finish(self.late.pop(0), self.random.random(), repeat=False)

    def _fate(self):
        drawn = self.random.random()
        if drawn < 0.03:
            return "silent"
        if drawn < 0.06:
            return "release"
        return "repeat" if drawn < 0.2 else "finish"

    def _acquire(self, request):
        """Asked with one id until an answer comes, as the protocol wants it."""
        while not self.ended.is_set():
            try:
                return self._call(self.worker.acquire, request)[0]
            except grpc.RpcError as error:
                self._note(error)
                if error.code() == grpc.StatusCode.NOT_FOUND:
                    return None
                self.ended.wait(0.05)
        return None

    def _report(self, assignment, value):
        try:
            self._call(self.worker.report, assignment, 1, value)
        except grpc.RpcError as error:
            self._note(error)

    def _finish(self, assignment, value, repeat):
        """Told with one id until an answer comes. A refusal for good ends it."""
        request = uuid.uuid4().hex
        while not self.ended.is_set():
            try:
                answer = self._call(self.worker.finish, assignment, request, value)
                break
            except grpc.RpcError as error:
                self._note(error)
                if error.code() in (grpc.StatusCode.ABORTED, grpc.StatusCode.NOT_FOUND):
                    return
                self.ended.wait(0.05)
        else:
            return
        self.ledger.acknowledge(assignment["study"], assignment["trial"], value, answer)
        if repeat:
            again = self._call(self.worker.finish, assignment, request, value)
            if again != answer:
                self.unexpected.append(f"a repeated result was answered {again} after {answer}")
