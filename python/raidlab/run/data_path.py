"""What lies between clients and disks for one array: stations, paths, caches.

Invariants:

- A station that is divided (``each``) becomes as many as the array has places for it, and each volume visits its own;
  below the array its members do.
- What is for other arrays is left out; what is left is the study's own tables.
"""

from __future__ import annotations

from raidlab.study.cell import CellCache, CellPath
from raidlab.study.check import count_leaves
from raidlab.study.schema import Array
from raidlab.study.target import Cache, CacheSizes, Modelled, ParityStation, PathVisit, Servers, Station, Visit
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


def data_path(section: Modelled, array: Array, tree: Tree, streams: int = 0) -> CellPath | None:
    """The path of a cell; None where there is none.

    ``section``: what the study says of the target. ``tree``: its tree, as the engine writes it. ``streams``: how many
    streams there are; a station that each of them has is as often there.
    """
    places = _Places(array, tree)
    divided = {station.name: places.of(station, streams) for station in section.station if station.each is not None}
    path = CellPath(
        station=[part for station in section.station for part in _parts(station, divided)],
        request_path=_visits(section.request_path, array, divided, None),
        member_path=_visits(section.member_path, array, divided, places),
        transfer_quantum=section.transfer_quantum,
        write_quantum=section.write_quantum,
        member_quantum=section.member_quantum,
        parity=next((parity for parity in section.parity if _is_for(parity, array)), None),
        cache=[_cache(cache, array, divided) for cache in section.cache if _is_for(cache, array)],
    )
    return None if path == CellPath() else path


def way(section: Modelled, visits: list[Visit], array: Array, stream: int) -> list[PathVisit]:
    """The way of one stream, told by its number, to an end behind stations."""
    own = {station.name for station in section.station if station.each == STREAM}
    return [
        visit.model_copy(
            update={"station": f"{visit.station} {stream}" if visit.station in own else visit.station, "only": None}
        )
        for visit in visits
        if _is_for(visit, array)
    ]


def _is_for(part: Visit | Cache | ParityStation, array: Array) -> bool:
    return part.arrays is None or array.name in part.arrays


def _parts(station: Station, divided: dict[str, dict[int, list[int]]]) -> list[Servers]:
    if station.each is None:
        return [station]
    return [station.model_copy(update={"name": f"{station.name} {place}"}) for place in divided[station.name]]


def _visits(
    visits: list[Visit], array: Array, divided: dict[str, dict[int, list[int]]], members: _Places | None
) -> list[PathVisit]:
    """The visits of an array; with ``members``, of its members instead of its volumes."""
    found: list[PathVisit] = []
    for visit in visits:
        if not _is_for(visit, array):
            continue
        if visit.station not in divided:
            found.append(visit)
            continue
        for place, volumes in divided[visit.station].items():
            if not volumes:
                continue
            only = members.members_of(volumes) if members is not None else volumes
            only = [one for one in only if visit.only is None or one in visit.only]
            found.append(visit.model_copy(update={"station": f"{visit.station} {place}", "only": only}))
    return found


def _cache(cache: Cache, array: Array, divided: dict[str, dict[int, list[int]]]) -> CellCache:
    sizes = {key: getattr(cache, key) for key in CacheSizes.model_fields}
    return CellCache(**sizes, copy_path=_visits(cache.copy_path, array, divided, None))
