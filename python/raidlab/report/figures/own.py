"""Figures that a study asks for under its own names: what the kinds of them have in common.

Invariants:

- A figure is drawn for each target on which at least one of its lines was run; what was not run is left out, and named
  in the caption.
- A line keeps its colour and shape in all panels of a figure, and in all figures of lines that a study asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from raidlab.analysis.metrics import METRICS, Analysis, Metric, Point
from raidlab.published.compare import PublishedComparison
from raidlab.published.quantities import Reading, Source, held, metric
from raidlab.published.quantities.kind import each_of, repeats_of
from raidlab.report.figures.figure import Figure, Panel, key_of, keys_of
from raidlab.report.figures.printed_points import Printed, printed_of
from raidlab.stats import interval_above_zero
from raidlab.study import Study
from raidlab.study.figure import StudyFigure

OWN = "own"
# Kinds of figures whose lines are arrays.
_LINES = ("curves", "sizes", "total_time", "trade_off")
ONE_RUN = "One run each: no interval."
BY_KIND: dict[str, Metric] = {metric.kind: metric for metric in METRICS}

# A load: a word, a depth, or what a metric of `quantities.toml` may say of it.
At = str | int | dict[str, float]
Panels = Callable[[Analysis, StudyFigure, str, Printed], Iterable[Panel]]
# How to read figures of a kind, or what is to be said of each.
Caption = str | Callable[[Analysis, StudyFigure, str], str]


@dataclass(frozen=True)
class ArrayLine:
    """A line or bar: an array under a workload, and how it is called."""

    array: str
    workload: str
    name: str


def lines_of(spec: StudyFigure, workload: str) -> list[ArrayLine]:
    """The lines of a panel, in their order."""
    listed = [ArrayLine(array, workload, array) for array in spec.arrays]
    return listed + [ArrayLine(one.array, one.workload or workload, one.name or one.array) for one in spec.also]


def places_of(study: Study, names: Iterable[str]) -> list[str]:
    """Names of lines, each at the place that gives it the same colour and shape in every figure of the study.

    Names that stand in one figure have places of their own; each has the first that is free, in the order of figures.
    Places of names that stand elsewhere are empty; names that the study does not know, such as results of others, have
    those that are left.
    """
    together = [list(dict.fromkeys(_line_names(spec))) for spec in study.figure if spec.draw in _LINES]
    place: dict[str, int] = {}
    for name in (name for names_of_one in together for name in names_of_one):
        taken = {place[other] for listed in together if name in listed for other in listed if other in place}
        place.setdefault(name, next(index for index in count() if index not in taken))
    wanted = list(dict.fromkeys(names))
    used = {place[name] for name in wanted if name in place}
    free = (index for index in count() if index not in used)
    mine = {name: place[name] if name in place else next(free) for name in wanted}
    found = [""] * (max(mine.values(), default=-1) + 1)
    for name, index in mine.items():
        found[index] = name
    return found


def _line_names(spec: StudyFigure) -> Iterator[str]:
    yield from spec.arrays
    for one in spec.also:
        yield one.name or one.array


def drawn_by(spec: StudyFigure) -> Iterator[tuple[str, str]]:
    """The arrays and workloads of all that a figure draws."""
    loads = [*spec.workloads, *(load for one in spec.series for load in one.workloads)]
    yield from ((line.array, line.workload) for load in loads for line in lines_of(spec, load))
    yield from ((array, load) for line in spec.lines for array in line.arrays for load in line.workloads)


def panels_of(spec: StudyFigure) -> list[tuple[str, str]]:
    """The workloads of a figure's panels, each with what its panel is called."""
    return list(zip(spec.workloads, spec.panels or spec.workloads, strict=True))


def metrics_of(spec: StudyFigure) -> list[Metric]:
    """What a figure draws, in the unit that it asks for."""
    return [in_unit(BY_KIND[kind], spec) for kind in spec.metrics if kind in BY_KIND]


def in_unit(metric: Metric, spec: StudyFigure) -> Metric:
    """A metric in the unit that a figure asks for."""

    def compute(point: Point, reference: Point | None) -> float | None:
        value = metric.compute(point, reference)
        return None if value is None else spec.times * value

    return replace(metric, unit=spec.unit or metric.unit, compute=compute)


def own_key(study: Study, spec: StudyFigure, target: str) -> str:
    """A figure's identity within a report."""
    return key_of(OWN, keys_of(one.number for one in study.figure)[spec.number], target)


def own_figures(
    analysis: Analysis, kind: str, caption: Caption, panels: Panels, published: PublishedComparison | None = None
) -> Iterator[Figure]:
    """The figures of a kind that the study asks for in ``draw``."""
    for target in analysis.targets:
        for spec in analysis.run.study.figure:
            if spec.draw != kind:
                continue
            printed = printed_of(published, source_of(analysis, target), spec.reference)
            patterns = [*spec.printed, *(pattern for one in spec.series for pattern in one.printed)]
            if made := tuple(panels(analysis, spec, target, printed.only(patterns))):
                how, own = (caption, "") if isinstance(caption, str) else ("", caption(analysis, spec, target))
                text = " ".join(part for part in (how, spec.note, own, _not_run(analysis, spec, target)) if part)
                key = own_key(analysis.run.study, spec, target)
                yield Figure(kind, key, f"{spec.number}: {spec.title}", text, made)


def _not_run(analysis: Analysis, spec: StudyFigure, target: str) -> str:
    """Which lines of the study's own are not there: its title may speak of them."""
    lines = [*((name, [name]) for name in spec.arrays), *((one.name or one.array, [one.array]) for one in spec.also)]
    lines += [(line.name, line.arrays) for line in spec.lines]
    # What is only for other targets than its own hardware is no line of the study's.
    own = {target, "original" if analysis.run.study.original else "sim"}
    asked = {one.name for one in analysis.run.study.array if any(one.runs_on(engine) for engine in own)}
    missing = {name: None for name, arrays in lines if asked & set(arrays)}
    for name, arrays in lines:
        if any(analysis.swept(target, array=array) for array in arrays):
            missing.pop(name, None)
    return f"Not run here: {', '.join(missing)}." if missing else ""


def of_repeats(analysis: Analysis, words: str) -> str:
    """What a caption says of intervals over repeats: the words where there are repeats, else that there are none."""
    return words if any(len(point.rows) > 1 for point in analysis.points) else ONE_RUN


def interval_of(point: Point, metric: Metric) -> tuple[float, float] | None:
    """The 95 % interval of a metric over the repeats of a point; None for a single run."""
    return interval_above_zero([one for one in metric.each(point) if one is not None])


def axis_title(metrics: Iterable[Metric]) -> str:
    """What an axis of one metric, or of parts of one whole, is called."""
    listed = list(metrics)
    first = listed[0]
    if len({metric.title.partition(",")[0] for metric in listed}) > 1:
        return first.unit
    return f"{first.title.partition(',')[0]} ({first.unit})" if first.unit not in ("1", "1/s") else first.title


def source_of(analysis: Analysis, target: str) -> Source:
    """Where quantities of a target are read; figures have nothing to do with what was published."""
    return Source(analysis, target, Path())


def reading_at(source: Source, kind: str, array: str, workload: str, at: At) -> Reading | None:
    """A metric at the load that a figure asks for, or at the held response time, of which throughput is known."""
    held_kinds = ("throughput_mb_s", "throughput_per_disk_mb_s")
    if at == "target" and kind in held_kinds:
        return held.read(held.Keys.model_validate({"of": kind, "array": array, "workload": workload}), source)
    where = {"depth": at} if isinstance(at, int) else at
    keys = {"metric": kind, "array": array, "workload": workload, "at": where}
    return metric.read(metric.Keys.model_validate(keys), source)


def percent_of(own: Reading | None, reference: Reading | None) -> Reading | None:
    """One reading in percent of another, and as each repeat adds to it."""
    if own is None or reference is None or not reference.value:
        return None
    # Where the reference gave nothing in a repeat, there is no share of it.
    repeats = repeats_of({"own": own, "reference": reference}) if all(reference.each) else []
    each = each_of(repeats, lambda one: 100 * float(one["own"]) / float(one["reference"]))
    return Reading(100 * own.value / reference.value, tuple(each))


def span_of(reading: Reading) -> tuple[float, float] | None:
    """The 95 % interval of a reading over repeats, as far as it lies above 0; None where there is none."""
    return interval_above_zero(reading.each)
