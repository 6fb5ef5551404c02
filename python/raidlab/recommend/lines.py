"""Along what a need is moved to see what would change its answer: the work, and what the files of disks assume.

Invariant: nothing is simulated here; a line says how far it goes, and what the need is at any place of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from raidlab.analysis.margins import Margin
from raidlab.reading import Plain
from raidlab.recommend.candidates import Contender, Shape
from raidlab.recommend.load import LoadedNeed, ResolvedWork
from raidlab.results.recommendation import AnswerTurn
from raidlab.stats.turning import Range, Turning
from raidlab.study.device import moved_device
from raidlab.study.places import value_at

# A depth or a rate is looked at up to so many times higher and lower.
FARTHEST = 4.0
_MOST_DEPTH = 1024


@dataclass(frozen=True)
class Assumption:
    """What the file of a disk may assume and an answer may hang on."""

    low: int
    high: int
    """How far it is moved."""
    words: str
    """What it says of the disk, with its value in the place of ``{}``."""


# By key. Of a drive's order of service no maker prints how long a request may be passed over; fits try the same values
# (`raidlab.measure.fit`).
ASSUMED = {
    "scheduler.aged_sptf.percent": Assumption(1, 20, "{} % of its wait brings a request forward in a disk's order"),
}


@dataclass(frozen=True)
class MarginLine:
    """Along what the need is moved: something of one workload, or what the file of a disk assumes."""

    axis: str
    """``read``, ``depth``, ``rate``, or the key of a device."""
    range: Range
    works: tuple[int, ...]
    """Workloads that are others where it is moved."""
    moved: Callable[[float], LoadedNeed] = field(compare=False)
    title: str = ""
    """What stands before it in a sentence."""
    assumed: Assumption | None = None

    @property
    def key(self) -> str:
        """What it is called in an answer."""
        return f"{self.title}{self.axis}"

    @property
    def sides_that_relieve(self) -> tuple[bool, ...]:
        """On which sides (upwards or not) an array may meet what it misses."""
        return () if self.axis == "read" else (False,) if self.assumed is None else (False, True)

    @property
    def relieving(self) -> Range:
        """How far it is moved where nothing meets the need: a load is lighter by any amount."""
        if self.assumed is not None:
            return self.range
        return replace(self.range, low=1.0 if self.axis == "depth" else self.range.now / FARTHEST**2)

    def is_nearer(self, one: float, other: float) -> bool:
        """Whether a place is nearer than another on the same side."""
        return abs(one - self.range.now) < abs(other - self.range.now)

    def turn(self, turned: Turning, instead: str) -> AnswerTurn:
        """Where the answer turns, and who is first beyond."""
        scale = 100.0 if self.axis == "read" else 1.0
        at, now = scale * turned.at, scale * self.range.now
        low, high = (None if one is None else scale * one for one in (turned.low, turned.high))
        if self.assumed is not None:
            span = f", {low:.2g} to {high:.2g}" if low is not None and high is not None else ""
            side = f"{'more' if at > now else 'less'} than {at:.2g}"
            said = f"{self.assumed.words.format(side)}, assumed {now:g} (simulated{span}, then {instead})"
        else:
            said = Margin(self.axis, now, at, low, high, instead, "simulated").condition()  # type: ignore[arg-type]
        return AnswerTurn(
            axis=self.key,
            now=now,
            turns_at=at,
            low=low,
            high=high,
            instead=instead,
            how="simulated",
            words=f"{self.title}{said}",
        )

    def words(self, ends: list[float]) -> str:
        """A place on it, or from one to another."""
        if self.axis == "read":
            return f"{' to '.join(f'{100 * end:.0f}' for end in ends)} % reads"
        if self.axis == "depth":
            plural = "a queue depth" if len(ends) == 1 else "queue depths"
            return f"{plural} of {' to '.join(f'{end:.0f}' for end in ends)}"
        if self.assumed is not None:
            return self.assumed.words.format(" to ".join(f"{end:g}" for end in ends))
        return f"{' to '.join(f'{end:,.4g}' for end in ends)} requests/s"

    def instead_words(self, place: float) -> str:
        """A place in the stead of what is now."""
        now = f", assumed {self.range.now:g}" if self.assumed is not None else f" instead of {self.range.now:,.4g}"
        return f"{self.title}{self.words([place])}{now}"


def lines_of(loaded: LoadedNeed, *arrays: Contender) -> Iterator[list[MarginLine]]:
    """Along what the need is moved, those of one disk or workload together.

    What is assumed of the disks of some arrays comes first where times are asked for, as it says how long one waits.
    """
    assumed = [line for one in arrays for line in _assumed_lines(loaded, one)]
    has_times = bool(loaded.need.need.time_goals())
    if has_times:
        yield assumed
    for at, work in enumerate(loaded.works):
        title = f"{work.name}: " if len(loaded.works) > 1 else ""
        yield [
            MarginLine(axis, range_, (at,), partial(_moved, loaded, at, axis), title) for axis, range_ in _ranges(work)
        ]
    if not has_times:
        yield assumed


def _ranges(work: ResolvedWork) -> Iterator[tuple[str, Range]]:
    """What of a workload is moved, and how far."""
    read = work.table.get("read")
    if "trace" in work.table:
        return
    # Loads grow, so they come first: what is left when time is up is not looked at.
    if work.load.kind == "closed":
        now = float(work.load.depth)
        most = min(max(now, _MOST_DEPTH), now * FARTHEST)
        yield "depth", Range(now, max(1.0, math.floor(now / FARTHEST)), most, is_share=False, whole=1)
    elif work.load.kind == "open":
        now = work.load.rate_per_s
        yield "rate", Range(now, now / FARTHEST, now * FARTHEST, is_share=False)
    if isinstance(read, int | float):
        yield "read", Range(float(read), 0.0, 1.0, is_share=True)


def _assumed_lines(loaded: LoadedNeed, array: Contender) -> Iterator[MarginLine]:
    """What the file of an array's disks assumes, as far as it is moved."""
    device = array.shape.device
    for key, now in assumed_of(loaded, array.shape).items():
        assumed, works = ASSUMED[key], tuple(range(len(loaded.works)))
        range_ = Range(float(now), min(assumed.low, now), max(assumed.high, now), is_share=False, whole=1)
        moved = partial(_with_parameter, loaded, device, key)
        yield MarginLine(key, range_, works, moved, f"{loaded.device_name(device)}: ", assumed)


def assumed_of(loaded: LoadedNeed, shape: Shape) -> dict[str, int]:
    """Of what may decide an answer what the file of an array's disks assumes, by its key."""
    model, found = loaded.models[shape.device], dict[str, int]()
    # An order of service that is looked at is the need's own.
    if shape.scheduler is not None:
        return found
    told = model.parameters.get("provenance")
    for key in ASSUMED:
        value = value_at(model.parameters, key.split("."))
        source = value_at(told, key.split(".")[:1])
        if isinstance(value, int) and _is_assumed(source):
            found[key] = value
    return found


def _is_assumed(source: Plain) -> bool:
    """Whether a line of provenance says so, of this device or of the one that it is like."""
    if not isinstance(source, Mapping):
        return False
    return source.get("status") == "assumed" or "(assumed" in str(source.get("why"))


def _with_parameter(loaded: LoadedNeed, device: int, key: str, place: float) -> LoadedNeed:
    """The need with disks that have another value of one key."""
    model, held = moved_device(loaded.models[device], {key: round(place)}), list(loaded.need.devices)
    held[device] = held[device].model_copy(
        update={"device": model.parameters, "name": loaded.device_name(device), "capacity": loaded.bytes_of(device)}
    )
    models = [*loaded.models[:device], model, *loaded.models[device + 1 :]]
    return replace(loaded, need=loaded.need.model_copy(update={"devices": held}), models=models)


def _moved(loaded: LoadedNeed, at: int, axis: str, place: float) -> LoadedNeed:
    work = loaded.works[at]
    if axis == "read":
        moved = replace(work, table={**work.table, "read": min(max(place, 0.0), 1.0)})
    elif axis == "depth":
        moved = replace(work, load=replace(work.load, depth=round(place)))
    else:
        moved = replace(work, load=replace(work.load, rate_per_s=place))
    return replace(loaded, works=[*loaded.works[:at], moved, *loaded.works[at + 1 :]])


@dataclass
class Ends:
    """How far each line of a disk or workload was looked along, or would have been."""

    _by_line: dict[MarginLine, dict[bool, float]] = field(default_factory=dict)

    def add(self, line: MarginLine, end: float, *, upwards: bool) -> None:
        """Add one end of a line."""
        self._by_line.setdefault(line, {})[upwards] = end

    def words(self) -> list[str]:
        """All of them in one line; none where there are none."""
        each = [
            f"{'' if len(ends) > 1 else 'up to ' if True in ends else 'down to '}{line.words([*ends.values()])}"
            for line, ends in self._by_line.items()
        ]
        return [f"{next(iter(self._by_line)).title}{', '.join(each)}"] if each else []
