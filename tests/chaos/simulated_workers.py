"""Workers made of calls, each a thread: they ask, report, finish, repeat, give back, fall silent and come late."""

import random
import threading
import uuid

import grpc

from client import Worker

PAUSE_S = 0.02


class SimulatedWorker(threading.Thread):
    """Runs until `stop`; every answer that counts goes into the ledger. `gate` pauses it between two calls."""

    def __init__(self, address, name, ledger, gate, seed):
        super().__init__(daemon=True)
        self.worker = Worker(address, name)
        self.ledger = ledger
        self.gate = gate
        self.random = random.Random(seed)
        self.ended = threading.Event()
        self.honest = threading.Event()  # no accidents of its own from now on
        self.late = []  # assignments that it fell silent about
        self.unexpected = []  # errors that no client should see

    def stop(self):
        self.ended.set()
        self.join(60)
        self.worker.close()

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
        if error.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN,
                            grpc.StatusCode.DATA_LOSS):
            self.unexpected.append(f"{error.code().name}: {error.details()}")
        if error.code() == grpc.StatusCode.NOT_FOUND:
            self.worker.session = ""

    def _call(self, function, *arguments):
        with self.gate.one_call():
            return function(*arguments)

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


class Gate:
    """Lets calls through, or holds all of them: between two calls of everybody nothing changes."""

    def __init__(self):
        self._condition = threading.Condition()
        self._inside = 0
        self._closed = False

    def one_call(self):
        return _Pass(self)

    def enter(self):
        with self._condition:
            self._condition.wait_for(lambda: not self._closed)
            self._inside += 1

    def leave(self):
        with self._condition:
            self._inside -= 1
            self._condition.notify_all()

    def __enter__(self):
        with self._condition:
            self._closed = True
            self._condition.wait_for(lambda: self._inside == 0)

    def __exit__(self, *failure):
        with self._condition:
            self._closed = False
            self._condition.notify_all()


class _Pass:
    def __init__(self, gate):
        self.gate = gate

    def __enter__(self):
        self.gate.enter()

    def __exit__(self, *failure):
        self.gate.leave()
