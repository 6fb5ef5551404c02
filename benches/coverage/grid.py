"""A cell of the grid: how often one figure of one case was given an interval, and how often that held the truth."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from cases import Case, holds

LOWEST = 0.92
REFUSED_BELOW = 0.05
_WORDS = {"too_few_samples": "too few", "not_independent": "related", "variance_not_finite": "infinite"}


@dataclass
class Cell:
    """What was answered to one figure of one case."""

    repetitions: int = 0
    answered: int = 0
    covered: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    is_claimed: bool = True

    @property
    def is_refused(self) -> bool:
        """Whether there is hardly ever an interval."""
        return self.answered < REFUSED_BELOW * self.repetitions

    @property
    def coverage(self) -> float:
        """The share of the intervals given that hold the truth."""
        return self.covered / self.answered if self.answered else 0.0

    @property
    def is_kept(self) -> bool:
        """Whether what is claimed is kept."""
        return not self.is_claimed or self.is_refused or self.coverage >= LOWEST

    @property
    def text(self) -> str:
        """As printed."""
        if self.is_refused:
            word = self.reasons.most_common(1)[0][0]
            return _WORDS.get(word, word.replace("_", " "))
        share = self.answered / self.repetitions
        text = f"{100 * self.coverage:.1f}" + ("" if share > 0.995 else f" ({100 * share:.0f})")
        return text if self.is_kept else text + " !"


def cells_of(case: Case, repetitions: int, seed: int) -> dict[str, Cell]:
    """Ask one case again and again."""
    key = zlib.crc32(f"{case.table} {case.model} {case.size}".encode())
    rng = np.random.default_rng([seed, key])
    found: dict[str, Cell] = {}
    for _ in range(repetitions):
        for figure, interval, truth in case.ask(rng):
            cell = found.setdefault(figure, Cell(is_claimed=case.claimed))
            cell.repetitions += 1
            held = holds(interval, truth)
            if held is None:
                cell.reasons[str(interval)] += 1
            else:
                cell.answered += 1
                cell.covered += held
    return found
