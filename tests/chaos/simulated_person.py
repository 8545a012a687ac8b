"""A person's calls: trials queued, cancelled, stopped, preempted and imported; the study paused and let go on."""

import random
import threading
import uuid

import grpc

from client import Channel

STUDY = "chaos"
PAUSE_S = 0.03
QUEUED, RUNNING = "TRIAL_STATE_QUEUED", "TRIAL_STATE_RUNNING"


class SimulatedPerson(threading.Thread):
    """Runs until `stop`. What is acknowledged goes into the ledger; `gate` pauses it between two calls. It orders the
    study to run in every turn, so that a pause that the proxy sends once more is over soon."""

    def __init__(self, address, ledger, gate, seed):
        super().__init__(daemon=True)
        self.channel = Channel(address)
        self.ledger = ledger
        self.gate = gate
        self.random = random.Random(seed)
        self.ended = threading.Event()
        self.honest = threading.Event()  # from now on only the order to run
        self.unexpected = []  # errors that no client should see

    def stop(self):
        self.ended.set()
        self.join(60)
        self.channel.close()

    def run(self):
        acts = [self._enqueue, self._cancel, self._stop_trial, self._preempt, self._import, self._pause]
        while not self.ended.wait(PAUSE_S):
            if not self.honest.is_set():
                self._try(self.random.choice(acts))
            self._try(self._order, "STUDY_ORDER_RUN")

    def _try(self, act, *arguments):
        try:
            act(*arguments)
        except grpc.RpcError as error:
            self._note(error)

    def _note(self, error):
        if error.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN,
                            grpc.StatusCode.DATA_LOSS):
            self.unexpected.append(f"person: {error.code().name}: {error.details()}")

    def _call(self, method, **fields):
        with self.gate.one_call():
            return self.channel.call("StudyService", method, **fields)

    def _until_answered(self, method, **fields):
        """One request until an answer comes; None where the person leaves before."""
        while not self.ended.is_set():
            try:
                return self._call(method, **fields)
            except grpc.RpcError as error:
                self._note(error)
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                    raise
                self.ended.wait(0.05)
        return None

    def _enqueue(self):
        """Its x marks the trial in the database."""
        x = self.random.random()
        answer = self._until_answered("EnqueueTrial", study=STUDY, request_id=uuid.uuid4().hex,
                                      params={"x": {"double_value": x}})
        if answer is not None:
            self.ledger.queue(STUDY, answer["trial"]["number"], x)

    def _import(self):
        """Twice, as one who does not know whether it was done. The value marks the trial."""
        value = self.random.random()
        trial = {"origin": uuid.uuid4().hex,
                 "params": {"x": {"double_value": self.random.random()}, "y": {"int_value": 1}},
                 "outcome": {"completed": {"metrics": {"macro_f1": value}}}}
        for _ in range(2):
            if self._until_answered("ImportTrials", study=STUDY, trials=[trial]) is None:
                return
        self.ledger.import_one(STUDY, value)

    def _cancel(self):
        number = self._one_of(QUEUED)
        if number is not None:
            self._call("CancelTrial", study=STUDY, number=number, reason="not needed")
            self.ledger.cancel(STUDY, number)

    def _stop_trial(self):
        number = self._one_of(RUNNING)
        if number is not None:
            self._call("StopTrial", study=STUDY, number=number, reason="not needed")

    def _preempt(self):
        number = self._one_of(RUNNING)
        if number is not None:
            self._call("PreemptTrial", study=STUDY, number=number)

    def _pause(self):
        self._order("STUDY_ORDER_PAUSE")
        self.ended.wait(PAUSE_S)

    def _order(self, order):
        self._call("OrderStudy", name=STUDY, order=order)

    def _one_of(self, state):
        trials = self._call("ListTrials", study=STUDY, states=[state], page_size=50)["trials"]
        return int(self.random.choice(trials)["number"]) if trials else None
