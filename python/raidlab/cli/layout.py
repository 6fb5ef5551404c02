"""``raidlab layout``: the map of the first stripes, as the textbooks draw it."""

from __future__ import annotations

import json
from typing import Annotated

from raidlab.cli.options import Json, argument, number

TREE_HELP = "A tree, such as raid5:5, 'raid6(6, chunk=64KiB)' or 'stripe(4*mirror(2), chunk=64KiB)'."


def layout(
    tree: Annotated[str, argument("TREE", TREE_HELP)],
    rows: Annotated[int, number("How many rows of chunks to draw, at most 200.", 1, 200)] = 6,
    as_json: Json = False,
) -> None:
    """Draw where an array's chunks lie.

    One column a member; data chunks by number, parity as P and Q with the number of their stripe.
    """
    from raidlab import _core
    from raidlab.cli.trees import layout_lines, parse_tree

    parsed = parse_tree(tree)
    found = _core.layout_map(parsed, rows)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(layout_lines(found)))
