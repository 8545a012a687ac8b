"""The programs of a package or of a build, started and ended."""

import json
import os
import pathlib
import re
import socket
import subprocess
import tarfile
import threading
import time


class CheckError(Exception):
    """What keeps the checks from running at all, in one line."""


def find_programs(given, scratch):
    """The bin/ of an archive, of an unpacked package or of a build folder."""
    if given.is_file():
        try:
            with tarfile.open(given) as packed:
                packed.extractall(scratch, filter="data")
        except tarfile.TarError as error:
            raise CheckError(f"{given}: {error}") from error
        given = next(scratch.glob("hpo-*"), scratch)
    if not (given / "bin" / "hpo-trainer").exists():
        raise CheckError(f"{given}: expected an archive of scripts/package, its folder or a build "
                         "folder; there is no bin/hpo-trainer")
    return given.resolve() / "bin"


def nvidia_smi(fields):
    """A row for each card; empty where there is no nvidia-smi."""
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return [[cell.strip() for cell in row.split(",")] for row in done.stdout.splitlines()]


def wait_for(condition, seconds, what):
    pause = threading.Event()
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise CheckError(f"not within {seconds:.0f} s: {what}")
        pause.wait(0.1)
    return value


class Children:
    """Processes with their output in files of a folder; ended by their ids, the last first."""

    def __init__(self, logs):
        self.logs = logs
        self.children = []

    def start(self, name, *command):
        with open(self.logs / f"{name}.log", "ab") as log:
            child = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log,
                                     stdin=subprocess.DEVNULL)
        self.children.append(child)
        return child

    def close(self):
        for child in reversed(self.children):
            if child.poll() is None:
                child.terminate()
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.children.clear()


class Deployment:
    """A server with one study; workers on the cards."""

    def __init__(self, programs, folder, logs, study):
        self.bin = programs
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.children = Children(logs)
        (folder / "study.yaml").write_text(study)
        address = folder / "address"
        server = self.children.start(
            "server", programs / "hpo-server", "--study", folder / "study.yaml", "--db",
            folder / "hpo.db", "--listen", "127.0.0.1:0", "--address-file", address)
        wait_for(lambda: server.poll() is not None or
                 (address.exists() and address.read_text().strip()), 30, "hpo-server's address")
        if server.poll() is not None:
            raise CheckError(f"hpo-server did not start; see {logs}/server.log")
        self.address = address.read_text().strip()

    def start_worker(self, gpu, models, data, *options):
        return self.children.start(
            "worker", self.bin / "hpo-worker", "--server", self.address, "--gpu", gpu, "--models",
            models, "--data", data, "--state-dir", self.folder / "worker", *options)

    def hpo(self, *words, seconds=300):
        try:
            done = subprocess.run([str(self.bin / "hpo"), *words], capture_output=True, text=True,
                                  env={**os.environ, "HPO_SERVER": self.address}, check=False,
                                  timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise CheckError(f"hpo {' '.join(words)}: not within {seconds} s") from error
        if done.returncode not in (0, 6):  # 6: finished without a completed trial
            raise CheckError(f"hpo {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def trials(self):
        listed = json.loads(self.hpo("trial", "list", "--output", "json"))["trials"]
        return [json.loads(self.hpo("trial", "show", str(trial["number"]), "--output", "json"))
                for trial in listed]

    def close(self):
        self.children.close()


class Ended:
    """What one job said: its lines, and the time at which each came."""

    def __init__(self):
        self.messages = []
        self.times = []
        self.reason = ""  # why there is no outcome

    def of(self, kind, **fields):
        return [message for message in self.messages if message.get("type") == kind and
                all(message.get(name) == value for name, value in fields.items())]

    def outcome(self):
        """Its kind, and a line about it."""
        end = (self.of("outcome") or [{}])[-1].get("outcome")
        if not end:
            return "no outcome", self.reason
        text = end.get("message") or end.get("error_message") or ""
        return end["kind"], text.partition("\n")[0]

    def memory(self):
        return (self.of("outcome") or [{}])[-1].get("memory") or {}

    def metric(self, name):
        end = (self.of("outcome") or [{}])[-1].get("outcome") or {}
        return (end.get("metrics") or {}).get(name)

    def seconds(self):
        """From the first line about a step to the last."""
        steps = [at for message, at in zip(self.messages, self.times)
                 if message["type"] == "progress"]
        return steps[-1] - steps[0] if len(steps) > 1 else 0.0

    def steps(self):
        steps = [message["step"] for message in self.of("progress")]
        return steps[-1] - steps[0] if len(steps) > 1 else 0


class Trainer:
    """hpo-trainer as hpo-worker runs it (docs/TRAINER_PROTOCOL.md): one process for many jobs, and
    another where it ends or says that it is not clean."""

    def __init__(self, programs, logs):
        self.program = programs / "hpo-trainer"
        self.log = logs / "trainer.log"
        self.child = None
        self.lines = None
        self.channel = None

    def start(self):
        ours, theirs = socket.socketpair()
        with open(self.log, "ab") as log, theirs:
            self.child = subprocess.Popen(
                [str(self.program), "--token-cache", "none"], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, pass_fds=[theirs.fileno()],
                env={**os.environ, "HPO_TRAINER_FD": str(theirs.fileno())})
        self.channel = ours
        self.lines = ours.makefile("r", encoding="utf-8")
        self.lines.readline()  # hello

    def run(self, job, seconds, until=lambda message: False):
        """The job's messages, to its outcome; killed after `seconds`, or by `until`."""
        if self.child is None:
            self.start()
        ended = Ended()
        self.channel.sendall((json.dumps(job) + "\n").encode())
        timer = threading.Timer(seconds, self.child.kill)
        timer.start()
        for line in self.lines:
            if not line.endswith("\n"):
                break  # torn by a kill
            ended.messages.append(json.loads(line))
            ended.times.append(time.monotonic())
            if until(ended.messages[-1]):
                self.child.kill()
            if ended.messages[-1]["type"] == "outcome":
                break
        timer.cancel()
        last = ended.messages[-1] if ended.messages else {}
        if last.get("type") != "outcome" or not last.get("clean", True):
            status = self.close()
            ended.reason = f"trainer ended with {status}: {last_line(self.log)}"
        return ended

    def close(self):
        """Its exit status; None where none runs."""
        if self.child is None:
            return None
        child, self.child = self.child, None
        self.lines.close()
        self.channel.close()
        try:
            return child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()


def job_of(model, data, task, params, output, limit, **changes):
    batch = params.get("train.batch_size", 8) * params.get("train.grad_accum", 1)
    metric = {"text-regression": ("rmse", "minimize"), "language-modeling": ("loss", "minimize"),
              "multi-query": ("va_rmse", "minimize"), "multi-query-spans": ("va_rmse", "minimize")}
    name, direction = metric.get(task, ("macro_f1", "maximize"))
    output.mkdir(parents=True, exist_ok=True)
    return {"type": "job", "study": "gpu", "trial": 0, "attempt": 1,
            "params": {"train.lr": 3e-5, "train.batch_size": 8, **params}, "task": task,
            "train_path": str(data / "train.jsonl"), "validation_path": str(data / "valid.jsonl"),
            "labels": ["no", "yes"] if task == "text-classification" else [], "epochs": 1,
            "measure_every_steps": 0, "model_name": model.name, "model_path": str(model),
            "model_init": "random", "objective": {"metric": name, "direction": direction},
            "device": "cuda:0", "policy": "plan", "admission": True, "limit_bytes": limit,
            "plan": {"effective_batch": batch, "micro_batch": params.get("train.batch_size", 8)},
            "predicted_bytes": 0, "seed": 1, "output_dir": str(output), **changes}


def last_line(path):
    lines = pathlib.Path(path).read_text(errors="replace").strip().splitlines()
    return re.sub(r"\x1b\[[0-9;]*m", "", lines[-1]) if lines else ""
