"""A person's calls: trials queued, cancelled, stopped, preempted and imported; the study paused and let go on."""

import uuid

import grpc

from client import Channel
from simulated_client import SimulatedClient

STUDY = "chaos"
PAUSE_S = 0.03
QUEUED, RUNNING = "TRIAL_STATE_QUEUED", "TRIAL_STATE_RUNNING"


class SimulatedPerson(SimulatedClient):
    """It orders the study to run in every turn, so that a pause that the proxy sends once more is over soon; `honest`:
    it does nothing else."""

    def __init__(self, address, ledger, gate, seed):
        super().__init__(Channel(address), ledger, gate, seed)

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

    def _ask(self, method, **fields):
        return self._call(self.channel.call, "StudyService", method, **fields)

    def _until_answered(self, method, **fields):
        """One request until an answer comes; None where the person leaves before."""
        while not self.ended.is_set():
            try:
                return self._ask(method, **fields)
            except grpc.RpcError as error:
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
            self._ask("CancelTrial", study=STUDY, number=number, reason="not needed")
            self.ledger.cancel(STUDY, number)

    def _stop_trial(self):
        number = self._one_of(RUNNING)
        if number is not None:
            self._ask("StopTrial", study=STUDY, number=number, reason="not needed")

    def _preempt(self):
        number = self._one_of(RUNNING)
        if number is not None:
            self._ask("PreemptTrial", study=STUDY, number=number)

    def _pause(self):
        self._order("STUDY_ORDER_PAUSE")
        self.ended.wait(PAUSE_S)

    def _order(self, order):
        self._ask("OrderStudy", name=STUDY, order=order)

    def _one_of(self, state):
        trials = self._ask("ListTrials", study=STUDY, states=[state], page_size=50)["trials"]
        return int(self.random.choice(trials)["number"]) if trials else None
