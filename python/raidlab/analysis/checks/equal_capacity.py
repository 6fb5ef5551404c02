"""Is what a table calls equal really equal?

Throughput per member is only fair between arrays of the same user capacity or the same number of members, and the
table must say which.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import INVALID, PASS, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.study.check import difference_of
from raidlab.study.units import format_bytes

NAME = "equal_capacity"


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID when a table's arrays differ in what it says they share."""
    for target in analysis.targets:
        for compare in analysis.run.study.compare:
            points = [point for point in analysis.points if point.target == target and point.group == compare.group]
            if not points:
                continue
            key = "user_bytes" if compare.equal == "user_capacity" else "members"
            sizes = [point.members if key == "members" else int(point.rows[0][key]) for point in points]
            difference = difference_of(compare, sizes)
            if difference is not None:
                evidence = f"{difference[0].upper()}{difference[1:]}."
                other = "members" if key == "user_bytes" else "user_capacity"
                remedy = f"Change the trees of group '{compare.group}', or say equal = \"{other}\"."
                if analysis.run.standing and key == "members":
                    remedy += " How many disks a controller's volume has, its owner says: disks = 8, beside volume."
                yield Finding(NAME, target, INVALID, evidence, remedy)
            else:
                largest = max(sizes)
                same = f"{format_bytes(largest)} of user capacity" if key == "user_bytes" else f"{largest} members"
                yield Finding(NAME, target, PASS, f"All arrays of '{compare.title}' have {same}.")
