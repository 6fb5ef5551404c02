"""The members of a live target: files to be made, block devices, memory.

Invariants:

- Files lie in a fresh subdirectory of raidlab's own, which is removed with them; the engine makes them, fills them with
  incompressible bytes before the first measurement, and refuses to write any file that it has not made.
- A block device is marked for overwriting only when the user has given up that very device.
- The same members serve every array; an array takes the first of them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raidlab.errors import InputError
from raidlab.run.targets import Target
from raidlab.study.units import format_bytes

_SPARE_SHARE = 0.02

Members = list[dict[str, Any]]


@contextmanager
def live_members(target: Target, count: int, member_bytes: int) -> Iterator[Members]:
    """Name ``count`` members of a live target, and take away afterwards what was made.

    Parameters
    ----------
    target : Target
        A live target.
    count : int
        How many members the widest array needs.
    member_bytes : int
        The size of files and of memory members; block devices keep their own.

    Yields
    ------
    list of dict
        Members as the engine takes them.
    """
    if target.kind == "memory":
        yield [{"kind": "memory", "size_bytes": member_bytes} for _ in range(count)]
    elif target.kind == "block":
        yield [{"kind": "block", "path": str(place.path), "destroy": place.given_up} for place in target.places]
    else:
        directories = [place.path for place in target.places if place.path is not None]
        smaller = "a smaller live.member_size (or live.quick.member_size with --quick)"
        with member_files(directories, count, member_bytes, ("--on", smaller)) as files:
            yield [{"kind": "file", "path": str(file), "size_bytes": member_bytes} for file in files]


@contextmanager
def member_files(
    directories: list[Path], count: int, member_bytes: int, words: tuple[str, str]
) -> Iterator[list[Path]]:
    """Name ``count`` files in fresh subdirectories, dealt out in turn, and remove them afterwards.

    ``words`` says where the directories were named, and what else than another one would be accepted.
    """
    check_room(directories, count, member_bytes, words)
    made: list[Path] = []
    try:
        for directory in directories:
            made.append(_made_folder(words[0], directory))
        yield [made[index % len(made)] / f"member-{index:02}.dat" for index in range(count)]
    finally:
        for directory in made:
            shutil.rmtree(directory, ignore_errors=True)


def _made_folder(option: str, directory: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="raidlab-members-", dir=directory))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError.one(
            option,
            f"no folder can be made in it: {reason}",
            value=f"'{directory}'",
            accepted="a directory you may write to",
        ) from None


def check_room(directories: list[Path], count: int, member_bytes: int, words: tuple[str, str]) -> None:
    """Refuse member files that do not fit, before a file system fills up: that would hurt others than raidlab."""
    asked: dict[int, int] = {}
    for index in range(count):
        device = directories[index % len(directories)].stat().st_dev
        asked[device] = asked.get(device, 0) + member_bytes
    for directory in directories:
        need = asked.get(directory.stat().st_dev, 0)
        usage = shutil.disk_usage(directory)
        if need > usage.free - usage.total * _SPARE_SHARE:
            raise InputError.one(
                words[0],
                f"the member files need {format_bytes(need)} and {format_bytes(usage.free)} are free",
                value=f"'{directory}'",
                accepted=f"another directory, or {words[1]}",
            )


def check_devices(target: Target, count: int) -> int:
    """Refuse too few block devices; returns the size of the smallest, in bytes."""
    if count > len(target.places):
        raise InputError.one(
            "--on",
            f"the widest array has {count} members, and {len(target.places)} block devices are given",
            accepted=f"at least {count} devices, or a study with narrower arrays",
        )
    return min(device_bytes("--on", place.path) for place in target.places if place.path is not None)


def device_bytes(option: str, path: Path) -> int:
    """The size of a block device; ``option`` is what an error names."""
    try:
        # The kernel counts sectors of 512 bytes here, whatever the device's own are.
        return int((_in_sysfs(path) / "size").read_text()) * 512
    except (OSError, ValueError):
        raise InputError.one(option, "has no size that can be read", value=f"'{path}'") from None


def is_read_only(path: Path) -> bool:
    """Whether the kernel takes a block device for read-only; False where it does not say."""
    try:
        return (_in_sysfs(path) / "ro").read_text().strip() == "1"
    except OSError:
        return False


def _in_sysfs(path: Path) -> Path:
    number = path.stat().st_rdev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
