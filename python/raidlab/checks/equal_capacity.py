"""Is what a table calls equal really equal?

Throughput per member is only fair between arrays of the same user capacity or the same number of members, and the
table must say which.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.checks.finding import INVALID, PASS, Finding
from raidlab.metrics import Analysis
from raidlab.study.units import format_bytes

NAME = "equal_capacity"
# Rounding to whole chunks and stripes loses a little; more than this is another capacity.
_TOLERANCE = 0.01


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID when a table's arrays differ in what it says they share."""
    for target in dict.fromkeys(point.target for point in analysis.points):
        for compare in analysis.run.study.compare:
            rows = [
                point.rows[0] for point in analysis.points if point.target == target and point.group == compare.group
            ]
            if not rows:
                continue
            key = "user_bytes" if compare.equal == "user_capacity" else "members"
            smallest, largest = min(int(row[key]) for row in rows), max(int(row[key]) for row in rows)
            if key == "user_bytes":
                shown = f"user capacity from {format_bytes(smallest)} to {format_bytes(largest)}"
            else:
                shown = f"members from {smallest} to {largest}"
            if largest > smallest * (1 + _TOLERANCE):
                yield Finding(
                    NAME,
                    target,
                    INVALID,
                    f"The arrays of '{compare.title}' differ: {shown}.",
                    f"Change the trees of group '{compare.group}', or say equal = "
                    f'"{"members" if key == "user_bytes" else "user_capacity"}".',
                )
            else:
                same = f"{format_bytes(largest)} of user capacity" if key == "user_bytes" else f"{largest} members"
                yield Finding(NAME, target, PASS, f"All arrays of '{compare.title}' have {same}.")
