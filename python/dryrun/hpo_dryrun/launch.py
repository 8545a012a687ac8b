"""One run of a program on emulated GPUs: its environment, its processes, its records."""

import contextlib
import ctypes
import dataclasses
import functools
import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from . import packages, stand_ins, torch_build
from .errors import DryRunError, UsageError

PACKAGE = pathlib.Path(__file__).resolve().parent
LIBRARIES = PACKAGE / "lib"
POLL_S = 0.05
ENDING_S = 1.0  # for which a program may go on beyond what it says
TAIL_BYTES = 1 << 16
_PR_SET_CHILD_SUBREAPER = 36
# What a dry run itself says of its GPU, also below a program that runs on an emulated one.
_OF_THE_GPU = ("CONTEXT", "FAULTS", "MEMORY", "OTHERS")


@dataclasses.dataclass(frozen=True)
class Request:
    command: list
    gpu: object  # gpus.Gpu
    count: int = 1
    memory_bytes: object = None  # of each GPU, in place of its own
    context_bytes: object = None
    allocator: object = None  # settings, as PYTORCH_ALLOC_CONF has them
    steps: object = None
    timeout_s: float = 300.0
    readbacks: int = 0
    stand_in: tuple = ()  # names of packages (packages.py)
    show_output: bool = False
    events: object = None  # path to which processes write their allocations, with ".PID" appended


@dataclasses.dataclass
class Run:
    """What one run left."""

    records: list
    status: int  # exit status of the command; negative: the signal that ended it
    seconds: float
    timed_out: bool
    output: str  # the end of standard output and standard error

    @property
    def gpu_records(self):
        return [record for record in self.records if record.get("devices")]


def library_folder():
    if not (LIBRARIES / "libhpo_emulated_card.so").exists():
        raise DryRunError(f"the libraries of the emulated GPU are missing in {LIBRARIES}; install the wheel "
                          "hpo-dryrun, or build the target emulated_cuda with -DHPO_BUILD_TRAINER=ON")
    return LIBRARIES.resolve()


def _interpreter(command, path):
    """The Python that probably runs the command: the command itself, the one that a script's first line names, of
    `sh -c TEXT` the one of the text, or the one in PATH."""
    is_shell = os.path.basename(command[0]) in ("sh", "bash", "dash") and command[1:2] == ["-c"] and len(command) > 2
    words = _words_of_shell(command[2]) if is_shell else [(command[0], "", True)]
    for word, folder, is_command in words:
        if word.endswith("/bin/activate"):
            return str(pathlib.Path(folder, word).parent / "python3")
        found = _python_of(os.path.join(folder, word) if "/" in word else word, path)
        if found and (is_command or os.path.basename(word).startswith("python")):
            return found
    return shutil.which("python3", path=path) or "python3"


def _python_of(program, path):
    """`program` where it is a Python, or the one that its first line names; None: neither."""
    found = shutil.which(program, path=path)
    if found and os.path.basename(found).startswith("python"):
        return found
    with contextlib.suppress(OSError, TypeError), open(found, "rb") as file:
        line = file.readline(256).decode("utf-8", "replace")
        words = line[2:].split() if line.startswith("#!") else []
        for word in words[:2]:
            if os.path.basename(word).startswith("python"):
                return shutil.which(word, path=path) or word
    return None


def _words_of_shell(text):
    """(word, the folder that the shell is in, whether it is the name of a command) of a text for /bin/sh."""
    lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    folder, before, is_command, found = "", "", True, []
    try:
        for word in lexer:
            if set(word) <= set("();<>|&"):
                before, is_command = "", True
                continue
            if before == "cd":
                folder = os.path.join(folder, word)
            found.append((word, folder, is_command))
            is_command = is_command and re.match(r"\w+=|exec$|env$|nice$|time$", word) is not None
            before = word
    except ValueError:  # quotes that do not end: the shell will say so
        pass
    return found


def _joined(*parts):
    return os.pathsep.join(str(part) for part in parts if part)


def torch_of(command):
    """The build of torch that `command` runs with, a torch_build.TorchBuild. Raises UsageError."""
    return _torch_of_interpreter(_interpreter(command, os.environ.get("PATH")), os.environ.get("PYTHONPATH"))


@functools.lru_cache(maxsize=None)  # a search asks for each run
def _torch_of_interpreter(python, _path):
    try:
        return torch_build.of_interpreter(python)
    except torch_build.TorchMissing as error:
        raise UsageError(str(error)) from error


def environment(request, scratch):
    folder = library_folder()
    env = dict(os.environ)
    try:
        env = stand_ins.environment(torch_of(request.command), folder, scratch, env)
    except FileNotFoundError as error:
        raise UsageError(str(error)) from error
    env.update(
        HPO_EMULATED_CARD=request.gpu.name, HPO_EMULATED_CARDS=str(request.count),
        HPO_EMULATED_STATE=str(scratch / "state"), HPO_DRY_RUN_RECORD=str(scratch / "record"),
        HPO_DRY_RUN_OPTIONS=json.dumps({
            "capability": request.gpu.capability, "threads": request.gpu.threads, "steps": request.steps,
            "context_bytes": request.context_bytes, "readbacks": request.readbacks, "events": request.events}),
        PATH=_joined(folder / "bin", env.get("PATH")),
        PYTHONPATH=_joined(PACKAGE / "hook", env.get("PYTHONPATH")), PYTHONUNBUFFERED="1")
    env[packages.VARIABLE] = _joined(*(packages.folders()[name] for name in request.stand_in))
    for setting in _OF_THE_GPU:
        env.pop(f"HPO_EMULATED_{setting}", None)
    memory = request.memory_bytes or (request.gpu.total_bytes if request.gpu.sized else None)
    if memory is not None:
        env["HPO_EMULATED_MEMORY"] = f"{memory}B"
    if request.allocator is not None:
        env["PYTORCH_ALLOC_CONF"] = env["PYTORCH_CUDA_ALLOC_CONF"] = request.allocator
    return env


def run(request, progress=None):
    """Runs the program until enough was seen, it ends or the time is over. Raises DryRunError where it cannot be
    started. `progress` is called with the records now and then."""
    with tempfile.TemporaryDirectory(prefix="hpo-dry-run-") as scratch:
        return _Launch(request, pathlib.Path(scratch), progress).run()


class _Launch:
    def __init__(self, request, scratch, progress):
        self._request = request
        self._scratch = scratch
        self._progress = progress
        self._shown = {"out": 0, "err": 0}

    def run(self):
        env = environment(self._request, self._scratch)
        program = self._request.command[0]
        found = shutil.which(program, path=env["PATH"])
        if found is None:
            raise UsageError(f"{program}: there is no such program; expected a command after --, such as "
                             "-- python3 train.py")
        _adopt_orphans()
        start = time.monotonic()
        with open(self._scratch / "out", "wb") as out, open(self._scratch / "err", "wb") as err:
            try:
                child = subprocess.Popen([found, *self._request.command[1:]], env=env, stdin=subprocess.DEVNULL,
                                         stdout=out, stderr=err, start_new_session=True)
            except OSError as error:
                raise UsageError(f"{found}: {error.strerror}") from error
            try:
                timed_out = self._wait(child, start + self._request.timeout_s)
            finally:
                end_descendants()
            status = child.wait()
        self._show_output()
        return Run(self._records(), status, time.monotonic() - start, timed_out, self._tail("out") + self._tail("err"))

    def _wait(self, child, deadline):
        """Whether the time was over before the program."""
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(POLL_S)
                return False
            records = self._records()
            if self._is_over(records):
                return False
            if time.monotonic() > deadline:
                return True
            if self._progress:
                self._progress(records)
            self._show_output()

    def _is_over(self, records):
        """Whether every process that is awaited has seen enough."""
        used = [record for record in records if record.get("devices")]
        if not used or len(used) < used[0]["local_world_size"]:
            return False
        now = time.time()
        return all(record["end"] or (record["until"] and now > record["until"] + ENDING_S) for record in used) and \
            not (len(used) == 1 and used[0]["end"] == "exit")

    def _records(self):
        found = []
        for path in sorted(glob.glob(glob.escape(str(self._scratch / "record")) + ".*")):
            if not path.endswith(".new"):
                with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
                    found.append(json.load(file))
        return sorted(found, key=lambda record: record.get("rank", 0))

    def _show_output(self):
        if not self._request.show_output:
            return
        for number, name in ((1, "out"), (2, "err")):
            with open(self._scratch / name, "rb") as file:
                file.seek(self._shown[name])
                text = file.read()
            self._shown[name] += len(text)
            os.write(number, text)

    def _tail(self, name):
        with open(self._scratch / name, "rb") as file:
            file.seek(max(0, os.path.getsize(self._scratch / name) - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")


def _adopt_orphans():
    """What the program leaves running becomes a child of this process, so that it can be ended."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _parents():
    """{process: its parent} of all processes."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
                if fields[0] != "Z":
                    found[int(name)] = int(fields[1])
    return found


def _descendants():
    parents = _parents()
    found = set()
    for process in parents:
        line = [process]
        while line[-1] in parents and parents[line[-1]] not in (os.getpid(), 0):
            line.append(parents[line[-1]])
        if parents.get(line[-1]) == os.getpid():
            found.update(line)
    return found


def end_descendants():
    """Ends all processes below this one, whatever they started meanwhile."""
    while True:
        found = _descendants()
        if not found:
            break
        for process in found:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)  # where it is our own child; orphans become that
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
