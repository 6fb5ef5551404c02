"""A document as TOML text: device files, and the study that a measurement is.

Invariant: reading it back gives what was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from raidlab.reading import Plain

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 120


def toml_text(document: Mapping[str, Plain], comments: Iterable[str] = ()) -> str:
    """Write a document: plain keys first, then its tables, its lists of tables row by row."""
    lines = [f"# {comment}".rstrip() for comment in comments]
    tables = {key: value for key, value in document.items() if isinstance(value, Mapping) and _is_long(value)}
    lines += [f"{_key(key)} = {_value(value, len(key))}" for key, value in document.items() if key not in tables]
    for key, table in tables.items():
        lines += ["", f"[{_key(key)}]"]
        lines += [f"{_key(inner)} = {_value(value, len(inner))}" for inner, value in table.items()]
    return "\n".join(lines) + "\n"


def _is_long(table: Mapping[str, Plain]) -> bool:
    return len(_value(table, 0)) > _WIDTH // 2


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _quoted(key)


def _value(value: Plain, indent: int) -> str:
    """A value; a long list gets a line for as many items as fit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner, 0)}" for key, inner in value.items()) + " }"
    items = [_value(item, 0) for item in value]
    flat = "[" + ", ".join(items) + "]"
    if len(flat) + indent <= _WIDTH - 4 or not items:
        return flat
    rows, row = [], ""
    for item in items:
        if row and len(row) + len(item) + 8 > _WIDTH:
            rows.append(row)
            row = ""
        row += f"{item}, "
    return "\n".join(["[", *(f"    {line.rstrip()}" for line in [*rows, row]), "]"])


def _quoted(text: str) -> str:
    """A basic string: as in JSON, but that TOML wants DEL escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
