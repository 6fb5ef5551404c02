"""Layout models: where the sectors lie.

- ``dm_layout_g1``: zones with skews, spares and slips
- ``dm_layout_g2``: zones, and a map of extents in a file of its own
- ``dm_layout_g4``: an index of repeated patterns
"""

from __future__ import annotations

import re
from typing import Any

from raidlab.formats.disksim.fields import Fields, whole_of
from raidlab.formats.disksim.grammar import Block, Entry
from raidlab.reading import read_text

_MAPPINGS = {0: "normal", 1: "serpentine_by_zone", 2: "serpentine"}
_SPARING = {
    0: "none",
    1: "tracks_per_zone",
    2: "sectors_per_cylinder",
    3: "sectors_per_track",
    4: "sectors_per_cylinder_slip_to_end",
    5: "sectors_at_cylinder_front",
    6: "sectors_at_cylinder_front_slip_to_end",
    7: "end_of_disk",
    8: "sectors_per_range",
    9: "sectors_per_zone",
    10: "sectors_per_zone_slip_to_end",
}
_SKEW_UNITS = ("sectors", "revolutions")
_NODE_NUMBERS = 8
_SLIP_NUMBERS, _REMAP_NUMBERS, _TRACK_NUMBERS = 2, 6, 3


def layout_keys(layout: Fields, sectors: int) -> dict[str, Any]:
    """The keys of a device file that say what a layout model says.

    Parameters
    ----------
    layout : Fields
        The block of the layout model.
    sectors : int
        The disk's block count.
    """
    kinds = {"dm_layout_g1": _zones, "dm_layout_g2": _extents, "dm_layout_g4": _index}
    read = kinds.get(layout.block.kind)
    if read is None:
        raise layout.block.place.error(
            "Layout Model", "is not known", value=layout.block.kind, accepted=", ".join(kinds)
        )
    keys = read(layout, sectors)
    layout.finish()
    return keys


def _zones(layout: Fields, _sectors: int) -> dict[str, Any]:
    mapping = layout.choice("LBN-to-PBN mapping scheme", _MAPPINGS)
    sparing: Any = layout.choice("Sparing scheme used", _SPARING)
    cylinders = layout.whole("Rangesize for sparing", 1)
    if sparing == "sectors_per_range":
        sparing = {"sectors_per_range": {"cylinders": cylinders}}
    unit = _skew_unit(layout, "sectors")
    zones = [_zone(zone, unit) for zone in _blocks(layout, "Zones", "dm_layout_g1_zone")]
    if any(zone["spares"] for zone in zones) and sparing in ("none", "end_of_disk"):
        layout.note("Sparing scheme used", "the number of spares counts for nothing in this scheme")
    return {"mapping": mapping, "sparing": sparing, "zones": zones}


def _zone(zone: Fields, unit: str) -> dict[str, Any]:
    unit = _skew_unit(zone, unit)
    first, last = zone.whole("First cylinder number"), zone.whole("Last cylinder number")
    if last < first:
        raise zone.entry("Last cylinder number").place.error(
            "Last cylinder number", "lies before the first", value=str(last)
        )
    defects = zone.wholes("defects")
    if len(defects) % 2:
        raise zone.entry("defects").place.error("defects", "must be pairs of a place and what replaces it")
    keys = {
        "first_cylinder": first,
        "cylinders": last - first + 1,
        "sectors_per_track": zone.whole("Blocks per track", 1),
        "start_angle": _skew(zone, "Offset of first block", unit),
        "track_skew": _skew(zone, "Skew for track switch", unit),
        "cylinder_skew": _skew(zone, "Skew for cylinder switch", unit),
        "reserved_sectors": zone.whole("Empty space at zone front"),
        "spares": zone.whole("Number of spares"),
        "slips": zone.wholes("slips"),
        "remaps": [list(pair) for pair in zip(defects[::2], defects[1::2], strict=True)],
    }
    zone.finish()
    return keys


def _skew_unit(fields: Fields, inherited: str) -> str:
    entry = fields.optional("Skew units")
    if entry is None:
        return inherited
    if entry.value not in _SKEW_UNITS:
        raise entry.place.error("Skew units", "is not known", value=entry.shown(), accepted=", ".join(_SKEW_UNITS))
    return str(entry.value)


def _skew(fields: Fields, key: str, unit: str) -> dict[str, Any]:
    value = fields.number(key, default=0.0)
    if unit == "revolutions":
        return {"revolutions": value}
    if value != int(value):
        # DiskSim drops the fraction, too; so it is said.
        fields.note(key, f"the fraction of a sector is dropped: {int(value)} sectors")
    return {"sectors": int(value)}


def _blocks(fields: Fields, key: str, kind: str) -> list[Fields]:
    entry = fields.entry(key)
    if not isinstance(entry.value, list) or not entry.value:
        raise entry.place.error(key, "is no list of blocks", value=entry.shown())
    found = []
    for item in entry.value:
        block = item.value
        if isinstance(block, str):
            block = fields.document.named(block) or block
        if not isinstance(block, Block) or fields.document.whole(block).kind != kind:
            raise item.place.error(key, "is not what belongs here", value=item.shown(), accepted=f"{kind} {{ ... }}")
        found.append(Fields(fields.document.whole(block), fields.document, fields.notes))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# g2: a map of extents.

_EXTENT = re.compile(
    r"\s*lbn\s+(\d+)\s*-->\s*cyl\s+(\d+)\s*,\s*head\s+(\d+)\s*,\s*sect\s+(\d+)\s*,\s*(seqcnt|count)\s+(\d+)\s*"
)
_DEFECT = re.compile(r"\s*Defect at cyl\s+\d+\s*,\s*head\s+\d+\s*,\s*sect\s+\d+\s*")
_MAP_HEADER_LINES = 3


def _extents(layout: Fields, sectors: int) -> dict[str, Any]:
    bands = [_band(zone) for zone in _blocks(layout, "Zones", "dm_layout_g2_zone")]
    extents = _read_map(layout.entry("Layout Map File"))
    held = extents[-1][0] + extents[-1][4]
    if held != sectors:
        entry = layout.entry("Layout Map File")
        raise entry.place.error(
            "Layout Map File", f"places {held} sectors, not the {sectors} of the block count", value=entry.shown()
        )
    return {"layout": {"kind": "extents", "bands": bands, "extents": extents}}


def _band(zone: Fields) -> dict[str, Any]:
    unit = _skew_unit(zone, "sectors")
    # Which addresses a zone holds follows from the map.
    zone.irrelevant(["First LBN", "Last LBN"])
    keys = {
        "first_cylinder": zone.whole("First cylinder number"),
        "last_cylinder": zone.whole("Last cylinder number"),
        "sectors_per_track": zone.whole("Blocks per track", 1),
        "start_angle": _skew(zone, "Zone Skew", unit),
        "track_skew": _skew(zone, "Skew for track switch", unit),
        "cylinder_skew": _skew(zone, "Skew for cylinder switch", unit),
    }
    zone.finish()
    return keys


def _read_map(entry: Entry) -> list[list[int]]:
    file = entry.place.file.parent / str(entry.value)
    try:
        lines = read_text(file, "latin-1").splitlines()
    except OSError as error:
        raise entry.place.error("Layout Map File", f"cannot be read: {error.strerror}", value=entry.shown()) from None
    extents = []
    for number, line in enumerate(lines[_MAP_HEADER_LINES:], start=_MAP_HEADER_LINES + 1):
        match = _EXTENT.fullmatch(line)
        if match:
            # `seqcnt` counts the sectors that follow the first.
            count = int(match[6]) + (match[5] == "seqcnt")
            extents.append([int(match[1]), int(match[2]), int(match[3]), int(match[4]), count])
        elif line.strip() and not _DEFECT.fullmatch(line):
            place = type(entry.place)(file, number)
            raise place.error(
                "", "is no extent", value=line.strip(), accepted="lbn 0 --> cyl 0, head 0, sect 0, seqcnt 9"
            )
    if not extents:
        raise entry.place.error("Layout Map File", "holds no extent", value=entry.shown())
    return extents


# ---------------------------------------------------------------------------------------------------------------------
# g4: an index of patterns.


def _index(layout: Fields, sectors: int) -> dict[str, Any]:
    tracks = _rows(layout, "TP", _TRACK_NUMBERS)
    entry = layout.entry("IDX")
    if not isinstance(entry.value, list) or not entry.value:
        raise entry.place.error("IDX", "is no list of nodes", value=entry.shown())
    index: dict[str, Any] = {
        "kind": "index",
        "sectors": sectors,
        "tracks": tracks,
        "nodes": [_node(node) for node in entry.value],
        "slips": _rows(layout, "Slips", _SLIP_NUMBERS, lowest=None),
        "remaps": _rows(layout, "Remaps", _REMAP_NUMBERS),
    }
    return {"layout": index}


def _rows(layout: Fields, key: str, width: int, lowest: int | None = 0) -> list[list[int]]:
    entry = layout.entry(key)
    if not isinstance(entry.value, list) or len(entry.value) % width:
        raise entry.place.error(key, f"is no list of {width} numbers each", value=entry.shown())
    numbers = [whole_of(item, key, lowest, None) for item in entry.value]
    return [numbers[i : i + width] for i in range(0, len(numbers), width)]


def _node(node: Entry) -> list[dict[str, Any]]:
    if not isinstance(node.value, list):
        raise node.place.error("IDX", "is no node", value=node.shown(), accepted="[lbn, cyl, off, len, ...]")
    entries, items = [], list(node.value)
    while items:
        head, items = items[: _NODE_NUMBERS + 2], items[_NODE_NUMBERS + 2 :]
        if len(head) < _NODE_NUMBERS + 2:
            raise node.place.error("IDX", "breaks off within an entry", value=node.shown())
        kind, number = str(head[_NODE_NUMBERS].value), whole_of(head[_NODE_NUMBERS + 1], "IDX", 0, None)
        child: dict[str, Any]
        if kind == "TRACK" and items:
            child = {"track": {"track": number, "head": whole_of(items.pop(0), "IDX", 0, None)}}
        elif kind == "IDX":
            child = {"node": number}
        else:
            raise head[_NODE_NUMBERS].place.error("IDX", "is no child", value=kind, accepted="IDX n, TRACK n head")
        lbn, cyl, _, length, cyllen, _, runlen, cylrunlen = (_count(item) for item in head[:_NODE_NUMBERS])
        entries.append(
            {
                "lba": lbn,
                "cylinder": cyl,
                "angle": _fraction(head[2]),
                "sectors": length,
                "cylinders": cyllen,
                "turn": _fraction(head[5]),
                "run_sectors": runlen,
                "run_cylinders": cylrunlen,
                "child": child,
            }
        )
    return entries


def _count(item: Entry) -> int:
    # Angles stand among the whole numbers; they are read as such elsewhere.
    return int(item.value) if isinstance(item.value, (int, float)) else whole_of(item, "IDX", None, None)


def _fraction(item: Entry) -> float:
    if not isinstance(item.value, (int, float)):
        raise item.place.error("IDX", "is no angle", value=item.shown(), accepted="a share of a revolution")
    return float(item.value)
