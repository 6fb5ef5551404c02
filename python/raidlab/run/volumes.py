"""Arrays that stand already: md's, the device mapper's, ZFS's, btrfs's, a controller's, each one member of its study.

Invariants:

- Looking at a volume opens nothing for writing. A block device is written only where ``--destroy`` names it; of a file
  system only a file of raidlab's own, in a folder of its own, is.
- No other array of the study lies on what a volume is made of: the two would be one array under two names, or one would
  be written through a hole in the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from raidlab.errors import InputError
from raidlab.run.kernel_facts import Sources, volumes_below
from raidlab.run.kernel_facts.stack import blocks_below, overlaps
from raidlab.run.members import ROOM_WORDS, Members, check_places, device_bytes, member_files
from raidlab.run.targets import LivePlace, Target

# The last page of a file that raidlab made holds its mark, and requests are whole pages.
PAGE_BYTES = 4096


def usable_bytes(file_bytes: int) -> int:
    """How much of an existing file requests are spread over: whole pages, without the mark of one that raidlab made."""
    return file_bytes // PAGE_BYTES * PAGE_BYTES - PAGE_BYTES


def volume_bytes(volumes: Mapping[str, LivePlace], file_bytes: int) -> dict[str, int]:
    """What each volume holds for its array; in a directory a file of ``file_bytes`` is made."""
    found = {}
    for name, place in volumes.items():
        path = _path(place)
        if place.kind == "file":
            found[name] = usable_bytes(path.stat().st_size)
        else:
            found[name] = device_bytes(place.named_at, path) if place.kind == "block" else file_bytes
        if found[name] < PAGE_BYTES:
            message = f"holds {max(found[name], 0)} bytes for the array '{name}', which is too little to measure"
            raise InputError.one(
                place.named_at, message, value=f"'{place.path}'", accepted="a volume of at least 8 KiB"
            )
    return found


@contextmanager
def volume_members(volumes: Mapping[str, LivePlace], sizes: Mapping[str, int]) -> Iterator[Members]:
    """Each volume as the engine takes a member; files that are made for them are taken away afterwards."""
    with ExitStack() as made:
        members: Members = []
        for name, place in volumes.items():
            path = _path(place)
            if place.kind == "block":
                members.append({"kind": "block", "path": str(path), "destroy": place.given_up})
            elif place.kind == "directory":
                (file,) = made.enter_context(member_files([path], 1, sizes[name], ROOM_WORDS))
                members.append({"kind": "file", "path": str(file), "size_bytes": sizes[name]})
            else:
                # Should it be taken away meanwhile, the engine must not make one in its place.
                kept = {"kind": "file", "path": str(path.resolve()), "size_bytes": sizes[name], "existing": True}
                members.append(kept)
        yield members


def check_volumes(target: Target, file_bytes: int) -> None:
    """Refuse volumes that lie on one another or on the places of the other arrays, and directories without room."""
    _refuse_shared(target)
    for place in target.volumes.values():
        if place.kind == "directory":
            check_places(Target("live", (place,)), 1, file_bytes)


def _refuse_shared(target: Target) -> None:
    """Name both where two arrays are made of the same."""
    volumes = [(f"the array '{name}' ({place.path})", place) for name, place in target.volumes.items()]
    others = [(f"raidlab's own arrays ({place.path})", place) for place in target.places if place.path is not None]
    for index, (name, place) in enumerate(volumes):
        for other_name, other in (*volumes[index + 1 :], *others):
            is_same = _path(place).resolve() == _path(other).resolve()
            shared = shared_parts((place, other), Sources()) or (["the same place"] if is_same else [])
            if shared:
                message = f"{name} and {other_name} are both made of {', '.join(shared)}"
                accepted = "arrays of a study that share no member, or a study for each"
                raise InputError.one("--on", message, accepted=accepted)


def shared_parts(places: tuple[LivePlace, LivePlace], sources: Sources) -> list[str]:
    """What two places are both made of, by name; none where they are but two directories of a file system on one disk.

    Such two share a disk as any two files do, which the check `shared_device` warns of; they share no array.
    """
    first, second = (_path(place) for place in places)
    below = [blocks_below(path, sources) for path in (first, second)]
    found = {one.name for one in below[0] if any(overlaps(one, other) for other in below[1])}
    found |= _pools(first, sources) & _pools(second, sources)
    is_raw = any(place.kind == "block" for place in places)
    return sorted(found) if is_raw or any(_is_array(path, sources) for path in (first, second)) else []


def _path(place: LivePlace) -> Path:
    assert place.path is not None, "a volume, and what it is held against, is somewhere"
    return place.path


def _pools(path: Path, sources: Sources) -> set[str]:
    """The pools of ZFS that a place lies in: the kernel tells of no block devices below them."""
    volumes = volumes_below(path, sources)
    return {f"the pool {one['name'].partition('/')[0]}" for one in volumes if one["kind"] == "zfs"}


def _is_array(path: Path, sources: Sources) -> bool:
    """Whether a place lies on several disks, and so on an array of the kernel's."""
    return any(volume["kind"] == "zfs" or len(volume["members"]) > 1 for volume in volumes_below(path, sources))
