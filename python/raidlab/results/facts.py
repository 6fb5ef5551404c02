"""What ``run.json`` says of a run, and the parts of one that goes on: types that mypy knows and that reading checks.

Adding a fact: a key here, of the type that JSON gives it back in. One that a version or a command does not write is
`NotRequired`; a key that is here and required is there in every folder that was read (older ones: `migrate`).

Invariants:

- A folder may be a stranger's: what `checked` has let pass has these types, whatever wrote it. Further keys are allowed
  and kept, and nothing is changed.
- A count is a whole number that the engine's 64 bits hold, a figure is finite, a moment is one of ISO 8601.
- What could not be determined is `Unknown`, with the reason, where a fact says so; elsewhere it is None.
"""

import datetime
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, cast, final

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from raidlab.study.parameters import Unit
from raidlab.study.tree import Tree

_MOST_COUNT = 2**64 - 1
# Nothing is made of anything else: a number in quotes is no number. What is within takes this over.
_AS_WRITTEN = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


def _moment(text: str) -> str:
    datetime.datetime.fromisoformat(text)
    return text


Count = Annotated[int, Field(ge=0, le=_MOST_COUNT)]
Moment = Annotated[str, AfterValidator(_moment)]


@final
class Unknown(TypedDict):
    """A fact that could not be had, and why."""

    unknown: str


# The machine, the program, the study.


class Host(TypedDict):
    """The machine that a run was made on."""

    cpu: str | None
    cpus: Count | None
    memory_kib: Count | None
    kernel: str
    machine: str
    python: str


class Version(TypedDict):
    """The raidlab that made a run; a commit where it ran from its source."""

    version: str
    git_commit: str | None
    git_dirty: bool | None


class RunPeriod(TypedDict):
    """A time in which a run went on; one that was resumed has several."""

    started: Moment
    ended: NotRequired[Moment]


class RunTimes(TypedDict):
    """When a run was made; its end is not known while it goes on."""

    started: Moment
    sessions: Annotated[list[RunPeriod], Field(min_length=1)]
    finished: NotRequired[Moment]
    elapsed_s: NotRequired[float]


class TraceFile(TypedDict):
    """A trace that a workload replays; None for what could not be read of it."""

    format: str | None
    bytes: Count | None
    sha256: str | None


class Trace(TraceFile):
    """The trace of a workload, as the study names it."""

    file: str


class StudyText(TypedDict):
    """The study of a run, as it was then."""

    name: str
    sha256: str
    text: str
    traces: NotRequired[dict[str, Trace]]


class Origin(TypedDict, total=False):
    """Where a parameter of a device comes from."""

    status: str
    why: str


class SheetFigure(TypedDict, total=False):
    """A figure that was printed of a device, and how far its model may be off."""

    name: Required[str]
    read: float
    address: str
    tolerance_percent: float


class DevicePower(TypedDict):
    """What a device draws when idle and when busy all the time, and where that is printed."""

    idle_watts: Annotated[float, Field(ge=0)]
    active_watts: Annotated[float, Field(ge=0)]
    source: str


class DeviceFit(TypedDict, total=False):
    """How well a device was fitted: how far throughputs may be off with 90 %, and what it was fitted by."""

    error_percent: float
    drift_percent: float
    requests: int
    seed: int
    validation: str


class DeviceSheet(TypedDict, total=False):
    """What a device file says that is no parameter of its model."""

    published: list[SheetFigure]
    held_out: list[SheetFigure]
    power: DevicePower
    fit: DeviceFit


class Device(TypedDict, total=False):
    """A device model: its kind, what is said of it, and its parameters, which only the engine knows by kind."""

    kind: Required[str]
    name: str | None
    description: str | None
    provenance: dict[str, Origin]


class HardwareParameter(TypedDict):
    """A parameter of modelled hardware: its value, what stands for it in the study, where it comes from."""

    value: float
    unit: Unit
    status: Literal["published", "fitted", "assumed"]
    why: str
    to: list[str]
    text: str | int | float


class GroupOfMembers(TypedDict):
    """Live members by number, under the names of the places they lie in."""

    names: list[str]
    members: list[Count]


class StudyFacts(TypedDict):
    """What a run keeps of its study."""

    study: StudyText
    trees: dict[str, Tree]
    devices: dict[str, Device]
    array_devices: NotRequired[dict[str, Device]]
    sheets: NotRequired[dict[str, DeviceSheet]]
    array_sheets: NotRequired[dict[str, DeviceSheet]]
    hardware: NotRequired[dict[str, dict[str, HardwareParameter]]]
    groups: NotRequired[list[GroupOfMembers]]
    members_of: NotRequired[dict[str, list[Count]]]
    array_trees: NotRequired[dict[str, str]]
    volumes: NotRequired[dict[str, str]]


# What lies below a live member: the kernel's arrays, devices, file systems.


class VolumeMember(TypedDict, total=False):
    """A member of an array of the kernel's."""

    name: str
    state: Required[str | None]
    kernel_state: str | None
    slot: int | None
    read_errors: int | None
    errors: dict[str, int] | None
    unknown: dict[str, str]


class Volume(TypedDict):
    """An array or volume of the kernel's; ``unknown`` has the reason for each fact that could not be determined."""

    kind: str
    name: str
    level: str | None
    chunk_bytes: Count | None
    # ``optimal``, ``degraded`` or ``failed``.
    state: str | None
    kernel_state: NotRequired[str | None]
    activity: str | None
    activity_share: float | None
    missing_members: Count | None
    members: list[VolumeMember]
    raid_disks: NotRequired[int | None]
    details: NotRequired[dict[str, str | int | float | None]]
    unknown: dict[str, str]


class Layer(TypedDict):
    """A block device below a target."""

    name: str
    numbers: NotRequired[str]
    backing: NotRequired[str]
    through_page_cache: NotRequired[bool | None]
    write_cache: NotRequired[str]
    rotational: NotRequired[bool]
    namespace: NotRequired[str]
    compresses: NotRequired[str]
    # How far its beginning lies from one of its physical blocks (or, below zero, that the kernel finds it misaligned).
    alignment_offset_bytes: NotRequired[int]
    physical_block_bytes: NotRequired[int]


class Setting(TypedDict):
    """A setting that is not the kernel's default."""

    place: str
    name: str
    value: str
    default: str


@final
class Settings(TypedDict):
    """Settings of devices and mounts that are not the kernel's defaults."""

    changed: list[Setting]


class ControlGroupLimit(TypedDict):
    """A limit of a control group on a device."""

    device: str
    what: str
    value: Count
    group: str


@final
class Limits(TypedDict):
    """Limits of control groups on the devices below."""

    found: list[ControlGroupLimit]


class StoredPlace(TypedDict):
    """What holds a target; ``stored_bytes`` is None where a file system does not count."""

    name: str
    size_bytes: Annotated[int, Field(ge=1, le=_MOST_COUNT)]
    stored_bytes: Count | None
    unwritten_bytes: NotRequired[Count]


@final
class Allocation(TypedDict):
    """How much of a target is stored."""

    places: list[StoredPlace]


class Signature(TypedDict):
    """What stands on a block device; ``kind`` is None for a blank one, and where ``unknown`` says why."""

    kind: str | None
    usage: NotRequired[str | None]
    unknown: NotRequired[str]


@final
class Content(TypedDict, total=False):
    """A sample of what a target holds, in blocks."""

    block_bytes: Count
    blocks: Required[Count]
    zero: Count
    compressible: Count
    repeated: Count


class DeviceBytes(TypedDict):
    """Bytes that a device has read and written."""

    read_bytes: int
    write_bytes: int


class DeviceCounters(DeviceBytes):
    """What a device has done: bytes, requests, and for how long those were under way there."""

    reads: NotRequired[int]
    writes: NotRequired[int]
    read_ms: NotRequired[int]
    write_ms: NotRequired[int]


@final
class Traffic(TypedDict):
    """The kernel's counters of the devices below a target, at a moment of a steady clock."""

    at_s: float
    devices: dict[str, DeviceCounters]


class Filesystem(TypedDict):
    """The file system that a file lies in."""

    kind: str
    mount_point: str
    source: str
    options: str


class BlockDevice(TypedDict, total=False):
    """The block device beneath a target, as the engine found it."""

    name: Required[str]
    numbers: str
    disk: str
    rotational: bool | None
    scheduler: str | None
    write_cache: str | None
    model: str | None
    logical_block_bytes: Count | None
    max_transfer_bytes: Count | None
    backing: str | None


class EmulatedDevice(TypedDict):
    """What stands behind an emulated member."""

    device: str | None
    content: str


@final
class Placement(TypedDict):
    """Where files lie on their device."""

    volume_bytes: Count
    first_bytes: Count
    last_bytes: Count
    extents: float
    sizes: Count
    tenths: Count
    tenths_used: Count


class FileSet(TypedDict):
    """Whole files that were made in a directory."""

    workload: str
    files: Count
    bytes: Count
    write_mb_s: float | None
    placement: Placement | Unknown


# What ``raidlab check`` tries on a target.


class SpeedRatio(TypedDict):
    """How many times as fast: the median of pairs, and its 95 % interval."""

    ratio: float
    low: float
    high: float
    pairs: Count


class ReadAgain(SpeedRatio):
    """Parts that were read, and at once again; the share of the second reading that moved at the disks."""

    bytes: Count
    part_bytes: Count
    moved_share: float | None
    disks: list[str]


class ReadTwice(TypedDict):
    """Single blocks that were read twice, and those that came back otherwise."""

    blocks: Count
    block_bytes: Count
    different: Count
    first: list[Count]
    written_meanwhile: bool


class FlushTimes(TypedDict):
    """Scattered blocks that were written and flushed."""

    blocks: Count
    median_ns: Count


class NamedDeviceBytes(DeviceBytes):
    """Bytes that a device has read and written."""

    name: str


class UnaskedTraffic(TypedDict):
    """What moved at devices of which raidlab asked nothing."""

    seconds: Annotated[float, Field(gt=0)]
    devices: list[NamedDeviceBytes]


class TargetFacts(TypedDict, total=False):
    """What is gathered of a target beyond what the engine tells (`raidlab.run.target_facts`)."""

    disks: Required[list[str]]
    volumes: list[Volume]
    stack: list[Layer]
    settings: Settings | Unknown
    limits: Limits | Unknown
    allocation: Allocation | Unknown
    signature: Signature | Unknown
    content: Content | Unknown
    traffic: Traffic | Unknown


class Trials(TypedDict, total=False):
    """What was tried on a target, and why the rest was not (`raidlab.measure.trials`)."""

    striped_by: str | None
    watched: UnaskedTraffic
    read_again: ReadAgain
    read_twice: ReadTwice
    compressible_pair: SpeedRatio
    repeated_pair: SpeedRatio
    flushed: FlushTimes
    untried: dict[str, str]


class Member(TargetFacts, Trials, total=False):
    """A live member: what the engine opened, what lies below it, and how the user named it."""

    kind: Required[str]
    io: Required[str]
    path: str | None
    name: str
    subject: str
    identity: str | None
    size_bytes: Count | None
    sector_bytes: Count
    filesystem: Filesystem | None
    st_dev: str | None
    inode: Count | None
    device: BlockDevice | None
    made_by_raidlab: bool
    allocated_bytes: Count | None
    overwritten_signature: str | None
    emulated: EmulatedDevice | None
    sets: list[FileSet]
    volumes_after: list[Volume]
    traffic_after: Traffic | Unknown


# What the machine did meanwhile.


class Clock(TypedDict):
    """The clock source, and three clocks at one moment."""

    source: str | None
    resolution_ns: Count
    monotonic_ns: Count
    raw_ns: Count
    boot_ns: Count


class Processor(TypedDict):
    """Counters of the processors since boot, and their settings."""

    stolen_ticks: Count | None
    all_ticks: Count | None
    heat_events: Count | None
    governor: str | None
    frequency_cap_khz: Count | None
    frequency_most_khz: Count | None
    on_battery: bool | None
    quota_stops: Count | None


class OtherPrograms(TypedDict):
    """Ticks of each other program, and for how long anybody waited for a processor."""

    programs: dict[str, Count] | None
    waited_us: Count | None


class MachineNow(TypedDict):
    """The machine at one moment."""

    clock: Clock
    processor: Processor
    others: NotRequired[OtherPrograms]


class Machine(TypedDict):
    """The machine at the beginning and at the end."""

    before: MachineNow
    after: MachineNow


# What `raidlab measure` was told, and what it found beforehand.


class Subject(TypedDict):
    """What was measured as one: targets under a name."""

    name: str
    engine: str
    targets: list[str]


class BudgetFacts(TypedDict):
    """How long and how often, in the user's words."""

    warmup: str
    runtime: str
    repeats: Count


class MeterFacts(TypedDict):
    """How the meter drove its targets."""

    interface: str
    workers: Annotated[int, Field(ge=1, le=_MOST_COUNT)]
    cpus: list[Count]
    batch: Count | None
    busy: bool
    poll_completions: bool
    buffered: bool
    compressible_percent: Count
    verify: NotRequired[str]


class Pilot(TypedDict):
    """What a pilot found of the warm-up of a point."""

    subject: str
    load: str
    settled: bool
    warmup_ns: Count
    sentence: str


class WarmupRounds(TypedDict):
    """What the rounds before measuring came to."""

    subject: str
    load: str
    rounds: Count
    seconds: float
    steady: bool


class HostFacts(TypedDict):
    """A machine that measured together with others, and how far its clock was ahead of that of the one who asked."""

    name: str
    address: str
    targets: Count
    clock_offset_ns: int
    clock_uncertainty_ns: Count


class MeasureFacts(TypedDict):
    """What a measurement without a study file was."""

    subjects: Annotated[list[Subject], Field(min_length=1)]
    budget: BudgetFacts
    drive: MeterFacts
    warmups: list[Pilot]
    steadied: NotRequired[list[WarmupRounds] | None]
    hosts: NotRequired[list[HostFacts]]
    precision_percent: float | None
    span_percent: Annotated[list[float], Field(min_length=2, max_length=2)]


# What a second tool measured.

_THROUGHPUT = "throughput_mb_s"


def _with_throughput(figures: dict[str, float]) -> dict[str, float]:
    if _THROUGHPUT not in figures:
        raise ValueError(f"has no {_THROUGHPUT}")
    return figures


class ToolPair(TypedDict):
    """One run of each tool: its figures by name, and which tool was first."""

    raidlab: Annotated[dict[str, float], AfterValidator(_with_throughput)]
    fio: Annotated[dict[str, float], AfterValidator(_with_throughput)]
    first: str


class ToolRatio(TypedDict):
    """raidlab's figure over the other tool's, over all pairs."""

    figure: str
    raidlab: float
    fio: float
    ratio: float
    low: float | None
    high: float | None


class ToolDocument(TypedDict):
    """What both tools measured, and how they were asked."""

    tool: str
    pairs: Annotated[list[ToolPair], Field(min_length=1)]
    ratios: list[ToolRatio]
    commands: list[str]
    job: str
    differences: list[str]
    interrupted: bool


class ToolLoad(TypedDict):
    """A load that a second tool was to measure too."""

    array: str
    workload: str
    depth: Count
    tool: str
    target: str
    within_percent: float


@final
class ToolMissing(ToolLoad):
    """A load that it did not measure, and why."""

    missing: str


@final
class ToolMeasured(ToolLoad, ToolDocument):
    """A load that it measured."""


SecondTool = ToolMeasured | ToolMissing


# The run as a whole.


class LiveEngine(TypedDict):
    """How the engine carried requests out; the rest of it depends on which engine it was."""

    interface: str


class TableDigest(TypedDict):
    """What a table was when it was written."""

    sha256: str


class BegunNow(TypedDict):
    """What a run knows when it begins, but for its study."""

    schema_version: int
    command: str
    seed: Count
    targets: list[str]
    quick: bool
    argv: list[str]
    raidlab: Version
    host: Host
    times: RunTimes
    far_machine: NotRequired[str]
    records: NotRequired[bool]


class Beginning(StudyFacts, BegunNow):
    """What a run knows when it begins."""


@with_config(_AS_WRITTEN)
class UnfinishedFacts(Beginning):
    """What the parts of a run say: its beginning, and its members once they are known."""

    live_members: NotRequired[list[Member]]
    live_engine: NotRequired[LiveEngine | None]


Status = Literal["complete", "interrupted", "failed"]


class Ending(TypedDict):
    """What is known of every run when it ends, besides its times."""

    status: Status
    failure: str | None
    interrupted_by: str | None
    live_members: list[Member]
    live_engine: LiveEngine | None


def complete_ending() -> Ending:
    """How a run ends that only models, once all of it was done."""
    return {
        "status": "complete",
        "failure": None,
        "interrupted_by": None,
        "live_members": [],
        "live_engine": None,
    }


class MoreFacts(TypedDict, total=False):
    """What only some commands know of a run when it ends."""

    members_of: dict[str, list[Count]]
    measure: MeasureFacts
    machine: Machine
    second_tool: list[SecondTool]


@with_config(_AS_WRITTEN)
class Facts(Beginning, Ending):
    """What ``run.json`` says, as this version writes it: the beginning, the ending and more."""

    measure: NotRequired[MeasureFacts]
    machine: NotRequired[Machine]
    second_tool: NotRequired[list[SecondTool]]
    tables: NotRequired[dict[str, TableDigest]]


class WrongFactError(ValueError):
    """What is wrong with the facts of a run, in words that go on from "run.json"."""


def checked(read: object) -> Facts:
    """The facts of a run, if that is what was read; else a `WrongFactError`."""
    return cast(Facts, _checked(Facts, read))


def checked_unfinished(read: object) -> UnfinishedFacts:
    """The facts that stand in the parts of a run, if that is what was read; else a `WrongFactError`."""
    return cast(UnfinishedFacts, _checked(UnfinishedFacts, read))


_BELONGS = {
    "string_type": "a text",
    "string_unicode": "a text of Unicode",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "greater_than": "a larger number",
    "greater_than_equal": "a larger number",
    "less_than_equal": "a smaller number",
    "too_short": "a longer list",
    "too_long": "a shorter list",
}


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    """Made when it is first needed: that takes as long as reading many folders."""
    return TypeAdapter(kind)


def _checked(kind: type, read: object) -> object:
    try:
        _adapter(kind).validate_python(read)
    except ValidationError as error:
        raise WrongFactError(_said(error)) from None
    # What was read, and not Pydantic's copy: a whole number stays one where a number may be broken.
    return read


def _said(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    steps = [step for step in first["loc"] if not _is_of_pydantic(step)]
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    if first["type"] == "missing":
        return f"lacks '{place}'"
    belongs = _BELONGS.get(first["type"])
    if belongs is None and first["type"] == "literal_error":
        belongs = str(first["ctx"]["expected"])
    said = "is not of its kind" if belongs is None else f"is not {belongs}"
    return f"is no table of facts: '{place}' {said}"


def _is_of_pydantic(step: str | int) -> bool:
    """Whether a step names a variant or a function, and no key."""
    return isinstance(step, str) and (step in _VARIANTS or step.startswith(("function-", "constrained-")))


_UNITED = (
    *(Unknown, Settings, Limits, Allocation, Signature, Content, Traffic, Placement),
    *(ToolMeasured, ToolMissing),
)
_VARIANTS = {kind.__name__ for kind in _UNITED} | {"str", "int", "float"}
