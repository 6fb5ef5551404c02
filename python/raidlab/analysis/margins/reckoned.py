"""From which share of reads on another array would be first, reckoned from how long requests keep the members busy.

By the bottleneck law an array under a deep queue serves as many requests as its members have time for: requests a
second = members x busy share / busy time a request. A request's busy time is that of a read or of a write, as often as
each comes, so it is a straight line over the share of reads, and two arrays cross where a linear equation says.

Invariants:

- What a member spends is measured (`busy_ns`). How it divides between reads and writes is measured where the run has
  the same work with other shares of reads, and is else as the access-count model has it, less the seeks that a mirror
  saves by reading the nearer copy.
- Of streams nothing is reckoned: a read between two writes costs both their place, which no straight line knows.
- Nothing is reckoned where the members were idle for much of the time: then something else is the bottleneck.

References: P. J. Denning, J. P. Buzen, *The Operational Analysis of Queueing Network Models*, 1978; D. Bitton, J. Gray,
*Disk Shadowing*, VLDB 1988 (the nearest of k arms).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from raidlab.analysis.margins.crossing import Place, as_is, place_of
from raidlab.analysis.metrics.point import Point
from raidlab.analysis.model import accesses
from raidlab.stats.regression import line
from raidlab.study.tree import Tree, copies_in
from raidlab.study.workload import Workload

# Members that are busy for less of the time do not set the pace alone.
LEAST_BUSY = 0.75
# At the very ends arrays are often alike (all read, and none has anything to write twice): a crossing there is none.
_ENDS = 0.005
_SEEK_POWER = 0.75
# Of work that is nearly all reads, or all writes, a run shows too little of what the others cost.
_LEAST_OF_EITHER = 0.1


@dataclass(frozen=True)
class Demand:
    """Busy time of all members a request, for reads only and for writes only; any unit."""

    read: float
    write: float

    def at(self, share: float) -> float:
        """For a share of reads."""
        return share * self.read + (1 - share) * self.write


def demands(point: Point, workload: Workload, others: Sequence[tuple[Point, Workload]]) -> list[Demand] | None:
    """Of each repeat of a point, what its reads and writes cost; None where that is not known.

    ``others`` are points of the same array and load whose workloads differ in the share of reads alone.
    """
    is_stream = getattr(workload.address, "kind", "") == "sequential"
    own = None if is_stream else busy_a_request(point)
    if own is None:
        return None
    known = [(each, other.read) for one, other in others if (each := busy_a_request(one)) and len(each) == len(own)]
    if known:
        return [_through([(workload.read, mine), *((x, each[i]) for each, x in known)]) for i, mine in enumerate(own)]
    if not _LEAST_OF_EITHER <= workload.read <= 1 - _LEAST_OF_EITHER:
        return None
    # What an access costs is reckoned of whole arrays.
    if point.missing or point.standing is not None or workload.streams is not None or workload.trace is not None:
        return None
    size, tree = workload.size.typical_bytes, point.run.tree(point.array)
    try:
        per_read, per_write = (accesses(tree, size, write=write) for write in (False, True))
    except ValueError:
        return None
    per_read *= _share_of_nearer(point, tree)
    per_request = workload.read * per_read + (1 - workload.read) * per_write
    return [Demand(mine * per_read / per_request, mine * per_write / per_request) for mine in own]


def _share_of_nearer(point: Point, tree: Tree) -> float:
    """What a read costs of an access to a random place, where it goes to the copy whose arm is nearer; 1 elsewhere.

    Of k arms anywhere the nearest is 1/(2k + 1) of the stroke away, a single one 1/3. The time of a seek grows with its
    length to a power between 1/2 (short seeks) and 1 (long ones); 3/4 is taken.
    """
    study = point.run.study
    array = next(one for one in study.array if one.name == point.array)
    copies = _copies(tree)
    sums = point.rows_of("members").select("reads", "writes", "busy_ns", "seek_ns")
    if copies < 2 or (array.policy or study.policy).mirror_read.kind != "nearest" or sums["seek_ns"].null_count():
        return 1.0
    reads, writes, busy_ns, seek_ns = (float(sums[name].sum()) for name in sums.columns)
    nearer = (3 / (2 * copies + 1)) ** _SEEK_POWER
    seek = seek_ns / (writes + nearer * reads)
    rest = (busy_ns - seek_ns) / (writes + reads)
    return (nearer * seek + rest) / (seek + rest) if seek + rest > 0 else 1.0


def _copies(tree: Tree) -> int:
    """How many members of a tree hold the same, where mirrors lie right above them."""
    children = tree.get("children", [])
    if tree["kind"] == "mirror" and all(child["kind"] == "member" for child in children):
        return len(children)
    if "layout" in tree:
        return copies_in(tree["layout"])[1]
    return _copies(children[0]) if children else 1


def _through(known: list[tuple[float, float]]) -> Demand:
    """The straight line over the share of reads, as its ends."""
    found = line([share for share, _ in known], [busy for _, busy in known])
    slope, at_zero = found.slope.value or 0.0, found.intercept.value or 0.0
    return Demand(slope + at_zero, at_zero)


def busy_a_request(point: Point) -> list[float] | None:
    """Busy time of all members a request in each repeat; None where it was not recorded or the members were idle."""
    members = point.rows_of("members")
    if members.is_empty() or members["busy_ns"].null_count():
        return None
    servers = pl.col("servers").fill_null(1) if "servers" in members.columns else pl.lit(1)
    by_cell = {
        row["cell"]: row
        for row in members.group_by("cell").agg(pl.col("busy_ns").sum(), servers.sum().alias("all_servers")).to_dicts()
    }
    found = []
    for row in point.rows:
        mine = by_cell.get(row["cell"])
        if mine is None or not row["all_requests"] or not row["elapsed_ns"]:
            return None
        if mine["busy_ns"] < LEAST_BUSY * mine["all_servers"] * row["elapsed_ns"]:
            return None
        found.append(mine["busy_ns"] / row["all_requests"])
    return found


def crossing_of_reads(
    now: float, first: tuple[Sequence[float], Sequence[Demand]], second: tuple[Sequence[float], Sequence[Demand]]
) -> Place | None:
    """The share of reads at which two arrays are level, from their rates at ``now`` and what requests cost them."""
    found = []
    for rate, demand, other_rate, other in zip(*first, *second, strict=True):
        own_power, other_power = rate * demand.at(now), other_rate * other.at(now)
        slope = own_power * (other.read - other.write) - other_power * (demand.read - demand.write)
        share = (other_power * demand.write - own_power * other.write) / slope if slope else -1.0
        if not _ENDS <= share <= 1 - _ENDS:
            return None
        found.append(share)
    return place_of(found, as_is) if found else None
