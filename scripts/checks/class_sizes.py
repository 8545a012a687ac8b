"""Lines of each class with all its parts: its body, its nested types and its methods' definitions."""

import collections
import re

from . import tree

MAX_CLASS_LINES = 250
OPENS = re.compile(r"^[ ]*(?:template\s*<[^{;]*>\s*)?(?:class|struct)\s+(?:[A-Z_]{4,}(?:\([^)]*\))?\s+)?(?:\w+::)*(\w+)\b(?!::)[^;{}()=]*\{",
                   re.MULTILINE)
METHOD = re.compile(r"^(?!\s)(?:[^\n;{}#/]*[\s&*])??(\w+)(?:<[^<>]*>)?::~?[\w:]+(?:\s*[=<>!+\-*\[\]()]+)?\(", re.MULTILINE)


def end_of_block(code, opening):
    """The place of the brace that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return len(code)


def end_of_definition(code, start):
    """Where the function that starts there ends, or `start` for a declaration."""
    brace = code.find("{", start)
    semicolon = code.find(";", start)
    if brace < 0 or 0 <= semicolon < brace:
        return start
    # Members that are initialized with braces come before the body, which starts at the end of a line.
    while code[brace + 1:brace + 2] not in ("\n", "}") and brace >= 0:
        after = end_of_block(code, brace)
        following = re.match(r"\s*[,{]", code[after + 1:])
        if not following:
            return after
        brace = code.find("{", after + 1)
    return end_of_block(code, brace)


def bodies(code):
    """(name, start, end) of each class, nested ones are part of theirs."""
    found, end = [], -1
    for opened in OPENS.finditer(code):
        if opened.start() < end or re.search(r"enum\s*$", code[:opened.start()]):
            continue
        end = end_of_block(code, opened.end() - 1)
        found.append((opened.group(1), opened.start(), end))
    return found


def sizes():
    """Lines by class, as (file of its body, name): lines."""
    lines, homes = collections.Counter(), collections.defaultdict(list)
    for name in tree.sources(*tree.PRODUCT):
        code = tree.code(name)
        for own, start, end in bodies(code):
            lines[(name, own)] += code.count("\n", start, end) + 1
            homes[own].append(name)
    for name in tree.sources(*tree.PRODUCT):
        code = tree.code(name)
        for found in METHOD.finditer(code):
            own = found.group(1)
            near = [home for home in homes.get(own, ()) if home == name or home in
                    {included for _, included in tree.includes(name)}]
            if near:
                end = end_of_definition(code, found.end())
                lines[(near[0], own)] += code.count("\n", found.start(), end) + 1 if end > found.end() else 0
    return lines


def findings():
    return [f"class: {own} of {name} has {count} lines with all its parts (limit {MAX_CLASS_LINES})"
            for (name, own), count in sorted(sizes().items()) if count > MAX_CLASS_LINES]
