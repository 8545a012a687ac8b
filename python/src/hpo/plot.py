"""Plots of a study by matplotlib: each returns the Axes, of which .figure.savefig("file.png") writes a file."""

import importlib
import math
from typing import Any, Sequence

from .errors import HpoError, InvalidInput
from .findings import importance_messages, read_columns
from .records import TrialRecord
from .space import Domain
from .study import Study

_GREY = "0.75"


def _axes(ax: Any, title: str) -> Any:
    """`ax`: to draw on; None: a new one."""
    if ax is None:
        try:
            pyplot: Any = importlib.import_module("matplotlib.pyplot")
        except ImportError:
            raise HpoError("hpo.plot needs matplotlib: pip install matplotlib") from None
        ax = pyplot.figure().add_subplot()
    ax.set_title(title)
    return ax


def _objective(study: Study, metric: "str | None") -> "tuple[str, str]":
    """Its metric and direction."""
    objectives = study.objectives
    metric = metric or next(iter(objectives))
    if metric not in objectives:
        raise InvalidInput(f"metric: expected an objective of study {study.name}, "
                           f"{' or '.join(map(repr, objectives))}, got {metric!r}")
    return metric, objectives[metric]


def _completed(study: Study, metric: str) -> "list[TrialRecord]":
    found = [one for one in study.trials if one.state == "completed" and math.isfinite(one.metrics.get(metric, math.nan))]
    if not found:
        raise HpoError(f"study {study.name}: expected a completed trial to plot, got none")
    return found


def _is_log(study: Study, name: str) -> bool:
    domain = study.space.get(name)
    return domain is not None and domain.log


def history(study: Study, metric: "str | None" = None, ax: Any = None) -> Any:
    """The value of each completed trial by its number, and the best so far."""
    metric, direction = _objective(study, metric)
    trials = _completed(study, metric)
    axes = _axes(ax, study.name)
    better = max if direction == "maximize" else min
    best: "list[float]" = []
    for one in trials:
        best.append(better([*best[-1:], one.metrics[metric]]))
    numbers = [one.number for one in trials]
    axes.plot(numbers, [one.metrics[metric] for one in trials], "o", color=_GREY, label="trial")
    axes.step(numbers, best, where="post", label="best so far")
    axes.set_xlabel("trial")
    axes.set_ylabel(metric)
    axes.legend()
    return axes


def importances(study: Study, metric: "str | None" = None, ax: Any = None) -> Any:
    """The share of each parameter in what moved the metric, with the fifth to the ninety-fifth percentile of it
    over resamples of the trials."""
    shares = importance_messages(study.channel, study.name, metric)[::-1]
    axes = _axes(ax, f"{study.name}: what moved {_objective(study, metric)[0]}")
    around = [[max(0.0, one.share - one.low) for one in shares], [max(0.0, one.high - one.share) for one in shares]]
    axes.barh([one.parameter for one in shares], [one.share for one in shares], xerr=around, ecolor=_GREY)
    axes.set_xlabel("share")
    return axes


def _positions(domain: "Domain | None", values: "Sequence[Any]") -> "tuple[list[float], list[str], list[float]]":
    """Of values on an axis of numbers, and its ticks: choices have their places, one next to the other."""
    numeric = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in values)
    if numeric and (domain is None or domain.kind != "choices"):
        return [float(one) for one in values], [], []
    labels = list(dict.fromkeys(map(str, values)))
    if domain is not None and domain.kind == "choices":
        known = [str(domain.objects.get(one, one) if isinstance(one, str) else one) for one in domain.values]
        labels = [*known, *(one for one in labels if one not in known)]
    return [float(labels.index(str(one))) for one in values], labels, [float(place) for place in range(len(labels))]


def slice(study: Study, params: "Sequence[str] | None" = None, metric: "str | None" = None) -> Any:
    """The metric by each parameter, side by side. Returns the Axes in a list."""
    metric, _ = _objective(study, metric)
    trials = _completed(study, metric)
    names = list(params or study.space)
    first = _axes(None, study.name)
    figure: Any = first.figure
    first.remove()
    figure.set_size_inches(max(4.0, 3.2 * len(names)), 4.0)
    made: "list[Any]" = []
    for index, name in enumerate(names):
        having = [one for one in trials if name in one.params]
        axes = figure.add_subplot(1, len(names), index + 1, sharey=made[0] if made else None)
        places, labels, ticks = _positions(study.space.get(name), [one.params[name] for one in having])
        points = axes.scatter(places, [one.metrics[metric] for one in having], c=[one.number for one in having])
        if labels:
            axes.set_xticks(ticks, labels, rotation=45)
        elif _is_log(study, name):
            axes.set_xscale("log")
        axes.set_xlabel(name)
        made.append(axes)
        if index == len(names) - 1:
            figure.colorbar(points, ax=axes, label="trial")
    made[0].set_ylabel(metric)
    figure.suptitle(study.name)
    return made


def parallel(study: Study, params: "Sequence[str] | None" = None, metric: "str | None" = None, ax: Any = None) -> Any:
    """A line for each completed trial through its parameters to the metric; the best ones are darkest."""
    metric, direction = _objective(study, metric)
    names = list(params or study.space)
    trials = [one for one in _completed(study, metric) if all(name in one.params for name in names)]
    if not trials:
        raise HpoError(f"study {study.name}: expected a completed trial with all of {', '.join(names)}, got none")
    axes = _axes(ax, study.name)
    columns: "list[list[float]]" = []
    for name in names:
        places, labels, _ = _positions(study.space.get(name), [one.params[name] for one in trials])
        logs = [math.log10(one) for one in places] if _is_log(study, name) else places
        columns.append(_spread(logs, 0.0, max(1.0, len(labels) - 1.0)) if labels else _spread(logs))
    columns.append(_spread([one.metrics[metric] for one in trials]))
    order = sorted(range(len(trials)), key=lambda row: columns[-1][row], reverse=direction == "minimize")
    for rank, row in enumerate(order):
        shade = 0.85 - 0.85 * (rank + 1) / len(order)
        axes.plot([column[row] for column in columns], color=str(shade), linewidth=0.8 if rank < len(order) - 1 else 2.0)
    axes.set_xticks(range(len(columns)), [*names, metric], rotation=45)
    axes.set_yticks([])
    return axes


def _spread(values: "Sequence[float]", low: "float | None" = None, high: "float | None" = None) -> "list[float]":
    """From 0 to 1."""
    low = min(values) if low is None else low
    high = max(values) if high is None else high
    return [(one - low) / (high - low) if high > low else 0.5 for one in values]


def memory(study: Study, ax: Any = None) -> Any:
    """The peak of memory of each trial's last run, and the limit; trials that ran out of memory are crosses."""
    table = read_columns(study.channel, study.name, ["number", "live_bytes", "limit_bytes"], ("live_bytes>0",))
    over_memory = set(read_columns(study.channel, study.name, ["number"], ("why=out_of_memory",))["number"])
    peaks = [(int(number), peak, number in over_memory) for number, peak in zip(table["number"], table["live_bytes"])]
    limit = max((one for one in table["limit_bytes"] if one > 0), default=0.0)
    axes = _axes(ax, f"{study.name}: memory")
    for over, mark, label in ((False, "o", "ended within its memory"), (True, "x", "out of memory")):
        shown = [(number, peak) for number, peak, is_over in peaks if is_over == over]
        if shown:
            axes.plot([number for number, _ in shown], [peak / 2**30 for _, peak in shown], mark, label=label)
    if limit:
        axes.axhline(limit / 2**30, color=_GREY, linestyle="--", label="limit")
    axes.set_xlabel("trial")
    axes.set_ylabel("GiB")
    axes.legend()
    return axes
