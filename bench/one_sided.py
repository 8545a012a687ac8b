"""Whether a sample is worse than another one, or than a median: one-sided tests, and many of them at once."""

import math

LEVEL = 0.05


def normal_above(z):
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def p_larger(ours, theirs):
    """Probability, were both of one kind, that ours are as much larger as they are: Mann and Whitney's test by the
    normal distribution, with its corrections for ties and for continuity. 1 where all are equal."""
    both = sorted(ours + theirs)
    first = {}
    counts = {}
    for position, value in enumerate(both):
        first.setdefault(value, position)
        counts[value] = counts.get(value, 0) + 1
    rank_sum = sum(first[value] + (counts[value] + 1) / 2 for value in ours)
    a, b, n = len(ours), len(theirs), len(both)
    above = rank_sum - a * (a + 1) / 2 - a * b / 2
    ties = sum(count**3 - count for count in counts.values()) / (n * (n - 1))
    variance = a * b / 12 * (n + 1 - ties)
    return normal_above((above - 0.5) / math.sqrt(variance)) if variance > 0 else 1.0


def p_above(ours, median):
    """Probability, were `median` theirs too, that as many of ours lie above it: the sign test."""
    signs = [value > median for value in ours if value != median]
    return sum(math.comb(len(signs), above) for above in range(sum(signs), len(signs) + 1)) / 2 ** len(signs)


def holm(ps):
    """Adjusted so that the chance of any of them being at most LEVEL by accident is LEVEL."""
    adjusted = [0.0] * len(ps)
    most = 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        most = max(most, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = most
    return adjusted
