"""What the compiled engine offers; the contract is docs/internals/cell-contract.md."""

from collections.abc import Callable
from typing import Any

class CellError(Exception):
    """Bad input or a failed run; ``key`` is the JSON path at fault."""

    message: str
    key: str

class DepthSearch:
    """The search for the queue depth at which a percentile of response time equals a target."""

    def __init__(self, percentile: float, target_ns: int, max_depth: int) -> None: ...
    def next(self) -> int | None: ...
    def report(self, depth: int, value_ns: Any, count: Any, throughput: float) -> None: ...
    def answer(self) -> dict[str, Any] | None: ...

def run_cell(request: str, progress: Callable[..., Any] | None = None) -> dict[str, Any]: ...
def parse_tree(text: str) -> str: ...
def tree_facts(tree: str, member_bytes: int, sector_bytes: int) -> dict[str, Any]: ...
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
) -> dict[str, Any]: ...
def member_operations(request: str, limit: int) -> dict[str, Any]: ...
