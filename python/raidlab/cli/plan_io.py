"""``raidlab plan-io``: what an array does for one request, member by member."""

from __future__ import annotations

import json
from typing import Annotated

from raidlab.cli.layout import TREE_HELP
from raidlab.cli.options import Json, argument, number, option
from raidlab.errors import InputError

# Beyond any device's, and within the engine's 32 bits.
MOST_SECTOR_BYTES = 2**20
EXAMPLES = """\b
Examples:
  raidlab plan-io raid5:5 --write 8KiB@64KiB
  raidlab plan-io 'raid6(6, chunk=64KiB)' --read 128KiB@0 --missing 2"""


def plan_io(
    tree: Annotated[str, argument("TREE", TREE_HELP)],
    write: Annotated[str | None, option("LENGTH@OFFSET", "Plan a write.")] = None,
    read: Annotated[str | None, option("LENGTH@OFFSET", "Plan a read.")] = None,
    missing: Annotated[
        list[int] | None, number("A member that is missing, counted from 0; may be repeated.", 0, 2**16)
    ] = None,
    volume: Annotated[int, number("Of several independent volumes, which; counted from 0.", 0, 2**16)] = 0,
    sector: Annotated[str, option("SIZE", "The sector of the members.")] = "512",
    member_size: Annotated[str, option("SIZE", "The size of each member.")] = "1GiB",
    parity_write: Annotated[
        str, option("WORD", "read_modify_write, reconstruct_write or fewest_accesses.")
    ] = "fewest_accesses",
    parity_read: Annotated[str, option("WORD", "skip or read_through.")] = "skip",
    as_json: Json = False,
) -> None:
    """Print what one request does to the members.

    Its steps in an order that works: what is read, computed and written, and what waits for what.
    """
    from raidlab import _core
    from raidlab.cli.trees import parse_extent, parse_size, parse_tree, plan_lines

    if (write is None) == (read is None):
        raise InputError.one("--write, --read", "exactly one of them is needed", accepted="--write 8KiB@64KiB")
    kind, text = ("write", write) if write is not None else ("read", read)
    offset_bytes, length_bytes = parse_extent(f"--{kind}", text or "")
    parsed = parse_tree(tree)
    policy = {"mirror_read": {"kind": "primary"}, "parity_write": parity_write, "parity_read": parity_read}
    try:
        plan = _core.plan_io(
            parsed,
            parse_size("--sector", sector, most=MOST_SECTOR_BYTES),
            parse_size("--member-size", member_size),
            json.dumps(policy),
            kind,
            offset_bytes,
            length_bytes,
            missing or [],
            volume,
        )
    except _core.CellError as error:
        head, _, rest = error.key.partition(".")
        options = {"offset_bytes": f"--{kind}", "length_bytes": f"--{kind}", "tree": "TREE"}
        options |= {"missing": "--missing", "volume": "--volume", "policy": f"--{rest.replace('_', '-')}"}
        where = options.get(head, error.key)
        values = {"TREE": tree, f"--{kind}": text, "--parity-write": parity_write, "--parity-read": parity_read}
        value = f"'{values[where]}'" if where in values else None
        message, _, accepted = error.message.partition("; accepted: ")
        raise InputError.one(where, message, value=value, accepted=accepted or None) from None
    if as_json:
        print(json.dumps(plan, indent=2))
    else:
        print("\n".join(plan_lines(plan)))
