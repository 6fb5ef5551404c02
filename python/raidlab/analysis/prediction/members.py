"""What each member of an array did while it was measured: how many requests, and how long one took there.

Of modelled disks the engine counts; below an array of the kernel's the kernel does (``/sys/block/NAME/stat``). Its
counters are read once before all loads and once after, so they speak of the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from raidlab.analysis.metrics import Analysis, Point
from raidlab.results.facts import DeviceCounters, Member, Traffic, Unknown

NS_PER_MS = 1e6


@dataclass(frozen=True)
class MemberWork:
    """What one member did."""

    name: str
    requests: int
    busy_ms: float
    """For how long its requests were under way, added up."""

    @property
    def mean_ms(self) -> float:
        """How long a request took there, waiting in its queue included."""
        return self.busy_ms / self.requests if self.requests else 0.0


def members_of_points(analysis: Analysis, points: Sequence[Point]) -> list[MemberWork]:
    """What the members of modelled disks did under some loads; empty where they have no times."""
    cells = [cell for point in points for cell in point.cells]
    rows = analysis.run.members.filter(pl.col("cell").is_in(cells) & pl.col("busy_ns").is_not_null())
    found = []
    for (leaf,), part in rows.partition_by("leaf", as_dict=True, maintain_order=True).items():
        requests = busy_ns = 0
        for row in part.iter_rows(named=True):
            requests += row["reads"] + row["writes"]
            busy_ns += row["busy_ns"] + (row["wait_ns"] or 0)
        found.append(MemberWork(f"member {leaf}", requests, busy_ns / NS_PER_MS))
    return found


def members_below(member: Member) -> list[MemberWork]:
    """What the disks of an array of the kernel's did over the whole run; empty where nobody counted."""
    before, after = _traffic(member.get("traffic")), _traffic(member.get("traffic_after"))
    if before is None or after is None:
        return []
    found = []
    for name in leaf_names(member):
        then, now = before["devices"].get(name), after["devices"].get(name)
        if then is not None and now is not None and "reads" in then and "reads" in now:
            found.append(_between(name, then, now))
    return found


def _between(name: str, then: DeviceCounters, now: DeviceCounters) -> MemberWork:
    requests = now["reads"] + now["writes"] - then["reads"] - then["writes"]
    busy_ms = now["read_ms"] + now["write_ms"] - then["read_ms"] - then["write_ms"]
    return MemberWork(name, max(requests, 0), float(max(busy_ms, 0)))


def leaf_names(member: Member) -> list[str]:
    """The devices that the lowest arrays below a target are made of, as the kernel names them."""
    volumes = member.get("volumes", [])
    inner = {str(volume["details"].get("device") or volume["name"]) for volume in volumes if "details" in volume}
    counted = _traffic(member.get("traffic"))
    names = [one["name"] for volume in volumes for one in volume["members"] if "name" in one]
    known = [name for name in dict.fromkeys(names) if name not in inner and counted and name in counted["devices"]]
    return known if len(known) > 1 else list(member["disks"])


def _traffic(traffic: Traffic | Unknown | None) -> Traffic | None:
    return None if traffic is None or "unknown" in traffic else traffic
