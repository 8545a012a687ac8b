"""A worker made of calls: any client of the service could make them. Stock grpcio; the messages come from protoc."""

import pathlib
import subprocess
import tempfile
import uuid

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"
CALL_S = 10.0
READ_S = 60.0
# One worker's channel is not another's, and a server that is back is found at once.
OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 50),
           ("grpc.min_reconnect_backoff_ms", 2000), ("grpc.max_reconnect_backoff_ms", 200)]


def _load_pool():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "set"
        files = [str(file.relative_to(PROTO)) for file in sorted((PROTO / "hpo/v1").glob("*.proto"))]
        subprocess.run(["protoc", f"-I{PROTO}", "--include_imports", f"--descriptor_set_out={out}",
                        *files], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return pool


POOL = _load_pool()


def method_types(service, name):
    """(request class, response class) of a method."""
    method = POOL.FindServiceByName(f"hpo.v1.{service}").FindMethodByName(name)
    return (message_factory.GetMessageClass(method.input_type),
            message_factory.GetMessageClass(method.output_type))


class Channel:
    """Calls by name. `patient`: waits for a server that is not there, as long as the call may take."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, OPTIONS)

    def close(self):
        self.channel.close()

    def call(self, service, method, timeout=CALL_S, patient=False, **fields):
        request, response = method_types(service, method)
        invoke = self.channel.unary_unary(f"/hpo.v1.{service}/{method}",
                                          request_serializer=lambda message: message.SerializeToString(),
                                          response_deserializer=response.FromString)
        answer = invoke(json_format.ParseDict(fields, request()), timeout=timeout,
                        wait_for_ready=patient)
        return json_format.MessageToDict(answer, preserving_proto_field_name=True,
                                         always_print_fields_with_no_presence=True)

    def study(self, name):
        return self.call("StudyService", "GetStudy", name=name, timeout=READ_S, patient=True)["study"]

    def trials(self, study):
        """All trials of a study, whole, by number."""
        listed, page = [], ""
        while True:
            answer = self.call("StudyService", "ListTrials", study=study, view="TRIAL_VIEW_FULL",
                               page_size=500, page_token=page, timeout=READ_S, patient=True)
            listed += answer["trials"]
            page = answer["next_page_token"]
            if not page:
                return listed


class Worker(Channel):
    """One worker's session and calls. `instance` distinguishes processes of one name."""

    def __init__(self, address, name):
        super().__init__(address)
        self.name = name
        self.instance = uuid.uuid4().hex
        self.registered = ""  # the last instance that was; a new one is its successor
        self.session = ""

    def register(self):
        answer = self.call("WorkerService", "RegisterWorker", worker=self.name,
                           instance_key=self.instance, predecessor=self.registered, version="chaos", trainer="simulated",
                           capacity_bytes=1 << 30,
                           device={"kind": "cpu", "name": "simulated", "total_bytes": 1 << 30})
        self.session = answer["session"]
        self.registered = self.instance
        return answer

    def acquire(self, request_id, wait_s=0.5):
        answer = self.call("WorkerService", "AcquireTrial", session=self.session,
                           request_id=request_id, wait=f"{wait_s}s", capacity_bytes=1 << 30)
        return answer.get("assignment"), answer

    def lease(self, assignment):
        return {"session": self.session, **{key: assignment[key] for key in (
            "study", "trial", "attempt", "lease_token")}}

    def beat(self, assignments):
        leases = [{key: value for key, value in self.lease(one).items() if key != "session"}
                  for one in assignments]
        return self.call("WorkerService", "Heartbeat", session=self.session, leases=leases,
                         capacity_bytes=1 << 30)

    def report(self, assignment, step, value):
        return self.call("WorkerService", "ReportMeasurements", **self.lease(assignment),
                         measurements=[{"step": step, "epoch": 1.0, "metrics": {"macro_f1": value}}])

    def finish(self, assignment, request_id, value):
        return self.call("WorkerService", "FinishTrial", **self.lease(assignment),
                         request_id=request_id,
                         outcome={"completed": {"metrics": {"macro_f1": value}}},
                         final_plan={"effective_batch": 1, "micro_batch": 1})

    def release(self, assignment, request_id):
        return self.call("WorkerService", "ReleaseTrial", **self.lease(assignment),
                         request_id=request_id, reason="RELEASE_REASON_PREEMPTED")
