"""Device files: the parameters of a modelled disk, read but not interpreted.

Invariants:

- The file's keys go to the engine as they are; only what a study must know to check itself (capacity, sector) is
  worked out here, and what a device like another one takes over (`raidlab.study.like`).
- A missing or malformed file is a `DeviceError` with one sentence, which names the file, the line and the key at fault.
  So is one with control characters in its texts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from raidlab.errors import Problem
from raidlab.reading import Plain, read_text
from raidlab.study.find import device_names, did_you_mean, find_device, nearest
from raidlab.study.like import LABEL, LikeError, like
from raidlab.study.places import Place, line_index, line_of, value_at, value_text, written
from raidlab.study.table_file import read_named, shown_file
from raidlab.study.words import without_control

DEFAULT_SECTOR_BYTES = 512
# Where partitions begin.
_PARTITION_BYTES = 1 << 20
# Tables of figures that a model is held to: printed of the device, and measured but not used for a fit.
FIGURES = ("published", "held_out")
# Of `[power]`, and more than any device draws.
POWER_KEYS = ("idle_watts", "active_watts")
MOST_WATTS = 1000.0
# Beyond so much a fitted model is not taken without a word: array models of others are 15 % off on average (M. Uysal,
# G. Alvarez and A. Merchant, MASCOTS 2001).
MOST_FIT_ERROR_PERCENT = 15.0
KINDS = ("hdd", "ssd", "fixed", "empirical", "random")
# Devices that are like one another, in a row.
_MOST_ALIKE = 16

# What the engine says of a value, in the words in which its reader says what it wanted.
_WRONG_TYPE = re.compile(r"invalid (?:type|value|length): (.*), expected (?:an? )?(.*)")
_UNKNOWN = re.compile(r"unknown (field|variant) `([^`]*)`(?:, expected (?:one of )?(.*)|, there are no fields)?")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_WANTED = {
    "f64": ("is not a number", "a number"),
    "string": ("is not text", "text in quotes"),
    "boolean": ("is not true or false", "true or false"),
    "sequence": ("is not a list", "a list in brackets"),
    "map": ("is not a table", "a table of keys"),
    "struct": ("is not a table", "a table of keys"),
    "variant": ("is not text", "text in quotes"),
}


class DeviceError(ValueError):
    """What is wrong with a device: a problem that names the key, and where it is known the file and the line."""

    def __init__(self, problem: Problem, place: Place = (), value: object = None) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.place = place
        """The key, in the device's own table."""
        self.value = value


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
    file: Path | None = field(default=None, compare=False)
    """Where it was read."""
    power: Mapping[str, Plain] = field(default_factory=dict, compare=False)
    """What it draws, with its source; it changes nothing in the model either."""
    held_out: tuple[Plain, ...] = field(default=(), compare=False)
    """Figures that were measured of it and not used when it was fitted, in the form of `published`."""
    fit: Mapping[str, Plain] = field(default_factory=dict, compare=False)
    """How well it was fitted (`raidlab device fit`)."""

    def area(self, count: int) -> DeviceModel:
        """One of so many areas side by side: whole MiB, as partitions are, where there is as much."""
        whole = self.capacity_bytes // count
        step = max(_PARTITION_BYTES, self.sector_bytes)
        step = step if whole >= step else self.sector_bytes
        return replace(self, capacity_bytes=whole // step * step)

    @property
    def sheet(self) -> dict[str, Plain]:
        """What its file says that is no parameter of the model; results keep it beside the parameters."""
        said: dict[str, Plain] = {
            "published": list(self.published),
            "held_out": list(self.held_out),
            "power": dict(self.power),
            "fit": dict(self.fit),
        }
        return {key: value for key, value in said.items() if value}


def fit_error_percent(fit: Mapping[str, Plain]) -> float | None:
    """How far the throughputs of a fitted device may be off, with 90 %; None where nothing is said."""
    error = fit.get("error_percent")
    return float(error) if isinstance(error, int | float) else None


_FIT_KEYS = ("error_percent", "validation", "drift_percent", "demerit_percent", "requests", "seed")


def fit_warning(name: str, fit: Mapping[str, object]) -> str | None:
    """What is to be said before a fitted device is believed; None where it predicts what was held out."""
    error = fit.get("error_percent")
    if not isinstance(error, int | float) or error <= MOST_FIT_ERROR_PERCENT:
        return None
    # Only a fit of a trace states a demerit, and measuring longer is no advice there.
    is_traced = "demerit_percent" in fit
    advice = "a longer trace says more of each kind" if is_traced else "fit it again, longer or on a quieter machine"
    # Of a trace it is the worst group; of a device, single turns, which the means of a table hide.
    of_what = "" if is_traced else " in nine of ten turns"
    return (
        f"{name} was fitted, and its model missed what was held out by up to {error:.3g} %{of_what} (accepted: "
        f"{MOST_FIT_ERROR_PERCENT:g} %): what is simulated with it may be off by as much; {advice}"
    )


def load_device(device: str | Mapping[str, Plain], beside: Path) -> DeviceModel:
    """Read a device by name, by path relative to the file ``beside`` (the study's), or from an inline table."""
    if not isinstance(device, str):
        return _model("inline", _completed(dict(device), beside, None, ()), None, device)
    file = find_device(device, beside)
    if file is None:
        names = device_names()
        raise ValueError(f"there is no such device file{did_you_mean(device, names)}")
    said = read_named(file)
    return _model(device, _completed(said, file, file, (file.resolve(),)), file, said)


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
    return _model(model.name, document, None, document)


def revolution_of(device: Mapping[str, Any]) -> float | None:
    """How long a revolution takes, in ms, however the device says it; None of what has no medium."""
    if device.get("kind") != "hdd":
        return None
    return float(device.get("revolution_ms") or 60e3 / device["rpm"])


def medium_mb_s(device: Mapping[str, Any]) -> float | None:
    """The rate of a disk's medium at its front, where it is the highest; None of what has no medium."""
    zones, revolution_ms = device.get("zones"), revolution_of(device)
    if revolution_ms is None or not zones:
        return None
    return float(
        zones[0]["sectors_per_track"] * device.get("sector_bytes", DEFAULT_SECTOR_BYTES) / revolution_ms / 1000
    )


def _completed(said: dict[str, Plain], beside: Path, file: Path | None, chain: tuple[Path, ...]) -> dict[str, Plain]:
    """What a device says, with what it takes over from the one it is like; ``chain``: who asked."""
    if "like" not in said:
        return said
    name = said["like"]
    others = device_names()
    accepted = f"{nearest(str(name), others)}, or a path"
    if not isinstance(name, str):
        raise _error(file, ("like",), "is not the name of a device", name, accepted)
    other = find_device(name, beside)
    if other is None:
        raise _error(file, ("like",), f"there is no such device{did_you_mean(name, others)}", name, accepted)
    if other.resolve() in chain:
        way = " -> ".join(path.name for path in (*chain, other))
        raise _error(file, ("like",), f"comes back to itself ({way})", name, "a device that is like no other of these")
    if len(chain) >= _MOST_ALIKE:
        message = f"is like one that is like another, {len(chain)} times in a row"
        raise _error(file, ("like",), message, name, f"at most {_MOST_ALIKE} times")
    base = _model(name, _completed(read_named(other), other, other, (*chain, other.resolve())), other, {})
    try:
        return like(said, base.parameters, name)
    except LikeError as error:
        raise _error(file, _place(error.key), error.message, error.value, error.accepted) from None


def _model(name: str, document: dict[str, Plain], file: Path | None, said: Mapping[str, Plain]) -> DeviceModel:
    """The model of a complete document; ``said``: what stands in the file, in which mistakes are looked for."""
    from raidlab import _core

    for place, text in _texts(document):
        try:
            without_control(text, "" if place.endswith("name") else "\n\t")
        except ValueError as error:
            accepted = "text without control characters"
            raise _error(file, _place(place), str(error), text, accepted) from None
    document = dict(document)
    figures: dict[str, list[Plain]] = {}
    for key in FIGURES:
        given = document.pop(key, [])
        if not isinstance(given, list):
            raise _error(file, (key,), "is no list of tables", given, f"[[{key}]] tables")
        figures[key] = given
    fit = _fit(document.pop("fit", {}), file)
    power = _power(document.pop("power", {}), file)
    kind = document.get("kind")
    if kind not in KINDS:
        message = "is missing" if kind is None else "is no kind of device"
        raise _error(file, ("kind",), message, kind, f"{', '.join(KINDS)}; or like = 'hdd-7200', say")
    try:
        facts = _core.device_facts(json.dumps(document))
    except _core.CellError as error:
        raise _explained(file, document, said, error.key, error.message) from None
    published, held_out = (tuple(figures[key]) for key in FIGURES)
    sizes = (facts["capacity_bytes"], facts["sector_bytes"])
    return DeviceModel(name, document, *sizes, published, file, power, held_out, fit)


def _explained(
    file: Path | None, document: Mapping[str, Plain], said: Mapping[str, Plain], key: str, message: str
) -> DeviceError:
    """What the engine says of a device, as a mistake at a key of its file."""
    place = _place(key)
    value = value_at(document, place)
    message, _, accepted = message.partition("; accepted: ")
    if (wrong := _WRONG_TYPE.fullmatch(message)) is not None:
        found, wanted = wrong.groups()
        place, value = _leaf(document, place, found)
        word = wanted.split(" ")[0].strip("`")
        message, accepted = _WANTED.get(word, ("is of the wrong kind", wanted))
        if re.fullmatch(r"[ui]\d+", word):
            message = "is out of range" if found.startswith("integer") else "is not a whole number"
            accepted = "a whole number from 0 up"
    elif (unknown := _UNKNOWN.fullmatch(message)) is not None:
        what, word, known = unknown.groups()
        names = re.findall(r"`([^`]*)`", known or "")
        if what == "field":
            place, value = place if place[-1:] == (word,) else (*place, word), None
            if "like" in said and len(place) == 1 and document.get("kind") == "hdd":
                names = [*names, *LABEL]
        else:
            value = word
        message = f"{'unknown key' if what == 'field' else 'is not known here'}{did_you_mean(word, names)}"
        accepted = ", ".join(names) or "no keys"
    elif (missing := re.fullmatch(r"missing field `(.*)`", message)) is not None:
        place, value, message = (*place, missing[1]), None, "is missing"
    elif message != "is not known here":
        # A sentence of the model's own, which has the value with its unit.
        value = None
    return _error(file, place, message, value, accepted or None)


def _place(key: str) -> Place:
    return tuple(name or int(number) for name, number in _STEP.findall(key))


def _leaf(document: Mapping[str, Plain], place: Place, found: str) -> tuple[Place, Plain]:
    """The value within a table of which the engine says what it is (``string "x"``), where there is only one such."""
    value = value_at(document, place)
    if isinstance(value, Mapping):
        text = found.partition(" ")[2].strip("`")
        same = [key for key, item in value.items() if text in (json.dumps(item), str(item))]
        if len(same) == 1:
            return (*place, same[0]), value[same[0]]
    return place, value


def _error(file: Path | None, place: Place, message: str, value: object, accepted: str | None) -> DeviceError:
    """A mistake at a key; what is longer than a line is not shown."""
    shown = None if value is None or isinstance(value, Mapping | list) else value_text(value)
    line = None
    if file is not None:
        line = line_of(line_index(read_text(file)), place)
    problem = Problem("" if file is None else shown_file(file), written(place), message, shown, accepted, line)
    return DeviceError(problem, place, None if shown is None else value)


def _fit(table: Plain, file: Path | None) -> Mapping[str, Plain]:
    """How a fit went. What were overlooked here would silence the warning that a model missed what was held out."""
    if not isinstance(table, Mapping):
        raise _error(file, ("fit",), "is no table", table, "[fit] as 'raidlab device fit' writes it")
    for key, value in table.items():
        if key not in _FIT_KEYS:
            message = f"unknown key{did_you_mean(key, _FIT_KEYS)}"
            raise _error(file, ("fit", key), message, None, ", ".join(_FIT_KEYS))
        if key == "validation":
            is_right, accepted = value in ("passed", "failed"), "'passed' or 'failed'"
        else:
            # What drifted became slower, or faster.
            least = -100 if key == "drift_percent" else 0
            is_right = not isinstance(value, bool) and isinstance(value, int | float) and least <= value < math.inf
            accepted = f"a finite number from {least}"
        if not is_right:
            raise _error(file, ("fit", key), "is not what a fit says", value, accepted)
    return table


def _power(table: Plain, file: Path | None) -> Mapping[str, Plain]:
    """What a device draws: watts when idle and when busy all the time, and where that is printed."""
    if not isinstance(table, Mapping):
        raise _error(file, ("power",), "is no table", table, "[power] with idle_watts, active_watts and source")
    if not table:
        return {}
    if strange := sorted(set(table) - {*POWER_KEYS, "source"}):
        raise _error(file, ("power", strange[0]), "unknown key", None, f"{', '.join(POWER_KEYS)}, source")
    for key in POWER_KEYS:
        watts = table.get(key)
        if isinstance(watts, bool) or not isinstance(watts, int | float) or not 0 <= watts <= MOST_WATTS:
            message = "is missing" if watts is None else "is not a number of watts"
            raise _error(file, ("power", key), message, watts, f"a number from 0 to {MOST_WATTS:g}")
    if not isinstance(table.get("source"), str) or not table["source"]:
        raise _error(file, ("power", "source"), "is missing", None, "where the watts are printed")
    return table


def _texts(value: Plain, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a document, keys too, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield f"{place}.{key}".lstrip("."), key
            yield from _texts(item, f"{place}.{key}".lstrip("."))
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            yield from _texts(item, f"{place}[{index}]")
