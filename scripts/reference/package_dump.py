#!/usr/bin/env python3
"""Writes tests/golden/criteria/packages.txt: an invented `apt-cache dumpavail` for
tests/worker/text/prepare_criteria_data_test.py. No real package is in it."""

import pathlib
import random

OUTPUT = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/criteria/packages.txt"
SEED = 20261121
SOURCES = 260
SYLLABLES = ["ba", "ko", "mi", "ru", "ten", "lor", "va", "zi", "pel", "dun"]
# Kind of package: tags, section, what its description says.
KINDS = [
    ("interface::commandline, role::program", "utils", "command line tool that {verb} {thing}"),
    ("interface::graphical, interface::x11,\n role::program", "x11", "window to see how it {verb} {thing}"),
    ("use::gameplaying, interface::graphical", "universe/games", "puzzle game in which one {verb} {thing}"),
    ("role::shared-lib", "libs", "library of routines that {verb} {thing}"),
    ("role::documentation, use::learning", "doc", "manual about whoever {verb} {thing}"),
    ("works-with::{audio,file}, use::editing", "sound", "sound studio that {verb} {thing}"),
    ("works-with::text, use::editing", "text", "paragraph editor that {verb} {thing}"),
]
VERBS = ["sorts", "paints", "counts", "moves", "finds", "folds", "weighs", "joins", "hides"]
THINGS = ["stones", "rivers", "letters", "maps", "clocks", "boats", "chairs", "numbers", "birds"]


def main():
    rng = random.Random(SEED)
    stanzas, names = [], set()
    while len(names) < SOURCES:
        names.add("".join(rng.choice(SYLLABLES) for _ in range(3)))
    for index, source in enumerate(sorted(names)):
        tags, section, phrase = KINDS[index % len(KINDS)]
        for suffix in ["", "-extra"][:1 + index % 2]:
            words = phrase.format(verb=rng.choice(VERBS), thing=rng.choice(THINGS))
            lines = [f"Package: {source}{suffix}", "Version: 1.0-1", f"Section: {section}"]
            if suffix:
                lines.append(f"Source: {source} (1.0-0)")
            lines.append(f"Description: {words}, by {source} number {index}{suffix}")
            lines.append(f"Tag: {tags}")
            stanzas.append("\n".join(lines))
    stanzas.append("Package: old-name\nSection: utils\nDescription: transitional dummy package\n"
                   "Tag: interface::commandline")
    stanzas.append("Package: terse\nSection: utils\nDescription: tool\nTag: interface::commandline")
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text("\n\n".join(stanzas) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
