"""Torch's own caching allocator against our model of it over random traces: tests/emulator/compare_allocators."""

import os

from emulated import card as emulated_card
import figures

SECONDS = 600
SEED = 20


def judged(build, traces, at_once):
    program = os.path.join(build, "tests", "compare_allocators")
    printed = emulated_card.run([program, "--traces", str(traces), "--seed", str(SEED), "--jobs", str(at_once)],
                                SECONDS, statuses=(0, 1))
    counts = emulated_card.json_lines(printed)[-1]
    if counts["traces"] != traces:
        raise RuntimeError(f"expected {traces} traces, got {counts['traces']}")
    return [figures.at_most("allocator_traces_that_differ", counts["traces_that_differ"], f"of {traces} traces", 0)]
