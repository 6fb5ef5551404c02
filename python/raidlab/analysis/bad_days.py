"""What clients had before a member failed, without it, while another was rebuilt, and after.

Invariants:

- Phases are told apart by what the engine noted (table ``rebuilds``). Where several members fail, an array is degraded
  from the first failure on, rebuilds from the first new member on, and is well again when the last is whole.
- A phase has the seconds of the run's clock that lie wholly within it, so that none counts twice; one without any has
  no figures. A second in which nothing completed is a second.
- The first phase begins with the run: a warm-up is part of it.
- A percentile is taken from the merged counts of the phase's seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
import polars as pl

from raidlab.analysis.metrics import Analysis, Point
from raidlab.histogram import Histogram

BEFORE, DEGRADED, REBUILDING, AFTER = "before", "degraded", "rebuilding", "after"
NS_PER_S = 1_000_000_000
# More points than this are wider than a picture.
MOST_STRETCHES = 120


@dataclass(frozen=True)
class Stretch:
    """What clients had within some seconds of the run's clock."""

    begin_s: int
    end_s: int
    mb_s: float
    p99_ms: float | None


@dataclass(frozen=True)
class Phase:
    """A part of a bad day, and what clients had in it."""

    name: str
    begin_s: float
    end_s: float
    seconds: int
    requests_per_s: float | None
    mb_s: float | None
    p99_ms: float | None


@dataclass(frozen=True)
class BadDay:
    """One array under one load, through the failure of members and their rebuild; of a point's first repeat."""

    point: Point
    phases: tuple[Phase, ...]
    series: tuple[Stretch, ...]
    throttle: str | None
    """How the rebuild was throttled; None where none was asked for."""
    rebuild_s: float | None
    """How long the rebuild took; None where it was not over when the run was, or never began."""
    rebuilt_bytes: int
    """Of all members together."""
    member_bytes: int
    """Of the members that were lost, together."""

    def phase(self, name: str) -> Phase | None:
        """The phase of a name, if the day had one."""
        return next((phase for phase in self.phases if phase.name == name), None)

    def kept_percent(self, name: str) -> float | None:
        """Throughput in a phase as a share of that before the failure."""
        before, phase = self.phase(BEFORE), self.phase(name)
        if before is None or phase is None or not before.mb_s or phase.mb_s is None:
            return None
        return 100 * phase.mb_s / before.mb_s

    @property
    def risk_s(self) -> float:
        """How long it could lose fewer members than it was built to lose: until it was whole, or the run was over."""
        return sum(p.end_s - p.begin_s for p in self.phases if p.name in (DEGRADED, REBUILDING))

    @property
    def is_whole(self) -> bool:
        """Whether all was rebuilt when the run was over."""
        return self.rebuild_s is not None

    @property
    def hours_a_tb(self) -> float | None:
        """How long a terabyte of a member would take at the rate of this rebuild; None where none was rebuilt."""
        phase = self.phase(REBUILDING)
        members = max(1, self.point.run.rebuilds.filter(pl.col("cell") == self.point.cells[0]).height)
        if phase is None or not self.rebuilt_bytes:
            return None
        return 1e12 / (self.rebuilt_bytes / members / (phase.end_s - phase.begin_s)) / 3600


def bad_days(analysis: Analysis) -> list[BadDay]:
    """The bad days of a run, in the order of its points; none where no member fails or is rebuilt."""
    return [] if analysis.run.rebuilds.is_empty() else list(_bad_days(analysis))


def _bad_days(analysis: Analysis) -> Iterator[BadDay]:
    arrays = {array.name: array for array in analysis.run.study.array}
    for point in analysis.points:
        cell = pl.col("cell") == point.cells[0]
        places = analysis.run.rebuilds.filter(cell)
        seconds = analysis.run.snapshots.filter(cell).sort("time_ns")
        if not point.is_swept or places.is_empty() or seconds.is_empty():
            continue
        rebuild = arrays[point.array].rebuild
        begun, whole = places["begun_ns"].min(), places["whole_ns"].max()
        is_over = places["whole_ns"].null_count() == 0
        # The last second is cut short by the end of the run.
        bounds = _bounds(places, max(0, int(seconds["time_ns"][-1]) - NS_PER_S))
        counts = analysis.run.snapshot_histograms.filter(cell)
        yield BadDay(
            point,
            tuple(_phase(name, begin, end, seconds, counts) for name, begin, end in bounds),
            tuple(_series(seconds, counts)),
            rebuild.throttle.kind if rebuild is not None else None,
            (whole - begun) / NS_PER_S if is_over and isinstance(whole, int) and isinstance(begun, int) else None,
            int(places["rebuilt_bytes"].sum()),
            int(places["member_bytes"].sum()),
        )


def _bounds(places: pl.DataFrame, end_ns: int) -> list[tuple[str, int, int]]:
    """The phases and when each begins and ends; those that there were not are left out."""

    def first(column: str) -> int:
        found = places[column].min()
        return found if isinstance(found, int) else end_ns

    begun, failed = first("begun_ns"), first("failed_ns")
    # What was missing from the beginning did not fail.
    failed = min(failed, begun)
    last = places["whole_ns"].max() if places["whole_ns"].null_count() == 0 else None
    whole = last if isinstance(last, int) else end_ns
    marks = [0, *(min(at, end_ns) for at in (failed, begun, whole)), end_ns]
    names = (BEFORE, DEGRADED, REBUILDING, AFTER)
    return [(name, a, b) for name, a, b in zip(names, marks, marks[1:], strict=False) if b > a]


def _phase(name: str, begin_ns: int, end_ns: int, seconds: pl.DataFrame, counts: pl.DataFrame) -> Phase:
    first, last = ceil(begin_ns / NS_PER_S) + 1, end_ns // NS_PER_S
    within = pl.col("time_ns").is_between(first * NS_PER_S, last * NS_PER_S)
    length, rows = max(0, last - first + 1), seconds.filter(within)
    return Phase(
        name,
        begin_ns / NS_PER_S,
        end_ns / NS_PER_S,
        length,
        int(rows["requests"].sum()) / length if length else None,
        int(rows["bytes"].sum()) / length / 1e6 if length else None,
        _p99_ms(counts.filter(within)) if length else None,
    )


def _series(seconds: pl.DataFrame, counts: pl.DataFrame) -> Iterator[Stretch]:
    """Stretches of equal length, a second or as many as make few enough; what is left at the end is left out."""
    last = int(seconds["time_ns"][-1]) // NS_PER_S - 1
    length = max(1, ceil(last / MOST_STRETCHES))
    number = (pl.col("time_ns") // NS_PER_S - 1) // length
    moved = dict(seconds.group_by(number.alias("number")).agg(pl.col("bytes").sum()).iter_rows())
    histograms = counts.with_columns(number.alias("number")).partition_by("number", as_dict=True)
    for index in range(last // length):
        found = histograms.get((index,))
        p99_ms = None if found is None else _p99_ms(found)
        yield Stretch(index * length, (index + 1) * length, moved.get(index, 0) / 1e6 / length, p99_ms)


def _p99_ms(counts: pl.DataFrame) -> float | None:
    merged = counts.group_by("value_ns").agg(pl.col("count").sum()).sort("value_ns")
    times = Histogram(merged["value_ns"].to_numpy().astype(np.uint64), merged["count"].to_numpy().astype(np.uint64))
    found = times.percentile_ns(99)
    return None if found is None else found / 1e6
