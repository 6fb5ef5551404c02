"""Drawings of trees: the layout map and the plan of a request, as plain text.

Invariants:

- Everything here goes to standard output, in columns that a reader can also cut with other tools.
- Data chunks are numbered from 0 through the volume; parity is P and Q with the stripe it belongs to.
"""

from __future__ import annotations

from typing import Any

from raidlab.study.units import format_bytes

_WIDTH, _MARGIN = 80, 5


def layout_lines(found: dict[str, Any]) -> list[str]:
    """The map, a line a row of chunks, a column a member; in blocks of members where 80 columns do not hold all.

    Parameters
    ----------
    found : dict
        The engine's map: ``cell_bytes``, and for each ``members`` a list of cells.

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
    row = f"chunks of {format_bytes(int(found['cell_bytes']))}" if found["cell_bytes"] > 1 else "no striping"
    head = f"{row}; a column a member, numbered from 0"
    lines = [head]
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


def _cell(cell: dict[str, Any], *, named: bool) -> str:
    if cell["kind"] == "data":
        return f"v{cell['volume']}:{cell['chunk']}" if named else str(cell["chunk"])
    if cell["kind"] in ("p", "q"):
        return f"{cell['kind'].upper()}{cell['row']}"
    return "-"


def plan_lines(plan: dict[str, Any]) -> list[str]:
    """The plan, a line a step: what is done, where, and which steps must be done before.

    Parameters
    ----------
    plan : dict
        The engine's plan: ``nodes``, ``reads``, ``writes``, ``scratch_bytes``.
    """
    lines = [f"{'step':>4}  {'does':<8}{'member':>6}  {'at':>14}  {'bytes':>10}  after"]
    nodes = in_order(plan["nodes"])
    for index, node in enumerate(nodes):
        after = ", ".join(str(step) for step in node["after"]) or "-"
        if "member" in node:
            place = f"{node['member']:>6}  {node['offset_bytes']:>14}  {node['bytes']:>10}"
        else:
            place = f"{'-':>6}  {'-':>14}  {node['write_bytes']:>10}"
        pair = (
            f"  (back to back with {node['pair_with']})"
            if node["op"] == "write" and node["pair_with"] is not None
            else ""
        )
        lines.append(f"{index:>4}  {node['op']:<8}{place}  {after}{pair}")
    spare = format_bytes(int(plan["scratch_bytes"])) if plan["scratch_bytes"] else "no"
    lines.append(f"{plan['reads']} reads, {plan['writes']} writes, {spare} scratch memory")
    return lines


def in_order(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The nodes of a plan so that each stands after those it waits for, renumbered to match."""
    placed: list[int] = []
    left = list(range(len(nodes)))
    while left:
        ready = [index for index in left if set(nodes[index]["after"]) <= set(placed)]
        assert ready, "a plan has no cycles"
        placed += ready
        left = [index for index in left if index not in ready]
    number = {index: position for position, index in enumerate(placed)}
    return [
        {
            **nodes[index],
            "after": sorted(number[before] for before in nodes[index]["after"]),
            "pair_with": None if nodes[index].get("pair_with") is None else number[nodes[index]["pair_with"]],
        }
        for index in placed
    ]
