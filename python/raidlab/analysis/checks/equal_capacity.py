"""Is what a table calls equal really equal?

Throughput per member is only fair between arrays of the same user capacity or the same number of members, and the
table must say which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raidlab.analysis.checks.finding import INVALID, PASS, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.study.check import EQUAL_TOLERANCE, difference_of
from raidlab.study.schema import Compare
from raidlab.study.units import format_bytes

NAME = "equal_capacity"


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID when a table's arrays differ in what it says they share, by more than whole chunks may take."""
    for target in analysis.targets:
        for compare in analysis.run.study.compare:
            points = [point for point in analysis.points if point.target == target and point.group == compare.group]
            if not points:
                continue
            key = "user_bytes" if compare.equal == "user_capacity" else "members"
            sizes = [point.members if key == "members" else int(point.rows[0][key]) for point in points]
            trees = [point.tree for point in points if point.tree is not None]
            difference = difference_of(compare, sizes, trees)
            if difference is not None:
                evidence = f"{difference[0].upper()}{difference[1:]}."
                other = "members" if key == "user_bytes" else "user_capacity"
                remedy = f"Change the trees of group '{compare.group}', or say equal = \"{other}\"."
                if analysis.run.standing and key == "members":
                    remedy += " How many disks a controller's volume has, its owner says: disks = 8, beside volume."
                yield Finding(NAME, target, INVALID, evidence, remedy)
            else:
                yield Finding(NAME, target, PASS, said_of_equal(compare, sizes))


def said_of_equal(compare: Compare, sizes: Sequence[int]) -> str:
    """What the arrays of a table share, and that this was looked at: they need not share anything else."""
    least, most, percent = min(sizes), max(sizes), f"{100 * EQUAL_TOLERANCE:g} %"
    if compare.equal == "members":
        return f"The arrays of '{compare.title}' are compared for equal members, and each has {most}."
    shown = [format_bytes(least), format_bytes(most)]
    within = f"within {percent}" if most <= least * (1 + EQUAL_TOLERANCE) else "but for whole chunks of each member"
    held = shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]} ({within})"
    return f"The arrays of '{compare.title}' are compared for equal user capacity, and each has {held}."
