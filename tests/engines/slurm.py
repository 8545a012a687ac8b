"""A real Slurm on this machine: one slurmctld and several slurmd, all on loopback and below one folder, with
GPUs that are character devices without a driver. From Debian's packages (scripts/bootstrap --engines); nothing of
the machine's own Slurm is read or changed.

Every process is started here and ended by its id, with all that it started: a process belongs to a cluster if its
environment names the cluster's configuration.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import time

NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
CONFIGURATION = """\
ClusterName=hpo
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/log/%n.log
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
AuthType=auth/none
CredType=cred/none
# A requeued job waits for as long as its old credential is valid: 2 minutes, if this is not set.
AuthInfo=cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout={node_timeout}
KillWait=20
MinJobAge=600
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
"""
NODE = "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=100000"
PARTITIONS = """\
PartitionName=gpu Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE State=UP GraceTime={grace}
PartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=INFINITE State=UP PreemptMode=OFF
"""
TURNS_S = 60.0


def missing():
    """Why no cluster can be had here; None: one can."""
    absent = [name for name in NEEDED if shutil.which(name, path=_search_path()) is None]
    if absent:
        return f"no {', '.join(absent)}; scripts/bootstrap --engines brings Slurm"
    if os.geteuid() != 0:
        return "only root can make the device files of Slurm's GPUs"
    return None


def _search_path():
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def processes_with(entry):
    """The processes, but for this one, whose environment has this NAME=VALUE: {pid: command line}."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = (folder / "environ").read_bytes().split(b"\0")
            if entry.encode() in variables and int(folder.name) != os.getpid():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return found


def wait_for(condition, what, seconds=TURNS_S):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.1)
    return value


class Cluster:
    """Nodes n0, n1, ... of `gpus` GPUs each; 0: the cluster has no GRES at all. Use as a context."""

    def __init__(self, folder, nodes=4, gpus=2, cpus=8, grace_s=30, node_timeout_s=10):
        self.folder = pathlib.Path(folder)
        self.names = [f"n{index}" for index in range(nodes)]
        self._gpus = gpus
        self._cpus = cpus
        self._grace_s = grace_s
        self._node_timeout_s = node_timeout_s
        self._daemons = {}
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _search_path()}

    def __enter__(self):
        self._write()
        try:
            self._start("slurmctld", "slurmctld", "-D")
            for name in self.names:
                self.start_node(name)
            wait_for(lambda: self.states() == dict.fromkeys(self.names, "idle"), f"idle nodes {self.log()}")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def _write(self):
        for name in ("log", "state", "dev"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        lines = [CONFIGURATION.format(folder=self.folder, port=_free_port(), user=_user(),
                                      node_timeout=self._node_timeout_s)]
        if self._gpus:
            lines.append("GresTypes=gpu\n")
        for name in self.names:
            node = NODE.format(name=name, port=_free_port(), cpus=self._cpus)
            lines.append(node + (f" Gres=gpu:{self._gpus}\n" if self._gpus else "\n"))
        lines.append(PARTITIONS.format(grace=self._grace_s))
        (self.folder / "slurm.conf").write_text("".join(lines))
        if self._gpus:
            (self.folder / "gres.conf").write_text("".join(
                f"NodeName={name} Name=gpu File={','.join(self._make_devices(name))}\n" for name in self.names))

    def _make_devices(self, node):
        """Numbers that no driver has; nothing opens them."""
        paths = []
        for index in range(self._gpus):
            path = self.folder / "dev" / f"{node}-gpu{index}"
            number = 100 + len(list(path.parent.iterdir()))
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(195, number))
            paths.append(str(path))
        return paths

    def _start(self, name, *command):
        with open(self.folder / "log" / f"{name}.out", "ab") as out:
            self._daemons[name] = subprocess.Popen(
                [shutil.which(command[0], path=_search_path()), *command[1:]], stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, cwd=self.folder, env=self.variables(), start_new_session=True)

    def start_node(self, name):
        self._start(name, "slurmd", "-D", "-N", name)

    def variables(self, **changes):
        """The environment in which Slurm's commands, and hpo, see this cluster."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
        return {**own, **self.environment, **changes}

    def run(self, *words, check=True, **options):
        """One of Slurm's commands, or another: its standard output."""
        done = subprocess.run([str(word) for word in words], env=self.variables(), capture_output=True, text=True,
                              timeout=TURNS_S, check=False, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def states(self):
        """{node: state}; empty: the controller does not answer yet."""
        lines = self.run("sinfo", "-h", "-N", "-p", "gpu", "-o", "%N %t", check=False).splitlines()
        return {name: state.rstrip("*") for name, state in (line.split() for line in lines)}

    def jobs(self, label):
        """{task: (state, node)} of the jobs of a name that have not ended."""
        lines = self.run("squeue", "-h", "-r", "-n", label, "-o", "%i|%T|%N").splitlines()
        return {task: (state, node) for task, state, node in (line.split("|") for line in lines)}

    def task(self, identity):
        """What Slurm knows of a task: {field: value}."""
        words = self.run("scontrol", "--oneliner", "show", "job", identity).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def processes(self, node=None):
        """Of jobs: what runs on a node, or on all: {pid: command line}."""
        found = processes_with(f"SLURMD_NODENAME={node}") if node else {
            pid: line for name in self.names for pid, line in processes_with(f"SLURMD_NODENAME={name}").items()}
        own = processes_with(f"SLURM_CONF={self.environment['SLURM_CONF']}")
        return {pid: line for pid, line in found.items() if pid in own}

    def kill_node(self, name):
        """As if the machine had lost its power: no process of the node says a word."""
        steps = {_parent(pid) for pid in self.processes(name)}
        daemon = self._daemons.pop(name)
        victims = [daemon.pid, *(pid for pid in steps if "slurmstepd" in _command(pid)), *self.processes(name)]
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        daemon.wait()
        for pid in self.processes(name):  # what was started meanwhile
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def log(self):
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-1500:]}"
                         for path in sorted((self.folder / "log").glob("*")))

    def stop(self):
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.run("scancel", "--user", _user(), check=False)
            wait_for(lambda: not self.run("squeue", "-h", check=False).strip(), "no jobs", 30)
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
        for daemon in self._daemons.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(15)
        for pid in processes_with(f"SLURM_CONF={self.environment['SLURM_CONF']}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for daemon in self._daemons.values():
            daemon.wait()
        self._daemons.clear()


def _user():
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def _command(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def _parent(pid):
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return 0
