"""What the compiled engine offers; the contract is docs/internals/cell-contract.md."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

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
    def answer(self) -> dict[str, Any] | None: ...

def run_cell(request: str, progress: Callable[[float], bool | None] | None = None) -> dict[str, Any]: ...
def check_cell(request: str) -> None: ...
def parse_tree(text: str) -> str: ...
def tree_facts(tree: str, member_bytes: int, sector_bytes: int) -> dict[str, Any]: ...
def device_facts(device: str) -> dict[str, Any]: ...
def device_replay(
    device: str,
    is_write: npt.NDArray[np.uint8],
    lba: npt.NDArray[np.uint64],
    sectors: npt.NDArray[np.uint64],
    gap_ns: npt.NDArray[np.uint64],
    seed: int,
) -> dict[str, npt.NDArray[np.uint64]]: ...
def layout_map(tree: str, rows: int) -> dict[str, Any]: ...
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
) -> dict[str, Any]: ...
def member_operations(request: str, requests: int) -> dict[str, Any]: ...
