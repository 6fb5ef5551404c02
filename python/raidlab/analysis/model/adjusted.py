"""The adjusted access-count model: what a small request costs, counted in the time of disks instead of in accesses.

The simple model takes every access to cost the same. Two do not: a read of a mirror goes to the copy whose arm is
nearer, and the write that follows a read of the same sectors needs no seek, but waits until those sectors come round
again. With the time T of an access to a random place (mean seek, half a revolution, transfer)

- a read costs T less the seek that is saved,
- a write to k copies costs k T,
- a small write to parity costs, on the disk of the data and on that of each parity, T for the read, and for the write
  the whole revolutions that hold transfer and turnaround: until the sectors come round again, and their transfer.

Throughput per disk against an array without redundancy is T over that, where all disks are always busy.

Reference: Chen, Gibson, Katz, Patterson, *An Evaluation of Redundant Arrays of Disks using an Amdahl 5890*, SIGMETRICS
1990, section 7.2. The study counts one revolution and a transfer for the second access (144 ms of disks in all, 28 %);
where read and turnaround take a little more than a revolution, as there, that is half a millisecond less than the time
from the first sector read to the last one written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from raidlab.analysis.model import cells
from raidlab.analysis.model.form import Argument, Case, Form
from raidlab.results.answer import CellAnswer
from raidlab.study.tree import Tree

_REVOLUTION_MS, _TURNAROUND_MS = 10.0, 1.0
# Shortest, mean, longest: a straight line over the stroke, on whose third the mean lies.
_SEEK_MS = (2.0, 8.0, 20.0)
_SECTORS_PER_TRACK = 128
# Of the stroke: to the nearer of two arms that stand anywhere, against a single one (1/3).
_NEARER_OF_TWO = 5 / 24


def percent(
    seek_ms: float,
    revolution_ms: float,
    transfer_ms: float,
    read_share: float = 0.0,
    copies: float = 1.0,
    parities: float = 0.0,
    seek_saved_ms: float = 0.0,
    turnaround_ms: float = 0.0,
) -> float:
    """Throughput per disk of small requests, in percent of an array without redundancy.

    Times are of an access to a random place; ``copies`` are 1 or more, ``parities`` 0 to 2 and not together with
    copies. Reading the nearer copy saves ``seek_saved_ms``; ``turnaround_ms`` is from the end of a read to when the
    write of the same sectors could begin.
    """
    if not (seek_ms >= 0 and revolution_ms > 0 and transfer_ms > 0 and 0 <= seek_saved_ms <= seek_ms):
        raise ValueError("times above 0 are needed, and no more seek saved than there is")
    if not (0 <= read_share <= 1 and copies >= 1 and parities in (0, 1, 2) and turnaround_ms >= 0):
        raise ValueError("a read share from 0 to 1, at least one copy and 0 to 2 parities are needed")
    if parities and copies > 1:
        raise ValueError("either copies or parities are needed, not both")
    access = seek_ms + revolution_ms / 2 + transfer_ms
    read = access - seek_saved_ms
    write = copies * access
    if parities:
        rewrite = math.ceil((transfer_ms + turnaround_ms) / revolution_ms) * revolution_ms
        write = (1 + parities) * (access + rewrite)
    return 100 * access / (read_share * read + (1 - read_share) * write)


def _by_disk_time(access_ms: float, answer: CellAnswer) -> float:
    """The same of an answer: the time of an access over what its members were busy for a request."""
    return 100 * access_ms * 1e6 * answer["all"]["requests"] / cells.busy_ns(answer)


def _cases() -> Iterator[Case]:
    member: Tree = {"kind": "member"}
    for sectors in (8, 64):
        size = sectors * cells.SECTOR_BYTES
        transfer_ms = _REVOLUTION_MS * sectors / _SECTORS_PER_TRACK
        access_ms = _SEEK_MS[1] + _REVOLUTION_MS / 2 + transfer_ms
        mirror: Tree = {"kind": "mirror", "children": [member] * 2}
        parity: Tree = {"kind": "parity", "rotation": "left_symmetric", "chunk_bytes": size, "children": [member] * 8}
        saved = (_SEEK_MS[2] - _SEEK_MS[0]) * (1 / 3 - _NEARER_OF_TWO)
        trees: dict[str, tuple[Tree, dict[str, float]]] = {
            "RAID 0": (cells.stripe(8, size), {}),
            "RAID 10": (
                {"kind": "stripe", "chunk_bytes": size, "children": [mirror] * 4},
                {"copies": 2.0, "seek_saved_ms": saved},
            ),
            "RAID 5": ({**parity, "parities": 1}, {"parities": 1.0}),
            "RAID 6": ({**parity, "parities": 2}, {"parities": 2.0}),
        }
        for name, (tree, given) in trees.items():
            for reads in (1.0, 0.7, 0.0):
                cell = cells.cell(
                    cells.disk(_REVOLUTION_MS, _SEEK_MS, _TURNAROUND_MS),
                    tree,
                    cells.closed(256),
                    size_bytes=size,
                    read_fraction=reads,
                    requests=100_000,
                )
                nearest = {"mirror_read": {"kind": "nearest", "queue_override": 5}}
                parameters = {
                    "seek_ms": _SEEK_MS[1],
                    "revolution_ms": _REVOLUTION_MS,
                    "transfer_ms": transfer_ms,
                    "read_share": reads,
                    "turnaround_ms": _TURNAROUND_MS,
                    **given,
                }
                label = f"{name}, {sectors} sectors, {reads:.0%} reads"
                cell |= {"pair_pricing": "prepaid", "policy": nearest}
                yield Case(label, parameters, cell, partial(_by_disk_time, access_ms))


FORMS = (
    Form(
        "adjusted_access_count",
        "throughput per disk of small requests against no redundancy, by the time of disks",
        "%",
        "Chen, Gibson, Katz and Patterson 1990, section 7.2 (turnaround in whole revolutions: ours)",
        "Small requests at random places, all disks always busy, in order of arrival, a write right after its read.",
        (
            Argument("seek_ms", "mean seek"),
            Argument("revolution_ms", "time of a revolution"),
            Argument("transfer_ms", "transfer of a request"),
            Argument("read_share", "from 0 to 1", 0.0),
            Argument("copies", "of a mirror", 1.0),
            Argument("parities", "of a parity group", 0.0),
            Argument("seek_saved_ms", "by reading the nearer copy", 0.0),
            Argument("turnaround_ms", "from a read's end to when its write could begin", 0.0),
        ),
        percent,
        _cases,
    ),
)
