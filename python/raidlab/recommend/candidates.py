"""The arrays that could be built of the disks there are, what of the need they meet by their shape, and what they miss.

Invariants:

- Space and failures borne are the engine's own tree facts, cost and watts are counts; nothing here is simulated.
- What misses a need is kept with by how much it does, so that the answer can say what relaxing the need would admit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from raidlab.analysis.model.access_count import accesses
from raidlab.analysis.model.reliability import (
    MemberLifetime,
    loss_per_year,
    mttf_hours,
    rebuild_hours,
    tree_hours,
    unreadable,
)
from raidlab.recommend.load import LoadedNeed
from raidlab.recommend.need import COPIES, HeldDevice
from raidlab.results.recommendation import LEVEL_TITLES
from raidlab.study.tree import Tree
from raidlab.study.units import format_bytes

if TYPE_CHECKING:
    from raidlab._core import TreeFacts

MOST_CANDIDATES = 20_000
_UNCHUNKED = ("raid1",)
_GROUPED = ("raid50", "raid60")
_HOUR_NS = 3600e9
# An array looked at beyond what is at hand, to say what one more disk would give.
_ONE_MORE = 1
# Whole chunks and stripes lose a little: 60 TB are met by three disks' worth of 20 TB.
ROUNDED = 1e-3


@dataclass(frozen=True)
class Shortfall:
    """A need that an array misses: what it has, and what is wanted, in base units."""

    need: str
    has: float
    wants: float

    @property
    def ratio(self) -> float:
        """How far it is from what is wanted, as a factor above 1."""
        low, high = sorted((max(self.has, 1e-12), max(self.wants, 1e-12)))
        return high / low


@dataclass(frozen=True)
class Shape:
    """What decides how fast an array is: its disks and how they are arranged."""

    device: int
    """Which of the need's devices."""
    level: str
    members: int
    text: str
    """The tree as a study has it."""
    scheduler: int | None = None
    """Which of the orders of service looked at."""


@dataclass(frozen=True)
class Contender:
    """An array, and its spares."""

    number: int
    """Its place in the enumeration."""
    shape: Shape
    name: str
    tree: Tree = field(compare=False, hash=False)
    chunk_bytes: int | None
    groups: int | None
    spares: int
    user_bytes: int
    tolerance: int
    cost: float | None
    watts: float | None
    loss_per_year: float | None
    missed: tuple[Shortfall, ...]
    """Needs that its shape alone misses."""

    @property
    def disks(self) -> int:
        """Members and spares."""
        return self.shape.members + self.spares

    @property
    def is_at_hand(self) -> bool:
        """Whether there are as many disks as it takes."""
        return all(short.need != "at_most" for short in self.missed)


def enumerate_candidates(loaded: LoadedNeed) -> list[Contender]:
    """Every array that could be built, cheapest first where there are prices, then by disks."""
    found = [candidate for device in range(len(loaded.models)) for candidate in _of_device(loaded, device)]
    if not any(candidate.is_at_hand for candidate in found):
        counts = ", ".join(f"{held.at_most} of {loaded.device_name(i)}" for i, held in enumerate(loaded.need.devices))
        accepted = "levels and members that these disks make, such as raid1 of 2 or raid5 of 3"
        raise loaded.problem(("search",), f"no array that is looked at can be built of {counts}", accepted)
    if len(found) > MOST_CANDIDATES:
        message = f"asks for {len(found):,} arrays"
        raise loaded.problem(("search",), message, f"at most {MOST_CANDIDATES:,}: fewer chunks, members or spares")
    order = sorted(range(len(found)), key=lambda at: (found[at].cost or 0.0, found[at].disks, at))
    return [_numbered(found[at], number) for number, at in enumerate(order)]


def _numbered(candidate: Contender, number: int) -> Contender:
    return Contender(**{**vars(candidate), "number": number})


def _of_device(loaded: LoadedNeed, device: int) -> Iterator[Contender]:
    search, held = loaded.need.search, loaded.need.devices[device]
    most = held.at_most + _ONE_MORE
    counts = sorted(set(search.members)) if search.members is not None else range(1, most + 1)
    for level in loaded.need.levels:
        for members in counts:
            if members > most:
                continue
            for chunk in dict.fromkeys(search.chunks) if level not in _UNCHUNKED else (None,):
                for groups in dict.fromkeys(search.groups) if level in _GROUPED else (None,):
                    yield from _of_tree(loaded, device, level, members, chunk, groups)


def _of_tree(
    loaded: LoadedNeed, device: int, level: str, members: int, chunk: int | None, groups: int | None
) -> Iterator[Contender]:
    """The candidates of one tree; none where the level cannot be built of so many disks."""
    from raidlab import _core

    held, search = loaded.need.devices[device], loaded.need.search
    text = _tree_text(level, members, chunk, groups)
    try:
        written = _core.parse_tree(text)
        facts = _core.tree_facts(written, loaded.bytes_of(device), loaded.models[device].sector_bytes)
    except _core.CellError:
        return
    tree: Tree = json.loads(written)
    if "layout" in tree:
        # RAID 10 of a number that its copies do not divide, which only md builds: a search compares what any tool can.
        return
    for scheduler in range(len(search.schedulers)) if search.schedulers is not None else (None,):
        for spares in dict.fromkeys(search.spares):
            # A spare of an array that bears no loss has nothing to rebuild.
            if (spares and not facts["tolerance"]) or members + spares > held.at_most + _ONE_MORE:
                continue
            shape = Shape(device, level, members, text, scheduler)
            yield _candidate(loaded, shape, tree, facts, chunk, groups, spares)


def _tree_text(level: str, members: int, chunk: int | None, groups: int | None) -> str:
    """The tree as a study has it."""
    copies = COPIES.get(level, 0)
    keys = [str(members), *([f"chunk={_size_text(chunk)}"] if chunk else []), *([f"groups={groups}"] if groups else [])]
    keys += [f"layout=near{copies}"] if copies > 2 else []
    return f"{'raid10' if copies else level}({', '.join(keys)})"


def _candidate(
    loaded: LoadedNeed, shape: Shape, tree: Tree, facts: TreeFacts, chunk: int | None, groups: int | None, spares: int
) -> Contender:
    held, disks = loaded.need.devices[shape.device], shape.members + spares
    cost = None if held.price is None else held.price * disks
    drawn = loaded.watts_of(shape.device)
    watts = None if drawn is None else drawn * disks
    loss = _loss(loaded, shape.device, tree, spares)
    missed = list(_missed(loaded, held, disks, facts, cost, watts, loss))
    return Contender(
        number=0,
        shape=shape,
        name=_name(loaded, shape, chunk, groups, spares),
        tree=tree,
        chunk_bytes=chunk,
        groups=groups,
        spares=spares,
        user_bytes=facts["user_bytes"],
        tolerance=facts["tolerance"],
        cost=cost,
        watts=watts,
        loss_per_year=loss,
        missed=tuple(missed),
    )


def _missed(
    loaded: LoadedNeed,
    held: HeldDevice,
    disks: int,
    facts: TreeFacts,
    cost: float | None,
    watts: float | None,
    loss: float | None,
) -> Iterator[Shortfall]:
    goals = loaded.need.need
    if disks > held.at_most:
        yield Shortfall("at_most", disks, held.at_most)
    if goals.capacity is not None and facts["user_bytes"] < (1 - ROUNDED) * goals.capacity:
        yield Shortfall("capacity", facts["user_bytes"], goals.capacity)
    if facts["tolerance"] < goals.tolerate:
        yield Shortfall("tolerate", facts["tolerance"], goals.tolerate)
    for need, has, wants in (
        ("budget", cost, goals.budget),
        ("watts", watts, goals.watts),
        ("loss_per_year", loss, goals.loss_per_year),
    ):
        if wants is not None and has is not None and has > wants:
            yield Shortfall(need, has, wants)


def _loss(loaded: LoadedNeed, device: int, tree: Tree, spares: int) -> float | None:
    held = loaded.need.devices[device]
    if held.afr_percent is None:
        return None
    size = loaded.bytes_of(device)
    waiting = 0.0 if spares else loaded.need.replace / _HOUR_NS
    rebuild = rebuild_hours(size, held.rebuild_mb_s, waiting)
    member = MemberLifetime(mttf_hours(held.afr_percent), rebuild, unreadable(size, held.ure_per_bit))
    return loss_per_year(tree_hours(tree, member))


def _name(loaded: LoadedNeed, shape: Shape, chunk: int | None, groups: int | None, spares: int) -> str:
    """What an array is called: its level and disks, and what else tells it from the others."""
    parts = [f"{LEVEL_TITLES[shape.level]} of {shape.members}"]
    if len(loaded.models) > 1:
        parts[0] += f" {loaded.device_name(shape.device)}"
    if groups is not None and len(loaded.need.search.groups) > 1:
        parts.append(f"{groups} groups")
    if chunk is not None:
        parts.append(format_bytes(chunk))
    if shape.scheduler is not None and loaded.need.search.schedulers is not None:
        chosen = loaded.need.search.schedulers[shape.scheduler]
        parts.append(chosen if isinstance(chosen, str) else next(iter(chosen), "scheduler"))
    if spares:
        parts.append(f"{spares} spare{'s' if spares > 1 else ''}")
    return ", ".join(parts)


def requests_per_access(loaded: LoadedNeed, candidate: Contender) -> float:
    """How many requests an array serves while one disk serves one access, by counting accesses; any work, all busy."""
    found = []
    for work in loaded.works:
        size, read = _typical(work.table)
        per_request = read * accesses(candidate.tree, size, write=False)
        per_request += (1 - read) * accesses(candidate.tree, size, write=True)
        depth = work.load.depth or work.depth
        n = candidate.shape.members
        # Of n disks so many are busy on the average with so many accesses spread at random.
        under_way = depth * max(1.0, per_request)
        found.append(n * under_way / (under_way + n - 1) / max(per_request, 1e-9))
    product = 1.0
    for one in found:
        product *= one
    return float(product ** (1 / len(found)))


def _typical(table: Mapping[str, object]) -> tuple[int, float]:
    """The size and the share of reads that stand for a workload; of a trace nothing is known before it is read."""
    size, read = table.get("size"), table.get("read", 0.5)
    said = size.get("bytes", size.get("mean")) if isinstance(size, dict) else None
    middle = said[len(said) // 2] if isinstance(said, list) else said
    bytes_of = middle if isinstance(middle, int) else 4096
    return bytes_of, float(read) if isinstance(read, int | float) else 0.5


def _size_text(count: int) -> str:
    """A size as a tree has it: in whole KiB where it is."""
    return f"{count // 1024}KiB" if count % 1024 == 0 else str(count)
