"""How busy each part of the data path was, and which part was the limit.

Invariants:

- A share is busy time over the time all servers of a part had, over all repeats: between 0 and 1.
- Members stand together as ``members``, with the busiest of them: one hot member limits an array as much as all do.
- Nothing is called the limit that was busy less than `LIMIT_SHARE` of the time: then the load itself was too small.

Reference: P. J. Denning, J. P. Buzen, *The Operational Analysis of Queueing Network Models*, 1978.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from raidlab.metrics.point import Point

MEMBERS = "members"
LIMIT_SHARE = 0.9


@dataclass(frozen=True)
class Part:
    """A part of the data path.

    Attributes
    ----------
    name : str
        A station's name, or ``members``.
    share : float
        Of its time it was busy, 0 to 1; of members that of the busiest.
    wait_ns : float or None
        Mean wait of a visit before it was served.
    """

    name: str
    share: float
    wait_ns: float | None


def parts_of(point: Point) -> list[Part]:
    """The parts of the data path of a simulated point, the busiest first; empty where nothing tells.

    Parameters
    ----------
    point : Point
    """
    run, elapsed_ns = point.run, point.total("elapsed_ns")
    if not elapsed_ns:
        return []
    mine = pl.col("cell").is_in(point.cells)
    found = []
    for name, rows in _grouped(run.stations.filter(mine), "station").items():
        found.append(
            Part(str(name), _sum(rows, "busy_ns") / (rows[0]["servers"] * elapsed_ns), _wait(rows, ("visits",)))
        )
    known = run.members.filter(mine & pl.col("busy_ns").is_not_null())
    members = _grouped(known, "leaf")
    if members:
        busiest = max(_sum(rows, "busy_ns") for rows in members.values())
        every = [row for rows in members.values() for row in rows]
        # An operation in service when the window closes is counted whole, or not at all.
        found.append(Part(MEMBERS, min(1.0, busiest / elapsed_ns), _wait(every, ("reads", "writes"))))
    return sorted(found, key=lambda part: -part.share)


def _grouped(frame: pl.DataFrame, key: str) -> dict[Any, list[dict[str, Any]]]:
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in frame.iter_rows(named=True):
        groups.setdefault(row[key], []).append(row)
    return groups


def _sum(rows: list[dict[str, Any]], column: str) -> float:
    return float(sum(row[column] or 0 for row in rows))


def _wait(rows: list[dict[str, Any]], visits: tuple[str, ...]) -> float | None:
    count = sum(_sum(rows, column) for column in visits)
    return _sum(rows, "wait_ns") / count if count else None


def limit_of(parts: list[Part]) -> Part | None:
    """The part that limited a point; None where none was busy enough to."""
    return parts[0] if parts and parts[0].share >= LIMIT_SHARE else None
