"""Rules of thumb that are handed on: how large a chunk should be, and what a calculator says an array does.

They state no figure that a single simulation could confirm; they are here to be set beside one.
"""

from __future__ import annotations

import math

from raidlab.analysis.model import cells
from raidlab.analysis.model.access_count import accesses
from raidlab.analysis.model.form import Argument, Case, Form
from raidlab.study.tree import Tree

_POSITIONING = Argument("positioning_ms", "mean seek and rotation of a disk")
_TRANSFER = Argument("transfer_mb_s", "transfer rate of a disk")
SECTOR_BYTES = 512


def _product_bytes(positioning_ms: float, transfer_mb_s: float) -> float:
    if positioning_ms <= 0 or transfer_mb_s <= 0:
        raise ValueError("a positioning time and a transfer rate above 0 are needed")
    return positioning_ms / 1e3 * transfer_mb_s * 1e6


def chunk_raid0_bytes(positioning_ms: float, transfer_mb_s: float, concurrency: float, slope: float = 0.25) -> float:
    """The chunk that loses least of RAID 0's throughput over all request sizes, for a known concurrency."""
    if concurrency < 1:
        raise ValueError(f"concurrency = {concurrency:g}: at least 1 is needed")
    return slope * _product_bytes(positioning_ms, transfer_mb_s) * (concurrency - 1) + SECTOR_BYTES


def chunk_raid0_unknown_bytes(positioning_ms: float, transfer_mb_s: float) -> float:
    """The chunk of RAID 0 where nothing is known of the concurrency."""
    return 2 / 3 * _product_bytes(positioning_ms, transfer_mb_s)


def chunk_raid5_bytes(positioning_ms: float, transfer_mb_s: float) -> float:
    """The chunk of a 17-disk RAID 5 where nothing is known of the load."""
    return 0.5 * _product_bytes(positioning_ms, transfer_mb_s)


def chunk_lee_katz_bytes(
    positioning_ms: float, transfer_mb_s: float, outstanding: float, request_bytes: float, disks: float
) -> float:
    """The chunk of an array without redundancy for a known load."""
    if outstanding < 1 or request_bytes <= 0 or disks < 1:
        raise ValueError("at least one request outstanding, of a size above 0, and one disk are needed")
    return math.sqrt(_product_bytes(positioning_ms, transfer_mb_s) * (outstanding - 1) * request_bytes / disks)


def calculator_iops(disks: float, disk_iops: float, read_share: float, write_penalty: float) -> float:
    """What the common calculators say: the disks' accesses over those that a request needs."""
    if not (0 <= read_share <= 1 and write_penalty >= 1):
        raise ValueError("a read share from 0 to 1 and a write penalty of at least 1 are needed")
    return disks * disk_iops / (read_share + (1 - read_share) * write_penalty)


def _calculator_cases() -> list[Case]:
    found = []
    parity: Tree = {
        "kind": "parity",
        "rotation": "left_symmetric",
        "chunk_bytes": 65536,
        "children": [{"kind": "member"}] * 8,
    }
    mirror: Tree = {"kind": "mirror", "children": [{"kind": "member"}] * 2}
    trees: dict[str, Tree] = {
        "RAID 0": cells.stripe(8),
        "RAID 10": {"kind": "stripe", "chunk_bytes": 65536, "children": [mirror] * 4},
        "RAID 5": {**parity, "parities": 1},
        "RAID 6": {**parity, "parities": 2},
    }
    for name, tree in trees.items():
        penalty = accesses(tree, 4096, write=True)
        for reads in (1.0, 0.7, 0.0):
            cell = cells.cell(cells.fixed(1000.0), tree, cells.closed(256), read_fraction=reads, requests=100_000)
            parameters = {"disks": 8.0, "disk_iops": 1000.0, "read_share": reads, "write_penalty": penalty}
            found.append(Case(f"{name} of 8, {reads:.0%} reads", parameters, cell, cells.requests_per_s))
    return found


FORMS = (
    Form(
        "chunk_raid0",
        "chunk of RAID 0 for a known concurrency",
        "bytes",
        "Chen and Patterson 1990, Maximizing Performance in a Striped Disk Array",
        "RAID 0, requests of any size; the slope (about 1/4) was found for 16 disks.",
        (
            _POSITIONING,
            _TRANSFER,
            Argument("concurrency", "requests outstanding"),
            Argument("slope", "the paper's S", 0.25),
        ),
        chunk_raid0_bytes,
    ),
    Form(
        "chunk_raid0_unknown",
        "chunk of RAID 0 for an unknown load",
        "bytes",
        "Chen and Patterson 1990",
        "RAID 0 where nothing is known of the concurrency.",
        (_POSITIONING, _TRANSFER),
        chunk_raid0_unknown_bytes,
    ),
    Form(
        "chunk_raid5",
        "chunk of RAID 5 for an unknown load",
        "bytes",
        "Chen and Lee 1995, Striping in a RAID Level 5 Disk Array",
        "RAID 5 of 16 + 1 disks where nothing is known of the load; writes want less.",
        (_POSITIONING, _TRANSFER),
        chunk_raid5_bytes,
    ),
    Form(
        "chunk_lee_katz",
        "chunk of an array without redundancy for a known load",
        "bytes",
        "Lee and Katz 1993",
        "No redundancy, a fixed number of requests of one size outstanding.",
        (
            _POSITIONING,
            _TRANSFER,
            Argument("outstanding", "requests in flight"),
            Argument("request_bytes", "size of a request"),
            Argument("disks", "disks of the array"),
        ),
        chunk_lee_katz_bytes,
    ),
    Form(
        "calculator",
        "requests a second by the calculator rule",
        "1/s",
        "common practice: N x IOPS / (reads + writes x penalty)",
        "Small requests, all disks always busy, every access costs the same wherever it goes.",
        (
            Argument("disks", "how many"),
            Argument("disk_iops", "accesses a second of one disk"),
            Argument("read_share", "from 0 to 1"),
            Argument("write_penalty", "accesses that a write needs: RAID 0 1, RAID 10 2, RAID 5 4, RAID 6 6"),
        ),
        calculator_iops,
        _calculator_cases,
    ),
)
