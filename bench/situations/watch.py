"""Runs one search as a user would and notes when it says something: for bench/waits."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Callable, Optional

OBSERVED_S = 45.0  # of a search that rightly goes on
SILENT_S = 15.0
BEGINS = "the search begins"  # of a script: what it did before was its own
RESULT, REFUSAL, WAITS, EITHER = "result", "refusal", "waits", "either"


@dataclasses.dataclass
class Situation:
    """One search. `begin(world)` prepares what it meets and returns its command; `during(world, search)`
    is called while it runs. `ends`: with RESULT (status 0), with REFUSAL (another status), with one of
    them (EITHER), or not, since what it waits for can change (WAITS). `says`: expressions that its output
    has. `needs`: programs of the build without which it is left out."""

    name: str
    begin: "Callable[[World], list]"
    ends: str = RESULT
    says: tuple = ()
    during: "Optional[Callable[[World, Search], None]]" = None
    limit_s: float = 100.0
    needs: tuple = ()


@dataclasses.dataclass
class Verdict:
    name: str
    status: "int | None" = None  # None: it went on
    seconds: float = 0.0
    silence_s: float = 0.0
    after: str = ""  # the line before the longest silence
    wrong: list = dataclasses.field(default_factory=list)
    is_endless: bool = False
    output: str = ""


class Search:
    """A process whose lines are noted with their times. It leads a group of processes."""

    def __init__(self, command, folder, environment):
        self.begin = time.monotonic()
        self.lines = []
        self.process = subprocess.Popen([str(word) for word in command], cwd=folder, env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            text = line.decode(errors="replace").rstrip()
            if text:
                self.lines.append((time.monotonic(), text))

    @property
    def output(self):
        return "\n".join(text for _, text in self.lines)

    def wait(self, seconds):
        """The exit status; None: it still runs."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(2)  # what it left behind may hold the pipe
        return status

    def wait_for(self, pattern, seconds=60.0):
        """Until a line matches; False: the search ended first, or none came in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if re.search(pattern, self.output):
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.05)
        return False

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGCONT)
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(2)
        if not self._reader.is_alive():
            self.process.stdout.close()

    def longest_silence(self, until):
        """Seconds, and the line before. `until`: when the search ended, or was no longer observed."""
        lines = list(self.lines)
        starts = [index for index, (_, text) in enumerate(lines) if text == BEGINS][:1]
        times = lines[starts[0]:] if starts else [(self.begin, "(its start)"), *lines]
        times = [*times, (until, "")]
        gaps = [(later[0] - one[0], one[1]) for one, later in zip(times, times[1:])]
        return max(gaps)


class World:
    """The folder of one situation, and all that is started in it."""

    def __init__(self, build):
        self.build = build
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hpo-waits-"))
        self.storage = self.folder / "storage"
        # hpo-worker's trainers have a session of their own: by the folder's name all are found.
        self.environment = {**os.environ, "HPO_BIN_DIR": str(build / "bin"), "HPO_TOKEN_CACHE": "none",
                            "XDG_DATA_HOME": str(self.folder / "data"), "XDG_STATE_HOME": str(self.folder / "state"),
                            "PATH": f"{build / 'bin'}:{os.environ['PATH']}", "HPO_SERVER": "unix:nowhere"}
        self._started = []
        self._mounted = []

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def python(self, text, *words, name="search.py"):
        """The command of a script; its first argument is the storage folder."""
        return [sys.executable, self.write(name, text), self.storage, *words]

    def start(self, command, environment=None):
        search = Search(command, self.folder, {**self.environment, **(environment or {})})
        self._started.append(search)
        return search

    def run(self, command, environment=None, seconds=60.0):
        """To its end, in a situation that needs it to be over."""
        search = self.start(command, environment)
        status = search.wait(seconds)
        if status is None:
            raise RuntimeError(f"{command} did not end:\n{search.output}")
        return search

    def cli(self, *words):
        """The command line program, at the server of the storage folder."""
        address = (self.storage / "address").read_text().strip()
        return self.run([self.build / "bin/hpo", *words], {"HPO_SERVER": address})

    def server(self, *options):
        """A server that others started; its process and its address."""
        address = self.folder / "address"
        address.unlink(missing_ok=True)
        process = self.start([self.build / "bin/hpo-server", "--db", self.folder / "others.db",
                              "--address-file", address, *options])
        deadline = time.monotonic() + 30
        while not (address.exists() and address.read_text().strip()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"hpo-server did not start:\n{process.output}")
            time.sleep(0.05)
        return process, address.read_text().strip()

    def small_disk(self, size):
        """A folder on a disk of its own; needs root."""
        disk = self.folder / "small"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
        self._mounted.append(disk)
        return disk

    def processes(self, *words):
        """The numbers of this situation's processes whose command has all the words."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and self._is_ours(entry):
                    command = (entry / "cmdline").read_bytes().decode(errors="replace")
                    if all(word in command for word in words):
                        found.append(int(entry.name))
        return found

    @property
    def is_alone(self):
        """Whether nothing but the search was started here."""
        return len(self._started) == 1

    def left_over(self, seconds=5.0):
        """The numbers of the product's processes that do not end within a while of the search."""
        deadline = time.monotonic() + seconds
        while True:
            left = [pid for words in (["hpo-server"], ["hpo-worker"], ["hpo-command-trainer"], ["_slot.main"])
                    for pid in self.processes(*words)]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.1)

    def _is_ours(self, entry):
        mark = f"XDG_STATE_HOME={self.folder}/state".encode()
        return mark in (entry / "environ").read_bytes().split(b"\0")

    def close(self):
        for search in reversed(self._started):
            search.end()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for disk in self._mounted:
            subprocess.run(["umount", "--lazy", disk], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def judged(situation, build):
    """Runs the situation, and says what was wrong with it."""
    world = World(build)
    try:
        search = world.start(situation.begin(world))
        verdict = Verdict(situation.name)
        trouble = []
        if situation.during is not None:
            helper = threading.Thread(target=_meanwhile, args=(situation, world, search, trouble), daemon=True)
            helper.start()
        limit = OBSERVED_S if situation.ends == WAITS else situation.limit_s
        verdict.status = search.wait(limit)
        until = time.monotonic()
        verdict.seconds = until - search.begin
        verdict.silence_s, verdict.after = search.longest_silence(until)
        search.end()
        verdict.output = search.output
        verdict.wrong = [*trouble, *_wrong(situation, verdict)]
        if verdict.status is not None and world.is_alone and (left := world.left_over()):
            verdict.wrong.append(f"left processes behind: {left}")
        verdict.is_endless = verdict.status is None and situation.ends != WAITS
        return verdict
    finally:
        world.close()


def _meanwhile(situation, world, search, trouble):
    try:
        situation.during(world, search)
    except Exception as error:  # the situation did not come to be
        trouble.append(f"the situation did not come to be: {error}")


def _wrong(situation, verdict):
    if verdict.status is None and situation.ends != WAITS:
        yield f"goes on for ever (observed {verdict.seconds:.0f} s)"
    elif verdict.status is not None and situation.ends == WAITS:
        yield f"ended with status {verdict.status}, though what it waits for can change"
    elif situation.ends == RESULT and verdict.status != 0:
        yield f"ended with status {verdict.status}, expected 0"
    elif situation.ends == REFUSAL and verdict.status == 0:
        yield "ended with status 0, expected one of its own"
    elif verdict.status is not None and verdict.status < 0 and verdict.status != -signal.SIGINT:
        yield f"was killed by signal {-verdict.status}"
    for pattern in situation.says:
        if not re.search(pattern, verdict.output, re.IGNORECASE):
            yield f"does not say {pattern!r}"
    if verdict.silence_s > SILENT_S:
        yield f"silent for {verdict.silence_s:.0f} s after {verdict.after[:80]!r}"
