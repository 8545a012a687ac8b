"""Studies for bench/page: large ones by import, running ones by ask and tell, and optuna-dashboard's."""

import contextlib
import datetime
import json
import math
import os
import random
import subprocess
import sys
import threading
import time
import urllib.request

LARGE = "large"
STUDY = """name: {name}
objective: {{metric: {metric}, direction: minimize}}
trainer: {{task: custom, epochs: 1}}
budget: {{trials: 100000000}}
sampler: {{type: random, seed: 1}}
memory: {{policy: "off"}}
parameters: {parameters}
"""
FILLED = """{lr: {float: [1.0e-6, 1.0e-2], log: true}, batch_size: {int: [8, 512], log: true}, dropout: {float: [0, 0.5]},
  optimizer: {choices: [adamw, sgd, lion]}, layers: {int: [2, 24]}}"""
# What asktell_speed searches.
RUNNING = "{lr: {float: [1.0e-5, 1.0e-1], log: true}, layers: {int: [1, 12]}, kind: {choices: [a, b]}}"
BATCH = 2000  # trials of a message


def draw(rng):
    """A configuration, and what becomes of it."""
    lr, batch = 10 ** rng.uniform(-6, -2), int(2 ** rng.uniform(3, 9))
    dropout, layers = rng.uniform(0, 0.5), rng.randint(2, 24)
    optimizer = rng.choice(["adamw", "sgd", "lion"])
    loss = (0.3 + 0.3 * abs(math.log10(lr) + 3.7) ** 1.5 + 0.02 * abs(layers - 12) + 0.2 * dropout
            + {"adamw": 0.0, "sgd": 0.4, "lion": 0.1}[optimizer] + rng.gauss(0, 0.03))
    params = {"lr": {"double_value": lr}, "batch_size": {"int_value": batch}, "dropout": {"double_value": dropout},
              "optimizer": {"string_value": optimizer}, "layers": {"int_value": layers}}
    needed = batch * layers * 2_500_000 + 2_000_000_000
    if needed > 24_000_000_000:
        return params, {"out_of_memory": {"kind": "OOM_KIND_CONFIGURATION", "needed_bytes": needed,
                                          "limit_bytes": 24_000_000_000, "phase": "backward"}}
    if rng.random() < 0.04:
        return params, {"failed": {"failure_class": "FAILURE_CLASS_DIVERGED", "message": "the loss is not a number"}}
    if rng.random() < 0.3:
        return params, {"stopped_by_pruner": {"pruner": "asha", "step": 3, "metrics": {"val_loss": loss + 0.1}}}
    return params, {"completed": {"metrics": {"val_loss": loss, "seconds": rng.uniform(50, 500)}}}


def fill(call, name, trials, seed):
    """Creates the study and imports so many trials. `call`: (method, body, media type) of the server's API."""
    call("StudyService/CreateStudy", {"yaml": STUDY.format(name=name, metric="val_loss", parameters=FILLED), "origin": name})
    rng = random.Random(seed)
    begin = datetime.datetime(2026, 6, 1, tzinfo=datetime.timezone.utc)
    lines = []
    for first in range(0, trials, BATCH):
        batch = []
        for number in range(first, min(trials, first + BATCH)):
            params, outcome = draw(rng)
            started = begin + datetime.timedelta(seconds=60 * number)
            ended = started + datetime.timedelta(seconds=rng.uniform(50, 500))
            batch.append({"origin": f"bench#{number}", "params": params, "outcome": outcome,
                          "started": started.isoformat().replace("+00:00", "Z"),
                          "ended": ended.isoformat().replace("+00:00", "Z")})
        lines.append(json.dumps({"study": name, "count_against_budget": True, "trials": batch}))
    # A message a call: all of a call is kept until it is stored.
    for line in lines:
        call("StudyService/ImportTrials", line.encode(), "application/x-ndjson")


class Asking:
    """A client of one connection that acquires and finishes trials (asktell_speed)."""

    def __init__(self, build, address, study):
        self.program = subprocess.Popen([build / "bin/asktell_speed", address, study, "1"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, trials):
        """Milliseconds of each acquire + finish."""
        print(trials, file=self.program.stdin, flush=True)
        answer = self.program.stdout.readline().split()
        if not answer:
            sys.exit(f"page: asktell_speed ended with status {self.program.wait()}")
        return [float(one) for one in answer[1:]]

    def finish_one(self):
        self.run(1)

    def close(self):
        self.program.stdin.close()
        self.program.wait()


@contextlib.contextmanager
def asking(build, server, study):
    """A client of a study, which is created where it is not there."""
    server.call("StudyService/CreateStudy", {"yaml": STUDY.format(name=study, metric="value", parameters=RUNNING), "origin": study})
    with contextlib.closing(Asking(build, server.address, study)) as client:
        yield client


@contextlib.contextmanager
def a_trial_ends_each_second(slow):
    """While it lasts, by the client `slow`."""
    ended = threading.Event()

    def end_trials():
        while not ended.wait(1.0):
            slow.finish_one()

    ends = threading.Thread(target=end_trials)
    ends.start()
    try:
        yield
    finally:
        ended.set()
        ends.join()


def cores_used(cpu_s, seconds):
    """Processor cores of a server, whose processor seconds are cpu_s()."""
    begin, used = time.monotonic(), cpu_s()
    time.sleep(seconds)
    return (cpu_s() - used) / (time.monotonic() - begin)


def times_of(client, seconds):
    """Milliseconds of each acquire + finish, one after the other, with pauses."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        times += client.run(5)
        time.sleep(0.02)
    return times


def wait_for(url, patience_s=60):
    """Until something answers there."""
    end = time.monotonic() + patience_s
    while True:
        try:
            with urllib.request.urlopen(url, timeout=patience_s):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@contextlib.contextmanager
def optuna_dashboard(folder, trials=2000):
    """optuna-dashboard over a study of `trials` trials; its address."""
    import optuna  # pylint: disable=import-outside-toplevel
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = f"sqlite:///{folder}/optuna.db"
    study = optuna.create_study(storage=storage, study_name="peer")
    floats = {"lr": optuna.distributions.FloatDistribution(1e-6, 1e-2, log=True),
              "dropout": optuna.distributions.FloatDistribution(0, 0.5),
              "layers": optuna.distributions.IntDistribution(2, 24)}
    rng = random.Random(1)
    study.add_trials([optuna.trial.create_trial(
        params={"lr": 10 ** rng.uniform(-6, -2), "dropout": rng.uniform(0, 0.5), "layers": rng.randint(2, 24)},
        distributions=floats, value=rng.random()) for _ in range(trials)])
    port = 20_000 + os.getpid() % 20_000
    program = os.path.join(os.path.dirname(sys.executable), "optuna-dashboard")
    running = subprocess.Popen([program, storage, "--host", "127.0.0.1", "--port", str(port)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url)
        yield url
    finally:
        running.terminate()
        running.wait()
