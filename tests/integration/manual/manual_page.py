"""Reads a page of the manual as a reader does: files that it shows are written, commands are run as printed.

usage: manual_page.py PAGE --folder DIR [--before COMMAND]...
Runs in a network of its own (unshare --net), where only loopback is; so the default ports are free. Status 1: a command
failed, and what it said is printed. The last line is JSON: how many commands ran, and which did not, with the reason.

  ```sh                     each command is run by bash in DIR, the home folder too; its status must be 0 (see run)
  ```python                 all of them are one program, run last
  `name.yaml`: ```yaml      such a block is that file, where the paragraph above names one file of its kind
  <!-- needs: X -->         above a block: it is run only where X is; for some X never
  <!-- ended: PROGRAM -->   above a block: the reader has ended this program before
A server or worker runs until the page ends, or another one of it is started.
"""

import argparse
import contextlib
import fcntl
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

SHELLS = ("sh", "bash", "console")
KINDS = {"yaml": (".yaml",), "json": (".json", ".jsonl"), "python": (".py",)}
# What a page may need that no test has; with HPO_MANUAL_MINUTES in the environment, it has minutes.
NEVER = {"network": "something from the internet", "root": "installs packages of the system",
         "machines": "a second machine", "minutes": "takes minutes", "program": "a part of a program of the reader's"}
PROGRAMS = ("grpcurl", "mlflow", "tensorboard")
MODULES = ("accelerate", "hpo_dryrun", "hydra", "peft", "sklearn", "timm", "torch", "torchvision", "transformers")
START_S, COMMAND_S, END_S = 120.0, 900.0 if "HPO_MANUAL_MINUTES" in os.environ else 240.0, 40.0


@dataclass(frozen=True)
class Block:
    line: int
    kind: str
    text: str
    marks: "dict[str, list[str]]"
    file: "str | None"  # that the paragraph above names


@dataclass
class Counts:
    run: int = 0
    excepted: "list[str]" = field(default_factory=list)


def file_named(paragraph, kind):
    named = [word for word in re.findall(r"`([^`\s]+)`", paragraph) if pathlib.PurePath(word).suffix in KINDS.get(kind, ())]
    return named[0] if len(named) == 1 else None


def blocks(text):
    """The fenced blocks of a page. A page whose fence does not end, or whose mark stands nowhere, is an error."""
    found, paragraph, marks, opened = [], [], {}, None
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"```(\S*)$", line)
        mark = re.match(r"<!-- (needs|ended): (.+) -->$", line)
        if opened is not None:
            if line == "```":
                start, kind, held = opened
                found.append(Block(start, kind, "\n".join(held), marks, file_named(" ".join(paragraph), kind)))
                opened, marks, paragraph = None, {}, []
            else:
                opened[2].append(line)
        elif fence:
            opened = (number, fence[1], [])
        elif mark:
            marks[mark[1]] = re.split(r",\s*", mark[2])
        elif line.strip():
            if marks:
                raise ValueError(f"line {number}: expected a block below the mark, got: {line}")
            paragraph = paragraph + [line] if paragraph and paragraph[-1] else [line]
        elif paragraph:
            paragraph.append("")
    if opened is not None:
        raise ValueError(f"line {opened[0]}: the block has no end")
    return found


def commands(block):
    """The commands of a block, each as printed; lines that a backslash joins are one."""
    joined = re.sub(r"\\\n", "\\\\\0", block.text).splitlines()
    return [line.replace("\0", "\n") for line in joined if line.strip() and not line.startswith("#")]


def unmet(block):
    """Why the block cannot be run here; None where it can."""
    for need in block.marks.get("needs", []):
        if need == "minutes" and "HPO_MANUAL_MINUTES" in os.environ:
            continue
        if need in NEVER:
            return NEVER[need]
        if need in MODULES and importlib.util.find_spec(need) is None:
            return f"the Python package {need} is not there"
        if need in PROGRAMS and shutil.which(need) is None:
            return f"the program {need} is not there"
        if need not in MODULES + PROGRAMS:
            raise ValueError(f"line {block.line}: needs: expected one of {', '.join((*NEVER, *PROGRAMS, *MODULES))}, "
                             f"got {need}")
    return None


def program_unmet(program):
    """Why the page's Python program cannot be run here; None where it can."""
    if re.search(r"^\s*(import|from) hpo\b", program, re.MULTILINE) and importlib.util.find_spec("grpc") is None:
        return "the Python package grpc is not there (scripts/bootstrap --tests)"
    return None


def wait_for(condition, what, seconds):
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        pause.wait(0.05)


def listens(port):
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Service:
    """A command that does not end by itself."""

    # Program: that it is ready, given its log; the statuses with which it may end.
    READY = {"hpo-server": (lambda log: listens(50051), (0,)),
             "hpo-worker": (lambda log: "registered with" in log, (0, 75)),
             "tensorboard": (lambda log: listens(6006), (0, -signal.SIGTERM, 128 + signal.SIGTERM)),
             "mlflow": (lambda log: listens(5000), (0, -signal.SIGTERM, 128 + signal.SIGTERM))}

    @classmethod
    def of(cls, command):
        """The program that this command leaves running, or None."""
        last = re.split(r"&&|;|\|", re.sub(r'"[^"]*"', '""', command))[-1].split()
        return last[0] if last and last[0] in cls.READY else None

    def __init__(self, program, command, folder, environment):
        self.program, self.command = program, command
        self.log = folder / f".{program}-{time.monotonic_ns()}.log"
        with open(self.log, "wb") as out:
            # The shell gives its place to the command, so that signals meet that.
            self.child = subprocess.Popen(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                          stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        ready, self.good = self.READY[program]
        try:
            wait_for(lambda: ready(self.output()) or self.child.poll() is not None, f"{command} is ready", START_S)
        except AssertionError as error:
            self.end()
            raise AssertionError(f"{error}\n{self.output()}") from None
        if self.child.poll() not in (None, *self.good):
            raise AssertionError(f"{command}: status {self.child.poll()}\n{self.output()}")

    def output(self):
        return self.log.read_text(errors="replace")

    def end(self):
        if self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGTERM)
        try:
            status = self.child.wait(END_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
        if status not in self.good:
            raise AssertionError(f"{self.command}: ended with status {status}")


class Reader:
    def __init__(self, folder):
        self.folder = folder
        self.environment = dict(os.environ)
        self.services = {}
        self.counts = Counts()
        self.failed = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for service in reversed(list(self.services.values())):
            try:
                service.end()
            finally:
                if error[0] is not None:
                    print(f"---- {service.command}\n{service.output()[-4000:]}")

    def write(self, block):
        path = self.folder / block.file
        if path.exists():
            if path.read_text() != block.text + "\n":
                raise AssertionError(f"line {block.line}: {block.file} is another one than the page shows")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text + "\n")

    def end(self, program):
        if program in self.services:
            self.services.pop(program).end()

    def run(self, command):
        print(f"$ {command}", flush=True)
        program = Service.of(command)
        if program is not None:
            self.end(program)
            self.services[program] = Service(program, command, self.folder, self.environment)
            return
        kept = self.folder / ".environment"
        done = subprocess.run(["bash", "-c", f'{command}\nstatus=$?; env -0 > "$0"; exit $status', kept], cwd=self.folder,
                              env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=COMMAND_S, check=False)
        print(done.stdout + done.stderr, end="")
        # 3 is an answer of `hpo memory`, too: something does not fit.
        if done.returncode not in (0, 3 if command.startswith("hpo memory ") else 0):
            raise AssertionError(f"{command}: status {done.returncode}")
        self.environment = dict(one.split("=", 1) for one in kept.read_text().split("\0") if "=" in one)

    def read(self, page):
        found = blocks(page)
        for block in found:
            if block.file:
                self.write(block)
        program, places = "", []
        for block in (one for one in found if one.kind in (*SHELLS, "python") and not one.file):
            printed = [f"python, line {block.line}"] if block.kind == "python" else commands(block)
            why = unmet(block)
            if why:
                self.counts.excepted += [f"{command} ({why})" for command in printed]
            elif block.kind == "python":
                program += block.text + "\n"
                places += printed
            else:
                self.run_all(block, printed)
        why = program_unmet(program)
        if why:
            self.counts.excepted += [f"{place} ({why})" for place in places]
        elif program:
            (self.folder / "page.py").write_text(program)
            self.run("python page.py")
            self.counts.run += len(places)
        if self.failed:
            raise AssertionError("\n".join(self.failed))

    def run_all(self, block, printed):
        for program in block.marks.get("ended", []):
            self.end(program)
        for command in printed:
            try:
                self.run(command)
                self.counts.run += 1
            except (AssertionError, subprocess.TimeoutExpired) as error:
                self.failed.append(f"block of line {block.line}: {error}")


def bring_loopback_up():
    with socket.socket() as one:
        request = struct.pack("16sh14x", b"lo", 0)
        flags, = struct.unpack_from("h", fcntl.ioctl(one, 0x8913, request), 16)  # SIOCGIFFLAGS
        fcntl.ioctl(one, 0x8914, struct.pack("16sh14x", b"lo", flags | 1))  # SIOCSIFFLAGS, IFF_UP


def main():
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--before", action="append", default=[])
    given = parser.parse_args()
    bring_loopback_up()
    try:
        with Reader(given.folder) as reader:
            for command in given.before:
                reader.run(command)
            reader.read(given.page.read_text(encoding="utf-8"))
    except AssertionError as error:
        print(f"{given.page}: {error}")
        return 1
    print(json.dumps(vars(reader.counts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
