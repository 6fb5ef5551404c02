"""How long until data are lost: a birth-death chain of failed members, with sectors that cannot be read.

Invariants:

- Members fail independently, each at a constant rate; a rebuild begins at once and its time is exponential. Real disks
  wear, come in batches and wait for somebody to replace them, so figures here compare arrays; they insure none.
- A level is known by what it bears, not by its name. Levels without redundancy lose as soon as a part is lost, so rates
  of their parts add up.
- While a level has redundancy left, an unreadable sector is recovered. It loses data only where a rebuild reads it and
  nothing is left: the chain's last state, whose rebuild reads all members that remain.

References: Patterson, Gibson, Katz, *A Case for Redundant Arrays of Inexpensive Disks*, SIGMOD 1988 (the chain for one
failure borne); Chen, Lee, Gibson, Katz, Patterson, *RAID: High-Performance, Reliable Secondary Storage*, ACM Computing
Surveys 1994, section 5 (several failures, unreadable sectors); Resch and Volvovski, arXiv 1310.4702 (what rebuilds that
run at the same time change). What such a mean leaves out: Greenan, Plank, Wylie, *Mean Time to Meaningless*, HotStorage
2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from raidlab.analysis.model.access_count import losses_borne_by
from raidlab.analysis.model.form import Argument, Form
from raidlab.study.tree import Tree, copies_in

HOURS_A_YEAR = 8760.0


@dataclass(frozen=True)
class MemberLifetime:
    """What is to be known of a member."""

    mttf_hours: float
    """Mean time to failure."""
    rebuild_hours: float
    """From the failure until the replacement holds all data again."""
    unreadable: float = 0.0
    """Probability that somewhere, when all of it is read, a sector cannot be."""


def mttf_hours(afr_percent: float) -> float:
    """Mean time to failure, for an annual failure rate: the share of disks that fail within a year.

    Examples
    --------
    >>> round(mttf_hours(1.4))
    621324
    """
    if not 0 < afr_percent < 100:
        raise ValueError(f"an annual failure rate of {afr_percent:g} %: above 0 and below 100 is needed")
    return -HOURS_A_YEAR / math.log1p(-afr_percent / 100)


def rebuild_hours(capacity_bytes: float, rate_mb_s: float, replacement_hours: float = 0.0) -> float:
    """From a failure until the replacement is full: until it is there, and its capacity at the rebuild's rate."""
    if capacity_bytes <= 0 or rate_mb_s <= 0 or replacement_hours < 0:
        raise ValueError("a capacity and a rate above 0 are needed, and a replacement that takes no negative time")
    return replacement_hours + capacity_bytes / (rate_mb_s * 1e6) / 3600


def unreadable(capacity_bytes: float, ure_per_bit: float) -> float:
    """Probability that a member cannot be read from end to end, for a rate of unreadable sectors per bit read.

    Examples
    --------
    A disk of 12 TB with one error in 10^15 bits:

    >>> round(unreadable(12e12, 1e-15), 3)
    0.092
    """
    if capacity_bytes < 0 or not 0 <= ure_per_bit < 1:
        raise ValueError("a capacity of at least 0 and an error rate from 0 to below 1 are needed")
    return -math.expm1(8 * capacity_bytes * math.log1p(-ure_per_bit))


def level_hours(members: int, losses_borne: int, member: MemberLifetime, *, rebuilds_together: bool = False) -> float:
    """Mean time until a level of like members has lost data.

    `rebuilds_together`: failed members are rebuilt at the same time, not one after another.

    Examples
    --------
    A group of 10 + 1 disks as in the paper of 1988:

    >>> round(level_hours(11, 1, MemberLifetime(30_000, 1)))
    8187545
    """
    if not 0 <= losses_borne < members:
        raise ValueError(f"{members} members cannot bear the loss of {losses_borne}")
    if member.mttf_hours <= 0 or member.rebuild_hours <= 0 or not 0 <= member.unreadable <= 1:
        raise ValueError("times above 0 and a probability from 0 to 1 are needed")
    failure, repair = 1 / member.mttf_hours, 1 / member.rebuild_hours
    total = onward = 0.0
    for failed in range(losses_borne + 1):
        left = members - failed
        worse = left * failure
        better = repair * (failed if rebuilds_together else 1) if failed else 0.0
        if failed and failed == losses_borne:
            lost = _any(member.unreadable, left)
            worse, better = worse + better * lost, better * (1 - lost)
        # Mean time from this state to the next, which it may reach only after turning back.
        onward = 1 / worse + better / worse * onward
        total += onward
    return total


def tree_hours(tree: Tree, member: MemberLifetime, *, rebuilds_together: bool = False) -> float:
    """Mean time until an array has lost data.

    The children of a node count as its members: each fails when it has lost data, and is rebuilt as fast as a member,
    since the members of a lost child are written at the same time. An unreadable sector of a child with redundancy is
    its own affair. For children that differ, the mean of their rates is taken.
    """
    return _as_member(tree, member, rebuilds_together=rebuilds_together).mttf_hours


def _as_member(tree: Tree, member: MemberLifetime, *, rebuilds_together: bool) -> MemberLifetime:
    children = [_as_member(child, member, rebuilds_together=rebuilds_together) for child in tree.get("children", [])]
    if not children:
        return member
    if "layout" in tree:
        return _copied(children, tree["layout"], member, rebuilds_together=rebuilds_together)
    losses = losses_borne_by(tree)
    if not losses:
        readable = math.prod(1 - child.unreadable for child in children)
        return MemberLifetime(1 / sum(1 / child.mttf_hours for child in children), member.rebuild_hours, 1 - readable)
    hours = level_hours(len(children), losses, _mean(children, member), rebuilds_together=rebuilds_together)
    return MemberLifetime(hours, member.rebuild_hours, 0.0)


def _mean(children: list[MemberLifetime], member: MemberLifetime) -> MemberLifetime:
    return MemberLifetime(
        len(children) / sum(1 / child.mttf_hours for child in children),
        member.rebuild_hours,
        sum(child.unreadable for child in children) / len(children),
    )


def _copied(
    children: list[MemberLifetime], layout: str, member: MemberLifetime, *, rebuilds_together: bool
) -> MemberLifetime:
    """RAID 10 of copies: lost with the first set of children that hold a chunk, each such set like a mirror."""
    kind, copies = copies_in(layout)
    count = len(children)
    if not 2 <= copies <= count:
        raise ValueError(f"{count} members cannot hold {copies} copies")
    sets = 1 if copies == count else count // math.gcd(count, copies if kind == "near" else 1)
    hours = level_hours(copies, copies - 1, _mean(children, member), rebuilds_together=rebuilds_together)
    return MemberLifetime(hours / sets, member.rebuild_hours, 0.0)


def loss_per_year(mean_hours: float) -> float:
    """Probability that data are lost within a year, for a mean time until they are."""
    if mean_hours <= 0:
        raise ValueError(f"a mean time of {mean_hours:g} h: above 0 is needed")
    return -math.expm1(-HOURS_A_YEAR / mean_hours)


def _any(probability: float, times: int) -> float:
    return 1.0 if probability >= 1 else -math.expm1(times * math.log1p(-probability))


def mean_time_to_data_loss_hours(
    members: float,
    losses_borne: float,
    mttf_hours: float,
    rebuild_hours: float,
    groups: float = 1.0,
    unreadable_percent: float = 0.0,
) -> float:
    """The form of the list: groups of like members, of which none may lose data."""
    if any(number != int(number) for number in (members, losses_borne, groups)) or groups < 1:
        raise ValueError("whole numbers of members, losses and groups are needed, and at least one group")
    member = MemberLifetime(mttf_hours, rebuild_hours, unreadable_percent / 100)
    return level_hours(int(members), int(losses_borne), member) / groups


FORMS = (
    Form(
        "mean_time_to_data_loss",
        "mean time until an array has lost data",
        "h",
        "Patterson, Gibson and Katz 1988; Chen and others 1994, section 5",
        "Failures are independent at a constant rate, failed members are rebuilt one after another, at once.",
        (
            Argument("members", "of a group"),
            Argument("losses_borne", "RAID 0 0, RAID 5 1, RAID 6 2, a mirror of n members n - 1"),
            Argument("mttf_hours", "mean time to failure of a member"),
            Argument("rebuild_hours", "from a failure until the replacement is full"),
            Argument("groups", "as many groups; none may lose data", 1.0),
            Argument("unreadable_percent", "how often a member cannot be read from end to end", 0.0),
        ),
        mean_time_to_data_loss_hours,
    ),
)
