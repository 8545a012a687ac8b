"""Trials in MLflow and TensorBoard, read back by these programs' own readers."""

import importlib.util
import json
import socket
import sys
import unittest
import urllib.error
import urllib.request

from harness import Deployment, wait_until

HAS_MLFLOW = importlib.util.find_spec("mlflow") is not None
HAS_TENSORBOARD = importlib.util.find_spec("tensorboard") is not None
START_S = 300.0  # MLflow imports a gigabyte of packages first


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@unittest.skipUnless(HAS_MLFLOW, "the Python package mlflow is not there (scripts/bootstrap)")
class MlflowTest(Deployment):
    def start_mlflow(self, port=None):
        self.port = port or free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        server = self.start(
            "mlflow", sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port",
            self.port, "--workers", "1", "--backend-store-uri",
            f"sqlite:///{self.folder}/mlflow.db", "--default-artifact-root",
            self.folder / "artifacts",
            environment={"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}, group=True)

        def answers():
            if not server.alive():
                raise AssertionError(server.output())
            try:
                with urllib.request.urlopen(self.uri + "/health", timeout=5) as reply:
                    return reply.status == 200
            except (urllib.error.URLError, OSError):
                return False
        wait_until(answers, "MLflow's server", START_S)
        return server

    def ask(self, path, body=None):
        request = urllib.request.Request(
            f"{self.uri}/api/2.0/mlflow/{path}", data=json.dumps(body).encode() if body else None,
            headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.load(reply)

    def runs(self, experiment="toy"):
        try:
            found = self.ask(f"experiments/get-by-name?experiment_name={experiment}")
        except urllib.error.HTTPError as error:
            self.assertEqual(error.code, 404)
            return {}
        body = {"experiment_ids": [found["experiment"]["experiment_id"]], "max_results": 100}
        return {run["info"]["run_name"]: run for run in self.ask("runs/search", body).get("runs", [])}

    def tags(self, run):
        return {tag["key"]: tag["value"] for tag in run["data"]["tags"]}

    def history(self, run, key):
        found = self.ask(
            f"metrics/get-history?run_id={run['info']['run_id']}&metric_key={key}")
        return [(metric["step"], metric["value"]) for metric in found.get("metrics", [])]

    def run_study(self, *server_options):
        self.start_server(*server_options)
        self.start_worker("w0", "--stay")
        wait_until(lambda: self.study()["counts"]["completed"] == 6, "six trials")

    def check_run(self, run, number):
        trial = self.trial(number)
        self.assertEqual(run["info"]["status"], "FINISHED")
        self.assertEqual(self.history(run, "macro_f1"),
                         [(m["step"], m["metrics"]["macro_f1"]) for m in trial["measurements"]])
        self.assertEqual(self.history(run, "result.macro_f1")[0][1], trial["value"])
        params = {p["key"]: float(p["value"]) for p in run["data"]["params"]}
        self.assertAlmostEqual(params["x"], trial["params"]["x"], 5)
        self.assertEqual(self.tags(run)["hpo.state"], "COMPLETED")
        self.assertEqual(self.tags(run)["hpo.worker"], "w0")
        attempt = trial["attempts"][-1]
        memory = {"peak_allocated": attempt["memory"]["live_peak_bytes"],
                  "predicted": attempt["predicted_bytes"]}
        for name, expected in memory.items():
            self.assertEqual([value for _, value in self.history(run, f"memory.{name}_bytes")],
                             [expected] if expected else [])

    def check_study(self, run):
        self.assertEqual(run["info"]["status"], "FINISHED")
        counts = self.study()["counts"]
        for state in ("completed", "pruned", "failed", "cancelled", "running", "queued"):
            self.assertEqual(self.history(run, f"{state}_trials")[-1],
                             (counts["completed"], counts[state]))
        self.assertEqual(self.history(run, "oom_trials")[-1][1], 0)
        self.assertEqual(self.history(run, "best_value")[-1][1], self.study()["best_value"])

    def check_refusal(self):
        experiment = self.ask("experiments/create", {"name": "gone"})
        self.ask("experiments/delete", {"experiment_id": experiment["experiment_id"]})
        said = self.hpo("export", "mlflow", "--to", self.uri, "--experiment", "gone", status=2)
        self.assertIn(f"MLflow at {self.uri}", said)
        self.assertIn("experiment 'gone'", said)

    def test_an_export_writes_runs_and_a_second_one_doubles_nothing(self):
        self.start_mlflow()
        self.run_study()
        self.assertIn("6 trials of toy exported to", self.hpo("export", "mlflow", "--to", self.uri))
        runs = self.runs()
        self.assertEqual(sorted(runs), ["toy"] + [f"toy #{n}" for n in range(6)])
        self.check_study(runs["toy"])
        for number in range(6):
            self.check_run(runs[f"toy #{number}"], number)
        self.hpo("export", "mlflow", "--to", self.uri)
        again = self.runs()
        self.assertEqual({name: run["info"]["run_id"] for name, run in again.items()},
                         {name: run["info"]["run_id"] for name, run in runs.items()})
        self.check_run(again["toy #4"], 4)
        self.hpo("export", "mlflow", "--to", self.uri, "--experiment", "another one")
        self.assertEqual(len(self.runs("another%20one")), 7)
        self.check_refusal()

    def test_live_logging_survives_an_mlflow_that_is_away(self):
        server = self.start_mlflow()
        self.run_study("--mlflow", self.uri)
        wait_until(lambda: sum(run["info"]["status"] == "FINISHED"
                               for run in self.runs().values()) == 7, "seven runs in MLflow")
        self.check_study(self.runs()["toy"])
        for number in range(6):
            self.check_run(self.runs()[f"toy #{number}"], number)
        server.terminate()
        self.hpo("study", "extend", "toy", "--add", 2)
        wait_until(lambda: self.study()["counts"]["completed"] == 8, "trials without MLflow")
        self.start_mlflow(self.port)
        self.hpo("export", "mlflow", "--to", self.uri)
        wait_until(lambda: len(self.runs()) == 9, "what was missing")
        self.check_study(self.runs()["toy"])
        self.check_run(self.runs()["toy #7"], 7)


@unittest.skipUnless(HAS_TENSORBOARD,
                     "the Python package tensorboard is not there (scripts/bootstrap)")
class TensorBoardTest(Deployment):
    def test_its_own_reader_reads_what_was_measured(self):
        from tensorboard.backend.event_processing import event_accumulator
        from tensorboard.plugins.hparams import plugin_data_pb2
        self.start_server()
        self.start_worker()
        wait_until(lambda: self.study()["counts"]["completed"] == 6, "six trials")
        boards = self.folder / "boards"
        self.hpo("export", "tensorboard", "--to", boards)
        for number in range(6):
            trial = self.trial(number)
            reader = event_accumulator.EventAccumulator(str(boards / "toy" / f"{number:06}"))
            reader.Reload()
            read = [(event.step, event.value) for event in reader.Scalars("macro_f1")]
            told = [(m["step"], m["metrics"]["macro_f1"]) for m in trial["measurements"]]
            self.assertEqual([step for step, _ in read], [step for step, _ in told])
            for (_, value), (_, expected) in zip(read, told):
                self.assertAlmostEqual(value, expected, 6)
            self.assertAlmostEqual(reader.Scalars("result/macro_f1")[0].value, trial["value"], 6)
            content = reader.PluginTagToContent("hparams")
            start = plugin_data_pb2.HParamsPluginData.FromString(
                content["_hparams_/session_start_info"]).session_start_info
            self.assertAlmostEqual(start.hparams["x"].number_value, trial["params"]["x"])
            self.assertIn("_hparams_/session_end_info", content)


if __name__ == "__main__":
    unittest.main()
