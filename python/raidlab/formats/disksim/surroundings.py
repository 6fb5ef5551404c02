"""What stands around the disk in a parameter file: its bus, its controller, and what concerns it not at all.

Invariant: a block of a kind that DiskSim does not have is an error; a delay that would be added to the disk's times and
is not is named.
"""

from __future__ import annotations

from raidlab.formats.disksim.fields import Fields, Note
from raidlab.formats.disksim.grammar import Block, Document, Node

# Nothing in these changes what a disk takes for a command.
IRRELEVANT_KINDS = frozenset(
    {
        "disksim_global",
        "disksim_stats",
        "disksim_iodriver",
        "disksim_iosim",
        "disksim_iomap",
        "disksim_ioqueue",
        "disksim_logorg",
        "disksim_pf",
        "disksim_synthio",
        "disksim_synthgen",
        "disksim_syncset",
        "disksim_cachemem",
        "disksim_cachedev",
        "disksim_simpledisk",
        "disksim_device",
        "ssdmodel_ssd",
        "memsmodel_mems",
    }
)
_KNOWN_KINDS = IRRELEVANT_KINDS | {
    "disksim_disk",
    "disksim_bus",
    "disksim_ctlr",
    "dm_disk",
    "dm_layout_g1",
    "dm_layout_g1_zone",
    "dm_layout_g2",
    "dm_layout_g2_zone",
    "dm_layout_g4",
    "dm_mech_g1",
}
_BUS_TIMES = ("Read block transfer time", "Write block transfer time")


def check_kinds(document: Document) -> None:
    """Refuse a block of a kind that nobody knows."""
    for block in document.blocks:
        kind = document.whole(block).kind
        if kind not in _KNOWN_KINDS and not kind.startswith("disksim_") and not kind.endswith("_stats"):
            raise block.place.error(kind, "is no kind of block that DiskSim has", value=block.name)


def sector_ms(document: Document, disk: Block, notes: list[Note]) -> tuple[float, float]:
    """What the bus below which the disk hangs, and its controller, take for a sector, to the host and from it."""
    above = _above(document, disk.name)
    read_ms = write_ms = 0.0
    for node in reversed(above):
        block = document.named(document.types.get(node.name, node.name))
        if block is None:
            continue
        fields = Fields(block, document, notes)
        if block.kind == "disksim_bus":
            read_ms, write_ms = (
                max(own, fields.number(key)) for own, key in zip((read_ms, write_ms), _BUS_TIMES, strict=True)
            )
            fields.not_modelled("Arbitration time", 0, "the wait for the bus is not modelled")
        elif block.kind == "disksim_ctlr":
            own_ms = fields.number("Bulk sector transfer time", default=0.0)
            read_ms, write_ms = max(read_ms, own_ms), max(write_ms, own_ms)
            fields.not_modelled("Scale for delays", 0, "the controller's own delays are not modelled")
            # Only what is next to the disk shares in its transfers.
            break
    return read_ms, write_ms


def _above(document: Document, disk: str) -> list[Node]:
    """The components between the host and a disk of this type, from the host down."""
    for root in document.topology:
        path = _path(root, document, disk)
        if path is not None:
            return path
    return []


def _path(node: Node, document: Document, disk: str) -> list[Node] | None:
    if node.kind == "disksim_disk":
        return [] if document.types.get(node.name, node.name) == disk else None
    for below in node.below:
        path = _path(below, document, disk)
        if path is not None:
            return [node, *path]
    return None
