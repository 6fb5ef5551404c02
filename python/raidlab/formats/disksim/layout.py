"""Layout models: where the sectors lie.

- ``dm_layout_g1``: zones with skews, spares and slips
- ``dm_layout_g2``: zones, and a map of extents in a file of its own
- ``dm_layout_g4``: an index of repeated patterns
"""

from __future__ import annotations

import re

from raidlab.formats.disksim.fields import Fields, whole_of
from raidlab.formats.disksim.grammar import WHOLE, Entry, SourcePlace
from raidlab.reading import Plain

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
_SLIP_NUMBERS, _REMAP_NUMBERS, _TRACK_NUMBERS = 2, 6, 3
# What an entry of a node of an index holds before its child, in order; angles are shares of a revolution.
_NODE_NUMBERS = ("lba", "cylinder", "angle", "sectors", "cylinders", "turn", "run_sectors", "run_cylinders")
_ANGLES = ("angle", "turn")


def layout_keys(layout: Fields, sectors: int) -> dict[str, Plain]:
    """The keys of a device file that say what a layout model says of a disk of so many sectors."""
    kinds = {"dm_layout_g1": _zones, "dm_layout_g2": _extents, "dm_layout_g4": _index}
    read = kinds.get(layout.block.kind)
    if read is None:
        raise layout.block.place.error(
            "Layout Model", "is not known", value=layout.block.kind, accepted=", ".join(kinds)
        )
    keys = read(layout, sectors)
    layout.finish()
    return keys


def _zones(layout: Fields, _sectors: int) -> dict[str, Plain]:
    mapping = layout.choice("LBN-to-PBN mapping scheme", _MAPPINGS)
    sparing: Plain = layout.choice("Sparing scheme used", _SPARING)
    cylinders = layout.whole("Rangesize for sparing", 1)
    if sparing == "sectors_per_range":
        sparing = {"sectors_per_range": {"cylinders": cylinders}}
    unit = _skew_unit(layout, "sectors")
    zones = [_zone(zone, unit) for zone in layout.blocks("Zones", "dm_layout_g1_zone")]
    if any(zone["spares"] for zone in zones) and sparing in ("none", "end_of_disk"):
        layout.note("Sparing scheme used", "the number of spares counts for nothing in this scheme")
    return {"mapping": mapping, "sparing": sparing, "zones": zones}


def _zone(zone: Fields, unit: str) -> dict[str, Plain]:
    unit = _skew_unit(zone, unit)
    first, last = zone.whole("First cylinder number"), zone.whole("Last cylinder number")
    if last < first:
        raise zone.refuse("Last cylinder number", "lies before the first")
    defects = zone.wholes("defects")
    if len(defects) % 2:
        raise zone.entry("defects").place.error("defects", "must be pairs of a place and what replaces it")
    keys: dict[str, Plain] = {
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


def _skew(fields: Fields, key: str, unit: str) -> dict[str, Plain]:
    value = fields.number(key, default=0.0)
    if unit == "revolutions":
        return {"revolutions": value}
    if value != int(value):
        # DiskSim drops the fraction, too; so it is said.
        fields.note(key, f"the fraction of a sector is dropped: {int(value)} sectors")
    return {"sectors": int(value)}


# ---------------------------------------------------------------------------------------------------------------------
# g2: a map of extents.

_EXTENT = re.compile(
    rf"\s*lbn\s+({WHOLE})\s*-->\s*cyl\s+({WHOLE})\s*,\s*head\s+({WHOLE})\s*,\s*sect\s+({WHOLE})\s*,"
    rf"\s*(seqcnt|count)\s+({WHOLE})\s*"
)
_DEFECT = re.compile(r"\s*Defect at cyl\s+\d+\s*,\s*head\s+\d+\s*,\s*sect\s+\d+\s*")
_MAP_HEADER_LINES = 3


def _extents(layout: Fields, sectors: int) -> dict[str, Plain]:
    bands = [_band(zone) for zone in layout.blocks("Zones", "dm_layout_g2_zone")]
    extents = _read_map(layout)
    placed = extents[-1][0] + extents[-1][4]
    if placed != sectors:
        raise layout.refuse("Layout Map File", f"places {placed} sectors, not the {sectors} of the block count")
    return {"layout": {"kind": "extents", "bands": bands, "extents": extents}}


def _band(zone: Fields) -> dict[str, Plain]:
    unit = _skew_unit(zone, "sectors")
    # Which addresses a zone holds follows from the map.
    zone.irrelevant(["First LBN", "Last LBN"])
    keys: dict[str, Plain] = {
        "first_cylinder": zone.whole("First cylinder number"),
        "last_cylinder": zone.whole("Last cylinder number"),
        "sectors_per_track": zone.whole("Blocks per track", 1),
        "start_angle": _skew(zone, "Zone Skew", unit),
        "track_skew": _skew(zone, "Skew for track switch", unit),
        "cylinder_skew": _skew(zone, "Skew for cylinder switch", unit),
    }
    zone.finish()
    return keys


def _read_map(layout: Fields) -> list[list[int]]:
    file, lines = layout.file_lines("Layout Map File")
    extents = []
    for number, line in enumerate(lines[_MAP_HEADER_LINES:], start=_MAP_HEADER_LINES + 1):
        match = _EXTENT.fullmatch(line)
        if match:
            # `seqcnt` counts the sectors that follow the first.
            count = int(match[6]) + (match[5] == "seqcnt")
            extents.append([int(match[1]), int(match[2]), int(match[3]), int(match[4]), count])
        elif line.strip() and not _DEFECT.fullmatch(line):
            accepted = "lbn 0 --> cyl 0, head 0, sect 0, seqcnt 9"
            raise SourcePlace(file, number).error("", "is no extent", value=line.strip(), accepted=accepted)
    if not extents:
        raise layout.refuse("Layout Map File", "holds no extent")
    return extents


# ---------------------------------------------------------------------------------------------------------------------
# g4: an index of patterns.


def _index(layout: Fields, sectors: int) -> dict[str, Plain]:
    index: dict[str, Plain] = {
        "kind": "index",
        "sectors": sectors,
        "tracks": _rows(layout, "TP", _TRACK_NUMBERS),
        "nodes": [_node(node) for node in layout.filled_list("IDX", "is no list of nodes")],
        "slips": _rows(layout, "Slips", _SLIP_NUMBERS, lowest=None),
        "remaps": _rows(layout, "Remaps", _REMAP_NUMBERS),
    }
    return {"layout": index}


def _rows(layout: Fields, key: str, width: int, lowest: int | None = 0) -> list[list[int]]:
    listed = layout.entry(key).value
    if not isinstance(listed, list) or len(listed) % width:
        raise layout.refuse(key, f"is no list of {width} numbers each")
    numbers = [whole_of(item, key, lowest) for item in listed]
    return [numbers[i : i + width] for i in range(0, len(numbers), width)]


def _node(node: Entry) -> list[dict[str, Plain]]:
    if not isinstance(node.value, list):
        raise node.place.error("IDX", "is no node", value=node.shown(), accepted="[lbn, cyl, off, len, ...]")
    entries, items = [], list(node.value)
    width = len(_NODE_NUMBERS)
    while items:
        head, items = items[: width + 2], items[width + 2 :]
        if len(head) < width + 2:
            raise node.place.error("IDX", "breaks off within an entry", value=node.shown())
        kind, number = str(head[width].value), whole_of(head[width + 1], "IDX", 0)
        child: Plain
        if kind == "TRACK" and items:
            child = {"track": {"track": number, "head": whole_of(items.pop(0), "IDX", 0)}}
        elif kind == "IDX":
            child = {"node": number}
        else:
            raise head[width].place.error("IDX", "is no child", value=kind, accepted="IDX n, TRACK n head")
        entry: dict[str, Plain] = {
            name: _angle(item) if name in _ANGLES else whole_of(item, "IDX")
            for name, item in zip(_NODE_NUMBERS, head[:width], strict=True)
        }
        entries.append({**entry, "child": child})
    return entries


def _angle(item: Entry) -> float:
    if not isinstance(item.value, (int, float)):
        raise item.place.error("IDX", "is no angle", value=item.shown(), accepted="a share of a revolution")
    return float(item.value)
