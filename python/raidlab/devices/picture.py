"""Measured and modelled response times, drawn: the distributions, and how far apart they are at each share."""

from __future__ import annotations

import altair as alt
import numpy as np

from raidlab.devices.validation import Validation
from raidlab.report.figures.chart import Mark, channel_by_name, data_of, layered
from raidlab.report.figures.figure import Chart, Figure, Panel, key_of
from raidlab.report.figures.style import INK, PANEL_HEIGHT, PANEL_WIDTH, colours_of
from raidlab.stats.demerit import quantiles

_POINTS = 500
_NAMES = ["measured", "model"]
_DASHES = [[1, 0], [5, 3]]


def picture(validation: Validation) -> Figure:
    """The figure of a validation."""
    floor = "" if validation.floor_ms is None else f"; floor {validation.floor_ms:.3f} ms"
    caption = (
        f"Demerit {validation.demerit_ms:.3f} ms, {validation.demerit_percent:.1f} % of the measured mean{floor}."
        " Left: share of requests that took no longer. Right: the model's time less the measured one at each share."
    )
    return Figure(
        "validation",
        key_of("validate", validation.device, validation.trace.rsplit(".", 1)[0]),
        f"{validation.device} against {validation.trace}",
        caption,
        (Panel("distributions", _distributions(validation)), Panel("difference", _difference(validation))),
    )


def _distributions(validation: Validation) -> Chart:
    marks = [
        Mark(name, share, round(float(time), 4))
        for name, times in zip(_NAMES, (validation.measured_ms, validation.modelled_ms), strict=True)
        for time, share in zip(quantiles(times, _POINTS), _shares(), strict=True)
    ]
    legend = alt.Legend(columns=2, symbolType="stroke")
    line = alt.Chart(data_of(marks)).mark_line(strokeWidth=2)
    chart: alt.Chart = line.encode(
        x=alt.X("x:Q", title="response time, ms", scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", title="% of requests", scale=alt.Scale(domain=[0, 100])),
        order="value:Q",
        color=channel_by_name(alt.Color, "line", colours_of(_NAMES), legend),
        strokeDash=alt.StrokeDash("line:N", legend=legend, scale=alt.Scale(domain=_NAMES, range=_DASHES)),
    ).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title=validation.device)
    return chart


def _difference(validation: Validation) -> Chart:
    apart = quantiles(validation.modelled_ms, _POINTS) - quantiles(validation.measured_ms, _POINTS)
    marks = [Mark("", round(float(value), 4), share) for value, share in zip(apart, _shares(), strict=True)]
    x = alt.X("x:Q", title="% of requests", scale=alt.Scale(domain=[0, 100]))
    y = alt.Y("value:Q", title="model less measured, ms")
    line = alt.Chart(data_of(marks)).mark_line(strokeWidth=1.5, color=INK).encode(x=x, y=y)
    zero = alt.Chart(data_of([Mark("", 0.0)])).mark_rule(opacity=0.5).encode(y=y)
    return layered([zero, line], "difference")


def _shares() -> list[float]:
    return [round(float(share), 3) for share in (np.arange(_POINTS) + 0.5) * 100 / _POINTS]
