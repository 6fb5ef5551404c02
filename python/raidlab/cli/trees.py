"""Trees and extents as they are given on the command line."""

from __future__ import annotations

from raidlab.errors import InputError
from raidlab.study.units import BYTES_ACCEPTED, MOST_BYTES, format_bytes, parse_bytes


def parse_tree(text: str) -> str:
    """The engine's form of a tree; bad input is one clear error."""
    from raidlab import _core

    try:
        return _core.parse_tree(text)
    except _core.CellError as error:
        raise InputError.one("TREE", error.message, value=f"'{text}'") from None


def parse_size(option: str, text: str, most: int = MOST_BYTES) -> int:
    """The bytes of a size; bad input is one clear error that names the option."""
    try:
        found = parse_bytes(text)
    except ValueError as error:
        raise InputError.one(option, str(error), value=f"'{text}'", accepted=BYTES_ACCEPTED) from None
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
