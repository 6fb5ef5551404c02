"""Groups of real members in a run: which there are, and a study's arrays laid over them.

Invariants:

- Nothing is opened or made.
- What cannot be laid over the groups is said before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable

from raidlab.errors import InputError, Problem
from raidlab.run.targets import Target
from raidlab.study import LoadedStudy
from raidlab.study.check import count_leaves
from raidlab.study.grouped import Group, arranged


def groups_of(loaded: LoadedStudy, target: Target) -> tuple[Group, ...]:
    """The groups of a live target, if that is how arrays are laid out; without any, a study that knows them has one."""
    levels = loaded.study.live.groups
    # Where a study is only checked there is no place yet, and every array counts.
    is_checked = target.kind == "directory" and target.places[0].path is None
    if target.groups or not levels or is_checked:
        return target.groups
    count = len(target.places) if target.kind == "block" else _widest_of_one_group(loaded)
    return (Group(("0",) * len(levels), tuple(range(count))),)


def _widest_of_one_group(loaded: LoadedStudy) -> int:
    """Members of the widest array that asks for one place only: so many are made in directories and in memory."""
    arrays = loaded.study.arrays_on("live")
    alone = [array for array in arrays if all(not any(places) for places in array.placement.values())]
    return max(count_leaves(loaded.geometry.trees[array.name]) for array in alone or arrays)


def laid_over(
    loaded: LoadedStudy, groups: tuple[Group, ...], member_bytes: int, note: Callable[[str], None]
) -> LoadedStudy:
    """The study with its arrays laid over groups; which cannot be is said.

    Raises
    ------
    InputError
        When no array can be.
    """
    try:
        study, arrangement = arranged(loaded, groups, member_bytes)
    except ValueError as error:
        raise InputError([Problem("", "--on", str(error))]) from None
    reasons: dict[str, list[str]] = {}
    for array, reason in arrangement.left_out.items():
        reasons.setdefault(reason, []).append(array)
    said = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())
    if not arrangement.members_of:
        message = f"no array can be laid over these groups: {said}"
        raise InputError.one("--on", message, accepted="larger groups, or more")
    if said:
        note(f"left out: {said}")
    return study


def places_told(target: Target) -> list[str]:
    """The places of a target, or its groups with their number of members."""
    if target.groups:
        return [f"{'/'.join(group.names)} ({len(group.members)})" for group in target.groups]
    return [str(place.path or place.kind) for place in target.places]
