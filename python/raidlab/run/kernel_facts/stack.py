"""The block devices a path lies on, from the uppermost down to the physical disks, and the mounts above them.

Invariants:

- Everything is read from ``stat``, ``/sys`` and ``/proc``; nothing is opened for writing and no privilege is needed.
- A device stands once, above all that it is made of. A loop device leads to the device of its file, btrfs to all of
  its own, a partition to its disk.
- What has no device is called by its mount point or its number, so that two things are never taken for one.

Reference: the kernel's Documentation/ABI/stable/sysfs-block.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from raidlab.results import facts as kept
from raidlab.run.kernel_facts import btrfs
from raidlab.run.kernel_facts.sources import Sources, read_text, read_word, slaves

_DEEPEST = 8
# The kernel counts sectors of 512 bytes here, whatever the device's own are.
_COUNTED_BYTES = 512
_READ_FIELD, _WRITTEN_FIELD = 2, 6


@dataclass(frozen=True)
class Mount:
    """A line of ``/proc/self/mountinfo``."""

    point: str
    kind: str
    source: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class StackedDevice:
    """One block device."""

    node: Path
    """Its directory in sysfs; of a partition, that of the partition."""
    numbers: str
    """``major:minor``."""
    backing: Path | None = None
    """The file or device behind a loop device."""

    @property
    def name(self) -> str:
        """The kernel's name of it."""
        return self.node.name

    @property
    def disk(self) -> Path:
        """Where its queue is described: a partition has that of its disk."""
        return _whole(self.node)

    def setting(self, name: str) -> str | None:
        """What a file of its queue says; of several words the one in brackets."""
        return read_word(self.disk / "queue" / name)


def mount_of(path: Path, sources: Sources | None = None) -> Mount | None:
    """The mount that a path lies in: the longest mount point that is above it, and of equals the last."""
    sources = sources or Sources()
    try:
        lines = (sources.proc / "self" / "mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    resolved, best = str(path.resolve()), None
    for line in lines:
        head, _, tail = line.partition(" - ")
        fields, (kind, source, *more) = head.split(), tail.split()
        point = _unescaped(fields[4])
        inside = point in ("/", resolved) or resolved.startswith(point + "/")
        if inside and (best is None or len(point) >= len(best.point)):
            options = tuple(option for words in (fields[5], *more) for option in words.split(","))
            best = Mount(point, kind, _unescaped(source), options)
    return best


def _unescaped(text: str) -> str:
    """Blanks and the like are octal there."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def device_folders(path: Path, sources: Sources) -> list[Path]:
    """The folders in sysfs of the block devices right below a path (of a device, itself); none below a tmpfs."""
    status = path.stat()
    node = sources.block(status.st_rdev if path.is_block_device() else status.st_dev)
    if node is not None:
        return [node]
    # The device number of a btrfs is that of no block device: its mount names one of its devices.
    mount = mount_of(path, sources)
    folder = btrfs.folder_of(mount.source, sources) if mount is not None and mount.kind == btrfs.KIND else None
    return [] if folder is None else btrfs.devices(folder)


def stack_below(path: Path, sources: Sources) -> list[StackedDevice]:
    """The block devices below a file, a directory or a block device; empty where there is none (tmpfs)."""
    found: dict[Path, StackedDevice] = {}
    _add_below(path, sources, found, 0)
    return list(found.values())


def blocks_below(path: Path, sources: Sources) -> set[Path]:
    """The block devices that a file, a directory or a block device is made of, down to their disks.

    A file behind a loop device is not followed: it is that device, as a disk is what it is.
    """
    found: set[Path] = set()
    waiting = device_folders(path, sources)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [slave for slave in slaves(_whole(node)) if slave.exists()]
    return found


def overlaps(first: Path, second: Path) -> bool:
    """Whether two block devices have sectors in common: they are one, or one is a partition of the other."""
    return first == second or _whole(first) == second or first == _whole(second)


def _add_below(path: Path, sources: Sources, found: dict[Path, StackedDevice], depth: int) -> None:
    try:
        nodes = device_folders(path, sources)
    except OSError:
        return
    for node in nodes:
        _add(node, sources, found, depth)


def _add(node: Path, sources: Sources, found: dict[Path, StackedDevice], depth: int) -> None:
    if node in found or depth >= _DEEPEST:
        return
    backing = _backing(_whole(node))
    found[node] = StackedDevice(node, read_word(node / "dev") or "", backing)
    for slave in slaves(_whole(node)):
        if slave.exists():
            _add(slave, sources, found, depth + 1)
    if backing is not None:
        _add_below(backing, sources, found, depth + 1)


def disks_below(path: Path, sources: Sources | None = None) -> list[str]:
    """The physical disks below a file or a block device, by name where they have one, in alphabetical order."""
    return sorted(_disks(path, sources or Sources(), 0))


def _disks(path: Path, sources: Sources, depth: int) -> set[str]:
    nodes = device_folders(path, sources) if depth < _DEEPEST else []
    if nodes:
        return {name for node in nodes for name in _disks_of(node, sources, depth)}
    mount = mount_of(path, sources)
    number = path.stat().st_dev
    return {f"{os.major(number)}:{os.minor(number)}" if mount is None else f"{mount.kind} at {mount.point}"}


def _disks_of(node: Path, sources: Sources, depth: int) -> set[str]:
    whole = _whole(node)
    backing = _backing(whole)
    if backing is not None:
        try:
            return _disks(backing, sources, depth + 1)
        except OSError:
            return {whole.name}
    lower = [slave for slave in slaves(whole) if slave.exists()] if depth < _DEEPEST else []
    return {name for slave in lower for name in _disks_of(slave, sources, depth + 1)} or {whole.name}


def _whole(node: Path) -> Path:
    return node.parent if (node / "partition").exists() else node


def _backing(whole: Path) -> Path | None:
    text = read_text(whole / "loop" / "backing_file")
    return Path(text.removesuffix(" (deleted)")) if text else None


def counters(layer: StackedDevice) -> tuple[int, int] | None:
    """Bytes a device has read and written; None where it keeps no counters."""
    try:
        fields = (layer.node / "stat").read_text(encoding="utf-8").split()
        counts = (layer.disk / "queue" / "iostats").read_text(encoding="utf-8").strip() != "0"
        read, written = (int(fields[at]) * _COUNTED_BYTES for at in (_READ_FIELD, _WRITTEN_FIELD))
        return (read, written) if counts else None
    except (OSError, ValueError, IndexError):
        return None


def service_counters(layer: StackedDevice) -> tuple[int, int, int, int] | None:
    """Requests a device has read and written, and milliseconds they were under way; None where it keeps no counters."""
    try:
        fields = [int(word) for word in (layer.node / "stat").read_text(encoding="utf-8").split()]
        return (fields[0], fields[4], fields[3], fields[7])
    except (OSError, ValueError, IndexError):
        return None


def layer_facts(layer: StackedDevice) -> kept.Layer:
    """A layer as it stands in a result."""
    facts: kept.Layer = {"name": layer.name, "numbers": layer.numbers}
    if layer.backing is not None:
        dio = read_word(layer.disk / "loop" / "dio")
        facts["backing"] = str(layer.backing)
        # Without direct I/O the page cache stands between the loop device and its file.
        facts["through_page_cache"] = None if dio is None else dio == "0"
    if (cache := layer.setting("write_cache")) is not None:
        facts["write_cache"] = cache
    offset, block = read_word(layer.node / "alignment_offset"), layer.setting("physical_block_size")
    if offset is not None and block is not None and offset.lstrip("-").isdigit() and block.isdigit():
        facts["alignment_offset_bytes"], facts["physical_block_bytes"] = int(offset), int(block)
    if (rotational := layer.setting("rotational")) is not None:
        facts["rotational"] = rotational == "1"
    if (number := read_word(layer.disk / "nsid")) is not None:
        # Namespaces of one controller are devices of their own to the kernel, and may be one drive all the same.
        controller = (layer.disk / "device").resolve()
        model = read_text(controller / "model")
        facts["namespace"] = f"namespace {number} of {controller.name}" + (f" ({model})" if model else "")
    if (algorithm := read_word(layer.disk / "comp_algorithm")) is not None:
        facts["compresses"] = algorithm
    return facts
