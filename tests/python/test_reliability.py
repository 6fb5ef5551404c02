"""How long until data are lost: printed figures, chains solved as linear equations, trees against levels."""

from __future__ import annotations

import random

import pytest

from raidlab.analysis.model import FORMS
from raidlab.analysis.model.reliability import (
    MemberLifetime,
    level_hours,
    loss_per_year,
    mttf_hours,
    rebuild_hours,
    tree_hours,
    unreadable,
)
from raidlab.study.tree import Tree

LEAF: Tree = {"kind": "member"}


def parity(width: int, parities: int, child: Tree = LEAF) -> Tree:
    return {
        "kind": "parity",
        "parities": parities,
        "rotation": "left_symmetric",
        "chunk_bytes": 65536,
        "children": [child] * width,
    }


def mirror(width: int, child: Tree = LEAF) -> Tree:
    return {"kind": "mirror", "children": [child] * width}


def stripe(width: int, child: Tree = LEAF) -> Tree:
    return {"kind": "stripe", "chunk_bytes": 65536, "children": [child] * width}


@pytest.mark.parametrize(
    ("level", "group", "checks", "printed"),
    [("level 1", 1, 1, 4_500_000), ("level 5", 10, 1, 820_000), ("level 5", 25, 1, 346_000)],
)
def test_the_table_of_1988(level: str, group: int, checks: int, printed: float) -> None:
    """100 disks of data, 30,000 h each, replaced and rebuilt in an hour. The paper prints two or three places."""
    hours = FORMS["mean_time_to_data_loss"].value(
        members=group + checks, losses_borne=1, groups=100 / group, mttf_hours=30_000, rebuild_hours=1
    )
    assert hours == pytest.approx(printed, rel=5e-3)
    # The paper's formula, which leaves out what the chain adds: one part in as many rebuilds as fit into a lifetime.
    disks = 100 * (group + checks) / group
    assert hours == pytest.approx(30_000**2 / (disks * (group + checks - 1)), rel=2e-3)


def solved(members: int, losses: int, member: MemberLifetime, *, together: bool) -> float:
    """The same chain as linear equations, T(i) = time spent in i + where it goes next, by elimination."""
    size = losses + 1
    rows = []
    for i in range(size):
        fail, repair = (members - i) / member.mttf_hours, (i if together else min(i, 1)) / member.rebuild_hours
        lost = 1 - (1 - member.unreadable) ** (members - i) if i == losses and i else 0.0
        row = [0.0] * (size + 1)
        row[i], row[size] = fail + repair, 1.0
        if i + 1 < size:
            row[i + 1] -= fail
        if i:
            row[i - 1] -= repair * (1 - lost)
        rows.append(row)
    for i in reversed(range(1, size)):
        share = rows[i - 1][i] / rows[i][i]
        rows[i - 1] = [above - share * below for above, below in zip(rows[i - 1], rows[i], strict=True)]
    return rows[0][size] / rows[0][0]


def test_the_recursion_is_the_chain_solved_as_equations() -> None:
    draw = random.Random(1988)
    for _ in range(300):
        members = draw.randint(1, 12)
        losses = draw.randint(0, min(3, members - 1))
        # Rates that are not far apart, so that elimination does not lose the places that the recursion keeps.
        member = MemberLifetime(draw.uniform(10, 1000), draw.uniform(1, 20), draw.choice([0.0, draw.random()]))
        together = draw.random() < 0.5
        got = level_hours(members, losses, member, rebuilds_together=together)
        assert got == pytest.approx(solved(members, losses, member, together=together), rel=1e-6)


def test_known_chains() -> None:
    disk = MemberLifetime(1000, 10)
    assert level_hours(4, 0, disk) == 250
    assert level_hours(2, 1, disk) == pytest.approx((3 / 1000 + 1 / 10) / (2 / 1000**2))
    # Chen and others 1994: MTTF^3 / (N (N - 1) (N - 2) MTTR^2) for two losses; simultaneous rebuilds double it.
    rare = MemberLifetime(1e6, 10)
    assert level_hours(8, 2, rare) == pytest.approx(1e18 / (8 * 7 * 6 * 100), rel=1e-3)
    assert level_hours(8, 2, rare, rebuilds_together=True) == pytest.approx(2e18 / (8 * 7 * 6 * 100), rel=1e-3)
    # Where no rebuild ever succeeds, data last until the first failure and one rebuild's time, or a second failure.
    assert level_hours(8, 1, MemberLifetime(1e6, 10, 1.0)) == pytest.approx(1e6 / 8 + 10, rel=1e-3)


def test_more_redundancy_faster_rebuilds_and_better_sectors_never_lose_sooner() -> None:
    for width in range(3, 12):
        times = [level_hours(width, losses, MemberLifetime(5e5, 24, 0.05)) for losses in range(3)]
        assert times == sorted(times)
        for losses in (1, 2):
            assert level_hours(width, losses, MemberLifetime(5e5, 12, 0.05)) > times[losses]
            assert level_hours(width, losses, MemberLifetime(5e5, 24, 0.01)) > times[losses]
            assert level_hours(width + 1, losses, MemberLifetime(5e5, 24, 0.05)) < times[losses]


def test_trees_are_their_levels() -> None:
    disk = MemberLifetime(5e5, 24, 0.01)
    pair, group = level_hours(2, 1, disk), level_hours(4, 1, disk)
    assert tree_hours(LEAF, disk) == 5e5
    assert tree_hours(stripe(6), disk) == pytest.approx(5e5 / 6)
    assert tree_hours(stripe(4, mirror(2)), disk) == pytest.approx(pair / 4)
    assert tree_hours(stripe(2, parity(4, 1)), disk) == pytest.approx(group / 2)
    # A mirror of stripes loses with any member of the other half, a stripe of mirrors only with the partner.
    assert tree_hours(mirror(2, stripe(4)), disk) < tree_hours(stripe(4, mirror(2)), disk)
    copies: Tree = {"kind": "copies", "chunk_bytes": 65536, "children": [LEAF] * 6}
    assert tree_hours({**copies, "layout": "near2"}, disk) == pytest.approx(pair / 3)
    # Of neighbours around the circle there are six, of pairs three.
    assert tree_hours({**copies, "layout": "far2"}, disk) == pytest.approx(pair / 6)
    assert tree_hours({**copies, "layout": "offset6"}, disk) == pytest.approx(level_hours(6, 5, disk))
    # Sectors that mirrors recover do not reach the parity above them.
    clean = MemberLifetime(pair, 24)
    assert tree_hours(parity(3, 1, mirror(2)), disk) == pytest.approx(level_hours(3, 1, clean))


def test_what_data_sheets_say() -> None:
    assert loss_per_year(mttf_hours(1.4)) == pytest.approx(0.014)
    assert rebuild_hours(3.6e12, 100, 2) == pytest.approx(12)
    assert unreadable(12e12, 1e-14) == pytest.approx(0.617, abs=1e-3)
    assert unreadable(0, 1e-14) == 0


@pytest.mark.parametrize(
    "bad",
    [
        lambda: mttf_hours(0),
        lambda: mttf_hours(100),
        lambda: rebuild_hours(1e12, 0),
        lambda: unreadable(1e12, 1),
        lambda: level_hours(3, 3, MemberLifetime(1, 1)),
        lambda: level_hours(3, 1, MemberLifetime(1, 0)),
        lambda: loss_per_year(0),
        lambda: FORMS["mean_time_to_data_loss"].value(members=2.5, losses_borne=1, mttf_hours=1, rebuild_hours=1),
    ],
)
def test_what_makes_no_sense_is_refused(bad) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"need|cannot"):
        bad()
