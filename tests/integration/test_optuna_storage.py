"""Optuna's GrpcStorageProxy on hpo-server: Optuna's own tests of a storage, many processes that outlive the server,
and our studies as Optuna shows them."""

import contextlib
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from harness import Deployment, wait_until
from test_tracking import free_port

HAS_OPTUNA = all(importlib.util.find_spec(name) for name in ("optuna", "grpc"))
HAS_REFLECTION = importlib.util.find_spec("grpc_reflection") is not None
HAS_PYTEST = importlib.util.find_spec("pytest") is not None
HAS_PLOTLY = importlib.util.find_spec("plotly") is not None
HAS_DASHBOARD = importlib.util.find_spec("optuna_dashboard") is not None
HERE = pathlib.Path(__file__).resolve().parent
SUITE_S = 240
START_S = 120.0
NUM_TESTS = 59

# One of several processes of a study: tells what the server acknowledged, and asks again while it is away.
CLIENT = """\
import json, sys, threading
import grpc, optuna
host, port, told, enough = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
optuna.logging.set_verbosity(optuna.logging.ERROR)
pause = threading.Event()
storage = optuna.storages.GrpcStorageProxy(host=host, port=port)
study, acknowledged = None, 0
def objective(trial):
    x = trial.suggest_float("x", -1.0, 1.0)
    trial.set_user_attr("square", x * x)
    return x * x
def tell(study, trial):
    global acknowledged
    acknowledged += 1
    with open(told, "a") as out:
        out.write(json.dumps([trial.number, trial.params["x"], trial.value]) + "\\n")
while acknowledged < enough:
    try:
        study = study or optuna.load_study(study_name="many", storage=storage)
        study.optimize(objective, n_trials=enough - acknowledged, callbacks=[tell])
    except Exception as error:
        # Where telling a result fails, Optuna 5.0 ends in an UnboundLocalError on top of it.
        cause = error.__context__ if isinstance(error, UnboundLocalError) else error
        if not isinstance(cause, grpc.RpcError) or cause.code() != grpc.StatusCode.UNAVAILABLE:
            raise
        pause.wait(0.1)
"""

DASHBOARD = """\
import sys
import optuna, optuna_dashboard
optuna_dashboard.run_server(optuna.storages.GrpcStorageProxy(host=sys.argv[1], port=int(sys.argv[2])),
                            host="127.0.0.1", port=int(sys.argv[3]))
"""


@unittest.skipUnless(HAS_OPTUNA, "the Python packages optuna and grpc are not there (scripts/bootstrap)")
class OptunaStorageTest(Deployment):
    def storage(self):
        import optuna
        host, _, port = self.address.rpartition(":")
        storage = optuna.storages.GrpcStorageProxy(host=host, port=int(port))
        self.addCleanup(storage.close)
        return storage

    def our_study(self):
        """Six finished trials of ours, through Optuna's client."""
        import optuna
        self.start_server()
        self.start_worker("w0", "--stay")
        wait_until(lambda: self.study()["counts"]["completed"] == 6, "six trials")
        return optuna.load_study(study_name="toy", storage=self.storage())

    def test_the_servers_own_study_is_read_as_the_export_has_it(self):
        import optuna
        study = self.our_study()
        path = self.folder / "study.db"
        self.hpo("export", "optuna", path, "toy")
        exported = optuna.load_study(study_name="toy", storage=f"sqlite:///{path}")
        self.assertEqual(study.direction, optuna.study.StudyDirection.MAXIMIZE)
        self.assertEqual(study.metric_names, exported.metric_names)
        self.assertEqual(len(study.trials), 6)
        for read, written in zip(study.trials, exported.trials):
            for field in ("number", "state", "values", "params", "distributions", "user_attrs", "system_attrs",
                          "intermediate_values", "datetime_start", "datetime_complete"):
                self.assertEqual(getattr(read, field), getattr(written, field), field)
        self.assertEqual(study.best_trial.number, self.study()["best_trial"])
        importance = optuna.importance.get_param_importances(study)
        self.assertEqual(importance, optuna.importance.get_param_importances(exported))

    @unittest.skipUnless(HAS_PLOTLY, "the Python package plotly is not there (scripts/bootstrap)")
    def test_optunas_plots_show_it(self):
        from optuna import visualization
        study = self.our_study()
        history = visualization.plot_optimization_history(study).data
        self.assertEqual(list(history[0].y), [trial.value for trial in study.trials])
        curves = visualization.plot_intermediate_values(study).data
        self.assertEqual([dict(zip(curve.x, curve.y)) for curve in curves],
                         [trial.intermediate_values for trial in study.trials])

    def test_the_servers_own_study_is_not_changed(self):
        import grpc
        import optuna
        study = self.our_study()
        attempts = [lambda: study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1),
                    lambda: study.enqueue_trial({"x": 0.5}), lambda: study.set_user_attr("a", 1),
                    lambda: optuna.delete_study(study_name="toy", storage=self.storage())]
        for attempt in attempts:
            with self.assertRaises(grpc.RpcError) as raised:
                attempt()
            self.assertEqual(raised.exception.code(), grpc.StatusCode.PERMISSION_DENIED)
            self.assertIn("study toy is hpo-server's own", raised.exception.details())
        with self.assertRaises(optuna.exceptions.DuplicatedStudyError):
            optuna.create_study(study_name="toy", storage=self.storage())
        self.assertEqual(len(study.trials), 6)

    def test_nothing_acknowledged_is_lost_when_the_server_is_killed(self):
        import optuna
        server = self.start_server()
        study = optuna.create_study(study_name="many", storage=self.storage())
        host, _, port = self.address.rpartition(":")
        told = [self.folder / f"told-{index}" for index in range(4)]
        for path in told:
            path.touch()
        clients = [self.start(f"client-{index}", sys.executable, "-c", CLIENT, host, port, path, 30)
                   for index, path in enumerate(told)]

        def acknowledged():
            return [json.loads(line) for path in told for line in path.read_text().splitlines()]
        wait_until(lambda: len(acknowledged()) >= 20, "twenty trials")
        server.kill9()
        before = acknowledged()
        self.assertLess(len(before), 120)
        self.start_server()
        for client in clients:
            self.assertEqual(client.wait(START_S), 0, client.output())
        trials = optuna.load_study(study_name="many", storage=self.storage()).trials
        self.assertEqual([trial.number for trial in trials], list(range(len(trials))))
        self.assertEqual(len(acknowledged()), 120)
        self.assertEqual(len({number for number, _, _ in acknowledged()}), 120)
        for number, x, value in acknowledged():
            self.assertEqual(trials[number].state, optuna.trial.TrialState.COMPLETE)
            self.assertEqual((trials[number].params, trials[number].value), ({"x": x}, value))
            self.assertEqual(trials[number].user_attrs, {"square": x * x})
        self.assertEqual(study._study_id, optuna.load_study(study_name="many", storage=self.storage())._study_id)

    def test_what_is_no_request_is_refused_and_the_server_goes_on(self):
        import grpc
        import optuna
        from optuna.storages._grpc.auto_generated import api_pb2
        self.start_server()
        storage = self.storage()
        study = optuna.create_study(study_name="theirs", storage=storage)
        trial = study.ask()
        stub, known = storage._stub, {"study_id": study._study_id}
        unit = json.dumps({"name": "FloatDistribution", "attributes": {"low": 0, "high": 1}})
        bad = [
            lambda: stub.CreateNewStudy(api_pb2.CreateNewStudyRequest(study_name="none")),
            lambda: stub.CreateNewStudy(api_pb2.CreateNewStudyRequest(study_name="x" * 3000, directions=[0])),
            lambda: stub.CreateNewStudy(api_pb2.CreateNewStudyRequest(study_name="x", directions=[7])),
            lambda: stub.SetStudyUserAttribute(api_pb2.SetStudyUserAttributeRequest(**known, key="a", value="{")),
            lambda: stub.SetStudyUserAttribute(api_pb2.SetStudyUserAttributeRequest(
                **known, key="a", value=json.dumps("x" * 2**20))),
            lambda: stub.CreateNewTrial(api_pb2.CreateNewTrialRequest(
                **known, template_trial=api_pb2.Trial(params={"x": 0.5}))),
            lambda: stub.CreateNewTrial(api_pb2.CreateNewTrialRequest(
                **known, template_trial=api_pb2.Trial(state=9))),
            lambda: stub.SetTrialParameter(api_pb2.SetTrialParameterRequest(
                trial_id=trial._trial_id, param_name="x", param_value_internal=float("inf"), distribution=unit)),
            lambda: stub.SetTrialStateValues(api_pb2.SetTrialStateValuesRequest(
                trial_id=trial._trial_id, state=1, values=[float("nan")])),
        ]
        for index, call in enumerate(bad):
            with self.subTest(index), self.assertRaises(grpc.RpcError) as raised:
                call()
            self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("expected", raised.exception.details())
        self.assertEqual(len(study.trials), 1)
        self.assertEqual(study.user_attrs, {})
        study.tell(trial, 0.5)
        self.assertEqual(study.best_value, 0.5)

    @unittest.skipUnless(HAS_REFLECTION, "the Python package grpc_reflection is not there (scripts/bootstrap)")
    def test_the_interface_is_optunas(self):
        import grpc
        from google.protobuf import descriptor_pb2
        from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
        from optuna.storages._grpc.auto_generated import api_pb2
        self.start_server()
        with grpc.insecure_channel(self.address) as channel:
            ours = ProtoReflectionDescriptorDatabase(channel).FindFileContainingSymbol("optuna.StorageService")
        theirs = descriptor_pb2.FileDescriptorProto()
        api_pb2.DESCRIPTOR.CopyToProto(theirs)

        def fields(message, outer):
            name = f"{outer}.{message.name}"
            own = {(name, field.name, field.number, field.type, field.label, field.type_name)
                   for field in message.field}
            return own.union(*(fields(nested, name) for nested in message.nested_type))

        def interface(file):
            messages = set().union(*(fields(message, file.package) for message in file.message_type))
            enums = {(enum.name, value.name, value.number) for enum in file.enum_type for value in enum.value}
            methods = {(service.name, method.name, method.input_type, method.output_type)
                       for service in file.service for method in service.method}
            return messages, enums, methods
        self.assertEqual(interface(ours), interface(theirs))

    @unittest.skipUnless(HAS_PYTEST, "the Python package pytest is not there (scripts/bootstrap)")
    def test_optunas_own_tests_of_a_storage(self):
        import optuna_storage
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, "-rA",
                 HERE / "optuna_storage.py"], capture_output=True, text=True, timeout=SUITE_S, check=False)
        outcomes = dict(reversed(line) for line in re.findall(
            r"^(PASSED|FAILED|ERROR) \S+::(test_\S+)", done.stdout, re.MULTILINE))
        self.assertGreaterEqual(len(outcomes), NUM_TESTS, done.stdout + done.stderr)
        failed = [name for name, outcome in outcomes.items() if outcome != "PASSED"]
        self.assertLessEqual(set(failed), set(optuna_storage.BY_CHANCE), done.stdout)

    @unittest.skipUnless(HAS_DASHBOARD, "the Python package optuna_dashboard is not there")
    def test_the_dashboard_shows_both_kinds_of_study(self):
        import optuna
        self.our_study()
        theirs = optuna.create_study(study_name="theirs", storage=self.storage())
        theirs.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=3)
        host, _, port = self.address.rpartition(":")
        http = free_port()
        server = self.start("dashboard", sys.executable, "-c", DASHBOARD, host, port, http, group=True)

        def ask(path):
            with urllib.request.urlopen(f"http://127.0.0.1:{http}{path}", timeout=30) as reply:
                return json.loads(reply.read())

        def answers():
            self.assertTrue(server.alive(), server.output())
            with contextlib.suppress(OSError):
                return ask("/api/studies")["study_summaries"]
            return None
        studies = {study["study_name"]: study["study_id"] for study in wait_until(answers, "the dashboard", START_S)}
        self.assertEqual(set(studies), {"toy", "theirs"})
        self.assertEqual(len(ask(f"/api/studies/{studies['toy']}")["trials"]), 6)
        self.assertEqual(len(ask(f"/api/studies/{studies['theirs']}")["trials"]), 3)


if __name__ == "__main__":
    unittest.main()
