"""What a request costs the members: their time for one request, added up over all members it touches, by what they do.

An array's greatest throughput is the members' time divided by this cost, so the figure says *why* an array is slower:
more accesses, longer seeks, a revolution waited for. It is read with one request outstanding, where nothing queues.
Only simulated members tell seek from transfer; without such cells there is no figure.
"""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from raidlab.analysis.metrics import Analysis, Point
from raidlab.report.figures.chart import Mark, channel_by_name, columns_for, data_of, layered_bars, names_at_left
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.per_table import figure_per_table
from raidlab.report.figures.style import PART_COLOURS
from raidlab.report.figures.words import number, of_bars
from raidlab.study.expand import IDLE_DEPTH
from raidlab.study.schema import Compare

KIND = "member_time"
PARTS = {
    "stage_overhead_ns": "controller",
    "stage_disconnect_ns": "seek and rotation",
    "stage_transfer_ns": "transfer",
    "stage_paired_ns": "turn and write back",
}
_BAR_STEP = 30


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each table of the study and each target with simulated idle cells; a panel for each workload."""
    caption = (
        "Time of all members a request touches, added up, with one request outstanding. At random places, the less this"
        " is, the more requests the same members can serve; sequential requests in flight together save part of it, and"
        " a write back that follows its read at once on an idle disk may have to seek again on a busy one."
    )
    return figure_per_table(analysis, KIND, "What one request costs the members", caption, _panels)


def _panels(analysis: Analysis, compare: Compare, target: str) -> Iterator[Panel]:
    for workload in analysis.run.study.workload:
        # What was run only because a target is a multiple of it has nothing beside it.
        swept = analysis.swept(target, workload.name, group=compare.group)
        idle = [point for point in swept if point.load == "closed" and point.depth == IDLE_DEPTH]
        marks = [mark for point in idle for mark in _marks(point)]
        if marks:
            whole: dict[str, float] = {}
            for mark in marks:
                whole[mark.line] = whole.get(mark.line, 0.0) + mark.value
            said = of_bars(whole, "Milliseconds of member time a request costs")
            yield Panel(workload.name, _chart(marks, list(whole), workload.name), said)


def _marks(point: Point) -> Iterator[Mark]:
    """The parts of a request's time; none where they were not told apart."""
    times = {name: point.weighted_mean(column) for column, name in PARTS.items()}
    if None not in times.values():
        for rank, (name, time_ns) in enumerate(times.items()):
            ms = (time_ns or 0.0) / 1e6
            yield Mark(point.array, ms, part=name, rank=rank, tip=f"{point.array}, {name}: {number(ms)} ms")


def _chart(marks: list[Mark], names: list[str], title: str) -> Chart:
    colours = dict(zip(PARTS.values(), PART_COLOURS, strict=True))
    present = [name for name in colours if any(mark.part == name and mark.value > 0 for mark in marks)]
    bars = alt.Chart(data_of(mark for mark in marks if mark.part in present)).mark_bar(height=18)
    legend = alt.Legend(columns=columns_for(present))
    drawn = bars.encode(
        y=names_at_left(names),
        x=alt.X("value:Q", title="member time per request (ms)", stack="zero", axis=alt.Axis(tickCount=6)),
        color=channel_by_name(alt.Color, "part", {name: colours[name] for name in present}, legend),
        order=alt.Order("rank:Q"),
        description="tip:N",
    )
    return layered_bars([drawn], title, names, _BAR_STEP)
