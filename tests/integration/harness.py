"""Real processes for integration tests: a server, workers with the scripted fake trainer, the CLI.

Everything listens on loopback ports that the system picks, lives in a temporary folder and is ended
by its process id. Waiting is always for a condition, bounded in time.
"""

import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

BIN = pathlib.Path(os.environ["HPO_BIN_DIR"])
FAKE_TRAINER = pathlib.Path(os.environ["HPO_FAKE_TRAINER"])
# Nothing of what tests tokenize is left behind.
os.environ["HPO_TOKEN_CACHE"] = "none"
SOURCE = pathlib.Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0


def wait_until(condition, what, seconds=DEADLINE_S):
    """Polls `condition` until it is true; returns its value. Fails after `seconds`."""
    pause = threading.Event()
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        pause.wait(0.05)


def read_terminal(command, **options):
    """What a command writes to a terminal of its own, and its exit status. `options`: as subprocess.Popen's."""
    main, side = pty.openpty()
    child = subprocess.Popen([str(word) for word in command], stdout=side, stderr=side, stdin=subprocess.DEVNULL,
                             **options)
    os.close(side)
    said = b""
    try:
        while piece := os.read(main, 65536):
            said += piece
    except OSError:  # the terminal's other side is closed
        pass
    os.close(main)
    return said.decode(), child.wait(DEADLINE_S)


class Process:
    """A child with its output in a file. Ended and reaped whatever happens; as `group` with the children that it
    leaves behind."""

    def __init__(self, name, command, folder, environment=None, group=False):
        self.name = name
        self.group = group
        self.log = folder / f"{name}.log"
        with open(self.log, "ab") as out:
            self.child = subprocess.Popen(
                [str(word) for word in command], stdout=out, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})}, cwd=folder,
                start_new_session=group)

    @property
    def pid(self):
        return self.child.pid

    def alive(self):
        return self.child.poll() is None

    def send(self, signum):
        if self.alive():
            self.child.send_signal(signum)

    def kill9(self):
        self.send(signal.SIGKILL)
        self.child.wait(DEADLINE_S)

    def wait(self, seconds=DEADLINE_S):
        return self.child.wait(seconds)

    def terminate(self, seconds=DEADLINE_S):
        self.send(signal.SIGTERM)
        status = self.child.wait(seconds)
        self.end_group()
        return status

    def end_group(self):
        if self.group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def output(self):
        return self.log.read_text(errors="replace")

    def close(self):
        if self.alive():
            self.child.kill()
        self.child.wait(DEADLINE_S)
        self.end_group()


class Deployment(unittest.TestCase):
    """A temporary folder with a study, one server and any number of workers."""

    STUDY = """\
name: toy
objective: {metric: macro_f1, direction: maximize}
trainer: {task: custom, epochs: 1}
budget: {trials: 6}
memory: {policy: "off"}
sampler: {type: random, seed: 3}
pruner: {type: none}
parameters:
  x: {float: [0.0, 1.0]}
  y: {float: [0.0, 1.0]}
"""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hpo-test-"))
        self.processes = []
        self.address = None
        (self.folder / "toy.yaml").write_text(self.STUDY)

    def tearDown(self):
        for process in reversed(self.processes):
            process.close()
        failed = any(error for _, error in getattr(self._outcome, "errors", [])) or (
            getattr(self._outcome, "result", None) is not None
            and any(test is self for test, _ in
                    self._outcome.result.failures + self._outcome.result.errors))
        if failed:
            for process in self.processes:
                print(f"---- {process.name} ----\n{process.output()[-4000:]}")
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- programs ---------------------------------------------------------------------------------

    def start(self, name, *command, environment=None, group=False):
        process = Process(name, command, self.folder, environment, group)
        self.processes.append(process)
        return process

    def start_server(self, *options, study="toy.yaml", listen=None, environment=None):
        address_file = self.folder / "address"
        address_file.unlink(missing_ok=True)
        server = self.start(
            "server", BIN / "hpo-server", *(["--study", self.folder / study] if study else []), "--db",
            self.folder / "hpo.db", "--listen", listen or self.address or "127.0.0.1:0",
            "--address-file", address_file, *options, environment=environment)
        wait_until(lambda: not server.alive() or
                   (address_file.exists() and address_file.read_text().strip()),
                   "the server's address")
        self.assertTrue(server.alive(), server.output())
        self.address = address_file.read_text().strip()
        return server

    def start_worker(self, name="w0", *options, environment=None, trainer=FAKE_TRAINER):
        state = self.folder / f"state-{name}"
        return self.start(
            name, BIN / "hpo-worker", "--server", self.address, "--device", "cpu",
            "--memory-limit", "1GiB", "--name", name, "--state-dir", state, "--trainer", trainer,
            *options, environment=environment)

    # -- the CLI ----------------------------------------------------------------------------------

    def hpo(self, *words, status=0):
        """Runs the CLI; returns its standard output, or standard error where it must fail."""
        done = subprocess.run(
            [str(BIN / "hpo"), *map(str, words)], capture_output=True, text=True, timeout=DEADLINE_S,
            env={**os.environ, "HPO_SERVER": self.address or "127.0.0.1:9"}, check=False)
        self.assertEqual(done.returncode, status, f"hpo {words}: {done.stdout}{done.stderr}")
        return done.stdout if status == 0 else done.stderr

    def json(self, *words):
        return json.loads(self.hpo(*words, "--output", "json"))

    def trials(self, *options):
        return self.json("trial", "list", "--study", "toy", *options)["trials"]

    def trial(self, number):
        return self.json("trial", "show", number, "--study", "toy")

    def study(self):
        return self.json("study", "show", "toy")
