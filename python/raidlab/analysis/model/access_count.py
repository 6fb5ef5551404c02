"""The simple access-count model: what a level costs, counted in accesses to members.

Invariants:

- The only thing counted is accesses; an access costs the same wherever it goes and whatever it carries. Seeks chosen
  or saved, rotations waited for and queues are exactly what this model leaves out, and what a measurement adds.
- A level is known by its parameters, not by its name: one with parities updates them, one with a chunk cuts requests
  into chunks, and one that bears losses without parities keeps a copy more than it can lose, and writes every one.
- Work spreads evenly over the members, so throughput per member is inversely proportional to the accesses a request
  needs. A value of 100 % means that a request costs no more accesses than its data.

Reference: Chen, Gibson, Katz, Patterson, *An Evaluation of Redundant Arrays of Disks using an Amdahl 5890*, SIGMETRICS
1990, section 3.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from itertools import count

from raidlab import _core
from raidlab.study.tree import Tree, copies_in

# What a tree bears does not depend on the size of its members: large ones hold every chunk.
_MEMBER_BYTES, _SECTOR_BYTES = 2**50, 512


def accesses(tree: Tree, size_bytes: int, *, write: bool) -> float:
    """Accesses to members that one request needs; a partial stripe is written with the fewest.

    It begins on a chunk and, when it is that large, on a stripe. A node without children, or with parities and no
    chunk, is a `ValueError`: a run folder may hold what no engine wrote.

    Examples
    --------
    A small write to RAID 5 reads old data and old parity and writes both:

    >>> raid5 = {"kind": "parity", "parities": 1, "chunk_bytes": 4096, "children": [{"kind": "member"}] * 5}
    >>> accesses(raid5, 4096, write=True)
    4.0
    """
    if size_bytes <= 0:
        return 0.0
    if tree["kind"] == "member":
        return 1.0
    kind, children, chunk = tree["kind"], tree.get("children", []), tree.get("chunk_bytes", 0)
    parities, width = tree.get("parities", 0), tree.get("width", len(children))
    if not children or not parities < width <= len(children) or (parities and not chunk):
        raise ValueError(f"a level '{kind}' without children, or without a chunk, is no level")
    child = children[0]
    if parities:
        return _parity(child, width, chunk, parities, size_bytes, write=write)
    whole, rest = divmod(size_bytes, chunk) if chunk else (0, size_bytes)
    one_copy = accesses(child, rest, write=write) + (whole * accesses(child, chunk, write=write) if whole else 0)
    return one_copy * (losses_borne_by(tree) + 1 if write else 1)


def failures_borne(tree: Tree) -> int:
    """How many members may fail, whichever they are. What is no tree is a `ValueError`.

    Examples
    --------
    >>> failures_borne({"kind": "mirror", "children": [{"kind": "member"}] * 3})
    2
    """
    return _facts(tree)["tolerance"]


def losses_borne_by(tree: Tree) -> int:
    """How many children the node at the top may lose, whichever they are. What is no tree is a `ValueError`.

    Examples
    --------
    >>> losses_borne_by({"kind": "mirror", "children": [{"kind": "member"}] * 3})
    2
    """
    return _facts(tree)["losses_borne"]


def bears(tree: Tree, lost: AbstractSet[int]) -> bool:
    """Whether a tree still gives back all it holds without these members, from 0 in its order.

    Examples
    --------
    >>> pair = {"kind": "mirror", "children": [{"kind": "member"}] * 2}
    >>> pairs = {"kind": "stripe", "chunk_bytes": 65536, "children": [pair, pair]}
    >>> bears(pairs, {0, 3}), bears(pairs, {0, 1})
    (True, False)
    """
    leaves = count()

    def is_lost(node: Tree) -> bool:
        if node["kind"] == "member":
            return next(leaves) in lost
        # Every child is asked, for each takes the next members.
        gone = [is_lost(child) for child in node.get("children", [])]
        if "layout" in node:
            return any(all(gone[place] for place in holders) for holders in _holders(node["layout"], len(gone)))
        return sum(gone) > losses_borne_by(node)

    return not is_lost(tree)


def _holders(layout: str, count: int) -> list[list[int]]:
    """The children that hold the copies of one chunk, for each set of children that there is."""
    kind, copies = copies_in(layout)
    step = copies if kind == "near" else 1
    return [[(chunk * step + copy) % count for copy in range(copies)] for chunk in range(count)]


def _facts(tree: Tree) -> _core.TreeFacts:
    try:
        return _core.tree_facts(json.dumps(tree), _MEMBER_BYTES, _SECTOR_BYTES)
    except _core.CellError as error:
        raise ValueError(f"is no tree: {error}") from None


def _parity(child: Tree, width: int, chunk: int, parities: int, size_bytes: int, *, write: bool) -> float:
    data = width - parities
    read_one = accesses(child, min(size_bytes, chunk), write=False)
    full, rest_bytes = divmod(size_bytes, chunk * data)
    rest = -(-rest_bytes // chunk)
    if not write:
        return (full * data + rest) * read_one
    write_one = accesses(child, min(size_bytes, chunk), write=True)
    total = full * width * write_one
    if rest:
        # Old data and old parities, or the rest of the stripe: whichever is fewer; a tie goes to the first.
        before = min(rest + parities, data - rest)
        total += before * read_one + (rest + parities) * write_one
    return total


def throughput_per_member_percent(tree: Tree, size_bytes: int, read_share: float) -> float:
    """Throughput per member in percent of an array without redundancy under the same requests, of a (mean) size.

    Examples
    --------
    >>> raid1 = {"kind": "mirror", "children": [{"kind": "member"}] * 2}
    >>> throughput_per_member_percent(raid1, 8192, read_share=0.0)
    50.0
    """
    data = accesses(tree, size_bytes, write=False)
    needed = read_share * data + (1 - read_share) * accesses(tree, size_bytes, write=True)
    return 100 * data / needed
