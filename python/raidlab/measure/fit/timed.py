"""Requests one after another, each with the time at which it was complete: what the mechanics of a disk are found by.

Invariants:

- Requests are issued in the order given, each when the one before it is complete.
- A target and a modelled disk answer in the same words; nothing of the fit knows which of the two it has.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from raidlab import _core
from raidlab.errors import CellFailedError
from raidlab.measure.fit.situations import Op
from raidlab.reading import Plain
from raidlab.run.interrupt import StopFlag
from raidlab.run.runner import check_ended
from raidlab.study.cell import ArrayCell, ClosedLoad, Limit, Opaque, text_of
from raidlab.study.workload import DrawnRequests, FixedSize, ListedAddress

Numbers = npt.NDArray[np.int64]
Figures = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TimedRequests:
    """Requests as they were asked, and when each began and was complete, by a clock that begins anew with each list."""

    offset_bytes: Numbers
    begin_ns: Figures
    end_ns: Figures

    @property
    def took_ns(self) -> Figures:
        """How long each took."""
        return self.end_ns - self.begin_ns


class TimedSubject(Protocol):
    """Something that can be asked for requests one after another."""

    @property
    def capacity_bytes(self) -> int:
        """What it holds."""

    def ask_each(self, offset_bytes: Numbers, op: Op, size_bytes: int) -> TimedRequests:
        """Ask for them in this order; `KeyboardInterrupt` where it is to stop."""

    def rest(self, time_ns: int) -> None:
        """Leave it alone for so long."""


@dataclass
class TimedTarget:
    """A real target, or a modelled one on the real clock."""

    member: Opaque
    capacity_bytes: int
    stop: StopFlag
    speed: float | None = None
    """Of a modelled one: how many seconds of its own it does in one."""

    def ask_each(self, offset_bytes: Numbers, op: Op, size_bytes: int) -> TimedRequests:
        """Ask for them on the real clock."""
        return _timed(_listed_cell("live", self.member, offset_bytes, op, size_bytes, self.speed), self.stop)

    def rest(self, time_ns: int) -> None:
        """Wait."""
        time.sleep(time_ns / 1e9 / (self.speed or 1.0))


@dataclass
class TimedModel:
    """A modelled disk on the virtual clock, seen through a host that is late by a little, now and then by more."""

    parameters: Mapping[str, Plain]
    capacity_bytes: int
    seed: int = 1
    late_us: float = 0.0
    """The median of what the host is late by, log-normal with a sigma of 0.5."""
    outlier_share: float = 0.0
    """The share of completions that the host sees a millisecond later."""

    def __post_init__(self) -> None:
        self._drawn = np.random.default_rng(self.seed)

    def ask_each(self, offset_bytes: Numbers, op: Op, size_bytes: int) -> TimedRequests:
        """Ask for them on the virtual clock."""
        cell = _listed_cell("sim", json.loads(json.dumps(self.parameters)), offset_bytes, op, size_bytes)
        seen = _timed(cell, StopFlag())
        if not self.late_us:
            return seen
        count = len(seen.end_ns)
        late_ns = 1e3 * self.late_us * np.exp(0.5 * self._drawn.standard_normal(count))
        late_ns += 1e6 * (self._drawn.random(count) < self.outlier_share)
        return TimedRequests(seen.offset_bytes, seen.begin_ns, seen.end_ns + late_ns)

    def rest(self, time_ns: int) -> None:
        """A modelled device begins anew with each list."""


def _listed_cell(
    engine: Literal["sim", "live"],
    member: Opaque,
    offset_bytes: Numbers,
    op: Op,
    size_bytes: int,
    speed: float | None = None,
) -> ArrayCell:
    return ArrayCell(
        engine=engine,
        seed=1,
        speed=speed,
        tree={"kind": "independent", "children": [{"kind": "member"}]},
        members=[member],
        load=ClosedLoad(depth=1),
        workload=DrawnRequests(
            read={"read": 1.0, "write": 0.0, "mixed": 0.5}[op],
            size=FixedSize(kind="fixed", bytes=size_bytes),
            address=ListedAddress(kind="listed", offset_bytes=[int(one) for one in offset_bytes]),
        ),
        measure=Limit(requests=len(offset_bytes)),
    )


def _timed(cell: ArrayCell, stop: StopFlag) -> TimedRequests:
    columns: list[dict[str, _core.Column]] = []
    try:
        answer = _core.run_cell(text_of(cell), lambda _share: not stop(), columns.append)
    except _core.CellError as error:
        raise CellFailedError(str(error.message)) from None
    check_ended(answer.get("stopped_by"), interrupted=bool(answer.get("interrupted")))

    def column(name: str) -> Figures:
        return np.concatenate([part[name] for part in columns]).astype(np.float64)

    order = np.argsort(column("start_ns"), kind="stable")
    return TimedRequests(
        column("offset_bytes")[order].astype(np.int64), column("start_ns")[order], column("end_ns")[order]
    )


def sector_of(subject: TimedSubject) -> int:
    """The least that can be asked for: 512 bytes, or what a disk with longer sectors takes."""
    try:
        subject.ask_each(np.zeros(1, dtype=np.int64), "read", 512)
    except CellFailedError:
        return 4096
    return 512
