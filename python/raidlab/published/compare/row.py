"""One line of a comparison: a published figure, what the run gives, how far they lie apart.

Invariants:

- The error counts beyond half of the last printed digit: what rounding alone explains is no error. That is 5 % of a
  figure at most, for a printed "2" would else take in 1.6; of percentages it is half of the digit.
- Of percentages the error is in points, of everything else in percent.
- A range is met anywhere within it; outside, the distance is that to the nearer end.
- A bound is kept or not, and rounding excuses nothing: "at most 3000" is not kept at 3010. It is no figure that could
  be near, and counts for no median.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from raidlab.published.compare.clause import NOISE, WordedClause, sentence_of
from raidlab.study.published import half_unit, number

Kind = Literal["fitted", "partly fitted", "predicted", "measured", "arithmetic", "given", ""]
Verdict = Literal["compared", "holds", "fails", "within the noise", "no published value", "not evaluated", "error"]
NOT_EVALUATED: Verdict = "not evaluated"
# What conclusions are summed up with begins so.
CONCLUSIONS = "conclusions"
ARITHMETIC: Kind = "arithmetic"
GIVEN: Kind = "given"
FITTED: Kind = "fitted"
PARTLY: Kind = "partly fitted"
PREDICTED: Kind = "predicted"
_PERCENT_UNITS = ("percent", "%", "points")
# Beyond these an error is called a miss.
MISS_PERCENT, MISS_POINTS = 5.0, 3.0
# So much of a figure its rounding accounts for at most, in percent.
_ROUNDING_PERCENT = 5.0
# Of a small percentage points are no more than such a share of it.
_NEAR_SHARE = 0.2


@dataclass(frozen=True)
class Published:
    """What was printed."""

    value: str
    """As printed; a range has none."""
    low: str = ""
    high: str = ""
    """The ends of a range as printed, of which one may be open."""
    unit: str = ""

    @property
    def text(self) -> str:
        """As people write it."""
        if self.value:
            return self.value
        if self.low and self.low == self.high:
            return self.low
        if self.low and self.high:
            return f"{self.low} to {self.high}"
        return f"at least {self.low}" if self.low else f"at most {self.high}" if self.high else ""

    @property
    def is_bound(self) -> bool:
        """Whether only one end was printed, beyond which every value is right."""
        return not self.value and bool(self.low) != bool(self.high)

    @property
    def is_range(self) -> bool:
        """Whether both ends of a range were printed."""
        return not self.value and bool(self.low) and bool(self.high)

    @property
    def is_percent(self) -> bool:
        """Whether differences are points."""
        return any(self.unit == word or self.unit.startswith(f"{word} ") for word in _PERCENT_UNITS)

    @property
    def near_points(self) -> float:
        """How many points from a printed percentage are near it: 3 of a printed 1 percent would take in four times it.

        Examples
        --------
        >>> [Published(text, unit="percent").near_points for text in ("28", "10", "1", "0")]
        [3.0, 2.0, 0.2, 3.0]
        """
        known = [abs(at) for text in (self.value, self.low, self.high) if (at := number(text)) is not None]
        # What is printed as 0 has no share of itself.
        return min(MISS_POINTS, _NEAR_SHARE * max(known, default=0.0) or MISS_POINTS)

    def ends(self) -> tuple[float, float] | None:
        """Between which two numbers a value may lie without an error; None where no number was printed."""
        if self.value:
            at = number(self.value)
            return None if at is None else (at - self._rounding(self.value), at + self._rounding(self.value))
        low, high = number(self.low), number(self.high)
        if low is None and high is None:
            return None
        return (
            float("-inf") if low is None else low - self._rounding(self.low),
            float("inf") if high is None else high + self._rounding(self.high),
        )

    def _rounding(self, text: str) -> float:
        """What rounding accounts for, of a figure as printed."""
        if self.is_bound:
            return 0.0
        half, figure = half_unit(text), abs(number(text) or 0.0)
        # What is printed as 0 has no share of itself.
        return half if self.is_percent or not figure else min(half, _ROUNDING_PERCENT / 100 * figure)


@dataclass(frozen=True)
class PublishedRow:
    """One line."""

    figure: str
    """The table, or the place in the text."""
    id: str
    """The claim's id, or table, keys and column."""
    quantity: str
    """The expression."""
    published: Published
    verdict: Verdict
    kind: Kind = ""
    """``fitted``, ``partly fitted``, ``predicted``, ``measured``, ``arithmetic`` or ``given``."""
    value: float | None = None
    """What the run gives."""
    low: float | None = None
    high: float | None = None
    """The ends of its 95 % interval over repeats."""
    error: float | None = None
    """In percent, or in points."""
    left_out: float | None = None
    """What it is predicted as by parameters found without its group; None where no fit has left it out."""
    table: str = ""
    """The group that it is summed up with."""
    note: str = ""
    of: str = ""
    """What was printed a figure of, in words."""
    says: str = ""
    """A conclusion in the words of the study."""
    clauses: tuple[WordedClause, ...] = ()
    """What the comparisons say of which it is made, in the order of `judged`."""
    readings: Mapping[str, float] = field(default_factory=dict)
    """What stands behind the names of a claim's or a conclusion's expression."""
    measures: tuple[Mapping[str, object], ...] = ()
    """What its value was taken from: the measures that were read, or those named where none had to be."""

    @property
    def title(self) -> str:
        """What it is called where people read."""
        return self.of or self.says or self.id

    @property
    def is_evaluated(self) -> bool:
        """Whether the run was asked for it."""
        return self.verdict != NOT_EVALUATED

    @property
    def is_counted(self) -> bool:
        """Whether it says anything of the model: no arithmetic, and nothing that is given."""
        return self.kind not in (ARITHMETIC, GIVEN)

    @property
    def is_fitted(self) -> bool:
        """Whether parameters were fitted to any figure behind it."""
        return self.kind in (FITTED, PARTLY)

    @property
    def is_judged(self) -> bool:
        """Whether it is a claim or a conclusion that could be tested."""
        return self.verdict in ("holds", "fails", NOISE)

    @property
    def is_conclusion(self) -> bool:
        """Whether it is a conclusion, which is asked of every target."""
        return self.table.startswith(CONCLUSIONS)

    @property
    def is_single(self) -> bool:
        """Whether it was tested by a single run, without an interval."""
        has_interval = any(clause.has_interval for clause in self.clauses)
        return self.is_judged and self.kind != ARITHMETIC and not has_interval

    @property
    def sentence(self) -> str:
        """What the run says, in words: the weakest comparisons, and a count of the others."""
        return sentence_of(self.clauses)

    @property
    def details(self) -> str:
        """The expression, and what stands behind its names."""
        figures = ", ".join(f"{name} = {value:.4g}" for name, value in self.readings.items())
        return " with ".join(part for part in (self.quantity, figures) if part)

    @property
    def is_miss(self) -> bool:
        """Whether a claim fails here, a bound is not kept, or a figure lies further off than is called near."""
        if self.verdict == "compared" and self.error is not None:
            if self.published.is_bound:
                return self.error != 0.0
            return abs(self.error) > (self.published.near_points if self.published.is_percent else MISS_PERCENT)
        return self.verdict == "fails"

    @property
    def left_out_error(self) -> float | None:
        """How far that lies from what was printed, in percent or in points."""
        return None if self.left_out is None else error_of(self.published, self.left_out)

    @property
    def error_unit(self) -> str:
        """What the error is counted in."""
        return "pt" if self.published.is_percent else "%"


def error_of(published: Published, value: float) -> float | None:
    """How far a value lies beyond what was printed, in percent of it or in points.

    Examples
    --------
    >>> error_of(Published("28", unit="percent"), 27.6)
    0.0
    >>> round(error_of(Published(".906", unit="MB/s"), 0.951), 2)
    4.91
    >>> error_of(Published("", low="3", high="4", unit="ms"), 3.2)
    0.0
    >>> [round(error_of(Published("2", unit="x one array"), value), 1) for value in (1.95, 1.6)]
    [0.0, -15.0]
    >>> [round(error_of(Published("", high="3000", unit="blocks/s"), value), 2) for value in (2000, 3000.3)]
    [0.0, 0.01]
    """
    ends = published.ends()
    if ends is None:
        return None
    low, high = ends
    beyond = value - high if value > high else value - low if value < low else 0.0
    if published.is_percent or beyond == 0.0:
        return beyond
    nearest = number(published.value) if published.value else (high if value > high else low)
    return 100 * beyond / abs(nearest) if nearest else None
