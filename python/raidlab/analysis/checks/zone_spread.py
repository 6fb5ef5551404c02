"""Does every size of file lie all over the volume?

The front of a disk is faster than its end, and an arm that stays in one part goes less far. A study of files spreads
each size over all portions of its volumes; where files lie on a mounted file system is that file system's to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import WARN, Finding
from raidlab.analysis.checks.members import Judged, Member, name_of, over_members, passed, unknown
from raidlab.analysis.metrics import Analysis

NAME = "zone_spread"
_PARTS = 10
_LEAST_PARTS = 9
_LEAST_SHARE = 0.5
# Of so many files on average in each tenth, none is missing by chance alone.
_LEAST_A_TENTH = 5


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a size is missing in more than a tenth of what files cover, or that is less than half of the volume."""
    yield from over_members(NAME, analysis, judge)


def judge(member: Member) -> Judged | None:
    """By the extents of the files that were made, as the file system tells them."""
    sets = [one for one in member.get("sets") or [] if one["files"]]
    if not sets:
        return None
    known = [one for one in sets if "unknown" not in one["placement"]]
    if not known:
        return unknown(f"{sets[0]['placement']['unknown']} ({name_of(member)})")
    telling = [one for one in known if one["files"] >= _LEAST_A_TENTH * _PARTS * one["placement"]["sizes"]]
    if not telling:
        fewest = _LEAST_A_TENTH * _PARTS
        return unknown(f"fewer than {fewest} files of each size say nothing of its tenths ({name_of(member)})")
    worst = min(telling, key=lambda one: one["placement"]["tenths"])
    place = worst["placement"]
    volume_bytes = place["volume_bytes"]
    first = min(one["placement"]["first_bytes"] for one in known)
    last = max(one["placement"]["last_bytes"] for one in known)
    share = (last - first) / volume_bytes if volume_bytes else None
    evidence = (
        f"{name_of(member)}: files of all {place['sizes']} sizes begin in {place['tenths']} of {_PARTS} tenths of the "
        f"stretch they cover ({worst['workload']}; {place['extents']:.2g} extents a file)"
    )
    if share is not None:
        evidence += f", which is {share:.0%} of the file system"
    if place["tenths"] < _LEAST_PARTS:
        return Judged(WARN, f"{evidence}.", "Raise live.member_size, so that there are more files of each size.")
    if share is not None and share < _LEAST_SHARE:
        mend = "Raise live.member_size until the files fill the volume, or read these figures as those of a part of it."
        return Judged(WARN, f"{evidence}: other zones are not sampled.", mend)
    return passed(f"{evidence}.")
