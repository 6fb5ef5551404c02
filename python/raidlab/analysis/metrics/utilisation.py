"""How busy each part of the data path was, and which part was the limit.

Invariants:

- A share is busy time over the time all servers of a part had, over all repeats: between 0 and 1.
- Members stand together as ``members``, with the busiest of them: one hot member limits an array as much as all do.
- A flash drive is not one part but several: its dies, its channels and its link to the host, of each kind the busiest.
  Its command slots are a part, too, but full slots are mostly what a queue before a busy die looks like from outside:
  they are called the limit only where nothing else was.
- Nothing is called the limit that was busy less than `LIMIT_SHARE` of the time: then the load itself was too small.

Reference: P. J. Denning, J. P. Buzen, *The Operational Analysis of Queueing Network Models*, 1978.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from raidlab.analysis.metrics.point import Point
from raidlab.results.load import Counts

MEMBERS = "members"
SLOTS = "members: command slots"
# Parts of a flash drive, by the column that has the busy time of the busiest of them.
FLASH_PARTS = {
    "flash_die_busy_ns": "members: dies",
    "flash_channel_busy_ns": "members: channels",
    "flash_link_busy_ns": "members: links",
}
LIMIT_SHARE = 0.9


@dataclass(frozen=True)
class PathPart:
    """A part of the data path."""

    name: str
    """A station's name, ``members``, or a part of flash drives."""
    share: float
    """Of its time it was busy, 0 to 1; of members that of the busiest."""
    wait_ns: float | None
    """Mean wait of a visit before it was served."""


def parts_of(point: Point) -> list[PathPart]:
    """The parts of the data path of a simulated point, the busiest first; empty where nothing tells."""
    elapsed_ns = point.total("elapsed_ns")
    if not elapsed_ns:
        return []
    found = []
    for name, rows in _grouped(point.rows_of("stations"), "station"):
        share = _sum(rows, "busy_ns") / ((rows[0]["servers"] or 1) * elapsed_ns)
        found.append(PathPart(str(name), share, _wait(rows, ("visits",))))
    members = _grouped(point.rows_of("members").filter(pl.col("busy_ns").is_not_null()), "leaf")
    found += _of_members([rows for _, rows in members], elapsed_ns)
    return sorted(found, key=lambda part: -part.share)


def _of_members(members: list[list[Counts]], elapsed_ns: float) -> Iterator[PathPart]:
    """The parts that members are made of, of each kind the busiest; a member is its rows, one a repeat."""
    flash = [rows for rows in members if rows[0]["flash_host_bytes"] is not None]
    # A folder of before schema 7 does not say what was busy within a flash drive: then nothing is known.
    drives = [rows for rows in flash if rows[0]["servers"] is not None]
    for column, name in FLASH_PARTS.items() if drives else ():
        yield PathPart(name, _busiest(drives, column, elapsed_ns), None)
    others = [rows for rows in members if rows[0]["flash_host_bytes"] is None]
    for name, mine in ((SLOTS, drives), (MEMBERS, others)):
        if mine:
            wait_ns = _wait([row for rows in mine for row in rows], ("reads", "writes"))
            yield PathPart(name, _busiest(mine, "busy_ns", elapsed_ns), wait_ns)


def _busiest(members: list[list[Counts]], column: str, elapsed_ns: float) -> float:
    """The largest share of the time."""
    # Only operations as a whole have servers in parallel; folders of before schema 7 do not say how many.
    servers = [(rows[0]["servers"] or 1) if column == "busy_ns" else 1 for rows in members]
    shares = [_sum(rows, column) / (count * elapsed_ns) for rows, count in zip(members, servers, strict=True)]
    # An operation in service when the window closes is counted whole, or not at all.
    return min(1.0, max(shares))


def _grouped(frame: pl.DataFrame, key: str) -> list[tuple[object, list[Counts]]]:
    """The rows of each station or member, a repeat each, without its name."""
    parts = frame.partition_by(key, as_dict=True, maintain_order=True, include_key=False)
    return [(name, part.to_dicts()) for (name,), part in parts.items()]


def _sum(rows: list[Counts], column: str) -> float:
    return float(sum(row[column] or 0 for row in rows))


def _wait(rows: list[Counts], visits: tuple[str, ...]) -> float | None:
    count = sum(_sum(rows, column) for column in visits)
    return _sum(rows, "wait_ns") / count if count else None


def limit_of(parts: list[PathPart]) -> PathPart | None:
    """The part that limited a point; None where none was busy enough to."""
    busy = [part for part in parts if part.share >= LIMIT_SHARE]
    return min(busy, key=lambda part: (part.name == SLOTS, -part.share), default=None)
