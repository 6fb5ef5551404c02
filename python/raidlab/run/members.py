"""The members of a live target: files to be made, block devices, memory.

Invariants:

- Files lie in a fresh subdirectory of raidlab's own, which is removed with them; the engine makes them, fills them with
  incompressible bytes before the first measurement, and refuses to write any file that it has not made.
- Such a subdirectory holds a file that its run keeps locked. One whose file nobody holds was left by a run that was
  killed; the next run in the same place removes what raidlab made there, and nothing else.
- A block device is marked for overwriting only when the user has given up that very device.
- The same members serve every array; an array takes the first of them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from raidlab.errors import InputError
from raidlab.run.targets import Target
from raidlab.study.units import format_bytes

_SPARE_SHARE = 0.02

# Where directories are named, and what else than another one would do.
_ROOM_WORDS = ("--on", "a smaller live.member_size (or live.quick.member_size with --quick)")

_PREFIX = "raidlab-members-"
_OWNER = "raidlab-owner"
_WHOLE_FILES = "files-*/raidlab-files/*"

Members = list[dict[str, Any]]
Note = Callable[[str], None]


def _silent(_text: str) -> None:
    """Tell nobody."""


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
        with member_files(_directories(target), count, member_bytes, _ROOM_WORDS) as files:
            yield [{"kind": "file", "path": str(file), "size_bytes": member_bytes} for file in files]


def check_places(target: Target, count: int, member_bytes: int, note: Note = _silent) -> None:
    """Refuse directories in which the member files would not fit; nothing is made, what was abandoned is removed."""
    remove_abandoned(_directories(target), note)
    check_room(_directories(target), count, member_bytes, _ROOM_WORDS)


def _directories(target: Target) -> list[Path]:
    return [place.path for place in target.places if place.path is not None]


@contextmanager
def member_files(
    directories: list[Path], count: int, member_bytes: int, words: tuple[str, str]
) -> Iterator[list[Path]]:
    """Name ``count`` files in fresh subdirectories, dealt out in turn, and remove them afterwards.

    Directories that are not there are made, and removed with the files.

    ``words`` says where the directories were named, and what else than another one would be accepted.
    """
    remove_abandoned(directories)
    check_room(directories, count, member_bytes, words)
    with ExitStack() as made:
        folders = [made.enter_context(_made_folder(words[0], directory)) for directory in directories]
        yield [folders[index % len(folders)] / f"member-{index:02}.dat" for index in range(count)]


@contextmanager
def made_folders(directories: list[Path], option: str) -> Iterator[list[Path]]:
    """A fresh folder of raidlab's own in each directory, removed with all that is in it."""
    remove_abandoned(directories)
    with ExitStack() as made:
        yield [made.enter_context(_made_folder(option, directory)) for directory in directories]


@contextmanager
def _made_folder(option: str, directory: Path) -> Iterator[Path]:
    """A folder of raidlab's own, with its owner's lock, for as long as the context lasts."""
    missing = [place for place in (directory, *directory.parents) if not place.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=directory))
    except OSError as error:
        _remove_empty(missing)
        reason = (error.strerror or str(error)).lower()
        raise InputError.one(
            option,
            f"no folder can be made in it: {reason}",
            value=f"'{directory}'",
            accepted="a directory you may write to",
        ) from None
    try:
        # Locked before it has its name: a file of this name that nobody holds is always a dead run's.
        # Unbuffered: what a disk that fills up refuses must not lie in wait until the file is closed.
        with (folder / f"{_OWNER}.new").open("wb", buffering=0) as owner:
            with suppress(OSError):
                owner.write(f"raidlab makes and removes this folder; process {os.getpid()}\n".encode())
            with suppress(OSError):
                fcntl.flock(owner.fileno(), fcntl.LOCK_EX)
            (folder / f"{_OWNER}.new").rename(folder / _OWNER)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _remove_empty(missing)


def _remove_empty(directories: list[Path]) -> None:
    """Remove directories, the innermost first, as far as nobody has put anything into them."""
    for directory in directories:
        with suppress(OSError):
            directory.rmdir()


def remove_abandoned(directories: list[Path], note: Note = _silent) -> None:
    """Remove the member folders that killed runs have left in these directories, and say so."""
    for directory in dict.fromkeys(directories):
        for folder in sorted(directory.glob(f"{_PREFIX}*")):
            with suppress(OSError), (folder / _OWNER).open("rb") as owner:
                fcntl.flock(owner.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                files = [*folder.glob("member-*.dat"), *folder.glob(_WHOLE_FILES), folder / _OWNER]
                size_bytes = sum(file.stat().st_size for file in files)
                for file in files:
                    file.unlink()
                for made in (*folder.glob("files-*/raidlab-files"), *folder.glob("files-*")):
                    made.rmdir()
                folder.rmdir()
                note(f"removed {folder}, left by a run that was killed ({format_bytes(size_bytes)})")


def check_room(directories: list[Path], count: int, member_bytes: int, words: tuple[str, str]) -> None:
    """Refuse member files that do not fit, before a file system fills up: that would hurt others than raidlab."""
    asked: dict[int, int] = {}
    grounds = [_ground(directory) for directory in directories]
    for index in range(count if grounds else 0):
        device = grounds[index % len(grounds)].stat().st_dev
        asked[device] = asked.get(device, 0) + member_bytes
    for directory, ground in zip(directories, grounds, strict=True):
        need = asked.get(ground.stat().st_dev, 0)
        usage = shutil.disk_usage(ground)
        if need > usage.free - usage.total * _SPARE_SHARE:
            raise InputError.one(
                words[0],
                f"the member files need {format_bytes(need)} and {format_bytes(usage.free)} are free",
                value=f"'{directory}'",
                accepted=f"another directory, or {words[1]}",
            )


def _ground(directory: Path) -> Path:
    """The directory, or the nearest one above it that is there already."""
    return next(place for place in (directory, *directory.absolute().parents) if place.is_dir())


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
