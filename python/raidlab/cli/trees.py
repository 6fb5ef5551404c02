"""Trees and extents as they are given on the command line, and drawn: the layout map and the plan of a request.

Invariants:

- Drawings are plain text, in columns that a reader can also cut with other tools.
- Data chunks are numbered from 0 through the volume; parity is P and Q with the stripe it belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raidlab.errors import InputError
from raidlab.measure.words import parse_with
from raidlab.study.units import BYTES_ACCEPTED, MOST_BYTES, format_bytes, parse_bytes

if TYPE_CHECKING:
    from raidlab._core import LayoutMap, MapCell, PlanNode, RequestPlan

_WIDTH, _MARGIN = 80, 5


def parse_tree(text: str) -> str:
    """The engine's form of a tree; bad input is one clear error."""
    from raidlab import _core

    try:
        return _core.parse_tree(text)
    except _core.CellError as error:
        raise InputError.one("TREE", error.message, value=f"'{text}'") from None


def parse_size(option: str, text: str, most: int = MOST_BYTES) -> int:
    """The bytes of a size; bad input is one clear error that names the option."""
    found = parse_with(parse_bytes, option, text, BYTES_ACCEPTED)
    if found > most:
        raise InputError.one(option, "is too large", value=f"'{text}'", accepted=f"at most {format_bytes(most)}")
    return found


def parse_extent(option: str, text: str) -> tuple[int, int]:
    """Offset and length of ``8KiB@64KiB``: so many bytes at that offset.

    Examples
    --------
    >>> parse_extent("--write", "8KiB@64KiB")
    (65536, 8192)
    """
    length, at, offset = text.partition("@")
    accepted = "LENGTH@OFFSET, such as 8KiB@64KiB or 4KiB@0"
    if not at:
        raise InputError.one(option, "has no offset", value=f"'{text}'", accepted=accepted)
    try:
        size = parse_bytes(length)
    except ValueError as error:
        raise InputError.one(option, str(error), value=f"'{text}'", accepted=f"{accepted} ({BYTES_ACCEPTED})") from None
    try:
        # An offset of nothing is the commonest one, and no size.
        return (0 if offset.strip() in ("0", "0B") else parse_bytes(offset)), size
    except ValueError as error:
        message = str(error).replace("a size must be above 0", "an offset must be at least 0")
        raise InputError.one(option, message, value=f"'{text}'", accepted=accepted) from None


def layout_lines(found: LayoutMap) -> list[str]:
    """The map, a line a row of chunks, a column a member; in blocks of members where 80 columns do not hold all.

    Examples
    --------
    >>> cells = [[{"kind": "data", "volume": 0, "chunk": 0}], [{"kind": "p", "node": 0, "row": 0}]]
    >>> print("\\n".join(layout_lines({"cell_bytes": 65536, "members": cells})))
    chunks of 64 KiB; a column a member, numbered from 0
           0   1
      0    0  P0
    """
    members = found["members"]
    volumes = {cell["volume"] for column in members for cell in column if cell["kind"] == "data"}
    columns = [[_cell(cell, named=len(volumes) > 1) for cell in column] for column in members]
    width = max([len(text) for column in columns for text in column] + [len(str(len(columns) - 1)), 2])
    # A tree that stripes nowhere is mapped in bytes: a row is then as long as one likes.
    row = f"chunks of {format_bytes(found['cell_bytes'])}" if found["cell_bytes"] > 1 else "no striping"
    lines = [f"{row}; a column a member, numbered from 0"]
    fitting = max(1, (_WIDTH - _MARGIN) // (width + 2))
    for first in range(0, len(columns), fitting):
        block = columns[first : first + fitting]
        lines += [""] if first else []
        lines.append(" " * _MARGIN + "".join(f"  {first + index:>{width}}" for index in range(len(block))))
        lines += [
            f"{row:>3}  " + "".join(f"  {text:>{width}}" for text in texts)
            for row, texts in enumerate(zip(*block, strict=True))
        ]
    return lines


def _cell(cell: MapCell, *, named: bool) -> str:
    if cell["kind"] == "data":
        return f"v{cell['volume']}:{cell['chunk']}" if named else str(cell["chunk"])
    if cell["kind"] in ("p", "q"):
        return f"{cell['kind'].upper()}{cell['row']}"
    return f"S{cell['number']}" if cell["kind"] == "spare" else "-"


def plan_lines(plan: RequestPlan) -> list[str]:
    """The plan, a line a step: what is done, where, and which steps must be done before."""
    lines = [f"{'step':>4}  {'does':<8}{'member':>6}  {'at':>14}  {'bytes':>10}  after"]
    for index, node in enumerate(in_order(plan["nodes"])):
        after = ", ".join(str(step) for step in node["after"]) or "-"
        if "member" in node:
            place = f"{node['member']:>6}  {node['offset_bytes']:>14}  {node['bytes']:>10}"
        else:
            place = f"{'-':>6}  {'-':>14}  {node['write_bytes']:>10}"
        is_pair = node["op"] == "write" and node["pair_with"] is not None
        pair = f"  (back to back with {node['pair_with']})" if is_pair else ""
        lines.append(f"{index:>4}  {node['op']:<8}{place}  {after}{pair}")
    spare = format_bytes(plan["scratch_bytes"]) if plan["scratch_bytes"] else "no"
    lines.append(f"{plan['reads']} reads, {plan['writes']} writes, {spare} scratch memory")
    return lines


def in_order(nodes: list[PlanNode]) -> list[PlanNode]:
    """The nodes of a plan so that each stands after those it waits for, renumbered to match."""
    placed: list[int] = []
    left = list(range(len(nodes)))
    while left:
        ready = [index for index in left if set(nodes[index]["after"]) <= set(placed)]
        assert ready, "a plan has no cycles"
        placed += ready
        left = [index for index in left if index not in ready]
    number = {index: position for position, index in enumerate(placed)}

    def renumbered(node: PlanNode) -> PlanNode:
        pair = node.get("pair_with")
        after = sorted(number[before] for before in node["after"])
        return {**node, "after": after, "pair_with": None if pair is None else number[pair]}

    return [renumbered(nodes[index]) for index in placed]
