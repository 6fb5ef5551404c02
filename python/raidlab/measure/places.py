"""What a TARGET on the command line is: a file, a directory, a block device, memory, null, or an array over such.

Invariants:

- Looking at a target opens and changes nothing.
- An existing file is only read, unless raidlab made it: the engine knows by the file's own mark.
- A block device is written only when ``--destroy`` names that very device.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from raidlab.errors import InputError, Problem, RefusedError
from raidlab.run.members import device_bytes, is_read_only
from raidlab.run.targets import refuse_used
from raidlab.run.volumes import PAGE_BYTES, usable_bytes
from raidlab.study.cell import Opaque
from raidlab.study.find import did_you_mean, looks_like_path
from raidlab.study.units import format_bytes

WORDS = ("null", "memory")
ACCEPTED = (
    "a file, a directory, a block device, null, memory, or an array over such: 'raid5(5)@/mnt/disk/'; "
    "with a name of yours: 'old=/dev/md0'"
)
_LEAST_ACCEPTED = "a file of at least 8 KiB"
# What `null` and `memory` claim to be. Nothing is kept for the first; the second is really filled.
NULL_BYTES = 1024**4
MEMORY_BYTES = 256 * 1024**2

_LONGEST_NAME = 60

WHOLE = (0.0, 1.0)


@dataclass(frozen=True)
class Place:
    """One thing that requests go to."""

    word: str
    """As the user wrote it."""
    kind: str
    """``file``, ``directory``, ``block``, ``memory`` or ``null``."""
    size_bytes: int
    """What it holds; of a directory, the size of the file that raidlab makes there."""
    path: Path | None = None
    given_up: bool = False
    """Whether ``--destroy`` names it."""
    span: tuple[float, float] = WHOLE
    """From which to which share of it requests go."""

    @property
    def span_bytes(self) -> tuple[int, int]:
        """Where requests begin, and over how much they are spread; in whole pages."""
        first, end = (int(share * self.size_bytes) // PAGE_BYTES * PAGE_BYTES for share in self.span)
        return first, end - first

    @property
    def used_bytes(self) -> int:
        """Over how much of it requests are spread."""
        return self.size_bytes if self.span == WHOLE else self.span_bytes[1]

    def member(self, made: Path | None = None) -> Opaque:
        """The target as the engine takes it; ``made`` is the file that stands for a directory."""
        if self.kind == "block":
            return {"kind": "block", "path": str(self.path), "destroy": self.given_up}
        if self.kind in WORDS:
            return {"kind": self.kind, "size_bytes": self.size_bytes}
        path = made or self.path
        if path is not None and path.is_symlink():
            # The engine writes no file through a link; this one the user has named himself.
            path = path.resolve()
        member = {"kind": "file", "path": str(path), "size_bytes": self.size_bytes}
        # Should it be taken away meanwhile, the engine must not make one in its place.
        return member | {"existing": True} if made is None and self.path is not None and self.path.exists() else member


@dataclass(frozen=True)
class TargetSpec:
    """A TARGET: one place, or an array (``tree``) over places."""

    word: str
    places: tuple[Place, ...]
    tree: str | None = None
    name: str = ""
    """What the user calls it (``raid10=/dev/md0``); by default its word."""

    @property
    def title(self) -> str:
        """Its name in tables: the user's, else its word."""
        return short_name(self.name or self.word)


def wanted_targets(
    words: Sequence[str],
    destroy: Sequence[str],
    *,
    writes: bool,
    file_bytes: int,
    span: tuple[float, float] = WHOLE,
) -> list[TargetSpec]:
    """Look at every TARGET.

    Parameters
    ----------
    destroy : sequence of str
        Block devices that may be overwritten.
    writes : bool
        Whether anything will be written.
    file_bytes : int
        The size of files made in directories.
    span : tuple of float
        From which to which share of each target requests go.

    Raises
    ------
    InputError
        For a word that is no target.
    RefusedError
        For a block device that would be written and is not given up.
    """
    given_up = {Path(device).resolve(): device for device in destroy}
    found = [_with_span(_target(word, given_up, file_bytes), span) for word in words]
    places = [place for target in found for place in target.places]
    _check_once(places)
    blocks = {place.path.resolve() for place in places if place.path is not None and place.kind == "block"}
    for path, word in given_up.items():
        if path not in blocks:
            said = "is none of the targets" if path.is_block_device() else "is no block device"
            raise InputError.one("--destroy", said, value=f"'{word}'", accepted="block devices that are targets too")
    for place in places:
        if place.given_up and place.path is not None:
            refuse_used(place.path, "--destroy")
        if writes and place.kind == "block" and not place.given_up:
            raise RefusedError(
                f"TARGET: '{place.word}': is a block device, and this workload writes; nothing was touched; "
                f"accepted: the same device named once more, --destroy {place.word}"
            )
        if writes and place.kind == "block" and place.path is not None and is_read_only(place.path):
            raise _error(place.word, "is read-only, and this workload writes", "a device that can be written")
    return found


def single_target(
    word: str, destroy: Sequence[str], kinds: Sequence[str], *, otherwise: str, accepted: str, file_bytes: int = 1
) -> TargetSpec:
    """The one TARGET of a command that takes no arrays over several, and only some kinds of place.

    What is given up must be such that it may be written. ``otherwise``: what is said of any other kind.
    """
    try:
        target = wanted_targets([word], destroy, writes=False, file_bytes=file_bytes)[0]
    except InputError as error:
        raise InputError([_of_these(one, kinds, accepted) for one in error.problems]) from None
    if target.tree is not None or target.places[0].kind not in kinds:
        raise _error(word, otherwise, accepted)
    if target.places[0].given_up:
        # What may not be written is refused here, not in the middle.
        wanted_targets([word], destroy, writes=True, file_bytes=file_bytes)
    return target


def _of_these(problem: Problem, kinds: Sequence[str], accepted: str) -> Problem:
    """A mistake in the words of a command that takes only some kinds of place."""
    if problem.accepted not in (ACCEPTED, _LEAST_ACCEPTED):
        return problem
    message = problem.message
    for word in set(WORDS) - set(kinds):
        message = message.removesuffix(did_you_mean(word, (word,)))
    return replace(problem, message=message, accepted=accepted)


def short_name(word: str) -> str:
    """A target's name in tables: the word, or the end of a long one."""
    return word if len(word) <= _LONGEST_NAME else "..." + word[3 - _LONGEST_NAME :]


def _target(word: str, given_up: Collection[Path], file_bytes: int) -> TargetSpec:
    name, named, place = word.partition("=")
    if named and name.strip() and not set(name) & set("@(" + os.sep) and not Path(word).exists():
        return replace(_target(place, given_up, file_bytes), name=name.strip())
    tree, at, rest = word.partition("@")
    if at and os.sep not in tree and not Path(word).exists():
        if not all(part.strip() for part in rest.split(",")):
            raise _error(word, "names an empty place after '@'")
        parts = [_place(part, given_up, file_bytes) for part in rest.split(",")]
        kinds = sorted({part.kind for part in parts})
        if len(kinds) > 1:
            raise _error(word, f"{' and '.join(kinds)} members cannot be mixed in one array")
        return TargetSpec(word, tuple(parts), tree)
    return TargetSpec(word, (_place(word, given_up, file_bytes),))


def _with_span(target: TargetSpec, span: tuple[float, float]) -> TargetSpec:
    if span == WHOLE:
        return target
    if target.tree is not None:
        raise InputError.one("--span", "is not for arrays", value=f"'{target.word}'", accepted="it with plain targets")
    return replace(target, places=tuple(replace(place, span=span) for place in target.places))


def _place(word: str, given_up: Collection[Path], file_bytes: int) -> Place:
    if word == "null":
        return Place(word, "null", NULL_BYTES)
    if word == "memory":
        return Place(word, "memory", MEMORY_BYTES)
    if not word:
        raise _error(word, "is empty")
    path = Path(word)
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        hint = "" if looks_like_path(word) else did_you_mean(word, WORDS)
        raise _error(word, f"there is no such file, directory or device{hint}") from None
    except OSError as error:
        raise _error(word, f"cannot be looked at: {error.strerror}", None) from None
    if stat.S_ISDIR(status.st_mode):
        return Place(word, "directory", file_bytes, path)
    if stat.S_ISBLK(status.st_mode):
        return Place(word, "block", _block_bytes(word, path), path, path.resolve() in given_up)
    if stat.S_ISREG(status.st_mode):
        usable = usable_bytes(status.st_size)
        if usable < PAGE_BYTES:
            size = format_bytes(status.st_size) if status.st_size else "nothing"
            raise _error(word, f"holds {size}, which is too little to measure", _LEAST_ACCEPTED)
        return Place(word, "file", usable, path)
    what = "a character device" if stat.S_ISCHR(status.st_mode) else "neither a file, a directory nor a block device"
    raise _error(word, f"is {what}{did_you_mean(path.name, WORDS)}")


def _block_bytes(word: str, path: Path) -> int:
    size = device_bytes("TARGET", path)
    if size == 0:
        raise _error(word, "has a size of 0 (no medium, or not set up)", None)
    return size


def _check_once(places: list[Place]) -> None:
    """Two volumes on one file or device would measure each other; two directories may well be one."""
    seen: dict[Path, str] = {}
    for place in places:
        if place.path is None or place.kind == "directory":
            continue
        resolved = place.path.resolve()
        if resolved in seen:
            raise _error(place.word, f"is given twice (as '{seen[resolved]}' before)", "each target once")
        seen[resolved] = place.word


def _error(word: str, message: str, accepted: str | None = ACCEPTED) -> InputError:
    return InputError.one("TARGET", message, value=f"'{word}'", accepted=accepted)
