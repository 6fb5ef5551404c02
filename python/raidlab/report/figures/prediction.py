"""What was measured as a share of what was predicted, load by load, over how far the model may be off.

A mark within its band agrees with the prediction; one left of it is slower, one right of it faster. The stroke
through a mark is the 95 % interval over repeats.
"""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from raidlab.analysis.metrics import Analysis
from raidlab.analysis.prediction import AGREES, FASTER, SLOWER, UNDECIDED, PredictedLoad, Prediction, predictions_of
from raidlab.report.figures.chart import Mark, channel_by_name, data_of, labels_at_right, layered_bars, names_at_left
from raidlab.report.figures.figure import Chart, Figure, Panel, array_key, key_of
from raidlab.report.figures.style import INK
from raidlab.report.figures.words import interval_words, number, of_bars

KIND = "prediction"
_STEP = 30
# What is further off than this is drawn at the edge; its figure stands beside it.
_EDGE_PERCENT = 200.0
_COLOURS = {AGREES: "#009E73", SLOWER: "#D55E00", FASTER: "#0072B2", UNDECIDED: "#8C8C8C"}
_SHAPES = {AGREES: "circle", SLOWER: "triangle-left", FASTER: "triangle-right", UNDECIDED: "diamond"}
_TITLE = "% of the predicted speed"


def figures(analysis: Analysis) -> Iterator[Figure]:
    """One figure for each array that has a twin, and each target where it was measured."""
    for one in predictions_of(analysis, ()):
        title = f"{one.array}: measured against predicted"
        caption = (
            "Marks: what was measured, in percent of the predicted speed; strokes: the 95 % interval over repeats. "
            "Bands: how far the model may be off."
        )
        key = key_of(KIND, array_key(analysis.run.study, one.array), one.target)
        yield Figure(KIND, key, title, caption, (_panel(one),))


def _panel(one: Prediction) -> Panel:
    names = [_name(load) for load in one.loads]
    shares = {
        name: f"{number(100 * load.ratio)}{interval_words(_percent(load))} ({load.verdict})"
        for name, load in zip(names, one.loads, strict=True)
    }
    return Panel(one.array, _chart(one, names), of_bars(shares, "Speed in percent of the prediction"))


def _name(load: PredictedLoad) -> str:
    return f"{load.workload}, {load.level.replace('queue depth', 'depth')}"


def _percent(load: PredictedLoad) -> tuple[float, float] | None:
    return None if load.interval is None else (100 * load.interval[0], 100 * load.interval[1])


def _cut(value: float) -> float:
    return min(max(value, 0.0), _EDGE_PERCENT)


def _chart(one: Prediction, names: list[str]) -> Chart:
    scale = alt.Scale(domain=[0, _EDGE_PERCENT], nice=False)
    x = alt.X("value:Q", title=_TITLE, scale=scale, axis=alt.Axis(tickCount=5))
    place = names_at_left(names)
    loads = list(zip(names, one.loads, strict=True))
    bands = [
        Mark(name, 100 - load.error_percent, interval=(100 - load.error_percent, 100 + load.error_percent))
        for name, load in loads
    ]
    strokes = [
        Mark(name, 0.0, interval=(_cut(sure[0]), _cut(sure[1]))) for name, load in loads if (sure := _percent(load))
    ]
    marks = [
        Mark(
            name,
            _cut(100 * load.ratio),
            part=load.verdict,
            tip=f"{name}: {number(load.measured)} {load.unit} measured, {number(load.predicted)} predicted, "
            f"{number(100 * load.ratio)} %{interval_words(_percent(load))}",
        )
        for name, load in loads
    ]
    ends = [Mark(name, 0.0, label=f"{100 * load.ratio:,.0f} %") for name, load in loads]
    low, high = alt.X("low:Q", scale=scale, title=_TITLE), alt.X2("high:Q")
    shown = [verdict for verdict in _COLOURS if any(load.verdict == verdict for load in one.loads)]
    legend = alt.Legend(columns=4)
    layers = [
        alt.Chart(data_of(bands))
        .mark_bar(height=20, opacity=0.18, color=INK, aria=False)
        .encode(y=place, x=low, x2=high),
        alt.Chart(data_of([Mark("", 100.0)])).mark_rule(opacity=0.6, color=INK, aria=False).encode(x=x),
        alt.Chart(data_of(strokes)).mark_rule(strokeWidth=1.5, color=INK, aria=False).encode(y=place, x=low, x2=high),
        alt.Chart(data_of(marks))
        .mark_point(filled=True, size=90, opacity=1)
        .encode(
            y=place,
            x=x,
            color=channel_by_name(alt.Color, "part", {one: _COLOURS[one] for one in shown}, legend),
            shape=channel_by_name(alt.Shape, "part", {one: _SHAPES[one] for one in shown}, legend),
            description="tip:N",
        ),
        labels_at_right(ends, place),
    ]
    return layered_bars(layers, one.array, names, _STEP)
