"""What running a study yields: cells measured, response-time targets held.

Invariants:

- An outcome is the engine's answer and the identity of what was run; nothing is worked out from it here.
- `CellOutcome.order` is the position at which the cell was run, which for live targets matters and for simulated ones
  does not.
"""

from __future__ import annotations

from dataclasses import dataclass

from raidlab.results.answer import CellAnswer, HoldAnswer, read_answer
from raidlab.study import Cell, HoldTask
from raidlab.written import WrittenAnswer


@dataclass(frozen=True)
class CellOutcome:
    """One cell and the engine's answer to it."""

    cell: Cell
    order: int
    given: CellAnswer | WrittenAnswer
    """As whoever ran it gave it."""

    @property
    def answer(self) -> CellAnswer:
        """What can be read."""
        return read_answer(self.given)


@dataclass(frozen=True)
class HoldOutcome:
    """One response-time target and the load that meets it."""

    task: HoldTask
    target_ns: int
    """The target in nanoseconds, worked out from the idle response where it is relative."""
    answer: HoldAnswer
    """The interpolated depth and throughput, with bounds."""


Outcome = CellOutcome | HoldOutcome
