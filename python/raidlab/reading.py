"""Files that somebody else may have written: read whole, with bounds on their length and on how deeply they nest.

Invariants:

- Only a regular file is read: opening a named pipe waits for ever for a writer, and a device may never end. What was
  opened is what is looked at (``fstat``), so a name that changes meanwhile makes no difference.
- What cannot be read is an ``OSError`` whose ``strerror`` ends the sentence "... cannot be read:".
- What is not TOML or JSON, or nests too deeply, is a ``ValueError`` with a sentence, never a ``RecursionError``.
- An integer of a TOML text has at most 128 bits, so that whoever prints or converts it can, and says what is accepted
  instead. Python takes hexadecimal ones of any length, and fails when they are printed.
- A TOML text holds no dates but in quotes: nothing here is one, and JSON, in which all is kept, has none.
"""

from __future__ import annotations

import datetime
import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

# What a TOML text is made of.
Plain: TypeAlias = "str | bool | int | float | Sequence[Plain] | Mapping[str, Plain]"

# The largest file of a study in the tree has 60 KiB; one of generated workloads has a few MiB.
MOST_BYTES = 16 << 20
# A study needs eight.
MOST_DEPTH = 64
_TOO_DEEP = f"nested too deeply (more than {MOST_DEPTH} levels)"
# More than anything counts to, and no more than a float holds.
MOST_BITS = 128
# A key of more parts than that, where a key may stand. Each part is taken once and for all (`++`, `*+`), as texts may
# be long; `tomllib` takes the square of their number.
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MOST_DEPTH},}}", re.MULTILINE)
# What is no key: comments and texts, each to its end, or that of the line or the file where it has none.
_COMMENT_OR_TEXT = re.compile(
    r'''#[^\n]*+|"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5}|\Z)|"(?:[^"\\\n]|\\.)*+"?'''
    r"""|'''(?:[^']|'(?!''))*+(?:'{3,5}|\Z)|'[^'\n]*+'?""",
    re.DOTALL,
)
# What an editor of another system may begin a text with, to say that it is UTF-8.
MARK = "\ufeff"
# The escape of half a pair of UTF-16.
_PAIRED = r"\\u[dD][89a-fA-F]"
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def read_bytes(file: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a regular file.

    Raises `OSError` when it cannot be read, is no regular file or is longer than ``most_bytes``.
    """
    # Without O_NONBLOCK the opening of a pipe would wait; to a regular file it means nothing.
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:
        # A null character, or half of a pair of UTF-16.
        raise OSError(errno.EINVAL, "no file can be called so", str(file)) from None
    with os.fdopen(descriptor, "rb", closefd=True) as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
            raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(file))
        content = opened.read(most_bytes + 1)
    if content is None:
        # Of the kernel's log, which calls itself a regular file.
        raise OSError(errno.EAGAIN, "it has nothing to be read yet", str(file))
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is longer than {most_bytes:,} bytes", str(file))
    return content


def read_text(file: Path, encoding: str = "utf-8", most_bytes: int = MOST_BYTES) -> str:
    """The text of a regular file, every line end a line feed, without the mark of UTF-8 that it may begin with.

    Raises `OSError` as `read_bytes` does, and `UnicodeDecodeError`.
    """
    text = read_bytes(file, most_bytes).decode(encoding)
    return text.removeprefix(MARK).replace("\r\n", "\n").replace("\r", "\n")


def is_unicode(name: str | Path) -> bool:
    """Whether a name can be kept in JSON: to Unix any bytes are one."""
    try:
        os.fsencode(name).decode()
    except UnicodeDecodeError:
        return False
    return True


def toml(text: str) -> dict[str, Plain]:
    """A TOML text as plain data.

    Raises `ValueError`.
    """
    if _LONG_KEY.search(text) and _LONG_KEY.search(without_prose(text, "x")):
        raise ValueError(_TOO_DEEP)
    document: dict[str, Plain] = _parsed(tomllib.loads, text)
    for key, value in document.items():
        _check_plain(key, value)
    return document


def without_prose(text: str, word: str | None = None) -> str:
    r"""A TOML text without its comments and texts of several lines, whose line ends stay; ``word``: for other texts.

    Examples
    --------
    >>> without_prose('a = 1 # one\nb = \'\'\'\nc = 2\'\'\'')
    "a = 1 \nb = ''\n"
    """

    def bare(found: re.Match[str]) -> str:
        said = found[0]
        if said[0] == "#":
            return ""
        if said[:3] in ('"""', "'''"):
            return "''" + "\n" * said.count("\n")
        return said if word is None else f"'{word}'"

    return _COMMENT_OR_TEXT.sub(bare, text)


def _check_plain(place: str, value: Any) -> None:
    """Refuse a date, and an integer of more bits than that; what nests too deeply was refused before."""
    if isinstance(value, datetime.date | datetime.time):
        raise ValueError(f"'{place[:80]}' is a date or a time without quotes")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ValueError(f"the integer of '{place[:80]}' has more than {MOST_BITS} bits")
    if isinstance(value, dict):
        for key, item in value.items():
            _check_plain(f"{place}.{key}", item)
    elif isinstance(value, list):
        for item in value:
            _check_plain(place, item)


def json_value(text: str | bytes) -> Any:
    """A JSON text as plain data.

    Raises `ValueError`.
    """
    document = _parsed(json.loads, text)
    # Half of a pair is no character: whoever writes the text in which it stands would fail.
    if re.search(_PAIRED, text) if isinstance(text, str) else re.search(_PAIRED.encode(), text):
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("has a text that is no Unicode") from None
    return document


def _parsed(parse: Callable[[Any], Any], text: str | bytes) -> Any:
    try:
        document = parse(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        if "integer string conversion" in str(error):
            raise ValueError("an integer of thousands of digits") from None
        raise
    _check_depth(document)
    return document


def _check_depth(document: Any) -> None:
    """Refuse what nests so deeply that whoever walks through it would fail; dotted keys of TOML nest without brackets.

    Level by level: this must not fail itself.
    """
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(MOST_DEPTH):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)
