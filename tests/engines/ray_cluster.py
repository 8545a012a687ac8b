"""A real Ray on this machine: several nodes on loopback, each with GPUs that Ray only counts. From PyPI, in a Python
of its own (scripts/bootstrap --engines, or HPO_ENGINES_PYTHON).

Every process is started here and ended by its id: a process belongs to a node if its environment names it.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

from slurm import processes_with, wait_for

STARTS_S = 120.0


def python():
    """The Python that has Ray."""
    told = os.environ.get("HPO_ENGINES_PYTHON")
    return pathlib.Path(told) if told else pathlib.Path.home() / ".cache/hpo/engines/bin/python3"


def missing():
    """Why no cluster can be had here; None: one can."""
    if not python().exists():
        return f"no {python()}; scripts/bootstrap --engines brings Ray"
    done = subprocess.run([python(), "-c", "import importlib.metadata as m; m.version('ray')"], capture_output=True, check=False)
    return f"{python()} has no Ray; scripts/bootstrap --engines brings it" if done.returncode else None


def _free_ports(count):
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


class Cluster:
    """Nodes n0 (the head), n1, ... with `gpus[i]` GPUs each. `environment`: what is installed on them, such as a
    PYTHONPATH. Use as a context."""

    def __init__(self, gpus=(0, 4, 4), cpus=8, environment=None):
        self._gpus = gpus
        self._cpus = cpus
        self.names = [f"n{index}" for index in range(len(gpus))]
        self._mark = f"{os.getpid()}-{id(self)}"
        self.port, self.dashboard, self.client = _free_ports(3)
        # Ray's sockets have long names: the folder's must be short.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
        self.environment = {
            "RAY_ADDRESS": f"127.0.0.1:{self.port}", "RAY_API_SERVER_ADDRESS": f"http://127.0.0.1:{self.dashboard}",
            "RAY_USAGE_STATS_ENABLED": "0", **(environment or {}), "PATH": f"{python().parent}{os.pathsep}{os.environ.get('PATH', '')}"}

    def __enter__(self):
        try:
            for name in self.names:
                self.start_node(name)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def variables(self, **changes):
        own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        return {**own, **self.environment, **changes}

    def start_node(self, name):
        index = self.names.index(name)
        words = ["--head", "--port", self.port, "--dashboard-host", "127.0.0.1", "--dashboard-port", self.dashboard,
                 "--ray-client-server-port", self.client, "--temp-dir", self.folder] if index == 0 else [
                     "--address", self.environment["RAY_ADDRESS"]]
        environment = self.variables(HPO_TEST_RAY_NODE=f"{self._mark}-{name}")
        environment.pop("RAY_ADDRESS")
        with open(self.folder / f"{name}.log", "ab") as out:
            subprocess.run([str(word) for word in (
                python().parent / "ray", "start", *words, "--node-ip-address", "127.0.0.1", "--num-gpus", self._gpus[index],
                # Else each node's agent takes the same port, and the cluster may have none that takes jobs.
                "--dashboard-agent-listen-port", _free_ports(1)[0],
                "--num-cpus", self._cpus, "--object-store-memory", 100 << 20, "--disable-usage-stats")],
                           env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=True,
                           timeout=STARTS_S)

    def processes(self, name=None):
        """Of a node, or of all: {pid: command line}, with those of actors and what they have started."""
        names = [name] if name else self.names
        return {pid: line for each in names
                for pid, line in processes_with(f"HPO_TEST_RAY_NODE={self._mark}-{each}").items()}

    def workers(self, name=None):
        return {pid: line for pid, line in self.processes(name).items() if "hpo-worker" in line.split(" ")[0]}

    def kill_node(self, name):
        """As if the machine had lost its power."""
        while victims := self.processes(name):
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            wait_for(lambda seen=victims: not set(seen) & set(self.processes(name)), "the node's end", 20)

    def run(self, *words, check=True, **options):
        done = subprocess.run([str(word) for word in words], env=self.variables(), capture_output=True, text=True,
                              timeout=STARTS_S, check=False, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def stop(self):
        for name in reversed(self.names):
            self.kill_node(name)
        shutil.rmtree(self.folder, ignore_errors=True)
