"""What every engine answers to a cell: one shape, whatever ran it.

The engines `sim`, `live` and `direct` answer in it; those of whole files and of streams on a real machine answer in the
words of files and streams, of which `run/answers.py` makes it.

Invariants:

- Counts and times are integers in base units (bytes, nanoseconds); a key that ends in ``mean_ns`` is a float.
- What only some engines know is not there in the answers of the others, or None.
- A record of a run (``parts.jsonl``) holds it as it is.
- No time is told twice: those of all requests are those of reads and of writes (`times_of_all`), and tasks have their
  own only where they are several requests; those of service are told where they are others than those of response.
  Records of earlier versions also hold what follows from these.

Reference: ``docs/internals/cell-contract.md``; held against answers of every engine by
``tests/python/test_cell_answers.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal, NotRequired, cast, get_args

from typing_extensions import TypedDict

from raidlab.histogram import Column, Histogram, Times
from raidlab.written import WrittenAnswer

# A row of a table.
Row = dict[str, object]
Verdict = Literal["PASS", "UNKNOWN", "WARN", "INVALID"]
# From the best to the worst.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Totals(TypedDict):
    """How much was done while the window was open, and in what time on the mean."""

    requests: int
    bytes: int
    failed: int
    response_mean_ns: float
    service_mean_ns: float


class Tally(Totals):
    """What was done of one kind of request, with the times of each."""

    response: Times
    service: NotRequired[Times]
    """Where they are others than those of response (`times_of`)."""


class HoldReport(TypedDict):
    """How a percentile was held while the depth moved."""

    depth_mean: float
    depth_final: int
    share_within_target: float
    settled: bool


class SearchPoint(TypedDict):
    """One depth that a search has run."""

    depth: int
    percentile_ns: int
    throughput: float


class HoldAnswer(TypedDict):
    """The depth at which a percentile meets its target; ``lower`` and ``upper`` are the runs beside it in a search."""

    kind: Literal["between", "never_exceeded", "always_exceeded", "adjusted"]
    depth: float | None
    throughput: float
    lower: SearchPoint | None
    upper: SearchPoint | None


class Backlog(TypedDict):
    """How far an open loop fell behind."""

    max_waiting: int
    final_waiting: int
    max_in_flight: int
    max_delay_ns: int


class MemberAnswer(TypedDict):
    """What one member did; times of service only where its disk is modelled, ``flash_*`` only of flash drives."""

    leaf: int
    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    failed: NotRequired[int]
    others: NotRequired[int]
    servers: NotRequired[int | None]
    busy_ns: NotRequired[int | None]
    seek_ns: NotRequired[int | None]
    rotation_ns: NotRequired[int | None]
    transfer_ns: NotRequired[int | None]
    overhead_ns: NotRequired[int | None]
    paired_ns: NotRequired[int | None]
    wait_ns: NotRequired[int | None]
    flash_host_bytes: NotRequired[int]
    flash_moved_bytes: NotRequired[int]
    flash_padded_bytes: NotRequired[int]
    flash_erased_blocks: NotRequired[int]
    flash_die_busy_ns: NotRequired[int]
    flash_channel_busy_ns: NotRequired[int]
    flash_link_busy_ns: NotRequired[int]


class StationAnswer(TypedDict):
    """What one station of the data path did."""

    name: str
    visits: int
    busy_ns: int
    wait_ns: int
    servers: NotRequired[int]


class StageMeans(TypedDict):
    """Means a request, summed over the members it touches."""

    host_cpu_ns: float
    accesses: float
    queue_ns: float
    overhead_ns: float
    disconnect_ns: float
    transfer_ns: float
    paired_ns: float


class SecondHistograms(TypedDict):
    """Response times of each second: a row a second and value."""

    time_ns: Column
    value_ns: Column
    count: Column


class Snapshots(TypedDict):
    """A row a second of the run's clock."""

    time_ns: Column
    requests: Column
    bytes: Column
    response_sum_ns: Column
    histograms: NotRequired[SecondHistograms]


class FileAccess(TypedDict):
    """What whole files asked for under one name."""

    name: str
    count: int
    bytes: int
    found: int
    mean_ns: float


class FileSizes(TypedDict):
    """How many files of each size were read, and in what time together."""

    size_bytes: Column
    files: Column
    time_ns: Column


class FilesAnswer(TypedDict):
    """What whole files asked for."""

    files: int
    open_mean_ns: float
    first_byte_mean_ns: float
    accesses: list[FileAccess]
    sizes: FileSizes


class StreamSide(TypedDict):
    """What one end of a stream did."""

    busy_ns: int
    waited_ns: int
    stops: int


# ``from`` and ``to`` are no names of a class.
StreamAnswer = TypedDict(
    "StreamAnswer",
    {
        "name": str,
        "from": str,
        "to": str,
        "bytes": int,
        "elapsed_ns": int,
        "sync_ns": int,
        "bound_by": str,
        "source": StreamSide,
        "sink": StreamSide,
    },
)


class CheckAnswer(TypedDict):
    """What the engine says of the cell's worth."""

    name: str
    verdict: Verdict
    evidence: str
    mend: str


def worst_checks(checks: Iterable[CheckAnswer]) -> list[CheckAnswer]:
    """The worst verdict of each check, the first of several that are as bad."""
    worst: dict[str, CheckAnswer] = {}
    for check in checks:
        before = worst.setdefault(check["name"], check)
        worst[check["name"]] = max(before, check, key=lambda one: VERDICTS.index(one["verdict"]))
    return list(worst.values())


class DeviceCounts(TypedDict):
    """The kernel's counters of one block device, beside the bytes asked of it."""

    name: str
    numbers: NotRequired[str]
    targets: NotRequired[list[int]]
    read_bytes: NotRequired[int | None]
    write_bytes: NotRequired[int | None]
    asked_read_bytes: int
    asked_write_bytes: int


class KernelThread(TypedDict):
    """Threads of the kernel's that bear one name, and their time on a processor."""

    name: str
    cpu_ns: int


class MachineUsage(TypedDict):
    """What the whole machine used while the window was open; None for what the kernel does not tell."""

    busy_ns: int | None
    kernel_threads: list[KernelThread] | None
    energy_uj: int | None


class Accounting(TypedDict):
    """What a cell cost this machine while the window was open."""

    user_ns: int
    system_ns: int
    voluntary_switches: int
    involuntary_switches: int
    waited_ns: NotRequired[int | None]
    workers: NotRequired[list[dict[str, int | None]]]
    devices: NotRequired[list[DeviceCounts]]
    machine: NotRequired[MachineUsage]


class RebuildAnswer(TypedDict):
    """What became of the place of a member that was rebuilt or failed; ``elapsed_ns`` counts from ``begun_ns``."""

    leaf: int
    failed_ns: int | None
    begun_ns: int | None
    rebuilt_bytes: int
    member_bytes: int
    elapsed_ns: int
    is_over: bool
    stopped_ns: NotRequired[int | None]


class ScrubAnswer(TypedDict):
    """What an array found when it went over all it holds."""

    kind: str
    begun_ns: int
    elapsed_ns: int
    is_over: bool
    done_bytes: int
    all_bytes: int
    mismatches: int
    mended: int
    left_out_bytes: int
    bare_bytes: int


class RecordsAnswer(TypedDict):
    """Where the rows of a cell's requests are: the file in the folder ``records``, as it was when it was written."""

    file: str
    requests: int
    lost: int
    bytes: int
    sha256: str


class CellAnswer(TypedDict):
    """The answer to one cell."""

    engine: str
    seed: int
    elapsed_ns: int
    read: Tally
    write: Tally
    all: Totals
    members: list[MemberAnswer]
    stations: list[StationAnswer]
    facts: dict[str, Any]
    checks: list[CheckAnswer]
    interrupted: bool
    sector_bytes: NotRequired[int]
    requests: NotRequired[int]
    tasks: NotRequired[int]
    task: NotRequired[Tally]
    depth: NotRequired[float | None]
    gaps: NotRequired[Times]
    hold: NotRequired[HoldReport | None]
    backlog: NotRequired[Backlog]
    stages: NotRequired[StageMeans | None]
    snapshots: NotRequired[Snapshots]
    user_bytes: NotRequired[int]
    files: NotRequired[FilesAnswer | None]
    streams: NotRequired[list[StreamAnswer]]
    replayed: NotRequired[dict[str, object] | None]
    rebuilds: NotRequired[list[RebuildAnswer]]
    scrubs: NotRequired[list[ScrubAnswer]]
    requests_of_run: NotRequired[dict[str, int]]
    accounting: NotRequired[Accounting]
    content: NotRequired[dict[str, object] | None]
    stopped_by: NotRequired[str | None]
    records: NotRequired[RecordsAnswer]


class CellIdentity(TypedDict):
    """What a cell was: the study's side of it."""

    target: str
    array: str
    group: str
    workload: str
    load: str
    depth: int
    rate_per_s: float
    repeat: int
    purpose: str
    seed: int
    order: int
    members: int
    user_bytes: int
    member_bytes: int
    storage_efficiency: float


class CellRecord(TypedDict):
    """What a run keeps of one cell: where it stands, the study's side and the engine's side."""

    rank: list[float]
    identity: CellIdentity
    answer: CellAnswer


class HoldRow(TypedDict):
    """A response-time target and repeat; no depth and no throughput where even one request at a time misses it."""

    target: str
    array: str
    group: str
    workload: str
    repeat: int
    percentile: float
    target_ns: int
    method: str
    depth: float | None
    throughput_bytes_per_s: float | None
    throughput_low_bytes_per_s: float | None
    throughput_high_bytes_per_s: float | None
    bound: str


class HoldRecord(TypedDict):
    """What a run keeps of one held response time: where it stands, and its row."""

    rank: list[float]
    row: HoldRow


def times_of(tally: Tally, time: Literal["response", "service"]) -> Times:
    """The times of one kind of request: of response, or of service alone."""
    return tally["service"] if time == "service" and "service" in tally else tally["response"]


def times_of_all(answer: CellAnswer, time: Literal["response", "service"] = "response") -> Histogram:
    """The times of reads and writes together."""
    return Histogram.merged(Histogram.of(times_of(answer[way], time)) for way in ("read", "write"))


def read_answer(answer: CellAnswer | WrittenAnswer) -> CellAnswer:
    """An answer, whether it was written already or not."""
    return cast("CellAnswer", json.loads(answer.text)) if isinstance(answer, WrittenAnswer) else answer
