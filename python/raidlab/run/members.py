"""The members of a live target: files made and filled for the run, block devices, memory.

Invariants:

- Files are made with exclusive creation in a fresh subdirectory and removed with it; nothing that was there before is
  opened for writing.
- Files are made by the engine, which overwrites no other, and filled with incompressible, unrepeated bytes before
  anything is measured: unwritten extents are answered by the file system without touching the disk, and repeated data by
  a deduplicating one.
- The same files serve every array; an array takes the first of them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raidlab.errors import InputError
from raidlab.run.targets import Target
from raidlab.study.units import format_bytes

_SPARE_SHARE = 0.02

Members = list[dict[str, Any]]


@contextmanager
def live_members(
    target: Target, count: int, member_bytes: int, seed: int, note: Callable[[str], None]
) -> Iterator[Members]:
    """Make ``count`` members of a live target, and take away afterwards what was made.

    Parameters
    ----------
    target : Target
        A live target.
    count : int
        How many members the widest array needs.
    member_bytes : int
        The size of files and of memory members; block devices keep their own.
    seed : int
        Of the bytes the files are filled with.
    note : callable
        Told what is being done, in a sentence.

    Yields
    ------
    list of dict
        Members as the engine takes them.
    """
    kind = target.places[0].kind
    if kind == "memory":
        yield [{"kind": "memory", "size_bytes": member_bytes} for _ in range(count)]
    elif kind == "block":
        if count > len(target.places):
            raise InputError.one(
                "--on",
                f"{len(target.places)} block devices are given and the widest array has {count} members",
                accepted=f"at least {count} devices, or a study with narrower arrays",
            )
        yield [{"kind": "block", "path": str(place.path), "destroy": True} for place in target.places]
    else:
        yield from _files(target, count, member_bytes, seed, note)


def _files(target: Target, count: int, member_bytes: int, seed: int, note: Callable[[str], None]) -> Iterator[Members]:
    directories = [place.path for place in target.places if place.path is not None]
    _check_room(directories, count, member_bytes)
    made: list[Path] = []
    try:
        for directory in directories:
            made.append(Path(tempfile.mkdtemp(prefix="raidlab-members-", dir=directory)))
        note(f"making {count} member files of {format_bytes(member_bytes)}, filled with incompressible data")
        files = [made[index % len(made)] / f"member-{index:02}.dat" for index in range(count)]
        members = [{"kind": "file", "path": str(file), "size_bytes": member_bytes} for file in files]
        _make(members, seed)
        yield members
    finally:
        for directory in made:
            shutil.rmtree(directory, ignore_errors=True)


def _check_room(directories: list[Path], count: int, member_bytes: int) -> None:
    """Refuse before the disk fills up: a full file system hurts others than raidlab."""
    asked: dict[int, int] = {}
    for index in range(count):
        device = directories[index % len(directories)].stat().st_dev
        asked[device] = asked.get(device, 0) + member_bytes
    for directory in directories:
        need = asked.get(directory.stat().st_dev, 0)
        usage = shutil.disk_usage(directory)
        if need > usage.free - usage.total * _SPARE_SHARE:
            raise InputError.one(
                "--on",
                f"the member files need {format_bytes(need)} and {format_bytes(usage.free)} are free",
                value=f"'{directory}'",
                accepted="another directory, --quick, or a smaller live.member_size",
            )


def _make(members: Members, seed: int) -> None:
    """Have the engine make, fill and mark the files, by a cell that reads a sector of each as a volume of its own."""
    from raidlab.run.runner import run_request

    tree = {"kind": "independent", "children": [{"kind": "member"} for _ in members]}
    request = {
        "engine": "live",
        "seed": seed,
        "tree": tree,
        "members": members,
        "load": {"kind": "closed", "depth": 1},
        "workload": {"size": {"kind": "fixed", "bytes": 4096}, "address": {"kind": "uniform"}},
        "measure": {"requests": 1},
    }
    run_request(json.dumps(request))
