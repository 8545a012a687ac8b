"""The largest value of a number in the command with which the program fits."""

import dataclasses
import math
import re

from .errors import UsageError


EXACT_TO = 256
MOST_GROWTH = 4  # from one try to the next: memory may grow faster than on the line through two tries


@dataclasses.dataclass(frozen=True)
class Range:
    name: str
    low: int
    high: int

    def put(self, value, command):
        return [word.replace("{" + self.name + "}", str(value)) for word in command]


@dataclasses.dataclass(frozen=True)
class Try:
    value: int
    fits: bool
    usable_bytes: int = 0  # by torch's allocator
    reserved_bytes: int = 0
    allocated_bytes: int = 0
    retries: int = 0


def parse(text, command):
    """`text` as "batch=1:512"; the command must hold {batch}."""
    found = re.fullmatch(r"(\w+)=(\d+):(\d+)", text)
    if not found:
        raise UsageError(f"--largest: expected NAME=LOW:HIGH, such as batch=1:512, got '{text}'")
    name, low, high = found[1], int(found[2]), int(found[3])
    if low > high:
        raise UsageError(f"--largest: expected LOW of at most HIGH, got {low}:{high}")
    if not any("{" + name + "}" in word for word in command):
        raise UsageError(f"--largest: expected {{{name}}} in the command, got '{' '.join(command)}'")
    return Range(name, low, high)


class Search:
    """Secant on the measured peaks, then halves, until a value fits and the next one does not.

    It holds that a larger value needs no less memory. Reserved bytes grow with the value until torch frees its
    cache to stay within the limit; allocated bytes bound how far that can go. Beyond EXACT_TO the next one is
    1/EXACT_TO larger.
    """

    def __init__(self, bounds):
        self._bounds = bounds
        self._good = bounds.low - 1
        self._bad = bounds.high + 1
        self._points = []
        self.tries = []

    @property
    def smallest_that_fails(self):
        """Of those that were tried; None: all fit."""
        return self._bad if self._has_failed() else None

    @property
    def largest(self):
        """None: not even the lowest value fits."""
        return self._good if self._good >= self._bounds.low else None

    def next(self):
        """The value to try; None: the search is over."""
        if not self.tries:
            return self._bounds.low
        if self.largest is None or self._bad - self._good <= max(1, self._good // EXACT_TO):
            return None
        if len(self._points) < 2:
            middle = math.isqrt(max(self._good, 1) * (self._bad - 1))
            return min(max(middle, self._good + 1), self._bad - 1)
        for guess in (self._reaches("reserved_bytes"), self._reaches("allocated_bytes") + 1):
            guess = min(guess, MOST_GROWTH * self._good)
            if guess > self._bounds.high and not self._has_failed():
                return self._bounds.high
            if self._good < guess < self._bad:
                return guess
        return (self._good + self._bad) // 2

    def add(self, tried):
        self.tries.append(tried)
        if not tried.fits:
            self._bad = min(self._bad, tried.value)
            return
        self._good = max(self._good, tried.value)
        if not tried.retries:
            self._points = sorted([*self._points, tried], key=lambda one: one.value)

    def _has_failed(self):
        return self._bad <= self._bounds.high

    def _reaches(self, measure):
        """The value at which `measure` reaches the usable bytes, on the line through two tries."""
        last, before = self._points[-1], self._points[-2]
        if last.value - before.value < last.value // 10:  # too near each other for a slope
            before = self._points[0]
        grown = getattr(last, measure) - getattr(before, measure)
        if grown <= 0:
            return self._bounds.high + 1
        left = last.usable_bytes - getattr(last, measure)
        return last.value + left * (last.value - before.value) // grown
