"""The schema of a study file: what may be written in ``study.toml``, and nothing else.

Invariants:

- Data only: nothing here opens a file, parses a tree or measures anything.
- Sizes are whole bytes and times whole nanoseconds after validation (`units`).
- What is asked of the arrays is in `workload`; this file has the arrays, where they run, and what is compared.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from raidlab.study.figure import StudyFigure
from raidlab.study.words import (
    Bytes,
    Engines,
    Few,
    Line,
    Name,
    Prose,
    Repeats,
    Requests,
    Table,
    TimeNs,
    kind_from_text,
    list_from_one,
)
from raidlab.study.workload import Load, Workload

PairPricing = Literal["queued", "head", "prepaid"]
# A tree of as many separate volumes as directories are given.
MOUNTED = "mounted"


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


MirrorRead = Annotated[
    Annotated[
        PrimaryRead | RoundRobinRead | RoundRobinSequentialRead | ShortestQueueRead | NearestRead,
        Field(discriminator="kind"),
    ],
    BeforeValidator(kind_from_text),
]


class Policy(Table):
    """How an array chooses among the ways to serve a request."""

    mirror_read: MirrorRead = NearestRead(kind="nearest")
    """Which copy of a mirror is read."""
    parity_write: Literal["read_modify_write", "reconstruct_write", "fewest_accesses"] = "fewest_accesses"
    """How a part of a stripe is written."""
    parity_write_tie: Literal["read_modify_write", "reconstruct_write"] = "read_modify_write"
    """What ``fewest_accesses`` takes when both cost the same."""
    parity_read: Literal["skip", "read_through"] = "skip"
    """Whether a long read leaves out the parity it passes over."""


class Array(Table):
    """One arrangement of members."""

    name: Name
    """How it is called in tables and figures."""
    tree: Line
    """The arrangement, such as ``raid5(5, chunk=64KiB)``; ``raidlab layout`` draws it. ``mounted``: each directory
    given to ``--on`` is a volume, whatever lies below it; whole files are read through its file system."""
    group: Name = "all"
    """The arrays it is compared with."""
    policy: Policy | None = None
    """A policy of its own; the study's when left out."""
    pair_pricing: PairPricing | None = None
    """On modelled disks: how its read-modify-write pairs are priced; the target's when left out."""
    device: Line | dict[str, Any] | None = None
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

    def runs_on(self, engine: str) -> bool:
        """Whether it is run on a target; one with a device of its own only where devices are modelled one by one."""
        if self.is_mounted and engine != "live":
            return False
        return (self.on is None or engine in self.on) and (self.device is None or engine in ("sim", "original"))


class Amount(Table):
    """How much is run: requests, a time, or both (warm-up: whichever is last; measuring: whichever is first)."""

    requests: Requests | None = None
    """Completed requests; deep queues get 4 times (warm-up) and 20 times (measuring) their depth where that is more."""
    duration: TimeNs | None = None
    """A time on the run's clock."""


class QuickBudget(Table):
    """What ``--quick`` puts in place of the budget beside it."""

    warmup: Amount | None = None
    """Run before measuring."""
    measure: Amount | None = None
    """Run while measuring."""
    repeats: Repeats = 1
    """How often each cell is run."""
    member_size: Bytes | None = None
    """The size of live member files."""


class HostCost(Table):
    """What the host's processors spend, in the simulator."""

    cpus: Few = 1
    """How many processors there are."""
    request: TimeNs | Literal[0] = 0
    """Before a request enters the array."""
    access: TimeNs | Literal[0] = 0
    """Before each access to a member is issued; accesses of one request may use several processors."""
    issue: TimeNs | Literal[0] = 0
    """Between one access of a request and the next: whoever serves the request issues them in turn."""
    completion: TimeNs | Literal[0] = 0
    """After each access."""
    parity_per_kib: TimeNs | Literal[0] = 0
    """For each KiB that a parity computation reads."""
    file: TimeNs | Literal[0] = 0
    """Whole files: finding and opening one, before anything is read."""
    file_per_kib: TimeNs | Literal[0] = 0
    """Whole files and streams: copying each KiB (1024 bytes) between the file system and the program."""


class FileSystem(Table):
    """The Unix file system of whole files and of streams, in the simulator: what it asks of an array for a file."""

    block: Bytes = 8192
    """A block."""
    cluster: Bytes = 57_344
    """The most that is read at a time."""
    read_ahead_clusters: Annotated[int, Field(ge=0, le=2**16)] = 1
    """How many clusters are asked for before they are needed."""
    write_behind_clusters: Annotated[int, Field(ge=0, le=2**16)] = 1
    """How many clusters of a stream may be on their way to the array while its program goes on."""
    direct_blocks: Annotated[int, Field(ge=0, le=2**16)] = 12
    """Blocks that the inode leads to; those behind them need an indirect block, which is read before them."""
    blocks_per_indirect: Few = 2048
    """Data blocks that one indirect block leads to."""
    run: Bytes | None = None
    """The mean length of the runs in which a file's blocks lie side by side; files lie whole when left out."""
    group: Bytes = 6_201_344
    """Bytes of the volume that a cylinder group covers; its inodes are at its front."""
    group_header_blocks: Annotated[int, Field(ge=0, le=2**16)] = 2
    """Blocks at the front of a group, before its inodes."""
    inodes_per_block: Few = 64
    """Inodes in a block."""
    inode_cache: Bytes | Literal[0] = 0
    """Memory for blocks of inodes; those used longest ago are dropped first."""
    inode_update: TimeNs | None = None
    """Changed blocks of inodes (for the time of access) are written this often, all at once; never when left out."""


class Station(Table):
    """A station between clients and disks, in the simulator: an interface, a switch, a controller, a bus, a link."""

    name: Name
    """What visits and results call it; ``host cpu`` is the host's."""
    servers: Few = 1
    """How many visits it serves at a time; the others wait, first come first served."""
    each: Name | None = None
    """One for each ``volume``, each ``stream``, or each place that ``placement`` of the array gives volumes under this
    name."""


class Visit(Table):
    """What is paid at a station on a path, in the simulator."""

    station: Name
    """Which station."""
    phase: Literal["command", "data", "status"]
    """On the way down before anything else, with the bytes, or on the way up after everything else."""
    cost: TimeNs | Literal[0] = 0
    """What it takes each time; in phase ``data`` once a transfer."""
    mb_s: Annotated[float, Field(gt=0)] | None = None
    """The rate at which bytes pass, in MB/s (10^6); in phase ``data`` only."""
    on: Literal["both", "read", "write"] = "both"
    """Which requests, or accesses, make the visit."""
    only: list[Annotated[int, Field(ge=0, lt=2**16)]] | None = None
    """Only these volumes (request path) or members (member path), counted from 0; all when left out."""
    arrays: list[Name] | None = None
    """Only these arrays; all when left out."""
    times: Literal["constant", "exponential"] = "constant"
    """Whether a visit takes its mean each time, or varies about it."""


class TapeDrive(Table):
    """A tape drive: it runs at one rate only; when its buffer runs dry, or full, it stops and has to start anew."""

    mb_s: Annotated[float, Field(gt=0)]
    """Its rate, in MB/s (10^6)."""
    buffer: Bytes = 1024**2
    """What it holds between the stream and the tape."""
    start_stop: TimeNs | Literal[0] = 0
    """What a stop costs: the time from the arrival of data (or of room) to running again."""


class FarMachine(Table):
    """Another machine, which takes a plain copy over the network and puts it on its disk; ``--machine`` names it."""

    link_mbit_s: Annotated[float, Field(ge=1, le=10_000)] = 100
    """In a laboratory (``--machine lab:DIR``): Mbit/s of its link, and of this machine's."""


class End(Table):
    """An end of streams besides ``memory`` and ``array``."""

    name: Name
    """What streams call it."""
    tape: TapeDrive | None = None
    """It is a tape drive, one for each stream."""
    path: Annotated[list[Visit], Field(min_length=1)] | None = None
    """It is behind stations, from the host outwards (modelled); ``on = "write"`` is what goes outwards."""
    machine: FarMachine | None = None
    """It is another machine (real or emulated members); what needs one is left out where none is named."""


class Cache(Table):
    """A controller's cache above the array, one for each volume, in the simulator."""

    arrays: list[Name] | None = None
    """Only these arrays; all when left out. Of several for one array the first counts."""
    line: Bytes
    """The least that is fetched."""
    fetch: Bytes
    """The most that is fetched at once."""
    read_room: Bytes
    """Room for what was read or destaged."""
    read_ahead: Bytes | Literal[0] = 0
    """How far beyond a sequential read is fetched."""
    write_back_up_to: Bytes | Literal[0] = 0
    """The longest write that is answered before it is on the members."""
    dirty_room: Bytes
    """Room for what is not yet on the members."""
    destages: Few = 1
    """How many stripes are destaged at a time."""
    copy_path: list[Visit] = []
    """What a write pays besides that is answered before it is on the members, such as a copy elsewhere."""


class ParityStation(Table):
    """A station that computes parity instead of the host, in the simulator."""

    station: Name
    """Which station."""
    per_kib: TimeNs
    """What it takes for each KiB that a computation reads."""
    arrays: list[Name] | None = None
    """Only for these arrays, the host for the others; for all when left out."""


class Modelled(Table):
    """A simulated target: the device model, the data path to it, how long each cell runs."""

    device: Line | dict[str, Any]
    """A device file, by name (``hdd-7200``) or path, or a table of its keys."""
    hardware: Line | None = None
    """What it is called in reports; the device's name when left out."""
    parameters: Line | None = None
    """A file of parameters, by name (``original/amdahl5890``) or path; ``"$name"`` in this table stands for one."""
    host: HostCost | None = None
    """What the host costs; nothing when left out."""
    file_system: FileSystem | None = None
    """What whole files are read through; one with the defaults when left out."""
    station: list[Station] = []
    """The stations of the data path."""
    request_path: list[Visit] = []
    """What a request passes above the array, from the client on, and back in the opposite order."""
    member_path: list[Visit] = []
    """What each access passes below the array, to its member, and back in the opposite order."""
    cache: list[Cache] = []
    """Caches between the request path and the arrays."""
    transfer_quantum: Bytes | None = None
    """The longest piece in which bytes travel, so that stations work side by side; a transfer travels whole without."""
    write_quantum: Bytes | None = None
    """The same of writes above the array, where it differs."""
    member_quantum: Bytes | None = None
    """The same below the array, where it differs: how long a bus is held."""
    end: list[End] = []
    """Ends of streams besides memory and the array."""
    end_quantum: Bytes | None = None
    """The longest piece in which bytes go to and from them; a block goes whole without."""
    parity: Annotated[list[ParityStation], BeforeValidator(list_from_one)] = []
    """Who computes parity, if not the host: a table, or a list of which the first that is for an array counts."""
    pair_pricing: PairPricing = "queued"
    """Whether a read-modify-write pair is two visits (``queued``, ``head`` of the queue) or one (``prepaid``)."""
    warmup: Amount = Amount(requests=1000)
    """Run before measuring."""
    measure: Amount = Amount(requests=10_000)
    """Run while measuring."""
    repeats: Repeats = 1
    """How often each cell is run, each time with another seed."""
    quick: QuickBudget = QuickBudget()
    """The budget of ``--quick``."""


class SecondTool(Table):
    """A second, independent tool (fio) beside raidlab's own engine: both in turns on one member of an array."""

    arrays: Annotated[list[Name], Field(min_length=1)]
    """On which arrays: their first member, or their volume where it is one member."""
    workloads: Annotated[list[Name], Field(min_length=1)]
    """Under which workloads, at each of their depths: so many jobs with one request outstanding each."""
    pairs: Few = 5
    """How often each tool is run."""
    warmup: Amount = Amount(duration="200ms")
    """Run before measuring; of no use in requests, in which fio does not warm up."""
    measure: Amount = Amount(duration="1s")
    """Run while measuring, also with ``--quick``: a tool that starts anew each time needs more than a moment."""
    within_percent: Annotated[float, Field(gt=0)] = 20
    """How far its throughput may lie from raidlab's with one job."""


class Live(Table):
    """What a run on real members uses."""

    member_size: Bytes = 512 * 1024**2
    """The size of member files that raidlab makes."""
    memory_member_size: Bytes = 16 * 1024**2
    """The size of members in memory, which are made and filled anew for every cell."""
    sector: Bytes = 4096
    """The sector of the array."""
    groups: list[Name] = []
    """What groups of members lie in, from the outermost: names that ``placement`` uses. Each volume is a group when
    left out."""
    second_tool: SecondTool | None = None
    """What is also measured with another tool; nothing when left out."""
    end: list[End] = []
    """Ends of streams besides memory and the array: tape drives, another machine."""
    amounts: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The share of their bytes that streams move: less for a box with less room or time, in whole blocks."""
    data: Line | None = None
    """A file whose bytes memory and tapes hand over, round and round; a relative path counts from the study file. Made
    up, incompressible and unrepeated when left out."""
    warmup: Amount = Amount(duration="100ms")
    """Run before measuring."""
    measure: Amount = Amount(duration="500ms")
    """Run while measuring."""
    repeats: Repeats = 3
    """How often each cell is run, in shuffled order."""
    quick: QuickBudget = QuickBudget()
    """The budget of ``--quick``."""


class Emulated(Table):
    """Emulated spindles: modelled disks that answer in their own time, on the real clock of this machine."""

    device: Line | dict[str, Any] | None = None
    """A device file or table, as in ``[sim]``; that of ``[sim]`` when left out."""
    speed: Annotated[float, Field(ge=0.001, le=10_000)] = 1.0
    """How many times faster their time goes than the clock; all times, also those below, are theirs."""
    content: Line = "none"
    """Where their bytes are kept: ``none``, ``memory``, or a directory to make a file for each in."""
    end: list[End] = []
    """Ends of streams besides memory and the array: tape drives, another machine."""
    amounts: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The share of their bytes that streams move, in whole blocks."""
    file_system: FileSystem | None = None
    """What whole files are read through, as in ``[sim]``; that of ``[original]`` or ``[sim]`` when left out."""
    pair_pricing: Literal["queued", "head"] | None = None
    """How read-modify-write pairs are priced, for all arrays; as in ``[sim]`` when left out."""
    warmup: Amount = Amount(duration="2s")
    """Run before measuring."""
    measure: Amount = Amount(duration="10s")
    """Run while measuring."""
    repeats: Repeats = 3
    """How often each cell is run, each time with another seed, in shuffled order."""
    quick: QuickBudget = QuickBudget(warmup=Amount(duration="1s"), measure=Amount(duration="5s"))
    """The budget of ``--quick``."""


class Compare(Table):
    """A table of the result: the arrays of one group beside a reference."""

    group: Name
    """The group."""
    title: Name
    """The heading."""
    reference: Name
    """The array that is 100 %."""
    equal: Literal["user_capacity", "members"]
    """What the arrays share; a check says INVALID when they do not."""
    per: Literal["disk", "user_capacity", "array"] = "disk"
    """What throughput is divided by before it is compared."""
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
    policy: Policy = Policy()
    """How arrays choose."""
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
        return ["sim"] if self.sim else ["original"] if self.original else []

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
        if target in ("sim", "original"):
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
