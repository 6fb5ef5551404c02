"""Arrays of a study laid over what the user has named: groups of members, or arrays that stand already.

``live.groups`` of a study names the levels that groups lie in, from the outermost; ``placement`` of an array says which
of them each of its volumes uses. The first place that a study names is the first that the user has named, and so on
within it. A group named down to the last level is divided among the volumes that the study puts there; one with a name
more is a volume as it is. An array with a ``volume`` is that volume, whatever its tree says, and no group's affair.

Invariants:

- Nothing is opened: members are numbers, in the order in which the user named them.
- No member is in two volumes of an array, and volumes of an array are equally wide.
- An array for which the groups do not suffice is left out with a reason, never made otherwise than asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from raidlab.study.check import count_leaves
from raidlab.study.expand import NULL
from raidlab.study.load import LoadedStudy
from raidlab.study.schema import MEMBER, Array
from raidlab.study.tree import Tree, copies_in
from raidlab.study.words import OFF_LIVE

_LIVE = "live"


@dataclass(frozen=True)
class Group:
    """Members under the names of the places they lie in, from the outermost."""

    names: tuple[str, ...]
    """None at all for the only group there is."""
    members: tuple[int, ...]
    """Their numbers."""


@dataclass(frozen=True)
class Arrangement:
    """How a study's arrays lie over groups."""

    groups: tuple[Group, ...]
    members_of: dict[str, list[int]]
    """The members of each array that is run, by number."""
    trees: dict[str, str]
    """The trees of these arrays, as a study writes them."""
    left_out: dict[str, str]
    """Of each array that is not run, why."""
    volumes: dict[str, str] = field(default_factory=dict)
    """Of each array that stands already, where; it is one member, behind those of the groups."""


class _UnfitError(ValueError):
    """Why an array cannot be laid over the groups."""


@dataclass
class _Box:
    """Places of the last level: members to be divided, or volumes as they are."""

    members: tuple[int, ...] = ()
    volumes: tuple[tuple[int, ...], ...] = ()


def arranged(loaded: LoadedStudy, groups: Sequence[Group], member_bytes: int) -> tuple[LoadedStudy, Arrangement]:
    """Lay the arrays of a study that run on real members of a size over groups; those that cannot be are kept off them.

    Groups that no array of any study could lie on are a `ValueError`.
    """
    levels = list(loaded.study.live.groups)
    boxes = _boxes(groups, levels)
    members_of: dict[str, list[int]] = {}
    trees = dict(loaded.geometry.trees)
    texts: dict[str, str] = {}
    left_out: dict[str, str] = {}
    arrays: list[Array] = []
    for array in loaded.study.array:
        arrays.append(array)
        if array.runs_on(_LIVE) and array.volume is None:
            try:
                volumes = _volumes(array, trees[array.name], levels, boxes)
                is_given = any(box.volumes for box in boxes.values())
                tree = _with_width(trees[array.name], len(volumes[0]), is_given)
                text = _checked_text(tree, member_bytes, loaded.study.live.sector)
            except _UnfitError as error:
                left_out[array.name] = str(error)
                arrays[-1] = array.model_copy(update={"on": [one for one in OFF_LIVE if array.runs_on(one)]})
            else:
                members_of[array.name] = [member for volume in volumes for member in volume]
                trees[array.name], texts[array.name] = tree, text
                arrays[-1] = array.model_copy(update={"tree": text})
    study = loaded.study.model_copy(update={"array": arrays})
    geometry = replace(loaded.geometry, trees=trees)
    arrangement = Arrangement(tuple(groups), members_of, texts, left_out)
    return replace(loaded, study=study, geometry=geometry, arrangement=arrangement), arrangement


def with_volumes(loaded: LoadedStudy, volumes: Mapping[str, str], pool: int) -> tuple[LoadedStudy, list[str]]:
    """The study with some of its arrays standing already, by array's name where; and the arrays that are left out.

    ``pool``: how many members there are for the others, which are left out where there is none.
    """
    over = loaded.arrangement or Arrangement((), {}, {}, {})
    members_of, trees, texts = dict(over.members_of), dict(loaded.geometry.trees), dict(over.trees)
    arrays: list[Array] = []
    left_out: list[str] = []
    for array in loaded.study.array:
        arrays.append(array)
        if array.name in volumes:
            members_of[array.name] = [pool + list(volumes).index(array.name)]
            trees[array.name], texts[array.name] = {"kind": MEMBER}, MEMBER
            # Whoever names a place for it has it, though the study's own members could not make it.
            is_now: dict[str, object] = {"tree": MEMBER, "volume": volumes[array.name]}
            if array.on is not None:
                is_now["on"] = sorted({*array.on, _LIVE})
            arrays[-1] = array.model_copy(update=is_now)
        elif array.runs_on(_LIVE) and not array.is_mounted:
            if pool:
                members_of.setdefault(array.name, list(range(count_leaves(trees[array.name]))))
            else:
                left_out.append(array.name)
                arrays[-1] = array.model_copy(update={"on": [one for one in OFF_LIVE if array.runs_on(one)]})
    study = loaded.study.model_copy(update={"array": arrays})
    arrangement = replace(over, members_of=members_of, trees=texts, volumes=dict(volumes))
    geometry = replace(loaded.geometry, trees=trees)
    return replace(loaded, study=study, geometry=geometry, arrangement=arrangement), left_out


def _boxes(groups: Sequence[Group], levels: list[str]) -> dict[tuple[str, ...], _Box]:
    """The places of the last level, in the order in which they were named."""
    boxes: dict[tuple[str, ...], _Box] = {}
    words = "/".join([*levels, "volume"])
    for group in groups:
        depth = len(group.names)
        if depth not in (len(levels), len(levels) + 1):
            accepted = f"{words}=..." if not levels else f"{'/'.join(levels)}=... or {words}=..."
            raise ValueError(f"the group '{'/'.join(group.names)}' has {depth} names; accepted: {accepted}")
        is_volume = depth > len(levels)
        name = group.names[: len(levels)]
        known = name in boxes
        box = boxes.setdefault(name, _Box())
        if known and (not is_volume or box.members):
            raise ValueError(f"'{'/'.join(name)}' is named twice; accepted: each once, or volumes of it one by one")
        if is_volume:
            box.volumes += (group.members,)
        else:
            box.members = group.members
    return boxes


def _volumes(array: Array, tree: Tree, levels: list[str], boxes: dict[tuple[str, ...], _Box]) -> list[tuple[int, ...]]:
    """The members of each volume of an array, all equally many."""
    children = tree["children"] if tree["kind"] == "independent" else [tree]
    places = [tuple(_placed(array, level, volume) for level in levels) for volume in range(len(children))]
    names = {place: _named(place, places, boxes, levels) for place in dict.fromkeys(places)}
    found: list[tuple[int, ...]] = []
    for volume, place in enumerate(places):
        number = places[:volume].count(place)
        own = None if array.of_group is not None else count_leaves(children[volume])
        # The only place there is needs no name.
        box, name = boxes[names[place]], "/".join(names[place]) if len(boxes) > 1 else ""
        if own is not None and not box.volumes and (needed := own * places.count(place)) > len(box.members):
            raise _too_few(needed, name, len(box.members))
        found.append(_part(box, name, number, own, array.of_group or 1))
    width = min(len(members) for members in found)
    if width == 1 < max(len(members) for members in found):
        raise _UnfitError("has volumes of one member beside volumes of several")
    return [members[:width] for members in found]


def _placed(array: Array, level: str, volume: int) -> int:
    given = array.placement.get(level, [])
    return given[volume] if volume < len(given) else 0


def _named(
    place: tuple[int, ...],
    places: list[tuple[int, ...]],
    boxes: dict[tuple[str, ...], _Box],
    levels: list[str],
) -> tuple[str, ...]:
    """Which of the named places stands for one of the study's: the first for the first, level by level."""
    names: tuple[str, ...] = ()
    for depth, level in enumerate(levels):
        within = dict.fromkeys(one[depth] for one in places if one[:depth] == place[:depth])
        having = list(dict.fromkeys(name[depth] for name in boxes if name[:depth] == names))
        rank = list(within).index(place[depth])
        if rank >= len(having):
            where = f" within one '{levels[depth - 1]}'" if names else ""
            counted = "one is" if len(having) == 1 else f"{len(having)} are"
            raise _UnfitError(f"needs {len(within)} groups, each with its own '{level}'{where}, and {counted} named")
        names += (having[rank],)
    return names


def _part(box: _Box, name: str, number: int, own: int | None, parts: int) -> tuple[int, ...]:
    """The members of one volume of a place: so many as its tree has, or its part of all."""
    where = f" in '{name}'" if name else ""
    if box.volumes:
        if number >= len(box.volumes):
            raise _UnfitError(f"needs more volumes{where} than the {len(box.volumes)} named")
        having = box.volumes[number]
        if own is None:
            return having
        if own > len(having):
            raise _too_few(own, name, len(having))
        return having[:own]
    if own is not None:
        return box.members[number * own : (number + 1) * own]
    if number >= parts:
        raise _UnfitError(f"has more volumes{where} than the {parts} of its of_group")
    width = len(box.members) // parts
    if width == 0:
        raise _too_few(parts, name, len(box.members))
    return box.members[number * width : (number + 1) * width]


def _too_few(needed: int, name: str, having: int) -> _UnfitError:
    where = f" in '{name}'" if name else ""
    return _UnfitError(f"needs {needed} members{where}, and {having} {'is' if having == 1 else 'are'} named")


def _with_width(tree: Tree, width: int, is_given: bool) -> Tree:
    """The tree with volumes of ``width`` members; ``is_given``: the user named volumes, not groups to be divided."""
    if tree["kind"] == "independent":
        return {**tree, "children": [_volume(child, width, is_given) for child in tree["children"]]}
    return _volume(tree, width, is_given)


def _volume(tree: Tree, width: int, is_given: bool) -> Tree:
    """A volume of ``width`` members; one that the user has named as a single member is that member."""
    if count_leaves(tree) == width:
        return tree
    if width == 1 and is_given:
        return {"kind": "member"}
    children = tree.get("children", [])
    # One member of data beside parity is a mirror, and no member of data nothing.
    least = tree["parities"] + 2 if tree["kind"] == "parity" else copies_in(tree.get("layout", "near2"))[1]
    if width < least or not children or any("children" in child for child in children):
        raise _UnfitError(f"cannot be made of {width} member{'s' if width != 1 else ''} a volume")
    return {**tree, "children": [children[0]] * width}


def _checked_text(tree: Tree, member_bytes: int, sector_bytes: int) -> str:
    """The tree as a study writes it, if the engine takes it."""
    from raidlab import _core

    try:
        _core.tree_facts(json.dumps(tree), member_bytes, sector_bytes)
    except _core.CellError as error:
        raise _UnfitError(f"cannot be: {error.message}") from None
    return _text(tree)


def _text(tree: Tree) -> str:
    """A tree as a study writes it: equal children are written once, with their number."""
    keys = [f"{key.removesuffix('_bytes')}={value}" for key, value in tree.items() if key not in ("kind", "children")]
    children = [_text(child) for child in tree.get("children", [])]
    runs = [(child, len(list(run))) for child, run in groupby(children)]
    words = [f"{count}*{child}" if count > 1 else child for child, count in runs]
    inside = ", ".join([*words, *keys])
    return f"{tree['kind']}({inside})" if inside else str(tree["kind"])


def members_of(loaded: LoadedStudy, target: str, array: str) -> list[int] | None:
    """The members that an array takes on real members, by number; None where it takes the first."""
    if loaded.arrangement is None or target == NULL:
        return None
    return loaded.arrangement.members_of[array]
