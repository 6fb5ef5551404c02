"""Metrics at one load as bars, one an array; several metrics are parts of one whole, stacked.

The load is the one of most throughput, the heaviest, or a depth; it stands beside the figure. A further metric may be
marked on each bar, such as what its parts should add up to. Parts that are rates over different times have no sum: they
stand below one another, and the figure beside them gives each. All panels of a figure have one axis: they are there to
be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric, Point
from raidlab.published.compare import PublishedComparison
from raidlab.published.quantities.metric import AtDepth, chosen
from raidlab.report.figures.chart import (
    Mark,
    channel_by_name,
    columns_for,
    data_of,
    labels_at_right,
    layered_bars,
    names_at_left,
    room_at_right,
)
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.own import (
    BY_KIND,
    ArrayLine,
    axis_title,
    in_unit,
    interval_of,
    lines_of,
    metrics_of,
    own_figures,
    panels_of,
)
from raidlab.report.figures.printed_points import Printed, decimals_of, hollow_on_bars, in_words, labels_with
from raidlab.report.figures.style import INK
from raidlab.report.figures.words import fixed, interval_words, number, of_bars
from raidlab.study.figure import StudyFigure

KIND = "bars"
_BAR_STEP = 26
# Rates of streams, each direction over a time of its own: nothing ever went as fast as they add up to.
_OVER_OWN_TIMES = {"streams_read_mb_s", "streams_write_mb_s"}
# One for a bar of one part; parts have colours that no array has.
_COLOURS = ("#0072B2", "#A79FD0", "#8C8C8C", "#B5305F", "#54278F", "#E3C27B")


@dataclass(frozen=True)
class _Bars:
    """What a panel shows."""

    title: str
    parts: list[Mark]
    marked: list[Mark]
    over: list[Mark]
    labels: dict[str, str]

    def longest(self, spec: StudyFigure) -> float:
        """How far its axis reaches at least: the longest bar, with room at its right for the figure."""
        whole = sum if _is_stacked(spec) else max
        sums = [whole([mark.value for mark in self.parts if mark.line == name]) for name in self.labels]
        return max([*sums, *(mark.value for mark in [*self.marked, *self.over])]) * room_at_right(self.labels)


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each workload."""
    yield from own_figures(analysis, KIND, _sums, _panels, published)


def _sums(analysis: Analysis, spec: StudyFigure, target: str) -> str:
    """How far parts add up to what is marked on them, where they should."""
    if spec.mark is None or not _is_stacked(spec):
        return ""
    metrics, whole, shares = metrics_of(spec), in_unit(BY_KIND[spec.mark], spec), []
    for line in (line for workload in spec.workloads for line in lines_of(spec, workload)):
        point = _point_of(analysis, spec, target, line)
        parts = [metric.compute(point, None) for metric in metrics] if point is not None else []
        sums = sum(part for part in parts if part is not None)
        if point is not None and None not in parts and (mark := whole.compute(point, None)):
            shares.append(100 * sums / mark)
    return f"Here they add up to {min(shares):.0f} to {max(shares):.0f} % of the stroke." if shares else ""


def _point_of(analysis: Analysis, spec: StudyFigure, target: str, line: ArrayLine) -> Point | None:
    at = AtDepth(depth=spec.at) if isinstance(spec.at, int) else spec.at
    return chosen(analysis.swept(target, line.workload, array=line.array), at)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, printed: Printed) -> Iterator[Panel]:
    metrics = metrics_of(spec)
    shown: list[_Bars] = []
    for workload, title in panels_of(spec):
        parts: list[Mark] = []
        marked: list[Mark] = []
        over: list[Mark] = []
        for line in lines_of(spec, workload):
            point = _point_of(analysis, spec, target, line)
            found = [] if point is None else _parts(spec, line, point)
            parts += found
            mark = in_unit(BY_KIND[spec.mark], spec).compute(point, None) if found and point and spec.mark else None
            marked += [] if mark is None else [Mark(line.name, mark)]
            over += printed.over(Mark(line.name, 0.0), line.array, line.workload, point) if found else []
        if parts:
            shown.append(_Bars(title, parts, marked, over, labels_with(labels_of(parts, spec, over), over)))
    most = max((panel.longest(spec) for panel in shown), default=0.0)
    for panel in shown:
        said = of_bars(labels_of(panel.parts, spec, panel.over), axis_title(metrics)) + in_words(panel.over)
        yield Panel(panel.title, _chart(panel, spec, most), said)


def _is_stacked(spec: StudyFigure) -> bool:
    return not _OVER_OWN_TIMES.issuperset(spec.metrics)


def labels_of(parts: list[Mark], spec: StudyFigure, over: Sequence[Mark] = ()) -> dict[str, str]:
    """The figure beside each bar: what its parts add up to, or each of those that have no sum; all alike."""
    values: dict[str, list[float]] = {}
    for mark in parts:
        values.setdefault(mark.line, []).append(mark.value)
    if _is_stacked(spec):
        values = {name: [sum(each)] for name, each in values.items()}
    decimals = decimals_of(values, over)
    return {
        name: " and ".join(fixed(value, decimals) for value in each if value) or "0" for name, each in values.items()
    }


def _parts(spec: StudyFigure, line: ArrayLine, point: Point) -> list[Mark]:
    metrics = metrics_of(spec)
    values = [value for metric in metrics if (value := metric.compute(point, None)) is not None]
    if len(values) < len(metrics):
        return []
    sure = interval_words(interval_of(point, metrics[0])) if len(metrics) == 1 else ""
    return [
        Mark(
            line.name,
            value,
            part=_part(metric),
            rank=rank,
            tip=f"{line.name}, {point.level}: {metric.title} {number(value)} {metric.unit}{sure}",
        )
        for rank, (metric, value) in enumerate(zip(metrics, values, strict=True))
    ]


def _part(metric: Metric) -> str:
    """What a part is called beside an axis that says what all of them are."""
    return metric.title.rpartition(", ")[2]


def _chart(panel: _Bars, spec: StudyFigure, most: float) -> Chart:
    parts, marked, over, labels = panel.parts, panel.marked, panel.over, panel.labels
    names = list(labels)
    metrics = metrics_of(spec)
    titles = [_part(metric) for metric in metrics]
    colours = dict(zip(titles, _COLOURS, strict=False))
    is_stacked = _is_stacked(spec)
    if not is_stacked:
        # A direction in which nothing goes needs no room.
        parts = [mark for mark in parts if any(one.value for one in parts if one.part == mark.part)]
        titles = [title for title in titles if any(mark.part == title for mark in parts)]
    scale = alt.Scale(domain=[0, most or 1.0], nice=False)
    place = names_at_left(names)
    legend = alt.Legend(columns=columns_for(colours)) if len(metrics) > 1 else None
    x = alt.X(
        "value:Q",
        title=axis_title(metrics),
        stack="zero" if is_stacked else None,
        scale=scale,
        axis=alt.Axis(tickCount=5),
    )
    bars = (
        alt.Chart(data_of(parts))
        .mark_bar(height=16 if is_stacked else 16 / max(len(titles), 1), opacity=0.9)
        .encode(
            y=place,
            x=x,
            color=channel_by_name(alt.Color, "part", {title: colours[title] for title in titles}, legend),
            order=alt.Order("rank:Q"),
            description="tip:N",
        )
    )
    if not is_stacked:
        bars = bars.encode(yOffset=alt.YOffset("rank:O", sort=None))
    ends = [Mark(name, 0.0, label=label) for name, label in labels.items()]
    layers = [bars, labels_at_right(ends, place)]
    if marked:
        stroke = alt.Chart(data_of(marked)).mark_tick(thickness=2.5, size=22, color=INK, aria=False)
        layers.append(stroke.encode(y=place, x=alt.X("value:Q", scale=scale)))
    layers += hollow_on_bars(over, place, alt.X("value:Q", scale=scale), _COLOURS[0] if len(metrics) == 1 else None)
    return layered_bars(layers, panel.title, names, _BAR_STEP)
