"""Throughput and p99 through scrubs, slow members, the failure of a member and its rebuild, with the phases shaded.

Drawn of every array that scrubs, has a slow member, loses one or has one rebuilt, for the deepest load of each
workload; in two panels, for what clients get and for how long they wait are read against each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from raidlab.analysis.bad_days import DEGRADED, REBUILDING, SCRUBBING, SLOW, BadDay, Phase, bad_days
from raidlab.analysis.metrics import Analysis
from raidlab.report.figures.chart import Mark, channel_by_name, data_of, layered, most_of, upward
from raidlab.report.figures.figure import Chart, Figure, Panel, key_of
from raidlab.report.figures.style import colours_of
from raidlab.report.figures.words import number

KIND = "bad_days"
_SHADES = {SCRUBBING: "#009E73", SLOW: "#F0E442", DEGRADED: "#E69F00", REBUILDING: "#56B4E9"}
_SHADED = {
    SCRUBBING: "while it scrubs",
    SLOW: "with a slow member",
    DEGRADED: "without the member that was lost",
    REBUILDING: "while a new one is rebuilt",
}
_HEIGHT = 150
_LEAST_STRETCHES = 3


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each target on which members fail; two panels for each array and workload."""
    days = deepest(bad_days(analysis))
    for target in dict.fromkeys(day.point.target for day in days):
        mine = [day for day in days if day.point.target == target and _is_drawn(day)]
        if mine:
            yield Figure(KIND, key_of(KIND, target), "Bad days", _caption(mine), tuple(_panels(analysis, mine)))


def _is_drawn(day: BadDay) -> bool:
    """Whether there is something to see: a scrub, or a member slow or lost, before the end, and enough seconds."""
    return len(day.repeats[0].series) >= _LEAST_STRETCHES and any(map(day.repeats[0].phase, _SHADES))


def deepest(days: list[BadDay]) -> list[BadDay]:
    """Of each array and workload the day under its heaviest load."""
    found: dict[tuple[str, str, str], BadDay] = {}
    for day in days:
        key = (day.point.target, day.point.array, day.point.workload)
        if key not in found or day.point.level_value >= found[key].point.level_value:
            found[key] = day
    return list(found.values())


def _caption(days: list[BadDay]) -> str:
    lengths = sorted({one.end_s - one.begin_s for day in days for one in day.repeats[0].series[:1]})
    each = f"{lengths[0]} to {lengths[-1]} s" if len(lengths) > 1 else f"{lengths[0]} s"
    return (
        f"What clients get (left), and p99 of how long they wait for it (right), in steps of {each}. "
        f"Shaded: {', '.join(words for name, words in _SHADED.items() if any(day.phase(name) for day in days))}; "
        "before and after it is well."
        f"{' Of the first repeat.' if any(len(day.repeats) > 1 for day in days) else ''}"
    )


def _panels(analysis: Analysis, days: list[BadDay]) -> Iterator[Panel]:
    colours = colours_of([array.name for array in analysis.run.study.array])
    has_many = len({day.point.workload for day in days}) > 1
    drawn = []
    for day in days:
        rates = [_mark(day, one.end_s, one.begin_s, one.mb_s, "MB/s") for one in day.repeats[0].series]
        seen = [one for one in day.repeats[0].series if one.p99_ms is not None]
        times = [_mark(day, one.end_s, one.begin_s, one.p99_ms or 0.0, "ms") for one in seen]
        drawn.append((day, rates, times))
    # Days are compared: one axis for all of them where none would be too flat.
    most_mb_s, most_ms = most_of(rates for _, rates, _ in drawn), most_of(times for _, _, times in drawn)
    for day, rates, times in drawn:
        name = f"{day.point.array}, {day.point.workload}" if has_many else day.point.array
        for marks, title, unit, what, most in (
            (rates, "throughput (MB/s)", "MB/s", "throughput", most_mb_s),
            (times, "p99 of response time (ms)", "ms", "p99", most_ms),
        ):
            heading = f"{name}: {what}"
            chart = _chart(day, marks, colours[day.point.array], title, heading, most)
            yield Panel(heading, chart, _words(day, what, unit))


def _mark(day: BadDay, end_s: int, begin_s: int, value: float, unit: str) -> Mark:
    tip = f"{day.point.array}, {begin_s} to {end_s} s: {number(value)} {unit}"
    return Mark(day.point.array, value, (begin_s + end_s) / 2, tip=tip)


def _words(day: BadDay, what: str, unit: str) -> str:
    """What a panel shows, phase by phase."""
    said = []
    for phase in day.repeats[0].phases:
        value = phase.mb_s if what == "throughput" else phase.p99_ms
        figure = "too short for a figure" if value is None else f"{number(value)} {unit}"
        said.append(f"{phase.name} {_when(phase)} {figure}")
    return f"{what} over seconds: {'; '.join(said)}."


def _when(phase: Phase) -> str:
    return " and ".join(f"from {number(begin)} to {number(end)} s" for begin, end in phase.spans_s)


def _chart(day: BadDay, marks: list[Mark], colour: str, y_title: str, title: str, most: float | None) -> Chart:
    phases = day.repeats[0].phases
    spans = [
        {"begin": begin, "end": end, "phase": phase.name}
        for phase in phases
        if phase.name in _SHADES
        for begin, end in phase.spans_s
    ]
    names = {name: shade for name, shade in _SHADES.items() if any(span["phase"] == name for span in spans)}
    last = max(end for phase in phases for _, end in phase.spans_s)
    x = alt.X("begin:Q", title="time (s)", scale=alt.Scale(domain=[0, last], nice=False), axis=alt.Axis(tickCount=6))
    shade = channel_by_name(alt.Fill, "phase", names, alt.Legend(title=None, symbolType="square", symbolOpacity=0.5))
    shaded = (
        alt.Chart(alt.InlineData(values=spans)).mark_rect(opacity=0.25, aria=False).encode(x=x, x2="end:Q", fill=shade)
    )
    base = alt.Chart(data_of(marks)).encode(
        x=alt.X("x:Q", title="time (s)"),
        y=upward(y_title, most),
    )
    layers = [
        shaded,
        base.mark_line(strokeWidth=1.5, color=colour, aria=False),
        # Nothing to see: what is pointed at.
        base.mark_point(opacity=0, size=30).encode(description="tip:N"),
    ]
    return layered(layers, title, height=_HEIGHT)
