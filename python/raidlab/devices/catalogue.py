"""Which device files there are, and what one says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from raidlab.errors import InputError
from raidlab.reading import Plain
from raidlab.study.device import DeviceError, DeviceModel, load_device
from raidlab.study.device_figures import published_figures
from raidlab.study.find import device_names, did_you_mean, find_device, nearest

_ABOUT = ("kind", "name", "description", "provenance")
# What DiskSim's own files end in: they serve as a device without being written out first.
DISKSIM_ENDINGS = (".parv", ".diskspecs", ".model")


# Characters of a value that is shown whole.
_SHORT = 60


@dataclass(frozen=True)
class CatalogueEntry:
    """A device that can be named."""

    name: str
    kind: str
    capacity_bytes: int | None
    """None where the file cannot be read."""
    description: str
    """What it stands for, or what is wrong with it."""


@dataclass(frozen=True)
class DeviceFacts:
    """What is known of a device."""

    name: str
    """The name or path it was asked for by."""
    kind: str
    title: str
    description: str
    capacity_bytes: int
    sector_bytes: int
    idle_ms: dict[str, float]
    """Mean parts of a random read of 4 KiB when nothing waits: overhead, seek, rotation, transfer."""
    parameters: Mapping[str, Plain]
    """What the file sets, by key; tables by their keys where provenance names those."""
    provenance: Mapping[str, Plain]
    """Status and reason by the same keys, as far as the file tells."""
    flash: dict[str, float] | None = None
    """Of flash drives what write amplification depends on: ``spare_factor``, ``units_per_block``,
    ``mapping_bytes``."""

    def source_of(self, key: str) -> tuple[str, str] | None:
        """The status of a parameter and why, of itself or of the table that it is in; None where nothing is told."""
        told = self.provenance.get(key) or self.provenance.get(key.split(".", maxsplit=1)[0])
        return (str(told["status"]), str(told["why"])) if isinstance(told, Mapping) else None


def catalogue_entries() -> list[CatalogueEntry]:
    """Every device that can be named without a path."""
    return [_entry(name) for name in device_names()]


def _entry(name: str) -> CatalogueEntry:
    try:
        model = load_device(name, _here())
    except ValueError as error:
        return CatalogueEntry(name, "-", None, str(error))
    about = str(model.parameters.get("description") or model.parameters.get("name") or "")
    first_sentence = " ".join(about.split()).split(". ")[0].rstrip(".")
    return CatalogueEntry(name, str(model.parameters["kind"]), model.capacity_bytes, first_sentence)


def load(device: str) -> DeviceModel:
    """A device by name or path, or one of DiskSim's files."""
    path = Path(device)
    given: str | Mapping[str, Plain] = device
    if path.suffix in DISKSIM_ENDINGS:
        from raidlab.formats.disksim import import_disk

        given = import_disk(path).device
    # A path counts from here, not from a folder of devices.
    elif find_device(device, _here()) is None:
        names = device_names()
        accepted = f"{nearest(device, names)}, or the path of a device file (TOML)"
        message = f"there is no such device{did_you_mean(device, names)}"
        raise InputError.one("device", message, value=f"'{device}'", accepted=accepted)
    try:
        return load_device(given, _here())
    except DeviceError as error:
        raise InputError([error.problem]) from None
    except ValueError as error:
        raise InputError.one("device", str(error), value=f"'{device}'") from None


def _here() -> Path:
    return Path.cwd() / "-"


def describe(device: str) -> DeviceFacts:
    """What a device file says, and what follows from it."""
    from raidlab import _core

    model = load(device)
    # What is shown of a device has to be what its page would have.
    published_figures(model)
    parameters = model.parameters
    facts = _core.device_facts(json.dumps(parameters))
    told = parameters.get("provenance")
    provenance = told if isinstance(told, Mapping) else {}
    return DeviceFacts(
        name=device,
        kind=str(parameters["kind"]),
        title=str(parameters.get("name", "")),
        description=" ".join(str(parameters.get("description", "")).split()),
        capacity_bytes=model.capacity_bytes,
        sector_bytes=model.sector_bytes,
        idle_ms={
            "overhead": facts["idle_overhead_ns"] / 1e6,
            "seek": facts["idle_seek_ns"] / 1e6,
            "rotation": facts["idle_rotation_ns"] / 1e6,
            "transfer": facts["idle_transfer_ns"] / 1e6,
        },
        parameters=dict(_flat(parameters, provenance)),
        provenance=provenance,
        flash=facts.get("flash"),
    )


def _flat(parameters: Mapping[str, Plain], provenance: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """One row a table, unless it has parts enough to be read one by one."""
    for key, value in parameters.items():
        if isinstance(value, Mapping) and key not in (*_ABOUT, *provenance):
            yield from ((f"{key}.{inner}", part) for inner, part in value.items())
        elif key not in _ABOUT:
            yield key, value


def short_value(value: Plain) -> str:
    """A value as its file has it, where that is short; of a longer one how many entries it has.

    Examples
    --------
    >>> short_value({"ms": 1.2}), short_value(list(range(40))), short_value("segment")
    ('{"ms": 1.2}', '40 entries', 'segment')
    """
    text = json.dumps(value)
    if len(text) <= _SHORT:
        return text.strip('"')
    return f"{len(value)} entries" if isinstance(value, list | dict) else f"{text[: _SHORT - 3]}..."
