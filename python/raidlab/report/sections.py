"""The middle of a report: of each target its tables, with the figures that belong to them and the data path.

Invariant: nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import polars as pl
from markupsafe import Markup

from raidlab.analysis.checks import Finding, warns_of
from raidlab.analysis.metrics import Analysis, Comparison, Point
from raidlab.published.compare import PublishedComparison, PublishedRow
from raidlab.report.answer import PER_WORDS, TARGET_WORDS
from raidlab.report.figures import Figure
from raidlab.report.figures.figure import group_key, key_of, length
from raidlab.report.figures.own import drawn_by, own_key
from raidlab.report.path import DataPath, data_path
from raidlab.stats import interval_above_zero
from raidlab.study.check import is_same_capacity

# In pixels; a panel of a metric over the load is.
_WIDE = 440


@dataclass(frozen=True)
class Shown:
    """A figure as the page has it."""

    title: str
    caption: str
    svgs: list[Markup]
    is_wide: bool = False
    claims: list[PublishedRow] = field(default_factory=list)
    care: list[Finding] = field(default_factory=list)
    """What checks say of the figures that are drawn."""


@dataclass(frozen=True)
class PointRow:
    """A point that stands in no table of comparisons."""

    point: Point
    values: dict[str, float | None]
    interval_mb_s: tuple[float, float] | None


@dataclass(frozen=True)
class StreamRow:
    """All streams of one name of a point, that are alike."""

    array: str
    workload: str
    level: str
    stream: str
    each: int
    mb_s: float | None
    tape_stops: float | None
    """Of a run, the mean over its repeats; none where no tape is."""
    bound_by: str


@dataclass(frozen=True)
class Section:
    """A table on one target, with what belongs to it."""

    key: str
    title: str
    note: str = ""
    reference: str = ""
    per: str = ""
    equal: str = ""
    space: str = ""
    figures: list[Shown] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    care: list[Finding] = field(default_factory=list)
    points: list[PointRow] = field(default_factory=list)
    streams: list[StreamRow] = field(default_factory=list)
    path: DataPath | None = None


@dataclass(frozen=True)
class TargetSections:
    """A target with its sections."""

    key: str
    title: str
    sections: list[Section]


def target_title(analysis: Analysis, target: str) -> str:
    """How a target is called: its word, and what it is made of."""
    study, facts = analysis.run.study, analysis.run.facts
    if target == "live":
        kinds = sorted({member["kind"] for member in facts["live_members"]})
        return f"{TARGET_WORDS[target]}: {', '.join(kinds)} members"
    section = study.original if target == "original" else study.sim
    parameters = facts["devices"][target]
    if target == "emulated":
        name = parameters.get("name") or "a modelled device"
        return f"{TARGET_WORDS[target]}: {name}, at speed {study.emulated.speed:g}"
    name = (section.hardware if section is not None else None) or parameters.get("name") or "a modelled device"
    return f"{TARGET_WORDS[target]}: {name}"


def space_words(comparisons: list[Comparison]) -> str:
    """How many members' worth of user capacity each array of a table has; nothing where all have the same."""
    points = {row.array: row.point for comparison in comparisons for row in comparison.rows}
    known = {array: point for array, point in points.items() if point.storage_efficiency is not None}
    sizes = [int(point.rows[0]["user_bytes"]) for point in known.values()]
    trees = [point.tree for point in known.values() if point.tree is not None]
    if sizes and is_same_capacity(sizes, trees):
        return ""
    return ", ".join(
        f"{point.members * (point.storage_efficiency or 0):.3g} of {array}" for array, point in known.items()
    )


def failures_words(points: Iterable[Point]) -> str:
    """How many members each array may lose, whichever they are; those of which nothing tells are left out."""
    borne = {point.array: point.failures_borne for point in points}
    told = [f"{count or 'none'} of {array}" for array, count in borne.items() if count is not None]
    return f"Members that may fail, whichever: {', '.join(told)}." if told else ""


def targets_of(
    analysis: Analysis, figures: list[Figure], published: PublishedComparison | None, findings: Sequence[Finding]
) -> list[TargetSections]:
    """All targets of a run, each with its sections: the study's own figures, its tables, what is in no table."""
    found = []
    for target in analysis.targets:
        sections = [*_own(analysis, figures, target, published, findings)]
        sections += _tables(analysis, figures, target, findings)
        sections += _rest(analysis, target)
        found.append(TargetSections(target, target_title(analysis, target), sections))
    return found


def _own(
    analysis: Analysis,
    figures: list[Figure],
    target: str,
    published: PublishedComparison | None,
    findings: Sequence[Finding],
) -> Iterator[Section]:
    """The figures under the study's own names, each with the claims that are tested on it."""
    rows: dict[str, PublishedRow] = {}
    if published is not None:
        # Each target has its own conclusions; one stands beside what was published.
        rows = {row.id: row for row in published.published if target == published.target}
        rows |= {row.id: row for row in published.conclusions if row.figure == target}
    by_key = {figure.key: figure for figure in figures}
    found, missing = [], []
    for spec in analysis.run.study.figure:
        figure = by_key.get(own_key(analysis.run.study, spec, target))
        if figure is None:
            missing.append(spec.number)
        else:
            claims = [rows[name] for name in spec.claims if name in rows]
            # What was printed of boxes that are not here is nobody's news below each figure.
            here = [row for row in claims if row.is_evaluated or (target == "original" and row.published.text)]
            found.append(replace(shown(figure, here), care=warns_of(findings, target, drawn_by(spec))))
    if found:
        note = f"Not here, for nothing of it was run: {'; '.join(missing)}." if missing else ""
        yield Section(key_of("own", target), "The study's own figures", note=note, figures=found)


def _plain_mb(analysis: Analysis) -> str:
    """What MB are in tables, where the study's own figures have others."""
    if not any((spec.unit or "").startswith("MB/s of ") for spec in analysis.run.study.figure):
        return ""
    return "MB are 10^6 bytes here; the study's figures and claims have its own."


def _tables(analysis: Analysis, figures: list[Figure], target: str, findings: Sequence[Finding]) -> Iterator[Section]:
    for compare in analysis.run.study.compare:
        mine = analysis.compared(target, compare.group)
        if mine:
            group = group_key(analysis.run.study, compare.group)
            rows = [row.point for comparison in mine for row in comparison.rows]
            yield Section(
                key=key_of(group, target),
                title=compare.title,
                note=" ".join(filter(None, (compare.note, _plain_mb(analysis)))),
                reference=compare.reference,
                per=PER_WORDS[compare.per],
                equal=compare.equal,
                space=space_words(mine),
                figures=[shown(figure) for figure in figures if figure.key == key_of(figure.kind, group, target)],
                comparisons=mine,
                care=warns_of(findings, target, [(point.array, point.workload) for point in rows]),
                path=data_path(rows),
            )


def _rest(analysis: Analysis, target: str) -> Iterator[Section]:
    """What stands in no table: the points of groups that are not compared, and streams."""
    compared = {compare.group for compare in analysis.run.study.compare}
    streams = stream_rows(analysis, target)
    with_streams = {(row.array, row.workload) for row in streams}
    loose = [
        (index, point)
        for index, point in enumerate(analysis.points)
        if point.target == target and point.group not in compared and point.is_swept
    ]
    points = [
        PointRow(
            point, analysis.values[index], interval_above_zero([rate / 1e6 for rate in point.each_per_s("all_bytes")])
        )
        for index, point in loose
        if (point.array, point.workload) not in with_streams
    ]
    if points or streams:
        yield Section(
            key=key_of("rest", target),
            title="Everything that was run" if not compared else "What is in no table",
            note=_plain_mb(analysis),
            points=points,
            streams=streams,
            path=data_path(_heaviest(point for _, point in loose)),
        )


def _heaviest(points: Iterable[Point]) -> list[Point]:
    """Of each array and workload the point at the heaviest load."""
    found: dict[tuple[str, str], Point] = {}
    for point in points:
        key = (point.array, point.workload)
        if key not in found or point.level_value >= found[key].level_value:
            found[key] = point
    return list(found.values())


def stream_rows(analysis: Analysis, target: str) -> list[StreamRow]:
    """Every stream of a target; of those that are alike one's share of all bytes, by the time until the last ended."""
    if analysis.run.streams.is_empty():
        return []
    rows = []
    for point in analysis.points:
        if point.target != target:
            continue
        found = point.rows_of("streams")
        for (name,), mine in found.partition_by("stream", as_dict=True, maintain_order=True).items():
            cells = mine.group_by("cell").agg(pl.col("bytes").mean(), pl.col("elapsed_ns").max())
            moved, elapsed_ns = float(cells["bytes"].sum()), int(cells["elapsed_ns"].sum())
            stops = sum(source + sink for source, sink in mine.select("source_stops", "sink_stops").iter_rows())
            bound = mine["bound_by"].to_list()
            rows.append(
                StreamRow(
                    point.array,
                    point.workload,
                    point.level,
                    str(name),
                    mine.height // len(point.rows),
                    moved / elapsed_ns * 1000 if elapsed_ns else None,
                    stops / cells.height if "tape" in {*mine["source"], *mine["sink"]} else None,
                    max(set(bound), key=bound.count),
                )
            )
    return rows


def shown(figure: Figure, claims: list[PublishedRow] | None = None) -> Shown:
    """A figure with its panels drawn; those too wide for columns of three stand in columns of two."""
    svgs = [Markup(svg) for svg in figure.panel_svgs()]
    is_wide = any(length(svg, "width") > _WIDE for svg in svgs)
    return Shown(figure.title, figure.caption, svgs, is_wide, claims or [])
