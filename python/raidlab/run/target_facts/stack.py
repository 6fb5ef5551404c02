"""The block devices a target lies on, from the uppermost down to the disks.

Invariants:

- A device stands once, above all that it is made of.
- A loop device leads to the device of its file, btrfs to all of its own, a partition to its disk.

Reference: the kernel's Documentation/ABI/stable/sysfs-block.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raidlab.results import facts as kept
from raidlab.run.kernel_facts import Sources, btrfs, mount_of
from raidlab.run.kernel_facts.sources import slaves

_DEEPEST = 8
# The kernel counts sectors of 512 bytes here, whatever the device's own are.
_COUNTED_BYTES = 512
_READ_FIELD, _WRITTEN_FIELD = 2, 6


@dataclass(frozen=True)
class Layer:
    """One block device.

    Attributes
    ----------
    node : pathlib.Path
        Its directory in sysfs; of a partition, that of the partition.
    numbers : str
        ``major:minor``.
    backing : pathlib.Path or None
        The file or device behind a loop device.
    """

    node: Path
    numbers: str
    backing: Path | None = None

    @property
    def name(self) -> str:
        """The kernel's name of it."""
        return self.node.name

    @property
    def disk(self) -> Path:
        """Where its queue is described: a partition has that of its disk."""
        return self.node.parent if (self.node / "partition").exists() else self.node

    def setting(self, name: str) -> str | None:
        """What a file of its queue says; of several words the one in brackets."""
        return read_word(self.disk / "queue" / name)


def read_word(file: Path) -> str | None:
    """The text of a small file, or the word in brackets where several are offered; None where it cannot be had."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    begin, end = text.find("["), text.find("]")
    return text[begin + 1 : end] if 0 <= begin < end else text


def stack_below(path: Path, sources: Sources) -> list[Layer]:
    """The block devices below a file, a directory or a block device; empty where there is none (tmpfs)."""
    found: dict[str, Layer] = {}
    _walk(path, sources, found, 0)
    return list(found.values())


def _walk(path: Path, sources: Sources, found: dict[str, Layer], depth: int) -> None:
    try:
        status = path.stat()
        number = status.st_rdev if path.is_block_device() else status.st_dev
    except OSError:
        return
    node = sources.block(number)
    if node is not None:
        _add(node, sources, found, depth)
        return
    mount = mount_of(path, sources)
    folder = btrfs.folder_of(mount.source, sources) if mount is not None and mount.kind == btrfs.KIND else None
    for device in btrfs.devices(folder) if folder is not None else []:
        _add(device, sources, found, depth)


def _add(node: Path, sources: Sources, found: dict[str, Layer], depth: int) -> None:
    numbers = read_word(node / "dev")
    if numbers is None or numbers in found or depth >= _DEEPEST:
        return
    whole = node.parent if (node / "partition").exists() else node
    backing = _backing(whole / "loop" / "backing_file")
    found[numbers] = Layer(node, numbers, backing)
    for slave in slaves(whole):
        if slave.exists():
            _add(slave, sources, found, depth + 1)
    if backing is not None:
        _walk(backing, sources, found, depth + 1)


def _backing(file: Path) -> Path | None:
    text = read_word_plain(file)
    return Path(text.removesuffix(" (deleted)")) if text else None


def read_word_plain(file: Path) -> str | None:
    """The text of a small file as it is; names may hold brackets."""
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").strip()
    except OSError:
        return None


def counters(layer: Layer) -> tuple[int, int] | None:
    """Bytes a device has read and written; None where it keeps no counters."""
    try:
        fields = (layer.node / "stat").read_text(encoding="utf-8").split()
        kept = (layer.disk / "queue" / "iostats").read_text(encoding="utf-8").strip() != "0"
        read, written = (int(fields[at]) * _COUNTED_BYTES for at in (_READ_FIELD, _WRITTEN_FIELD))
        return (read, written) if kept else None
    except (OSError, ValueError, IndexError):
        return None


def layer_facts(layer: Layer) -> kept.Layer:
    """A layer as it stands in a result."""
    facts: kept.Layer = {"name": layer.name, "numbers": layer.numbers}
    if layer.backing is not None:
        dio = read_word(layer.disk / "loop" / "dio")
        facts["backing"] = str(layer.backing)
        # Without direct I/O the page cache stands between the loop device and its file.
        facts["through_page_cache"] = None if dio is None else dio == "0"
    if (cache := layer.setting("write_cache")) is not None:
        facts["write_cache"] = cache
    if (rotational := layer.setting("rotational")) is not None:
        facts["rotational"] = rotational == "1"
    algorithm = read_word(layer.disk / "comp_algorithm")
    if algorithm is not None:
        facts["compresses"] = algorithm
    return facts
