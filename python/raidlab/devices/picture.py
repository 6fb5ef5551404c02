"""Measured and modelled response times, drawn: the distributions, and how far apart they are at each share."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from raidlab.devices.validation import Validation
from raidlab.report.figures.figure import Chart, Figure, Panel, data_of, key_of
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
    colours = colours_of(_NAMES)
    rows: list[dict[str, Any]] = []
    for name, times in zip(_NAMES, (validation.measured_ms, validation.modelled_ms), strict=True):
        shares = _shares()
        rows += [
            {"what": name, "ms": round(float(time), 4), "percent": share}
            for time, share in zip(quantiles(times, _POINTS), shares, strict=True)
        ]
    legend = alt.Legend(columns=2, symbolType="stroke")
    chart: alt.Chart = (
        alt.Chart(data_of(rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("ms:Q", title="response time, ms", scale=alt.Scale(nice=False)),
            y=alt.Y("percent:Q", title="% of requests", scale=alt.Scale(domain=[0, 100])),
            order="percent:Q",
            color=alt.Color(
                "what:N",
                title=None,
                legend=legend,
                scale=alt.Scale(domain=_NAMES, range=[colours[name] for name in _NAMES]),
            ),
            strokeDash=alt.StrokeDash("what:N", legend=legend, scale=alt.Scale(domain=_NAMES, range=_DASHES)),
        )
        .properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title=validation.device)
    )
    return chart


def _difference(validation: Validation) -> Chart:
    apart = quantiles(validation.modelled_ms, _POINTS) - quantiles(validation.measured_ms, _POINTS)
    rows = [{"ms": round(float(value), 4), "percent": share} for value, share in zip(apart, _shares(), strict=True)]
    x = alt.X("percent:Q", title="% of requests", scale=alt.Scale(domain=[0, 100]))
    y = alt.Y("ms:Q", title="model less measured, ms")
    line = alt.Chart(data_of(rows)).mark_line(strokeWidth=1.5, color=INK).encode(x=x, y=y)
    zero = alt.Chart(data_of([{"ms": 0}])).mark_rule(opacity=0.5).encode(y=y)
    layers = alt.LayerChart(layer=[zero, line])
    return layers.properties(width=PANEL_WIDTH, height=PANEL_HEIGHT, title="difference")


def _shares() -> list[float]:
    return [round(float(share), 3) for share in (np.arange(_POINTS) + 0.5) * 100 / _POINTS]
