"""What tests of fleets share: a study of trials that survive, its server, and hpo as the user of an engine."""

import base64
import hashlib
import json
import os
import pathlib
import subprocess
import sys

from harness import BIN, DEADLINE_S, Deployment, wait_until

ENGINES = pathlib.Path(__file__).resolve().parents[2] / "engines"
if str(ENGINES) not in sys.path:
    sys.path.insert(0, str(ENGINES))

STUDY = """\
name: toy
objective: {{metric: loss, direction: minimize}}
trainer:
  command: [python3, {program}, --x, "{{x}}", --steps, "{steps}", --pace, "{pace}", --every, "{every}",
            --checkpoints, "{{checkpoint_dir}}", --ledger, {folder}/ledger, --trial, "{{trial}}",
            --attempt, "{{attempt}}"]
budget: {{trials: {trials}}}
sampler: {{type: random, seed: 3}}
pruner: {{type: none}}
parameters:
  x: {{float: [0.0, 1.0]}}
"""


def study_text(folder, trials=24, steps=20, pace=0.1, every=5):
    """A study whose trials count `steps` steps of `pace` seconds, and save after each `every` of them."""
    return STUDY.format(program=ENGINES / "resumable.py", folder=folder, trials=trials, steps=steps, pace=pace,
                        every=every)


def join_string():
    """Of no server: a certificate's digest, a secret and its checksum (common/tls/join_string.h)."""
    def letters(data):
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    text = f"hpo1.{letters(bytes(32))}.{letters(bytes(range(32)))}"
    return f"{text}{letters(hashlib.sha256(text.encode()).digest()[:3])}@127.0.0.1:1"


class Fleets(Deployment):
    """`self.variables`: the environment of the engine's user, which a test sets."""

    WORKER = ("--device", "cpu", "--memory-limit", "1GiB", "--allow-commands")

    def setUp(self):
        super().setUp()
        self.variables = dict(os.environ)

    def serve(self, **study):
        (self.folder / "toy.yaml").write_text(study_text(self.folder, **study))
        return self.start_server("--lease-ttl", "5s")

    def hpo(self, *words, status=0):
        """As the engine's user; standard output, or standard error where it must fail."""
        done = subprocess.run([str(BIN / "hpo"), *map(str, words)], capture_output=True, text=True, cwd=self.folder,
                              timeout=3 * DEADLINE_S, check=False, env={
                                  **self.variables, "HPO_SERVER": self.address or "127.0.0.1:9",
                                  "XDG_STATE_HOME": str(self.folder / "state")})
        self.assertEqual(done.returncode, status, f"hpo {words}: {done.stdout}{done.stderr}")
        return done.stdout if status == 0 else done.stderr

    def fleet(self, *words):
        """The workers of the fleet toy by id: what hpo fleet status -o json says."""
        text = self.hpo("fleet", "status", "toy", "--output", "json", *words)
        return {worker["id"]: worker for fleet in json.loads(text)["fleets"] for worker in fleet["workers"]}

    def wait_finished(self, seconds=180):
        wait_until(lambda: self.study()["state"] == "FINISHED", "the study's end", seconds)

    def assert_nothing_lost(self, trials):
        self.assertEqual([trial["state"] for trial in self.trials("--limit", "1000")], ["COMPLETED"] * trials)

    def worker_names(self):
        return {worker["name"] for worker in self.study()["workers"]}
