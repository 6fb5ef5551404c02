"""What a statistical method answers: an interval, or the reason why there is none.

Invariants:

- An answer has an interval or a reason, never both and never neither.
- A reason comes with one sentence that holds the figures it rests on. Refusing is an answer: an interval that would
  not cover what it claims is not given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

CONFIDENCE = 0.95


class Reason(StrEnum):
    """Why a method gives no interval."""

    TOO_FEW_SAMPLES = "too_few_samples"
    VARIANCE_NOT_FINITE = "variance_not_finite"
    NOT_STEADY = "not_steady"
    NOT_INDEPENDENT = "not_independent"
    WARM_UP_NOT_ENDED = "warm_up_not_ended"

    @property
    def words(self) -> str:
        """The reason in words, such as "too few samples"."""
        return self.value.replace("_", " ")


@dataclass(frozen=True)
class Answer:
    """An estimate with its interval, or with the reason why it has none."""

    value: float | None
    """The estimate, in the unit of the values; None where nothing could be estimated."""
    low: float | None
    high: float | None
    """The ends of the interval, in the same unit; None where a reason is given."""
    confidence: float
    """The share of such intervals that hold the truth, 0 to 1."""
    method: str
    """The method, as `docs/reference/statistics.md` calls it."""
    n: int
    """How many values it rests on."""
    reason: Reason | None = None
    """Why there is no interval."""
    sentence: str = ""
    """What stands behind a reason, with figures; empty where there is an interval."""

    def __post_init__(self) -> None:
        has_interval = self.low is not None and self.high is not None
        if has_interval == (self.reason is not None):
            raise ValueError(f"an answer has an interval or a reason: {self.low}, {self.high}, {self.reason}")

    @classmethod
    def refused(
        cls, reason: Reason, sentence: str, *, method: str, n: int, value: float | None = None, confidence: float
    ) -> Answer:
        """No interval, and why."""
        return cls(value, None, None, confidence, method, n, reason, sentence)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, or None.

        Examples
        --------
        >>> Answer(2.0, 1.0, 3.0, 0.95, "student", 10).interval
        (1.0, 3.0)
        """
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def half_width_percent(self) -> float | None:
        """Half the width of the interval as a percentage of the estimate; None where there is no interval.

        Examples
        --------
        >>> round(Answer(2.0, 1.9, 2.1, 0.95, "student", 10).half_width_percent, 6)
        5.0
        """
        if self.low is None or self.high is None or not self.value:
            return None
        return 100 * (self.high - self.low) / 2 / abs(self.value)

    def __str__(self) -> str:
        """The answer in words.

        Examples
        --------
        >>> print(Answer(2.0, 1.9, 2.1, 0.95, "student", 10))
        2 (1.9 to 2.1 at 95 %, student, n = 10)
        """
        if self.reason is not None:
            return f"{self.reason.words}: {self.sentence}"
        return (
            f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g} at {100 * self.confidence:g} %, {self.method}, "
            f"n = {self.n})"
        )
