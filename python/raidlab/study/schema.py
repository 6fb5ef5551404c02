"""The schema of a study file: what may be written in ``study.toml``, and nothing else.

Invariants:

- Data only: nothing here opens a file, parses a tree or measures anything.
- Sizes are whole bytes and times whole nanoseconds after validation (`units`).
- What is asked of the arrays is in `workload`, where they run in `target`; here are the arrays and what is compared.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from raidlab.study.figure import StudyFigure
from raidlab.study.target import Emulated, End, FileSystem, Live, Modelled, PairPricing
from raidlab.study.words import (
    Bytes,
    DeviceOf,
    Engines,
    Few,
    Leaf,
    Line,
    MomentNs,
    Name,
    Prose,
    Table,
    is_simulated,
    kind_from_text,
)
from raidlab.study.workload import Load, Workload

# A tree of as many separate volumes as directories are given.
MOUNTED = "mounted"
# An array that stands already is one member of its study, whatever it is made of.
MEMBER = "member"


class PrimaryRead(Table):
    """A mirror is read from its first online copy."""

    kind: Literal["primary"]


class RoundRobinRead(Table):
    """Copies of a mirror are read in turn."""

    kind: Literal["round_robin"]


class RoundRobinSequentialRead(Table):
    """A read that goes on where a copy's queued ones end stays with that copy; else copies are read in turn."""

    kind: Literal["round_robin_sequential"]


class ShortestQueueRead(Table):
    """A mirror is read from the copy with the fewest operations in flight."""

    kind: Literal["shortest_queue"]


class NearestRead(Table):
    """A mirror is read from the copy with the shorter seek."""

    kind: Literal["nearest"]
    queue_override: Annotated[int, Field(ge=0, le=2**16)] | None = 5
    """Unless its queue is longer by this many."""


class MdRead(Table):
    """A mirror is read as Linux md does: by what is pending; RAID 1 goes on where it read, RAID 10 asks anew."""

    kind: Literal["md"]
    rotating: bool = False
    """The members rotate: among busy copies the nearest is read."""


MirrorRead = Annotated[
    Annotated[
        PrimaryRead | RoundRobinRead | RoundRobinSequentialRead | ShortestQueueRead | NearestRead | MdRead,
        Field(discriminator="kind"),
    ],
    BeforeValidator(kind_from_text),
]


class SitOut(Table):
    """A member that is slower than its peers is read last for a while, where its level bears that."""

    times: Annotated[float, Field(gt=1, le=1e6)] = 2
    """An operation takes it more than so many times as long as the median of the other members of its volume."""
    hold: Annotated[MomentNs, Field(ge=1_000_000_000)] = 30_000_000_000
    """For so long without a break."""
    rest: Annotated[MomentNs, Field(ge=1_000_000_000)] = 600_000_000_000
    """So much later it is read as before, and sits out again if it is still slow."""


class Policy(Table):
    """How an array chooses among the ways to serve a request."""

    mirror_read: MirrorRead = NearestRead(kind="nearest")
    """Which copy of a mirror is read."""
    parity_write: Literal["read_modify_write", "reconstruct_write", "fewest_accesses"] = "fewest_accesses"
    """How a part of a stripe is written."""
    parity_write_tie: Literal["read_modify_write", "reconstruct_write"] = "read_modify_write"
    """What ``fewest_accesses`` takes when both cost the same."""
    write_after: Literal["all_reads", "own_read"] = "all_reads"
    """What a write with parity waits for besides what it computes: all reads of its request, or, in the simulator, only
    the read of what it writes over (a real array could lose the stripe so)."""
    parity_read: Literal["skip", "read_through"] = "skip"
    """Whether a long read leaves out the parity it passes over."""
    parity_row: Annotated[Bytes, Field(lt=2**32)] | None = None
    """How much of each chunk makes a row of a stripe, which is read, computed and written whole and by itself where
    less than the stripe is written. Left out, the stripe is written as one, with only what must be."""
    stripe_cache_size: Annotated[int, Field(gt=16, le=2**15)] | None = None
    """How many rows of ``parity_row`` the host's RAID keeps in memory, as Linux md's setting of this name; more are
    made where all are taken. Writes spare reading what is there, and requests that meet in a row are written together.
    None are kept if left out. Simulator only, on parity over members."""
    chunk_accesses: Literal["joined", "apart"] = "joined"
    """Whether chunks of a request that lie together on a member are one access."""
    merge: Annotated[Bytes, Field(lt=2**32)] | None = None
    """Longest request to which the host merges neighbouring accesses that wait at one member; none if left out.
    Simulator only: a real host merges as it does."""
    plug: bool = False
    """Whether the host gathers the accesses of writes with parity that become ready together, and merges them, before
    it hands them on. Simulator only."""
    resync_barrier: bool = False
    """Whether rebuilds and scrubs of copies over members go in units of 64 KiB that take turns with clients' requests,
    as Linux md's barrier has them do."""
    read_error_repair: bool = True
    """Whether what of a member could not be read, and was worked out from the others, is written anew there."""
    max_read_errors: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    """Read errors of a member that are borne, as Linux md's setting of this name: with one more it is taken out, where
    its level bears that. Of copies those that requests meet, halved for each hour without; with parity and a
    ``stripe_cache_size``, as many rows as that with no read between that succeeds. However many if left out."""
    bad_blocks: bool = False
    """Whether a rebuild goes on where too little can be read of the others, as Linux md's do: what the new member lacks
    is listed (at most 512 entries), and what lies there fails until it is written. It stops there otherwise."""
    sit_out: SitOut | None = None
    """When a member that is slow is read last: ``{ times = 2, hold = "30s", rest = "10min" }``, or ``{}`` for just
    that. It is written as ever, and what is on it is worked out from the others. None ever does if left out."""

    @model_validator(mode="after")
    def _cached_rows_are_rows(self) -> Self:
        if self.stripe_cache_size is not None and not self.parity_row:
            raise ValueError(
                f"stripe_cache_size is {self.stripe_cache_size} rows, and there are none; accepted: with parity_row, "
                "such as '4KiB', or left out"
            )
        return self


# Sets of policies by name. Each value can also be said alone.
POLICIES: dict[str, dict[str, Any]] = {
    "raidlab": {},
    "md": {
        "mirror_read": "md",
        "parity_write": "fewest_accesses",
        "parity_write_tie": "reconstruct_write",
        "parity_read": "skip",
        "parity_row": "4KiB",
        "stripe_cache_size": 256,
        "chunk_accesses": "apart",
        "merge": "1280KiB",
        "plug": True,
        "resync_barrier": True,
        "max_read_errors": 20,
        "bad_blocks": True,
    },
}


def _policy_from_name(value: object) -> object:
    """The keys that a name stands for."""
    if not isinstance(value, str):
        return value
    if value not in POLICIES:
        raise ValueError(f"{value!r}; accepted: a table, or {', '.join(POLICIES)}")
    return POLICIES[value]


NamedPolicy = Annotated[Policy, BeforeValidator(_policy_from_name)]


class MdThrottle(Table):
    """As Linux md: heeds nobody below its least rate, goes on where no client asks, and never passes its most."""

    kind: Literal["md"]
    min_kib_s: Annotated[int, Field(ge=0, lt=2**32, strict=True)] = 1000
    """The least rate of a member in KiB/s (``speed_limit_min``)."""
    max_kib_s: Annotated[int, Field(ge=1, lt=2**32, strict=True)] = 200_000
    """The highest rate of a member in KiB/s (``speed_limit_max``)."""
    depth: Few = 32
    """Beside clients: how many of md's requests (4 KiB with parity, else 64 KiB) may be in flight."""

    @property
    def in_words(self) -> str:
        """Its kind, and what it keeps to."""
        return f"md from {self.min_kib_s} KiB/s"


class RateThrottle(Table):
    """At one rate, whatever clients do: where units wait for them, up to a second of lost time is made up for."""

    kind: Literal["rate"]
    kib_s: Annotated[float, Field(gt=0, lt=2**32, strict=True)]
    """The rate of a member in KiB/s."""

    @property
    def in_words(self) -> str:
        """Its kind, and what it keeps to."""
        return f"rate of {self.kib_s:g} KiB/s"


class IdleThrottle(Table):
    """Only while no request of a client is in flight."""

    kind: Literal["idle"]

    @property
    def in_words(self) -> str:
        """Its kind."""
        return "idle"


class ShareThrottle(Table):
    """One unit at a time, for a share of the time, whatever clients do: after each a rest."""

    kind: Literal["share"]
    fraction: Annotated[float, Field(gt=0, le=1, strict=True)]
    """The share."""

    @property
    def in_words(self) -> str:
        """Its kind, and what it keeps to."""
        return f"share of {100 * self.fraction:g} %"


Throttle = Annotated[
    Annotated[MdThrottle | RateThrottle | IdleThrottle | ShareThrottle, Field(discriminator="kind")],
    BeforeValidator(kind_from_text),
]


class Rebuild(Table):
    """New members are rebuilt while the load runs."""

    throttle: Throttle = MdThrottle(kind="md")
    """How fast: what of their time the members spend on it."""
    after: MomentNs = 0
    """From a failure to the moment at which a new member takes the place, or a distributed spare does where the tree
    has one that is free: nothing of a hot spare, hours where somebody has to come."""
    watch: MomentNs | None = None
    """The run ends so long after the last member is whole, at the latest when its target's ``measure`` says. It goes on
    until then when left out."""
    unit: Annotated[Bytes, Field(gt=0, le=2**24)] | None = None
    """What one step restores of each member, such as a track's or a cylinder's length: longer ones seek less, and keep
    clients waiting longer. Two are under way at a time, one where a level lies on others, and there it is rounded to
    whole stripes of these; a chunk (at most 512 KiB) when left out."""

    @property
    def in_words(self) -> str:
        """How long after a failure, and at which throttle."""
        after = f"after {self.after / 1e9:g} s, " if self.after else ""
        return f"({after}throttle: {self.throttle.in_words})"


_EVENTS_ACCEPTED = (
    "{ at = '30s', fail = 2 }, { at = '30s', slow = 2, times = 4 }, { at = '30s', unreadable = 2, places = 64 } or "
    "{ at = '30s', scrub = 'check' }"
)
# Keys that stand beside another, and what they need to say.
_EVENT_MEASURES = (
    ("times", "slow", "times = 4 beside it: how many times as long all takes"),
    ("places", "unreadable", "places = 64 beside it: how many places of 4 KiB"),
    ("throttle", "scrub", ""),
    ("watch", "scrub", ""),
)


class MemberEvent(Table):
    """What befalls a member, which fails, becomes slow or cannot be read in places, or that the array scrubs."""

    at: MomentNs
    """When, from the beginning of the run; warm-up is part of it."""
    fail: Leaf | None = None
    """The member that fails, from 0 in the order of the tree."""
    slow: Leaf | None = None
    """The member that becomes slow, as a disk that tries again and again what it answers in the end: in the simulator
    only. One that is replaced later is slow no more."""
    times: Annotated[float, Field(ge=1, le=1e6)] | None = None
    """Beside ``slow``: how many times as long all takes it from then on; ``1`` ends that."""
    unreadable: Leaf | None = None
    """The member that can no longer be read in places of 4 KiB, until they are written: latent sector errors. That a
    disk tries again for seconds before it gives up is not modelled. Of real members the places
    are made up, and hold what they should all the same."""
    places: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Beside ``unreadable``: how many places, at random over the member; the seed says which."""
    scrub: Literal["check", "repair", "resync"] | None = None
    """The array begins to go over all it holds, as md does by ``sync_action``: ``check`` compares and counts,
    ``repair`` also writes anew what is wrong, ``resync`` writes parities and second copies anew without comparing. All
    mend sectors that cannot be read. Contents are compared on real members only: in the simulator none is ever
    wrong."""
    throttle: Throttle | None = None
    """Beside ``scrub``: what of their time the members spend on it, as in ``rebuild``; ``md`` when left out."""
    watch: MomentNs | None = None
    """Beside ``scrub``: the run ends so long after it is over, at the latest when its target's ``measure`` says."""

    @property
    def mistake(self) -> tuple[str, str] | None:
        """What is wrong with what it says, and what would be accepted; None of one thing with its measure."""
        things = [key for key in ("fail", "slow", "unreadable", "scrub") if getattr(self, key) is not None]
        if not things:
            return "does not say what befalls which member", _EVENTS_ACCEPTED
        if len(things) > 1:
            return f"says {len(things)} things at once: {' and '.join(things)}", f"an event each: {_EVENTS_ACCEPTED}"
        for key, of, needed in _EVENT_MEASURES:
            is_said = getattr(self, key) is not None
            if is_said and of != things[0]:
                return f"says {key}, which goes with {of}, and not with {things[0]}", f"it without {key}"
            if needed and not is_said and of == things[0]:
                return f"says {of} = {getattr(self, of)} without {key}", needed
        return None

    @property
    def in_words(self) -> str:
        """What befalls which member, and when."""
        when = f"{self.at / 1e9:g} s"
        if self.scrub is not None:
            throttle = (self.throttle or MdThrottle(kind="md")).in_words
            return f"{self.scrub} from {when} (throttle: {throttle})"
        if self.unreadable is not None:
            return f"member {self.unreadable} cannot be read in {self.places} places from {when}"
        if self.slow is None:
            return f"member {self.fail} fails at {when}"
        if self.times == 1:
            return f"member {self.slow} is as fast as ever from {when}"
        return f"member {self.slow} takes {self.times:g} times as long from {when}"


class Array(Table):
    """One arrangement of members."""

    name: Name
    """How it is called in tables and figures."""
    tree: Line = MEMBER
    """The arrangement, such as ``raid5(5, chunk=64KiB)``; ``raidlab layout`` draws it. ``mounted``: each directory
    given to ``--on`` is a volume, whatever lies below it; whole files are read through its file system. Left out beside
    ``volume`` only."""
    volume: Line | None = None
    """An array that stands already, of md, the device mapper, ZFS, btrfs or a controller: its block device, a directory
    of its file system, or a file there. It runs on real members only. ``--on NAME=PLACE`` says the same."""
    state: Literal["optimal", "degraded", "resyncing"] = "optimal"
    """The state in which a volume is to be measured: whole and idle, with members missing, or busy with itself (a
    resync, a rebuild, a scrub, a reshape). Found in another, it is INVALID."""
    missing: list[Leaf] = []
    """Members that are not there, from 0 in the order of the tree: the array runs degraded, what they held is worked
    out from the others, and what is written goes to the others alone. None when left out."""
    events: Annotated[list[MemberEvent], Field(max_length=64)] = []
    """Members that fail while the load runs, as ``[{ at = "30s", fail = 2 }]``, in the simulator and on real members,
    where what they are asked from then on fails; or that cannot be read in places: ``[{ at = "0s", unreadable = 2,
    places = 64 }]``, on both; or, in the simulator, become slow: ``[{ at = "30s", slow = 2, times = 4 }]``. Or the
    array goes over what it holds: ``[{ at = "30s", scrub = "check" }]``, on both. None when left out."""
    rebuild: Rebuild | None = None
    """New members take the places of those that fail, and are rebuilt beside the load; in the simulator also, as a run
    begins, those of the missing ones. On real members the file or device that failed is taken for a new one, of which
    nothing is read that was not rebuilt. What is missing stays missing when left out."""
    disks: Few | None = None
    """How many disks a volume has, where the kernel cannot tell: those behind a controller."""
    says: Line | None = None
    """What its owner says a volume is, where the kernel cannot tell: ``RAID 6 of 8 disks, 256 KiB``."""
    twin_of: Name | None = None
    """The array of which it is the model: what was measured there is set beside what this one gives in the simulator,
    load by load. ``raidlab predict`` writes such a study from what it finds."""
    user_size: Bytes | None = None
    """Of a twin: how much of it is used, from its beginning, where what it stands for is smaller than its disks; all
    when left out."""
    group: Name = "all"
    """The arrays it is compared with."""
    policy: NamedPolicy | None = None
    """A policy of its own, or the name of one (``md``: as Linux md); the study's when left out."""
    pair_pricing: PairPricing | None = None
    """On modelled disks: how its read-modify-write pairs are priced; the target's when left out."""
    device: DeviceOf | None = None
    """The device of its members, as in ``[sim]``; then it is run on ``sim`` and ``original`` only. The target's when
    left out."""
    on: Engines | None = None
    """The targets it is run on, such as ``["original"]``; all when left out."""
    placement: dict[Name, list[Annotated[int, Field(ge=0, lt=2**16)]]] = {}
    """For a name that stations are divided by (modelled), or that groups lie in (real members), which of them each
    volume uses, from 0."""
    of_group: Few | None = None
    """Over groups of real members: a volume has all members of a group with 1, half of them with 2, and so on; as many
    as its tree says when left out."""
    load: Load | None = None
    """A load of its own, such as one request outstanding for each of its volumes; the workload's when left out."""

    @property
    def is_mounted(self) -> bool:
        """Whether its volumes are directories."""
        return self.tree.strip() == MOUNTED

    @property
    def arrangement(self) -> str:
        """What it is in a line: its tree, or the volume that stands, and which members it lacks."""
        number = "member" if len(self.missing) == 1 else "members"
        rebuilt = "" if self.rebuild is None else f"rebuilt {self.rebuild.in_words}"
        lost = f"{number} {', '.join(map(str, self.missing))} {rebuilt or 'missing'}"
        lacks = f"; degraded: {lost}" if self.missing else ""
        fails = [event.in_words for event in self.events]
        fails += [f"is {rebuilt}"] if self.may_fail and rebuilt else []
        return f"{self.volume or self.tree}{lacks}{'; ' if fails else ''}{', '.join(fails)}"

    @property
    def may_fail(self) -> bool:
        """Whether a member of it fails while the load runs, or may: for what cannot be read of it."""
        return any(event.fail is not None or event.unreadable is not None for event in self.events)

    def gone_at(self, leaf: int, at_ns: int) -> str | None:
        """Why a member is not there at a moment, in words; None where it is, or a new one in its place."""
        if leaf in self.missing and self.rebuild is None:
            return "this member is missing"
        for event in self.events:
            back_ns = None if self.rebuild is None else event.at + self.rebuild.after
            if event.fail == leaf and event.at <= at_ns and (back_ns is None or at_ns < back_ns):
                back = "" if back_ns is None else f" before {back_ns / 1e9:g} s"
                return f"this member has failed by then (at {event.at / 1e9:g} s), and none is in its place{back}"
        return None

    def runs_on(self, engine: str) -> bool:
        """Whether it is run on a target; one with a device of its own only where devices are modelled one by one."""
        if (self.is_mounted or self.volume is not None) and engine != "live":
            return False
        if self.twin_of is not None and not is_simulated(engine):
            return False
        is_slow = any(event.slow is not None for event in self.events)
        own_model = self.device is not None or is_slow or (self.rebuild is not None and not self.may_fail)
        return (self.on is None or engine in self.on) and (not own_model or is_simulated(engine))


class Compare(Table):
    """A table of the result: the arrays of one group beside a reference."""

    group: Name
    """The group."""
    title: Name
    """The heading."""
    reference: Name
    """The array that is 100 %."""
    equal: Literal["user_capacity", "members"]
    """What the arrays share; a check says INVALID when they do not. Capacities are equal within 1 %, and 5 % more where
    whole chunks and stripes may leave as much unused: a chunk of each member."""
    per: Literal["disk", "user_capacity", "array"] = "disk"
    """What throughput is divided by before it is compared."""
    contenders: list[Name] = []
    """The arrays of which the answer of the run speaks, beside the reference; all when left out."""
    workloads: list[Name] = []
    """The workloads of which it speaks; all when left out."""
    sweep_from: Annotated[int, Field(ge=1)] | None = None
    """The answer takes the mean over all queue depths from this one on, and not the heaviest load."""
    note: Prose | None = None
    """A remark for the reader."""


class Study(Table):
    """The file itself."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
    """The study's name, of which run folders are named."""
    title: Line
    """The question it asks."""
    description: Prose = ""
    """A sentence or two more."""
    on: Annotated[list[Line], Field(min_length=1)] | None = None
    """Where it runs by default: ``sim``, ``original``, ``emulated``, ``memory``, paths; what it models if left out."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """The root of all randomness."""
    array: Annotated[list[Array], Field(min_length=1)]
    """The arrays."""
    workload: Annotated[list[Workload], Field(min_length=1)]
    """The workloads."""
    load: Load
    """How hard the arrays are driven."""
    policy: NamedPolicy = Policy()
    """How arrays choose, or the name of such a set (``md``: as Linux md)."""
    sim: Modelled | None = None
    """The simulator's target."""
    original: Modelled | None = None
    """The hardware a published study describes."""
    emulated: Emulated = Emulated()
    """The modelled disks on the real clock."""
    live: Live = Live()
    """Runs on real members."""
    compare: list[Compare] = []
    """The tables of the result."""
    figure: list[StudyFigure] = []
    """Figures under the study's own names, beside those that every study has."""

    @property
    def default_targets(self) -> list[str]:
        """Where it runs when nobody says where; empty when that must be said."""
        if self.on is not None:
            return self.on
        modelled = ["sim"] if self.sim else ["original"] if self.original else []
        standing = [f"{array.name}={array.volume}" for array in self.array if array.volume is not None]
        # No model has anything to run of a study whose arrays all stand already.
        return standing if len(standing) == len(self.array) else modelled or standing

    def has_target(self, target: str) -> bool:
        """Whether it says enough to run on ``sim``, ``original``, ``emulated`` or ``live``."""
        if target == "emulated":
            return self.sim is not None or self.emulated.device is not None
        return getattr(self, target) is not None

    def arrays_on(self, target: str) -> list[Array]:
        """The arrays that are run on ``sim``, ``original``, ``emulated`` or ``live``."""
        return [array for array in self.array if array.runs_on(target)]

    def workloads_on(self, target: str) -> list[Workload]:
        """The workloads that are run there."""
        return [workload for workload in self.workload if workload.runs_on(target)]

    def ends_on(self, target: str) -> list[End]:
        """The ends of streams there, besides memory and the array."""
        section: Modelled | Emulated | Live | None = getattr(self, target)
        return section.end if section is not None else []

    def file_system_on(self, target: str) -> FileSystem | None:
        """What whole files are read through on a target where they are extents of an array."""
        if is_simulated(target):
            section: Modelled | None = getattr(self, target)
            return section.file_system if section is not None else None
        modelled = self.original or self.sim
        inherited = modelled.file_system if modelled is not None else None
        if target == "emulated":
            return self.emulated.file_system or inherited
        # Nothing of real members is changed where files are only read.
        return None if inherited is None else inherited.model_copy(update={"inode_update": None})

    def pair_pricing(self, target: str, array: Array) -> PairPricing:
        """How read-modify-write pairs of an array are priced on a target of modelled disks."""
        if target == "emulated" and self.emulated.pair_pricing is not None:
            return self.emulated.pair_pricing
        section = self.original if target == "original" else self.sim
        return array.pair_pricing or (section.pair_pricing if section is not None else "queued")
