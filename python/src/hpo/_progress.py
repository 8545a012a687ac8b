"""How a search stands: a bar in a terminal and in a notebook, lines in a log; and what it waits for."""

import contextlib
import importlib
import importlib.util
import shutil
import sys
import threading
import time
from typing import Any, Callable, Optional, Protocol

from . import _wire

SILENT_S = 10.0  # without an event: then it is said what is waited for
_AGAIN_S = 13.0
_RUNNING_AGAIN_S = 60.0  # where trials only take their time
_OFTEN_S = 300.0


class View(Protocol):
    """One place to show things. `status`: the line that changes; `line`: one that stays."""

    def status(self, text: str, ended: int) -> None: ...

    def line(self, text: str) -> None: ...

    def close(self) -> None: ...


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # who reads it has gone: the search goes on
        sys.stderr.write(text)
        sys.stderr.flush()


class _Lines:
    """A log: only lines that stay."""

    def status(self, text: str, ended: int) -> None:
        pass

    def line(self, text: str) -> None:
        _write(text + "\n")

    def close(self) -> None:
        pass


class _Terminal:
    """A line that is written over."""

    def __init__(self) -> None:
        self._text = ""

    def status(self, text: str, ended: int) -> None:
        text = text[:shutil.get_terminal_size().columns - 1]  # one that wraps could not be written over
        if text != self._text:
            self._text = text
            _write(f"\r\x1b[K{text}")

    def line(self, text: str) -> None:
        _write(f"\r\x1b[K{text}\n{self._text}")

    def close(self) -> None:
        _write("\n")


class _Bar:
    """tqdm's."""

    def __init__(self, tqdm: Any, total: "int | None", ended: int) -> None:
        count = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}" if total else "{n_fmt} trials"
        self._bar: Any = tqdm.tqdm(total=total, initial=ended, file=sys.stderr,
                                   ncols=shutil.get_terminal_size().columns,
                                   bar_format=count + " in {elapsed}{postfix}")

    def status(self, text: str, ended: int) -> None:
        if ended > self._bar.n:
            self._bar.update(ended - self._bar.n)
        self._bar.set_postfix_str(text.partition(" trials ended, ")[2])  # the bar counts them itself

    def line(self, text: str) -> None:
        self._bar.write(text, file=sys.stderr)

    def close(self) -> None:
        self._bar.close()


class _Notebook:
    """A line below the cell that changes, and the last lines that stay."""

    _KEPT = 5

    def __init__(self, display: Any) -> None:
        self._lines: "list[str]" = []
        self._text = ""
        self._handle: Any = display({"text/plain": "hpo"}, raw=True, display_id=True)

    def status(self, text: str, ended: int) -> None:
        if text != self._text:
            self._text = text
            self._show()

    def line(self, text: str) -> None:
        self._lines = [*self._lines, text][-self._KEPT:]
        self._show()

    def _show(self) -> None:
        self._handle.update({"text/plain": "\n".join([*self._lines, self._text])}, raw=True)

    def close(self) -> None:
        pass


def in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    current = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return type(current).__name__ == "ZMQInteractiveShell"


def view_of(total: "int | None", ended: int) -> View:
    if in_notebook():
        return _Notebook(importlib.import_module("IPython.display").display)
    if not sys.stderr.isatty():
        return _Lines()
    if importlib.util.find_spec("tqdm") is not None:
        return _Bar(importlib.import_module("tqdm"), total, ended)
    return _Terminal()


def counts_of(study: Any) -> "tuple[int, int | None]":
    """How many trials of a message Study have ended, and of how many."""
    counts = study.counts
    ended = int(counts.completed + counts.pruned + counts.failed + counts.cancelled)
    return ended, int(study.budget.trials) if study.budget.HasField("trials") else None


class Progress:
    """Safe from any thread. `waits()`: what is waited for, and whether that is only running trials."""

    def __init__(self, study: Any, view: "Optional[View]", waits: "Callable[[], tuple[str, bool]]") -> None:
        """`study`: the message Study at the start. `view`: None shows nothing."""
        self._lock = threading.Lock()
        self._view, self._waits = view, waits
        self._ended, self._total = counts_of(study)
        self._since_start = 0
        goal = study.objectives[0]
        self._sign = -1.0 if _wire.name("Direction", goal.direction) == "maximize" else 1.0
        self._best = float(study.best_value) if study.HasField("best_value") and len(study.objectives) == 1 else None
        self._best_trial = int(study.best_trial) if self._best is not None else -1
        self._shows_best = len(study.objectives) == 1
        self._running: "dict[int, float]" = {}
        self._begin = self._last_event = self._last_said = time.monotonic()

    def started(self, trial: int) -> None:
        with self._lock:
            self._running[trial] = time.monotonic()
            self._event()

    def ended(self, trial: int, state: str, value: "float | None", line: str) -> None:
        """`value`: the objective's of one that completed."""
        with self._lock:
            self._running.pop(trial, None)
            self._event()
            if state not in ("queued", "lost"):
                self._ended += 1
                self._since_start += 1
            if state == "completed" and value is not None and (
                    self._best is None or self._sign * value < self._sign * self._best):
                self._best, self._best_trial = value, trial
            if self._view is not None and (isinstance(self._view, _Lines) or state != "completed"):
                self._view.line(line)
            self._show()

    def said(self, text: str) -> None:
        with self._lock:
            self._event()
            if self._view is not None:
                self._view.line(text)

    def tick(self) -> None:
        """Now and then: shows what is waited for where nothing has happened for a while."""
        now = time.monotonic()
        with self._lock:
            if self._view is None or now - self._last_event < SILENT_S:
                return
            text, only_running = self._waits()
            rare = only_running and now - self._last_event > _OFTEN_S
            if isinstance(self._view, _Lines):
                if now - self._last_said >= (_RUNNING_AGAIN_S if rare else _AGAIN_S) or \
                        self._last_said < self._last_event + SILENT_S:
                    self._last_said = now
                    self._view.line(f"waits: {text}; {self._standing()}")
            elif now - self._last_said >= 1:
                self._last_said = now
                self._show(f"; {text}")

    def close(self) -> None:
        with self._lock:
            if self._view is not None:
                self._show()
                self._view.close()

    def _event(self) -> None:
        self._last_event = self._last_said = time.monotonic()

    def _show(self, more: str = "") -> None:
        if self._view is not None:
            self._view.status(self._standing() + more, self._ended)

    def _standing(self) -> str:
        """How many trials ended and run, the best value so far and the time that is left."""
        of = f" of {self._total}" if self._total else ""
        parts = [f"{self._ended}{of} trials ended, {len(self._running)} running"]
        if self._best is not None and self._shows_best:
            parts.append(f"best {self._best:.6g} (trial {self._best_trial})")
        if self._total and self._since_start and self._ended < self._total:
            spent = time.monotonic() - self._begin
            parts.append(f"about {_readable(spent / self._since_start * (self._total - self._ended))} left")
        return ", ".join(parts)


def _readable(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
