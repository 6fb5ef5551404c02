"""A device like another one: what its file says, and what follows from it for the rest.

``like = "hdd-nearline-20tb"`` takes every parameter of that device. A table of the file changes those keys of the
other's table that it says, unless it is of another kind. Of a rotating disk four words of a data sheet may be said
besides, which are no parameters: `LABEL`. Zones, heads, skews, the seek curve and the buffer follow from them.

Invariants:

- What comes out is an ordinary device document; nothing behind this file knows of ``like``.
- Each parameter that was not said has a line of provenance, ``derived``, which names the device it was taken from.
- The capacity is at least what was said, and less than a cylinder more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from raidlab.reading import Plain
from raidlab.study.units import parse_bytes

LABEL = ("capacity_bytes", "sustained_mb_s", "sustained_inner_mb_s", "cache_bytes")
"""What the label or data sheet of a disk says that is no parameter of the model."""

_ABOUT = ("kind", "name", "description", "provenance", "published", "power", "like")
_PLAIN_ZONE = {"cylinders", "sectors_per_track", "track_skew", "cylinder_skew"}
# Say where sectors lie one by one, so that no other disk can have them.
_OF_ONE_DISK = ("layout", "sparing", "sectors", "cylinders")
_GEOMETRY = ("capacity_bytes", "sustained_mb_s", "sustained_inner_mb_s", "heads")
# Of the buffer, as the files that come with raidlab share it out.
_READ_SHARE, _WRITE_SHARE = 2, 4
_MOST_HEADS, _MOST_MB_S = 256, 1e6
# One revolution in a minute, and a thousand in a millisecond.
_SPEEDS = (1e-3, 1e8)


class LikeError(ValueError):
    """What is wrong with one key of a device that is like another."""

    def __init__(self, key: str, message: str, value: object = None, accepted: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.message = message
        self.value = value
        self.accepted = accepted


def like(own: Mapping[str, Plain], base: Mapping[str, Plain], name: str) -> dict[str, Plain]:
    """What a device says, completed by what the one named ``name`` says."""
    kind = own.get("kind", base["kind"])
    if kind != base["kind"]:
        raise LikeError("kind", f"'{name}' is of another kind", kind, f"'{base['kind']}', or no kind at all")
    label, said = {}, dict(own)
    if kind == "hdd":
        label = {key: _figure(key, said.pop(key)) for key in LABEL if key in said}
    elif "capacity_bytes" in said:
        said["capacity_bytes"] = _figure("capacity_bytes", said["capacity_bytes"])
    document = _merged(_without_other_speed(base, said), said)
    notes: dict[str, str] = {}
    if kind == "hdd":
        _Disk(name, dict(base), said, label, document, notes).derive()
    document.setdefault("kind", kind)
    document["name"] = own.get("name", f"like {name}")
    document["description"] = own.get("description", _description(document, name, label))
    document["provenance"] = _provenance(own, base, name, notes)
    return {key: value for key, value in document.items() if key not in ("like", "published")} | _published(own, label)


def _figure(key: str, value: Plain) -> Any:
    if key.endswith("_bytes"):
        try:
            return parse_bytes(value)
        except ValueError as error:
            raise LikeError(key, str(error), value, "a size such as 8_000_000_000_000 or '8TB'") from None
    if not _is_number(value) or not 0 < value < _MOST_MB_S:
        raise LikeError(key, "is not a rate", value, "a number of MB/s above 0, such as 210")
    return float(value)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_other_speed(base: Mapping[str, Plain], said: Mapping[str, Plain]) -> dict[str, Plain]:
    """The other device without the key for its speed that goes with no other."""
    both = ("rpm", "revolution_ms")
    return {key: value for key, value in base.items() if key not in both or not any(word in said for word in both)}


def _merged(base: Mapping[str, Plain], said: Mapping[str, Plain], within: str = "") -> dict[str, Plain]:
    """The tables of one with the keys that the other says in their place; what has another kind is replaced.

    ``within``: the keys of the tables around, each with a dot.
    """
    merged = dict(base)
    for key, value in said.items():
        there = base.get(key)
        merged[key] = value
        # Of these a table stands for one of several words.
        if not isinstance(there, Mapping) or key == "scheduler" or key.endswith("skew"):
            continue
        if not isinstance(value, Mapping):
            raise LikeError(within + key, "is not a table", value, "a table of keys")
        if value.get("kind", there.get("kind")) == there.get("kind"):
            merged[key] = _merged(there, value, f"{within}{key}.")
    return merged


class _Disk:
    """A rotating disk on its way from the one that it is like."""

    def __init__(
        self,
        name: str,
        base: dict[str, Any],
        said: Mapping[str, Any],
        label: Mapping[str, Any],
        document: dict[str, Any],
        notes: dict[str, str],
    ) -> None:
        self.name, self.base, self.said, self.label = name, base, said, label
        self.document, self.notes = document, notes
        self.sector_bytes = _number(document, "sector_bytes", 512)
        self.turns = revolution_ms(document) / revolution_ms(base)
        """How much longer a revolution takes."""

    def derive(self) -> None:
        """Put in what follows from what was said."""
        if self.turns != 1:
            self._scale_times_of_a_revolution()
        if geometry := [key for key in _GEOMETRY if key in self.label or key in self.said]:
            self._derive_zones(geometry[0])
        if "cache_bytes" in self.label:
            self._derive_buffer(self.label["cache_bytes"])

    def _scale_times_of_a_revolution(self) -> None:
        why = "with the length of a revolution"
        self._scale("track_gap_ms", self.turns, why)
        self._scale("buffer.destage_after_read_ms", self.turns, why)
        for key in ("track_skew", "cylinder_skew"):
            if key not in self.said and isinstance(self.base.get(key), dict):
                # Whatever it is said in, it hides a movement, which takes as long as before.
                share, whole = self.base[key].get("revolutions"), self.base[key].get("sectors")
                if share is not None:
                    self._put(key, {"revolutions": share / self.turns}, "as long in ms")
                if whole is not None:
                    self._put(key, {"sectors": math.ceil(whole / self.turns)}, "as long in ms")

    def _derive_zones(self, because: str) -> None:
        """Density from the rates, heads and cylinders from the capacity."""
        if "zones" in self.said:
            raise LikeError(because, "goes with the zones of the other device", None, f"either zones or {because}")
        before = self._plain_zones(because)
        if type(self.document["heads"]) is not int or not 1 <= self.document["heads"] <= _MOST_HEADS:
            raise LikeError("heads", "is no number of heads", self.document["heads"], f"1 to {_MOST_HEADS}")
        capacity = self.label.get("capacity_bytes", self._capacity(before, self.base["heads"]))
        heads = self.document["heads"]
        if "heads" not in self.said:
            heads = self._heads(before, self._zones(before, heads), capacity)
        zones = self._zones(before, heads)
        cylinders = self._fit(zones, heads, capacity)
        rates = [self._rate(zones[end]["sectors_per_track"], heads) for end in (0, -1)]
        scaled = f"{len(zones)} zones scaled to {rates[0]:.0f} MB/s outside, {rates[1]:.0f} MB/s inside"
        self._put("zones", zones, f"{scaled} and {capacity / 1e12:.4g} TB")
        if heads != self.base["heads"] and "heads" not in self.said:
            self._put("heads", heads, f"as many as {capacity / 1e12:.4g} TB need on cylinders as there")
        denser = zones[0]["sectors_per_track"] / before[0]["sectors_per_track"]
        self._scale("buffer.almost_read_hit_sectors", denser, "the same share of a track")
        self._scale_sector_skews(denser)
        self._scale_seek(cylinders)

    def _plain_zones(self, because: str) -> list[dict[str, Any]]:
        zones = self.base.get("zones") or []
        special = [key for key in _OF_ONE_DISK if self.base.get(key) not in (None, "none")]
        if not zones or special or any(set(zone) - _PLAIN_ZONE for zone in zones):
            message = f"'{self.name}' says where its sectors lie one by one, which holds for no other disk"
            raise LikeError(because, message, None, "a device whose zones have no more than cylinders and sectors")
        return [dict(zone) for zone in zones]

    def _zones(self, before: list[dict[str, Any]], heads: int) -> list[dict[str, Any]]:
        """The other disk's zones with sectors that fall as theirs, from what the outermost has to the innermost."""
        outer, inner = self._sectors_per_track(before, heads)
        first, last = before[0]["sectors_per_track"], before[-1]["sectors_per_track"]
        slope = (outer - inner) / (first - last) if first != last else 0.0
        counts = [max(1, round(outer - (first - zone["sectors_per_track"]) * slope)) for zone in before]
        return [zone | {"sectors_per_track": count} for zone, count in zip(before, counts, strict=True)]

    def _sectors_per_track(self, before: list[dict[str, Any]], heads: int) -> tuple[float, float]:
        """Of the outermost and the innermost zone: by the sheet, or as dense as there."""
        outer, inner = before[0]["sectors_per_track"], before[-1]["sectors_per_track"]
        asked = self.label.get("sustained_mb_s")
        asked_inner = self.label.get("sustained_inner_mb_s")
        if asked is not None:
            inner = inner / outer * (new := self._density(asked, heads))
            outer = new
        if asked_inner is not None:
            inner = self._density(asked_inner, heads)
        if inner > outer:
            message = f"is more than outside ({self._rate(outer, heads):.0f} MB/s)"
            raise LikeError("sustained_inner_mb_s", message, asked_inner, "less than sustained_mb_s")
        return outer, inner

    def _rate(self, sectors_per_track: float, heads: int) -> float:
        """What a long stream gets, in MB/s: each track takes a revolution and the skew to the next."""
        revolution = revolution_ms(self.document)
        skews = [_skew_ms(self.document.get(key), revolution, sectors_per_track) for key in _SKEWS]
        cylinder_ms = heads * revolution + (heads - 1) * skews[0] + skews[1]
        return sectors_per_track * heads * self.sector_bytes / cylinder_ms / 1e3

    def _density(self, mb_s: float, heads: int) -> float:
        """The sectors of a track that give this rate."""
        return mb_s / self._rate(1.0, heads)

    def _capacity(self, zones: list[dict[str, Any]], heads: int) -> int:
        sectors = sum(zone["cylinders"] * zone["sectors_per_track"] for zone in zones)
        return int(sectors * heads * self.sector_bytes)

    def _heads(self, before: list[dict[str, Any]], zones: list[dict[str, Any]], capacity: int) -> int:
        """As many as need about the cylinders of the other disk."""
        old = zip(before, zones, strict=True)
        of_one_head = sum(zone["cylinders"] * new["sectors_per_track"] for zone, new in old) * self.sector_bytes
        return int(min(_MOST_HEADS, max(1, round(capacity / of_one_head))))

    def _fit(self, zones: list[dict[str, Any]], heads: int, capacity: int) -> float:
        """Give the zones as many cylinders as the capacity needs; returns how many times as many there are."""
        ratio = capacity / self._capacity(zones, heads)
        before = sum(zone["cylinders"] for zone in zones)
        for zone in zones:
            zone["cylinders"] = max(1, round(zone["cylinders"] * ratio))
        # A zone has a cylinder at least.
        if (least := self._capacity([zone | {"cylinders": 1} for zone in zones], heads)) > capacity:
            message = "is less than a cylinder in each zone"
            raise LikeError("capacity_bytes", message, self.label.get("capacity_bytes"), f"at least {least}")
        missing = capacity - self._capacity(zones, heads)
        cylinder = heads * zones[-1]["sectors_per_track"] * self.sector_bytes
        zones[-1]["cylinders"] = max(1, zones[-1]["cylinders"] + math.ceil(missing / cylinder))
        return float(sum(zone["cylinders"] for zone in zones) / before)

    def _scale_sector_skews(self, ratio: float) -> None:
        for key in _SKEWS:
            skew = self.document.get(key)
            if key not in self.said and isinstance(skew, dict) and "sectors" in skew:
                self._put(key, {"sectors": math.ceil(skew["sectors"] * ratio)}, "as long in ms")

    def _scale_seek(self, ratio: float) -> None:
        """Distances of the curve as there are more cylinders; figures of a whole disk hold for any number of them."""
        seek = self.document["seek"]
        if "seek" in self.said or math.isclose(ratio, 1, rel_tol=1e-3):
            return
        by_kind: dict[str, Callable[[], dict[str, Any]]] = {
            "table": lambda: {"points": [[max(1, round(far * ratio)), ms] for far, ms in seek["points"]]},
            "curve": lambda: {"b_ms": seek["b_ms"] / math.sqrt(ratio), "c_ms": seek["c_ms"] / ratio},
            "hp": lambda: {
                "division": max(1, round(seek["division"] * ratio)),
                "root_b_ms": seek["root_b_ms"] / math.sqrt(ratio),
                "line_b_ms": seek["line_b_ms"] / ratio,
            },
        }
        if (scaled := by_kind.get(seek.get("kind"))) is not None:
            self._put("seek", seek | scaled(), f"distances times {ratio:.4g}, as there are so many more cylinders")

    def _derive_buffer(self, cache_bytes: int) -> None:
        buffer = self.base.get("buffer") or {}
        segments = _number(self.document.get("buffer") or {}, "segments", 0)
        if not segments:
            raise LikeError("cache_bytes", f"'{self.name}' has no buffer", cache_bytes, "a device with one")
        if "segment_sectors" not in self.said.get("buffer", {}):
            sectors = cache_bytes // _READ_SHARE // self.sector_bytes // segments
            self._put("buffer.segment_sectors", max(1, sectors), "half of the buffer for reads")
        if buffer.get("write_cache_sectors") and "write_cache_sectors" not in self.said.get("buffer", {}):
            sectors = cache_bytes // _WRITE_SHARE // self.sector_bytes
            self._put("buffer.write_cache_sectors", max(1, sectors), "a quarter of the buffer for writes")

    def _scale(self, key: str, ratio: float, why: str) -> None:
        """Another value for a number that the other device has and this one does not say."""
        *tables, last = key.split(".")
        inner, said = self.document, self.said
        for table in tables:
            inner, said = inner.get(table, {}), said.get(table, {})
        value = inner.get(last)
        if value and last not in said and not math.isclose(ratio, 1):
            self._put(key, round(value * ratio) if isinstance(value, int) else value * ratio, why)

    def _put(self, key: str, value: Any, why: str) -> None:
        table, _, last = key.rpartition(".")
        if table:
            self.document[table] = self.document[table] | {last: value}
        else:
            self.document[key] = value
        self.notes[key] = why


_SKEWS = ("track_skew", "cylinder_skew")


def revolution_ms(document: Mapping[str, Any]) -> float:
    """The length of a revolution."""
    for key, scale in (("rpm", lambda rpm: 60e3 / rpm), ("revolution_ms", float)):
        value = document.get(key)
        if value is None:
            continue
        if not _is_number(value) or not _SPEEDS[0] <= value <= _SPEEDS[1]:
            raise LikeError(key, "is not a speed", value, f"a number from {_SPEEDS[0]:g} to {_SPEEDS[1]:g}")
        return float(scale(value))
    return 1.0


def _number(document: Mapping[str, Any], key: str, default: int) -> int:
    value = document.get(key)
    return value if type(value) is int and value > 0 else default


def _skew_ms(skew: Any, revolution: float, sectors_per_track: float) -> float:
    if not isinstance(skew, Mapping):
        return 0.0
    by_unit = {"ms": 1.0, "revolutions": revolution, "sectors": revolution / sectors_per_track}
    return sum(value * by_unit[unit] for unit, value in skew.items() if unit in by_unit and _is_number(value))


def _description(document: Mapping[str, Any], name: str, label: Mapping[str, Any]) -> str:
    said = [f"as {name}"]
    if "capacity_bytes" in label:
        said.append(f"{label['capacity_bytes'] / 1e12:.4g} TB")
    if document.get("kind") == "hdd" and isinstance(document.get("rpm"), int | float):
        said.append(f"{document['rpm']:.0f} rpm, {document['heads']} heads")
    said += [f"{label[key]:.0f} MB/s {where}" for key, where in _WHERE.items() if key in label]
    return ", ".join(said)


_WHERE = {"sustained_mb_s": "outside", "sustained_inner_mb_s": "inside"}


def _provenance(
    own: Mapping[str, Any], base: Mapping[str, Any], name: str, notes: Mapping[str, str]
) -> dict[str, Plain]:
    """Where each parameter is from: by its own file, derived from another value, or taken over."""
    provenance: dict[str, Any] = {}
    told = own.get("provenance")
    for key, source in (base.get("provenance") or {}).items():
        table, _, last = key.partition(".")
        inner = own.get(table)
        if key in own or (isinstance(inner, Mapping) and last and (last in inner or table == "scheduler")):
            continue
        was = f" ({source['status']}: {source['why']})" if isinstance(source, Mapping) else ""
        provenance[key] = {"status": "derived", "why": f"as {name}{was}"}
    for key, why in notes.items():
        provenance[key] = {"status": "derived", "why": f"from {name}: {why}"}
    return provenance | (dict(told) if isinstance(told, Mapping) else {})


def _published(own: Mapping[str, Any], label: Mapping[str, Any]) -> dict[str, Plain]:
    """What the device is held to: its own figures, or the rates of its sheet."""
    if "published" in own:
        return {"published": own["published"]}
    tables: list[Plain] = [
        {
            "name": f"sustained transfer, {where}",
            "value": label[key],
            "unit": "MB/s",
            "source": f"the device's file ({key})",
            "read": 1.0,
            "size": "1MiB",
            "address": "sequential",
            "at": at,
            "depth": 8,
            "tolerance_percent": 5,
        }
        for key, where, at in (
            ("sustained_mb_s", "outside", "front"),
            ("sustained_inner_mb_s", "inside", "back"),
        )
        if key in label
    ]
    return {"published": tables} if tables else {}
