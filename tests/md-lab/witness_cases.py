"""What the witness asks of real md and of the simulator, how the simulator is asked, and how far apart they may be.

Nothing here boots the lab: `witness.py` does, and `tests/md-witness` compares the simulator with figures that md gave
before.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

BLOCK_BYTES = 4096
REQUESTS = 10_000
SPAN_MIB = 380
"""Over shorter spans md finds so much in its stripe cache that it reads less; see docs/internals/md-witness.md."""
MEMBER_MIB = 512
SERVICES_NS = (5_000_000, 1_000_000)
CHUNKS_KIB = (16, 64)
MEMBERS = (4, 6)
DEPTHS = (1, 8, 32)
LEVELS = ("raid0", "raid1", "raid10", "raid5", "raid6")
OPERATIONS = ("read", "write")

MD_POLICY = {
    "mirror_read": {"kind": "shortest_queue"},
    "parity_write": "fewest_accesses",
    "parity_write_tie": "reconstruct_write",
    "parity_read": "skip",
}
"""How md chooses, over disks that do not rotate: mirrors by what is pending, reconstruct-write on a tie."""

SCHEDULER = "kyber_batches"
"""What orders the requests of the lab's disks, which take one at a time."""

OWN_ACCESSES = 0.005
"""Accesses that are nobody's request, a request: opening the array reads a block, and md marks it active at its first
write."""


@dataclass(frozen=True)
class Case:
    """One closed loop over one array."""

    level: str
    members: int
    chunk_kib: int | None
    service_ns: int
    operation: str
    depth: int

    @property
    def name(self) -> str:
        """One word that says all, such as ``raid5-n6-c64k-5000us-write-d32``."""
        chunk = [] if self.chunk_kib is None else [f"c{self.chunk_kib}k"]
        words = [self.level, f"n{self.members}", *chunk, f"{self.service_ns // 1000}us", self.operation]
        return "-".join([*words, f"d{self.depth}"])

    @property
    def seed(self) -> int:
        """What loadgen draws its addresses from; the arrays at one depth are asked the same."""
        return self.depth

    @property
    def tree(self) -> str:
        """The array in raidlab's words."""
        chunk = "" if self.chunk_kib is None else f", chunk={self.chunk_kib}KiB"
        return f"{self.level}({self.members}{chunk})"

    @property
    def iops_tolerance(self) -> float:
        """How far the rates may be apart, as a share of md's."""
        return 0.06 if self.level in ("raid5", "raid6") and self.operation == "write" else 0.03


@dataclass(frozen=True)
class Figures:
    """What one case came to, on md or on the simulator; accesses of members are a request's."""

    iops: float
    p90_us: float
    reads: float
    writes: float


@dataclass(frozen=True)
class Verdict:
    """How far the simulator is from md."""

    iops_error: float
    p90_error_us: float
    reads_error: float
    writes_error: float
    outside: tuple[str, ...]


def cases() -> list[Case]:
    """Every case, in the order in which they are run."""
    arrays: list[tuple[str, int, int | None]] = []
    for level in LEVELS:
        if level == "raid1":
            arrays += [(level, members, None) for members in (2, *MEMBERS)]
        else:
            arrays += [(level, members, chunk) for members in MEMBERS for chunk in CHUNKS_KIB]
    order = itertools.product(SERVICES_NS, arrays, OPERATIONS, DEPTHS)
    return [Case(*array, service_ns, operation, depth) for service_ns, array, operation, depth in order]


def loadgen_offsets(seed: int, depth: int, requests: int = REQUESTS, span_mib: int = SPAN_MIB) -> list[int]:
    """The addresses of `loadgen.c`, in its order: xorshift64, which also fills each buffer before its first use."""
    mask = (1 << 64) - 1
    state = (88172645463325252 ^ (seed * 0x9E3779B97F4A7C15)) & mask

    def draws() -> Iterator[int]:
        nonlocal state
        while True:
            state ^= (state << 13) & mask
            state ^= state >> 7
            state ^= (state << 17) & mask
            yield state

    stream = draws()
    blocks = (span_mib << 20) // BLOCK_BYTES
    offsets = []
    for request in range(requests):
        if request < depth:
            next(itertools.islice(stream, BLOCK_BYTES // 8 - 1, None))
        offsets.append(next(stream) % blocks * BLOCK_BYTES)
    return offsets


def cell(
    case: Case, offsets: list[int], tree: Mapping[str, Any], *, scheduler: str = SCHEDULER, **policy: object
) -> dict[str, Any]:
    """The same case as a cell of the simulator; another scheduler or policy shows what that is good for."""
    service_us = case.service_ns / 1000
    member = {"kind": "fixed", "capacity_bytes": MEMBER_MIB << 20, "read_us": service_us, "write_us": service_us}
    return {
        "engine": "sim",
        "seed": 1,
        "tree": tree,
        "policy": MD_POLICY | policy,
        "members": [member | {"scheduler": scheduler}],
        "load": {"kind": "closed", "depth": case.depth},
        "workload": {
            "read": 1.0 if case.operation == "read" else 0.0,
            "size": {"kind": "fixed", "bytes": BLOCK_BYTES},
            "address": {"kind": "listed", "offset_bytes": offsets},
        },
        "warmup": {},
        "measure": {"requests": len(offsets)},
    }


def simulate(case: Case, offsets: list[int], **changes: Any) -> Figures:
    """What the simulator says, with ``changes`` to how md is modelled."""
    from raidlab import _core

    tree = json.loads(_core.parse_tree(case.tree))
    answer = _core.run_cell(json.dumps(cell(case, offsets, tree, **changes)), None)
    histogram = answer[case.operation]["response"]
    requests = int(answer["requests"])
    return Figures(
        iops=requests * 1e9 / answer["elapsed_ns"],
        p90_us=percentile_90(zip(histogram["value_ns"], histogram["count"], strict=True)) / 1000,
        reads=sum(member["reads"] for member in answer["members"]) / requests,
        writes=sum(member["writes"] for member in answer["members"]) / requests,
    )


def percentile_90(histogram: Iterable[tuple[int, int]]) -> float:
    """The value at nine tenths of a sorted list, as loadgen takes it, of (value, count) in order of value."""
    rows = [(int(value), int(count)) for value, count in histogram]
    place = int(0.9 * sum(count for _, count in rows))
    for value, count in rows:
        place -= count
        if place < 0:
            return value
    raise ValueError("an empty histogram has no percentiles")


def judge(case: Case, md: Figures, simulated: Figures) -> Verdict:
    """Hold the simulator to md."""
    iops_error = simulated.iops / md.iops - 1
    p90_error = simulated.p90_us - md.p90_us
    reads_error, writes_error = simulated.reads - md.reads, simulated.writes - md.writes
    bounds = {
        "iops": (abs(iops_error), case.iops_tolerance),
        "p90": (abs(p90_error), max(case.service_ns / 1000, 0.1 * md.p90_us)),
        "reads": (abs(reads_error), 0.03 * md.reads + OWN_ACCESSES),
        "writes": (abs(writes_error), 0.03 * md.writes + OWN_ACCESSES),
    }
    outside = tuple(name for name, (error, bound) in bounds.items() if error > bound)
    return Verdict(iops_error, p90_error, reads_error, writes_error, outside)
