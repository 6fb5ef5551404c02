"""Did the device give back what was written to it?

A device that loses writes, answers with zeros, or wraps at an eighth of its capacity is fast and worthless. What
raidlab writes bears a stamp in every sector (place, number of the write, a sum of the rest), so a share of what is read
is compared while measuring, and a sample of what was acknowledged is read back afterwards. The engine compares and
judges each cell; of contents that raidlab did not write nothing can be known.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.engine import summed_up
from raidlab.analysis.checks.finding import INVALID, UNKNOWN, Finding
from raidlab.analysis.checks.members import MemberVerdict, name_of, passed, unknown
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Member

NAME = "content"
_LOSES = "The device loses or changes data: do not use its figures, and do not use it."
_TELLS = "Measure it with raidlab's own data: name a directory on it, or give it up with --destroy and write."
# Of n things compared, a fault of one in n/3 is missed with a chance of 5 %.
_SURE = 3
_LEAST = 30


def check(analysis: Analysis) -> Iterator[Finding]:
    """INVALID when a sector did not hold what was written to it; UNKNOWN where nobody knows what that was."""
    yield from summed_up(analysis, {NAME})


def judge(member: Member) -> MemberVerdict | None:
    """INVALID when a block read twice came back otherwise."""
    twice = member.get("read_twice")
    if twice is None:
        return None
    name, blocks, different = name_of(member), twice["blocks"], twice["different"]
    if different and twice["written_meanwhile"]:
        return unknown(f"{name} was written by others while its blocks were read twice")
    if different:
        first = ", ".join(str(block * twice["block_bytes"]) for block in twice["first"])
        evidence = (
            f"Of {blocks:,} blocks of {name} that were read twice, {different:,} came back otherwise the second time, "
            f"though nobody wrote; the first at byte {first}."
        )
        return MemberVerdict(INVALID, evidence, _LOSES)
    if blocks < _LEAST:
        return MemberVerdict(UNKNOWN, f"Only {blocks} blocks of {name} could be read twice.", _TELLS)
    return passed(
        f"Of {name} {blocks:,} blocks were read twice, and were the same. With a chance of 95 %, wrong data in one of "
        f"{2 * blocks // _SURE:,} reads would have been seen; data that are wrong each time cannot be."
    )
