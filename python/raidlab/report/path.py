"""The data path in a report: how busy each of its parts was, and which was the limit.

Invariant: nothing is worked out here but wording; shares and limits are those of
`raidlab.analysis.metrics.utilisation`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from raidlab.analysis.metrics import Point
from raidlab.analysis.metrics.utilisation import FLASH_PARTS, LIMIT_SHARE, MEMBERS, SLOTS, PathPart, limit_of, parts_of

# Of so many parts at most a column each; what is busy least is left out first.
_MOST_PARTS = 8
# A smaller share would be written as 0.0 %.
_LEAST_SHARE = 0.0005
_NUMBER = re.compile(r"\d+")
# What a sentence says of parts that no study names.
_WORDS = {
    MEMBERS: "the busiest member",
    FLASH_PARTS["flash_die_busy_ns"]: "the busiest die of a member",
    FLASH_PARTS["flash_channel_busy_ns"]: "the busiest channel within a member",
    FLASH_PARTS["flash_link_busy_ns"]: "the busiest link of a member to its host",
    SLOTS: "the command slots of a member (its queue_depth)",
}


@dataclass(frozen=True)
class PathRow:
    """How busy the parts of the data path were under one array and workload, and which was the limit."""

    workload: str
    array: str
    load: str
    parts: dict[str, PathPart]
    limit: PathPart | None


@dataclass(frozen=True)
class DataPath:
    """The data path of several points."""

    parts: list[str]
    """The columns, the part that is busiest anywhere first."""
    rows: list[PathRow]
    sentence: str
    """What limited, in how many cases."""
    left_out: int
    """How many busy parts have no column."""
    idle: list[str]
    """The parts that have none because they were never busy; those that differ by a number alone are one."""


def data_path(points: Iterable[Point]) -> DataPath | None:
    """The data path under some points; None where nothing tells of it."""
    rows = []
    for point in points:
        parts = parts_of(point)
        if parts:
            named = {part.name: part for part in parts}
            rows.append(PathRow(point.workload, point.array, point.level, named, limit_of(parts)))
    if not rows:
        return None
    most: dict[str, float] = {}
    for row in rows:
        for name, part in row.parts.items():
            most[name] = max(most.get(name, 0.0), part.share)
    idle = [name for name, share in most.items() if share < _LEAST_SHARE]
    ranked = sorted((name for name in most if name not in idle), key=lambda name: -most[name])
    return DataPath(ranked[:_MOST_PARTS], rows, _sentence(rows), max(0, len(ranked) - _MOST_PARTS), _numbered(idle))


def _numbered(names: list[str]) -> list[str]:
    """Names in words; of those that differ by their first number alone the first and the last.

    Examples
    --------
    >>> _numbered(["bus", "string 1 (1 disk)", "string 2 (1 disk)", "string 3 (1 disk)"])
    ["'bus'", "'string 1 (1 disk)' to 'string 3 (1 disk)'"]
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(_NUMBER.sub("", name, count=1), []).append(part_words(name))
    return [" to ".join(dict.fromkeys((each[0], each[-1]))) for each in alike.values()]


def _sentence(rows: list[PathRow]) -> str:
    """Which part limited how often."""
    limits = Counter(row.limit.name for row in rows if row.limit is not None)
    idle = len(rows) - sum(limits.values())
    busy = f"busy {100 * LIMIT_SHARE:.0f} % of the time or more"
    if not limits:
        return f"No part was {busy}: these loads do not reach a limit of the data path."
    if idle == 0 and len(limits) == 1:
        return f"The limit is everywhere {part_words(next(iter(limits)))}, {busy}."
    said = [f"{part_words(name)} in {count}" for name, count in limits.most_common()]
    if idle:
        said.append(f"none in {idle}, where the load is too small or waits for itself")
    return f"The limit ({busy}), in {len(rows)} cases: {', '.join(said)}."


def part_words(name: str) -> str:
    """What a sentence calls a part of the data path."""
    return _WORDS.get(name, f"'{name}'")
