"""What lies between clients and disks, in the engine's words: host, stations, paths, caches.

Invariants:

- A station that is divided (``each``) becomes as many as the array has places for it, and each volume visits its own;
  below the array its members do.
- What is for other arrays is left out, and what costs nothing is not written.
"""

from __future__ import annotations

from typing import Any

from raidlab.study.check import count_leaves
from raidlab.study.schema import Array
from raidlab.study.target import Cache, Modelled, ParityStation, Station, Visit
from raidlab.study.tree import Tree

VOLUME = "volume"
STREAM = "stream"


class _Places:
    """Which of its stations each volume of an array uses, and which members each volume has."""

    def __init__(self, array: Array, tree: Tree) -> None:
        children = tree["children"] if tree["kind"] == "independent" else [tree]
        self._array = array
        self._volumes = range(len(children))
        self._members: list[range] = []
        for child in children:
            first = self._members[-1].stop if self._members else 0
            self._members.append(range(first, first + count_leaves(child)))

    def of(self, station: Station, streams: int) -> dict[int, list[int]]:
        """The volumes that use each part of a divided station; none where each stream has one."""
        assert station.each is not None, "only what is divided has places"
        if station.each == STREAM:
            return {stream: [] for stream in range(streams)}
        given = self._array.placement.get(station.each, [])
        found: dict[int, list[int]] = {}
        for volume in self._volumes:
            place = volume if station.each == VOLUME else given[volume] if volume < len(given) else 0
            found.setdefault(place, []).append(volume)
        return found

    def members_of(self, volumes: list[int]) -> list[int]:
        """The members of some volumes."""
        return [member for volume in volumes for member in self._members[volume]]


def data_path(section: Modelled, array: Array, tree: Tree, streams: int = 0) -> dict[str, Any]:
    """The ``host`` and ``path`` of a cell, as far as they cost anything.

    Parameters
    ----------
    section : Modelled
        What the study says of the target.
    array : Array
    tree : dict
        Its tree, as the engine writes it.
    streams : int
        How many streams there are; a station that each of them has is as often there.
    """
    found: dict[str, Any] = {}
    if section.host is not None:
        host = section.host
        found["host"] = {
            "cpus": host.cpus,
            "request_us": host.request / 1000,
            "access_us": host.access / 1000,
            "issue_us": host.issue / 1000,
            "completion_us": host.completion / 1000,
            "parity_us_per_kib": host.parity_per_kib / 1000,
        }
    places = _Places(array, tree)
    divided = {station.name: places.of(station, streams) for station in section.station if station.each is not None}
    path: dict[str, Any] = {
        "stations": [part for station in section.station for part in _parts(station, divided)],
        "request": _visits(section.request_path, array, divided, None),
        "member": _visits(section.member_path, array, divided, places),
        "transfer_quantum_bytes": section.transfer_quantum,
        "write_quantum_bytes": section.write_quantum,
        "member_quantum_bytes": section.member_quantum,
        "caches": [_cache(cache, array, divided) for cache in section.cache if _is_for(cache, array)],
    }
    for parity in section.parity:
        if _is_for(parity, array):
            path["parity"] = {"station": parity.station, "us_per_kib": parity.per_kib / 1000}
            break
    path = {key: value for key, value in path.items() if value}
    return found | ({"path": path} if path else {})


def way(section: Modelled, visits: list[Visit], array: Array, stream: int) -> list[dict[str, Any]]:
    """The way of one stream to an end behind stations, in the engine's words; ``stream`` is its number."""
    own = {station.name for station in section.station if station.each == STREAM}
    return [
        _visit(visit, f"{visit.station} {stream}" if visit.station in own else visit.station, None)
        for visit in visits
        if _is_for(visit, array)
    ]


def _is_for(part: Visit | Cache | ParityStation, array: Array) -> bool:
    return part.arrays is None or array.name in part.arrays


def _parts(station: Station, divided: dict[str, dict[int, list[int]]]) -> list[dict[str, Any]]:
    names = [f"{station.name} {place}" for place in divided[station.name]] if station.each else [station.name]
    return [{"name": name, "servers": station.servers} for name in names]


def _visits(
    visits: list[Visit], array: Array, divided: dict[str, dict[int, list[int]]], members: _Places | None
) -> list[dict[str, Any]]:
    """The visits of an array; with ``members``, of its members instead of its volumes."""
    found = []
    for visit in visits:
        if not _is_for(visit, array):
            continue
        if visit.station not in divided:
            found.append(_visit(visit, visit.station, visit.only))
            continue
        for place, volumes in divided[visit.station].items():
            if not volumes:
                continue
            only = members.members_of(volumes) if members is not None else volumes
            only = [one for one in only if visit.only is None or one in visit.only]
            found.append(_visit(visit, f"{visit.station} {place}", only))
    return found


def _visit(visit: Visit, station: str, only: list[int] | None) -> dict[str, Any]:
    words: dict[str, Any] = {"station": station, "phase": visit.phase, "us": visit.cost / 1000, "on": visit.on}
    if visit.times != "constant":
        words["times"] = visit.times
    return words | {key: value for key, value in (("mb_s", visit.mb_s), ("only", only)) if value is not None}


def _cache(cache: Cache, array: Array, divided: dict[str, dict[int, list[int]]]) -> dict[str, Any]:
    return {
        "line_bytes": cache.line,
        "fetch_bytes": cache.fetch,
        "read_bytes": cache.read_room,
        "read_ahead_bytes": cache.read_ahead,
        "write_back_up_to_bytes": cache.write_back_up_to,
        "dirty_bytes": cache.dirty_room,
        "destages": cache.destages,
        "copy": _visits(cache.copy_path, array, divided, None),
    }
