"""The commands that would build an array, as text: they are printed, and never run.

Invariant: names of devices stand in the commands as variables; nothing that is pasted unread overwrites a disk.
"""

from __future__ import annotations

import shlex

from raidlab.recommend.candidates import Contender
from raidlab.recommend.need import COPIES

_MD_LEVELS = {
    "raid0": "0",
    "raid1": "1",
    "raid5": "5",
    "raid6": "6",
    **{level: f"10 --layout=n{copies}" for level, copies in COPIES.items()},
}
_ZFS_PARITY = {"raid5": "raidz1", "raid6": "raidz2", "raid50": "raidz1", "raid60": "raidz2"}
_BTRFS = {"raid0": "raid0", "raid10": "raid10", "raid5": "raid5", "raid6": "raid6"}
# btrfs has as many copies as the profile says.
_BTRFS_COPIES = {2: "raid1", 3: "raid1c3", 4: "raid1c4"}


def commands_of(candidate: Contender) -> dict[str, list[str]]:
    """By tool the commands, over ``$DISK1`` and so on; only tools that have the level."""
    disks = [f'"$DISK{number + 1}"' for number in range(candidate.shape.members)]
    spares = [f'"$DISK{number + 1}"' for number in range(candidate.shape.members, candidate.disks)]
    found = {
        "mdadm": _mdadm(candidate, disks, spares),
        "zfs": _zfs(candidate, disks, spares),
        "btrfs": _btrfs(candidate, disks),
    }
    return {tool: lines for tool, lines in found.items() if lines}


def _mdadm(candidate: Contender, disks: list[str], spares: list[str]) -> list[str]:
    level, chunk = candidate.shape.level, candidate.chunk_bytes
    if level in _MD_LEVELS:
        return [_create("/dev/md0", _MD_LEVELS[level], chunk, disks, spares)]
    if level in ("raid50", "raid60"):
        inner = {"raid50": "5", "raid60": "6"}[level]
        return _nested(candidate, inner, "0", chunk, disks, spares)
    # RAID 0+1: two stripes, mirrored.
    half = len(disks) // 2
    parts = [disks[:half], disks[half:]]
    lines = [_create(f"/dev/md{at + 1}", "0", chunk, part, []) for at, part in enumerate(parts)]
    return [*lines, _create("/dev/md0", "1", None, ["/dev/md1", "/dev/md2"], [])]


def _nested(
    candidate: Contender, inner: str, outer: str, chunk: int | None, disks: list[str], spares: list[str]
) -> list[str]:
    groups = candidate.groups or 2
    width = len(disks) // groups
    lines = [
        _create(f"/dev/md{at + 1}", inner, chunk, disks[at * width : (at + 1) * width], spares if at == 0 else [])
        for at in range(groups)
    ]
    stripe = candidate.tree.get("chunk_bytes")
    return [*lines, _create("/dev/md0", outer, stripe, [f"/dev/md{at + 1}" for at in range(groups)], [])]


def _create(name: str, level: str, chunk: int | None, disks: list[str], spares: list[str]) -> str:
    words = ["mdadm", "--create", shlex.quote(name), f"--level={level}", f"--raid-devices={len(disks)}"]
    if chunk is not None and level != "1":
        words.append(f"--chunk={chunk // 1024}K")
    words += [f"--spare-devices={len(spares)}"] if spares else []
    return " ".join([*words, *disks, *spares])


def _zfs(candidate: Contender, disks: list[str], spares: list[str]) -> list[str]:
    level = candidate.shape.level
    if level == "raid0":
        parts = [" ".join(disks)]
    elif level == "raid1":
        parts = ["mirror " + " ".join(disks)]
    elif level in COPIES:
        copies = COPIES[level]
        parts = ["mirror " + " ".join(disks[at : at + copies]) for at in range(0, len(disks), copies)]
    elif level in _ZFS_PARITY:
        width = len(disks) // (candidate.groups or 1)
        parts = [f"{_ZFS_PARITY[level]} " + " ".join(disks[at : at + width]) for at in range(0, len(disks), width)]
    else:
        return []
    return [" ".join(["zpool create tank", *parts, *(["spare", *spares] if spares else [])])]


def _btrfs(candidate: Contender, disks: list[str]) -> list[str]:
    level = candidate.shape.level
    profile = _BTRFS_COPIES.get(len(disks)) if level == "raid1" else _BTRFS.get(level)
    # It has no spares.
    if profile is None or candidate.spares:
        return []
    metadata = {"raid5": "raid1", "raid6": "raid1c3", "raid0": "raid1"}.get(profile, profile)
    warning = ["# btrfs's own manual: raid5 and raid6 are not for production"] if "5" in level or "6" in level else []
    return [*warning, " ".join([f"mkfs.btrfs --data {profile} --metadata {metadata}", *disks])]
