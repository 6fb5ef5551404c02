"""Is what a table calls equal really equal?

Throughput per member is only fair between arrays of the same user capacity or the same number of members, and the
table must say which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raidlab.analysis.checks.finding import INVALID, PASS, UNKNOWN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.analysis.metrics.point import Point
from raidlab.results.volumes import disk_count, main_volume
from raidlab.study.check import EQUAL_TOLERANCE, difference_of
from raidlab.study.schema import Compare
from raidlab.study.units import format_bytes

NAME = "equal_capacity"
_SAY_DISKS = "Say in the study how many disks it has: disks = 8, beside its volume."


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID when a table's arrays differ in what it says they share, by more than whole chunks may take.

    UNKNOWN where nothing tells how many members an array has that stands already.
    """
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
                remedy = f"Compare other arrays in group '{compare.group}', or say equal = \"{other}\"."
                if analysis.run.standing and key == "members":
                    remedy += " How many disks a controller's volume has, its owner says: disks = 8, beside its volume."
                yield Finding(NAME, target, INVALID, evidence, remedy)
            elif key == "members" and (untold := [point.array for point in points if _is_untold(point)]):
                named = ", ".join(f"'{name}'" for name in dict.fromkeys(untold))
                evidence = (
                    f"Whether the arrays of '{compare.title}' have equal members could not be determined, because the "
                    f"kernel knows no array below {named}, and the study does not say how many disks are there."
                )
                yield Finding(NAME, target, UNKNOWN, evidence, _SAY_DISKS)
            else:
                yield Finding(NAME, target, PASS, said_of_equal(compare, sizes, in_files=any(map(_is_in_file, points))))


def _is_untold(point: Point) -> bool:
    """Whether an array that stands already counts as one disk because nothing tells how many it has."""
    array = point.standing
    if array is None or array.disks is not None:
        return False
    members = point.run.live_members(array.name)
    return main_volume(members) is None and disk_count(array, members) == 1


def _is_in_file(point: Point) -> bool:
    """Whether an array that stands already was measured in a file of its file system."""
    array = point.standing
    if array is None or array.volume is None:
        return False
    folder = array.volume.rstrip("/") + "/"
    return any(str(member.get("path")).startswith(folder) for member in point.run.live_members(array.name))


def said_of_equal(compare: Compare, sizes: Sequence[int], *, in_files: bool = False) -> str:
    """What the arrays of a table share, and that this was looked at: they need not share anything else.

    ``in_files``: arrays that stand already were measured in files, which say nothing of how large the arrays are.
    """
    least, most, percent = min(sizes), max(sizes), f"{100 * EQUAL_TOLERANCE:g} %"
    if compare.equal == "members":
        return f"The arrays of '{compare.title}' are compared for equal members, and each has {most}."
    shown = [format_bytes(least), format_bytes(most)]
    within = f"within {percent}" if most <= least * (1 + EQUAL_TOLERANCE) else "but for whole chunks of each member"
    held = shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]} ({within})"
    of_files = "; of one that stands already this is the file that was measured" if in_files else ""
    return f"The arrays of '{compare.title}' are compared for equal user capacity, and each has {held}{of_files}."
