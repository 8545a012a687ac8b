"""Our programs on a card that is not there (scripts/with_emulated_card): one program to its end, or a warm trainer
that runs one job after another."""

import json
import os
import pathlib
import signal
import socket
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
WITH_CARD = str(ROOT / "scripts" / "with_emulated_card")
CARDS = ("t4", "rtx3060", "l4", "a100", "h100", "h200")
# The model that is measured has no cuDNN attention, which torch prefers on an H100 (docs/gpu/OWED.md).
ENVIRONMENT = {**os.environ, "TORCH_CUDNN_SDPA_DEPRIORITIZED": "1", "PYTORCH_ALLOC_CONF": ""}
ALLOCATORS = {"default": "", "expandable": "expandable_segments:True"}
SECONDS_TO_END = 10


def on_card(build, card, *command):
    return [WITH_CARD, "--build", build, card, *command]


def end(process):
    """The program with all that it started, which gets a moment to tidy up."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
            process.wait(SECONDS_TO_END)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    process.wait()


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it says nothing"


def run(command, seconds, allocator="", statuses=(0,)):
    """What the program printed. RuntimeError, with its last words: its status is another, or it took longer than
    `seconds`."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env={**ENVIRONMENT, "PYTORCH_ALLOC_CONF": allocator}, start_new_session=True)
    try:
        output, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as too_long:
        raise RuntimeError(f"not done after {seconds} s: {' '.join(command)}") from too_long
    finally:
        end(process)
    if process.returncode not in statuses:
        raise RuntimeError(f"status {process.returncode}: {' '.join(command)}: {last_line(complaint)}")
    return output


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Trainer:
    """hpo-trainer on a card, spoken to as hpo-worker does; started again where it has ended."""

    def __init__(self, build, card, folder, job_seconds):
        program = os.path.join(build, "bin", "hpo-trainer")
        self.command = on_card(build, card, program, "--threads", "1", "--log-level", "error", "--token-cache", "none")
        self.complaints = folder / "trainer.log"
        self.job_seconds = job_seconds
        self.process = None
        self.lines = None
        self.socket = None

    def start(self):
        """The channel is standard input: what else is open does not pass through with_emulated_card."""
        ours, theirs = socket.socketpair()
        with open(self.complaints, "w", encoding="utf-8") as complaints:
            self.process = subprocess.Popen(self.command, stdin=theirs, stdout=complaints, stderr=complaints,
                                            env={**ENVIRONMENT, "HPO_TRAINER_FD": "0"},
                                            start_new_session=True)
        theirs.close()
        ours.settimeout(self.job_seconds)
        self.socket = ours
        self.lines = ours.makefile("r", encoding="utf-8")

    def run(self, job):
        """All that the trainer says of the job, the outcome last. RuntimeError: it ended, or takes too long."""
        if self.process is None:
            self.start()
        said = []
        try:
            self.socket.sendall((json.dumps(job) + "\n").encode())
            for line in self.lines:
                said.append(json.loads(line))
                if said[-1]["type"] == "outcome":
                    if not said[-1].get("clean", True):
                        self.close()
                    return said
        except TimeoutError as too_long:
            self.close()
            raise RuntimeError(f"it says nothing more for {self.job_seconds} s") from too_long
        except OSError:  # the pipe is broken
            pass
        self.close()
        raise RuntimeError(last_line(self.complaints.read_text(encoding="utf-8", errors="replace")))

    def close(self):
        """It ends with the channel."""
        if self.process is None:
            return
        self.lines.close()
        self.socket.close()
        try:
            self.process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            pass
        end(self.process)
        self.process = None
