"""hpo fleet sky: SkyPilot's own package reads the task. No cloud can be had here: docs/fleet/OWED.md."""

import json
import os
import pathlib
import subprocess
import unittest

from fleets import Fleets, join_string

READS = """\
import json, sys, yaml
import sky
with open(sys.argv[1]) as text:  # as `sky jobs launch` reads it, with what --secret-file gives
    task = sky.Task.from_yaml_config(yaml.safe_load(text), secrets_overrides=[tuple(word.split("=")) for word in sys.argv[2:]])
task.validate_run()
resources = next(iter(task.resources))
print(json.dumps({"name": task.name, "accelerators": resources.accelerators, "spot": resources.use_spot,
                  "recovery": resources.job_recovery, "envs": task.envs, "run": task.run, "setup": task.setup,
                  "secrets": sorted(task.secrets)}))
"""
PYTHON = pathlib.Path(os.environ.get("HPO_SKY_PYTHON") or pathlib.Path.home() / ".cache/hpo/sky/bin/python3")


def missing():
    """Why tasks cannot be read; None: they can."""
    return None if PYTHON.exists() else f"no {PYTHON}; scripts/bootstrap --engines brings SkyPilot"


@unittest.skipIf(missing(), missing())
class Tasks(Fleets):
    def read(self, text, *secrets):
        path = self.folder / "fleet.yaml"
        path.write_text(text)
        done = subprocess.run([PYTHON, "-c", READS, path, *secrets], capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, "HOME": str(self.folder), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"})
        return done.returncode, json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr

    def test_skypilot_reads_the_task(self):
        text = self.hpo("fleet", "sky", "--workers", "8", "--gpu-type", "A100", "--gpus-per-worker", "2", "--spot", "--study",
                        "toy", "--cpus", "4", "--memory", "16GiB", "--setup", "pip install hpo-service", "--", "--models", "/m 1")
        status, task = self.read(text)
        self.assertEqual(status, 0, task)
        self.assertEqual((task["name"], task["accelerators"], task["spot"]), ("hpo-toy", {"A100": 2}, True))
        self.assertEqual(task["recovery"]["recover_on_exit_codes"], [75])
        self.assertEqual(task["setup"].strip(), "pip install hpo-service")
        self.assertEqual(subprocess.run(["bash", "-nc", task["run"]], check=False).returncode, 0)
        words = subprocess.run(["bash", "-c", task["run"].replace("exec", "printf '%s\\n'", 1)], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        self.assertEqual(words, ["hpo-worker", "--gpu", "visible", "--study", "toy", "--models", "/m 1"])

    def test_the_secret_is_declared_and_not_there(self):
        self.variables["HPO_JOIN"] = join_string()
        text = self.hpo("fleet", "sky", "--workers", "8", "--gpu-type", "A100")
        self.assertNotIn(join_string().split(".")[2], text)
        self.assertIn("secrets:\n  HPO_JOIN: null\n", text)
        status, task = self.read(text, "HPO_JOIN=value")
        self.assertEqual((status, task["secrets"]), (0, ["HPO_JOIN"]), task)

    def test_skypilot_rejects_a_wrong_task(self):
        status, _ = self.read(self.hpo("fleet", "sky", "--workers", "8", "--gpu-type", "A100").replace("use_spot", "use_spots"))
        self.assertNotEqual(status, 0)

    def test_a_type_of_gpu_is_needed(self):
        self.assertIn("--gpu-type: expected a GPU of `sky gpus list`", self.hpo("fleet", "sky", "--workers", "8", status=2))


if __name__ == "__main__":
    unittest.main()
