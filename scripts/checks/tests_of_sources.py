"""Every test is in a target, and every source of some length has a test that is known by its name."""

import re

from . import cmake_targets, tree

LONG = 100  # lines
# In a source whose test has another name: "// Tested by tests/server/api/study_api_test.cc."
TESTED_BY = re.compile(r"^// Tested by (tests/[\w/.-]+)\.$", re.MULTILINE)


def tests_in_no_target():
    tests = [name for name in tree.sources("tests") if name.endswith("_test.cc")]
    return [f"target: {name} is in no target" for name in cmake_targets.sources_in_no_target(tests)]


def long_sources():
    return [name for name in tree.sources(*tree.PRODUCT)
            if name.endswith(".cc") and tree.text(name).count("\n") >= LONG
            and not re.search(r"^int main\(", tree.text(name), re.MULTILINE)]


def untested():
    """Long sources without tests/THEIR/PATH_test.cc, and those that name a test that is not there."""
    lines = []
    for name in long_sources():
        told = TESTED_BY.findall(tree.text(name))
        lines += [f"test: {name} names {test}, which is not there" for test in told
                  if test not in tree.files()]
        if not told and f"tests/{name.removesuffix('.cc')}_test.cc" not in tree.files():
            lines.append(f"test: {name} has {LONG} lines or more and no test of its name")
    return lines
