"""A worker of the server in this process: takes trials, keeps their leases, reports how they end."""

import os
import pathlib
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Callable

from . import _wire
from ._presence import Presence
from .errors import HpoError, InvalidInput, ServerError

_LOST = "lease lost"
_STOPS = {"stop_pruned": "pruned", "lease_lost": _LOST, "cancelled": "cancelled",
          "preempted": "preempted", "time_limit": "time limit"}


@dataclass
class Device:
    """What a session's trials run on. `capacity_bytes` of it may be used by one trial."""

    kind: str = "cpu"
    name: str = "this machine"
    uuid: str = ""
    total_bytes: int = 0
    capacity_bytes: int = 0
    environment: "dict[str, str]" = field(default_factory=lambda: {})


@dataclass
class Lease:
    """A trial that this process runs. `stop`: why it is to end; empty: it is not."""

    assignment: Any
    stop: str = ""
    is_told: bool = False  # how it ended

    def fill(self, request: Any) -> Any:
        for key in ("study", "trial", "attempt", "lease_token", "database"):
            setattr(request, key, getattr(self.assignment, key))
        return request

    def packed(self) -> bytes:
        """For another process."""
        data: bytes = self.assignment.SerializeToString()
        return data


def _request_id() -> str:
    return os.urandom(16).hex()


def _own_process() -> "dict[str, Any]":
    """Who this process is (proto/hpo/v1/worker.proto); empty where /proc does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot_id = file.read().strip()
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            pid, _, rest = file.read().partition(" ")
        spaces = [os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "time")
                  if os.path.lexists(f"/proc/self/ns/{name}")]
        start_ticks = int(rest.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return {}
    if int(pid) != os.getpid() or not spaces:
        return {}
    return {"boot_id": boot_id, "namespaces": " ".join(spaces), "pid": int(pid),
            "start_ticks": start_ticks}


class LeaseLost(ServerError):
    """Another attempt has the trial: this one gave no sign of life for too long."""


class Session:
    """Safe from any thread. A thread of its own tells the server that the leases live, and holds a
    stream open, by whose end the server learns at once that this process is gone."""

    is_borrowed = False  # of another process

    def __init__(self, channel: _wire.Channel, study: str, device: Device, worker: str,
                 plans: bool = False, folder: "pathlib.Path | None" = None) -> None:
        """`folder`: the storage folder, in which others see whether this process lives."""
        self.device = device
        self._channel = channel
        self._register = _wire.message("RegisterWorkerRequest")(
            worker=worker, instance_key=uuid.uuid4().hex, version="python", trainer="python",
            plans=plans, capacity_bytes=device.capacity_bytes,
            device=_wire.message("DeviceProfile")(kind=device.kind, name=device.name,
                                                  uuid=device.uuid, total_bytes=device.total_bytes),
            serves=_wire.message("StudyNames")(names=[study]), process=_own_process())
        self.judge: "Callable[[Lease, int, float, dict[str, float]], bool] | None" = None  # a pruner of one's own
        self._leases: "list[Lease]" = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._wake = threading.Event()  # Of the thread: to end, or to beat before it is time.
        self._stream: Any = None
        self._stream_since, self._stream_of = 0.0, ""
        self._id, self._interval = "", 10.0
        self._presence = Presence(folder, self._register) if folder is not None else None
        self._register_now()
        self._thread = threading.Thread(target=self._beat, name="hpo-heartbeat", daemon=True)
        self._thread.start()

    def acquire(self, wait_s: float) -> "tuple[Lease | None, Any]":
        """A trial, where one comes within `wait_s`, and the answer, which says why there is none."""
        request = _wire.message("AcquireTrialRequest")(
            request_id=_request_id(), capacity_bytes=self.device.capacity_bytes)
        request.wait.FromNanoseconds(int(wait_s * 1e9))
        answer = self._call("AcquireTrial", request, wait_s + _wire.CALL_S)
        if not answer.HasField("assignment"):
            return None, answer
        lease = Lease(answer.assignment)
        with self._lock:
            self._leases.append(lease)
        return lease, answer

    def report(self, lease: Lease, step: int, epoch: float, metrics: "dict[str, float]") -> None:
        """Sets the lease's `stop` where the server wants the trial to end."""
        request = lease.fill(_wire.message("ReportMeasurementsRequest")())
        request.measurements.add(step=step, epoch=epoch, metrics=metrics)
        self._report(lease, request)
        if self.judge is not None and not lease.stop and self.judge(lease, step, epoch, metrics):
            lease.stop = "pruned"

    @property
    def worker(self) -> str:
        return str(self._register.worker)

    def hand_over(self, lease: Lease) -> "tuple[str, str, bytes]":
        """What _handover.borrowed takes in another process."""
        return self._channel.address, self._id, lease.packed()

    def note(self, lease: Lease, attributes: "dict[str, str]") -> None:
        """JSON texts by key, of the trial."""
        self._report(lease, lease.fill(_wire.message("ReportMeasurementsRequest")(attributes=attributes)))

    def finish(self, lease: Lease, outcome: Any, memory: Any = None,
               final_plan: "dict[str, int] | None" = None) -> str:
        """The state that the trial has now: "completed", ... `final_plan`: what it ran by, where
        that is not the assignment's. Raises LeaseLost where another attempt has the trial."""
        plan = lease.assignment.plan if lease.assignment.HasField("plan") else None
        if final_plan:
            plan = _wire.message("MemoryPlan")(**final_plan)
        request = lease.fill(_wire.message("FinishTrialRequest")(
            request_id=_request_id(), outcome=outcome, memory=memory, final_plan=plan))
        answer = self._of_lease(lease, "FinishTrial", request)
        self._forget(lease)
        return _wire.name("TrialState", answer.state)

    def release(self, lease: Lease, note: str) -> None:
        """Gives the trial back: it is queued again. Does nothing where another attempt has it."""
        self._forget(lease)
        if lease.stop == _LOST:
            return
        request = lease.fill(_wire.message("ReleaseTrialRequest")(
            request_id=_request_id(), note=note,
            reason=_wire.number("ReleaseReason", "RELEASE_REASON_PREEMPTED")))
        self._call("ReleaseTrial", request)

    def close(self) -> None:
        """Says goodbye; what is still leased goes to others at once."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._wake.set()
        self._thread.join()
        try:
            self._call("Heartbeat", _wire.message("HeartbeatRequest")(leaving=True), 5)
        except ServerError:
            pass  # The server finds out by itself.
        if self._stream is not None:
            self._stream.cancel()
        if self._presence is not None:
            self._presence.close()

    def _report(self, lease: Lease, request: Any) -> None:
        if lease.is_told:
            raise InvalidInput(f"trial {lease.assignment.trial} was told already: nothing can be reported of it")
        try:
            answer = self._of_lease(lease, "ReportMeasurements", request)
        except LeaseLost:
            return  # The trial is told to stop.
        self._obey(lease, answer.directive)
        if answer.should_stop:
            lease.stop = lease.stop or "pruned"

    def _of_lease(self, lease: Lease, method: str, request: Any) -> Any:
        try:
            return self._call(method, request)
        except ServerError as error:
            if error.code != "ABORTED":
                raise
            lease.stop = _LOST
            self._forget(lease)
            raise LeaseLost(error.code, str(error)) from None

    def _forget(self, lease: Lease) -> None:
        with self._lock:
            if lease in self._leases:
                self._leases.remove(lease)

    def _register_now(self) -> None:
        answer = self._channel.call("WorkerService/RegisterWorker", self._register)
        self._id = answer.session
        self._interval = answer.heartbeat_interval.ToNanoseconds() / 1e9 or self._interval

    def _call(self, method: str, request: Any, timeout: float = _wire.CALL_S) -> Any:
        """Registers again where the server has forgotten the session (it was restarted)."""
        for last in (False, True):
            request.session = self._id
            try:
                return self._channel.call(f"WorkerService/{method}", request, timeout)
            except ServerError as error:
                if last or error.code not in ("NOT_FOUND", "UNAUTHENTICATED"):
                    raise
                self._register_now()
        raise AssertionError("unreachable")

    def _beat(self) -> None:
        while True:
            self._attend()
            self._wake.wait(self._interval)
            self._wake.clear()
            if self._ended.is_set():
                return
            self._attend()  # Before a beat, which may have to wait for the server.
            self._beat_once()

    def _beat_once(self) -> None:
        with self._lock:
            leases = list(self._leases)
        request = _wire.message("HeartbeatRequest")(capacity_bytes=self.device.capacity_bytes)
        for lease in leases:
            lease.fill(request.leases.add())
        try:
            answer = self._call("Heartbeat", request, self._interval)
            if answer.register_again:
                self._register_now()
        except HpoError:
            return  # Again at the next one: a lease outlives several.
        for lease, directive in zip(leases, answer.directives):
            self._obey(lease, directive)

    def _attend(self) -> None:
        """Holds a stream of this session open, where none is and the server takes one."""
        if self._stream is not None and self._stream_of == self._id:
            if self._stream.is_active() or self._stream.code().name in ("UNIMPLEMENTED", "NOT_FOUND"):
                return
        self._stream_of, self._stream_since = self._id, time.monotonic()
        self._stream = self._channel.hold(
            "WorkerService/Attend", _wire.message("AttendRequest")(session=self._id), self._cut_off)

    def _cut_off(self) -> None:
        """What lasted for less than a second was never open: it waits for the next beat."""
        if time.monotonic() - self._stream_since >= 1:
            self._wake.set()

    def _obey(self, lease: Lease, directive: int) -> None:
        lease.stop = lease.stop or _STOPS.get(_wire.name("Directive", directive), "")
