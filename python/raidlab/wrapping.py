"""Texts in lines as wide as a terminal, for whatever prints them.

Invariant: a number is never parted from its unit, nor a word at its hyphen.
"""

from __future__ import annotations

import re
import textwrap

WIDTH = 80
_NO_BREAK = "\u00a0"
# A space between a number and what it counts.
_UNIT = re.compile(r"(?<=\d) (?=(?:[um]?s|µs|min|h|[KMGT]i?B(?:/s)?|[KMG]bit/s|IOPS|IO/s|pt|points?|percent|times)\b)")


def unparted(text: str) -> str:
    """Text whose numbers are not parted from their units."""
    return _UNIT.sub(_NO_BREAK, text.replace(" %", f"{_NO_BREAK}%"))


def wrapped(text: str, *, width: int = WIDTH, indent: int = 0, hanging: int | None = None) -> list[str]:
    """Lines of at most ``width`` columns, all ``indent`` to the right, those after the first ``hanging`` if given.

    Examples
    --------
    >>> wrapped("RAID 5 gives 74.9 % of RAID 0", width=18, indent=1, hanging=2)
    [' RAID 5 gives', '  74.9 % of RAID 0']
    """
    kept = text.replace(" %", f"{_NO_BREAK}%").replace(" points", f"{_NO_BREAK}points")
    first, rest = " " * indent, " " * (indent if hanging is None else hanging)
    lines = textwrap.wrap(
        kept, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=True
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]
