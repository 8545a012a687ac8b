"""A server, workers and the CLI in real processes on loopback: tests/integration/harness.py, for
benchmarks."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def built(build, *options):
    """The folder of a build, absolute; build/release, built first, where none is given."""
    if build is not None:
        return os.path.abspath(build)
    subprocess.run([os.path.join(ROOT, "scripts/build"), "release", *options], check=True,
                   stdout=sys.stderr)
    return os.path.join(ROOT, "build/release")


@contextlib.contextmanager
def server(program, folder, *options):
    """An hpo-server on a port of loopback; yields its address. It is terminated at the end."""
    address = pathlib.Path(folder) / "server.address"
    address.unlink(missing_ok=True)
    running = subprocess.Popen([program, *options, "--listen", "127.0.0.1:0", "--address-file", address],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not (address.exists() and address.read_text().strip()):
            if running.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{program} did not start: exit status {running.poll()}")
            time.sleep(0.05)
        yield address.read_text().strip()
    finally:
        running.terminate()
        running.wait()


def find_tests(build, *folders):
    """Makes the modules of tests/integration, and of more folders, importable: they run the build's programs."""
    os.environ["HPO_BIN_DIR"] = os.path.join(build, "bin")
    os.environ.setdefault("HPO_FAKE_TRAINER", "none")  # the harness wants a name
    for folder in ("tests/integration", *folders):
        path = os.path.join(ROOT, folder)
        if path not in sys.path:
            sys.path.insert(0, path)


@contextlib.contextmanager
def running(case):
    """A harness.Deployment, ended with all its processes."""
    case.setUp()
    try:
        yield case
    finally:
        case.tearDown()


@contextlib.contextmanager
def deployment(build, study):
    """A harness.Deployment over the study (YAML, named toy), ended with all its processes."""
    find_tests(build)
    import harness  # pylint: disable=import-outside-toplevel

    case = harness.Deployment()
    case.STUDY = study
    with running(case):
        yield case


def start_worker(running, build, limit_mib, *options, environment=None):
    """A worker on the CPU of whose memory so many MiB may be used; it leaves with the study's end."""
    return running.start("w0", os.path.join(build, "bin/hpo-worker"), "--server", running.address,
                         "--device", "cpu", "--memory-limit", f"{limit_mib}MiB", "--name", "w0",
                         "--state-dir", running.folder / "state", *options,
                         environment=environment)


def run_to_the_end(running, worker, seconds):
    """Waits until the study is finished and its worker has left; fails with the worker's log."""
    status = worker.wait(seconds)
    if status != 0:
        raise RuntimeError(f"the worker ended with {status}:\n{worker.output()[-2000:]}")
    return running.trials("--limit", "1000")
