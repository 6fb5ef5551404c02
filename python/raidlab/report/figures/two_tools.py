"""What raidlab and a second tool measured on the same target, by jobs: the accuracy of the measurement.

A line is a tool, a stroke goes from the lowest of its runs to the highest. The study's `[live] second_tool` says where.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any, Literal

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of
from raidlab.report.figures.over_blocks import RUNS
from raidlab.report.figures.own import ONE_RUN, own_key
from raidlab.report.figures.style import COLOURS, PANEL_HEIGHT, PANEL_WIDTH, SHAPES
from raidlab.report.figures.words import number, of_lines
from raidlab.results.facts import ToolMeasured

KIND = "two_tools"
Tool = Literal["raidlab", "fio"]
_TOOLS: tuple[Tool, Tool] = ("raidlab", "fio")
_PANELS = (("throughput_mb_s", "throughput (MB/s)"), ("processors_busy", "processors busy with the tool"))


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, of what was measured on real members."""
    found = [one for one in analysis.run.facts.get("second_tool", []) if "missing" not in one]
    for spec in analysis.run.study.figure:
        mine = [one for one in found if one["array"] in spec.arrays and one["workload"] in spec.workloads]
        if spec.draw == KIND and mine:
            runs = RUNS if any(len(one["pairs"]) > 1 for one in mine) else ONE_RUN
            caption = " ".join(part for part in (runs, f"Both on {mine[0]['target']}.", spec.note) if part)
            charts = [(title, _rows(mine, key, title)) for key, title in _PANELS]
            made = tuple(Panel(title, _chart(rows, title), _alt_text(rows, title)) for title, rows in charts if rows)
            yield Figure(KIND, own_key(spec, "live"), f"{spec.number}: {spec.title}", caption, made)


def _rows(found: list[ToolMeasured], key: str, title: str) -> list[dict[str, Any]]:
    return [row for one in found for tool in _TOOLS for row in _row(one, tool, key, title)]


def _alt_text(rows: list[dict[str, Any]], title: str) -> str:
    names: tuple[str, ...] = _TOOLS
    lines = {name: [(row["jobs"], row["value"]) for row in rows if row["tool"] == name] for name in names}
    return of_lines(lines, "jobs", title)


def _chart(rows: list[dict[str, Any]], title: str) -> Chart:
    names = list(_TOOLS)
    jobs = sorted({row["jobs"] for row in rows})
    place = alt.X(
        "jobs:Q",
        title="jobs (log scale)",
        scale=alt.Scale(type="log", base=2, nice=False, padding=14),
        axis=alt.Axis(values=jobs, format="~g"),
    )
    height = alt.Y("value:Q", title=title, scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(tickCount=5))
    colour = alt.Color("tool:N", title=None, sort=names, scale=alt.Scale(domain=names, range=list(COLOURS[:2])))
    shape = alt.Shape("tool:N", title=None, sort=names, scale=alt.Scale(domain=names, range=list(SHAPES[:2])))
    base = alt.Chart(data_of(rows)).encode(x=place, y=height, color=colour)
    low = alt.Y("low:Q", title=title)
    layers: list[Any] = [
        base.mark_line(strokeWidth=2, aria=False),
        alt.Chart(data_of(rows))
        .mark_rule(strokeWidth=1.4, aria=False)
        .encode(x=place, y=low, y2="high:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(shape=shape, description="tip:N"),
    ]
    return alt.LayerChart(layer=layers).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title=title)


def _row(one: ToolMeasured, tool: Tool, key: str, title: str) -> Iterator[dict[str, Any]]:
    values = [pair[tool][key] for pair in one["pairs"] if key in pair[tool]]
    if values:
        middle = statistics.median(values)
        low, high = min(values), max(values)
        tip = f"{tool}, {one['depth']} jobs: {title} {number(middle)} (runs {number(low)} to {number(high)})"
        yield {"tool": tool, "jobs": one["depth"], "value": middle, "low": low, "high": high, "tip": tip}
