"""A run beside what its study published, in a report: the answer, and what misses by name.

Invariants:

- Misses stand before hits, and each is named.
- Figures that parameters were fitted to are never counted among those that were predicted; arithmetic and what is
  given, which say nothing of a model, count for neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from statistics import median

from raidlab.analysis.checks import Finding, warns_of
from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import (
    MISS_PERCENT,
    MISS_POINTS,
    Errors,
    PublishedComparison,
    PublishedRow,
    bases_of,
    errors_of,
    held_counts,
    held_words,
)
from raidlab.published.compare.clause import sentence_of
from raidlab.published.compare.evaluate import NOT_GIVEN
from raidlab.report.answer import listed, no_answer
from raidlab.study.units import format_number

# So many arrays or workloads are named that a target does not have; of more the rest is counted.
_FEW = 4
# So many misses are named in the answer; the table below has all of them.
NAMED = 5
_OF_ITS_OWN = "What it printed in figures is of its own hardware, and stands beside what comes out here, below."
NEAR = f"{MISS_PERCENT:g}\u00a0% (percentages: {MISS_POINTS:g} points, of those below 15 a fifth of it)"


@dataclass(frozen=True)
class Standing:
    """Where a run stands beside what its study published."""

    headline: str
    """The answer; that there is none, where a check says INVALID."""
    details: str
    """What it rests on, what is called near, how large the errors are; empty where there is no answer."""
    misses: list[PublishedRow]
    """Conclusions and claims that fail, then figures beyond `NEAR`, the largest error first."""
    errors: list[Errors]
    """Of each table and kind."""

    @property
    def named(self) -> list[PublishedRow]:
        """The misses that the answer names; none where there is no answer."""
        return self.misses[:NAMED] if self.details else []

    @property
    def beyond_conclusions(self) -> list[PublishedRow]:
        """The misses that are no conclusions, which a report has a table of."""
        return [row for row in self.misses if not row.is_conclusion]


_NONE_LEFT = "No printed figure was left to be predicted or measured."


def standing_of(published: PublishedComparison, broken: str = "") -> Standing | None:
    """Sum up a comparison; None where nothing that was run could be set beside what was printed.

    ``broken`` says why there is no answer: the checks that say INVALID of the target that is compared.
    """
    rows = [row for row in published.published if row.is_counted]
    compared = [row for row in rows if row.verdict == "compared" and row.error is not None]
    # A figure on the right side of a bound may be far from it, and is not near it.
    bounds = [row for row in compared if row.published.is_bound]
    figures = [row for row in compared if not row.published.is_bound]
    if not compared and not any(row in published.published for row in published.asked):
        return None
    missed = sorted((row for row in compared if row.is_miss), key=lambda row: -abs(row.error or 0.0))
    free = [row for row in figures if not row.is_fitted]
    fitted = [row for row in figures if row.is_fitted]
    said, details = [], []
    asked = published.asked
    failed = [row for row in asked if row.verdict == "fails"]
    if asked:
        # A report has a table of conclusions; what a figure claims stands below that figure.
        kinds = {"published conclusions": [row for row in asked if row.is_conclusion]}
        kinds["claims of figures"] = [row for row in asked if not row.is_conclusion]
        there = {what: rows for what, rows in kinds.items() if rows}
        said.append("; ".join(", ".join(held_counts(rows, f"{what} hold here")) for what, rows in there.items()))
        # Of what was measured nothing was fitted.
        if not published.is_elsewhere:
            what = " and ".join(there)
            details.append(f"{what[:1].upper()}{what[1:]} that hold, by what they rest on: {bases_of(asked)}.")
            alone = [row for row in asked if row.is_judged and row.kind == "predicted"]
            if alone and not any(row.verdict == "holds" for row in alone):
                if len(alone) == 1:
                    came = "fails" if alone[0].verdict == "fails" else "is within the noise"
                    said.append(f"One of them rests on predicted figures alone, and {came}")
                else:
                    said.append(f"{len(alone)} of them rest on predicted figures alone, and none of those holds")
    if free:
        word = "measured" if free[0].kind == "measured" else "predicted"
        said.append(f"{_near(free)} of {len(free)} {word} figures lie near the printed ones")
        details.append(f"Near is within {NEAR}, rounding apart; the median error is {_medians(free)}.")
    elif fitted:
        near = f"{_near(fitted)} of {len(fitted)}"
        said.append(f"{near} figures that were fitted to, or are worked out of such, lie near the printed ones")
        details.append(f"Near is within {NEAR}, rounding apart. {_NONE_LEFT}")
    else:
        details.append(_OF_ITS_OWN if published.is_elsewhere else _NONE_LEFT)
    if fitted and free:
        near = f"{_near(fitted)} of {len(fitted)}"
        details.append(f"Of those that parameters were fitted to, or that are worked out of such, {near} lie as near.")
    if bounds:
        details.append(f"{_near(bounds)} of {len(bounds)} printed bounds are kept.")
    misses, errors = [*failed, *missed], errors_of(published.published)
    if broken:
        return Standing(f"{broken} of what is compared.", "", misses, errors)
    return Standing(f"{'. '.join(said) or 'Nothing but bounds was printed'}.", " ".join(details), misses, errors)


def standing_in(published: PublishedComparison | None, findings: Iterable[Finding]) -> Standing | None:
    """Where a run stands, given what the checks say of it."""
    if published is None:
        return None
    return standing_of(published, no_answer(findings, published.target))


@dataclass(frozen=True)
class TargetConclusions:
    """What came of the study's conclusions on one target."""

    target: str
    sentence: str
    rows: list[PublishedRow]
    care: dict[str, list[Finding]] = field(default_factory=dict)
    """What checks say of the figures that a conclusion rests on, by its id."""

    @property
    def failed(self) -> list[PublishedRow]:
        """Those that fail."""
        return [row for row in self.rows if row.verdict == "fails"]


def concluded(published: PublishedComparison | None, findings: Sequence[Finding]) -> list[TargetConclusions]:
    """The study's conclusions, target by target: how many hold, how many fail; none where one is INVALID."""
    found: list[TargetConclusions] = []
    if published is None:
        return found
    for target in dict.fromkeys(row.figure for row in published.conclusions):
        rows = [row for row in published.conclusions if row.figure == target]
        if broken := no_answer(findings, target):
            found.append(TargetConclusions(target, f"{broken}: its conclusions are not judged", []))
            continue
        if not any(row.is_judged for row in rows):
            found.append(TargetConclusions(target, "none of its conclusions could be tested", rows))
            continue
        said = held_words(rows, "conclusions that are tested on any hardware hold")
        care = {row.id: told for row in rows if row.is_judged and (told := warns_of(findings, target, _rests_on(row)))}
        if care:
            judged = sum(row.is_judged for row in rows)
            said += f"; {len(care)} of the {judged} rest{'s' if len(care) == 1 else ''} on figures that checks warn of"
        found.append(TargetConclusions(target, said, rows, care))
    return found


def _rests_on(row: PublishedRow) -> Iterator[tuple[str, str]]:
    """The arrays and workloads that a row was taken from, patterns of names among them."""
    for measure in row.measures:
        load = measure.get("workload", measure.get("workloads"))
        if "array" in measure and load:
            yield str(measure["array"]), str(load)
        if "reference" in measure:
            yield str(measure["reference"]), str(measure.get("reference_workload", load))


@dataclass(frozen=True)
class Unasked:
    """Conclusions that could not be asked of a target, all for one reason."""

    target: str
    why: str
    rows: list[PublishedRow]


def unasked(analysis: Analysis, conclusions: Iterable[TargetConclusions]) -> list[Unasked]:
    """What could not be asked, by why: most often for an array that the target does not have."""
    found: list[Unasked] = []
    for one in conclusions:
        points = [point for point in analysis.points if point.target == one.target]
        here, ran = {point.array for point in points}, {point.workload for point in points}
        by_reason: dict[str, list[PublishedRow]] = {}
        missing: dict[str, None] = {}
        # Of those that lack no array: workloads of which nothing was run, such as one of requests below a sector.
        not_run: list[PublishedRow] = []
        workloads: dict[str, None] = {}
        for row in one.rows:
            if not row.is_evaluated:
                named = dict.fromkeys(str(measure["array"]) for measure in row.measures if "array" in measure)
                # A pattern is of several arrays, and has none only where nothing fits it.
                absent = [name for name in named if not any(fnmatchcase(array, name) for array in here)]
                asked = [measure.get(key) for measure in row.measures for key in ("workload", "reference_workload")]
                lacking = [name for name in map(str, filter(None, asked)) if name not in ran]
                if lacking and not absent and row.note.startswith(NOT_GIVEN):
                    not_run.append(row)
                    workloads.update(dict.fromkeys(lacking))
                    continue
                by_reason.setdefault("" if absent else row.note, []).append(row)
                missing.update(dict.fromkeys(absent))
        if "" in by_reason:
            found.append(Unasked(one.target, f"it has no array {_first_of(missing)}", by_reason.pop("")))
        if not_run:
            found.append(Unasked(one.target, f"nothing was run of {_first_of(workloads)}", not_run))
        found += [Unasked(one.target, why, rows) for why, rows in by_reason.items()]
    return found


def _first_of(names: Iterable[str]) -> str:
    """Names in quotes; of many the first, and how many others there are."""
    quoted = [f"'{name}'" for name in names]
    more = len(quoted) - _FEW
    return listed(quoted if more <= 1 else [*quoted[:_FEW], f"{more} others"], "or")


def _near(rows: list[PublishedRow]) -> int:
    return sum(not row.is_miss for row in rows)


def _medians(rows: list[PublishedRow]) -> str:
    """The median errors, percent and points apart."""
    medians = []
    for unit, word in (("%", " %"), ("pt", " points")):
        sizes = [abs(row.error or 0.0) for row in rows if row.error_unit == unit]
        if sizes:
            medians.append(f"{median(sizes):.2g}{word} (of {len(sizes)})")
    return " and ".join(medians)


def both(row: PublishedRow) -> str:
    """A miss with its two figures; of what fails, the comparison that it fails by the furthest."""
    if row.value is None:
        return f"fails: {sentence_of(row.clauses[:1])}" if row.clauses else "fails"
    return f"{format_number(row.value)} against the printed {row.published.text} {row.published.unit}".strip()
