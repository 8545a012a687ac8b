"""Which part of a run is load, a step or an evaluation, and when enough has been seen. Pure: the observer says
what happens and when."""

import dataclasses
import math

LOAD, FIRST_STEP, STEADY_STEP, EVALUATION, AFTER = "load", "first_step", "steady_step", "evaluation", "after_steps"
ALIKE_STEPS = 3
ALIKE_SHARE = 0.005  # two peaks are alike that differ by less
MOST_STEPS = 30  # where steps differ, as with texts of any length
WAIT_S = (1.0, 10.0)  # bounds of the time for which an evaluation is awaited, and of its own
EPOCH_WAIT_S = 60.0  # bound of the time for which the end of an epoch is awaited


def _larger(one, other):
    """{device: (allocated, reserved)} with the larger of each."""
    return {device: tuple(map(max, one.get(device, (0, 0)), other.get(device, (0, 0)))) for device in {*one, *other}}


def steps_left(steps, taken, batches):
    """Optimizer steps to the end of an epoch of `batches`, after `steps` with `taken` of them."""
    return math.ceil((batches - taken) / max(1, round(taken / max(steps, 1))))


@dataclasses.dataclass
class _Part:
    """A step with what comes before it, since the step before."""

    begun: bool = False  # a forward or backward pass has
    num_forwards: int = 0  # of modules without gradients, from outside: an evaluation's, or a teacher's
    forward_peaks: dict = dataclasses.field(default_factory=dict)  # while those ran
    step_peaks: dict = dataclasses.field(default_factory=dict)


class Steps:
    """Rules:

    A step ends when an optimizer has stepped; of several, the one that stepped first. Load ends when the first
    forward pass of a module begins. Forward passes without gradients that come before a step are an evaluation
    where there are more of them than before every other step: else they belong to the step, as a teacher's do.
    Enough has been seen after three steps whose peaks are alike, or 30 steps, or the number that was asked for.
    Then an evaluation is awaited, unless one has been seen, for as long as the steps took, at least a second and
    at most ten. Where the epoch is known to end within about ten seconds of processor time, which does not depend on
    what else the machine does, the steps up to the third one of the next epoch are awaited, for a minute at most. An
    evaluation that begins in that time runs until it ends, or for as long again, 20 s at most.
    """

    def __init__(self, wanted=None, wait=WAIT_S):
        self._wanted = wanted
        self._wait = wait
        self._parts = []
        self._part = _Part()
        self._load = {}
        self._in_load = True
        self._forward_only = False
        self._began = None
        self._stepped_at = None  # (time, processor time)
        self._shortest = (math.inf, math.inf)  # from one step to the next: seconds, seconds of processor time
        self._enough_at = None
        self._evaluation_at = None
        self._last_awaited = math.inf  # number of the step after which no evaluation is awaited
        self._late = 0  # of the steps, those that were only seen while an evaluation was awaited

    @property
    def count(self):
        return len(self._parts)

    @property
    def enough(self):
        return self._enough_at is not None

    @property
    def where(self):
        """The phase that runs now."""
        if self._in_load:
            return LOAD
        if self._forward_only and self._is_evaluation(self._part):
            return EVALUATION
        return FIRST_STEP if not self._parts else STEADY_STEP

    def boundary(self, peaks):
        """`peaks` since the last boundary, of what ran until now."""
        if self._in_load:
            self._load = _larger(self._load, peaks)
        elif self._forward_only:
            self._part.forward_peaks = _larger(self._part.forward_peaks, peaks)
        else:
            self._part.step_peaks = _larger(self._part.step_peaks, peaks)

    def forward(self, with_gradients, now):
        """A module's forward pass begins. boundary() was called if changes() said so."""
        if self._in_load:
            self._in_load, self._began = False, now
        self._forward_only = not with_gradients
        self._part.begun = True
        if self._forward_only:
            self._part.num_forwards += 1
            if self.enough and self._evaluation_at is None and self._is_evaluation(self._part):
                self._evaluation_at = now
                self._enough_at = now
                self._patience = min(self._patience, 2 * self._wait[1])

    def changes(self, with_gradients):
        """Whether a forward pass that begins now, with gradients or without, begins another part."""
        return self._in_load or self._forward_only == with_gradients

    def step(self, peaks, now, processor_s, all_optimizers_stepped=True):
        """An optimizer has stepped. `processor_s`: what the program has used until now."""
        self._in_load = False
        self._began = now if self._began is None else self._began
        at = (now, processor_s)
        if self._stepped_at is not None:
            self._shortest = tuple(min(known, end - begin) for known, end, begin in zip(self._shortest, at, self._stepped_at))
        self._stepped_at = at
        self._forward_only = False
        self.boundary(peaks)
        self._parts.append(self._part)
        self._part = _Part()
        if self.enough:
            self._late += 1
        elif self._is_enough(all_optimizers_stepped):
            self._enough_at = now
            self._patience = min(max(now - self._began, self._wait[0]), self._wait[1])

    def expect_end_of_epoch(self, taken, batches):
        """`taken` of the epoch's `batches` have been taken. Called when enough has been seen."""
        left = steps_left(self.count, taken, batches)
        seconds, processor_s = (left * shortest for shortest in self._shortest)
        if seconds <= EPOCH_WAIT_S and processor_s <= self._wait[1]:
            self._patience = EPOCH_WAIT_S
            self._last_awaited = self.count + left + ALIKE_STEPS

    def _is_enough(self, all_optimizers_stepped):
        if self._wanted is not None:
            return self.count >= self._wanted
        return self.count >= MOST_STEPS or (self.alike and all_optimizers_stepped)

    @property
    def alike(self):
        """Whether the last three steps had the same peaks."""
        last = [part.step_peaks for part in self._parts[-ALIKE_STEPS:]]
        return len(last) == ALIKE_STEPS and all(_close(last[0], peaks) for peaks in last[1:])

    @property
    def until(self):
        """The time at which the run may end; None: not known yet."""
        if not self.enough:
            return None
        if self._evaluation_at is None and self._evaluation_parts():
            return self._enough_at
        return self._enough_at + self._patience

    def is_over(self, now):
        """Whether nothing more is to be seen."""
        if not self.enough:
            return False
        over = self._evaluation_at is not None and not self._forward_only
        return over or now >= self.until or self.count >= self._last_awaited

    def _usual_forwards(self):
        """Of passes without gradients before a step, in every step."""
        return min((part.num_forwards for part in self._parts), default=0)

    def _is_evaluation(self, part):
        return part.num_forwards > self._usual_forwards()

    def _evaluation_parts(self):
        return [part for part in self._parts if self._is_evaluation(part)]

    def peaks(self, rest):
        """{phase: {device: (allocated, reserved)}}. `rest`: peaks since the last boundary."""
        self.boundary(rest)
        found = {LOAD: self._load} if self._load else {}
        for number, part in enumerate(self._parts):
            phase = FIRST_STEP if number == 0 else STEADY_STEP
            self._add(found, phase, part)
        last = self._part
        if last.begun or not self._parts:
            self._add(found, STEADY_STEP if self._parts else FIRST_STEP, last)
        elif _exceeds(last.step_peaks, self._parts[-1].step_peaks):
            self._add(found, AFTER, last)
        return found

    def _add(self, found, phase, part):
        other = EVALUATION if self._is_evaluation(part) else phase
        for name, peaks in ((phase, part.step_peaks), (other, part.forward_peaks)):
            if peaks:
                found[name] = _larger(found.get(name, {}), peaks)


def _exceeds(one, other):
    return _larger(one, other) != _larger(other, {})


def _close(one, other):
    return all(abs(a - b) <= ALIKE_SHARE * max(a, b)
               for device in {*one, *other}
               for a, b in zip(one.get(device, (0, 0)), other.get(device, (0, 0))))
