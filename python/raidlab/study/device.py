"""Device files: the parameters of a modelled disk, read but not interpreted.

Invariants:

- The file's keys go to the engine as they are; only what a study must know to check itself (capacity, sector) is
  worked out here.
- A missing or malformed file is a `ValueError` with one sentence. So is one with control characters in its texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raidlab.reading import Plain
from raidlab.study.find import device_names, did_you_mean, find_device
from raidlab.study.table_file import read_named
from raidlab.study.words import without_control

DEFAULT_SECTOR_BYTES = 512
KINDS = ("hdd", "ssd", "fixed", "empirical", "random")


@dataclass(frozen=True)
class DeviceModel:
    """A device model as the engine takes it."""

    name: str
    """The file's name or ``inline``."""
    parameters: dict[str, Plain]
    """What the engine is given."""
    capacity_bytes: int
    sector_bytes: int
    published: tuple[Plain, ...] = field(default=(), compare=False)
    """Figures that were printed of it; they change nothing in the model (`raidlab.devices.published`)."""


def load_device(device: str | Mapping[str, Plain], beside: Path) -> DeviceModel:
    """Read a device by name, by path relative to the file ``beside`` (the study's), or from an inline table."""
    if not isinstance(device, str):
        return _model("inline", dict(device))
    file = find_device(device, beside)
    if file is None:
        names = device_names()
        raise ValueError(f"there is no such device file{did_you_mean(device, names)}")
    return _model(device, read_named(file))


def moved_device(model: DeviceModel, values: Mapping[str, float]) -> DeviceModel:
    """The same device with other values for some keys, such as ``seek.min_ms``."""
    document = json.loads(json.dumps(model.parameters))
    for key, value in values.items():
        *tables, last = key.split(".")
        inner = document
        for step in tables:
            inner = inner.get(step, {})
        if not isinstance(inner.get(last), int | float):
            raise ValueError(f"{model.name} has no number '{key}'")
        inner[last] = value
    return _model(model.name, document)


def _model(name: str, document: dict[str, Plain]) -> DeviceModel:
    from raidlab import _core

    for place, text in _texts(document):
        try:
            without_control(text, "" if place.endswith("name") else "\n\t")
        except ValueError as error:
            raise ValueError(f"{place} {error}") from None
    published = document.pop("published", [])
    if not isinstance(published, list):
        raise ValueError("published is no list of tables; accepted: [[published]] tables")
    if document.get("kind") not in KINDS:
        raise ValueError(f"has kind = {document.get('kind')!r}; accepted: {', '.join(KINDS)}")
    try:
        facts = _core.device_facts(json.dumps(document))
    except _core.CellError as error:
        raise ValueError(f"is no device model: {error}") from None
    return DeviceModel(name, document, facts["capacity_bytes"], facts["sector_bytes"], tuple(published))


def _texts(value: Plain, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a document, keys too, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield "the name of a key", key
            yield from _texts(item, f"{place}.{key}".lstrip("."))
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            yield from _texts(item, f"{place}[{index}]")
