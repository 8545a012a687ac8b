"""What runs of bench/search come to: medians over common instances, ratios to peers, figures.

Runs are {(part, function, instance): {count of trials: regret}}, by sampler. `starts` has the median regret of ten
random configurations of each key: what is below FLOOR of it counts as that.
"""

import collections
import math
import statistics

import figures
import one_sided

FLOOR = 1e-4
LEVEL = 1.05  # no worse: up to this ratio
OWN_LEVEL = 1.1
CHECKPOINTS = [100, 200, 500, 1000]

# Of a function at a count of trials: our median over the instances that both have, the peer's, how many they are.
Compared = collections.namedtuple("Compared", "ours theirs instances")


def floored(runs, starts, key, count):
    return max(runs[key][count], FLOOR * starts[key])


def compared(ours, theirs, starts, count):
    """By part and function."""
    common = collections.defaultdict(list)
    for key in sorted(ours):
        if key in theirs and count in ours[key] and count in theirs[key]:
            common[key[:2]].append(key)
    return {
        function: Compared(*(statistics.median(floored(runs, starts, key, count) for key in keys)
                             for runs in (ours, theirs)), len(keys))
        for function, keys in common.items()
    }


def ratio(pair):
    """Of our median to theirs; where both are infinite, nothing was found, 1."""
    if math.isinf(pair.ours) or math.isinf(pair.theirs):
        return 1.0 if pair.ours == pair.theirs else pair.ours / pair.theirs
    return pair.ours / pair.theirs


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else math.nan


def best_peers(ours, peers, starts, count):
    """By part and function, the peer that ours is worst against: its name and what was compared."""
    best = {}
    for name, runs in peers.items():
        for function, pair in compared(ours, runs, starts, count).items():
            if function not in best or ratio(pair) > ratio(best[function][1]):
                best[function] = name, pair
    return best


def best_single_peer(ours, peers, starts, count):
    """The peer, of those with runs of every function of ours, with the largest geometric mean of ours to it."""
    functions = {key[:2] for key in ours}
    means = []
    for name, runs in peers.items():
        pairs = compared(ours, runs, starts, count)
        if set(pairs) == functions:
            means.append((geometric_mean([ratio(pair) for pair in pairs.values()]), name))
    return max(means, default=(math.nan, "no peer has every function"))


def paired(ours, theirs, starts, count):
    """How many runs are better, level (within LEVEL) and worse than the other's on the same instance."""
    found = [0, 0, 0]
    for key in ours:
        if key in theirs and count in ours[key] and count in theirs[key]:
            of_run = ratio(Compared(floored(ours, starts, key, count), floored(theirs, starts, key, count), 1))
            found[0 if of_run < 1.0 / LEVEL else 1 if of_run <= LEVEL else 2] += 1
    return found


def at_most(name, value, unit, goal):
    """None where nothing was compared."""
    known = not math.isnan(value)
    return figures.figure(name, value if known else None, unit, f"<= {goal}", value <= goal if known else None)


def at_least(name, value, unit, goal):
    known = not math.isnan(value)
    return figures.figure(name, value if known else None, unit, f">= {goal}", value >= goal if known else None)


def share(flags):
    flags = list(flags)
    return sum(flags) / len(flags) if flags else math.nan


def of_part(runs, *parts):
    return {key: run for key, run in runs.items() if key[0] in parts}


def against_peers(name, ours, peers, starts, with_means):
    """`ours` and `peers` of one part."""
    at_end = best_peers(ours, peers, starts, 200)
    no_worse = share(ratio(pair) <= LEVEL for _, pair in at_end.values())
    found = [at_least(f"{name}_no_worse_share", no_worse, "", 0.8)]
    for count in (50, 100, 200) if with_means else ():
        mean, peer = best_single_peer(ours, peers, starts, count)
        found.append(at_most(f"{name}_mean_ratio_{count}", mean, f"of {peer}", 0.8))
    if with_means:
        worst = max((ratio(pair) for _, pair in at_end.values()), default=math.nan)
        found.append(at_most(f"{name}_worst_ratio_200", worst, "", 5))
    return found


def in_optuna(ours, peers, starts, trials):
    """The better peer of each function is the one that ours is worst against."""
    best = best_peers(ours, peers, starts, trials)
    mean = geometric_mean([ratio(pair) for _, pair in best.values()])
    return [at_most(f"hpo_sampler_mean_ratio_{trials}", mean, "of the better peer", 0.8)]


def keeps_its_own(samplers, starts):
    best = best_peers(samplers["auto"], {name: samplers[name] for name in ("gp", "tpe")}, starts, 200)
    value = share(ratio(pair) <= OWN_LEVEL for _, pair in best.values())
    return at_least("auto_keeps_its_own_share", value, "", 0.9)


def p_worse(ours, theirs, starts, function, count):
    """Of the sign test over the common instances of a function that ours has the larger regrets."""
    differences = [floored(ours, starts, key, count) - floored(theirs, starts, key, count)
                   for key in ours if key[:2] == function and key in theirs]
    return one_sided.p_above([d for d in differences if not math.isnan(d)], 0.0)


def tpe_no_worse(ours, theirs, starts):
    functions = sorted(compared(ours, theirs, starts, 200))
    value = share(p_worse(ours, theirs, starts, function, 200) > one_sided.LEVEL for function in functions)
    return at_least("tpe_no_worse_share", value, "", 1.0)


def convex_quadratics(ours, starts):
    near = sum(run[200] < 0.01 * starts[key] for key, run in ours.items())
    return at_least("convex_quadratics", near, f"of {len(ours)}", len(ours))


def curves_no_worse(ours, peers, starts):
    """How many tables have a peer that is better by the rank test, after any of CHECKPOINTS."""
    worse = set()
    for runs in peers.values():
        for count in CHECKPOINTS:
            for function in compared(ours, runs, starts, count):
                regrets = [[floored(of, starts, key, count) for key in of if key[:2] == function]
                           for of in (ours, runs)]
                if one_sided.p_larger(*regrets) <= one_sided.LEVEL:
                    worse.add(function)
    functions = {key[:2] for key in ours}
    return at_most("curves_no_worse", len(worse) if peers else math.nan, f"worse of {len(functions)}", 0)


def suggest_ms(times):
    """Processor time of a suggestion after so many trials: the median run's mean of the 20 before."""
    found = []
    for count, goal in ((100, 25), (200, 40), (500, 80)):
        means = [statistics.fmean(of_run[count - 20:count]) for of_run in times if len(of_run) >= count]
        if means:
            found.append(at_most(f"auto_suggest_ms_{count}", statistics.median(means), "ms", goal))
    return found


def measured(samplers, peers, starts, times):
    """The figures of the parts and samplers that were run; `times` of suggestions in ms, by sampler and key."""
    found = []
    auto = samplers.get("auto", {})
    for part, name, with_means in (("bbob5", "bbob_5d", True), ("bbob10", "bbob_10d", False),
                                   ("variants", "variants", True)):
        ours = of_part(auto, part)
        if ours:
            theirs = {peer: of_part(runs, part) for peer, runs in peers.items()}
            found += against_peers(name, ours, theirs, starts, with_means)
    if {"auto", "gp", "tpe"} <= set(samplers):
        own = {name: of_part(runs, "bbob5", "variants") for name, runs in samplers.items()}
        if own["auto"]:
            found.append(keeps_its_own(own, starts))
    tpe = of_part(samplers.get("tpe", {}), "bbob5", "variants")
    if tpe:
        found.append(tpe_no_worse(tpe, peers.get("optuna-tpe", {}), starts))
    if of_part(auto, "quadratics"):
        found.append(convex_quadratics(of_part(auto, "quadratics"), starts))
    if of_part(auto, "thousand"):
        pairs = compared(of_part(auto, "thousand"), peers.get("optuna-tpe", {}), starts, 1000)
        mean = geometric_mean([ratio(pair) for pair in pairs.values()])
        found.append(at_most("bbob_20d_mean_ratio_1000", mean, "of optuna-tpe", 1.0))
    if of_part(auto, "curves"):
        found.append(curves_no_worse(of_part(auto, "curves"),
                                     {name: of_part(runs, "curves") for name, runs in peers.items() if "+" in name}, starts))
    if auto:
        found += suggest_ms(times.get("auto", {}).values())
    return found
