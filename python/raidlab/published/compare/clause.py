"""What a comparison of figures says, in words: "RAID 1 gives 122 % [118, 126] of RAID 0".

Invariants:

- What is asked of a quotient is told as a share, as are ratios that a sweep takes load by load.
- The words are those of the study: what a measure is called follows from its array, workload and metric, or from the
  ``as`` that it has in ``quantities.toml``.
- A comparison is decided by the 95 % interval that it is told with, over paired repeats: it holds where the whole of it
  is as asked, fails where none of it is, and is within the noise between. No figure that is not shown decides.
- A single run has no interval. What differs by less than `NOTHING_SHOWN_PERCENT`, which a report calls level, is within
  the noise; whether two figures are about the same, where that decides by less than half of how far they may differ.
- What is no result of a run, such as a count of accesses or a printed figure, is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from types import MappingProxyType
from typing import Literal

from raidlab.analysis.metrics import METRICS
from raidlab.published.quantities import KINDS
from raidlab.published.quantities.kind import each_of
from raidlab.stats import NOTHING_SHOWN_PERCENT
from raidlab.stats.jackknife import interval_around
from raidlab.study.expression import Expression, Operand, Relation, read

Figure = Callable[[Mapping[str, Operand]], float]
NOISE: Literal["within the noise"] = "within the noise"
Judged = Literal["holds", "fails", "within the noise"]
# Of what differs by so little in every repeat it is said that it does not, rather than that noise hides it.
_NO_DIFFERENCE_PERCENT = 1.0
# So many clauses stand in a sentence; the others are counted.
_SHOWN = 3
_METRICS = {metric.kind: metric for metric in METRICS}
_AT = {"idle": "one at a time", "maximum": "at its best load", "heaviest": "at the heaviest load"}
_HELD = "at equal response times"
_OF = {
    ("sweep", "mean"): "mean {}",
    ("sweep", "least"): "least {}",
    ("sweep", "greatest"): "greatest {}",
    ("regression", "slope"): "what each further one adds to {}",
    ("regression", "intercept"): "{} with none outstanding, by the line",
    ("regression", "r_squared"): "straightness (R2) of {}",
    ("regression", "residual"): "scatter of {} around its line",
    ("file_size_line", "positioning_ms"): "positioning time",
    ("file_size_line", "rate_mb_s"): "transfer rate",
    ("file_size_line", "r_squared"): "straightness (R2) of time over size",
    ("held", "target_ms"): "response time that is held",
    ("held", "depth"): "requests outstanding",
    ("stream_rate", "mean_mb_s"): "rate of a stream",
    ("stream_rate", "total_mb_s"): "rate of all streams",
    ("stream_rate", "stops"): "stops",
}
# What a fitted line is read for may be negative, as nothing else that is measured.
_OF_A_LINE = {"slope", "intercept", "positioning_ms", "rate_mb_s"}
_UNITS = {"_ms": "ms", "_mb_s": "MB/s"}
# Kinds whose figure is in the unit of its metric.
_IN_UNITS = {"metric", "sweep", "regression"}
_TURNED = {"less": "more", "more": "less", "no less": "no more", "no more": "no less"}
_BOUNDS = {"less": "below", "more": "above", "no less": "no less than", "no more": "no more than", "equal": "exactly"}
# What a sweep and its reference are called among the words of the two, and what is a share of itself.
_ABOVE, _BELOW, _ONE = read("above"), read("below"), read("1")
_SIGNS = {"<": ("less", "no less"), ">": ("more", "no more"), "=": ("equal", "unequal"), "!": ("unequal", "equal")}


@dataclass(frozen=True)
class WordedClause:
    """A comparison with its figures."""

    of: str
    """What both sides have in common."""
    says: str
    """The figures."""
    verdict: Judged
    strength: float
    """By how much of the larger figure it holds at the least; below 0 where it may not."""
    has_interval: bool
    """Whether it was decided by repeats."""
    asked: str = ""
    """What is asked, as it is told."""


def judged(
    expression: Expression,
    known: Mapping[str, Operand],
    repeats: Sequence[Mapping[str, Operand]],
    words: Words,
    exact: Container[str] = (),
) -> tuple[Judged, list[WordedClause]]:
    """What an expression says, and its clauses; names in ``exact`` are no results of a run.

    Those that decide stand first, the weakest of them before the others: of what fails, those that fail it. Of what
    holds the weakest of each thing that is asked stands first: controls that are near their bound would hide the rest.
    """
    clauses: list[tuple[Relation, WordedClause]] = []

    def decide(comparison: Relation) -> bool | None:
        found, clause = _decided(comparison, known, repeats, words, exact)
        clauses.append((comparison, clause))
        return found

    found, by = expression.deciding(decide)
    deciding = {id(comparison) for comparison in by}
    clauses.sort(key=lambda pair: (id(pair[0]) not in deciding, pair[1].strength))
    if found:
        asked: dict[str, list[WordedClause]] = {}
        for _, clause in clauses:
            asked.setdefault(clause.asked, []).append(clause)
        turn = {id(clause): turn for alike in asked.values() for turn, clause in enumerate(alike)}
        clauses.sort(key=lambda pair: (id(pair[0]) not in deciding, turn[id(pair[1])]))
    return _verdict(found), [clause for _, clause in clauses]


def sentence_of(clauses: Sequence[WordedClause], shown: int = _SHOWN) -> str:
    """The first clauses, and how many others there are; of what holds or fails those that say so, not others."""
    if clauses and clauses[0].verdict != NOISE:
        shown = min(shown, len(list(takewhile(lambda one: one.verdict == clauses[0].verdict, clauses))))
    parts, before = [], ""
    for clause in clauses[:shown]:
        parts.append(f"{clause.of}: {clause.says}" if clause.of and clause.of != before else clause.says)
        before = clause.of
    rest = [clause.verdict for clause in clauses[shown:]]
    counts = [f"{rest.count(word)} more {said[rest.count(word) > 1]}" for word, said in _COUNTED if word in rest]
    return "; ".join([*parts, *counts])


_COUNTED: tuple[tuple[Judged, tuple[str, str]], ...] = (
    ("holds", ("holds", "hold")),
    ("fails", ("fails", "fail")),
    (NOISE, (NOISE, NOISE)),
)


def _verdict(found: bool | None) -> Judged:
    return NOISE if found is None else "holds" if found else "fails"


def _decided(
    comparison: Relation,
    known: Mapping[str, Operand],
    repeats: Sequence[Mapping[str, Operand]],
    words: Words,
    exact: Container[str],
) -> tuple[bool | None, WordedClause]:
    told = words.told(comparison, known, repeats)
    least = -math.inf if told.second is not None else least_of(words.measures, comparison.first, comparison.second)
    value, interval = _over(told.figure, known, repeats, least)
    larger = max(map(abs, told.sides(value))) or 1.0
    is_exact = all(name in exact for name in comparison.names)
    ends = [(0.0, 0.0)]
    if comparison.sign in ("==", "!="):
        is_exact = True
    else:
        percent = comparison.within.value(known)
        sides = [comparison.margins_of(*told.sides(end), percent) for end in interval or (value, value)]
        noise = 0.0 if interval or is_exact else larger * _unshown_percent(comparison.sign, percent) / 100
        ends = [(min(both) - noise, max(both) + noise) for both in zip(*sides, strict=True)]
    found: bool | None = (
        False if any(high < 0 for _, high in ends) else True if all(low > 0 for low, _ in ends) else None
    )
    if is_exact:
        found = comparison.value(known)
    least = min(low for low, _ in ends) if comparison.is_asked else -max(high for _, high in ends)
    verdict = NOISE if found is None else "holds" if found is comparison.is_asked else "fails"
    says = told.says(_figure(value, interval, is_share=told.is_share), is_met=verdict == "holds")
    if verdict == NOISE and interval and told.is_share and told.bound == 1.0:
        is_equal = all(100 * abs(end - 1) <= _NO_DIFFERENCE_PERCENT for end in interval)
        says += ", no difference" if is_equal else ""
    return found, WordedClause(told.of, says, verdict, least / larger, interval is not None, told.asked)


def _unshown_percent(sign: str, within: float) -> float:
    """By how much of the larger figure single runs have to decide, so that anything is shown."""
    return min(NOTHING_SHOWN_PERCENT, within / 2) if sign == "about" else NOTHING_SHOWN_PERCENT


@dataclass(frozen=True)
class Told:
    """How a comparison is told: by one figure, whose interval decides it, beside what is asked of that."""

    of: str
    """What both sides have in common."""
    before: str
    after: str
    """What stands around the figure."""
    figure: Figure
    bound: float
    """What it is set beside; shares are fractions."""
    asked: str
    """What is asked of it, told where it is not met."""
    is_share: bool = False
    is_second: bool = False
    """Whether the figure is that of the comparison's second side."""
    is_always_asked: bool = True
    """Whether what is asked is told also where it is met."""
    second: float | None = None
    """Where the figure is the difference of both sides: the second of them."""

    def sides(self, figure: float) -> tuple[float, float]:
        """Both sides of the comparison where the figure is so much."""
        if self.second is not None:
            return self.second + figure, self.second
        return (self.bound, figure) if self.is_second else (figure, self.bound)

    def says(self, figure: str, *, is_met: bool) -> str:
        """The figure in words, and what is asked."""
        return f"{self.before}{figure}{self.after}{'' if is_met and not self.is_always_asked else self.asked}"


@dataclass(frozen=True)
class Words:
    """What the names of an expression are called."""

    measures: Mapping[str, Mapping[str, object]]
    called: Mapping[str, str] = field(default_factory=dict)
    """What arrays are called, where not as in the study."""
    reckoned: Mapping[str, str] = field(default_factory=dict)
    """What is reckoned of several is called, by its text or by its `Expression.stems`."""

    def told(
        self, comparison: Relation, known: Mapping[str, Operand], repeats: Sequence[Mapping[str, Operand]]
    ) -> Told:
        """How a comparison is told."""
        first, second = comparison.first, comparison.second
        asked = _SIGNS.get(comparison.sign[0], ("", ""))[not comparison.is_asked]
        if comparison.sign == "about":
            asked = f"{'within' if comparison.is_asked else 'further than'} {comparison.within.value(known):.3g} %"
        if not second.names or not first.names:
            return self._against_bound(comparison, asked, known)
        # "0.9 x" is said as a share; of a factor on either side it is told as it stands.
        times, single = second.factor if first.factor[0] == 1.0 else (1.0, second)
        of, (whose, other) = self._apart([first, single], known)
        is_always_asked = comparison.sign == "about" or times != 1.0
        share_asked = f" {_than(comparison)} {_number(100 * times)} %" if times != 1.0 else ""
        if first.value(known) > 0 and second.value(known) > 0:
            # What is reckoned of several is neither given nor taken.
            is_plain_name = first.is_name or whose in self._arrays(first)
            verb = self._verb(first, whose) if is_plain_name else "are" if _is_plural(whose) else "is"
            return Told(
                *(of, f"{whose} {verb} ", f" of {_that(other)}", _quotient(first, single), times),
                f" (asked: {asked}{share_asked})",
                is_share=True,
                is_always_asked=is_always_asked,
            )
        pair = [f"{figure_of(side, known, repeats)}{self._unit(side)}" for side in (first, single)]
        part = f"{_number(100 * times)} % of " if times != 1.0 else ""
        return Told(
            *(of, f"{whose} is {pair[0]}, {other} {pair[1]}; the first less {part}the second is ", self._unit(first)),
            *(lambda numbers: first.value(numbers) - second.value(numbers), 0.0, f" (asked: {asked})"),
            is_always_asked=is_always_asked,
            second=float(second.value(known)),
        )

    def _against_bound(self, comparison: Relation, asked: str, known: Mapping[str, Operand]) -> Told:
        """How what is compared with a number is told."""
        is_second = bool(comparison.second.names)
        one, bound = (comparison.second, comparison.first) if is_second else (comparison.first, comparison.second)
        asked, limit = _TURNED.get(asked, asked) if is_second else asked, float(bound.value(known))
        if asked and comparison.sign not in ("==", "!=") and (share := self._share(one, known)):
            of, before, after, figure, times = share
            asked = f" (asked: {asked} {_than(comparison)} {_number(100 * limit / times)} %)"
            return Told(of, before, after, figure, limit / times, asked, is_share=True, is_second=is_second)
        asked = _BOUNDS.get(asked, f"{asked} of" if comparison.sign == "about" else asked)
        of, (whose,) = self._apart([one], known)
        unit = self._unit(one)
        asked = f", asked {asked} {_number(limit)}{unit}"
        return Told(of, f"{whose} is ", unit, _quotient(one, _ONE), limit, asked, is_second=is_second)

    def _apart(self, sides: Sequence[Expression], known: Mapping[str, Operand]) -> tuple[str, list[str]]:
        """What the measures of both sides have in common, and what each side is called besides."""
        terms = [self._terms(side) for side in sides]
        parts = {name: said for each in terms for name, said in sorted(each.items())}
        names = sorted(parts)
        common = set.intersection(*(set(one.items()) for one in parts.values())) if parts else set()
        if len(parts) == 1:
            # Of one alone its array stays.
            kept = "array" if "array" in parts[names[0]] else "of"
            common = {(key, text) for key, text in common if key != kept}

        def called(name: str, without: str) -> str:
            rest = [text for key, text in parts[name].items() if (key, text) not in common and key != without]
            return ", ".join(rest) or without or name

        arrays, said = [], []
        for side, own in zip(sides, terms, strict=True):
            found = self._arrays(side) - {""}
            array = found.pop() if len(found) == 1 and len(own) > 1 else ""
            array = "" if ("array", array) in common else array
            arrays.append(array)
            words = {name: called(name, "array" if array else "") for name in own}
            reckoned = self.reckoned.get(side.text) or self.reckoned.get(side.stems) or side.worded(words, known)
            said.append(words[side.text] if side.quotient else reckoned)
        together = [text for key, text in parts[names[0]].items() if (key, text) in common] if names else []
        if all(arrays) and len(set(said)) == 1:
            # The same is reckoned of both.
            return ", ".join([*together, said[0]]), arrays
        return ", ".join(together), [
            f"{array} ({text})" if array else text for array, text in zip(arrays, said, strict=True)
        ]

    def _terms(self, side: Expression) -> dict[str, dict[str, str]]:
        """What a side is made of, part by part; one name against another is one term."""
        own = self.measures
        terms = {name: words_of(own[name], self.called) if name in own else {"": name} for name in side.names}
        if side.quotient is None:
            return terms
        above, below = (terms[one.text] for one in side.quotient[1:])
        return {side.text: {key: _against(above.get(key, ""), below.get(key, "")) for key in above | below}}

    def _share(self, one: Expression, known: Mapping[str, Operand]) -> tuple[str, str, str, Figure, float] | None:
        """Of a quotient: what both have in common, what stands around the share, the share, and how often it is meant.

        A sweep against a reference is one that was taken load by load. None of what is no quotient.
        """
        if one.quotient is not None:
            times, above, below = one.quotient
            if above.value(known) <= 0 or below.value(known) <= 0:
                return None
            of, (whose, other) = self._apart([above, below], known)
            return of, f"{whose} {self._verb(above, whose)} ", f" of {_that(other)}", _quotient(above, below), times
        measure = self.measures.get(one.text, {})
        if measure.get("kind") != "sweep" or "reference" not in measure or "as" in measure:
            return None
        swept = {key: text for key, text in measure.items() if key not in ("of", "reference", "reference_workload")}
        reference = swept | {"array": measure["reference"]}
        reference["workload"] = measure.get("reference_workload", measure.get("workload", ""))
        both = Words({"above": swept | {"kind": ""}, "below": reference | {"kind": ""}}, self.called)
        of, (whose, other) = both._apart([_ABOVE, _BELOW], {})
        at = {"least": "at least ", "greatest": "at most "}.get(str(measure.get("of")), "on average ")
        return of, f"{whose} {both._verb(_ABOVE, whose)} {at}", f" of {_that(other)}", _quotient(one, _ONE), 1.0

    def _unit(self, side: Expression) -> str:
        """The unit of a figure, behind a space; empty where it has none, or several."""
        units = {unit_of(self.measures[name]) for name in side.names if name in self.measures}
        unit = units.pop() if len(units) == 1 and side.keeps_unit else ""
        return f" {unit}" if unit else ""

    def _arrays(self, side: Expression) -> set[str]:
        return {part.get("array", "") for part in self._terms(side).values()}

    def _verb(self, side: Expression, whose: str) -> str:
        metrics = [str(self.measures[name].get("metric", "")) for name in side.names if name in self.measures]
        verb = "take" if metrics and side.keeps_unit and all("_ms" in metric for metric in metrics) else "give"
        return verb if _is_plural(whose) else f"{verb}s"


def _against(first: str, second: str) -> str:
    """What two figures are called where one is set against the other."""
    return first if first == second else f"{first} against {_that(second)}" if first and second else first or second


def _than(comparison: Relation) -> str:
    return "of" if comparison.sign == "about" else "than"


def _that(name: str) -> str:
    """What a share is of: "that with 8 outstanding" where only the load is named."""
    return f"that {name}" if name.startswith(("at ", "with ", "where ")) else name


def _is_plural(name: str) -> bool:
    """Whether a name is one of several: "reads of 2 MB", "two 3-disk RAID 0s, 160 KB".

    Examples
    --------
    >>> [_is_plural(name) for name in ("reads of 2 MB", "two 3-disk RAID 0s, 160 KB", "RAID 5", "the bus")]
    [True, True, False, False]
    """
    noun = name.partition(" of ")[0].partition(",")[0]
    return noun.endswith("s") and not noun.endswith(("ss", "us"))


def words_of(measure: Mapping[str, object], called: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """What a measure is, part by part; parts that several have in common need to be said once."""
    keys = {key: str(value) for key, value in measure.items() if isinstance(value, str | int | float)}
    kind = keys.pop("kind", "")
    metric, of = keys.pop("metric", ""), keys.pop("of", "")
    known = _METRICS.get(metric or of)
    default = known.title if known else KINDS[kind].title if kind in KINDS else kind
    array, reference = (called.get(name, name) for name in (keys.pop("array", ""), keys.pop("reference", "")))
    if kind == "sweep" and reference:
        of, default = of or "mean", f"ratio of {default}"
    found = {"of": _OF.get((kind, of), "{}").format(default)}
    if kind == "printed" and "column" in keys and "as" not in measure:
        return _cell_words(measure)
    workload, other = keys.pop("workload", ""), keys.pop("reference_workload", "")
    # A pattern of names is no name of an array.
    if array and "*" not in array:
        found = {"array": f"{array} against {reference}" if reference and reference != array else array} | found
    if "as" in measure:
        return found | {"of": str(measure["as"])}
    if workload:
        found["workload"] = f"{workload} against {other}" if other else workload
    if kind == "held":
        found["at"] = _HELD
    if (at := measure.get("at")) is not None:
        keys.pop("at", None)
        found["at"] = _at(at)
    if isinstance(reaches := measure.get("reaches"), Mapping):
        reached = _METRICS[str(reaches["metric"])]
        found["at"] = f"where {reached.title} of {reaches['array']} is {reaches['value']} {reached.unit}".rstrip()
    found |= {key: f"{key.replace('_', ' ')} {text}" for key, text in keys.items()}
    return found


def unit_of(measure: Mapping[str, object]) -> str:
    """The unit of a measure; empty of shares and counts."""
    if "unit" in measure:
        # Of a figure that was worked out of several.
        return str(measure["unit"])
    kind, of = str(measure.get("kind", "")), str(measure.get("of", ""))
    if kind == "stream_rate":
        return "" if of == "stops" else "MB/s"
    if own := next((unit for end, unit in _UNITS.items() if of.endswith(end)), ""):
        return own
    metric = _METRICS.get(str(measure.get("metric", "")))
    is_plain = kind in _IN_UNITS and "reference" not in measure and of != "r_squared"
    return metric.unit if metric and is_plain else ""


def _cell_words(measure: Mapping[str, object]) -> dict[str, str]:
    """A cell of a printed table: its column, and the row it stands in."""
    where = measure.get("where")
    row = ", ".join(str(text) for text in where.values()) if isinstance(where, Mapping) else ""
    return {"of": f"printed {str(measure['column']).replace('_', ' ')}", "row": row or str(measure.get("table"))}


def _at(at: object) -> str:
    if isinstance(at, Mapping):
        return f"with {at['depth']} outstanding" if "depth" in at else f"where p90 is {at.get('ms')} ms"
    return _HELD if at == "target" else _AT.get(str(at), str(at))


def figure_of(expression: Expression, known: Mapping[str, Operand], repeats: Sequence[Mapping[str, Operand]]) -> str:
    """A figure with its interval over repeats."""
    return _figure(*_over(_quotient(expression, _ONE), known, repeats))


def least_of(measures: Mapping[str, Mapping[str, object]], *expressions: Expression) -> float:
    """What none of several expressions can be less than: 0 of rates, times and counts, and of shares of them."""
    may_fall = any(measures.get(name, {}).get("of") in _OF_A_LINE for one in expressions for name in one.names)
    return -math.inf if may_fall or not all(one.keeps_sign for one in expressions) else 0.0


def _over(
    figure: Figure,
    known: Mapping[str, Operand],
    repeats: Sequence[Mapping[str, Operand]],
    least: float = -math.inf,
) -> tuple[float, tuple[float, float] | None]:
    """A figure of all repeats together, and its interval, which goes no further down than ``least``."""
    value = figure(known)
    return value, interval_around(value, each_of(repeats, figure), min(least, value))


def _quotient(above: Expression, below: Expression) -> Figure:
    quotient = read(f"({above.text}) / ({below.text})")
    return lambda numbers: float(quotient.value(numbers))


def _figure(value: float, interval: tuple[float, float] | None, *, is_share: bool = False) -> str:
    # Of what is nearly the same rounding would hide the difference.
    digits = 4 if 0.99 <= value <= 1.01 else 3
    times, unit = (100, " %") if is_share else (1, "")
    decimals = _decimals(times * value, digits)
    ends = f" [{times * interval[0]:.{decimals}f}, {times * interval[1]:.{decimals}f}]" if interval else ""
    return f"{times * value:.{decimals}f}{unit}{ends}"


def _number(value: float) -> str:
    """A bound: as many digits as it has."""
    return f"{value:.6g}"


def _decimals(value: float, digits: int) -> int:
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
