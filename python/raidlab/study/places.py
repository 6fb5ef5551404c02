"""Find the line of a key in a TOML file, so that an error can point at it.

Invariants:

- A place is the path that `tomllib` would take through the parsed file: table names, list positions counted from 0.
- When the exact key cannot be found (it is missing, or lies inside an inline table), the nearest line that encloses
  it is given; the answer is never wrong, only sometimes coarse.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from raidlab.reading import without_prose

Place = tuple[str | int, ...]

# Nothing is tried twice (`++`): a line of thousands of dots or spaces must cost no more than its length.
_HEADER = re.compile(r"\s*+(\[\[?)([^\[\]]++)\]\]?\s*+$")
_KEY = re.compile(r"""\s*+((?:"[^"]*+"|'[^']*+'|[A-Za-z0-9_.\s-])++)=""")


def line_index(text: str) -> dict[Place, int]:
    r"""Map every table header and key of a text, be it valid TOML or not, to its line, counted from 1.

    Examples
    --------
    >>> line_index('name = "a"\n[[array]]\ntree = "raid0(2)"')[("array", 0, "tree")]
    3
    """
    lines: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    # What looks like a key within a comment or a text of several lines is prose.
    for number, line in enumerate(without_prose(text).split("\n"), start=1):
        header = _HEADER.match(line)
        if header is not None:
            table = _enter(header.group(1) == "[[", _split(header.group(2)), counts)
            lines.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key is not None:
            lines.setdefault(table + tuple(_split(key.group(1))), number)
    return lines


def line_of(lines: dict[Place, int], place: Place) -> int | None:
    """The line of a place, or of the nearest thing that encloses it."""
    for length in range(len(place), 0, -1):
        line = lines.get(place[:length])
        if line is not None:
            return line
    return None


def value_at(document: Any, place: Sequence[str | int]) -> Any:
    """What a parsed file says at a place; None when there is no such place."""
    current = document
    for step in place:
        try:
            current = current[step]
        except (KeyError, IndexError, TypeError):
            return None
    return current


def written(place: Sequence[str | int]) -> str:
    """Write a place as people read it: ``array[2].tree``."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
    return text


def value_text(value: object) -> str:
    """Write a value as TOML does, on one line.

    Examples
    --------
    >>> print(value_text("a"), value_text(True), value_text([1, 0.5]))
    'a' true [1, 0.5]
    """
    return ("false", "true")[value] if isinstance(value, bool) else repr(value)


def _split(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def _enter(is_list: bool, names: list[str], counts: dict[Place, int]) -> Place:
    """The place a header opens; a name that is a list of tables stands for its latest element."""
    place: Place = ()
    for position, name in enumerate(names):
        place = (*place, name)
        last = position == len(names) - 1
        if last and is_list:
            counts[place] = counts.get(place, -1) + 1
            place = (*place, counts[place])
        elif place in counts:
            place = (*place, counts[place])
    return place
