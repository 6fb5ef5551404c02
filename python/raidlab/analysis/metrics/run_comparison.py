"""Two runs, or two arrays or two targets of runs, set against each other.

Invariants:

- Compared is what was asked the same: points of one workload and load, of one target unless two were named. What is not
  comparable is refused with the reason, and never left out silently.
- Repeats are compared in pairs where both sides have the same ones, given the same requests (one seed); else all of
  them as they are. No repeat is left out.
- What is shown of a side is the geometric mean of its repeats, so that the ratio is that of the two figures beside it.
- All figures that are shown together are one family, and Holm's correction is for all of it.
- A ratio stands beside its two absolute figures, and ratios are averaged geometrically.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from raidlab.analysis.metrics.comparable import notes_of, refusals
from raidlab.analysis.metrics.point import Point, points_of
from raidlab.analysis.metrics.relative_throughput import share_basis
from raidlab.analysis.metrics.repeat_figures import DEFAULT_KINDS, NS_PER_MS, REPEAT_FIGURES, RepeatFigure
from raidlab.errors import InputError
from raidlab.results import Run
from raidlab.stats import Answer, Difference, Reason, compare, compare_unpaired, corrected, student
from raidlab.stats.answer import CONFIDENCE
from raidlab.stats.interval import ratio_of
from raidlab.study.words import is_simulated

# Targets that follow from an idle response time differ a little from run to run.
_TARGET_TOLERANCE = 0.01
# No figure of anything lies beyond these; the ratio of two within them is a number that has a logarithm.
_LEAST, _MOST = 1e-100, 1e100
_UNEQUAL = "--unequal-capacity compares them all the same, and --per user_capacity per byte of it"


@dataclass(frozen=True)
class Side:
    """What is compared: a run, or one array of it, or what it has on one target."""

    run: Run
    array: str | None
    words: str
    target: str | None = None


@dataclass(frozen=True)
class ComparisonRow:
    """One figure of both sides."""

    a: Point
    b: Point
    level: str
    """The load, in words."""
    operation: str
    """``read`` or ``write``, or ``all`` where the two are not told apart."""
    figure: RepeatFigure
    merged: tuple[float, float]
    """A's and B's with all repeats added up to one, as a run's own tables have them, on the basis asked for."""
    each: tuple[dict[int, float], dict[int, float]]
    """A's and B's, by repeat."""
    is_paired: bool
    difference: Difference
    """B against A."""

    @property
    def values(self) -> tuple[float, float]:
        """A's and B's, the geometric means of their repeats; the ratio is B's to A's."""
        return _mean_of(self.each[0]), _mean_of(self.each[1])

    @property
    def arrays(self) -> str:
        """The array, or both where another was compared."""
        return _against(self.a.array, self.b.array)

    @property
    def targets(self) -> str:
        """The target, or both where another was compared."""
        return _against(self.a.target, self.b.target)

    @property
    def is_equally_often(self) -> bool:
        """Whether both sides have the same repeats, whatever they were given."""
        return set(self.each[0]) == set(self.each[1])


@dataclass(frozen=True)
class Refusal:
    """What was not compared, and why."""

    what: str
    reason: str


@dataclass(frozen=True)
class RunComparison:
    """All that was compared of two sides.

    Attributes
    ----------
    notes : list of str
        What whoever reads the rows should know.
    per : str
        What rates are divided by: ``array`` (nothing), ``disk`` or ``user_capacity``.
    """

    a: Side
    b: Side
    rows: list[ComparisonRow]
    refused: list[Refusal]
    notes: list[str]
    per: str

    def geometric_means(self) -> dict[str, Answer]:
        """By kind of figure, the geometric mean of its ratios, where there are several.

        The interval is that of the repeats: where all of them were compared in pairs of the same repeats, each repeat
        has a geometric mean of its own.
        """
        found = {}
        for kind in dict.fromkeys(row.figure.kind for row in self.rows):
            mine = [row for row in self.rows if row.figure.kind == kind and row.difference.ratio.value is not None]
            if len(mine) > 1:
                found[kind] = _geometric_mean(mine)
        return found


def compare_runs(
    a: Side,
    b: Side,
    *,
    kinds: Sequence[str] = DEFAULT_KINDS,
    per: str = "array",
    unequal_capacity: bool = False,
) -> RunComparison:
    """Compare B with A, by some of `REPEAT_FIGURES`, a rate per ``array``, ``disk`` or ``user_capacity``.

    Where both name an array, these two are compared; else the arrays of the same name. So with targets. Nothing in
    common is an `InputError` with all reasons.
    """
    if a.run.folder.resolve() == b.run.folder.resolve() and (a.array, a.target) == (b.array, b.target):
        accepted = "another run, another array as RUN:ARRAY, or another target as RUN@TARGET"
        raise InputError.one("B", "is A", value=f"'{b.words}'", accepted=accepted)
    refused: list[Refusal] = []
    found: list[ComparisonRow] = []
    for one, other in _matched(a, b, refused, with_capacity=not unequal_capacity and per != "user_capacity"):
        found += _swept(one, other, kinds, per, refused)
        if "throughput_mb_s" in kinds:
            found += _held(one[0], other[0], per, refused)
    if not found:
        reasons = "; ".join(f"{one.what}: {one.reason}" for one in refused) or "they have no figure in common"
        raise InputError.one(
            "RUN", f"nothing of {a.words} and {b.words} can be compared: {reasons}", accepted="the same work on both"
        )
    together = corrected({str(number): row.difference for number, row in enumerate(found)})
    rows = [replace(row, difference=together[str(number)]) for number, row in enumerate(found)]
    targets = [{point.target for point in points} for points in zip(*((row.a, row.b) for row in rows), strict=True)]
    notes = [*notes_of(a.run, b.run, (targets[0], targets[1])), *_unequal(rows)]
    return RunComparison(a, b, rows, refused, notes, per)


def _unequal(rows: Sequence[ComparisonRow]) -> Iterator[str]:
    """What is to be said of lines whose sides were not repeated equally often."""
    counts = [(len(row.each[0]), len(row.each[1])) for row in rows if not row.is_equally_often]
    if not counts:
        return
    where = "" if len(counts) == len(rows) else f" in {len(counts)} of {len(rows)} lines"
    cases = [f"A has {own}, B {other}" for own, other in dict.fromkeys(counts)]
    yield f"The repeats are not the same{where}: {'; '.join(cases[:3])}{'; and others' if len(cases) > 3 else ''}."


Points = list[Point]


def _matched(a: Side, b: Side, refused: list[Refusal], *, with_capacity: bool) -> Iterator[tuple[Points, Points]]:
    """The loads of A and of B under one workload on one target, where the two may be compared."""
    of_a, of_b = _groups(a, b), _groups(b, a)
    for side, mine, theirs in ((a, of_a, of_b), (b, of_b, of_a)):
        refused += [Refusal(_words(key), f"is only in {side.words}") for key in mine if key not in theirs]
    for key in (key for key in of_a if key in of_b):
        reasons = list(refusals(of_a[key][0], of_b[key][0], with_capacity=with_capacity))
        if reasons:
            hint = f" ({_UNEQUAL})" if any("capacity" in reason for reason in reasons) else ""
            refused.append(Refusal(_words(key), "; ".join(reasons) + hint))
        else:
            yield of_a[key], of_b[key]


def _groups(side: Side, other: Side) -> dict[tuple[str, str, str], Points]:
    """The points of the sweep by target, array and workload.

    A target or an array is no part of the key where both sides name theirs; where one does, it is meant of both.
    """
    target, array = side.target or other.target, side.array or other.array
    has_targets, has_arrays = not (side.target and other.target), not (side.array and other.array)
    found: dict[tuple[str, str, str], Points] = {}
    for point in points_of(side.run):
        if point.is_swept and array in (None, point.array) and target in (None, point.target):
            key = (point.target if has_targets else "", point.array if has_arrays else "", point.workload)
            found.setdefault(key, []).append(point)
    return found


def _words(key: tuple[str, str, str]) -> str:
    target, array, workload = key
    return f"{f'{target}: ' if target else ''}{f'{array}, ' if array else ''}{workload}"


def _words_of(a: Point, b: Point) -> str:
    """What two points have in common, of target, array and workload."""
    return _words((a.target if a.target == b.target else "", a.array if a.array == b.array else "", a.workload))


def _against(a: str, b: str) -> str:
    return a if a == b else f"{b} against {a}"


def _swept(
    own: Points, other: Points, kinds: Sequence[str], per: str, refused: list[Refusal]
) -> Iterator[ComparisonRow]:
    """All figures at the loads that both have."""
    levels = {point.level: point for point in other}
    what = _words_of(own[0], other[0])
    common = [(point, levels[point.level]) for point in own if point.level in levels]
    if not common:
        loads = [", ".join(point.level for point in points) for points in (own, other)]
        refused.append(Refusal(what, f"no load in common: {loads[0]} against {loads[1]}"))
    for a, b in common:
        if not (a.keeps_up and b.keeps_up):
            reason = "the rate is not kept up with: response times then grow as long as one measures"
            refused.append(Refusal(f"{what}, {a.level}", reason))
            continue
        for operation in ("read", "write"):
            for kind in kinds:
                figure = REPEAT_FIGURES[kind]
                # What is served in an open loop is what was offered.
                if not (figure.is_rate and a.is_open):
                    yield from _compared(a, b, operation, figure, per)


def _compared(a: Point, b: Point, operation: str, figure: RepeatFigure, per: str) -> Iterator[ComparisonRow]:
    """One figure of two points, if both have it."""
    merged, each = [], []
    for point in (a, b):
        basis = share_basis(point, per) if figure.is_rate else 1.0
        merged.append((figure.compute(point, operation) or 0.0) / basis)
        own = {int(one.rows[0]["repeat"]): figure.compute(one, operation) for one in point.repeats}
        each.append(_comparable({repeat: (value or 0.0) / basis for repeat, value in own.items()}))
    if all(merged) and all(each):
        yield _set_against(a, b, a.level, operation, figure, (merged[0], merged[1]), (each[0], each[1]))


def _set_against(
    a: Point,
    b: Point,
    level: str,
    operation: str,
    figure: RepeatFigure,
    merged: tuple[float, float],
    each: tuple[dict[int, float], dict[int, float]],
) -> ComparisonRow:
    """Compare in pairs, where every repeat of the one has its twin in the other."""
    seeds = [{int(row["repeat"]): row["seed"] for row in point.rows} for point in (a, b)]
    given = [{repeat: seeds[side].get(repeat) for repeat in each[side]} for side in (0, 1)]
    is_paired = given[0] == given[1]
    test = compare if is_paired else compare_unpaired
    own, other = ([part[repeat] for repeat in sorted(part)] for part in each)
    # Simulated repeats have a seed each, and nothing else that they could share.
    independent = is_simulated(a.target) and is_simulated(b.target)
    difference = test(other, own, independent=independent)
    return ComparisonRow(a, b, level, operation, figure, merged, each, is_paired, difference)


def _comparable(each: dict[int, float]) -> dict[int, float]:
    """Those of the repeats whose ratio to others is a number."""
    return {repeat: value for repeat, value in each.items() if _LEAST < value < _MOST}


def _mean_of(each: dict[int, float]) -> float:
    """The geometric mean of the repeats."""
    return math.exp(math.fsum(math.log(value) for value in each.values()) / len(each))


def _held(a: Point, b: Point, per: str, refused: list[Refusal]) -> Iterator[ComparisonRow]:
    """Throughput at an equal percentile of response time, where both searched for the same."""
    found = [
        [row for row in point.run.hold_rows(point.target, point.workload) if row["array"] == point.array]
        for point in (a, b)
    ]
    if not all(found):
        return
    first = [rows[0] for rows in found]
    wants = [f"p{row['percentile']:g} at {row['target_ns'] / NS_PER_MS:.4g} ms" for row in first]
    what = f"{_words_of(a, b)}, {wants[0]}"
    if first[0]["percentile"] != first[1]["percentile"] or not math.isclose(
        first[0]["target_ns"], first[1]["target_ns"], rel_tol=_TARGET_TOLERANCE
    ):
        refused.append(Refusal(what, f"another response time was held: {wants[1]}"))
        return
    bounds = sorted({row["bound"] for rows in found for row in rows} - {"between", "adjusted"})
    if bounds:
        refused.append(Refusal(what, f"the target was not met in between: {', '.join(bounds).replace('_', ' ')}"))
        return
    each = [
        _comparable(
            {int(row["repeat"]): (row["throughput_bytes_per_s"] or 0.0) / 1e6 / share_basis(point, per) for row in rows}
        )
        for point, rows in zip((a, b), found, strict=True)
    ]
    if not all(each):
        refused.append(Refusal(what, "nothing was served"))
        return
    merged = [math.fsum(part.values()) / len(part) for part in each]
    figure = RepeatFigure(
        "throughput_mb_s_at_percentile", "throughput at an equal percentile, MB/s", True, lambda *_: None
    )
    yield _set_against(a, b, wants[0], "all", figure, (merged[0], merged[1]), (each[0], each[1]))


def _geometric_mean(rows: Sequence[ComparisonRow]) -> Answer:
    """The geometric mean of ratios of one kind, with the interval that the repeats give it."""
    if all(row.is_paired for row in rows) and len({tuple(sorted(row.each[0])) for row in rows}) == 1:
        logs = [
            math.fsum(math.log(row.each[1][repeat] / row.each[0][repeat]) for row in rows) / len(rows)
            for repeat in rows[0].each[0]
        ]
        answer = student(logs)
    else:
        ratios = [row.difference.ratio.value or 1.0 for row in rows]
        value = math.fsum(math.log(ratio) for ratio in ratios) / len(ratios)
        sentence = "not all of them were compared in pairs of the same repeats."
        answer = Answer.refused(
            Reason.NOT_INDEPENDENT, sentence, method="student", n=len(rows), value=value, confidence=CONFIDENCE
        )
    low, high = (None if end is None else ratio_of(end) for end in (answer.low, answer.high))
    method = "geometric mean of ratios"
    return replace(answer, value=math.exp(answer.value or 0.0), low=low, high=high, method=method)
