"""A study as a small card of HTML, which notebooks show for it: state, best value, trials, hours lost, history.

The card is drawn from what the server says at that moment; showing the study again draws it anew. Every text
from the study is escaped. No script, so that a notebook that is not trusted shows it as well."""

import html
import math
from typing import Any, Sequence

from .. import _wire

_WIDTH, _HEIGHT, _MARGIN = 360, 90, 6
_POINTS = 300
_CALL_S = 5.0
# As the page's, after Okabe and Ito; readable on light and on dark ground.
_COMPLETED, _BEST = "#2f86c9", "#d97706"
_COUNTS = ("completed", "pruned", "failed", "running", "queued")
_USES = ("useful", "pruned", "out_of_memory", "failed", "cancelled", "preempted", "lost")
_LOST = ("out_of_memory", "failed", "cancelled", "lost")


def card(channel: _wire.Channel, study: str) -> str:
    """Of the study of that name. Raises HpoError where the server does not answer within 5 s."""
    state = channel.call("StudyService/GetStudy", _wire.message("GetStudyRequest")(name=study), _CALL_S).study
    request = _wire.message("GetHistoryRequest")(study=study, points=_POINTS)
    return render(state, channel.call("StudyService/GetHistory", request, _CALL_S))


def render(state: Any, history: Any) -> str:
    """`state`, `history`: the messages Study and GetHistoryResponse."""
    rows = [(word, value) for word, value in (
        ("best", _best(state)), ("trials", _trials(state)), ("worker time", _hours(state)),
        ("waits for", str(state.waiting_for)), ("failure", str(state.failure))) if value]
    table = "".join(f"<tr><th style='text-align:left;padding-right:1em'>{word}</th>"
                    f"<td style='text-align:left;overflow-wrap:anywhere'>{html.escape(value)}</td></tr>"
                    for word, value in rows)
    return ("<div style='border:1px solid #8888;border-radius:8px;padding:.6em .9em;max-width:44em'>"
            f"<b style='overflow-wrap:anywhere'>{html.escape(str(state.name))}</b> "
            f"<span style='opacity:.75'>{_word(state)}</span>"
            f"<table style='margin:.4em 0'>{table}</table>{_chart(history)}</div>")


def _word(state: Any) -> str:
    order = _wire.name("StudyOrder", state.order)
    if state.failure:
        return "failed"
    if _wire.name("StudyState", state.state) == "finished":
        return "stopped" if order == "stop" else "finished"
    if order in ("pause", "stop"):
        return {"pause": "paused", "stop": "stopping"}[order]
    return "running" if state.counts.running else "waiting"


def _best(state: Any) -> str:
    if not state.HasField("best_value"):
        return "none yet"
    metric = f"{state.objectives[0].metric} " if state.objectives else ""
    return f"{metric}{state.best_value:.6g}, trial {state.best_trial}"


def _trials(state: Any) -> str:
    parts = [f"{getattr(state.counts, word)} {word}" for word in _COUNTS if getattr(state.counts, word)]
    budget = f" of {state.budget.trials}" if state.budget.HasField("trials") else ""
    return (", ".join(parts) or "none") + budget


def _hours(state: Any) -> str:
    seconds = {use: getattr(state.time_by_use, use).ToTimedelta().total_seconds() for use in _USES}
    total, lost = sum(seconds.values()), sum(seconds[use] for use in _LOST)
    return f"{total / 3600:.3g} h, of it {lost / 3600:.3g} h lost" if total else ""


def _chart(history: Any) -> str:
    """Values of the first objective, and the best so far, as an SVG; empty: no trial has a value."""
    if not history.series:
        return ""
    points = [(number, value) for number, value, state in
              zip(history.numbers, history.series[0].values, history.states)
              if state in "CI" and math.isfinite(value)]
    if not points:
        return ""
    values = sorted(value for _, value in points)
    # Few values that are far out would flatten the rest.
    middle = values[len(values) // 20: len(values) - len(values) // 20] or values
    low, high = min(middle[0], *history.best_values[-1:]), max(middle[-1], *history.best_values[-1:])
    last = max(number for number, _ in points) or 1

    def place(number: float, value: float) -> "tuple[float, float]":
        share = 0.5 if high <= low else min(1.0, max(0.0, (value - low) / (high - low)))
        return (_MARGIN + number / last * (_WIDTH - 2 * _MARGIN), _HEIGHT - _MARGIN - share * (_HEIGHT - 2 * _MARGIN))

    dots = "".join(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2' fill='{_COMPLETED}'/>"
                   for x, y in (place(*point) for point in points))
    return (f"<svg width='{_WIDTH}' height='{_HEIGHT}' role='img' aria-label='values by trial, and the best so far'>"
            f"{dots}{_line(list(zip(history.best_numbers, history.best_values)), place, last)}</svg>")


def _line(steps: "Sequence[tuple[int, float]]", place: Any, last: int) -> str:
    """The best so far: each value stays until a better one comes."""
    if not steps:
        return ""
    words: "list[str]" = []
    height = 0.0
    for index, (number, value) in enumerate(steps):
        x, y = place(number, value)
        words.append(f"M{x:.1f} {y:.1f}" if index == 0 else f"H{x:.1f}V{y:.1f}")
        height = y
    words.append(f"H{place(last, 0.0)[0]:.1f}V{height:.1f}")
    return f"<path d='{''.join(words)}' fill='none' stroke='{_BEST}' stroke-width='2'/>"
