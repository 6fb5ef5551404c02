"""Which device files there are, and what one says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raidlab.errors import InputError
from raidlab.study.device import DeviceModel, load_device
from raidlab.study.find import device_names, did_you_mean, find_device

_ABOUT = ("name", "description", "provenance")
# What DiskSim's own files end in: they serve as a device without being written out first.
DISKSIM_ENDINGS = (".parv", ".diskspecs", ".model")
_TIMES = ("overhead", "seek", "rotation", "transfer")


@dataclass(frozen=True)
class Listed:
    """A device that can be named.

    Attributes
    ----------
    name : str
    kind : str
    capacity_bytes : int or None
        None where the file cannot be read.
    description : str
        What it stands for, or what is wrong with it.
    """

    name: str
    kind: str
    capacity_bytes: int | None
    description: str


@dataclass(frozen=True)
class DeviceFacts:
    """What is known of a device.

    Attributes
    ----------
    name : str
        The name or path it was asked for by.
    kind, title, description : str
    capacity_bytes, sector_bytes : int
    idle_ms : dict of float
        Mean parts of a random read of 4 KiB when nothing waits: overhead, seek, rotation, transfer.
    parameters : dict
        What the file sets, by key; tables by their keys where provenance names those.
    provenance : dict
        Status and reason by the same keys, as far as the file tells.
    flash : dict or None
        Of flash drives what write amplification depends on: ``spare_factor``, ``units_per_block``, ``mapping_bytes``.
    """

    name: str
    kind: str
    title: str
    description: str
    capacity_bytes: int
    sector_bytes: int
    idle_ms: dict[str, float]
    parameters: dict[str, Any]
    provenance: dict[str, dict[str, str]]
    flash: dict[str, float] | None = None


def listed() -> list[Listed]:
    """Every device that can be named without a path."""
    return [_listed(name) for name in device_names()]


def _listed(name: str) -> Listed:
    try:
        model = load_device(name, _here())
    except ValueError as error:
        return Listed(name, "-", None, str(error))
    parameters = model.parameters
    return Listed(name, str(parameters["kind"]), model.capacity_bytes, _first_sentence(parameters))


def _first_sentence(parameters: dict[str, Any]) -> str:
    text = " ".join(str(parameters.get("description") or parameters.get("name") or "").split())
    return text.split(". ")[0].rstrip(".")


def load(device: str) -> DeviceModel:
    """A device by name or path, or one of DiskSim's files.

    Raises
    ------
    InputError
    """
    path = Path(device)
    if path.suffix in DISKSIM_ENDINGS:
        return _from_disksim(path)
    # A path counts from here, not from a folder of devices.
    if find_device(device, _here()) is None and not path.is_file():
        names = device_names()
        raise InputError.one(
            "device", f"there is no such device{did_you_mean(device, names)}", value=f"'{device}'", accepted=_accepted()
        )
    try:
        return load_device(device, _here())
    except ValueError as error:
        raise InputError.one("device", str(error), value=f"'{device}'") from None


def _from_disksim(file: Path) -> DeviceModel:
    from raidlab.formats.disksim import import_disk

    device = import_disk(file).device
    try:
        return load_device(device, _here())
    except ValueError as error:
        raise InputError.one("device", str(error), value=f"'{file}'") from None


def _accepted() -> str:
    return f"{', '.join(device_names()) or 'none found here'}, or the path of a device file (TOML)"


def _here() -> Path:
    return Path.cwd() / "-"


def describe(device: str) -> DeviceFacts:
    """What a device file says, and what follows from it."""
    from raidlab import _core

    model = load(device)
    parameters = model.parameters
    facts = _core.device_facts(json.dumps(parameters))
    provenance = dict(parameters.get("provenance", {}))
    return DeviceFacts(
        name=device,
        kind=str(parameters["kind"]),
        title=str(parameters.get("name", "")),
        description=" ".join(str(parameters.get("description", "")).split()),
        capacity_bytes=model.capacity_bytes,
        sector_bytes=model.sector_bytes,
        idle_ms={part: int(facts[f"idle_{part}_ns"]) / 1e6 for part in _TIMES},
        parameters=dict(_flat(parameters, provenance)),
        provenance=provenance,
        flash=facts.get("flash"),
    )


def _flat(parameters: dict[str, Any], provenance: dict[str, Any]) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, value in parameters.items():
        if key in _ABOUT or key == "kind":
            continue
        # One row a table, unless it has parts enough to be read one by one.
        if isinstance(value, dict) and key not in provenance:
            rows += [(f"{key}.{inner}", part) for inner, part in value.items()]
        else:
            rows.append((key, value))
    return rows
