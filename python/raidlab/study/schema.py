"""The schema of a study file: what may be written in ``study.toml``, and nothing else.

Invariants:

- Data only: nothing here opens a file, parses a tree or measures anything.
- Unknown keys are errors, so that a misspelt key never silently leaves its default in force.
- Sizes are whole bytes and times whole nanoseconds after validation (`units`).
- The words follow the contract with the engine: a ``kind`` in a study file is the ``kind`` the engine knows.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from raidlab.study.units import parse_bytes, parse_time_ns

Bytes = Annotated[int, BeforeValidator(parse_bytes)]
TimeNs = Annotated[int, BeforeValidator(parse_time_ns)]
Share = Annotated[float, Field(ge=0, le=1)]
Depth = Annotated[int, Field(ge=1, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=60)]
PairPricing = Literal["queued", "head", "prepaid"]


class _Table(BaseModel):
    """A table of the study file: unknown keys are refused, values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _kind_from_text(value: Any) -> Any:
    """Let ``address = "uniform"`` stand for ``address = { kind = "uniform" }``."""
    return {"kind": value} if isinstance(value, str) else value


def _size_from_text(value: Any) -> Any:
    """Let ``size = "8KiB"`` stand for ``size = { kind = "fixed", bytes = "8KiB" }``."""
    return {"kind": "fixed", "bytes": value} if isinstance(value, str | int | float) else value


class FixedSize(_Table):
    """Every request has the same size."""

    kind: Literal["fixed"] = "fixed"
    bytes: Bytes


class ExponentialSize(_Table):
    """Sizes drawn from an exponential distribution, in whole sectors, at least one."""

    kind: Literal["exponential"]
    mean: Bytes


class NormalSize(_Table):
    """Sizes drawn from a normal distribution, in whole sectors, at least one."""

    kind: Literal["normal"]
    mean: Bytes
    sd: Bytes


class LognormalSize(_Table):
    """Sizes drawn from a lognormal distribution; ``sigma`` is that of the logarithm."""

    kind: Literal["lognormal"]
    mean: Bytes
    sigma: Annotated[float, Field(gt=0)]


class TableSize(_Table):
    """Sizes drawn from a table with weights."""

    kind: Literal["table"]
    bytes: Annotated[list[Bytes], Field(min_length=1)]
    weights: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)]


Size = Annotated[
    Annotated[
        FixedSize | ExponentialSize | NormalSize | LognormalSize | TableSize,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_size_from_text),
]


class UniformAddress(_Table):
    """Starts drawn uniformly over the volume."""

    kind: Literal["uniform"]


class SequentialAddress(_Table):
    """Each stream goes through its own part of the volume from front to back."""

    kind: Literal["sequential"]
    streams: Annotated[int, Field(ge=1)] = 1


class ZipfAddress(_Table):
    """Few places are asked for often: popularity falls as a power of the rank."""

    kind: Literal["zipf"]
    theta: Annotated[float, Field(gt=0)]


class HotMembersAddress(_Table):
    """The chunk column a request starts on is drawn with unequal weights."""

    kind: Literal["hot_members"]
    weights: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=1)]
    chunk: Bytes


class StridedAddress(_Table):
    """Each start lies a fixed stride after the last."""

    kind: Literal["strided"]
    stride: Bytes


class AlignedStripeAddress(_Table):
    """Requests of a stripe or more begin or end on a stripe boundary; smaller ones start on a drawn chunk."""

    kind: Literal["aligned_stripe"]
    stripe: Bytes
    chunk: Bytes


Address = Annotated[
    Annotated[
        UniformAddress | SequentialAddress | ZipfAddress | HotMembersAddress | StridedAddress | AlignedStripeAddress,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_kind_from_text),
]


class PrimaryRead(_Table):
    """A mirror is read from its first online copy."""

    kind: Literal["primary"]


class RoundRobinRead(_Table):
    """Copies of a mirror are read in turn."""

    kind: Literal["round_robin"]


class ShortestQueueRead(_Table):
    """A mirror is read from the copy with the fewest operations in flight."""

    kind: Literal["shortest_queue"]


class NearestRead(_Table):
    """A mirror is read from the copy with the shorter seek, unless its queue is longer by ``queue_override``."""

    kind: Literal["nearest"]
    queue_override: Annotated[int, Field(ge=0)] | None = 5


MirrorRead = Annotated[
    Annotated[PrimaryRead | RoundRobinRead | ShortestQueueRead | NearestRead, Field(discriminator="kind")],
    BeforeValidator(_kind_from_text),
]


class Policy(_Table):
    """How an array chooses among the ways to serve a request."""

    mirror_read: MirrorRead = NearestRead(kind="nearest")
    parity_write: Literal["read_modify_write", "reconstruct_write", "fewest_accesses"] = "fewest_accesses"
    parity_write_tie: Literal["read_modify_write", "reconstruct_write"] = "read_modify_write"
    parity_read: Literal["skip", "read_through"] = "skip"


class Array(_Table):
    """One arrangement of members, written as a tree: ``raid5(5, chunk=64KiB)``."""

    name: Name
    tree: str
    group: Name = "all"
    policy: Policy | None = None
    pair_pricing: PairPricing | None = None


class IdleMultiple(_Table):
    """A response-time target as a multiple of the idle percentile of a reference array."""

    times_idle: Annotated[float, Field(gt=1)]
    of: Name


class Hold(_Table):
    """Find the load at which a percentile of response time meets a target.

    ``search`` measures several fixed depths and interpolates between whole depths; ``adjust`` moves the depth while
    running, as the Berkeley study did.
    """

    percentile: Annotated[float, Field(gt=0, lt=100)] = 90
    target: IdleMultiple | TimeNs
    method: Literal["search", "adjust"] = "search"
    max_depth: Depth = 1024


class OpenLoop(_Table):
    """Requests arrive whether or not the last one is done."""

    arrival: Literal["poisson", "uniform", "h2"] = "poisson"
    rates_per_s: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
    cv2: Annotated[float, Field(gt=1)] | None = None


class Load(_Table):
    """How hard the arrays are driven: closed loop over depths, or open loop over rates; never both."""

    depths: list[Depth] = []
    quick_depths: list[Depth] | None = None
    hold: Hold | None = None
    open: OpenLoop | None = None


class Step(_Table):
    """One request of a task; the next begins when it is done."""

    op: Literal["read", "write"]
    size: Size | None = None
    address: Address | None = None
    same_extent_as: Annotated[int, Field(ge=0)] | None = None


class Workload(_Table):
    """What is asked of every array: the share of reads, the sizes, the places."""

    name: Name
    read: Share
    size: Size
    address: Address = UniformAddress(kind="uniform")
    align: Bytes | Literal["sector"] | None = None
    volumes: Literal["uniform", "even"] = "uniform"
    task: list[Step] | None = None
    arrays: list[Name] | None = None
    load: Load | None = None


class Amount(_Table):
    """How much is run: requests, a time, or both (warm-up: whichever is last; measuring: whichever is first)."""

    requests: Annotated[int, Field(ge=1, strict=True)] | None = None
    duration: TimeNs | None = None


class QuickBudget(_Table):
    """What ``--quick`` puts in place of the budget beside it."""

    warmup: Amount | None = None
    measure: Amount | None = None
    repeats: Annotated[int, Field(ge=1, strict=True)] = 1
    member_size: Bytes | None = None


class HostCost(_Table):
    """What the host's processors spend on a request, an access to a member, its completion, a KiB of parity.

    `issue` is spent between one access of a request and the next: whoever serves the request issues them in turn.
    """

    cpus: Annotated[int, Field(ge=1)] = 1
    request: TimeNs | Literal[0] = 0
    access: TimeNs | Literal[0] = 0
    issue: TimeNs | Literal[0] = 0
    completion: TimeNs | Literal[0] = 0
    parity_per_kib: TimeNs | Literal[0] = 0


class Modelled(_Table):
    """A simulated target: the device model, what the host costs, how long each cell runs."""

    device: str | dict[str, Any]
    hardware: str | None = None
    host: HostCost | None = None
    pair_pricing: PairPricing = "queued"
    warmup: Amount = Amount(requests=1000)
    measure: Amount = Amount(requests=10_000)
    repeats: Annotated[int, Field(ge=1, strict=True)] = 1
    quick: QuickBudget = QuickBudget()


class Live(_Table):
    """What a run on real members uses: the size of the files it makes, the sector, how long each cell runs.

    Members in memory are made and filled anew for every cell, so they have a smaller size of their own.
    """

    member_size: Bytes = 512 * 1024**2
    memory_member_size: Bytes = 16 * 1024**2
    sector: Bytes = 4096
    warmup: Amount = Amount(duration="100ms")
    measure: Amount = Amount(duration="500ms")
    repeats: Annotated[int, Field(ge=1, strict=True)] = 3
    quick: QuickBudget = QuickBudget()


class Compare(_Table):
    """A table of the result: the arrays of one group beside a reference."""

    group: Name
    title: Name
    reference: Name
    equal: Literal["user_capacity", "members"]
    per: Literal["disk", "user_capacity", "array"] = "disk"
    note: str | None = None


class Study(_Table):
    """A whole study: arrays, workloads, loads, where it runs and what is compared."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
    title: str
    description: str = ""
    on: Annotated[list[str], Field(min_length=1)] = ["sim"]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    array: Annotated[list[Array], Field(min_length=1)]
    workload: Annotated[list[Workload], Field(min_length=1)]
    load: Load
    policy: Policy = Policy()
    sim: Modelled | None = None
    original: Modelled | None = None
    live: Live | None = None
    compare: list[Compare] = []
