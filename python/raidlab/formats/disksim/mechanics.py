"""The mechanical model ``dm_mech_g1``: seeks, switches, rotation."""

from __future__ import annotations

import math
import re

from raidlab.formats.disksim.fields import Fields, whole_of
from raidlab.formats.disksim.grammar import NUMBER, WHOLE, SourcePlace
from raidlab.reading import Plain

_SEEK_TYPES = ("constant", "linear", "curve", "hpl", "hplplus10", "extracted")
# A file gives the figures of several curves and names one.
_SEEK_KEYS = (
    "Average seek time",
    "Constant seek time",
    "Single cylinder seek time",
    "Full strobe seek time",
    "Full seek curve",
    "First ten seek times",
    "HPL seek equation values",
)
_HPL_VALUES, _FIRST_SEEKS = 6, 10
_HEADER = re.compile(rf"\s*Seek distances measured\s*:\s*({WHOLE})\s*")
_POINT = re.compile(rf"\s*({WHOLE})\s*,\s*({NUMBER})\s*(?:,\s*{NUMBER}\s*)?")
# The sixth value of HP's curve where it says nothing of single cylinders.
_NO_SINGLE = -1.0


def mechanics_keys(mech: Fields) -> dict[str, Plain]:
    """The keys of a device file that say what a mechanical model says."""
    if mech.block.kind != "dm_mech_g1":
        raise mech.block.place.error("Mechanical Model", "is not known", value=mech.block.kind, accepted="dm_mech_g1")
    if mech.entry("Access time type").value != "trackSwitchPlusRotation":
        raise mech.refuse("Access time type", "is not modelled", "trackSwitchPlusRotation")
    mech.irrelevant(["Constant access time"])
    keys: dict[str, Plain] = {
        "rpm": mech.number("Rotation speed (in rpms)", 1),
        "rpm_error_percent": mech.number("Percent error in rpms", 0, 100),
        "head_switch_ms": mech.number("Head switch time"),
        "write_settle_ms": mech.number("Add. write settling delay", None),
        "seek": _seek(mech),
    }
    mech.finish()
    return keys


def _seek(mech: Fields) -> dict[str, Plain]:
    kind = mech.entry("Seek type").value
    mech.irrelevant(_SEEK_KEYS)
    if kind == "constant":
        return {"kind": "constant", "ms": mech.number("Constant seek time")}
    if kind in ("linear", "curve"):
        return {
            "kind": "linear" if kind == "linear" else "lee",
            "min_ms": mech.number("Single cylinder seek time"),
            "avg_ms": mech.number("Average seek time"),
            "max_ms": mech.number("Full strobe seek time"),
        }
    if kind in ("hpl", "hplplus10"):
        return _hp(mech, with_first=kind == "hplplus10")
    if kind == "extracted":
        return {"kind": "table", "points": _seek_file(mech)}
    raise mech.refuse("Seek type", "is not known", ", ".join(_SEEK_TYPES))


def _hp(mech: Fields, *, with_first: bool) -> dict[str, Plain]:
    key = "HPL seek equation values"
    values = mech.numbers(key)
    if len(values) < _HPL_VALUES:
        raise mech.refuse(key, f"has {len(values)} values", "six")
    division = whole_of(mech.listed(key)[0], key, 0)
    first: list[float] = []
    if with_first:
        first = mech.numbers("First ten seek times")[:_FIRST_SEEKS]
        if len(first) < _FIRST_SEEKS:
            place = mech.entry("First ten seek times").place
            raise place.error("First ten seek times", f"has {len(first)} values", accepted="ten")
    elif values[5] != _NO_SINGLE:
        first = [values[5]]
    return {
        "kind": "hp",
        "division": division,
        "root_a_ms": values[1],
        "root_b_ms": values[2],
        "line_a_ms": values[3],
        "line_b_ms": values[4],
        "first_ms": first,
    }


def _seek_file(mech: Fields) -> list[list[float]]:
    """The points of a measured curve: a line that says how many, then ``cylinders, ms`` in each line."""
    file, lines = mech.file_lines("Full seek curve")
    points: list[list[float]] = []
    counted = None
    for number, line in enumerate(lines, start=1):
        place = SourcePlace(file, number)
        header = _HEADER.fullmatch(line)
        point = _POINT.fullmatch(line)
        if header and number == 1:
            counted = int(header[1])
        elif point:
            distance, ms = int(point[1]), float(point[2])
            if not math.isfinite(ms):
                raise place.error("", "is too large a number", value=line.strip())
            if points and distance <= points[-1][0]:
                raise place.error("", "distances must rise", value=line.strip())
            points.append([distance, ms])
        elif line.strip():
            raise place.error("", "is no point of a seek curve", value=line.strip(), accepted="cylinders, ms")
    if len(points) < 2 or (counted is not None and counted != len(points)):
        message = f"{file.name} holds {len(points)} points, not {counted or 'two or more'}"
        raise mech.entry("Full seek curve").place.error("Full seek curve", message)
    if counted is not None and points[0][0] > 1:
        # Below the first distance the curve goes straight to no time at no distance.
        points.insert(0, [1, points[0][1] / points[0][0]])
    return points
