"""Write the parameters that a fit found into the files they come from.

Invariants:

- Only numbers are replaced; comments, order and everything else of a file stay as they are.
- A file that would not say afterwards what was found is not written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raidlab.directory import Directory
from raidlab.errors import OutputError
from raidlab.run.fit.trial import DEVICE
from raidlab.study import LoadedStudy
from raidlab.study.find import find_device, shared_roots

_NUMBER = r"[+-]?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
DIGITS = 4


def rounded(value: float) -> float:
    """A value as it is written: what is beyond four digits no figure could tell."""
    return float(f"{value:.{DIGITS}g}")


def write_values(loaded: LoadedStudy, target: str, values: Mapping[str, float]) -> list[Path]:
    """Put values into the files of a study's hardware; returns the files.

    Raises `OutputError` when a file cannot be written, or has no place for a value.
    """
    hardware = loaded.hardware[target]
    own = {name: rounded(value) for name, value in values.items() if not name.startswith(DEVICE)}
    device = {name.removeprefix(DEVICE): rounded(value) for name, value in values.items() if name.startswith(DEVICE)}
    written = []
    if own and hardware.file is not None:
        written.append(
            _rewrite(loaded, hardware.file, {("parameter", name, "value"): value for name, value in own.items()})
        )
    section = loaded.study.original if target == "original" else loaded.study.sim
    if device and section is not None and isinstance(section.device, str):
        file = find_device(section.device, loaded.file)
        assert file is not None, "the study was loaded with it"
        written.append(_rewrite(loaded, file, {tuple(name.split(".")): value for name, value in device.items()}))
    return written


def _rewrite(loaded: LoadedStudy, file: Path, values: Mapping[tuple[str, ...], float]) -> Path:
    folder = file.parent.resolve()
    # A study of somebody else's may name any file.
    if not any(folder.is_relative_to(root.resolve()) for root in (loaded.file.parent, *shared_roots())):
        raise OutputError(f"{file}: lies outside the study's folder, so it is not written; copy it there first")
    try:
        text = file.read_text(encoding="utf-8")
        for place, value in values.items():
            text = replaced(text, place, value)
            if _at(tomllib.loads(text), place) != value:
                raise OutputError(f"{file}: has no place of its own for {'.'.join(place)} = {value:g}")
        with Directory.open(folder) as opened:
            opened.replace(file.name, text.encode())
    except OSError as error:
        raise OutputError(f"{file}: cannot be written: {error.strerror}") from None
    return file


def replaced(text: str, place: tuple[str, ...], value: float) -> str:
    r"""The text with another number at a place: a key of a table, or of an inline table.

    Examples
    --------
    >>> replaced("[parameter.issue] # turn\nvalue = 1400\n", ("parameter", "issue", "value"), 1350.0)
    '[parameter.issue] # turn\nvalue = 1350\n'
    >>> replaced('seek = { kind = "lee", min_ms = 3.0 }', ("seek", "min_ms"), 3.5)
    'seek = { kind = "lee", min_ms = 3.5 }'
    """
    *tables, key = place
    header = re.compile(rf"^\[{re.escape('.'.join(tables))}\].*$", re.MULTILINE)
    inline = re.compile(rf"^{re.escape('.'.join(tables))}\s*=\s*\{{", re.MULTILINE)
    found = header.search(text) or inline.search(text) if tables else None
    begin = found.end() if found else 0
    number = re.compile(rf"(\b{re.escape(key)}\s*=\s*){_NUMBER}")
    return text[:begin] + number.sub(lambda match: f"{match[1]}{value:g}", text[begin:], count=1)


def _at(document: Any, place: tuple[str, ...]) -> Any:
    for step in place:
        document = document.get(step) if isinstance(document, dict) else None
    return document
