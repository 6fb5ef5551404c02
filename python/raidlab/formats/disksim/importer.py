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
from typing import Any

from raidlab.errors import InputError
from raidlab.formats.disksim.electronics import electronics_keys
from raidlab.formats.disksim.fields import Fields, Note
from raidlab.formats.disksim.grammar import Block, Document, parse_file
from raidlab.formats.disksim.layout import layout_keys
from raidlab.formats.disksim.mechanics import mechanics_keys
from raidlab.formats.disksim.surroundings import check_kinds, sector_ms

SECTOR_BYTES = 512


@dataclass(frozen=True)
class Imported:
    """A disk from a parameter file.

    Attributes
    ----------
    name : str
        What the file calls it.
    device : dict
        The device file's keys, in order.
    notes : tuple of Note
        What the file says that the model does not have.
    """

    name: str
    device: dict[str, Any]
    notes: tuple[Note, ...]


def import_disk(file: Path, disk: str | None = None) -> Imported:
    """Read a disk.

    Parameters
    ----------
    file : pathlib.Path
        A DiskSim parameter file.
    disk : str, optional
        Which of its disks, where there are several.

    Raises
    ------
    InputError
        With file, line, key and value, for whatever cannot be read or is not known.
    """
    document = parse_file(file)
    check_kinds(document)
    notes: list[Note] = []
    block = _chosen(document, file, disk)
    if block.kind == "dm_disk":
        model, electronics = Fields(block, document, notes), {"scheduler": "fifo"}
    else:
        fields = Fields(block, document, notes)
        model = fields.inner("Model")
        electronics = electronics_keys(fields, sector_ms(document, block, notes))
    name = block.name.removesuffix("_model").removesuffix("_validate")
    keys = {**_model_keys(model), **electronics}
    device = {
        "kind": "hdd",
        "name": name,
        "description": f"imported from DiskSim's {file.name}",
        "sector_bytes": SECTOR_BYTES,
        **keys,
    }
    device["provenance"] = {
        key: {"status": "published", "why": f"{file.name} of DiskSim"} for key in ("sector_bytes", *keys)
    }
    held = _sectors(device, file)
    count = model.whole("Block count", 1)
    if held < count:
        model.note("Block count", f"the layout holds {held} sectors; those count")
    elif held > count:
        device["sectors"] = count
        device["provenance"]["sectors"] = {"status": "published", "why": f"{file.name} of DiskSim"}
        _sectors(device, file)
    return Imported(name, device, tuple(notes))


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


def _model_keys(model: Fields) -> dict[str, Any]:
    if model.block.kind != "dm_disk":
        raise model.block.place.error("Model", "is not known", value=model.block.kind, accepted="dm_disk")
    sectors = model.whole("Block count", 1)
    layout = layout_keys(model.inner("Layout Model"), sectors)
    mechanics = mechanics_keys(model.inner("Mechanical Model"))
    keys = {
        "rpm": mechanics.pop("rpm"),
        "rpm_error_percent": mechanics.pop("rpm_error_percent"),
        "heads": model.whole("Number of data surfaces", 1),
        "cylinders": model.whole("Number of cylinders", 1),
        **layout,
        **mechanics,
    }
    model.finish()
    return keys


def _sectors(device: dict[str, Any], file: Path) -> int:
    """How many sectors the device's model has."""
    from raidlab import _core

    try:
        facts = _core.device_facts(json.dumps(device))
    except _core.CellError as error:
        raise InputError.one(error.key, f"does not make a disk: {error.message}", file=str(file)) from None
    return int(facts["capacity_bytes"]) // SECTOR_BYTES
