"""The tests that decided, drawn: what each gave, and what the two likeliest arrays would give."""

from __future__ import annotations

import altair as alt

from raidlab.measure.probe.answer import ProbeAnswer
from raidlab.measure.probe.words import sentence
from raidlab.report.figures.chart import Mark, colour_and_shape, data_of
from raidlab.report.figures.figure import Figure, Panel, key_of
from raidlab.report.figures.style import PANEL_WIDTH

_ROW_HEIGHT, _NAME_ROOM = 16, 330
MEASURED = "measured"


def picture(answer: ProbeAnswer) -> Figure:
    """The figure of a probe that asked tests."""
    likeliest = answer.classes[0].arrays
    alike = f", or {len(likeliest) - 1} alike" if len(likeliest) > 1 else ""
    names = [MEASURED, f"{likeliest[0].title}{alike}"]
    if answer.runner_up is not None:
        names.append(answer.runner_up.title)
    tests = [f"{number}  {line.name}" for number, line in enumerate(answer.lines, 1)]
    marks = []
    for test, line in zip(tests, answer.lines, strict=True):
        of = (line.rate_per_s, line.predicted_per_s, line.runner_up_per_s)
        for name, value in zip(names, of, strict=False):
            if value is not None:
                tip = f"{test}: {name} {value:,.0f}/s"
                marks.append(Mark(name, round(value, 2), label=test, tip=tip))
    colour, shape = colour_and_shape(names, names, alt.Legend(columns=1, orient="bottom", labelLimit=600))
    lines = alt.Axis(ticks=False, domain=False, labelLimit=_NAME_ROOM)
    chart = (
        alt.Chart(data_of(marks))
        .mark_point(size=45, filled=False, strokeWidth=1.6)
        .encode(
            x=alt.X(
                "value:Q", title="requests a second (log scale)", scale=alt.Scale(type="log", nice=False, padding=12)
            ),
            y=alt.Y("label:N", sort=tests, title=None, axis=lines),
            color=colour,
            shape=shape,
            description="tip:N",
        )
        .properties(width=PANEL_WIDTH, height=_ROW_HEIGHT * len(tests), title=answer.title)
    )
    return Figure(
        "probe", key_of("probe", answer.title), "The tests that decided", sentence(answer), (Panel("tests", chart),)
    )
