"""Where a study runs: what is modelled (``[sim]``, ``[original]``), measured (``[live]``), emulated (``[emulated]``).

Invariant: data only, as in `schema`; a target without a table in the file has these defaults.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from raidlab.study.words import (
    Bytes,
    DeviceOf,
    Few,
    Line,
    Name,
    Repeats,
    Requests,
    Table,
    TimeNs,
    list_from_one,
)

PairPricing = Literal["queued", "head", "prepaid"]


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


class ModelledQuickBudget(QuickBudget):
    """What ``--quick`` puts in place of the budget of a simulated target."""

    fill_caches: bool | None = None
    """Whether warming up waits for write caches."""


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
    look: TimeNs | Literal[0] = 0
    """A look at the clock where nothing else takes time and threads take turns on one processor, as in the md lab."""
    completion: TimeNs | Literal[0] = 0
    """After each access."""
    parity_per_kib: TimeNs | Literal[0] = 0
    """For each KiB that a parity computation reads."""
    file: TimeNs | Literal[0] = 0
    """Whole files: finding and opening one, before anything is read."""
    file_per_kib: TimeNs | Literal[0] = 0
    """Whole files and streams: copying each KiB (1024 bytes) between the file system and the program."""


class FileSystemShape(Table):
    """How a Unix file system lays files out and reads them."""

    block: Bytes = 8192
    """A block."""
    cluster: Bytes = 57_344
    """The most that is read at a time."""
    read_ahead_clusters: Annotated[int, Field(ge=0, le=2**16)] = 1
    """How many clusters are asked for before they are needed."""
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


class FileSystem(FileSystemShape):
    """The Unix file system of whole files and of streams, in the simulator: what it asks of an array for a file."""

    write_behind_clusters: Annotated[int, Field(ge=0, le=2**16)] = 1
    """How many clusters of a stream may be on their way to the array while its program goes on."""


class Servers(Table):
    """A station as the engine is told it: servers that work first come, first served."""

    name: Name
    """What visits and results call it; ``host cpu`` is the host's."""
    servers: Few = 1
    """How many visits it serves at a time; the others wait, first come first served."""


class Station(Servers):
    """A station between clients and disks, in the simulator: an interface, a switch, a controller, a bus, a link."""

    each: Name | None = None
    """One for each ``volume``, each ``stream``, or each place that ``placement`` of the array gives volumes under this
    name."""


class PathVisit(Table):
    """What is paid at a station on the path of one array."""

    station: Name
    """Which station."""
    phase: Literal["command", "data", "status", "bus"]
    """On the way down before anything else, with the bytes, or on the way up after everything else. ``bus``, in
    ``member_path`` only: the station is the bus that the members are on, and they hold it as the ``[bus]`` of their
    device says."""
    cost: TimeNs | Literal[0] = 0
    """What it takes each time; in phase ``data`` once a transfer."""
    mb_s: Annotated[float, Field(gt=0)] | None = None
    """The rate at which bytes pass, in MB/s (10^6); in phase ``data`` only."""
    on: Literal["both", "read", "write"] = "both"
    """Which requests, or accesses, make the visit."""
    only: list[Annotated[int, Field(ge=0, lt=2**16)]] | None = None
    """Only these volumes (request path) or members (member path), counted from 0; all when left out."""
    times: Literal["constant", "exponential"] = "constant"
    """Whether a visit takes its mean each time, or varies about it."""


class Visit(PathVisit):
    """What is paid at a station on a path, in the simulator."""

    arrays: list[Name] | None = None
    """Only these arrays; all when left out."""


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

    link_mbit_s: Annotated[float, Field(ge=1, le=10_000)] | None = None
    """A note for the reader: Mbit/s of the link to it. Nothing is slowed down to that."""


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


class CacheSizes(Table):
    """The sizes of a controller's cache, and whose it is."""

    line: Bytes
    """The least that is fetched."""
    fetch: Bytes
    """The most that is fetched at once."""
    read_room: Bytes
    """Room for what was read or destaged."""
    read_ahead: Bytes | Literal[0] = 0
    """How far beyond a sequential read is fetched."""
    read_ahead_up_to: Bytes | None = None
    """The longest sequential read that has anything fetched ahead; any when left out."""
    write_back_up_to: Bytes | Literal[0] = 0
    """The longest write that is answered before it is on the members."""
    dirty_room: Bytes
    """Room for what is not yet on the members."""
    destage_when: Literal["stripe_is_whole", "room_is_needed"] = "stripe_is_whole"
    """When writes that were answered early are destaged: stripes as soon as they are whole and parts when room is
    needed, or nothing before that (demand flush)."""
    destages: Few = 1
    """How many stripes are destaged at a time."""
    only: list[Annotated[int, Field(ge=0, lt=2**16)]] | None = None
    """Only these volumes, counted from 0; all when left out. Of several for one volume the first counts."""


class Cache(CacheSizes):
    """A controller's cache above the array, one for each volume, in the simulator."""

    copy_path: list[Visit] = []
    """What a write pays besides that is answered before it is on the members, such as a copy elsewhere."""
    arrays: list[Name] | None = None
    """Only these arrays; all when left out."""


class ParityWork(Table):
    """What a station takes to compute parity."""

    station: Name
    """Which station."""
    per_kib: TimeNs
    """What it takes for each KiB that a computation reads."""


class ParityStation(ParityWork):
    """A station that computes parity instead of the host, in the simulator."""

    arrays: list[Name] | None = None
    """Only for these arrays, the host for the others; for all when left out."""


class Modelled(Table):
    """A simulated target: the device model, the data path to it, how long each cell runs."""

    device: DeviceOf
    """A device file, by name (``hdd-7200``) or path, or a table of its keys."""
    hardware: Line | None = None
    """What it is called in reports; the device's name when left out."""
    one_device: bool = False
    """Whether all members of an array are areas of one such device, side by side, and wait for one another."""
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
    fill_caches: bool = True
    """Whether warming up goes on until the members' write caches are as full as the load keeps them."""
    measure: Amount = Amount(requests=10_000)
    """Run while measuring."""
    repeats: Repeats = 1
    """How often each cell is run, each time with another seed."""
    quick: ModelledQuickBudget = ModelledQuickBudget()
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
    verify: Literal["full", "sample", "off"] = "sample"
    """How much of what raidlab wrote is compared with what comes back: all of it (which costs processor time while it
    measures), a sample (less than 1 %) or nothing."""
    quick: QuickBudget = QuickBudget()
    """The budget of ``--quick``."""


class Emulated(Table):
    """Emulated spindles: modelled disks that answer in their own time, on the real clock of this machine."""

    device: DeviceOf | None = None
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
