"""A point: one (target, array, workload, load) with all its repeats merged.

Invariants:

- Repeats are merged by adding up: bytes, requests, time, histograms. No average of averages, no average of percentiles.
- Interrupted cells are left out: they did not run as long as the others. So are those that only bound raidlab's own
  cost.
- Points come in the order of the cells of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from raidlab.analysis.model.access_count import failures_borne
from raidlab.histogram import Histogram
from raidlab.results import Run
from raidlab.results.rows import TableRow, rows_of
from raidlab.results.volumes import disk_count, member_count
from raidlab.study.expand import NULL, PILOT
from raidlab.study.schema import Array
from raidlab.study.tree import Tree

# Arrivals are random, so the rate served in a short run differs a little from the rate offered.
_KEPT_UP = 0.95

# Loads whose requests arrive whatever the array does: what is served then is what was offered.
OPEN_LOADS = ("open", "trace")

KEYS = ["target", "array", "group", "workload", "load", "depth", "rate_per_s"]


@dataclass(frozen=True)
class Point:
    """One point of a curve.

    Attributes
    ----------
    load : str
        ``closed``, ``open``, ``trace`` (by a trace's time stamps) or ``hold``.
    depth : int
        The queue depth asked for; 0 where the load has none.
    rate_per_s : float
        The rate offered; 0 where the load has none.
    rows : tuple of mapping
        The rows of its cells, one a repeat.
    """

    run: Run
    target: str
    array: str
    group: str
    workload: str
    load: str
    depth: int
    rate_per_s: float
    rows: tuple[Mapping[str, Any], ...]

    @property
    def cells(self) -> list[int]:
        """The numbers of its cells."""
        return [int(row["cell"]) for row in self.rows]

    @property
    def repeats(self) -> list[Point]:
        """Each of its repeats as a point by itself."""
        return [replace(self, rows=(row,)) for row in self.rows]

    @property
    def is_served(self) -> bool:
        """Whether something completed in every repeat; one in which nothing did was too short for a rate."""
        return all(row["all_requests"] for row in self.rows)

    def of_repeats(self, numbers: Sequence[int]) -> Point:
        """Some of its repeats as a point by themselves.

        Parameters
        ----------
        numbers : sequence of int
            Which, from 0 on.
        """
        return replace(self, rows=tuple(self.rows[number] for number in numbers))

    @property
    def level(self) -> str:
        """Its load in words."""
        if self.load == "hold":
            return "a held percentile"
        if self.load == "trace":
            return "the trace's own times"
        return f"queue depth {self.depth}" if self.depth else f"{self.rate_per_s:g} requests/s offered"

    @property
    def level_value(self) -> float:
        """Its load as a number: the depth, or the rate offered."""
        return float(self.depth or self.rate_per_s)

    @property
    def is_open(self) -> bool:
        """Whether requests arrive whatever the array does."""
        return self.load in OPEN_LOADS

    @property
    def short_level(self) -> str:
        """Its load in a word or two."""
        if self.load == "trace":
            return self.load
        return f"{self.rate_per_s:g}/s" if self.load == "open" else f"{self.load} {self.depth}"

    @property
    def members(self) -> int:
        """How many members the array has, redundancy included; of one that stands already those the kernel tells of."""
        array = self.standing
        return int(self.rows[0]["members"]) if array is None else member_count(array, self.run.live_members(self.array))

    @property
    def tree(self) -> Tree | None:
        """The tree of its array; None where the run knows none, as of arrays that stand already."""
        return self.run.facts["trees"].get(self.array)

    @property
    def storage_efficiency(self) -> float | None:
        """The share of the members' capacity that holds user data; None where the array stands already."""
        return None if self.standing is not None else float(self.rows[0]["storage_efficiency"])

    @property
    def failures_borne(self) -> int | None:
        """How many members may fail besides those missing, whichever; None where nothing tells."""
        if self.standing is not None:
            return None
        try:
            return max(0, failures_borne(self.run.tree(self.array)) - len(self.missing))
        except ValueError:
            # A run folder may hold what no engine wrote.
            return None

    @property
    def missing(self) -> list[int]:
        """The members that the study takes out of the array."""
        return next((array.missing for array in self.run.study.array if array.name == self.array), [])

    @property
    def standing(self) -> Array | None:
        """The array, if it stands already: then its tree says nothing of it."""
        return self.run.standing.get(self.array)

    @property
    def disks(self) -> int:
        """How many physical disks lie below the array; members in memory share the one processor."""
        if self.target != "live":
            return self.members
        if self.standing is not None:
            return disk_count(self.standing, self.run.live_members(self.array))
        known = self.run.live_members(self.array)[: self.members]
        return max(1, len({disk for member in known for disk in member["disks"]}))

    @property
    def is_whole(self) -> bool:
        """Whether its cells ran to their end."""
        return not any(row["interrupted"] for row in self.rows)

    @property
    def is_swept(self) -> bool:
        """Whether the study lists this load, rather than a search having passed by."""
        return any(row["purpose"] == "sweep" for row in self.rows)

    @property
    def keeps_up(self) -> bool:
        """Whether an open loop's rate is served as it is offered; a closed loop offers what is served."""
        return self.load != "open" or self.per_s("all_requests") >= _KEPT_UP * self.rate_per_s

    def total(self, column: str) -> float:
        """The sum of a column over the repeats.

        Parameters
        ----------
        column : str
            A column of ``cells`` of the run's tables.
        """
        return float(sum(row[column] for row in self.rows))

    def each_per_s(self, column: str) -> list[float]:
        """A column a second, for each repeat on its own.

        Parameters
        ----------
        column : str
            A column of ``cells`` of the run's tables.
        """
        return [row[column] / (row["elapsed_ns"] / 1e9) for row in self.rows if row["elapsed_ns"]]

    def per_s(self, column: str) -> float:
        """A column a second over all repeats together.

        Parameters
        ----------
        column : str
            A column of ``cells`` of the run's tables.
        """
        elapsed_s = self.total("elapsed_ns") / 1e9
        return self.total(column) / elapsed_s if elapsed_s else 0.0

    def counted(self, column: str) -> float | None:
        """The sum of a column over the repeats; None where it was not counted in all of them.

        Parameters
        ----------
        column : str
            A column of ``cells`` of the run's tables.
        """
        values = [row.get(column) for row in self.rows]
        return None if None in values else float(sum(value for value in values if value is not None))

    def device_bytes(self, operation: str) -> tuple[float, float]:
        """Bytes that the devices below read (or wrote) by the kernel's counters, and those asked of their targets.

        Parameters
        ----------
        operation : str
            ``read`` or ``write``.
        """
        devices = self.rows_of("devices")
        return float(devices[f"{operation}_bytes"].sum()), float(devices[f"asked_{operation}_bytes"].sum())

    def rows_of(self, table: str) -> pl.DataFrame:
        """The rows of a table of the run that are of its cells.

        Parameters
        ----------
        table : str
            Its name, as in `raidlab.results.tables.TABLES`.
        """
        return self.run.of_cells(table, self.cells)

    def edge_bytes(self) -> float:
        """Bytes that the devices may have moved on the other side of a window's edges: what was in flight there."""
        mean_bytes = self.total("all_bytes") / max(self.total("all_requests"), 1)
        return 2 * len(self.rows) * (self.weighted_mean("depth_mean") or 0.0) * mean_bytes

    def weighted_mean(self, column: str, *, weight: str = "all_requests") -> float | None:
        """The mean of a column over all requests of all repeats; None where it was not recorded.

        Parameters
        ----------
        column : str
            A column of ``cells`` of the run's tables.
        weight : str
            The column of counts that the means are weighted by.
        """
        known = [(row[column], row[weight]) for row in self.rows if row[column] is not None]
        total = sum(count for _, count in known)
        return sum(value * count for value, count in known) / total if total else None

    @property
    def response(self) -> Histogram:
        """Response times of all requests of all repeats."""
        return self.run.histogram(self.cells)

    @property
    def gaps(self) -> Histogram:
        """Times of 1 ms or more in which nothing completed, of each worker by itself; empty where nobody looked."""
        return self.run.histogram(self.cells, time="gap")

    @property
    def watched_ns(self) -> float:
        """The measured time of all workers together, which `gaps` are parts of."""
        measure = self.run.facts.get("measure")
        return self.total("elapsed_ns") * (1 if measure is None else measure["drive"]["workers"])

    def wait_ns(self, percentile: float) -> float | None:
        """How long arrivals at any moment wait at least, until anything completes; None of open loops, or not recorded.

        An arrival falls into a gap as often as the gap is long, and waits for the rest of it.

        Parameters
        ----------
        percentile : float
            Of the arrivals, from 0 to 100.
        """
        if self.is_open or not self.gaps.value_ns.size or not self.watched_ns:
            return None
        return self.gaps.rest_ns(percentile, self.watched_ns)


def points_of(run: Run, *, cut: bool = False) -> list[Point]:
    """All points of a run; with ``cut``, those of the cells that were stopped before their end instead."""
    chosen = pl.col("interrupted") if cut else ~pl.col("interrupted")
    whole = run.cells.filter(chosen & (pl.col("target") != NULL) & (pl.col("purpose") != PILOT))
    found: dict[tuple[Any, ...], list[TableRow]] = {}
    for key, row in zip(whole.select(KEYS).iter_rows(), rows_of(whole), strict=True):
        found.setdefault(key, []).append(row)
    return [Point(run=run, rows=tuple(rows), **dict(zip(KEYS, key, strict=True))) for key, rows in found.items()]
