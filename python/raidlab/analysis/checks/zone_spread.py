"""Does every size of file lie all over the volume?

The front of a disk is faster than its end, and an arm that stays in one part goes less far. A study of files spreads
each size over all portions of its volumes; where files lie on a mounted file system is that file system's to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import WARN, Finding
from raidlab.analysis.checks.members import MemberVerdict, name_of, over_members, passed, unknown
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import FileSet, Member, Placement

NAME = "zone_spread"
_PARTS = 10
_LEAST_PARTS = 9
_LEAST_SHARE = 0.5
# Of so many files on average in each tenth, none is missing by chance alone.
_LEAST_A_TENTH = 5


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a size is missing in more than a tenth of what files cover, or that is less than half of the volume."""
    yield from over_members(NAME, analysis, spread)


def spread(member: Member) -> MemberVerdict | None:
    """By the extents of the files that were made, as the file system tells them."""
    known: list[tuple[FileSet, Placement]] = []
    untold: list[str] = []
    for one in member.get("sets", []):
        if "unknown" in one["placement"]:
            untold += [one["placement"]["unknown"]] if one["files"] else []
        elif one["files"]:
            known.append((one, one["placement"]))
    if not known:
        return unknown(f"{untold[0]} ({name_of(member)})") if untold else None
    telling = [(one, place) for one, place in known if one["files"] >= _LEAST_A_TENTH * _PARTS * place["sizes"]]
    if not telling:
        fewest = _LEAST_A_TENTH * _PARTS
        return unknown(f"fewer than {fewest} files of each size say nothing of its tenths ({name_of(member)})")
    worst, place = min(telling, key=lambda found: found[1]["tenths"])
    volume_bytes = place["volume_bytes"]
    first = min(one["first_bytes"] for _, one in known)
    last = max(one["last_bytes"] for _, one in known)
    share = (last - first) / volume_bytes if volume_bytes else None
    evidence = (
        f"{name_of(member)}: files of all {place['sizes']} sizes begin in {place['tenths']} of {_PARTS} tenths of the "
        f"stretch they cover ({worst['workload']}; {place['extents']:.2g} extents a file)"
    )
    if share is not None:
        evidence += f", which is {share:.0%} of the file system"
    if place["tenths"] < _LEAST_PARTS:
        return MemberVerdict(WARN, f"{evidence}.", "Raise live.member_size, so that there are more files of each size.")
    if share is not None and share < _LEAST_SHARE:
        remedy = (
            "Raise live.member_size until the files fill the volume, or read these figures as those of a part of it."
        )
        return MemberVerdict(WARN, f"{evidence}: other zones are not sampled.", remedy)
    return passed(f"{evidence}.")
