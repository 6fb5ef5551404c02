"""What the compiled engine offers; the contract is docs/internals/cell-contract.md."""

from collections.abc import Callable
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from raidlab.results.answer import HoldAnswer

Column = npt.NDArray[np.uint64]

class TreeFacts(TypedDict, total=False):
    leaves: int
    volumes: int
    volume_bytes: list[int]
    user_bytes: int
    losses_borne: int
    tolerance: int
    storage_efficiency: float
    full_stripe_bytes: int
    level: str

class DeviceFacts(TypedDict):
    name: str
    sector_bytes: int
    capacity_bytes: int
    idle_overhead_ns: int
    idle_seek_ns: int
    idle_rotation_ns: int
    idle_transfer_ns: int
    flash: NotRequired[dict[str, float]]

class MapCell(TypedDict, total=False):
    kind: Literal["data", "p", "q", "spare", "unused"]
    volume: int
    chunk: int
    node: int
    row: int
    number: int

class LayoutMap(TypedDict):
    cell_bytes: int
    members: list[list[MapCell]]

class PlanNode(TypedDict, total=False):
    op: Literal["read", "write", "xor", "pq", "recover"]
    member: int
    offset_bytes: int
    bytes: int
    pieces: list[dict[str, str | int]]
    pair_with: int | None
    read_bytes: int
    write_bytes: int
    after: list[int]

class RequestPlan(TypedDict):
    nodes: list[PlanNode]
    reads: int
    writes: int
    scratch_bytes: int
    text: str

class TraceVolume(TypedDict):
    name: str
    reads: int
    read_bytes: int
    writes: int
    write_bytes: int
    end_bytes: int
    """One past the last byte touched: what a volume must have at least."""
    sequential: int
    """Requests that begin where the one before them ended."""
    working_set_bytes: int
    """Of all pages of 4 KiB that were touched."""

class TraceSummary(TypedDict):
    format: str
    resolution_ns: int
    requests: int
    other_lines: int
    empty_requests: int
    first_ns: int
    span_ns: int
    most_in_a_second: int
    out_of_order: int
    response_mean_ns: float | None
    sizes: dict[Literal["bytes", "requests"], Column]
    other_sizes: int
    volumes: list[TraceVolume]

class CellError(Exception):
    """Bad input or a failed run: the JSON path at fault, and bad_input, refused, unsupported or io."""

    message: str
    key: str
    kind: str

class DepthSearch:
    """The search for the queue depth at which a percentile of response time equals a target."""

    def __init__(self, percentile: float, target_ns: int, max_depth: int) -> None: ...
    def next(self) -> int | None: ...
    def report(self, depth: int, value_ns: Any, count: Any, throughput: float) -> None: ...
    def answer(self) -> HoldAnswer | None: ...

def run_cell(
    request: str,
    progress: Callable[[float], bool | None] | None = None,
    records: Callable[[dict[str, Column]], None] | None = None,
) -> dict[str, Any]: ...
def check_cell(request: str) -> None: ...
def parse_tree(text: str) -> str: ...
def tree_facts(tree: str, member_bytes: int, sector_bytes: int) -> TreeFacts: ...
def device_facts(device: str) -> DeviceFacts: ...
def device_user(path: str) -> str | None: ...
def device_replay(
    device: str,
    is_write: npt.NDArray[np.uint8],
    lba: Column,
    sectors: Column,
    gap_ns: Column,
    seed: int,
) -> dict[str, Column]: ...
def trace_formats() -> list[tuple[str, str]]: ...
def trace_format(path: str, format_name: str | None = None) -> str: ...
def trace_summary(path: str, format_name: str | None = None) -> TraceSummary: ...
def trace_convert(path: str, format_name: str | None, to: str, to_format: str) -> int: ...
def trace_columns(path: str, format_name: str | None = None) -> dict[str, Column]: ...
def layout_map(tree: str, rows: int) -> LayoutMap: ...
def plan_io(
    tree: str,
    sector_bytes: int,
    member_bytes: int,
    policy: str,
    kind: str,
    offset_bytes: int,
    length_bytes: int,
    missing: list[int],
    volume: int,
) -> RequestPlan: ...
def member_operations(request: str, requests: int) -> dict[str, Column]: ...
def log_to_stderr(level: str) -> bool: ...
