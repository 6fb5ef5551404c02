"""What an arrangement is by itself: volumes, members, the share of capacity that holds user data."""

from __future__ import annotations

import json
from typing import Literal

from raidlab.published.quantities.kind import Kind, NotThereError, Reading, Source
from raidlab.study.words import Line, Table

_MEMBER_BYTES = 2**40
_SECTOR_BYTES = 512


class Keys(Table):
    """What a measure of this kind says."""

    of: Literal["volumes", "members", "efficiency"]
    """Which number; the efficiency is a share of 1."""
    tree: Line
    """The arrangement."""


def read(keys: Keys, _source: Source) -> Reading | None:
    """The number."""
    from raidlab import _core

    try:
        facts = _core.tree_facts(_core.parse_tree(keys.tree), _MEMBER_BYTES, _SECTOR_BYTES)
        text = json.loads(_core.parse_tree(keys.tree))
    except _core.CellError as error:
        raise NotThereError(f"is no arrangement: {error}") from None
    if keys.of == "efficiency":
        return Reading(float(facts["storage_efficiency"]))
    if keys.of == "members":
        return Reading(float(facts["leaves"]))
    return Reading(float(len(text["children"]) if text["kind"] == "independent" else 1))


KIND = Kind("tree", "what an arrangement is", Keys, read, is_run=False)
