"""What clients had on a bad day: before it, while an array scrubs, has a slow member, lacks one, is rebuilt, and after.

Invariants:

- Phases are told apart by what the engine noted (tables ``rebuilds`` and ``scrubs``), and by when the study makes
  members slow. An array rebuilds while any new member does; it is degraded while one has failed and none is rebuilt,
  nor ever will be; it has a slow member, or else scrubs, while none of its members is gone; it is well again after
  that, also until the next one fails.
- What larger members would take is reckoned from rebuilds that came to their end alone.
- A phase has the seconds of the run's clock that lie wholly within it, so that none counts twice; one without any has
  no figures. A second in which nothing completed is a second.
- The first phase begins with the run: a warm-up is part of it.
- Repeats are merged by adding up; what scatters from one to the next is said as an interval. A percentile is taken from
  the merged counts.
- A share of a single repeat needs a few seconds on both sides: of one or two, it is luck.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil, sqrt

import numpy as np
import polars as pl

from raidlab.analysis.checks.data_loss import losses_among
from raidlab.analysis.metrics import Analysis, Point
from raidlab.analysis.model.access_count import bears
from raidlab.histogram import Histogram
from raidlab.reading import Plain
from raidlab.stats import mean_interval, ratio_interval
from raidlab.study.schema import MdThrottle, MemberEvent, RateThrottle, Throttle

BEFORE, SCRUBBING, SLOW, DEGRADED = "before", "scrubbing", "slow member", "degraded"
REBUILDING, AFTER = "rebuilding", "after"
PHASES = (BEFORE, SCRUBBING, SLOW, DEGRADED, REBUILDING, AFTER)
NS_PER_S = 1_000_000_000
_NEVER_NS = 1 << 63
# More points than this are wider than a picture.
MOST_STRETCHES = 120
# Of fewer seconds of a single repeat no share is given; where there are more, their interval says what it is worth.
LEAST_SECONDS = 5
# A rebuild whose rate is so near to the one that its throttle asks for, as a share of that, is held there.
_AT_ASKED = (0.95, 1.1)
_KIB = 1024
# Standard deviations of a count of arrivals within which one is the same.
_CHANCE = 2


@dataclass(frozen=True)
class Stretch:
    """What clients had within some seconds of the run's clock."""

    begin_s: int
    end_s: int
    mb_s: float
    p99_ms: float | None


@dataclass(frozen=True)
class Phase:
    """A part of a bad day, in one stretch or several, and what clients had in it."""

    name: str
    spans_s: tuple[tuple[float, float], ...]
    seconds: int
    requests: int
    bytes: int
    times: Histogram

    @property
    def length_s(self) -> float:
        """How long it was, all stretches together."""
        return sum(end - begin for begin, end in self.spans_s)

    @property
    def requests_per_s(self) -> float | None:
        """None without a whole second."""
        return self.requests / self.seconds if self.seconds else None

    @property
    def mb_s(self) -> float | None:
        """None without a whole second."""
        return self.bytes / self.seconds / 1e6 if self.seconds else None

    @property
    def p99_ms(self) -> float | None:
        """None where nothing completed."""
        found = self.times.percentile_ns(99)
        return None if found is None else found / 1e6


@dataclass(frozen=True)
class Day:
    """One repeat of a bad day."""

    phases: tuple[Phase, ...]
    series: tuple[Stretch, ...]
    is_whole: bool
    """Whether all was rebuilt when the run was over."""
    rebuilt_bytes: int
    member_bytes: int
    """Of the members whose rebuild began, together."""
    rebuilding_s: float
    """How long new members were rebuilt, each counted for itself."""
    is_stopped: bool
    """Whether a rebuild was given up, because too little could be read of the others."""
    gone: tuple[int, ...]
    """The most members that were not whole at the same time, those missing included."""
    loss: str | None
    """In which words the engine says that data were lost, if they were."""

    def phase(self, name: str) -> Phase | None:
        """The phase of a name, if the day had one."""
        return next((phase for phase in self.phases if phase.name == name), None)

    @property
    def risk_s(self) -> float:
        """How long it could lose fewer members than it was built to lose: until it was whole, or the run was over."""
        return sum(phase.length_s for phase in self.phases if phase.name in (DEGRADED, REBUILDING))


@dataclass(frozen=True)
class BadDay:
    """One array under one load, through scrubs, slow members, the failure of members and their rebuild."""

    point: Point
    repeats: tuple[Day, ...]
    throttle: Throttle | None
    """How the rebuild was throttled; None where none was asked for."""

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of all repeats together, with the stretches of the first that had them."""
        found = []
        for name in PHASES:
            same = [phase for day in self.repeats if (phase := day.phase(name)) is not None]
            if same:
                times = Histogram.merged(phase.times for phase in same)
                seconds, requests, moved = (
                    sum(getattr(phase, what) for phase in same) for what in ("seconds", "requests", "bytes")
                )
                found.append(Phase(name, same[0].spans_s, seconds, requests, moved, times))
        return tuple(found)

    def phase(self, name: str) -> Phase | None:
        """The phase of a name, if the day had one."""
        return next((phase for phase in self.phases if phase.name == name), None)

    def kept_percent(self, name: str) -> float | None:
        """Throughput in a phase as a share of that before the failure; None where either is too short to tell.

        Of requests that arrive whatever the array does it is the share of those: what arrived before is chance.
        """
        phase, before = self.phase(name), self.phase(BEFORE)
        if phase is None or not self._rates(name):
            return None
        kept, whole = phase.mb_s, None if before is None else before.mb_s
        if self.point.rate_per_s:
            kept, whole = phase.requests_per_s, self.point.rate_per_s
        return None if kept is None or not whole else 100 * kept / whole

    def keeps_up(self, name: str) -> bool:
        """Whether in a phase as many completed as arrive whatever the array does, but for the chance of arrivals."""
        phase, rate_per_s = self.phase(name), self.point.rate_per_s
        if phase is None or not rate_per_s:
            return False
        arrivals = rate_per_s * phase.seconds
        return phase.requests > arrivals - _CHANCE * sqrt(arrivals)

    def kept_interval(self, name: str) -> tuple[float, float] | None:
        """The 95 % interval of that share over repeats; None for a single one."""
        pairs = self._rates(name)
        found = ratio_interval([own for own, _ in pairs], [before for _, before in pairs]) if pairs else None
        return None if found is None else (100 * found[0], 100 * found[1])

    def _rates(self, name: str) -> list[tuple[float, float]]:
        """Of each repeat the rate in a phase and that before; none at all where one of them is too short."""
        found, least = [], LEAST_SECONDS if len(self.repeats) == 1 else 1
        for day in self.repeats:
            both = (day.phase(name), day.phase(BEFORE))
            phase, before = (one if one is not None and one.seconds >= least else None for one in both)
            if phase is not None and self.point.rate_per_s:
                found.append((phase.requests_per_s or 0.0, self.point.rate_per_s))
            elif phase is None or before is None or not phase.mb_s or not before.mb_s:
                return []
            else:
                found.append((phase.mb_s, before.mb_s))
        return found

    @property
    def risk_s(self) -> float:
        """How long it was at risk, the mean of the repeats."""
        return sum(day.risk_s for day in self.repeats) / len(self.repeats)

    @property
    def risk_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of that; None for a single repeat."""
        return mean_interval([day.risk_s for day in self.repeats])

    @property
    def is_whole(self) -> bool:
        """Whether all was rebuilt when the run was over, in every repeat."""
        return all(day.is_whole for day in self.repeats)

    @property
    def is_stopped(self) -> bool:
        """Whether a rebuild was given up in any repeat."""
        return any(day.is_stopped for day in self.repeats)

    @property
    def losses(self) -> list[str]:
        """In the engine's words, how data were lost: of each repeat in which they were."""
        return [day.loss for day in self.repeats if day.loss is not None]

    @property
    def rebuild_s(self) -> float | None:
        """How long was rebuilt, the mean of the repeats; None where it was not over when a run was."""
        return self.length_s(REBUILDING) or None if self.is_whole else None

    def length_s(self, name: str) -> float:
        """How long a phase was, the mean of the repeats that had it; 0 where none had."""
        lengths = [phase.length_s for day in self.repeats if (phase := day.phase(name)) is not None]
        return sum(lengths) / len(lengths) if lengths else 0.0

    @property
    def rebuilt_bytes(self) -> int:
        """Of all members and repeats together."""
        return sum(day.rebuilt_bytes for day in self.repeats)

    @property
    def member_bytes(self) -> int:
        """Of the members whose rebuild began, in all repeats together."""
        return sum(day.member_bytes for day in self.repeats)

    @property
    def rebuilt_bytes_per_s(self) -> float | None:
        """The rate at which a member was rebuilt, as long as it was; None where none was."""
        seconds = sum(day.rebuilding_s for day in self.repeats)
        return self.rebuilt_bytes / seconds if seconds and self.rebuilt_bytes else None

    @property
    def hours_a_tb(self) -> float | None:
        """How long a terabyte of a member would take at the rate of this rebuild; None where it did not end."""
        rate = self.rebuilt_bytes_per_s if self.is_whole else None
        return None if rate is None else 1e12 / rate / 3600

    @property
    def asked_kib_s(self) -> float | None:
        """The rate of each member that its throttle asks for, whatever clients do; None of one that asks for none."""
        match self.throttle:
            case MdThrottle(min_kib_s=least):
                return least
            case RateThrottle(kib_s=rate):
                return rate
        return None

    @property
    def share_of_asked(self) -> float | None:
        """What the rebuild had of that rate; None where nothing was asked for, or rebuilt."""
        rate, asked = self.rebuilt_bytes_per_s, self.asked_kib_s
        return None if rate is None or not asked else rate / (asked * _KIB)

    @property
    def floor_kib_s(self) -> float | None:
        """The least rate of md's, if the rebuild had about that: md heeds clients only where it is faster."""
        share, (least, most) = self.share_of_asked, _AT_ASKED
        return self.asked_kib_s if share and least <= share <= most and isinstance(self.throttle, MdThrottle) else None

    @property
    def missed_kib_s(self) -> float | None:
        """The rate that its throttle asks for, if the rebuild was slower; None of one that did not go on."""
        share = None if self.is_stopped or self.losses else self.share_of_asked
        return self.asked_kib_s if share and share < _AT_ASKED[0] else None

    @cached_property
    def fatal(self) -> tuple[int, ...] | None:
        """The other members with any of which data would be lost, had it failed too; None where nothing tells."""
        if self.point.standing is not None:
            return None
        gone = max((day.gone for day in self.repeats), key=len)
        try:
            tree = self.point.run.tree(self.point.array)
            return tuple(one for one in range(self.point.members) if one not in gone and not bears(tree, {*gone, one}))
        except ValueError:
            # A run folder may hold what no engine wrote.
            return None

    def row(self) -> dict[str, Plain]:
        """All of it as JSON takes it: what it was, its risk and rebuild, and its phases by name."""
        phases = {
            phase.name: {
                "length_s": self.length_s(phase.name),
                "mb_s": phase.mb_s,
                "kept_percent": None if phase.name == BEFORE else self.kept_percent(phase.name),
                "p99_ms": phase.p99_ms,
            }
            for phase in self.phases
        }
        point, fatal = self.point, self.fatal
        return {
            **{key: getattr(point, key) for key in ("target", "array", "workload", "level")},
            "repeats": len(self.repeats),
            "risk_s": self.risk_s,
            "is_whole": self.is_whole,
            "data_lost_repeats": len(self.losses),
            "rebuild_s": self.rebuild_s,
            "rebuilt_bytes_per_s": self.rebuilt_bytes_per_s,
            "must_not_fail": None if fatal is None else list(fatal),
            "phases": phases,
        }

    @property
    def others(self) -> int:
        """How many members were whole all the time that others were not."""
        return self.point.members - max(len(day.gone) for day in self.repeats)


def bad_days(analysis: Analysis) -> list[BadDay]:
    """The bad days of a run, in the order of its points; none where nothing befalls a member and none scrubs."""
    run = analysis.run
    arrays = {array.name: array for array in run.study.array}
    has_slow = any(event.slow is not None for array in run.study.array for event in array.events)
    if run.rebuilds.is_empty() and run.scrubs.is_empty() and not has_slow:
        return []
    found = []
    for point in analysis.points:
        rebuild, events = arrays[point.array].rebuild, arrays[point.array].events
        days = tuple(day for cell in point.cells if (day := _day(analysis, point, cell, events)) is not None)
        if point.is_swept and days:
            found.append(BadDay(point, days, None if rebuild is None else rebuild.throttle))
    return found


def _day(analysis: Analysis, point: Point, cell: int, events: Sequence[MemberEvent]) -> Day | None:
    mine = pl.col("cell") == cell
    places = [_Place(*row) for row in analysis.run.rebuilds.filter(mine).select(_PLACE).iter_rows()]
    scrubs = analysis.run.scrubs.filter(mine).select("begun_ns", "over_ns").iter_rows()
    hardships = [_Hardship(SLOW, *times) for times in _slow_times(events, places)]
    hardships += [_Hardship(SCRUBBING, begun, _NEVER_NS if over is None else over) for begun, over in scrubs]
    if not (places or hardships):
        return None
    seconds = analysis.run.snapshots.filter(mine).sort("time_ns")
    if seconds.is_empty():
        return None
    # The last second is cut short by the end of the run.
    end_ns = max(0, int(seconds["time_ns"][-1]) - NS_PER_S)
    spans = _spans(places, hardships, end_ns)
    counts = analysis.run.snapshot_histograms.filter(mine)
    lost = losses_among(analysis.run.checks.filter(mine))["evidence"].to_list()
    return Day(
        tuple(_phase(name, spans[name], seconds, counts) for name in PHASES if name in spans),
        tuple(_series(seconds, counts)),
        all(place.whole_ns is not None for place in places),
        sum(place.rebuilt_bytes for place in places),
        sum(place.member_bytes for place in places if place.begun_ns is not None),
        sum(place.rebuilding_ns(end_ns) for place in places) / NS_PER_S,
        any(place.stopped_ns is not None for place in places),
        _most_gone(places, point.missing),
        lost[0] if lost else None,
    )


@dataclass(frozen=True)
class _Place:
    """The place of a member that failed or was rebuilt: a row of the table ``rebuilds``."""

    leaf: int
    failed_ns: int | None
    begun_ns: int | None
    whole_ns: int | None
    stopped_ns: int | None
    rebuilt_bytes: int
    member_bytes: int

    def is_gone(self, at_ns: int) -> bool:
        """Whether it does not hold all it should."""
        since = self.begun_ns if self.failed_ns is None else self.failed_ns
        return since is not None and since <= at_ns and (self.whole_ns is None or at_ns < self.whole_ns)

    def is_rebuilt(self, at_ns: int) -> bool:
        """Whether a new member is in the place, not yet whole and not given up."""
        is_given_up = self.stopped_ns is not None and self.stopped_ns <= at_ns
        return self.is_gone(at_ns) and self.begun_ns is not None and self.begun_ns <= at_ns and not is_given_up

    def rebuilding_ns(self, end_ns: int) -> int:
        """How long it was rebuilt, until the run was over at the latest."""
        return 0 if self.begun_ns is None else max(0, (self.whole_ns or self.stopped_ns or end_ns) - self.begun_ns)


_PLACE = list(_Place.__dataclass_fields__)


@dataclass(frozen=True)
class _Hardship:
    """What takes from clients while no member is gone."""

    name: str
    begin_ns: int
    end_ns: int


def _times_of(place: _Place) -> tuple[int | None, ...]:
    return (place.failed_ns, place.begun_ns, place.whole_ns, place.stopped_ns)


def _marks(places: Iterable[_Place]) -> list[int]:
    """When something happens to a place, in order."""
    times = (time for place in places for time in _times_of(place))
    return sorted({time for time in times if time is not None})


def _slow_times(events: Sequence[MemberEvent], places: list[_Place]) -> Iterator[tuple[int, int]]:
    """When a member is slow: until it is as fast as ever, becomes slow anew, fails, or the run is over."""
    for event in events:
        if event.slow is None or event.times == 1:
            continue
        ends = [other.at for other in events if other.slow == event.slow]
        ends += [time for place in places if place.leaf == event.slow for time in _times_of(place) if time is not None]
        yield event.at, min((end for end in ends if end > event.at), default=_NEVER_NS)


def _spans(places: list[_Place], hardships: list[_Hardship], end_ns: int) -> dict[str, list[tuple[int, int]]]:
    """By phase, when it begins and ends; those that there were not are left out."""
    times = sorted({*_marks(places), *(at for one in hardships for at in (one.begin_ns, one.end_ns))})
    marks = [0, *(mark for mark in times if 0 < mark < end_ns), end_ns]
    found: dict[str, list[tuple[int, int]]] = {}
    last = ""
    for begin, end in pairwise(marks):
        name = _name_at(places, hardships, begin)
        if name == last:
            found[name][-1] = (found[name][-1][0], end)
        elif end > begin:
            found.setdefault(name, []).append((begin, end))
            last = name
    return found


def _name_at(places: list[_Place], hardships: list[_Hardship], at_ns: int) -> str:
    if any(place.is_rebuilt(at_ns) for place in places):
        return REBUILDING
    if any(place.is_gone(at_ns) for place in places):
        return DEGRADED
    for one in hardships:
        if one.begin_ns <= at_ns < one.end_ns:
            return one.name
    ends = [*(place.whole_ns for place in places), *(one.end_ns for one in hardships)]
    return AFTER if any(end is not None and end <= at_ns for end in ends) else BEFORE


def _most_gone(places: list[_Place], missing: list[int]) -> tuple[int, ...]:
    """The most members that were not whole at the same time, in the order of the tree."""
    rebuilt = {place.leaf for place in places}
    always = [leaf for leaf in missing if leaf not in rebuilt]
    at_each = ([place.leaf for place in places if place.is_gone(mark)] for mark in _marks(places))
    return tuple(sorted([*always, *max(at_each, key=len, default=[])]))


def _phase(name: str, spans: list[tuple[int, int]], seconds: pl.DataFrame, counts: pl.DataFrame) -> Phase:
    within, length = pl.lit(value=False), 0
    for begin_ns, end_ns in spans:
        first, last = ceil(begin_ns / NS_PER_S) + 1, end_ns // NS_PER_S
        within |= pl.col("time_ns").is_between(first * NS_PER_S, last * NS_PER_S)
        length += max(0, last - first + 1)
    rows = seconds.filter(within)
    return Phase(
        name,
        tuple((begin / NS_PER_S, end / NS_PER_S) for begin, end in spans),
        length,
        int(rows["requests"].sum()),
        int(rows["bytes"].sum()),
        _times(counts.filter(within)),
    )


def _series(seconds: pl.DataFrame, counts: pl.DataFrame) -> Iterator[Stretch]:
    """Stretches of equal length, a second or as many as make few enough; what is left at the end is left out."""
    last = int(seconds["time_ns"][-1]) // NS_PER_S - 1
    length = max(1, ceil(last / MOST_STRETCHES))
    number = (pl.col("time_ns") // NS_PER_S - 1) // length
    moved = dict(seconds.group_by(number.alias("number")).agg(pl.col("bytes").sum()).iter_rows())
    histograms = counts.with_columns(number.alias("number")).partition_by("number", as_dict=True)
    for index in range(last // length):
        found = histograms.get((index,))
        p99_ns = None if found is None else _times(found).percentile_ns(99)
        p99_ms = None if p99_ns is None else p99_ns / 1e6
        yield Stretch(index * length, (index + 1) * length, moved.get(index, 0) / 1e6 / length, p99_ms)


def _times(counts: pl.DataFrame) -> Histogram:
    merged = counts.group_by("value_ns").agg(pl.col("count").sum()).sort("value_ns")
    return Histogram(merged["value_ns"].to_numpy().astype(np.uint64), merged["count"].to_numpy().astype(np.uint64))
