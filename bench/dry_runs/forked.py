"""Dry runs of many programs in a short time: each is a child of one process that has imported torch and the
packages, and has not used CUDA. The observer, its record and the verdict are those of the command.

usage, by `Server` alone: python3 bench/dry_runs/forked.py PACKAGE...
"""

import atexit
import dataclasses
import importlib
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT_S = 300


class Server:
    """Runs programs on one GPU with one build of torch."""

    def __init__(self, build, gpu, packages, folders=(), context_bytes=None):
        """`packages` are imported once. `folders`: those that Python searches before those of the environment."""
        sys.path.insert(0, str(build.resolve() / "python"))
        from hpo_dryrun import gpus, launch  # of the build: it has the libraries
        self._launch = launch
        path = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
        os.environ.update(PYTHONPATH=path, OMP_NUM_THREADS="1")
        command = [sys.executable, __file__, *packages]
        self.gpu, = gpus.choose([gpu], gpus.known(launch.library_folder()))
        self._folder = tempfile.TemporaryDirectory(prefix="hpo-dry-run-")  # pylint: disable=consider-using-with
        self._scratch = pathlib.Path(self._folder.name)
        request = launch.Request(command=command, gpu=self.gpu, context_bytes=context_bytes, readbacks=2000)
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, env=launch.environment(request, self._scratch), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)

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

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def become(task):
    """In the child: runs the program to its end and ends the process as Python would."""
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
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if child == 0:
            become(task)
        _, status = os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


if __name__ == "__main__":
    main()
