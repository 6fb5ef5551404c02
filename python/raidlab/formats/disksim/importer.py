"""A DiskSim parameter file as a device file.

Any of its files will do: a whole set-up (``.parv``), the disks alone (``.diskspecs``), or the mechanics alone
(``.model``), which then have no electronics.

Invariant: what comes out compiles, and holds as many sectors as the file says, or fewer, which a note says, where its
layout has no room for them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from raidlab.errors import InputError
from raidlab.formats.disksim.electronics import electronics_keys
from raidlab.formats.disksim.fields import Fields, Note
from raidlab.formats.disksim.grammar import Block, Document, parse_file
from raidlab.formats.disksim.layout import layout_keys
from raidlab.formats.disksim.mechanics import mechanics_keys
from raidlab.reading import Plain

SECTOR_BYTES = 512
# Beside those whose names begin with ``disksim_`` or end in ``_stats``.
_KINDS = {
    "dm_disk",
    "dm_layout_g1",
    "dm_layout_g1_zone",
    "dm_layout_g2",
    "dm_layout_g2_zone",
    "dm_layout_g4",
    "dm_mech_g1",
    "ssdmodel_ssd",
    "memsmodel_mems",
}


@dataclass(frozen=True)
class DiskImport:
    """A disk from a parameter file."""

    name: str
    """What the file calls it."""
    device: dict[str, Plain]
    """The device file's keys, in order."""
    notes: tuple[Note, ...]
    """What the file says that the model does not have."""


def import_disk(file: Path, disk: str | None = None) -> DiskImport:
    """Read a disk from a DiskSim parameter file; ``disk`` says which, where there are several."""
    document = parse_file(file)
    _check_kinds(document)
    notes: list[Note] = []
    block = _chosen(document, file, disk)
    fields = Fields(block, document, notes)
    if block.kind == "dm_disk":
        model, keys = fields, {**_model_keys(fields), "scheduler": "fifo"}
    else:
        model, electronics = fields.inner("Model"), electronics_keys(fields)
        keys = {**_model_keys(model), **electronics}
    name = block.name.removesuffix("_model").removesuffix("_validate")
    published: Plain = {"status": "published", "why": f"{file.name} of DiskSim"}
    provenance = dict.fromkeys(("sector_bytes", *keys), published)
    device: dict[str, Plain] = {
        "kind": "hdd",
        "name": name,
        "description": f"imported from DiskSim's {file.name}",
        "sector_bytes": SECTOR_BYTES,
        **keys,
        "provenance": provenance,
    }
    room = _sectors(device, file)
    count = model.whole("Block count", 1)
    if room < count:
        model.note("Block count", f"the layout holds {room} sectors; those count")
    elif room > count:
        device["sectors"] = count
        provenance["sectors"] = published
        _sectors(device, file)
    return DiskImport(name, device, tuple(notes))


def _check_kinds(document: Document) -> None:
    """Refuse a block of a kind that nobody knows."""
    for block in document.blocks:
        kind = document.whole(block).kind
        if kind not in _KINDS and not kind.startswith("disksim_") and not kind.endswith("_stats"):
            raise block.place.error(kind, "is no kind of block that DiskSim has", value=block.name)


def _chosen(document: Document, file: Path, wanted: str | None) -> Block:
    whole = [document.whole(block) for block in document.blocks]
    disks = [block for block in whole if block.kind == "disksim_disk"] or [
        block for block in whole if block.kind == "dm_disk"
    ]
    used = set(document.types.values())
    # A set-up may define disks that it does not use.
    candidates = [block for block in disks if block.name in used] or disks
    if wanted is not None:
        candidates = [block for block in disks if block.name == wanted]
    if len(candidates) == 1:
        return candidates[0]
    names = ", ".join(block.name for block in disks)
    if not disks:
        raise InputError.one("", "holds no disk", accepted="a disksim_disk or dm_disk block", file=str(file))
    message = "has no disk of this name" if wanted else "has several disks"
    raise InputError.one("--disk", message, value=wanted, accepted=names, file=str(file))


def _model_keys(model: Fields) -> dict[str, Plain]:
    if model.block.kind != "dm_disk":
        raise model.block.place.error("Model", "is not known", value=model.block.kind, accepted="dm_disk")
    sectors = model.whole("Block count", 1)
    layout = layout_keys(model.inner("Layout Model"), sectors)
    mechanics = mechanics_keys(model.inner("Mechanical Model"))
    keys: dict[str, Plain] = {
        "rpm": mechanics.pop("rpm"),
        "rpm_error_percent": mechanics.pop("rpm_error_percent"),
        "heads": model.whole("Number of data surfaces", 1),
        "cylinders": model.whole("Number of cylinders", 1),
        **layout,
        **mechanics,
    }
    model.finish()
    return keys


def _sectors(device: dict[str, Plain], file: Path) -> int:
    """How many sectors the device's model has."""
    from raidlab import _core

    try:
        facts = _core.device_facts(json.dumps(device))
    except _core.CellError as error:
        raise InputError.one(error.key, f"does not make a disk: {error.message}", file=str(file)) from None
    return int(facts["capacity_bytes"]) // SECTOR_BYTES
