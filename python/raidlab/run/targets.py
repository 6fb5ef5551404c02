"""What ``--on`` means: the simulator, the hardware a study describes, emulated disks, memory, directories, devices.

Invariants:

- Resolving a target makes and writes nothing; a directory that is missing is refused, for a path with a mistake in it
  would be filled without a question.
- A device is named once, whatever its names are.
- A block device may be written only when ``--destroy`` names that very device; whether it is mounted or held is the
  engine's to find, with the device open and claimed.
- Existing files are never members: raidlab writes only files it has made itself. As a volume one is read, and written
  if it is raidlab's own, which the engine finds by its mark.
- What cannot be laid over the groups that are given is said before anything runs.
- All paths given make one array's members, dealt out in turn; they are one target, ``live``. Groups
  (`NAME/NAME=PLACE,...`) name members one by one.
- An array that stands already (`ARRAY=PLACE,ARRAY=PLACE`, or ``volume`` in the study) is nobody else's: no other array
  lies on what it is made of (`volumes`).
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raidlab.errors import InputError, Problem, RefusedError
from raidlab.reading import is_unicode
from raidlab.study import LoadedStudy
from raidlab.study.check import TARGET_WORDS, count_leaves
from raidlab.study.find import did_you_mean, looks_like_path
from raidlab.study.grouped import Group, arranged, with_volumes
from raidlab.study.schema import Study
from raidlab.study.words import OFF_LIVE

ACCEPTED = (
    "sim, original, emulated, memory, a directory, a block device named in --destroy, "
    "a group of these, NAME=PLACE,PLACE,..., or arrays that stand already, ARRAY=PLACE,ARRAY=PLACE"
)
DEVICE_ACCEPTED = "block devices that are also given to --on"
VOLUME_ACCEPTED = "the block device of an array, a directory of its file system, or a file there"


@dataclass(frozen=True)
class LivePlace:
    """Somewhere live members can be: ``directory``, ``block``, ``memory``; ``given_up`` if it may be overwritten.

    A volume may also be a ``file``. ``named_at``: the option or the key of the study that names it.
    """

    kind: str
    path: Path | None = None
    given_up: bool = False
    named_at: str = "--on"


@dataclass(frozen=True)
class Target:
    """One thing a study runs on: ``sim``, ``original``, ``emulated``, or ``live`` with its places.

    ``groups`` say which place is a member of what; without them places are dealt out. ``volumes`` are the places of
    arrays that stand already, by the array's name.
    """

    name: str
    places: tuple[LivePlace, ...] = ()
    groups: tuple[Group, ...] = ()
    volumes: Mapping[str, LivePlace] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Whether its members are real."""
        return self.name == "live"

    @property
    def kind(self) -> str:
        """What its live members are: ``directory``, ``block``, ``memory``; ``volumes`` where there is nothing else."""
        return self.places[0].kind if self.places else "volumes"

    def refuse_used(self) -> None:
        """Refuse devices that are given up and in use, whatever else may be wrong with what is asked."""
        for place in (*self.places, *self.volumes.values()):
            if place.given_up and place.path is not None:
                refuse_used(place.path, "--on")

    def refuse_writes(self) -> None:
        """Refuse block devices that are not given up; for a study that writes."""
        for place in self.places:
            refuse_write(place, "--on")


def refuse_used(path: Path, where: str) -> None:
    """Refuse a device that is mounted or held by a driver; ``where`` it is named."""
    from raidlab import _core

    user = _core.device_user(str(path))
    if user is not None:
        raise RefusedError(f"{where}: {path} is {user}: it is never written, whatever is said")


def refuse_write(place: LivePlace, where: str) -> None:
    """Refuse a block device that is written and not given up; ``where`` it is named."""
    if place.kind == "block" and not place.given_up:
        raise RefusedError(
            f"{where}: '{place.path}': is a block device, and the study writes; nothing was touched; "
            f"accepted: the same device named once more, --destroy {place.path}"
        )


def resolve_targets(words: Sequence[str], destroy: Sequence[str] = (), study: Study | None = None) -> list[Target]:
    """Turn the words of ``--on`` (or of the study's ``on``) into targets.

    ``destroy``: block devices the user gives up, by path. ``study``: whose arrays may stand already. Returns modelled
    targets first, in the order given, then at most one live target. Raises `InputError` for a word that is no target.
    Raises `RefusedError` for existing files.
    """
    for option, said in (("--on", words), ("--destroy", destroy)):
        refuse_empty(option, said)
    given_up = {_given_up(device) for device in destroy}
    targets: list[Target] = []
    places: list[LivePlace] = []
    groups: list[Group] = []
    standing_at: dict[str, str] = {}
    arrays = [] if study is None else [array.name for array in study.array]
    for word in dict.fromkeys(words):
        grouped = _split_group(word)
        if grouped is not None and (told := _split_volumes(word, arrays)):
            _stand(standing_at, told)
        elif grouped is not None:
            names, members = grouped
            if study is not None and not study.live.groups and (hint := did_you_mean("/".join(names), arrays)):
                known = ", ".join(arrays)
                raise InputError.one("--on", f"is no array of the study{hint}", value=f"'{word}'", accepted=known)
            groups.append(Group(names, tuple(range(len(places), len(places) + len(members)))))
            places += [LivePlace("memory") if one == "memory" else _place(one, given_up) for one in members]
        elif word in OFF_LIVE:
            targets.append(Target(word))
        elif word == "memory":
            places.append(LivePlace("memory"))
        else:
            places.append(_place(word, given_up))
    _refuse_twins(places)
    if groups and (targets or sum(len(group.members) for group in groups) < len(places)):
        message = "groups of members make arrays of their own, and stand alone"
        raise InputError.one("--on", message, accepted="groups only; a run of its own for each other target")
    kinds = sorted({place.kind for place in places})
    if len(kinds) > 1:
        raise InputError.one(
            "--on", f"{' and '.join(kinds)} members cannot be mixed in one array", accepted="one kind of live target"
        )
    volumes = _volumes(study, standing_at, targets, is_live=bool(places), given_up=given_up)
    used = [*places, *volumes.values()]
    unused = given_up - {place.path.resolve() for place in used if place.path is not None}
    if unused:
        raise InputError.one(
            "--destroy",
            "names a device that --on does not",
            value=f"'{sorted(unused)[0]}'",
            accepted=DEVICE_ACCEPTED,
        )
    live = Target("live", tuple(places), tuple(groups), volumes)
    return [*targets, *([live] if places or volumes else [])]


def _split_volumes(word: str, arrays: Sequence[str]) -> list[tuple[str, str]]:
    """Arrays that stand already, by name, and their places; none where the word is a group.

    A comma parts them only where the name of an array follows: names and places may have commas of their own.
    """
    names = "|".join(re.escape(name) for name in arrays)
    found = list(re.finditer(f"(?:^|,)({names})=", word)) if names else []
    if not found or found[0].start() != 0:
        return []
    ends = [*(match.start() for match in found[1:]), len(word)]
    return [(match[1], word[match.end() : end]) for match, end in zip(found, ends, strict=True)]


def _stand(standing_at: dict[str, str], told: Iterable[tuple[str, str]]) -> None:
    """Add arrays and their places; refuse a second place for one."""
    for name, place in told:
        first = standing_at.setdefault(name, place)
        if first != place:
            message = f"gives the array '{name}' a second place"
            raise InputError.one(
                "--on", message, value=f"'{place}'", accepted=f"one place for each array, as '{first}'"
            )


def _volumes(
    study: Study | None, named: Mapping[str, str], targets: Sequence[Target], *, is_live: bool, given_up: set[Path]
) -> dict[str, LivePlace]:
    """Where arrays stand already: as ``--on`` says, else as the study does if it runs on real members at all."""
    found: dict[str, LivePlace] = {}
    for index, array in enumerate(study.array if study is not None else []):
        if array.name in named:
            if targets and array.volume is None:
                message = f"'{targets[0].name}' models the array '{array.name}' by its tree"
                accepted = "a run of its own for each, which `raidlab results compare` sets side by side"
                raise InputError.one("--on", message, value=f"'{array.name}={named[array.name]}'", accepted=accepted)
            where = f"array[{index}].volume" if named[array.name] == array.volume else "--on"
            found[array.name] = _place(named[array.name], given_up, where, is_volume=True)
        elif array.volume is not None and (is_live or named):
            found[array.name] = _place(array.volume, given_up, f"array[{index}].volume", is_volume=True)
    return found


def no_directory(option: str, word: str, message: str, accepted: str) -> InputError:
    """What is said of a directory that is not there: it is for the user to make, who knows where he meant."""
    # A device that is not there is none to be made.
    first = "" if Path(word).is_relative_to("/dev") else f"mkdir -p {shlex.quote(word)} first, or "
    return InputError.one(option, message, value=f"'{word}'", accepted=first + accepted)


def _split_group(word: str) -> tuple[tuple[str, ...], list[str]] | None:
    """The names and the places of a group; None for a word that is none (a path may have `=` in it too)."""
    head, sign, rest = word.partition("=")
    if not sign or head.startswith((os.sep, ".")) or Path(word).exists():
        return None
    names, members = tuple(head.split("/")), rest.split(",")
    if not all(name.strip() for name in names) or not all(place.strip() for place in members):
        raise InputError.one(
            "--on", "is no group", value=f"'{word}'", accepted="NAME=PLACE,PLACE,... or NAME/NAME=PLACE,..."
        )
    return names, members


def _given_up(device: str) -> Path:
    """A device that the user gives up; whatever else is there is nothing to give up."""
    path = Path(device)
    try:
        is_device = stat.S_ISBLK(path.stat().st_mode)
    except FileNotFoundError:
        message = "there is no such device"
    except OSError as error:
        message = f"cannot be looked at: {error.strerror}"
    else:
        if is_device:
            return path.resolve()
        message = "is no block device: in directories only files of raidlab's own are written"
    raise InputError.one("--destroy", message, value=f"'{device}'", accepted=DEVICE_ACCEPTED)


def refuse_empty(option: str, words: Iterable[str]) -> None:
    """Refuse an empty word, as an unset variable of the shell gives it: it would mean the current directory."""
    if any(not word.strip() for word in words):
        message = "is empty (an unset variable of the shell?)"
        raise InputError.one(option, message, value="''", accepted="a name or path")


def _refuse_twins(places: list[LivePlace]) -> None:
    first: dict[int, Path] = {}
    for place in places:
        if place.kind == "block" and place.path is not None:
            other = first.setdefault(place.path.stat().st_rdev, place.path)
            if other is not place.path:
                raise InputError.one(
                    "--on", f"is the same device as '{other}'", value=f"'{place.path}'", accepted="every device once"
                )


def _place(word: str, given_up: set[Path], where: str = "--on", *, is_volume: bool = False) -> LivePlace:
    path, accepted = Path(word), VOLUME_ACCEPTED if is_volume else ACCEPTED
    try:
        if not looks_like_path(word) and not path.exists():
            hint = "" if is_volume else did_you_mean(word, TARGET_WORDS)
            raise InputError.one(where, f"is not a target{hint}", value=f"'{word}'", accepted=accepted)
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise no_directory(where, word, "there is no such directory or device", accepted) from None
    except OSError as error:
        raise InputError.one(where, f"cannot be looked at: {error.strerror}", value=f"'{word}'") from None
    if not is_unicode(path.resolve()):
        raise InputError.one(where, "leads to a name that is not UTF-8", value=f"'{word}'", accepted="one in UTF-8")
    if stat.S_ISDIR(mode):
        return LivePlace("directory", path, named_at=where)
    if stat.S_ISBLK(mode):
        return LivePlace("block", path, given_up=path.resolve() in given_up, named_at=where)
    if is_volume:
        if stat.S_ISREG(mode):
            _refuse_unreadable(path, where)
            return LivePlace("file", path, named_at=where)
        raise InputError.one(where, "is no array, nor holds one", value=f"'{word}'", accepted=VOLUME_ACCEPTED)
    raise RefusedError(f"--on: '{word}': is a file that raidlab has not made; accepted: the directory to make files in")


def _refuse_unreadable(path: Path, where: str) -> None:
    """Refuse an existing file that is to be read and cannot be."""
    try:
        path.open("rb").close()
    except OSError as error:
        accepted = "a file that may be read"
        raise InputError.one(where, f"cannot be read: {error.strerror}", value=f"'{path}'", accepted=accepted) from None


def groups_of(loaded: LoadedStudy, target: Target) -> tuple[Group, ...]:
    """The groups of a live target, if that is how arrays are laid out; without any, a study that knows them has one."""
    levels = loaded.study.live.groups
    # Where a study is only checked there is no place yet, and every array counts.
    is_checked = target.kind == "directory" and target.places[0].path is None
    if target.groups or not levels or is_checked or not target.places:
        return target.groups
    count = len(target.places) if target.kind == "block" else _widest_of_one_group(loaded)
    return (Group(("0",) * len(levels), tuple(range(count))),)


def _widest_of_one_group(loaded: LoadedStudy) -> int:
    """Members of the widest array that asks for one place only: so many are made in directories and in memory."""
    arrays = loaded.study.arrays_on("live")
    alone = [array for array in arrays if all(not any(places) for places in array.placement.values())]
    return max(count_leaves(loaded.geometry.trees[array.name]) for array in alone or arrays)


def laid_over(
    loaded: LoadedStudy, groups: tuple[Group, ...], member_bytes: int, note: Callable[[str], None]
) -> LoadedStudy:
    """The study with its arrays laid over groups; which cannot be is said.

    Raises `InputError` when no array can be.
    """
    try:
        study, arrangement = arranged(loaded, groups, member_bytes)
    except ValueError as error:
        raise InputError([Problem("", "--on", str(error))]) from None
    reasons: dict[str, list[str]] = {}
    for array, reason in arrangement.left_out.items():
        reasons.setdefault(reason, []).append(array)
    said = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
    if not arrangement.members_of:
        raise _no_array_over(loaded, groups, said)
    if said:
        named = "/".join(loaded.study.live.groups)
        note(f"left out: {said}{f'; groups are named --on {named}=PLACE,PLACE,...' if named else ''}")
    return study


def _no_array_over(loaded: LoadedStudy, groups: tuple[Group, ...], said: str) -> InputError:
    """What is said where no array lies over the groups: their names may have been meant for arrays."""
    names = ", ".join(f"'{'/'.join(group.names)}'" for group in groups)
    known = [array.name for array in loaded.study.array]
    message = f"no array of the study has this name, and none can be laid over members under it{said and f': {said}'}"
    accepted = f"ARRAY=PLACE for one that stands already, of {', '.join(known)}; or larger groups, or more"
    return InputError.one("--on", message, value=names, accepted=accepted)


def standing(loaded: LoadedStudy, target: Target, pool: int, note: Callable[[str], None]) -> LoadedStudy:
    """The study with the arrays of a target that stand already; those for which nothing else is named are left out.

    ``pool``: how many members there are for the others.
    """
    study, left_out = with_volumes(loaded, {name: str(place.path) for name, place in target.volumes.items()}, pool)
    if left_out:
        note(f"left out: {', '.join(left_out)} (no --on names members for raidlab's own arrays)")
    return study


def place_names(target: Target) -> list[str]:
    """The places of a target, or its groups with their number of members; then arrays that stand already."""
    standing = [f"{name}={place.path}" for name, place in target.volumes.items()]
    if target.groups:
        return [f"{'/'.join(group.names)} ({len(group.members)})" for group in target.groups] + standing
    return [str(place.path or place.kind) for place in target.places] + standing
