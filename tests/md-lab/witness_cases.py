"""What the witness asks of real md and of the simulator, how the simulator is asked, and how far apart they may be.

Nothing here boots the lab: `witness.py` does, and `tests/md-witness` compares the simulator with figures that md gave
before.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
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
MIXED = "mixed70"
"""Of every ten requests seven are reads."""
KIB = 1024
PAGE_BYTES = 4096
RECORDINGS = (
    "linear",
    "raid0-chunk64k",
    "raid0-chunk512k-metadata1.0",
    "raid1-clean",
    "raid4-clean",
    "raid5-left-symmetric",
    "raid5-right-asymmetric",
    "raid5-parity-first",
    "raid5-chunk512k-metadata0.90",
    "raid6-clean",
    "raid10-n2",
    "raid10-n3",
    "raid10-n2-odd",
    "raid10-f2",
    "raid10-o2",
)
"""Arrays of tests/md-states whose twins are held against md."""
MDADM_LAYOUTS = ("right-asymmetric", "parity-first", "n3", "f2", "o2")
COPIES = (("near2", 3), ("near2", 5), ("near3", 4), ("far2", 4), ("far3", 5), ("offset2", 4), ("offset2", 5))
"""RAID 10 beside pairs: where the copies of a chunk lie, and over how many members."""


DEGRADED: tuple[tuple[str, int, int | None, tuple[int, ...]], ...] = (
    ("raid1", 3, None, (1,)),
    ("raid10", 4, 64, (1,)),
    ("raid4", 5, 64, (1,)),
    ("raid4", 5, 64, (4,)),
    ("raid5", 5, 64, (1,)),
    ("raid6", 6, 64, (1,)),
    ("raid6", 6, 64, (1, 2)),
)
"""Arrays without members: level, members, KiB of a chunk, which are missing."""


def md_policy() -> dict[str, Any]:
    """What a study's ``policy = "md"`` is, over disks that do not rotate."""
    from raidlab.study.cell import CellPolicy
    from raidlab.study.schema import POLICIES

    return CellPolicy.model_validate(POLICIES["md"]).model_dump(exclude_none=True)


@functools.cache
def recorded(recording: str) -> tuple[str, int, int | None]:
    """Level, members and KiB of a chunk of an array that the kernel described."""
    volume = _facts(recording)
    chunk = volume["chunk_bytes"]
    return str(volume["level"]), int(volume["raid_disks"]), None if not chunk else int(chunk) // KIB


@functools.cache
def twin_of(recording: str) -> tuple[str, dict[str, Any]]:
    """Tree and policy that are predicted of an array from what the kernel said of it."""
    from raidlab.run.twin import twin_of_volumes
    from raidlab.study.cell import CellPolicy

    twin = twin_of_volumes([_facts(recording)])
    return twin.tree, CellPolicy.model_validate(dict(twin.policy)).model_dump(exclude_none=True)


def _facts(recording: str) -> Any:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
    from test_md_states import facts_of

    with tempfile.TemporaryDirectory(prefix="md-witness.") as folder:
        return facts_of(recording, Path(folder))


SCHEDULER = "kyber_batches"
"""What orders the requests of the lab's disks, which take one at a time."""
LOOK_NS = 256
"""What a look at the lab's clock takes (``TIMER_MULTIPLIER``); nothing else takes time there."""

OWN_ACCESSES = 0.005
"""Accesses that are nobody's request, a request: opening the array reads a block, and md marks it active at its first
write."""


APART = (
    "raid6-n6-c64k-5000us-write-64k-d8",
    "raid5-n5-c64k-5000us-write-seq-d8",
    "raid5-n5-c64k-5000us-write-64k-seq-d8",
    "raid6-n6-c64k-5000us-write-seq-d8",
    "raid6-n6-c64k-5000us-write-64k-seq-d8",
)
"""Writes on RAID 5 and 6 that are further from md than the others; only their bytes are held."""

DEGRADED_APART = (
    "raid10-n4-c64k-without1-5000us-read-256k-unaligned-d8",
    "raid10-n4-c64k-without1-5000us-read-64k-seq-d8",
)
"""Reads of several chunks of RAID 10 without a member: 9 and 12 % slow; only their bytes are held."""

SPLIT = "twin-of-raid0-chunk64k-5000us-read-256k-unaligned-d1"
"""Md cuts its accesses into more, for a reason not known; how many there are is not held."""


@dataclass(frozen=True)
class Tolerance:
    """How far figures may be apart, as shares of md's."""

    iops: float
    accesses: float
    bytes: float


@dataclass(frozen=True)
class Case:
    """One closed loop over one array."""

    level: str
    members: int
    chunk_kib: int | None
    service_ns: int
    operation: str
    depth: int
    block_bytes: int = BLOCK_BYTES
    align_bytes: int | None = None
    """Where requests begin, at random: multiples of this; 0: each where the one before it ended; None: of the block."""
    recording: str = ""
    """The array as the kernel describes one (tests/md-states): tree and policy are what is predicted from that."""
    copies: str = ""
    """Where the copies of RAID 10 lie, where these are no pairs: ``far2``."""
    missing: tuple[int, ...] = ()
    """Members that have failed and were removed before the first request."""

    @property
    def name(self) -> str:
        """One word that says all, such as ``raid5-n6-c64k-5000us-write-d32`` or ``raid1-n2-5000us-read-64k-seq-d8``."""
        level = [self.level, *([self.copies] if self.copies else []), f"n{self.members}"]
        words = [f"twin-of-{self.recording}"] if self.recording else level
        words += [] if self.chunk_kib is None or self.recording else [f"c{self.chunk_kib}k"]
        words += ["without" + "+".join(map(str, self.missing))] if self.missing else []
        words += [f"{self.service_ns // 1000}us", self.operation]
        if self.block_bytes != BLOCK_BYTES:
            words.append(f"{self.block_bytes // KIB}k" if self.block_bytes >= KIB else f"{self.block_bytes}b")
        if self.align_bytes is not None:
            words.append({0: "seq", PAGE_BYTES: "unaligned"}[self.align_bytes])
        return "-".join([*words, f"d{self.depth}"])

    @property
    def read_percent(self) -> int:
        """Share of reads."""
        return {"read": 100, "write": 0, MIXED: 70}[self.operation]

    @property
    def requests(self) -> int:
        """How many; long ones are fewer."""
        return REQUESTS if self.block_bytes <= 16 * KIB else 2000

    @property
    def seed(self) -> int:
        """What loadgen draws its addresses from; the arrays at one depth are asked the same."""
        return self.depth

    @property
    def offsets(self) -> list[int]:
        """Where its requests begin, in order."""
        return loadgen_offsets(self.seed, self.depth, self.requests, self.block_bytes, self.align_bytes)

    @property
    def reads(self) -> list[bool]:
        """Which of its requests are reads, spread evenly as `loadgen.c` does it."""
        share = self.read_percent
        return [(i + 1) * share // 100 != i * share // 100 for i in range(self.requests)]

    @property
    def layout(self) -> str:
        """The layout in mdadm's words, where it is not the one that mdadm takes."""
        if self.copies:
            return self.copies[0] + self.copies[-1]
        words = self.recording.partition("-")[2]
        return words if words in MDADM_LAYOUTS else ""

    @property
    def tree(self) -> str:
        """The array in raidlab's words."""
        if self.recording:
            return twin_of(self.recording)[0]
        chunk = "" if self.chunk_kib is None else f", chunk={self.chunk_kib}KiB"
        layout = f", layout={self.copies}" if self.copies else ""
        if self.level == "raid4":
            return f"parity({self.members}{chunk}, parities=1, rotation=parity_last)"
        return f"{self.level}({self.members}{chunk}{layout})"

    @property
    def tolerance(self) -> Tolerance:
        """How far the simulator may be from md, as shares of md's figures; docs/internals/md-witness.md says why."""
        if self.name in (*APART, *DEGRADED_APART):
            return Tolerance(math.inf, math.inf, 0.02)
        if self.name == SPLIT:
            return Tolerance(0.05, math.inf, 0.02)
        is_sequence, is_write = self.align_bytes == 0, self.operation == "write"
        goes_by_rows = self.level in ("raid4", "raid5", "raid6") and (is_write or bool(self.missing))
        if self.missing and goes_by_rows and self.block_bytes == 64 * KIB:
            # Md itself gives 57 to 123 % from one boot to the next: what its thread finds together is merged.
            return Tolerance(math.inf, math.inf, 0.02)
        if goes_by_rows and self.block_bytes > PAGE_BYTES and not is_sequence:
            # Which rows md's thread finds together decides what is merged, and so how many accesses there are.
            return Tolerance(0.05, 0.2, 0.02)
        if is_sequence:
            return Tolerance(0.05, 0.13, 0.02)
        if self.block_bytes > PAGE_BYTES:
            return Tolerance(0.05, 0.03, 0.02)
        return Tolerance(0.01, 0.03, 0.02)


@dataclass(frozen=True)
class Figures:
    """What one case came to, on md or on the simulator; accesses of members are a request's."""

    iops: float
    read_p90_us: float
    write_p90_us: float
    read_mean_us: float
    write_mean_us: float
    reads: float
    writes: float
    bytes: float


@dataclass(frozen=True)
class Verdict:
    """How far the simulator is from md."""

    iops_error: float
    p90_errors_us: tuple[float, float]
    """Of reads and of writes."""
    reads_error: float
    writes_error: float
    outside: tuple[str, ...]


def cases() -> list[Case]:
    """Every case, in the order in which they are run."""
    return [*aligned_cases(), *other_cases(), *copies_cases(), *twin_cases(), *degraded_cases()]


def degraded_cases() -> list[Case]:
    """Arrays without a member, RAID 6 also without two: pages, chunks and sequences, read, written and both."""
    loads = (
        *((operation, depth, BLOCK_BYTES, None) for operation in OPERATIONS for depth in (8, 32)),
        (MIXED, 32, BLOCK_BYTES, None),
        ("read", 8, 64 * KIB, None),
        ("read", 8, 256 * KIB, PAGE_BYTES),
        ("read", 8, 64 * KIB, 0),
        ("write", 8, 64 * KIB, None),
    )
    return [
        Case(level, members, chunk, SERVICES_NS[0], *load, missing=missing)
        for (level, members, chunk, missing), load in itertools.product(DEGRADED, loads)
    ]


def copies_cases() -> list[Case]:
    """RAID 10 other than pairs: pages at random, several chunks, sequences."""
    loads = (
        *(("read", depth, BLOCK_BYTES, None) for depth in (1, 8, 32)),
        *(("write", depth, BLOCK_BYTES, None) for depth in (8, 32)),
        (MIXED, 32, BLOCK_BYTES, None),
        ("read", 8, 256 * KIB, PAGE_BYTES),
        ("write", 8, 256 * KIB, PAGE_BYTES),
        ("read", 8, 64 * KIB, 0),
    )
    return [
        Case("raid10", members, 64, SERVICES_NS[0], *load, copies=layout)
        for (layout, members), load in itertools.product(COPIES, loads)
    ]


def twin_cases() -> list[Case]:
    """Arrays predicted from what the kernel says of them: pages read, written and both, and reads of 256 KiB."""
    service = SERVICES_NS[0]
    loads = (("read", 8, BLOCK_BYTES, None), ("write", 8, BLOCK_BYTES, None), (MIXED, 32, BLOCK_BYTES, None))
    loads = (*loads, ("read", 1, 256 * KIB, PAGE_BYTES))
    return [
        Case(*recorded(recording), service, *load, recording=recording)
        for recording, load in itertools.product(RECORDINGS, loads)
    ]


def aligned_cases() -> list[Case]:
    """Reads or writes of a page at random: what an array does with one access of each kind."""
    arrays: list[tuple[str, int, int | None]] = []
    for level in LEVELS:
        if level == "raid1":
            arrays += [(level, members, None) for members in (2, *MEMBERS)]
        else:
            arrays += [(level, members, chunk) for members in MEMBERS for chunk in CHUNKS_KIB]
    order = itertools.product(SERVICES_NS, arrays, OPERATIONS, DEPTHS)
    return [Case(*array, service_ns, operation, depth) for service_ns, array, operation, depth in order]


def other_cases() -> list[Case]:
    """Parts of stripes and of pages, several chunks, sequences, reads and writes mixed."""
    parity = [("raid5", 5, 64), ("raid6", 6, 64)]
    small_parity = [("raid5", 3, 16), ("raid6", 4, 16)]
    mirrors = [("raid1", 2, None), ("raid10", 4, 64)]
    all_levels = [("raid0", 4, 64), *mirrors, *parity]
    service, few, wide = SERVICES_NS[0], (1, 8), (8, 32)
    product = itertools.product
    # One of the eight buffers of 1 MiB at depth 8 lies scattered in the lab's memory, so that its requests are split.
    scattered = ("raid1", "write", 1024, 8)
    return [
        *(
            Case(*array, service, "write", depth, size * KIB, align)
            for array, size, align, depth in product(parity, (16, 64, 256, 1024), (None, PAGE_BYTES), few)
        ),
        *(
            Case(*array, service, "write", depth, size)
            for array, size, depth in product(small_parity, (512, 2048), few)
        ),
        *(
            Case(*array, service, operation, depth, size * KIB, PAGE_BYTES)
            for array, operation, size, depth in product(mirrors, OPERATIONS, (256, 1024), few)
            if (array[0], operation, size, depth) != scattered
        ),
        *(
            Case(*array, service, operation, 8, size * KIB, 0)
            for array, operation, size in product(all_levels, OPERATIONS, (4, 64, 1024))
        ),
        *(Case(*array, service, MIXED, depth) for array, depth in product(all_levels, wide)),
    ]


@functools.cache
def loadgen_offsets(
    seed: int,
    depth: int,
    requests: int = REQUESTS,
    block_bytes: int = BLOCK_BYTES,
    align_bytes: int | None = None,
    span_mib: int = SPAN_MIB,
) -> list[int]:
    """The addresses of `loadgen.c`, in its order: xorshift64, which also fills each buffer before its first use."""
    align = block_bytes if align_bytes is None else align_bytes
    if align == 0:
        return [i % ((span_mib << 20) // block_bytes) * block_bytes for i in range(requests)]
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
    places = ((span_mib << 20) - block_bytes) // align + 1
    offsets = []
    for request in range(requests):
        if request < depth:
            next(itertools.islice(stream, block_bytes // 8 - 1, None))
        offsets.append(next(stream) % places * align)
    return offsets


def cell(case: Case, tree: Mapping[str, Any], *, scheduler: str = SCHEDULER, **policy: object) -> dict[str, Any]:
    """The same case as a cell of the simulator; another scheduler or policy shows what that is good for."""
    service_us = case.service_ns / 1000
    member = {"kind": "fixed", "capacity_bytes": MEMBER_MIB << 20, "read_us": service_us, "write_us": service_us}
    return {
        "engine": "sim",
        "seed": 1,
        "tree": tree,
        "policy": (twin_of(case.recording)[1] if case.recording else md_policy()) | policy,
        "members": [member | {"scheduler": scheduler}],
        "host": {"look": LOOK_NS},
        "load": {"kind": "closed", "depth": case.depth},
        "workload": {
            "read": 1.0 if case.operation == "read" else 0.0,
            "size": {"kind": "fixed", "bytes": case.block_bytes},
            "address": {"kind": "listed", "offset_bytes": case.offsets},
        },
        "warmup": {},
        "measure": {"requests": case.requests},
        "missing": list(case.missing),
    }


def simulate(case: Case, **changes: Any) -> Figures:
    """What the simulator says, with ``changes`` to how md is modelled."""
    from raidlab import _core

    request = cell(case, json.loads(_core.parse_tree(case.tree)), **changes)
    with tempfile.TemporaryDirectory(prefix="md-witness.") as folder:
        if case.operation == MIXED:
            # Which requests are reads is no matter of chance, as it would be for a workload: they are replayed.
            trace = Path(folder) / "requests.spc"
            places = zip(case.offsets, case.reads, strict=True)
            lines = [f"0,{offset // 512},{case.block_bytes},{'R' if read else 'W'},0.0" for offset, read in places]
            trace.write_text("\n".join(lines) + "\n")
            del request["workload"]
            request["trace"] = {"file": str(trace), "format": "spc"}
        answer = _core.run_cell(json.dumps(request), None)
    requests = int(answer["requests"])
    read, write = (times_us(answer[kind]["response"]) for kind in OPERATIONS)
    return Figures(
        iops=requests * 1e9 / answer["elapsed_ns"],
        read_p90_us=read[1],
        write_p90_us=write[1],
        read_mean_us=read[0],
        write_mean_us=write[0],
        reads=sum(member["reads"] for member in answer["members"]) / requests,
        writes=sum(member["writes"] for member in answer["members"]) / requests,
        bytes=sum(member["read_bytes"] + member["write_bytes"] for member in answer["members"]) / requests,
    )


def times_us(histogram: Mapping[str, Iterable[Any]]) -> tuple[float, float]:
    """Mean and 90th percentile (the value at nine tenths of a sorted list, as loadgen takes it); 0 of nothing."""
    rows = [(int(value), int(count)) for value, count in zip(histogram["value_ns"], histogram["count"], strict=True)]
    total = sum(count for _, count in rows)
    if total == 0:
        return 0.0, 0.0
    mean, place = sum(value * count for value, count in rows) / total, int(0.9 * total)
    for value, count in rows:
        place -= count
        if place < 0:
            return mean / 1000, value / 1000
    raise ValueError("no value at nine tenths")


def judge(case: Case, md: Figures, simulated: Figures) -> Verdict:
    """Hold the simulator to md."""
    iops_error = simulated.iops / md.iops - 1
    p90_errors = (simulated.read_p90_us - md.read_p90_us, simulated.write_p90_us - md.write_p90_us)
    reads_error, writes_error = simulated.reads - md.reads, simulated.writes - md.writes
    bytes_error = simulated.bytes / md.bytes - 1
    # Times are whole services: one more or less, and what the lab's clock adds.
    tolerance = case.tolerance
    share = math.inf if math.isinf(tolerance.iops) else 0.3 if tolerance.accesses >= 0.2 else 0.1
    service_us = 1.05 * case.service_ns / 1000
    bounds = {
        "iops": (abs(iops_error), tolerance.iops),
        "read p90": (abs(p90_errors[0]), max(service_us, share * max(md.read_p90_us, 1))),
        "write p90": (abs(p90_errors[1]), max(service_us, share * max(md.write_p90_us, 1))),
        "reads": (abs(reads_error), tolerance.accesses * max(md.reads, OWN_ACCESSES) + OWN_ACCESSES),
        "writes": (abs(writes_error), tolerance.accesses * max(md.writes, OWN_ACCESSES) + OWN_ACCESSES),
        "bytes": (abs(bytes_error), tolerance.bytes),
    }
    outside = tuple(name for name, (error, bound) in bounds.items() if error > bound)
    return Verdict(iops_error, p90_errors, reads_error, writes_error, outside)
