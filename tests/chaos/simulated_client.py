"""What simulated workers and people have in common: a thread that calls, and a gate that holds all of them."""

import random
import threading

import grpc


class SimulatedClient(threading.Thread):
    """Calls over `channel` until `stop`; every answer that counts goes into the ledger. `gate` pauses it between two
    calls."""

    def __init__(self, channel, ledger, gate, seed):
        super().__init__(daemon=True)
        self.channel = channel
        self.ledger = ledger
        self.gate = gate
        self.random = random.Random(seed)
        self.ended = threading.Event()
        self.honest = threading.Event()  # no accidents of its own from now on
        self.unexpected = []  # errors that no client should see

    def stop(self):
        self.ended.set()
        self.join(60)
        self.channel.close()

    def _note(self, error):
        if error.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN,
                            grpc.StatusCode.DATA_LOSS):
            self.unexpected.append(f"{type(self).__name__}: {error.code().name}: {error.details()}")

    def _call(self, function, *arguments, **fields):
        with self.gate.one_call():
            return function(*arguments, **fields)


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
