"""Run folders of older versions, read as if this version had written them.

Adding something to the schema: `SCHEMA_VERSION` one higher, what tables got in `_ADDED`, what ``run.json`` got (if
anything) in `_FACTS`; and a small folder of the version before, as a fixture that a test reads
(`tests/python/fixtures`).

Invariants:

- Nothing is written: an old folder stays as it is.
- What an old version did not record is null, or an empty table; never a guess.
- Columns are added, never renamed, and never given another meaning. So a folder is as old as what it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeGuard

import polars as pl

from raidlab.results.tables import (
    ACCESS_COLUMNS,
    ACCOUNTS,
    DEVICE_COLUMNS,
    FILE_SIZE_COLUMNS,
    FLASH_BUSY,
    FLASH_COUNTS,
    KERNEL_THREAD_COLUMNS,
    MACHINE,
    REBUILD_COLUMNS,
    RECORD_COLUMNS,
    SCHEMA_VERSION,
    SCRUB_COLUMNS,
    SNAPSHOT_HISTOGRAM_COLUMNS,
    STREAM_COLUMNS,
    TABLES,
)

OLDEST_VERSION = 1
# What ``run.json`` says before it is known to be what it should (`facts.checked`).
Read = Mapping[str, object]

# By version, the columns that it added to each table; a table that it added has all of them.
_ADDED: dict[int, dict[str, tuple[str, ...]]] = {
    2: {
        "cells": tuple(ACCOUNTS),
        "devices": tuple(DEVICE_COLUMNS),
        "stations": ("wait_ns",),
        "snapshots": ("response_sum_ns",),
        "snapshot_histograms": tuple(SNAPSHOT_HISTOGRAM_COLUMNS),
    },
    3: {},
    4: {"members": FLASH_COUNTS},
    5: {"accesses": tuple(ACCESS_COLUMNS), "file_sizes": tuple(FILE_SIZE_COLUMNS)},
    6: {"streams": tuple(STREAM_COLUMNS)},
    7: {"members": ("servers", *FLASH_BUSY)},
    8: {"cells": MACHINE, "kernel_threads": tuple(KERNEL_THREAD_COLUMNS)},
    9: {"records": tuple(RECORD_COLUMNS)},
    10: {"rebuilds": tuple(column for column in REBUILD_COLUMNS if column != "stopped_ns")},
    11: {"rebuilds": ("stopped_ns",)},
    12: {"scrubs": tuple(SCRUB_COLUMNS)},
}


def _from_1(facts: Read) -> Read:
    """Version 2 says which signal ended a run."""
    return {"interrupted_by": None, "live_engine": None, **facts}


def _from_2(facts: Read) -> Read:
    """Version 3 says which command made the folder, and in which sessions."""
    times = facts.get("times")
    if isinstance(times, dict):
        session = {"started": times.get("started"), "ended": times.get("finished")}
        times = {"sessions": [session], **times}
    return {"command": "run", **facts, "times": times}


# By version, how its facts become those of the next; versions after which only tables changed are not listed.
_FACTS: dict[int, Callable[[Read], Read]] = {1: _from_1, 2: _from_2}


def is_known(version: object) -> TypeGuard[int]:
    """Whether folders of a version can be read."""
    return isinstance(version, int) and not isinstance(version, bool) and OLDEST_VERSION <= version <= SCHEMA_VERSION


def migrated_facts(facts: Read, version: int) -> Read:
    """The facts of ``run.json`` of a version as this one writes them; ``schema_version`` stays that of the tables.

    What a folder of that version has and this one lacks, it lacks afterwards.
    """
    for older in range(version, SCHEMA_VERSION):
        if older in _FACTS:
            facts = _FACTS[older](facts)
    return facts


def added_since(version: int) -> dict[str, list[str]]:
    """The columns of each table that came after a version, and that its folders may lack.

    Examples
    --------
    >>> added_since(1)["cells"][:2], added_since(7)["cells"]
    (['cpu_user_ns', 'cpu_system_ns'], ['machine_busy_ns', 'kernel_threads_ns', 'energy_uj'])
    >>> added_since(SCHEMA_VERSION)["cells"]
    []
    """
    return {
        name: [column for later in range(version + 1, SCHEMA_VERSION + 1) for column in _ADDED[later].get(name, ())]
        for name in TABLES
    }


def is_younger(name: str, version: int) -> bool:
    """Whether a table came after a version."""
    return added_since(version)[name] == list(TABLES[name])


def with_nulls(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """A table with the columns that it lacks, in this version's order."""
    lacking = {column: dtype for column, dtype in TABLES[name].items() if column not in frame.columns}
    nulls = [pl.lit(None, dtype=dtype).alias(column) for column, dtype in lacking.items()]
    return frame.with_columns(nulls).select(*TABLES[name])
