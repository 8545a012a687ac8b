"""Dry runs of many programs in a short time: each is a child of one process that has imported torch and the
packages, and has not used CUDA. The observer, its record and the verdict are those of the command.

usage, by `Server` alone: python3 bench/dry_runs/forked.py PACKAGE...
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT_S = 300


@contextlib.contextmanager
def environment(folders):
    """The environment with `folders` first in Python's path."""
    before = dict(os.environ)
    path = os.pathsep.join(filter(None, [*map(str, folders), before.get("PYTHONPATH")]))
    os.environ.update(PYTHONPATH=path, OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Server:
    """Runs programs on one GPU with one build of torch."""

    def __init__(self, build, gpu, packages, folders=(), written_for=None):
        """`packages` are imported once. `folders`: those that Python searches before those of the environment.
        `written_for`: versions of CUDA and of a torch that is too old for a dry run; the context is theirs."""
        sys.path.insert(0, str(build.resolve() / "python"))
        from hpo_dryrun import gpus, launch, overheads
        # Another part may have imported the package of the source tree, which has no libraries.
        launch.LIBRARIES = build / "python" / "hpo_dryrun" / "lib"
        os.environ["HPO_BIN_DIR"] = str(build.resolve() / "bin")
        self._launch = launch
        command = [sys.executable, __file__, *packages]
        self.gpu, = gpus.choose([gpu], gpus.known(launch.library_folder()))
        context_bytes = None
        if written_for is not None:
            found = overheads.overhead(self.gpu.capability, *written_for, libraries=("cudnn",),
                                       threads=self.gpu.threads)
            context_bytes = found.context_bytes + found.workspace_bytes
        self._folder = tempfile.TemporaryDirectory(prefix="hpo-dry-run-")  # pylint: disable=consider-using-with
        self._scratch = pathlib.Path(self._folder.name)
        request = launch.Request(command=command, gpu=self.gpu, context_bytes=context_bytes, readbacks=2000)
        with environment(folders):
            env = launch.environment(request, self._scratch)
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def run(self, program, arguments, **options):
        """A launch.Run. `options`: memory_bytes of the GPU, and events, a path for the program's allocations."""
        for path in self._scratch.glob("run*"):
            path.unlink()
        start = time.monotonic()
        task = {"program": str(program), "arguments": list(map(str, arguments)), "folder": str(self._scratch), **options}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        status = json.loads(self._process.stdout.readline() or "-1")
        records = [json.loads(path.read_text(encoding="utf-8")) for path in self._scratch.glob("run.record.*")
                   if path.suffix != ".new"]
        output = self._scratch / "run.out"
        text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        return self._launch.Run(records, status, time.monotonic() - start, False, text)

    def document(self, program, arguments, **options):
        """The document of the program with "error": None; else {"error": line}."""
        from hpo_dryrun import errors, several, verdict
        run = self.run(program, arguments, events=str(self._scratch / "run.events"), **options)
        if run.status == -signal.SIGALRM:
            return {"error": f"no end in {LIMIT_S} s"}
        try:
            return {**several.settle(verdict.assess(run, self.gpu)), "error": None}
        except errors.DryRunError as error:
            return {"error": str(error)}

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def leave_weights_unset():
    """Drawing random weights on the CPU takes more time than all else, and does not change what memory they take."""
    tensor = sys.modules["torch"].Tensor
    for name in ("normal_", "uniform_", "erfinv_"):
        draw = getattr(tensor, name)

        @functools.wraps(draw)
        def drawn(self, *arguments, draw=draw, **options):
            return draw(self, *arguments, **options) if self.is_cuda else self

        setattr(tensor, name, drawn)


def become(task):
    """In the child: runs the program to its end and ends the process as Python would; after LIMIT_S as an alarm."""
    signal.alarm(LIMIT_S)
    folder = pathlib.Path(task["folder"])
    os.environ.update(HPO_EMULATED_STATE=str(folder / "run.state"), HPO_DRY_RUN_RECORD=str(folder / "run.record"))
    if task.get("memory_bytes"):
        os.environ["HPO_EMULATED_MEMORY"] = f"{task['memory_bytes']}B"
    observer = sys.modules["hpo_dryrun.observer"]._observer
    observer._given["events"] = task.get("events")
    output = os.open(folder / "run.out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = [task["program"], *task["arguments"]]
    status = 0
    try:
        runpy.run_path(task["program"], run_name="__main__")
    except BaseException:  # pylint: disable=broad-except
        sys.excepthook(*sys.exc_info())
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main():
    for name in sys.argv[1:]:
        importlib.import_module(name)
    leave_weights_unset()
    gc.freeze()
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if child == 0:
            become(task)
        _, status = os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


if __name__ == "__main__":
    main()
