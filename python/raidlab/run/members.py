"""The members of a live target (files to be made, block devices, memory), and those of an emulated one.

Invariants:

- Files lie in a fresh subdirectory of raidlab's own, which is removed with them; the engine makes them, fills them with
  incompressible bytes before the first measurement, and refuses to write any file that it has not made.
- Such a subdirectory holds a file that its run keeps locked. One whose file nobody holds was left by a run that was
  killed; the next run of the same user in the same place removes what raidlab made there, and nothing else: no link is
  followed, no mount point entered, and only regular files with raidlab's names go (`raidlab.directory`).
- No directory is made but in one that is there.
- A block device is marked for overwriting only when the user has given up that very device.
- Emulated members have one model, that of ``[emulated]`` or of ``[sim]``, and cost what they cost in the simulator;
  only content kept in files touches a disk.
- The same members serve every array; an array takes the first of them.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from raidlab.directory import OWN_FOLDER, Directory
from raidlab.errors import InputError
from raidlab.run.targets import Target, no_directory
from raidlab.study import LoadedStudy
from raidlab.study.cell import Opaque
from raidlab.study.check import KEEPING_WORDS
from raidlab.study.device import DeviceModel
from raidlab.study.units import format_bytes

EMULATED = "emulated"
_LOG = logging.getLogger(__name__)

_SPARE_SHARE = 0.02

# Where directories are named, and what else than another one would do.
ROOM_WORDS = ("--on", "a smaller live.member_size (or live.quick.member_size with --quick)")

# Exactly the names that raidlab and its engine give; anything else in a folder is somebody else's.
_OWN_FOLDER = re.compile(rf"{OWN_FOLDER}[a-z0-9_]{{8}}")
_OWNER = "raidlab-owner"
_OWNER_WORDS = "raidlab makes and removes this folder"
_MEMBER = re.compile(r"member-(?:[0-9]{2,}|pair)\.dat")
_SET = re.compile(r"files-[0-9]+")
# The engine's own subdirectory for whole files (`crates/live/src/files/set.rs`).
FILE_SET = "raidlab-files"
_MARKER, _MARKER_LINE = "made-by-raidlab", b"raidlab file set, version 1\n"
_SET_FILE = re.compile(r"f[0-9]{8,}")

Members = list[Opaque]
Note = Callable[[str], None]


def _silent(_text: str) -> None:
    """Tell nobody."""


@contextmanager
def live_members(target: Target, count: int, member_bytes: int) -> Iterator[Members]:
    """Name ``count`` members of a live target, and take away afterwards what was made.

    ``target``: a live target. ``count``: how many members the widest array needs. ``member_bytes``: the size of files
    and of memory members; block devices keep their own. Yields members as the engine takes them.
    """
    if target.kind == "memory":
        yield [{"kind": "memory", "size_bytes": member_bytes} for _ in range(count)]
    elif target.kind == "block":
        yield [{"kind": "block", "path": str(place.path), "destroy": place.given_up} for place in target.places]
    else:
        with member_files(_directories(target), count, member_bytes, ROOM_WORDS) as files:
            yield [{"kind": "file", "path": str(file), "size_bytes": member_bytes} for file in files]


def check_emulated(loaded: LoadedStudy) -> DeviceModel:
    """Refuse what cannot be emulated.

    Returns the model of all members. Raises `InputError` with the key of the study at fault.
    """
    study = loaded.study
    model = loaded.geometry.devices.get(EMULATED)
    if model is None:
        raise InputError.one(
            "--on",
            f"the study '{study.name}' says no device to emulate",
            value=f"'{EMULATED}'",
            accepted="a study with a table [sim], or with a device in [emulated]",
        )
    for index, array in enumerate(study.array):
        if study.pair_pricing(EMULATED, array) == "prepaid":
            raise InputError.one(
                f"array[{index}].pair_pricing" if array.pair_pricing == "prepaid" else "sim.pair_pricing",
                "a disk on a real clock cannot write what it has not been given",
                value="'prepaid'",
                accepted="'queued' or 'head', or one of them as emulated.pair_pricing",
            )
    return model


@contextmanager
def emulated_members(loaded: LoadedStudy, model: DeviceModel, count: int) -> Iterator[Members]:
    """Describe ``count`` emulated members, and take away afterwards what was made for their content.

    Yields members as the engine takes them: exactly one, which stands for all, where no content lies in files.
    """
    content = loaded.study.emulated.content
    member: Opaque = {"kind": EMULATED, "device": model.parameters}
    if content in KEEPING_WORDS:
        yield [{**member, "content": content}]
        return
    words = ("emulated.content", "a smaller device")
    with member_files([_directory(content)], count, model.capacity_bytes, words) as files:
        yield [{**member, "content": {"file": str(file)}} for file in files]


def _directory(text: str) -> Path:
    directory = Path(text)
    if not directory.is_dir():
        raise no_directory("emulated.content", text, "there is no such directory", "none, memory, or another directory")
    return directory


def check_places(target: Target, count: int, member_bytes: int, note: Note = _silent) -> None:
    """Refuse directories in which the member files would not fit; nothing is made, what was abandoned is removed."""
    remove_abandoned(_directories(target), note)
    check_room(_directories(target), count, member_bytes, ROOM_WORDS)


def _directories(target: Target) -> list[Path]:
    return [place.path for place in target.places if place.path is not None]


@contextmanager
def member_files(
    directories: list[Path], count: int, member_bytes: int, words: tuple[str, str]
) -> Iterator[list[Path]]:
    """Name ``count`` files in fresh subdirectories, dealt out in turn, and remove them afterwards.

    ``words`` says where the directories were named, and what else than another one would be accepted.
    """
    remove_abandoned(directories)
    check_room(directories, count, member_bytes, words)
    with ExitStack() as made:
        folders = [made.enter_context(_made_folder(words[0], directory)) for directory in directories]
        yield [folders[index % len(folders)] / f"member-{index:02}.dat" for index in range(count)]


@contextmanager
def made_folders(directories: list[Path], option: str) -> Iterator[list[Path]]:
    """A fresh folder of raidlab's own in each directory, removed with the files that raidlab makes in it."""
    remove_abandoned(directories)
    with ExitStack() as made:
        yield [made.enter_context(_made_folder(option, directory)) for directory in directories]


@contextmanager
def _made_folder(option: str, directory: Path) -> Iterator[Path]:
    """A folder of raidlab's own, with its owner's lock, for as long as the context lasts."""
    name = f"{OWN_FOLDER}{secrets.token_hex(4)}"
    with ExitStack() as opened:
        try:
            parent = opened.enter_context(Directory.open(directory))
            parent.make_child(name, 0o700)
            folder = opened.enter_context(parent.child(name, own=True))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError.one(
                option,
                f"no folder can be made in it: {reason}",
                value=f"'{directory}'",
                accepted="a directory you may write to",
            ) from None
        try:
            # Locked before it has its name: a file of this name that nobody holds is always a dead run's.
            owner = opened.enter_context(os.fdopen(folder.create_file(f"{_OWNER}.new", 0o600), "wb", buffering=0))
            # Unbuffered: what a disk that fills up refuses must not lie in wait until the file is closed.
            with suppress(OSError):
                owner.write(f"{_OWNER_WORDS}; process {os.getpid()}\n".encode())
            with suppress(OSError):
                fcntl.flock(owner.fileno(), fcntl.LOCK_EX)
            folder.rename(f"{_OWNER}.new", _OWNER)
            _LOG.debug("folder for members made: %s", directory / name)
            yield directory / name
        finally:
            _remove_made(parent, name, folder)


def remove_abandoned(directories: list[Path], note: Note = _silent) -> None:
    """Remove the member folders that killed runs of this user have left in these directories, and say so."""
    for directory in dict.fromkeys(directories):
        with suppress(OSError), Directory.open(directory) as parent:
            for name in filter(_OWN_FOLDER.fullmatch, parent.names()):
                with suppress(OSError), parent.child(name, own=True) as folder:
                    size_bytes = _abandoned_bytes(parent, name, folder)
                    if size_bytes is not None:
                        what = f"left by a run that was killed ({format_bytes(size_bytes)})"
                        note(f"removed {directory / name}, {what}")
                        _LOG.debug("removed %s, %s", directory / name, what)


def _abandoned_bytes(parent: Directory, name: str, folder: Directory) -> int | None:
    """Remove a folder if its run is dead; how much that freed, None where something is left."""
    with os.fdopen(folder.open_file(_OWNER), "rb") as owner:
        fcntl.flock(owner.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Nothing is in it where the disk was full.
        said = owner.read(len(_OWNER_WORDS))
        return _remove_made(parent, name, folder) if said in (b"", _OWNER_WORDS.encode()) else None


def _remove_made(parent: Directory, name: str, folder: Directory) -> int | None:
    """Remove what raidlab makes in a folder of its own, and the folder; its bytes, None where something is left."""
    size_bytes = 0
    with suppress(OSError):
        for entry in folder.names():
            # What is not as raidlab made it stays, and its folder with it.
            with suppress(OSError):
                if _MEMBER.fullmatch(entry):
                    size_bytes += folder.remove(entry, own=True)
                elif _SET.fullmatch(entry):
                    size_bytes += _remove_set(folder, entry)
        # The mark goes last: a folder that must stay, for what somebody else has put there, can be told as raidlab's.
        if set(folder.names()) <= {_OWNER}:
            size_bytes += folder.remove(_OWNER, own=True) if folder.has(_OWNER) else 0
            parent.remove_child(name, folder.identity)
            return size_bytes
    return None


def _remove_set(folder: Directory, name: str) -> int:
    with folder.child(name, own=True) as around:
        size_bytes = remove_file_set(around)
        folder.remove_child(name, around.identity)
    return size_bytes


def remove_file_set(around: Directory) -> int:
    """Remove the files that the engine made in its subdirectory of a directory, and the subdirectory; returns bytes.

    Raises `OSError` where somebody else's files are, or a run uses them.
    """
    size_bytes = 0
    with around.child(FILE_SET, own=True) as files:
        if files.has(_MARKER):
            with os.fdopen(files.open_file(_MARKER), "rb") as marker:
                fcntl.flock(marker.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                # An empty one is left by a run that died as it began.
                if marker.readline() not in (b"", _MARKER_LINE):
                    raise OSError(errno.EPERM, "was not made by raidlab", str(files.path))
                size_bytes += sum(files.remove(name, own=True) for name in files.names() if _SET_FILE.fullmatch(name))
                size_bytes += files.remove(_MARKER, own=True)
        around.remove_child(FILE_SET, files.identity)
    return size_bytes


def check_room(directories: list[Path], count: int, member_bytes: int, words: tuple[str, str]) -> None:
    """Refuse member files that do not fit, before a file system fills up: that would hurt others than raidlab."""
    asked: dict[int, int] = {}
    for index in range(count if directories else 0):
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
