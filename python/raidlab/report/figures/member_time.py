"""What a request costs the members: their time for one request, added up over all members it touches, by what they do.

An array's greatest throughput is the members' time divided by this cost, so the figure says *why* an array is slower:
more accesses, longer seeks, a revolution waited for. It is read with one request outstanding, where nothing queues.
Only simulated members tell seek from transfer; without such cells there is no figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.report.figures.figure import Figure, Panel, data_of
from raidlab.report.figures.per_table import figure_per_table
from raidlab.report.figures.style import PANEL_WIDTH, PART_COLOURS
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
        rows: list[dict[str, Any]] = []
        names: list[str] = []
        for point in analysis.points:
            # What was run only because a target is a multiple of it has nothing beside it.
            idle = point.load == "closed" and point.depth == IDLE_DEPTH and point.is_swept
            if not idle or (point.target, point.group, point.workload) != (target, compare.group, workload.name):
                continue
            times = {part: point.weighted_mean(part) for part in PARTS}
            if any(time is None for time in times.values()):
                continue
            names.append(point.array)
            rows += [
                {
                    "array": point.array,
                    "part": PARTS[part],
                    "rank": rank,
                    "ms": (time or 0.0) / 1e6,
                    "tip": f"{point.array}, {PARTS[part]}: {number((time or 0.0) / 1e6)} ms",
                }
                for rank, (part, time) in enumerate(times.items())
            ]
        if rows:
            whole = {name: sum(row["ms"] for row in rows if row["array"] == name) for name in names}
            alt_text = of_bars(whole, "Milliseconds of member time a request costs")
            yield Panel(workload.name, _chart(rows, names, workload.name), alt_text)


def _chart(rows: list[dict[str, Any]], names: list[str], title: str) -> alt.Chart:
    present = [part for part in PARTS.values() if any(row["part"] == part and row["ms"] > 0 for row in rows)]
    colours = dict(zip(PARTS.values(), PART_COLOURS, strict=True))
    chart: alt.Chart = (
        alt.Chart(data_of([row for row in rows if row["part"] in present]))
        .mark_bar(height=18)
        .encode(
            y=alt.Y("array:N", sort=names, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=140)),
            x=alt.X("ms:Q", title="member time per request (ms)", stack="zero", axis=alt.Axis(tickCount=6)),
            color=alt.Color(
                "part:N",
                title=None,
                sort=present,
                scale=alt.Scale(domain=present, range=[colours[part] for part in present]),
            ),
            order=alt.Order("rank:Q"),
            description="tip:N",
        )
        .properties(width=PANEL_WIDTH, height=_BAR_STEP * max(len(names), 1), title=title)
    )
    return chart
