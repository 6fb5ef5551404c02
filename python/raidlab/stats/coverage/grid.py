"""The grid: every method on every model at every size, and whether each cell holds.

Invariants:

- Coverage counts the repetitions that were answered. A cell answered in fewer than 5 % of them counts as refused.
- A cell answered in part is drawn on until a thousand answers are there (or ten times the repetitions), so that luck
  decides as little as elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import Reason
from raidlab.stats.coverage.methods import METHODS, REQUESTS_A_REPEAT, Method
from raidlab.stats.coverage.models import MODELS, Model

REPETITIONS = 2000
LOWEST, HIGHEST = 0.92, 0.98
_REFUSED_BELOW = 0.05
_ANSWERS = 1000
_MOST_TIMES = 10
# Values drawn at once.
_CHUNK = 2_000_000


@dataclass
class Cell:
    """What one method did on one model at one size.

    Attributes
    ----------
    method : Method
    model : Model
    size : int
    repetitions, answered, covered : int
    reasons : collections.Counter
        How often it refused, by reason.
    """

    method: Method
    model: Model
    size: int
    repetitions: int = 0
    answered: int = 0
    covered: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)

    @property
    def is_refused(self) -> bool:
        """Whether the method has no answer here."""
        return self.answered < _REFUSED_BELOW * self.repetitions

    @property
    def coverage(self) -> float:
        """The share of the answers that hold the truth."""
        return self.covered / self.answered if self.answered else 0.0

    @property
    def holds(self) -> bool:
        """Whether the method keeps its word here."""
        return self.is_refused or (self.coverage >= LOWEST and (self.method.exact or self.coverage <= HIGHEST))

    @property
    def text(self) -> str:
        """The cell as printed: coverage in percent, in brackets the share answered, or the reason of refusals."""
        if self.is_refused:
            return {Reason.VARIANCE_NOT_FINITE: "not finite", Reason.NOT_INDEPENDENT: "correlated"}.get(
                self.reasons.most_common(1)[0][0], "too few"
            )
        share = self.answered / self.repetitions
        text = f"{100 * self.coverage:.1f}"
        text += "" if share > 0.995 else f" ({100 * share:.0f})"
        return text if self.holds else text + " !"

    def count(self, values: NDArray[np.float64], seed: int) -> None:
        """Ask the method once."""
        answer = self.method.answer(values, seed)
        self.repetitions += 1
        if answer.reason is not None:
            self.reasons[answer.reason] += 1
        elif answer.low is not None and answer.high is not None:
            self.answered += 1
            self.covered += answer.low <= self.method.truth(self.model) <= answer.high


def cells_of(
    model: Model,
    size: int,
    *,
    repeated: bool,
    repetitions: int = REPETITIONS,
    seed: int = 1,
    methods: tuple[Method, ...] = METHODS,
) -> list[Cell]:
    """All methods on one model at one size, on the same draws."""
    cells = [
        Cell(method, model, size) for method in methods if method.repeated == repeated and method.asks(model, size)
    ]
    asking = cells
    length = size * REQUESTS_A_REPEAT if repeated else size
    rows = max(1, min(repetitions, _CHUNK // length))
    rng = np.random.default_rng([seed, [other.name for other in MODELS].index(model.name), size, repeated])
    drawn = 0
    while asking:
        for row in _rows(model, rng, rows, size, repeated=repeated):
            drawn += 1
            for cell in asking:
                cell.count(row, drawn)
            if drawn >= repetitions:
                asking = [cell for cell in asking if _wants_more(cell, repetitions)]
                if not asking:
                    break
    return cells


def _rows(
    model: Model, rng: np.random.Generator, rows: int, size: int, *, repeated: bool
) -> Iterator[NDArray[np.float64]]:
    if repeated:
        yield from model.draw(rng, rows * size, REQUESTS_A_REPEAT).reshape(rows, -1)
    else:
        yield from model.draw(rng, rows, size)


def _wants_more(cell: Cell, repetitions: int) -> bool:
    few = not cell.is_refused and cell.answered < min(_ANSWERS, repetitions)
    return few and cell.repetitions < _MOST_TIMES * repetitions
