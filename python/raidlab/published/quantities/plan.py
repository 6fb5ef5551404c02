"""What the array plans for one request: accesses and bytes, counted and not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from raidlab.published.quantities.kind import Kind, NotThereError, Reading, Source
from raidlab.study.cell import text_of
from raidlab.study.schema import Policy
from raidlab.study.words import Bytes, Line, Table

if TYPE_CHECKING:
    from raidlab._core import PlanNode

_MEMBER_BYTES = 2**30
_SECTOR_BYTES = 512


class Keys(Table):
    """What a measure of this kind says."""

    tree: Line
    """The arrangement."""
    op: Literal["read", "write"]
    """What the request does."""
    size: Bytes
    """How large it is."""
    offset: Bytes | Literal[0] = 0
    """Where it starts."""
    count: Literal["reads", "writes", "accesses", "bytes"] = "accesses"
    """What is counted."""
    member: int | None = None
    """On one member only, counted from 0."""
    policy: Policy = Policy()
    """How the array chooses."""


def read(keys: Keys, _source: Source) -> Reading | None:
    """The count."""
    from raidlab import _core

    try:
        plan = _core.plan_io(
            _core.parse_tree(keys.tree),
            _SECTOR_BYTES,
            _MEMBER_BYTES,
            text_of(keys.policy),
            keys.op,
            keys.offset,
            keys.size,
            [],
            0,
        )
    except _core.CellError as error:
        raise NotThereError(f"cannot be planned: {error}") from None
    mine = [node for node in plan["nodes"] if _is_counted(node, keys)]
    return Reading(float(sum(node["bytes"] for node in mine) if keys.count == "bytes" else len(mine)))


def _is_counted(node: PlanNode, keys: Keys) -> bool:
    wanted = {"reads": ("read",), "writes": ("write",)}.get(keys.count, ("read", "write"))
    return node["op"] in wanted and keys.member in (None, node["member"])


KIND = Kind("plan", "accesses planned for a request", Keys, read, is_run=False)
