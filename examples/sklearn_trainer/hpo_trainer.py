"""Makes your Python program a trainer for hpo-worker. Copy this file beside it; nothing to install.

    import hpo_trainer

    def train(job, report):
        for step, loss in ...:
            report(step=step, epoch=step / 10, macro_f1=score)   # raises Stopped when it must end
        return {"macro_f1": score}                               # the trial's result

    hpo_trainer.main(train)

`job` holds params (typed), train_path, validation_path, labels, epochs, seed, output_dir, limit_bytes
and more: docs/TRAINER_PROTOCOL.md. Raise OutOfMemory, BadData or any exception to end a trial badly.
What torch used of the card is told by itself; a program without torch calls used(bytes). From that
the server learns which configurations fit, and stops proposing others.
"""
import json
import math
import os
import select
import socket
import sys
import traceback


class Stopped(Exception):
    """The server or the worker wants this trial to end: let it pass through your code."""


class OutOfMemory(Exception):
    """This configuration does not fit; the sampler learns from it."""


class BadData(Exception):
    """The data file or its labels are wrong; no other configuration will do better."""


peak_bytes = 0


def used(num_bytes):
    """Tells how much memory the trial has used so far; the most of several calls counts."""
    global peak_bytes  # pylint: disable=global-statement
    peak_bytes = max(peak_bytes, int(num_bytes))


def cuda():
    """torch.cuda, where the program trains with torch on a card."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch and torch.cuda.is_available() else None


def start_counting():
    global peak_bytes  # pylint: disable=global-statement
    peak_bytes = 0
    if cuda():
        cuda().reset_peak_memory_stats()


def memory():
    if peak_bytes or not cuda():
        return {"live_peak_bytes": peak_bytes}
    return {"live_peak_bytes": cuda().max_memory_allocated(),
            "reserved_peak_bytes": cuda().max_memory_reserved()}


class Channel:
    """JSON lines, both ways, on the socket that the worker handed over."""

    def __init__(self):
        self.socket = socket.socket(fileno=int(os.environ.get("HPO_TRAINER_FD", "3")))
        self.unread = b""

    def send(self, **message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self):
        while b"\n" not in self.unread:
            data = self.socket.recv(65536)
            if not data:
                return {"type": "shutdown", "reason": "the worker is gone"}
            self.unread += data
        line, self.unread = self.unread.split(b"\n", 1)
        return json.loads(line)

    def stop_reason(self):
        """Why to stop, if the worker has asked for it; does not wait."""
        if b"\n" in self.unread or select.select([self.socket], [], [], 0)[0]:
            return self.receive().get("reason", "shutdown")
        return None


def plain(metrics):
    """Numbers as JSON has them: no numpy types; what is not finite becomes null."""
    return {name: float(x) if math.isfinite(x) else None for name, x in metrics.items()}


def run_trial(channel, job, train):
    last = {"step": 0, "metrics": {}}

    def report(step, epoch=0.0, **metrics):
        last.update(step=step, metrics=plain(metrics))
        channel.send(type="measurement", epoch=epoch, **last)
        reason = channel.stop_reason()
        if reason:
            raise Stopped(reason)

    try:
        return {"kind": "completed", "metrics": plain(train(job, report))}
    except Stopped as stopped:
        if str(stopped) != "pruned":
            return None
        return {"kind": "stopped_by_pruner", "pruner": "", **last}
    except (OutOfMemory, MemoryError) as error:
        traceback.print_exc()
        return {"kind": "out_of_memory", "error_message": str(error)}
    except BadData as error:
        return {"kind": "failed", "class": "BAD_DATA", "message": str(error)}
    except Exception as error:  # pylint: disable=broad-except  (the trial fails, the worker goes on)
        traceback.print_exc()
        if type(error).__name__ == "OutOfMemoryError":  # torch's, which is not imported here
            return {"kind": "out_of_memory", "error_message": str(error)}
        return {"kind": "failed", "class": "INTERNAL", "message": repr(error)}


def main(train):
    channel = Channel()
    channel.send(type="hello", version=1, program=os.path.basename(sys.argv[0]),
                 capabilities=["stop", "reuse"])
    while (message := channel.receive())["type"] != "shutdown":
        if message["type"] == "job":
            start_counting()
            outcome = run_trial(channel, message, train)
            channel.send(type="outcome", outcome=outcome, memory=memory())
