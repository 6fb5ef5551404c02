"""Which level gives most, as a map over the size of requests and the share of reads; a panel for each load.

A field has the colour of the level whose best array gives most there, says by how much more than the best of the next
level, and is the paler the less that is. A tie has the colour of no level: what is not shown is nobody's win. Where one
level alone was run there is no field.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import altair as alt

from raidlab.analysis.metrics import Analysis, Metric, Point
from raidlab.published.compare import PublishedComparison
from raidlab.report.answer import TARGET_WORDS, Clause, TableAnswer
from raidlab.report.figures.chart import Mark, channel_by_name, data_of, layered, shown_of
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.own import metrics_of, own_figures
from raidlab.report.figures.printed_points import Printed
from raidlab.report.figures.style import PART_COLOURS, colours_of
from raidlab.report.figures.words import number
from raidlab.stats import NOTHING_SHOWN_PERCENT, differs
from raidlab.study.figure import StudyFigure
from raidlab.study.units import format_bytes

KIND = "winners"
# A lead of so much has the full colour; text is to be read on it.
_CLEAR_PERCENT, _PALE, _PLAIN = 50.0, 0.1, 0.6
_TIE, _TIE_COLOUR, _TIE_OPACITY = "tie", PART_COLOURS[0], 0.45
_COLUMN, _ROW = 58, 26
_CAPTION = (
    "A field's colour is the level that gives most there, with the best of its arrays; the text says by how much more "
    f"than the best of the next level. A tie, in grey, is a lead of less than {NOTHING_SHOWN_PERCENT:g} %, or one that "
    "the repeats do not bear out."
)
# The size of requests and the percentage of reads.
Place = tuple[float, float]


@dataclass(frozen=True)
class _Best:
    """The array of a level that gives most somewhere."""

    level: str
    point: Point
    value: float

    def ties_with(self, other: _Best, metric: Metric) -> bool:
        """Whether nothing shows that it gives more: a lead of little, or one within what repeats differ by."""
        if self.value < other.value * (1 + NOTHING_SHOWN_PERCENT / 100):
            return True
        pairs = [
            (own, its)
            for mine, theirs in zip(self.point.repeats, other.point.repeats, strict=False)
            if (own := metric.compute(mine, None)) is not None and (its := metric.compute(theirs, None)) is not None
        ]
        return differs([own for own, _ in pairs], [its for _, its in pairs]) is False


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each load."""
    yield from own_figures(analysis, KIND, _CAPTION, _panels, published)


def answer(analysis: Analysis, target: str) -> TableAnswer | None:
    """Which level gives most, and how often, over all maps of a target; None where the study has no map of it."""
    maps = [
        (f"{spec.number}, {load}", marks)
        for spec in analysis.run.study.figure
        if spec.draw == KIND
        for load, marks in _maps(analysis, spec, target)
    ]
    if not maps:
        return None
    fields = [mark for _, marks in maps for mark in marks]
    summary = (
        f"Of {len(fields)} fields (a size of requests, a share of reads and a load each), each level gives most in: "
        f"{_counted(fields)}."
    )
    clauses = tuple(Clause(name, "none", f"{_counted(marks)} of {len(marks)}", "") for name, marks in maps)
    return TableAnswer(target, TARGET_WORDS[target], summary, summary, "Which level gives most", clauses)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, _printed: Printed) -> Iterator[Panel]:
    levels = list(dict.fromkeys(_levels(analysis, spec).values()))
    for load, marks in _maps(analysis, spec, target):
        yield Panel(load, _chart(marks, levels, load), _in_words(marks))


def _levels(analysis: Analysis, spec: StudyFigure) -> dict[str, str]:
    """By array, the word with which the study makes it: some levels are trees of others."""
    words = {array.name: array.tree.partition("(")[0].strip() for array in analysis.run.study.array}
    return {name: words[name] for name in spec.arrays}


def _maps(analysis: Analysis, spec: StudyFigure, target: str) -> Iterator[tuple[str, list[Mark]]]:
    """The fields of each load that has any."""
    (metric,) = metrics_of(spec)
    levels = _levels(analysis, spec)
    loads: dict[str, list[Point]] = defaultdict(list)
    for point in analysis.swept(target):
        if point.array in levels and point.workload in spec.workloads:
            loads[point.level].append(point)
    for load, points in loads.items():
        if marks := _marks(_ranked(analysis, points, metric, levels), metric):
            yield load, marks


def _ranked(
    analysis: Analysis, points: list[Point], metric: Metric, levels: dict[str, str]
) -> dict[Place, list[_Best]]:
    """The best array of each level at every place, the best level first; of places with two levels at least."""
    works = {work.name: work for work in analysis.run.study.workload}
    found: dict[Place, dict[str, _Best]] = defaultdict(dict)
    for point in points:
        value = metric.compute(point, None)
        work, level = works[point.workload], levels[point.array]
        best = found[work.size.typical_bytes, 100 * work.read]
        if value is not None and (level not in best or value > best[level].value):
            best[level] = _Best(level, point, value)
    ranked = {place: sorted(best.values(), key=lambda one: -one.value) for place, best in sorted(found.items())}
    return {place: best for place, best in ranked.items() if len(best) > 1 and best[1].value}


def _marks(ranked: dict[Place, list[_Best]], metric: Metric) -> list[Mark]:
    """A field for each place: its level, its column and row, by how much it leads."""
    marks = []
    for (size_bytes, read_percent), (first, second, *_) in ranked.items():
        column, lead = format_bytes(round(size_bytes)), 100 * (first.value / second.value - 1)
        tip = (
            f"{column}, {read_percent:g} % reads: {first.point.array} {number(first.value)} {metric.unit}, "
            f"{number(lead)} % more than {second.point.array}"
        )
        line, label = first.level, f"+{lead:.0f} %"
        if first.ties_with(second, metric):
            line, label, tip = _TIE, _TIE, f"{tip}: a tie"
        marks.append(Mark(line, read_percent, size_bytes, part=column, level=lead, label=label, tip=tip))
    return marks


def _in_words(marks: list[Mark]) -> str:
    """How often each level gives most, and where one does so most clearly."""
    fields: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        fields[mark.line].append(mark)
    clear = [max(own, key=lambda mark: mark.level or 0.0).tip for level, own in fields.items() if level != _TIE]
    clearest = f" Most clearly at {'; '.join(clear)}." if clear else ""
    return f"Of {len(marks)} fields {_counted(marks)}.{clearest}"


def _counted(marks: list[Mark]) -> str:
    """How many fields each level has, the most first, and how many are ties."""
    count = Counter(mark.line for mark in marks)
    ties = count.pop(_TIE, 0)
    return ", ".join(
        f"{level} in {fields}" for level, fields in [*count.most_common(), *([(_TIE, ties)] if ties else [])]
    )


def _chart(marks: list[Mark], levels: list[str], title: str) -> Chart:
    columns = list(dict.fromkeys(mark.part for mark in marks))
    rows = sorted({mark.value for mark in marks}, reverse=True)
    place = {
        "x": alt.X("part:O", title="size of requests", sort=columns, axis=alt.Axis(labelAngle=0)),
        "y": alt.Y("value:O", title="reads, %", sort=rows),
    }
    colours = {**colours_of(levels), _TIE: _TIE_COLOUR}
    colour = channel_by_name(alt.Color, "line", {name: colours[name] for name in shown_of(colours, marks)})
    shade = alt.Scale(domain=[0, _CLEAR_PERCENT], range=[_PALE, _PLAIN], clamp=True)
    paleness = alt.Opacity("level:Q", scale=shade, legend=None)
    fields = (
        alt.Chart(data_of(marks))
        .mark_rect()
        .encode(
            **place,
            color=colour,
            opacity=alt.condition(alt.datum.line == _TIE, alt.value(_TIE_OPACITY), paleness),
            description="tip:N",
        )
    )
    words = alt.Chart(data_of(marks)).mark_text(fontSize=11, aria=False).encode(**place, text="label:N")
    return layered([fields, words], title, _COLUMN * len(columns), _ROW * len(rows))
