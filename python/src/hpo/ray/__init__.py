"""Workers as actors of Ray: on a cluster that is there, in a script of one's own or in a job.

    import ray, hpo.ray

    ray.init("auto")
    with hpo.ray.fleet(8, server="10.0.0.1:50051", options=["--models", "/models"]) as fleet:
        fleet.wait()

Ray owns the processes, hpo-server the trials. An actor whose node is lost starts elsewhere, under the same worker's
name, and the trial goes on from its checkpoint.
"""

import asyncio
import contextlib
import os
import pathlib
import re
import signal
import socket
import sys
import time
from typing import Any, Mapping, Sequence, cast

from .._keywords import checked
from .._processes import die_with_parent
from .._server import program
from ..errors import HpoError, InvalidInput, imported

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
# hpo-worker's exit statuses (docs/workers.md).
_DONE = 0
_STUDY_FAILED = 7  # too many of its trials; `hpo status` says why
_INTERNAL = 70
_TRY_AGAIN = 75
_MOST_INTERNAL = 5
_PAUSE_S = 1.0
_ANSWERS_S = 10.0
# A worker that saves a checkpoint has 30 s for it, if nothing else is said.
_STOP_S = 60.0
_WORKERS_SHARE = 7 / 8  # of the memory of an actor without GPUs: the rest is for hpo-worker itself
_MOST_SAID = 64 * 1024


class _Worker:
    """The class of the actors. One process of hpo-worker after another, until the studies are finished."""

    def __init__(self, command: "list[str]", environment: "dict[str, str]") -> None:
        self._command = command
        self._environment = environment
        self._process: "asyncio.subprocess.Process | None" = None
        self._stopped = False

    async def run(self) -> "tuple[int, str]":
        """Until there is nothing more to do for this worker; the exit status of its last process, and what it said last
        with the file of its log."""
        internal = 0
        while True:
            begin = _log_size()
            code = await self._run_once()
            internal += code == _INTERNAL
            again = code == _TRY_AGAIN or (code == _INTERNAL and internal < _MOST_INTERNAL)
            if self._stopped or not again:
                return code, _last_words(begin)
            await asyncio.sleep(_PAUSE_S)

    async def _run_once(self) -> int:
        words = [program(self._command[0]), *self._command[1:]]
        # Ray kills an actor, and not what it has started: the worker gets SIGTERM, saves and ends.
        self._process = await asyncio.create_subprocess_exec(
            *words, env={**os.environ, **self._environment}, stdin=asyncio.subprocess.DEVNULL,
            preexec_fn=lambda: die_with_parent(signal.SIGTERM))
        return await self._process.wait()

    async def stop(self) -> None:
        """Returns when the worker has saved and requeued its trial, and has ended."""
        self._stopped = True
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


class _Size:
    """The class of the one actor that keeps the number of workers that a fleet is to have."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def get(self) -> int:
        return self._workers

    def set(self, workers: int) -> None:
        self._workers = workers


def _log() -> "pathlib.Path | None":
    """The file to which Ray has redirected standard error of this actor, which hpo-worker inherits."""
    with contextlib.suppress(OSError):
        path = pathlib.Path(os.readlink("/proc/self/fd/2"))
        return path if path.is_file() else None
    return None


def _log_size() -> int:
    log = _log()
    return log.stat().st_size if log else 0


def _last_words(begin: int) -> str:
    """The last line of the log behind `begin`, and where the log is. Empty: Ray has redirected nothing."""
    log = _log()
    if log is None:
        return ""
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - _MOST_SAID))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    where = f"its log: {log} on {socket.gethostname()}"
    return f"{lines[-1]} ({where})" if lines else where


class Fleet:
    """Workers that run as actors. Made by hpo.ray.fleet; a context that ends them."""

    def __init__(self, name: str, workers: int, actor: "dict[str, Any]", command: "list[str]",
                 environment: "dict[str, str]") -> None:
        self._ray: Any = imported("ray", "hpo.ray")
        self.name = name
        self._actor = actor
        self._command = command
        self._environment = environment
        self._namespace = f"hpo-{name}"
        self._workers: "dict[int, Any]" = {}
        self._runs: "dict[Any, int]" = {}
        self._codes: "dict[int, int]" = {}
        self._said: "dict[int, str]" = {}
        self._size = self._ray.remote(_Size).options(
            name="size", namespace=self._namespace, num_cpus=0, max_restarts=-1, max_task_retries=-1).remote(workers)
        self._fit(workers)

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait(self, timeout: "float | None" = None) -> "list[int]":
        """Waits until all workers have ended by themselves, as when their studies are finished. Returns their exit
        statuses, which are those of hpo-worker: 0 is a finished study. After `timeout` seconds: of those that have
        ended. Raises HpoError if workers have failed, with what the first of them said and where its log is."""
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while self._runs and time.monotonic() < end:
            self._collect(min(1.0, max(0.0, end - time.monotonic())))
            self._fit(self._wanted())
        codes, failures = self.statuses, self.failures
        if failures:
            raise HpoError(f"{len(failures)} of {len(codes)} workers of fleet {self.name} have failed: {failures[0]}")
        return codes

    @property
    def statuses(self) -> "list[int]":
        """Exit statuses of the workers that have ended, by their number."""
        return [self._codes[index] for index in sorted(self._codes)]

    @property
    def failures(self) -> "list[str]":
        """A sentence for each worker that did not end as a worker does: a study is finished, or work is left."""
        failed = [index for index, code in sorted(self._codes.items()) if code not in (_DONE, _STUDY_FAILED, _TRY_AGAIN)]
        return [f"{self._worker_name(index)} ended with status {self._codes[index]}: {self._said[index]}".rstrip(": ")
                for index in failed]

    def _worker_name(self, index: int) -> str:
        return f"ray-{self.name}-{index}"

    def scale(self, workers: int) -> None:
        """Changes the number of workers. Those that are left out save and requeue their trials."""
        self._ray.get(self._size.set.remote(workers))
        self._fit(workers)

    def stop(self) -> None:
        """Ends all workers: each saves and requeues its trial."""
        self._end(list(self._workers))
        with contextlib.suppress(Exception):
            self._ray.kill(self._size)

    def _wanted(self) -> int:
        try:
            return int(self._ray.get(self._size.get.remote(), timeout=5))
        except self._ray.exceptions.RayError:  # its node is lost: it is started again
            return len(self._workers)

    def _fit(self, workers: int) -> None:
        live = sorted(self._workers)
        self._end(live[workers:] if workers < len(live) else [])
        used = set(self._workers) | set(self._codes)
        for _ in range(workers - len(live)) if not self._codes else ():
            index = next(number for number in range(len(used) + 1) if number not in used)
            used.add(index)
            self._begin(index)

    def _begin(self, index: int) -> None:
        environment = {**self._environment, "HPO_WORKER_NAME": self._worker_name(index)}
        # One task for `run`, and room for `stop` at the same time: the methods are coroutines of one thread. The environment is
        # an argument and no runtime environment, which Ray's dashboard shows, with the secret, to whoever sees it.
        actor = self._ray.remote(_Worker).options(
            name=f"worker-{index}", namespace=self._namespace, max_restarts=-1, max_task_retries=-1, max_concurrency=4,
            **self._actor).remote(self._command, environment)
        self._workers[index] = actor
        self._runs[actor.run.remote()] = index

    def _collect(self, timeout: float) -> None:
        done, _ = self._ray.wait(list(self._runs), num_returns=1, timeout=timeout)
        for run in done:
            index = self._runs.pop(run)
            try:
                self._codes[index], self._said[index] = self._ray.get(run)
            except self._ray.exceptions.RayError as error:
                if "No module named 'hpo'" not in str(error):
                    raise
                raise HpoError("the nodes of this cluster lack hpo: install the wheel hpo-service in the Python that runs "
                               "Ray there") from None
            self._ray.kill(self._workers.pop(index))

    def _end(self, indices: "list[int]") -> None:
        # An actor for which the cluster has no room has nothing to save.
        ready = {self._workers[index].__ray_ready__.remote(): index for index in indices}
        begun: "list[Any]" = self._ray.wait(list(ready), num_returns=len(ready), timeout=_ANSWERS_S)[0] if ready else []
        stopping = [self._workers[ready[one]].stop.remote() for one in begun]
        if stopping:
            self._ray.wait(stopping, num_returns=len(stopping), timeout=_STOP_S)
        for index in indices:
            self._ray.kill(self._workers.pop(index))
            self._runs = {run: other for run, other in self._runs.items() if other != index}


@checked
def fleet(workers: int, *, name: str = "workers", study: "str | None" = None, server: "str | None" = None,
          gpus_per_worker: float = 1, cpus_per_worker: float = 1, gpu_type: "str | None" = None,
          memory_per_worker: "int | None" = None, checkpoints: "str | os.PathLike[str] | None" = None,
          options: Sequence[str] = (), resources: "Mapping[str, float] | None" = None) -> Fleet:
    """Starts `workers` workers of hpo as actors on the cluster that this process is connected to (ray.init).

    `server`: address of a server without TLS; default: HPO_JOIN, HPO_JOIN_FILE or HPO_SERVER of this process, whose
    value the actors get. `study`: the only one to serve. `name`: of the fleet; a fleet of
    a name runs once on a cluster. `gpus_per_worker`: 0 runs trials on CPUs, and `memory_per_worker` is then needed.
    `gpu_type`: Ray's name of an accelerator, such as "A100". `memory_per_worker`: bytes of host memory that Ray sets
    aside for each; without GPUs, trials may use seven eighths of it. `checkpoints`: a folder that
    all nodes share. `options`: more options of hpo-worker. `resources`: Ray's custom resources of each worker."""
    ray = imported("ray", "hpo.ray")
    if isinstance(workers, bool) or not isinstance(cast(object, workers), int) or workers < 1:
        raise InvalidInput(f"workers: expected a whole number from 1, got {workers!r}")
    if not _NAME.fullmatch(name):
        raise InvalidInput("name: expected small letters, digits and '-' between them, at most 40, "
                           f"got {name!r}")
    command = _command(gpus_per_worker, memory_per_worker, study, checkpoints, options)
    if not ray.is_initialized():
        connect()
    actor: "dict[str, Any]" = {"num_gpus": gpus_per_worker, "num_cpus": cpus_per_worker}
    if gpu_type is not None:
        actor["accelerator_type"] = gpu_type
    if memory_per_worker is not None:
        actor["memory"] = memory_per_worker
    if resources is not None:
        actor["resources"] = dict(resources)
    try:
        return Fleet(name, workers, actor, command, _server(server))
    except ValueError as error:  # Ray's word for a name that is taken
        raise HpoError(f"a fleet {name} runs on this cluster: expected another name= ({error})") from None


def connect(address: str = "auto") -> None:
    """ray.init for a cluster that is there. One line where none is, or where it is of another version."""
    ray = imported("ray", "hpo.ray")
    check_answers(os.environ.get("RAY_ADDRESS", address) if address == "auto" else address)
    try:
        ray.init(address=address, log_to_driver=True)
    except ConnectionError as error:
        raise HpoError(f"no cluster of Ray at {address}: expected a running one, such as of `ray start --head` "
                       f"({first_line(error)})") from None
    except RuntimeError as error:
        text = " ".join(str(error).split())
        if "ersion mismatch" not in text:
            raise
        raise HpoError(f"the cluster is of another version: expected Ray {ray.__version__} with Python "
                       f"{'.'.join(map(str, sys.version_info[:3]))}, as here; run this with the Python of the cluster, or "
                       f"as a job on it: hpo fleet ray --submit ({text})") from None


def check_answers(address: str) -> None:
    """Ray itself tries for minutes where nothing listens."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "://" in host:
        return  # "auto", or "ray://..." of Ray's client
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS_S).close()
    except OSError as error:
        raise HpoError(f"no cluster of Ray at {address}: expected a running one, such as of `ray start --head` "
                       f"({error})") from None


def run(workers: int, **given: Any) -> int:
    """What a job's script does: a fleet until its workers have ended, or until this process is told to end. The gravest
    exit status of its workers."""
    connect()
    stopped: "list[bool]" = []

    def stop(*_: object) -> None:
        stopped.append(True)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    own = fleet(workers, **given)
    try:
        own.wait()
    except HpoError:
        if not own.failures:  # which are printed below
            raise
    except KeyboardInterrupt:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(f"fleet {own.name}: told to end; its workers save and requeue their trials", flush=True)
        own.stop()
        return _TRY_AGAIN
    own.stop()
    print(f"fleet {own.name}: all workers have ended, with statuses {own.statuses}", flush=True)
    for failure in own.failures:
        print(failure, flush=True)
    return max(own.statuses, default=_DONE)


def resize(name: str, workers: int) -> None:
    """Changes the number of workers of a fleet that another process, such as a job, runs on the same cluster. 0 ends
    it: all workers save and requeue their trials."""
    if isinstance(workers, bool) or not isinstance(cast(object, workers), int) or workers < 0:
        raise InvalidInput(f"workers: expected a whole number from 0, got {workers!r}")
    ray = imported("ray", "hpo.ray")
    if not ray.is_initialized():
        connect()
    try:
        size = ray.get_actor("size", namespace=f"hpo-{name}")
    except ValueError:
        raise HpoError(f"no fleet {name} on this cluster") from None
    ray.get(size.set.remote(workers))


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _command(gpus: float, memory: "int | None", study: "str | None", checkpoints: "str | os.PathLike[str] | None",
             options: Sequence[str]) -> "list[str]":
    given = [str(word) for word in options]
    named = {word.split("=")[0] for word in given}
    command = ["hpo-worker"]
    if not named & {"--gpu", "--device"}:
        command += ["--gpu", "visible"] if gpus else ["--device", "cpu"]
        if not gpus and "--memory-limit" not in named:
            if memory is None:
                raise InvalidInput("gpus_per_worker=0: expected memory_per_worker too, in bytes, such as 8 * 2**30, which "
                                   "a worker shares with its trials")
            command += ["--memory-limit", str(int(memory * _WORKERS_SHARE))]
    if study is not None:
        command += ["--study", study]
    if checkpoints is not None:
        command += ["--checkpoints", str(checkpoints)]
    return command + given


def _server(server: "str | None") -> "dict[str, str]":
    """How workers reach the server, as variables of their environment."""
    if server is not None:
        return {"HPO_SERVER": server}
    join = os.environ.get("HPO_JOIN", "")
    file = os.environ.get("HPO_JOIN_FILE", "")
    if not join and file:
        try:
            join = pathlib.Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise HpoError(f"HPO_JOIN_FILE: {error}") from None
    if join:
        return {"HPO_JOIN": join}
    return {"HPO_SERVER": os.environ.get("HPO_SERVER", "127.0.0.1:50051")}
