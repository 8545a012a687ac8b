"""What the trials of resumable.py have done: by the lines of their ledgers."""

import collections
import pathlib


def attempts(folder):
    """{trial: [(step that it began from, last step that it did), ...]} in the order of the attempts."""
    found = collections.defaultdict(list)
    for path in sorted(pathlib.Path(folder).iterdir()):
        words = [line.split() for line in path.read_text().splitlines()]
        begin = next(int(line[1]) for line in words if line[0] == "from")
        steps = [int(line[1]) for line in words if line[0] == "step"]
        found[int(path.name.split("-")[0])].append((begin, steps[-1] if steps else begin))
    return dict(found)


def steps_lost(folder):
    """The number of steps that each attempt but a trial's first one had to repeat."""
    lost = []
    for each in attempts(folder).values():
        lost += [max(0, end - begin) for (_, end), (begin, _) in zip(each, each[1:])]
    return lost
