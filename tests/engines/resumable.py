#!/usr/bin/env python3
"""A trial that survives: it counts steps, saves the count every few steps and when it is told to end, and goes on
from the saved count in its next attempt. Beside that it keeps a ledger, a line for each step that it has done, by
which a test can tell what work was done twice.

usage: resumable.py --x X --steps N --pace SECONDS --every K --checkpoints DIR --ledger DIR --trial N --attempt N
"""

import argparse
import os
import pathlib
import signal
import sys
import time


def read_options():
    parser = argparse.ArgumentParser()
    for name, kind in (("x", float), ("steps", int), ("pace", float), ("every", int), ("checkpoints", pathlib.Path),
                       ("ledger", pathlib.Path), ("trial", int), ("attempt", int)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    return parser.parse_args()


class Saved:
    """The number of steps that are done, in a file of the folder that all attempts of the trial share."""

    def __init__(self, folder, attempt):
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "steps"
        self._aside = folder / f"steps.{attempt}"

    def read(self):
        return int(self._path.read_text()) if self._path.exists() else 0

    def write(self, steps):
        self._aside.write_text(str(steps))
        os.replace(self._aside, self._path)


def main():
    options = read_options()
    told_to_end = []
    signal.signal(signal.SIGTERM, lambda *_: told_to_end.append(True))
    saved = Saved(options.checkpoints, options.attempt)
    done = saved.read()
    options.ledger.mkdir(parents=True, exist_ok=True)
    with open(options.ledger / f"{options.trial:04}-{options.attempt:03}", "a", encoding="ascii", buffering=1) as ledger:
        print(f"from {done} {os.environ.get('SLURMD_NODENAME', '-')}", file=ledger)
        while done < options.steps:
            time.sleep(options.pace)
            done += 1
            print(f"step {done}", file=ledger)
            if told_to_end:
                saved.write(done)
                print(f"saved {done}", file=ledger)
                sys.exit(143)
            if done % options.every == 0:
                saved.write(done)
    print({"loss": (options.x - 0.3) ** 2})


if __name__ == "__main__":
    main()
