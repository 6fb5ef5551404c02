"""Which resource limits machines that share a storage: the one that was nearest to its own capacity.

Invariants:

- A limit is named by what was counted while the machines worked: bytes on each link beside its rate, processor time
  beside the processors. Nothing that was not watched is named.
- Where nothing was busy enough, that is the answer: the storage itself, or waiting for answers, is what is left.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# A shaped link gives this much of its rate to bytes that the kernel counts; beyond it, it is the limit.
_BUSY = 0.85
_ALIKE = 0.02


@dataclass(frozen=True)
class WatchedResource:
    """A resource that was watched."""

    name: str
    """Such as ``the server's link``."""
    share: float
    """How much of its capacity was used, from 0 to 1."""
    detail: str
    """The figures it rests on."""


@dataclass(frozen=True)
class StepLimit:
    """What limited a step: the busiest resource, if it was busy enough."""

    name: str
    detail: str


def name_limit(
    watched: Sequence[WatchedResource], left: str = "none of the links or processors that were watched"
) -> StepLimit:
    """Name the limit; resources used alike (each machine's own link) are told together.

    Examples
    --------
    >>> links = [WatchedResource("the server's link", 0.97, "97 %"), WatchedResource("a machine's link", 0.3, "30 %")]
    >>> name_limit(links).name
    "the server's link"
    """
    busiest = max(watched, key=lambda one: one.share, default=None)
    if busiest is None or busiest.share < _BUSY:
        most = "" if busiest is None else f"the busiest was {busiest.name}: {busiest.detail}"
        return StepLimit(left, most)
    # Two links of one rate in a row are as busy as each other: then either limits.
    alike = [one for one in watched if one.share >= busiest.share - _ALIKE]
    return StepLimit(" and ".join(one.name for one in alike), busiest.detail)


class Watch(Protocol):
    """A counter of a resource."""

    def read(self) -> tuple[int, int]:
        """What has been counted so far."""

    def watched(self, before: tuple[int, int], after: tuple[int, int], elapsed_ns: int) -> WatchedResource:
        """What was used of it between two readings."""


@dataclass(frozen=True)
class ProcessCounter:
    """A process whose processor time the kernel counts."""

    name: str
    pid: int

    def read(self) -> tuple[int, int]:
        """Ticks in its own code and in the kernel so far, of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return int(fields[11]), int(fields[12])

    def watched(self, before: tuple[int, int], after: tuple[int, int], elapsed_ns: int) -> WatchedResource:
        """What it used of all processors."""
        spent_s = (sum(after) - sum(before)) / os.sysconf("SC_CLK_TCK")
        share = spent_s / (elapsed_ns / 1e9) / (os.cpu_count() or 1) if elapsed_ns else 0.0
        return WatchedResource(self.name, share, f"{100 * share:.0f} % of {os.cpu_count()} processors")
