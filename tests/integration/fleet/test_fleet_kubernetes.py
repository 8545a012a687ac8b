"""hpo fleet kubernetes and deploy/kubernetes: by the schemas of Kubernetes' newest API, and by a kubectl that keeps state.
No cluster can be had here: docs/fleet/OWED.md has what only a cluster can show."""

import base64
import json
import pathlib
import shutil
import subprocess
import unittest

from fleets import Fleets, join_string

import ray_cluster

ROOT = pathlib.Path(__file__).resolve().parents[3]
ENGINES = ROOT / "tests/engines"
VALIDATES = """\
import sys, yaml, kubernetes_validate
newest = kubernetes_validate.latest_version()
for thing in filter(None, yaml.safe_load_all(sys.stdin)):
    kubernetes_validate.validate(thing, newest, strict=True)
    print(thing["kind"])
"""


def missing():
    """Why manifests cannot be checked; None: they can."""
    code = "import kubernetes_validate, yaml"
    if not ray_cluster.python().exists() or subprocess.run([ray_cluster.python(), "-c", code], capture_output=True,
                                                           check=False).returncode:
        return f"{ray_cluster.python()} lacks kubernetes-validate; scripts/bootstrap --engines brings it"
    return None


class WithSchemas(Fleets):
    def kinds(self, text):
        """The kinds of the manifests, each of which the API's schema must take."""
        done = subprocess.run([ray_cluster.python(), "-c", VALIDATES], input=text, capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, 0, f"{done.stderr}\n{text}")
        return done.stdout.split()


@unittest.skipIf(missing(), missing())
class Manifests(WithSchemas):
    def test_the_api_takes_the_fleet_with_every_option(self):
        plain = ("fleet", "kubernetes", "--workers", "8", "--image", "registry/hpo:1")
        self.assertEqual(self.kinds(self.hpo(*plain)), ["Job"])
        self.variables["HPO_JOIN"] = join_string()
        whole = self.hpo(*plain, "--study", "toy", "--queue", "q", "--claim", "disk", "--gpu-type", "NVIDIA-A100", "--time",
                         "8h", "--cpus", "4", "--memory", "8GiB", "--setup", "ulimit -c 0\necho 'a: b'", "--", "--models",
                         "/shared/m #1")
        self.assertEqual(self.kinds(whole), ["Job"])
        self.assertNotIn(join_string().split(".")[2], whole)
        self.assertEqual(self.kinds(self.hpo(*plain, "--gpus-per-worker", "0", "--memory", "8GiB")), ["Job"])

    def test_the_schemas_reject_a_wrong_manifest(self):
        text = self.hpo("fleet", "kubernetes", "--workers", "8", "--image", "hpo")
        with self.assertRaises(AssertionError):
            self.kinds(text.replace("backoffLimitPerIndex", "backoffLimitPerIndices"))

    @unittest.skipIf(shutil.which("kubectl") is None, "no kubectl")
    def test_the_api_takes_the_server(self):
        done = subprocess.run(["kubectl", "kustomize", ROOT / "deploy/kubernetes"], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(self.kinds(done.stdout)), ["ConfigMap", "Service", "StatefulSet"])

    def test_the_probe_of_the_server_needs_no_secret(self):
        """The words of the StatefulSet, with folders and addresses of this machine."""
        (self.folder / "toy.yaml").write_text((ROOT / "deploy/kubernetes/study.yaml").read_text())
        socket = f"unix:{self.folder}/socket"
        self.start_server("--listen", "127.0.0.1:0", "--tls", "--listen", socket)
        self.variables["HPO_SERVER"] = socket
        self.assertIn("spirals", self.hpo("--server", socket, "status"))


@unittest.skipIf(missing(), missing())
class Life(WithSchemas):
    def setUp(self):
        super().setUp()
        program = self.folder / "bin/kubectl"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {ray_cluster.python()} {ENGINES}/kubectl.py "$@"\n')
        program.chmod(0o755)
        self.variables.update(PATH=f"{program.parent}:/usr/bin:/bin", HPO_TEST_CLUSTER=str(self.folder / "cluster.json"))

    def submit(self, workers, **options):
        return self.hpo("fleet", "kubernetes", "--study", "toy", "--workers", workers, "--image", "hpo", "--submit", **options)

    def states(self):
        return sorted(worker["state"] for worker in self.fleet("--engine", "kubernetes").values())

    def cluster(self, kind):
        return json.loads((self.folder / "cluster.json").read_text())[kind]

    def test_a_fleet_is_submitted_scaled_and_stopped(self):
        self.variables["HPO_JOIN"] = join_string()
        self.assertIn("submitted fleet toy to kubernetes: job/hpo-toy", self.submit("3"))
        self.assertEqual(self.states(), ["running"] * 3)
        self.assertIn("fleet toy on kubernetes: 3 running", self.hpo("fleet", "status", "toy"))  # kubectl is not alone in PATH
        secret = base64.b64decode(self.cluster("Secret")["hpo-toy"]["data"]["join"]).decode()
        self.assertEqual(secret, join_string() + "\n")
        self.assertIn("hpo fleet scale toy", self.submit("3", status=4))
        self.hpo("fleet", "scale", "toy", "--workers", "5", "--engine", "kubernetes")
        self.assertEqual(self.states(), ["running"] * 5)
        self.hpo("fleet", "scale", "toy", "--workers", "1", "--engine", "kubernetes")
        self.assertEqual(self.states(), ["ending"] * 4 + ["running"])
        self.assertIn("no worker is left", self.hpo("fleet", "stop", "toy", "--engine", "kubernetes"))
        self.assertEqual([self.cluster(kind) for kind in ("Job", "Pod", "Secret")], [{}, {}, {}])
        self.submit("2")
        self.assertEqual(self.states(), ["running"] * 2)

    def test_no_context_is_one_line(self):
        self.variables.update(PATH="/usr/bin:/bin", KUBECONFIG="/nonexistent")
        said = self.hpo("fleet", "status", "--engine", "kubernetes", status=5)
        self.assertIn("kubectl config use-context NAME", said)
        self.assertEqual(said.count("\n"), 1, said)


del WithSchemas

if __name__ == "__main__":
    unittest.main()
