"""What somebody needs: the table of a need, from a file or from flags.

Invariants:

- Data, and what follows from one table alone; sizes, times and rates are numbers in base units after validation.
- What is left out is not asked for. A need without a price for every device is never answered by price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from raidlab.study.units import parse_disk_size, parse_rate_per_s
from raidlab.study.words import Bytes, Depth, DeviceOf, Line, Name, Positive, Prose, Table, TimeNs, list_from_one
from raidlab.study.workload import Workload

DiskSize = Annotated[int, BeforeValidator(parse_disk_size)]
RatePerS = Annotated[float, BeforeValidator(parse_rate_per_s), Field(le=1e9)]
Level = Literal["raid0", "raid1", "raid10", "raid10n3", "raid10n4", "raid01", "raid5", "raid6", "raid50", "raid60"]
# Copies of every chunk, side by side: those of two are usual, and more cost space that only a second failure is worth.
COPIES: dict[str, int] = {"raid10": 2, "raid10n3": 3, "raid10n4": 4}
_USUAL: tuple[Level, ...] = ("raid0", "raid1", "raid10", "raid10n3", "raid10n4", "raid5", "raid6", "raid50", "raid60")
Ask = Literal["cheapest", "fastest", "pareto"]
# By key, the percentile that is asked to be within a time.
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
# What the time of a rebuild is called, as a goal.
REBUILD = "rebuild"
State = Literal["degraded", "rebuilding"]
STATES: tuple[State, ...] = ("degraded", "rebuilding")


class HeldDevice(Table):
    """Disks of one kind that are at hand, or can be bought."""

    device: DeviceOf
    """Which: a name (``raidlab device list``), a device file, or its parameters as a table."""
    name: Name | None = None
    """What it is called in the answer; the device's name when left out."""
    price: Positive | None = None
    """What one costs, in whatever currency ``budget`` is."""
    at_most: Annotated[int, Field(ge=1, le=256, strict=True)]
    """How many there can be, spares included."""
    capacity: DiskSize | None = None
    """Of one as it is sold, where its model is smaller (flash); that of the model when left out."""
    afr_percent: Annotated[float, Field(gt=0, lt=100)] | None = None
    """How many of a hundred fail in a year; without it nothing is said of losses."""
    ure_per_bit: Annotated[float, Field(ge=0, lt=1)] = 1e-15
    """The chance that a bit cannot be read."""
    rebuild_mb_s: Positive = 100.0
    """The rate at which a disk is rebuilt, in MB/s (10^6): it is stated, not simulated."""
    watts: Positive | None = None
    """What one draws under load; what its file says (``active_watts`` of ``[power]``) when left out."""


class FioWork(Table):
    """The work of a fio job file; what its files are is not looked at."""

    fio: Annotated[Line, Field(min_length=1)]
    """The job file; a relative path counts from the need."""
    job: Name | None = None
    """Only the job of this name; all jobs, one workload each, when left out."""


class StudyWork(Table):
    """The work of a study, at its heaviest load."""

    study: Annotated[Line, Field(min_length=1)]
    """Its name, or the path of its file."""
    workload: Name | None = None
    """Only the workload of this name; all when left out."""


def _kind_of_work(value: Any) -> str:
    keys = value if isinstance(value, dict) else vars(value) if isinstance(value, FioWork | StudyWork) else ()
    return next((kind for kind in ("fio", "study") if kind in keys), "drawn")


Work = Annotated[
    Annotated[FioWork, Tag("fio")] | Annotated[StudyWork, Tag("study")] | Annotated[Workload, Tag("drawn")],
    Discriminator(_kind_of_work),
]


@dataclass(frozen=True)
class TimeGoal:
    """A percentile that is to be within a time, of an array that is whole or in a state; or the rebuild of a disk."""

    percentile: float | None
    """None of a rebuild."""
    within_ns: int
    kind: Literal["load", "degraded", "rebuilding"]
    """Which runs show it."""
    key: str
    """What it is called in an answer, such as ``p99`` or ``degraded p99``, or `REBUILD`."""


class TimeGoals(Table):
    """Times within which requests are answered."""

    p50: TimeNs | None = None
    """Half of all requests are answered within this."""
    p90: TimeNs | None = None
    """Nine of ten."""
    p95: TimeNs | None = None
    """Nineteen of twenty."""
    p99: TimeNs | None = None
    """All but one of a hundred."""

    def within_ns(self) -> dict[str, tuple[float, int]]:
        """By key the percentiles asked for, and their times."""
        found = {key: getattr(self, key) for key in PERCENTILES}
        return {key: (PERCENTILES[key], time_ns) for key, time_ns in found.items() if time_ns is not None}


class RebuildGoals(TimeGoals):
    """Times within which requests are answered beside a rebuild, and the rebuild's own."""

    within: TimeNs | None = None
    """The new disk is rebuilt within this, at the rate at which its rebuild begins beside the load."""


class Goals(TimeGoals):
    """What every answer meets."""

    capacity: DiskSize | None = None
    """User data that must fit."""
    tolerate: Annotated[int, Field(ge=0, le=16, strict=True)] = 0
    """How many disks may fail, whichever they are, before anything is lost."""
    rate: RatePerS | None = None
    """Requests that arrive on their own (Poisson), in place of the workload's own load; of one workload."""
    degraded: TimeGoals | None = None
    """The same while a disk is missing, such as ``{ p99 = "200ms" }``."""
    rebuilding: RebuildGoals | None = None
    """The same while a new disk is rebuilt in its place, throttled as by Linux md; and how long that may take, such as
    ``{ p99 = "400ms", within = "24h" }``: what holds clients up least may be what hardly rebuilds."""
    budget: Positive | None = None
    """What all disks together may cost."""
    watts: Positive | None = None
    """What all disks together may draw."""
    loss_per_year: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The chance of losing data within a year, at most."""

    @property
    def states(self) -> list[State]:
        """The states in which times are asked for, besides whole."""
        return [state for state in STATES if getattr(self, state) is not None]

    def time_goals(self) -> list[TimeGoal]:
        """All times asked for, those of the whole array first."""
        found = [TimeGoal(*within, "load", key) for key, within in self.within_ns().items()]
        for state in self.states:
            times: TimeGoals = getattr(self, state)
            found += [TimeGoal(*within, state, f"{state} {key}") for key, within in times.within_ns().items()]
        if self.rebuilding is not None and self.rebuilding.within is not None:
            found.append(TimeGoal(None, self.rebuilding.within, "rebuilding", REBUILD))
        return found


class Search(Table):
    """Which arrays are looked at."""

    levels: Annotated[list[Level], Field(min_length=1)] | None = None
    """Levels; when left out all but ``raid01``: RAID 10 of three and of four copies (``raid10n3``, ``raid10n4``) where
    so many failures must be borne that fewer copies do not do, or where ``loss_per_year`` is asked for."""
    members: Annotated[list[Annotated[int, Field(ge=1, le=256, strict=True)]], Field(min_length=1)] | None = None
    """Numbers of disks, without spares; every number there can be when left out."""
    chunks: Annotated[list[Bytes], Field(min_length=1)] = [64 * 1024, 512 * 1024]
    """Chunks."""
    groups: Annotated[list[Annotated[int, Field(ge=2, le=64, strict=True)]], Field(min_length=1)] = [2]
    """Numbers of groups, of RAID 50 and RAID 60."""
    spares: Annotated[list[Annotated[int, Field(ge=0, le=16, strict=True)]], Field(min_length=1)] = [0]
    """Numbers of disks that stand by; without one a rebuild waits for a disk to be put in."""
    schedulers: Annotated[list[DeviceOf], Field(min_length=1)] | None = None
    """Orders of service of disks (``scheduler`` of a device); the device's own when left out."""


class Effort(Table):
    """How sure the answer is to be."""

    margin_percent: Annotated[float, Field(ge=0.1, le=50)] = 2.0
    """Throughput that makes no difference."""
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    """The chance that the choice is within the margin of the best."""
    requests: Annotated[int, Field(ge=200, le=10**7, strict=True)] = 1000
    """Measured in each simulated run of the search; five times as many where the answer is confirmed."""
    most_repeats: Annotated[int, Field(ge=6, le=1000, strict=True)] = 60
    """Runs of one array, at most; what they do not tell apart is said to be so."""
    confirm: Annotated[int, Field(ge=3, le=1000, strict=True)] = 10
    """Runs with fresh seeds from which the figures shown are taken."""
    screen_factor: Annotated[float, Field(ge=1, le=100)] = 1.5
    """By how much a count of accesses may be wrong, before an array is left out for it."""


class Need(Table):
    """The file itself."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)] = "need"
    """Its name, of which the study and the folder are named."""
    title: Line = ""
    """The question."""
    description: Prose = ""
    """A sentence or two more."""
    ask: Ask | None = None
    """What is asked: the cheapest array that meets the need, the fastest, or those that none beats in every respect
    (``pareto``); the cheapest where prices are given, else the fastest."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """The root of all randomness."""
    workload: Annotated[list[Work], Field(min_length=1), BeforeValidator(list_from_one)]
    """What is asked of the array: ``{ fio = "mail.fio" }``, ``{ study = "quickstart" }``, or tables as in a study."""
    depth: Depth = 16
    """Requests outstanding, where neither the workload nor ``rate`` says how hard the array is driven."""
    devices: Annotated[list[HeldDevice], Field(min_length=1), BeforeValidator(list_from_one)]
    """The disks."""
    need: Goals = Goals()
    """What every answer meets."""
    search: Search = Search()
    """Which arrays are looked at."""
    effort: Effort = Effort()
    """How sure the answer is to be."""
    replace: TimeNs = 24 * 3600 * 10**9
    """From a failure to a new disk, where none stands by."""

    @property
    def asked(self) -> Ask:
        """What is asked, said or not."""
        return self.ask or ("cheapest" if self.is_priced else "fastest")

    @property
    def levels(self) -> list[Level]:
        """The levels looked at, said or not."""
        if self.search.levels is not None:
            return list(dict.fromkeys(self.search.levels))
        most = max(COPIES.values()) if self.need.loss_per_year is not None else max(2, self.need.tolerate + 1)
        return [level for level in _USUAL if COPIES.get(level, 0) <= most]

    @property
    def is_priced(self) -> bool:
        """Whether every device has a price."""
        return all(device.price is not None for device in self.devices)
