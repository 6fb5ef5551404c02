"""The runs that a sheet is made of, as they are named: ``RUN``, ``NAME=RUN`` or ``NAME=RUN:ARRAY``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raidlab.errors import InputError

if TYPE_CHECKING:
    from raidlab.published.scorecard import Box


@dataclass(frozen=True)
class NamedRun:
    """A run, what its boxes are called, and which of its arrays is meant."""

    name: str
    folder: str
    array: str | None


def named_run(text: str) -> NamedRun:
    """Take the name, the folder and the array apart; a folder may have the signs in its own name.

    Examples
    --------
    >>> named_run("Seller A=runs/a:one file")
    NamedRun(name='Seller A', folder='runs/a', array='one file')
    >>> named_run("runs/a")
    NamedRun(name='', folder='runs/a', array=None)
    """
    if Path(text).is_dir() or "=" not in text:
        return NamedRun("", text, None)
    name, _, rest = text.partition("=")
    folder, colon, array = rest.rpartition(":")
    if Path(rest).is_dir() or not colon:
        return NamedRun(name, rest, None)
    return NamedRun(name, folder, array)


def boxes_named(runs: Sequence[str], loaded: Sequence[str]) -> list[Box]:
    """The boxes of all runs, each with its loaded run of the same name; a loaded run of no box is an error."""
    from raidlab.api import analyse
    from raidlab.published.scorecard import boxes_of
    from raidlab.results import load_run

    asked, under_load = [named_run(text) for text in runs], {one.name: one for one in map(named_run, loaded)}
    unknown = [name for name in under_load if name not in {one.name for one in asked}]
    if unknown:
        accepted = ", ".join(one.name or "RUN without a name" for one in asked)
        raise InputError.one("--loaded", "is of none of the runs", value=f"'{unknown[0]}'", accepted=accepted)
    opened = {
        folder: analyse(load_run(folder))
        for folder in dict.fromkeys(one.folder for one in (*asked, *under_load.values()))
    }
    boxes: list[Box] = []
    for one in asked:
        beside = under_load.get(one.name)
        busy = None if beside is None else opened[beside.folder]
        boxes += boxes_of(opened[one.folder], busy, name=one.name, array=one.array)
    return boxes
