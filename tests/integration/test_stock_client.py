"""Any language's stock gRPC client works: reflection, health, and lists by pages.

Uses PyPI's grpcio and grpcio-reflection, nothing generated from our protos.
"""

import unittest

from harness import Deployment

try:
    import grpc
    from google.protobuf import descriptor_pool, json_format, message_factory
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
        ProtoReflectionDescriptorDatabase,
    )
    MISSING = None
except ImportError as error:
    MISSING = f"{error.name} is not installed; scripts/bootstrap --tests brings it"

NUM_TRIALS = 10_000
IN_FLIGHT = 200
CALL_TIMEOUT_S = 60


@unittest.skipIf(MISSING, MISSING)
class StockClient(Deployment):
    def setUp(self):
        super().setUp()
        self.start_server()
        self.channel = grpc.insecure_channel(self.address)
        self.addCleanup(self.channel.close)
        self.database = ProtoReflectionDescriptorDatabase(self.channel)
        self.pool = descriptor_pool.DescriptorPool(self.database)

    def method(self, service, name):
        descriptor = self.pool.FindServiceByName(service).FindMethodByName(name)
        request = message_factory.GetMessageClass(descriptor.input_type)
        response = message_factory.GetMessageClass(descriptor.output_type)
        call = self.channel.unary_unary(
            f"/{service}/{name}", request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString)
        return lambda json: call.future(json_format.ParseDict(json, request()),
                                        timeout=CALL_TIMEOUT_S)

    def test_reflection_lists_and_describes_every_service(self):
        self.assertLessEqual({"hpo.v1.StudyService", "hpo.v1.WorkerService",
                              "grpc.health.v1.Health"}, set(self.database.get_services()))
        study = self.method("hpo.v1.StudyService", "GetStudy")({}).result().study
        self.assertEqual(study.name, "toy")
        self.assertEqual([p.name for p in study.space.parameters], ["x", "y"])

    def test_health_says_serving(self):
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check",
                                         request_serializer=bytes, response_deserializer=bytes)
        self.assertEqual(check(b"", timeout=CALL_TIMEOUT_S), b"\x08\x01")

    def test_errors_have_codes_and_say_what_there_is(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.method("hpo.v1.StudyService", "GetStudy")({"name": "toi"}).result()
        self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertIn("toy", raised.exception.details())

    def test_a_repeated_request_id_is_applied_once(self):
        enqueue = self.method("hpo.v1.StudyService", "EnqueueTrial")
        request = {"study": "toy", "requestId": "same", "params": {"x": {"doubleValue": 0.25}}}
        first, second = enqueue(request).result().trial, enqueue(request).result().trial
        self.assertEqual(first.number, second.number)
        with self.assertRaises(grpc.RpcError) as raised:
            enqueue({**request, "params": {"x": {"doubleValue": 0.5}}}).result()
        self.assertEqual(raised.exception.code(), grpc.StatusCode.ALREADY_EXISTS)

    def test_ten_thousand_trials_list_by_pages(self):
        enqueue = self.method("hpo.v1.StudyService", "EnqueueTrial")
        waiting = []
        for number in range(NUM_TRIALS):
            waiting.append(enqueue({"study": "toy", "requestId": f"r{number}",
                                    "params": {"x": {"doubleValue": number / NUM_TRIALS}}}))
            if len(waiting) == IN_FLIGHT:
                for call in waiting:
                    call.result()
                waiting = []
        for call in waiting:
            call.result()

        list_trials = self.method("hpo.v1.StudyService", "ListTrials")
        numbers, token = [], ""
        while True:
            page = list_trials({"study": "toy", "pageSize": 1000, "pageToken": token}).result()
            self.assertLessEqual(len(page.trials), 1000)
            self.assertEqual(page.total, NUM_TRIALS)
            numbers += [trial.number for trial in page.trials]
            token = page.next_page_token
            if not token:
                break
        self.assertEqual(numbers, list(range(NUM_TRIALS)))
        listed = self.json("trial", "list", "--study", "toy", "--limit", "5")["trials"]
        self.assertEqual(len(listed), 5)


if __name__ == "__main__":
    unittest.main()
