"""The predicted twin of an array that stands already: its tree and its policy, from what the kernel says of it.

This is the one place where facts of md, the device mapper and btrfs become a tree of levels; whoever teaches raidlab
another layout, or another policy of the kernel's, changes one line here.

Invariants:

- A tree follows from facts, or there is none: what raidlab cannot model is refused with the reason, never made alike.
- A twin is whole and idle, whatever its array is: what is missing or busy there is to show as a difference.
- Nothing is opened: facts come in, a text of a tree goes out.

Reference: the kernel's Documentation/admin-guide/md.rst and device-mapper/dm-raid.rst; btrfs(5), section read policy;
``docs/internals/md-witness.md`` for the policies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from raidlab.reading import Plain
from raidlab.results.facts import Volume, VolumeMember
from raidlab.study.schema import POLICIES
from raidlab.study.units import format_bytes

# Words of a controller's vendor or model: what lies behind them the kernel cannot know.
_CONTROLLERS = ("perc", "megaraid", "logical volume", "serveraid", "raid controller", "smart array", "virtual disk")
_COPIES_OF_BTRFS = {"raid1": 2, "raid1c3": 3, "raid1c4": 4}
_ROTATIONS_OF_DM = {
    "raid5_ls": "left_symmetric",
    "raid5_la": "left_asymmetric",
    "raid5_rs": "right_symmetric",
    "raid5_ra": "right_asymmetric",
    "raid5_n": "parity_last",
    "raid4": "parity_first",
}
_JOURNALS = {"journal": "a journal of its own", "ppl": "a partial parity log"}
# They pass every request on to the one device below.
_PASSING_ON = {"linear", "crypt", "multipath"}


class UnmodelledError(ValueError):
    """Why an array has no twin."""


@dataclass(frozen=True)
class Twin:
    """The model of an array."""

    tree: str
    """As a study writes it."""
    policy: Mapping[str, Plain] = field(default_factory=dict)
    """How it chooses; empty where there is nothing to choose."""
    members: tuple[str, ...] = ()
    """The kernel's name of each member of the tree, in its order; fewer where the kernel does not tell."""
    left_out: tuple[str, ...] = ()
    """What it leaves out, a sentence each."""


def twin_of_volumes(volumes: Sequence[Volume], *, model: str | None = None, rotating: bool = False) -> Twin:
    """The twin of what lies below a target.

    Parameters
    ----------
    volumes : sequence of Volume
        The kernel's arrays and volumes below it, the uppermost first; none below a plain disk.
    model : str, optional
        What the device calls itself, where there is no volume.
    rotating : bool
        Whether the device model of the members rotates, which decides how md reads mirrors.

    Raises
    ------
    UnmodelledError
        With one sentence.
    """
    if not volumes:
        if model is not None and any(word in model.lower() for word in _CONTROLLERS):
            raise UnmodelledError(f"'{model}' is a controller's volume, and what lies behind it the kernel cannot tell")
        return Twin("member")
    return _Builder({_device_name(volume): volume for volume in volumes}, rotating).build(volumes[0])


def _device_name(volume: Volume) -> str:
    """What the kernel calls a volume where it is a member of another."""
    return str(volume["details"].get("device") or volume["name"])


@dataclass(frozen=True)
class _Builder:
    """Makes a tree of volumes that lie on one another."""

    by_device: Mapping[str, Volume]
    rotating: bool

    def build(self, volume: Volume) -> Twin:
        """The twin of one volume and of what lies below it."""
        if volume["state"] == "failed":
            raise UnmodelledError(
                f"{volume['name']} has failed ({volume.get('kernel_state') or 'it takes no requests'})"
            )
        makers = {"md": self._of_md, "dm": self._of_dm, "btrfs": self._of_btrfs}
        maker = makers.get(volume["kind"])
        if maker is None:
            raise UnmodelledError(f"{volume['name']} is of {volume['kind']}, of which raidlab has no model")
        if volume["level"] is None:
            why = volume["unknown"].get("level", "nothing tells")
            raise UnmodelledError(f"the level of {volume['name']} is not known: {why}")
        return maker(volume, str(volume["level"]))

    def _over(self, names: Sequence[str], text_of: Callable[[str], str], policy: Mapping[str, Plain]) -> Twin:
        """A level over members, each of which may be a volume itself; ``text_of`` the text of one child."""
        below = [self._child(name) for name in names]
        trees = {child.tree for child in below}
        if len(trees) > 1:
            raise UnmodelledError(f"its members are not alike: {', '.join(sorted(trees))}")
        merged: dict[str, Plain] = {}
        for child in below:
            merged.update(child.policy)
        left_out = dict.fromkeys(sentence for child in below for sentence in child.left_out)
        members = tuple(name for child in below for name in child.members)
        return Twin(text_of(trees.pop()), {**merged, **policy}, members, tuple(left_out))

    def _child(self, name: str) -> Twin:
        volume = self.by_device.get(name)
        return Twin("member", members=(name,)) if volume is None else self.build(volume)

    def _of_md(self, volume: Volume, level: str) -> Twin:
        name, details = volume["name"], volume["details"]
        if volume["activity"] == "reshape":
            raise UnmodelledError(f"{name} is being reshaped: it lies in two layouts at once")
        policy = str(details.get("consistency_policy") or "")
        if policy in _JOURNALS:
            raise UnmodelledError(f"{name} has {_JOURNALS[policy]}, which raidlab does not model")
        serving = [member for member in volume["members"] if member["state"] != "spare" and not _is_journal(member)]
        if any("write_mostly" in (member.get("kernel_state") or "").split(",") for member in serving):
            raise UnmodelledError(f"{name} has a write-mostly member, which raidlab does not model")
        count = volume.get("raid_disks") or len(serving)
        return self._over(_in_slots(serving, count), _md_text(volume, level, count), self._md_policy())

    def _md_policy(self) -> Mapping[str, Plain]:
        """How md serves requests (docs/internals/md-witness.md); of members that rotate it reads the nearest copy."""
        return {**POLICIES["md"], **({"mirror_read": {"kind": "md", "rotating": True}} if self.rotating else {})}

    def _of_dm(self, volume: Volume, level: str) -> Twin:
        name = volume["name"]
        below = [member["name"] for member in volume["members"]]
        if level in _PASSING_ON and len(below) == 1:
            child = self._child(below[0])
            words = {"crypt": f"{name} encrypts: what that takes of the processors is not modelled"}
            more = (words[level],) if level in words else ()
            return Twin(child.tree, child.policy, child.members, (*more, *child.left_out))
        count = len(below)
        if level in ("striped", "raid0"):
            chunk = _chunk_of(volume)
            return self._over(below, lambda child: _level("stripe", count, child, chunk=chunk), {})
        if level in ("mirror", "raid1"):
            return self._over(below, lambda child: _level("mirror", count, child), self._md_policy())
        if level in _ROTATIONS_OF_DM:
            chunk, rotation = _chunk_of(volume), _ROTATIONS_OF_DM[level]

            def parity(child: str) -> str:
                return _level("parity", count, child, chunk=chunk, parities=1, rotation=rotation)

            # A member of such a volume has a second one beside it for its metadata, which is no member of the tree.
            return self._over(below, parity, self._md_policy())
        raise UnmodelledError(f"{name} is the device mapper's '{level}', which raidlab does not model")

    def _of_btrfs(self, volume: Volume, level: str) -> Twin:
        name, below = volume["name"], [member["name"] for member in volume["members"]]
        count = len(below)
        twin: Twin | None = None
        if level == "single" and count == 1:
            twin = self._child(below[0])
        elif level == "raid0" and count > 1:
            twin = self._over(below, lambda child: _level("stripe", count, child, chunk=_chunk_of(volume)), {})
        elif level == "raid10" and count % 2 == 0:
            # Pairs of neighbours hold the same; which devices are neighbours is decided a chunk of space at a time.
            def mirrored(child: str) -> str:
                return _level("stripe", count // 2, _level("mirror", 2, child), chunk=_chunk_of(volume))

            twin = self._over(below, mirrored, _btrfs_policy(volume))
        elif level in _COPIES_OF_BTRFS and count == _COPIES_OF_BTRFS[level]:
            twin = self._over(below, lambda child: _level("mirror", count, child), _btrfs_policy(volume))
        if twin is None:
            raise UnmodelledError(
                f"{name} is btrfs's '{level}' over {count} devices: where its chunks lie raidlab does not model"
            )
        words = "btrfs keeps metadata, checksums and, unless told otherwise, every overwrite elsewhere: not modelled"
        return Twin(twin.tree, twin.policy, twin.members, (*twin.left_out, words))


def _is_journal(member: VolumeMember) -> bool:
    return "journal" in (member.get("kernel_state") or "").split(",")


def _in_slots(members: Sequence[VolumeMember], count: int) -> list[str]:
    """The names of the members of an array by slot; one that is missing has none, and is a member all the same."""
    # While a member is replaced, both are in its slot, and the old one serves.
    last = sorted(members, key=lambda member: member["state"] == "online")
    named = {slot: member["name"] for member in last if (slot := member.get("slot")) is not None}
    if not named:
        return ([member["name"] for member in members] + [""] * count)[:count]
    return [named.get(slot, "") for slot in range(count)]


def _chunk_of(volume: Volume) -> int:
    chunk = volume["chunk_bytes"]
    if chunk is None:
        raise UnmodelledError(f"the chunk of {volume['name']} is not known")
    return chunk


def _level(kind: str, count: int, child: str, **keys: object) -> str:
    """A level over so many equal children, as a study writes it; chunks are whole KiB where they can be."""
    words = [str(count) if child == "member" else f"{count}*{child}"]
    for key, value in keys.items():
        words.append(
            f"{key}={format_bytes(value).replace(' ', '') if isinstance(value, int) and key == 'chunk' else value}"
        )
    return f"{kind}({', '.join(words)})"


def _md_text(volume: Volume, level: str, count: int) -> Callable[[str], str]:
    """How md lays an array over its members."""
    name, details = volume["name"], volume["details"]
    rotation = str(details.get("rotation") or "left_symmetric")
    if rotation.startswith("md layout"):
        raise UnmodelledError(f"{name} has {rotation}, which raidlab does not have")
    if level == "raid0":
        return lambda child: _level("stripe", count, child, chunk=_chunk_of(volume))
    if level == "linear":
        return lambda child: _level("concat", count, child)
    if level == "raid1":
        return lambda child: _level("mirror", count, child) if count > 1 else child
    if level in ("raid4", "raid5", "raid6"):
        keys = {"chunk": _chunk_of(volume), "parities": 2 if level == "raid6" else 1}
        # RAID 4 keeps all parity on its last member.
        where = "parity_last" if level == "raid4" else rotation
        return lambda child: _level("parity", count, child, **keys, rotation=where)
    if level == "raid10":
        kind, copies = _copies_of(name, str(details.get("copies") or ""))
        chunk = _chunk_of(volume)
        if kind == "near" and count % copies == 0:
            return lambda child: _level("stripe", count // copies, _level("mirror", copies, child), chunk=chunk)
        return lambda child: _level("copies", count, child, chunk=chunk, layout=f"{kind}{copies}")
    raise UnmodelledError(f"{name} is md's '{level}', which raidlab does not model")


def _copies_of(name: str, layout: str) -> tuple[str, int]:
    """Where the copies of a RAID 10 lie, and how many there are: all of them near, far or offset."""
    found = re.fullmatch(r"(\d+) near, (\d+) (far|offset)", layout)
    near, far = (int(found[1]), int(found[2])) if found else (0, 0)
    if found is None or 1 not in (near, far):
        raise UnmodelledError(f"{name} is a RAID 10 with the layout '{layout}', which raidlab does not have")
    return (found[3], far) if far > 1 else ("near", near)


def _btrfs_policy(volume: Volume) -> Mapping[str, Plain]:
    """Which copy btrfs reads: by default that of the process's number, so one process reads from one copy alone."""
    policy = str(volume["details"].get("read_policy") or "pid")
    if policy == "pid":
        return {"mirror_read": "primary"}
    if policy.startswith("round-robin"):
        return {"mirror_read": "round_robin"}
    raise UnmodelledError(f"{volume['name']} reads its copies by '{policy}', which raidlab does not model")
