"""Printed figures over a figure's own: hollow marks where the study printed what comes out here.

A printed figure belongs to a mark by what it was compared with: the measure behind it is of the mark's array, workload
and load. So a figure names what is printed, and says nothing of it again.

Invariants:

- What stands here is what `raidlab study compare` has, in the unit of the print; the figure is drawn in that unit.
- Bars and what was printed of them have equally many decimals.
- A range is its two ends with a band between them; a bound that is open to one side has no place.
- What was printed of the study's hardware is not drawn over what comes out on other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import altair as alt

from raidlab.analysis.metrics import Point
from raidlab.published.compare import PublishedComparison, PublishedRow
from raidlab.published.quantities import Source, checked_measure, held
from raidlab.published.quantities.metric import AtDepth, chosen
from raidlab.report.figures.chart import Axes, Mark, data_of
from raidlab.report.figures.style import INK
from raidlab.report.figures.words import alike
from raidlab.study.published import number
from raidlab.study.words import Table

PRINTED = "printed"
_SIZE, _WIDTH = 130, 1.6
# The band of a printed range.
_BAND, _PALE = 9, 0.3
_DECIMALS = re.compile(r"\.(\d+)")


@dataclass(frozen=True)
class Printed:
    """Those printed figures that a figure, or a part of it, names."""

    rows: tuple[PublishedRow, ...]
    source: Source
    reference: str | None = None
    """The array in percent of which they are."""
    is_elsewhere: bool = False
    """Whether this is other hardware, of which nothing was printed."""

    def only(self, patterns: Sequence[str]) -> Printed:
        """Those whose ids match one of some patterns."""
        return replace(self, rows=tuple(rows_named(self.rows, patterns)))

    def over(self, mark: Mark, array: str, workload: str, point: Point | None = None) -> list[Mark]:
        """What was printed where a mark stands; of a point only what was printed of that load."""
        return [
            hollow
            for row in self.of(array, workload)
            if point is None or any(found is point for found in self.points(row, array, workload))
            for hollow in hollow_marks(row, mark)
        ]

    def of(self, array: str, workload: str) -> Iterator[PublishedRow]:
        """The printed figures of an array under a workload."""
        for row in () if self.is_elsewhere else self.rows:
            arrays = {measure["array"] for measure in row.measures if "array" in measure}
            workloads = {measure["workload"] for measure in row.measures if "workload" in measure}
            # A range of the mean of several workloads is one for each of them.
            is_of = workloads == {workload} or (row.published.is_range and workload in workloads)
            if (arrays - {self.reference} or arrays) == {array} and is_of:
                yield row

    def points(self, row: PublishedRow, array: str, workload: str) -> Iterator[Point | None]:
        """The loads that a printed figure speaks of, as far as they were run."""
        for at in loads_of(row):
            if at in ("idle", "maximum", "heaviest") or isinstance(at, AtDepth):
                yield chosen(self.source.points_of(array, workload), at)


def printed_of(published: PublishedComparison | None, source: Source, reference: str | None) -> Printed:
    """All printed figures, on the target that is compared."""
    if published is None or published.target != source.target:
        return Printed((), source, reference)
    return Printed(tuple(published.published), source, reference, published.is_elsewhere)


def rows_named(rows: Iterable[PublishedRow], patterns: Sequence[str]) -> Iterator[PublishedRow]:
    """Those whose ids match one of some patterns."""
    return (row for row in rows if any(fnmatchcase(row.id, pattern) for pattern in patterns))


def loads_of(row: PublishedRow) -> list[Any]:
    """At which load each of the measures behind a printed figure is taken; None of one that is of no single load."""
    found = [checked_measure(measure)[1] for measure in row.measures]
    return [keys_at(keys) for keys in found]


def keys_at(keys: Table) -> Any:
    """The load that the keys of a measure name: of streams as many at once."""
    copies = getattr(keys, "copies", None)
    return getattr(keys, "at", None) if copies is None else AtDepth(depth=copies)


def is_held(row: PublishedRow) -> bool:
    """Whether a printed figure speaks of what is held at the response-time target."""
    return "target" in loads_of(row) or any(measure["kind"] == held.KIND.kind for measure in row.measures)


def hollow_marks(row: PublishedRow, mark: Mark) -> Iterator[Mark]:
    """A printed figure at the place of a mark: one, or the two ends of a range."""
    printed = row.published
    if printed.is_bound:
        return
    texts = [printed.value] if printed.value else [printed.low, printed.high]
    found = sorted({value for text in texts if (value := number(text)) is not None})
    for value in found:
        tip = f"{mark.line}: printed {printed.text} {printed.unit}".rstrip()
        yield replace(mark, value=value, interval=(found[0], found[-1]), label=printed.text, tip=tip)


def hollow_layers(marks: Sequence[Mark], axes: Axes, shape: alt.Shape, y_title: str) -> list[Any]:
    """Printed figures over lines, in the colour and the shape of theirs; no layer where there are none."""
    if not marks:
        return []
    drawn = alt.Chart(data_of(marks)).mark_point(filled=False, size=_SIZE, strokeWidth=_WIDTH, opacity=1)
    layers = [drawn.encode(x=axes.x, y=axes.y, color=axes.color, shape=shape, description="tip:N"), told_apart()]
    if spans := [mark for mark in marks if mark.has_stroke]:
        rule = alt.Chart(data_of(spans)).mark_rule(strokeWidth=_BAND, opacity=_PALE, aria=False)
        low = alt.Y("low:Q", title=y_title)
        layers.insert(0, rule.encode(x=axes.x, y=low, y2="high:Q", color=axes.color))
    return layers


def hollow_on_bars(
    marks: Sequence[Mark], place: alt.Y, along: alt.X, bars: str | None = None, **encoding: Any
) -> list[Any]:
    """The same over bars, in ink; ``bars`` is the colour of those that have one."""
    if not marks:
        return []
    chart, size = alt.Chart(data_of(marks)), _SIZE * 0.6
    # Ink is dark on light paper and light on dark, as bars may be too: a rim of paper sets it off from any of them.
    rim = chart.mark_point(
        filled=False, size=size, strokeWidth=3 * _WIDTH, opacity=1, stroke="white", shape="circle", aria=False
    )
    ring = chart.mark_point(filled=False, size=size, strokeWidth=_WIDTH, opacity=1, color=INK, shape="circle")
    at = {"y": place, "x": along, **encoding}
    layers = [rim.encode(**at), ring.encode(description="tip:N", **at), told_apart(bars)]
    if spans := [mark for mark in marks if mark.has_stroke]:
        rule = alt.Chart(data_of(spans)).mark_rule(strokeWidth=_BAND, opacity=_PALE, aria=False, color=INK)
        layers.insert(0, rule.encode(y=place, x=alt.X("low:Q"), x2="high:Q", **encoding))
    return layers


def told_apart(ours: str | None = INK) -> Any:
    """The legend of both, or of what was printed alone: a layer without marks."""
    words = {**({"ours": ours} if ours else {}), PRINTED: "transparent"}
    scale = alt.Scale(domain=list(words), range=list(words.values()))
    legend = alt.Legend(title=None, columns=2, symbolType="circle", symbolStrokeColor=INK, symbolStrokeWidth=_WIDTH)
    return (
        alt.Chart(alt.InlineData(values=[]))
        .mark_point(aria=False)
        .encode(fill=alt.Fill("kind:N", scale=scale, legend=legend))
    )


def labels_with(labels: dict[str, str], marks: Iterable[Mark]) -> dict[str, str]:
    """The labels of bars, behind each what was printed of it."""
    said = {mark.line: mark.label for mark in marks}
    return {name: f"{label} \u25cb {said[name]}" if name in said else label for name, label in labels.items()}


def decimals_of(values: Mapping[str, Iterable[float]], over: Iterable[Mark]) -> int:
    """With how many decimals the figures of bars are written: as many as were printed, if of each bar something was.

    Where of some nothing was printed, as many as tell them apart, and no fewer than were printed.

    Examples
    --------
    >>> printed = [Mark("a", 1.152, label="1.152"), Mark("b", 0.9, label="0.9 to 1.1")]
    >>> decimals_of({"a": [1.1], "b": [0.95]}, printed), decimals_of({"a": [31.0], "c": [1.0]}, printed[1:])
    (3, 1)
    """
    printed = {mark.line: max([0, *map(len, _DECIMALS.findall(mark.label))]) for mark in over}
    most = max(printed.values(), default=0)
    if printed.keys() >= values.keys():
        return most
    return max(most, alike(value for each in values.values() for value in each))


def in_words(marks: Iterable[Mark]) -> str:
    """What was printed, for whoever does not see it; empty where nothing is drawn."""
    said = dict.fromkeys(mark.tip.replace(": printed", "") for mark in marks)
    return f" Printed: {'; '.join(said)}." if said else ""
