"""Quantities: numbers taken from a run for comparison with what a study published, one file a kind.

Adding one: a file named after its kind with a `KIND`, a line in `KINDS`, a test.

Invariants:

- Kinds belong to no study: what is particular to a study stands in its ``quantities.toml`` and ``columns.toml``.
- A kind reads a run and never measures.
"""

from raidlab.published.quantities import (
    access_count,
    device,
    file_size_line,
    held,
    metric,
    parameter,
    plan,
    printed,
    regression,
    runs,
    second_tool,
    settles,
    sizes,
    stage,
    stream_rate,
    sweep,
    synchronisation,
    tree,
    where,
)
from raidlab.published.quantities.kind import Kind, Need, NotThereError, Reading, Source

_ROOMS = (
    metric,
    sweep,
    where,
    regression,
    file_size_line,
    stream_rate,
    stage,
    held,
    access_count,
    plan,
    tree,
    device,
    synchronisation,
    parameter,
    printed,
    sizes,
    runs,
    settles,
    second_tool,
)
KINDS: dict[str, Kind] = {room.KIND.kind: room.KIND for room in _ROOMS}

__all__ = ["KINDS", "Kind", "Need", "NotThereError", "Reading", "Source"]
