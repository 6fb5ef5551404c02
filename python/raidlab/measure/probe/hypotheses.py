"""The arrays that a target may be, and where each puts a chunk: raidlab's own layouts, asked once a shape.

Invariants:

- Where a chunk lies is what the engine's layout says; nothing here knows a level's arithmetic.
- A hypothesis is a tree and a policy that the simulator takes, so whatever is predicted of it is simulated.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from raidlab import _core
from raidlab.study.cell import CellPolicy, Opaque
from raidlab.study.schema import POLICIES
from raidlab.study.units import format_bytes

KIB = 1024
ROTATIONS = (
    "left_symmetric",
    "left_asymmetric",
    "right_symmetric",
    "right_asymmetric",
    "parity_first",
    "parity_last",
)
COPIES = ("near2", "far2", "offset2")
# What mdadm takes where nothing is said; levels without a choice have only that.
USUAL = ("left_symmetric", "near2", "2", "")
MOST_COPIES = 3
_CHUNK = 64 * KIB
WRITE_POLICIES = ("md", "read_modify_write", "reconstruct_write")
CHUNKS = tuple(4 * KIB << i for i in range(11))
_LEVELS = {
    "single": "one disk",
    "raid0": "RAID 0",
    "raid1": "RAID 1",
    "raid10": "RAID 10",
    "raid5": "RAID 5",
    "raid6": "RAID 6",
    "raid50": "RAID 50",
}


@dataclass(frozen=True)
class ArrayShape:
    """A level over so many members, whatever its chunk."""

    level: str
    members: int
    detail: str = ""
    """Its rotation, the layout of its copies, or its groups."""

    def tree_text(self, chunk_bytes: int) -> str:
        """The tree as a study writes it."""
        if self.level == "single":
            return "independent(1)"
        if self.level == "raid1":
            return f"raid1({self.members})"
        key = {"raid5": "rotation", "raid6": "rotation", "raid10": "layout", "raid50": "groups"}.get(self.level)
        more = f", {key}={self.detail}" if key else ""
        return f"{self.level}({self.members}, chunk={chunk_bytes // KIB}KiB{more})"

    @property
    def has_chunks(self) -> bool:
        """Whether it deals its data in chunks."""
        return self.level not in ("single", "raid1")

    @property
    def has_parity(self) -> bool:
        """Whether it writes parity."""
        return self.level in ("raid5", "raid6", "raid50")

    @property
    def sets(self) -> list[tuple[int, ...]]:
        """The sets of members that hold chunks together."""
        return _dealt(self).sets

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """Which of these sets chunk 0, 1 ... lies on, until it begins again."""
        return _dealt(self).places

    @property
    def turn_rows(self) -> int:
        """How many chunks further on its members it begins again."""
        return _dealt(self).turn_rows

    def on_members(self, starts: npt.NDArray[np.int64], chunk_bytes: int) -> npt.NDArray[np.int64]:
        """Where on its members what begins there lies; of copies, where the foremost one does."""
        if not self.has_chunks:
            return starts
        turns, chunk = np.divmod(starts // chunk_bytes, len(self.places))
        rows = _dealt(self).rows[chunk] + turns * self.turn_rows
        return np.asarray(rows * chunk_bytes + starts % chunk_bytes)

    @property
    def has_copies(self) -> bool:
        """Whether a read may go to more than one member."""
        return self.level in ("raid1", "raid10")


@dataclass(frozen=True)
class Hypothesis:
    """An array that the target may be."""

    shape: ArrayShape
    chunk_bytes: int = 0
    write_policy: str = "md"

    @cached_property
    def tree_text(self) -> str:
        """The tree as a study writes it."""
        return self.shape.tree_text(self.chunk_bytes)

    @cached_property
    def tree(self) -> Opaque:
        """The tree as the engine takes it."""
        return dict(json.loads(_core.parse_tree(self.tree_text)))

    @property
    def title(self) -> str:
        """In words, such as ``RAID 5 of 5, 64 KiB chunks, left_symmetric``."""
        if self.shape.level == "single":
            return "one disk"
        words = [f"{_LEVELS[self.shape.level]} of {self.shape.members}"]
        if self.shape.has_chunks:
            words.append(f"{format_bytes(self.chunk_bytes)} chunks")
        if self.shape.detail:
            words.append(f"{self.shape.detail} groups" if self.shape.level == "raid50" else self.shape.detail)
        if self.write_policy != "md":
            words.append(self.write_policy)
        return ", ".join(words)

    def policy(self, *, rotating: bool) -> CellPolicy:
        """How it chooses, as the engine takes it: as Linux md does, or with the write policy that is supposed."""
        return policy_of_tree(self.tree, self.write_policy, rotating=rotating)

    @property
    def cycle_bytes(self) -> int:
        """After so many bytes it begins again on the same member; 0 where it always does."""
        return len(self.shape.places) * self.chunk_bytes


def policy_of_tree(tree: Opaque, write_policy: str = "md", *, rotating: bool) -> CellPolicy:
    """Linux md's choices for a tree; with another write policy, those of a plain array."""
    said = dict(POLICIES["md"]) if write_policy == "md" else {"parity_write": write_policy}
    if tree["kind"] != "parity":
        # Rows of a stripe are kept over members only.
        said.pop("stripe_cache_size", None)
    return CellPolicy.model_validate({**said, "mirror_read": {"kind": "md", "rotating": rotating}})


class _Dealt(NamedTuple):
    """How a shape deals chunks, until it begins again."""

    sets: list[tuple[int, ...]]
    places: npt.NDArray[np.intp]
    rows: npt.NDArray[np.int64]
    """Which chunk of its member each is; of copies, the foremost."""
    turn_rows: int
    """How many chunks further on its member it begins again."""


@cache
def _dealt(shape: ArrayShape) -> _Dealt:
    if not shape.has_chunks:
        return _Dealt([tuple(range(shape.members))], np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.int64), 1)
    holders, rows, turn_rows = _copies_of(shape) if shape.has_copies else _data_of(shape)
    sets = sorted(set(holders))
    return _Dealt(sets, np.array([sets.index(some) for some in holders], dtype=np.intp), np.array(rows), turn_rows)


def _data_of(shape: ArrayShape) -> tuple[list[tuple[int, ...]], list[int], int]:
    """The member of chunk 0, 1 ... and its row there, by the map."""
    turn_rows = 2 * shape.members
    found = _core.layout_map(_core.parse_tree(shape.tree_text(_CHUNK)), turn_rows)
    cells = sorted(
        (cell["chunk"], member, row)
        for member, column in enumerate(found["members"])
        for row, cell in enumerate(column)
        if cell["kind"] == "data"
    )
    return [(member,) for _, member, _ in cells], [row for *_, row in cells], turn_rows


def _copies_of(shape: ArrayShape) -> tuple[list[tuple[int, ...]], list[int], int]:
    """The members of chunk 0, 1 ... by plans that write them: a map of a few rows has no far copies."""
    tree, policy = _core.parse_tree(shape.tree_text(_CHUNK)), CellPolicy().model_dump_json(exclude_none=True)
    plans = (
        _core.plan_io(tree, 4 * KIB, 1024 * _CHUNK, policy, "write", chunk * _CHUNK, _CHUNK, [], 0)
        for chunk in range(shape.members + 1)
    )
    written = [
        sorted((node["member"], node["offset_bytes"] // _CHUNK) for node in plan["nodes"] if node["op"] == "write")
        for plan in plans
    ]
    rows = [min(row for _, row in copies) for copies in written]
    turn_rows = rows.pop() - rows[0]
    return [tuple(member for member, _ in copies) for copies in written[:-1]], rows, turn_rows


def shapes(least: int, most: int) -> Iterator[ArrayShape]:
    """All shapes of so many members; one disk is always among them."""
    yield ArrayShape("single", 1)
    for count in range(max(2, least), most + 1):
        yield ArrayShape("raid0", count)
        if count <= MOST_COPIES:
            yield ArrayShape("raid1", count)
        if count > 2:
            yield from (ArrayShape("raid10", count, layout) for layout in COPIES)
            yield from (ArrayShape("raid5", count, rotation) for rotation in ROTATIONS)
        if count > 3:
            yield from (ArrayShape("raid6", count, rotation) for rotation in ROTATIONS)
        for groups in (2, 3):
            if count % groups == 0 and count // groups > 2:
                yield ArrayShape("raid50", count, str(groups))


def hypotheses(found: Sequence[ArrayShape], chunks: Sequence[int]) -> list[Hypothesis]:
    """Every shape with every chunk."""
    return [Hypothesis(shape, chunk) for shape in found for chunk in (chunks if shape.has_chunks else (0,))]


def log_priors(found: Sequence[Hypothesis]) -> list[float]:
    """Levels are as likely as one another; within one, what mdadm takes by itself is as likely as all the rest."""
    groups = [(one.shape.level, one.shape.detail in USUAL) for one in found]
    counts = Counter(groups)
    return [-math.log(counts[group]) for group in groups]
