"""A server on loopback that can be killed, stopped, given a wrong clock and failing files; and clients."""

import contextlib
import errno
import os
import pathlib
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time

import grpc

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from harness import BIN, FAKE_TRAINER, Process, wait_until  # noqa: E402,F401
from client import Channel  # noqa: E402

SHIM = FAKE_TRAINER.parent / "libhpo_chaos_faults.so"

STUDY = """\
name: {name}
objective: {{metric: macro_f1, direction: maximize}}
trainer: {{task: custom, epochs: 1}}
budget: {{trials: {trials}}}
memory: {{policy: "off"}}
sampler: {{type: random, seed: {seed}}}
pruner: {{type: none}}
parameters:
  x: {{float: [0.0, 1.0]}}
  y: {{int: [1, 64]}}
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


# Whether servers speak TLS: calls go through hpo connect, and workers have a join string.
TLS = bool(os.environ.get("HPO_CHAOS_TLS"))


class Deployment:
    """One folder: a database, the server on it, workers with the scripted trainer. Closed by `with`. `address` leads
    to the server, whatever it speaks."""

    def __init__(self, trials=100, seed=1, ttl="4s", keep=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hpo-chaos-"))
        self.listen = f"127.0.0.1:{free_port()}"
        self.address = f"127.0.0.1:{free_port()}" if TLS else self.listen
        self.forwarder = None
        self.ttl = ttl
        self.keep = keep
        self.server = None
        self.processes = []
        self.study_file = self.write_study("chaos", trials, seed)

    def write_study(self, name, trials, seed):
        file = self.folder / f"{name}.yaml"
        file.write_text(STUDY.format(name=name, trials=trials, seed=seed))
        return file

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        for process in reversed(self.processes):
            with contextlib.suppress(Exception):
                process.send(signal.SIGCONT)
                process.close()
        if self.keep:
            print(f"kept: {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- programs ---------------------------------------------------------------------------------

    def launch(self, name, *command, environment=None):
        process = Process(name, command, self.folder, environment)
        self.processes.append(process)
        return process

    def start_server(self, database="hpo.db", studies=None, seconds=60):
        ready = self.folder / "address"
        ready.unlink(missing_ok=True)
        words = [BIN / "hpo-server", "--db", self.folder / database, "--listen", self.listen,
                 "--address-file", ready, "--lease-ttl", self.ttl]
        if TLS:
            words.append("--tls")
        for study in [self.study_file] if studies is None else studies:
            words += ["--study", study]
        self.server = self.launch("server", *words, environment={
            "LD_PRELOAD": str(SHIM), "HPO_CHAOS_CLOCK": str(self.folder / "clock"),
            "HPO_CHAOS_FAULT": str(self.folder / "fault"), "HPO_CHAOS_MATCH": "hpo.db"})
        wait_until(lambda: not self.server.alive() or (ready.exists() and ready.read_text().strip()),
                   "the server's address", seconds)
        if not self.server.alive():
            raise AssertionError(f"the server ended at its start: {self.server.output()[-2000:]}")
        if TLS and self.forwarder is None:
            self.forwarder = self._forward()
        return self.server

    def _forward(self):
        """hpo connect, as a person with every right."""
        ready = self.folder / "forwarded"
        forwarder = self.launch("connect", BIN / "hpo", "connect", "--listen", self.address, "--address-file", ready,
                                environment={"HPO_JOIN": self._join("admin")})
        wait_until(lambda: not forwarder.alive() or ready.exists(), "hpo connect")
        if not forwarder.alive():
            raise AssertionError(f"hpo connect ended: {forwarder.output()[-2000:]}")
        return forwarder

    def _join(self, name):
        return (self.folder / f"hpo.db.access/join-{name}").read_text().split()[-1]

    def restart_server(self, **options):
        self.server.kill9()
        return self.start_server(**options)

    def worker_command(self, name, state, server=None):
        """`server`: in place of the deployment's, such as a proxy."""
        join = TLS and server in (None, self.address)
        return [BIN / "hpo-worker", *(["--join", self._join("work")] if join else ["--server", server or self.address]),
                "--device", "cpu", "--memory-limit", "1GiB", "--name", name, "--state-dir",
                self.folder / f"state-{state}", "--trainer", FAKE_TRAINER]

    def start_worker(self, name, server=None, environment=None):
        return self.launch(name, *self.worker_command(name, name, server), environment=environment)

    # -- accidents --------------------------------------------------------------------------------

    def set_clock(self, seconds):
        self._replace("clock", str(seconds))

    def fail_calls(self, first, count, error):
        """Of the server's calls on its database from now on, those from `first` on, `count` of them, fail."""
        self._replace("fault", f"{first} {count} {getattr(errno, error)}")

    def heal(self):
        (self.folder / "fault").unlink(missing_ok=True)

    @contextlib.contextmanager
    def few_descriptors(self, spare):
        """The server has no more than `spare` descriptors left, and clients come that want some."""
        pid = self.server.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + spare, before[1]))
        try:
            with contextlib.ExitStack() as channels:
                for _ in range(spare + 5):
                    channel = channels.enter_context(contextlib.closing(Channel(self.address)))
                    with contextlib.suppress(grpc.RpcError):
                        channel.call("StudyService", "ListStudies", timeout=0.2)
                yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NOFILE, before)

    def _replace(self, name, text):
        aside = self.folder / f"{name}.new"
        aside.write_text(text)
        os.replace(aside, self.folder / name)

    def stopped(self, process, seconds):
        """SIGSTOP for so long."""
        process.send(signal.SIGSTOP)
        time.sleep(seconds)
        process.send(signal.SIGCONT)


def trainers_of(worker):
    """Process ids of a worker's children."""
    pids = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(status.read_text().rsplit(")", 1)[1].split()[1]) == worker.pid:
                pids.append(int(status.parent.name))
    return pids
