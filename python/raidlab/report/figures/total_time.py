"""How long n tasks take: one after another (dashed), and all at once.

One after another each takes the time of one alone. At once the first takes that, and each further one adds the slope of
the mean response time over how many there are.

Reference: figure 8 of S. Hauser, L. Berman, G. Thoma, *Is the bang worth the buck?*, 1996.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.published.quantities import NotThereError, regression
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of
from raidlab.report.figures.own import own_figures, reading_at, source_of
from raidlab.report.figures.style import PANEL_HEIGHT, PANEL_WIDTH, colours_of
from raidlab.report.figures.words import number, of_lines
from raidlab.study.figure import StudyFigure

KIND = "total_time"
CAPTION = "At once: the first one's time, and what each further one adds. Dashed: one after another."
_ALONE, _AT_ONCE = "one after another", "at once"
_TIME = "response_time_ms_mean"
_MOST = 10

Times = Mapping[str, Sequence[tuple[float, float]]]


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target."""
    yield from own_figures(analysis, KIND, CAPTION, _panels)


def _panels(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[Panel]:
    source = source_of(analysis, target)
    times: dict[str, list[tuple[float, float]]] = {}
    for array in spec.arrays:
        slope = {"of": "slope", "metric": _TIME, "array": array, "workload": spec.workloads[-1]}
        try:
            alone = reading_at(source, _TIME, array, spec.workloads[0], "idle")
            each = regression.read(regression.Keys.model_validate(slope), source)
        except NotThereError:
            continue
        if alone is not None and each is not None:
            times[array] = totals(alone.value, each.value, _MOST)
    if times:
        yield _panel(times, "ms")


def totals(alone: float, each: float, up_to: int) -> list[tuple[float, float]]:
    """The times of 1, 2, ... tasks: one after another, and at once.

    Examples
    --------
    >>> totals(100.0, 30.0, 3)
    [(100.0, 100.0), (200.0, 130.0), (300.0, 160.0)]
    """
    return [(n * alone, alone + (n - 1) * each) for n in range(1, up_to + 1)]


def total_time_figure(times: Times, unit: str) -> Figure:
    """The figure of times that were worked out elsewhere.

    Parameters
    ----------
    times : mapping
        By arrangement, for 1, 2, ... tasks: one after another, and at once.
    unit : str
    """
    return Figure(KIND, "total-time", "Total time of several", CAPTION, (_panel(times, unit),))


def _panel(times: Times, unit: str) -> Panel:
    rows: list[dict[str, Any]] = [
        {
            "line": name,
            "n": count,
            "how": how,
            "time": time,
            "tip": f"{name}, {count} {how}: {number(time)} {unit}",
        }
        for name, found in times.items()
        for count, pair in enumerate(found, start=1)
        for how, time in zip((_ALONE, _AT_ONCE), pair, strict=True)
    ]
    said = of_lines(
        {
            f"{name} ({how})": [(row["n"], row["time"]) for row in rows if (row["line"], row["how"]) == (name, how)]
            for name in times
            for how in (_AT_ONCE, _ALONE)
        },
        "files",
        f"total time ({unit})",
    )
    return Panel("total time", _chart(rows, list(times), unit), said)


def _chart(rows: list[dict[str, Any]], names: list[str], unit: str) -> Chart:
    colours = colours_of(names)
    base = alt.Chart(data_of(rows)).encode(
        x=alt.X("n:Q", title="files", axis=alt.Axis(tickCount=6, tickMinStep=1)),
        y=alt.Y("time:Q", title=f"total time ({unit})", axis=alt.Axis(tickCount=5)),
        color=alt.Color(
            "line:N",
            title=None,
            sort=names,
            scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
            legend=alt.Legend(columns=1, labelLimit=380),
        ),
    )
    dash = alt.StrokeDash(
        "how:N",
        title=None,
        scale=alt.Scale(domain=[_AT_ONCE, _ALONE], range=[[1, 0], [5, 4]]),
        legend=alt.Legend(columns=1),
    )
    lines = base.mark_line(strokeWidth=2).encode(strokeDash=dash)
    # What is pointed at; the lines themselves carry no description.
    marks = base.mark_point(size=30, filled=True, opacity=0.9).encode(description="tip:N")
    chart = alt.LayerChart(layer=[lines, marks])
    return chart.properties(width=PANEL_WIDTH + 90, height=PANEL_HEIGHT + 50, title="total time")
