"""From the engine's answers to tidy tables: one row a cell, a histogram bucket, a member, a station.

Invariants:

- The columns and their order are fixed here, whatever the engine's answers contain: a result file of one version has
  one schema.
- Rows are in canonical order (target, array, workload, load, repeat as the study lists them), never in the order in
  which cells happened to finish.
- Counts and times stay integers; nothing is averaged here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import numpy as np
import polars as pl

from raidlab.histogram import Column
from raidlab.results.answer import (
    CellRecord,
    HoldRecord,
    MachineUsage,
    RebuildAnswer,
    Row,
    ScrubAnswer,
    StreamAnswer,
    times_of,
)

SCHEMA_VERSION = 12
# How many rows of a table are written, and of a long one read, at once.
ROWS_A_GROUP = 1 << 18
# The columns of a table, in order, and their types.
Columns = dict[str, type[pl.DataType]]
OPERATIONS: tuple[Literal["all"], Literal["read"], Literal["write"]] = ("all", "read", "write")
TIMES: tuple[Literal["response"], Literal["service"]] = ("response", "service")
# What a cell cost this machine: processor time of raidlab's threads, their switches, what the kernel's counters say
# of the devices below.
ACCOUNTS = {
    "cpu_user_ns": "user_ns",
    "cpu_system_ns": "system_ns",
    "voluntary_switches": "voluntary_switches",
    "involuntary_switches": "involuntary_switches",
}
# What the whole machine used meanwhile, raidlab and other programs included: its processors' time, that of the kernel's
# own threads, the energy that its processors count.
MACHINE = ("machine_busy_ns", "kernel_threads_ns", "energy_uj")
# Means a request: host work, accesses to members, and the time of all members it touched, added up.
STAGES = ("host_cpu_ns", "accesses", "queue_ns", "overhead_ns", "disconnect_ns", "transfer_ns", "paired_ns")
# What flash drives wrote to their flash; null for other members.
FLASH_COUNTS = ("flash_host_bytes", "flash_moved_bytes", "flash_padded_bytes", "flash_erased_blocks")
# How long the busiest part of its kind within a flash drive worked; null for other members.
FLASH_BUSY = ("flash_die_busy_ns", "flash_channel_busy_ns", "flash_link_busy_ns")
MEMBER_COUNTS = (
    "reads",
    "writes",
    "read_bytes",
    "write_bytes",
    "busy_ns",
    "seek_ns",
    "rotation_ns",
    "transfer_ns",
    "overhead_ns",
    "paired_ns",
    "wait_ns",
    *FLASH_COUNTS,
    "servers",
    *FLASH_BUSY,
)

SNAPSHOTS: tuple[Literal["time_ns"], Literal["requests"], Literal["bytes"], Literal["response_sum_ns"]] = (
    "time_ns",
    "requests",
    "bytes",
    "response_sum_ns",
)
FILE_SIZES: tuple[Literal["size_bytes"], Literal["files"], Literal["time_ns"]] = ("size_bytes", "files", "time_ns")
DEVICE_COUNTS = ("read_bytes", "write_bytes", "asked_read_bytes", "asked_write_bytes")

CELL_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "target": pl.String,
    "array": pl.String,
    "group": pl.String,
    "workload": pl.String,
    "load": pl.String,
    "depth": pl.UInt32,
    "rate_per_s": pl.Float64,
    "repeat": pl.UInt32,
    "purpose": pl.String,
    "seed": pl.UInt64,
    "order": pl.UInt32,
    "members": pl.UInt32,
    "user_bytes": pl.UInt64,
    "member_bytes": pl.UInt64,
    "storage_efficiency": pl.Float64,
    "elapsed_ns": pl.UInt64,
    "tasks": pl.UInt64,
    **{f"{operation}_{count}": pl.UInt64 for operation in OPERATIONS for count in ("requests", "bytes")},
    **{f"{operation}_{time}_mean_ns": pl.Float64 for operation in OPERATIONS for time in TIMES},
    "depth_mean": pl.Float64,
    "hold_depth_mean": pl.Float64,
    "hold_depth_final": pl.Float64,
    "hold_share_within_target": pl.Float64,
    **{f"stage_{stage}": pl.Float64 for stage in STAGES},
    **dict.fromkeys((*ACCOUNTS, *MACHINE), pl.UInt64),
    "interrupted": pl.Boolean,
}
HISTOGRAM_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "operation": pl.String,
    "time": pl.String,
    "value_ns": pl.UInt64,
    "count": pl.UInt64,
}
MEMBER_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "leaf": pl.UInt32,
    **dict.fromkeys(MEMBER_COUNTS, pl.UInt64),
}
DEVICE_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "device": pl.String,
    **dict.fromkeys(DEVICE_COUNTS, pl.UInt64),
}
KERNEL_THREAD_COLUMNS: Columns = {"cell": pl.UInt32, "thread": pl.String, "cpu_ns": pl.UInt64}
STATION_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "station": pl.String,
    "visits": pl.UInt64,
    "busy_ns": pl.UInt64,
    "wait_ns": pl.UInt64,
    "servers": pl.UInt32,
}
SNAPSHOT_COLUMNS: Columns = {"cell": pl.UInt32, **dict.fromkeys(SNAPSHOTS, pl.UInt64)}
SNAPSHOT_HISTOGRAM_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "time_ns": pl.UInt64,
    "value_ns": pl.UInt64,
    "count": pl.UInt64,
}
HOLD_COLUMNS: Columns = {
    "target": pl.String,
    "array": pl.String,
    "group": pl.String,
    "workload": pl.String,
    "repeat": pl.UInt32,
    "percentile": pl.Float64,
    "target_ns": pl.UInt64,
    "method": pl.String,
    "depth": pl.Float64,
    "throughput_bytes_per_s": pl.Float64,
    "throughput_low_bytes_per_s": pl.Float64,
    "throughput_high_bytes_per_s": pl.Float64,
    "bound": pl.String,
}
ACCESS_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "access": pl.String,
    "count": pl.UInt64,
    "bytes": pl.UInt64,
    "found": pl.UInt64,
    "mean_ns": pl.Float64,
}
FILE_SIZE_COLUMNS: Columns = {"cell": pl.UInt32, **dict.fromkeys(FILE_SIZES, pl.UInt64)}
STREAM_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "number": pl.UInt32,
    "stream": pl.String,
    "source": pl.String,
    "sink": pl.String,
    "bytes": pl.UInt64,
    "elapsed_ns": pl.UInt64,
    "sync_ns": pl.UInt64,
    "source_busy_ns": pl.UInt64,
    "sink_busy_ns": pl.UInt64,
    "source_stops": pl.UInt64,
    "sink_stops": pl.UInt64,
    "bound_by": pl.String,
}
RECORD_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "file": pl.String,
    "requests": pl.UInt64,
    "lost": pl.UInt64,
    "bytes": pl.UInt64,
    "sha256": pl.String,
}
REBUILD_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "leaf": pl.UInt32,
    "failed_ns": pl.UInt64,
    "begun_ns": pl.UInt64,
    "whole_ns": pl.UInt64,
    "rebuilt_bytes": pl.UInt64,
    "member_bytes": pl.UInt64,
    "stopped_ns": pl.UInt64,
}
SCRUB_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "kind": pl.String,
    "begun_ns": pl.UInt64,
    "over_ns": pl.UInt64,
    "done_bytes": pl.UInt64,
    "all_bytes": pl.UInt64,
    "mismatches": pl.UInt64,
    "mended": pl.UInt64,
    "left_out_bytes": pl.UInt64,
    "bare_bytes": pl.UInt64,
}
# The rows of single requests, which are no table of the run folder but files that its table `records` lists.
REQUEST_COLUMNS: Columns = {
    "arrival_ns": pl.UInt64,
    "start_ns": pl.UInt64,
    "end_ns": pl.UInt64,
    "volume": pl.UInt32,
    "operation": pl.String,
    "offset_bytes": pl.UInt64,
    "bytes": pl.UInt64,
    "failed": pl.Boolean,
    "measured": pl.Boolean,
}
CHECK_COLUMNS: Columns = {
    "cell": pl.UInt32,
    "check": pl.String,
    "verdict": pl.String,
    "evidence": pl.String,
    "mend": pl.String,
}

TABLES: dict[str, Columns] = {
    "cells": CELL_COLUMNS,
    "histograms": HISTOGRAM_COLUMNS,
    "members": MEMBER_COLUMNS,
    "devices": DEVICE_COLUMNS,
    "kernel_threads": KERNEL_THREAD_COLUMNS,
    "stations": STATION_COLUMNS,
    "snapshots": SNAPSHOT_COLUMNS,
    "snapshot_histograms": SNAPSHOT_HISTOGRAM_COLUMNS,
    "holds": HOLD_COLUMNS,
    "accesses": ACCESS_COLUMNS,
    "file_sizes": FILE_SIZE_COLUMNS,
    "streams": STREAM_COLUMNS,
    "records": RECORD_COLUMNS,
    "rebuilds": REBUILD_COLUMNS,
    "scrubs": SCRUB_COLUMNS,
    "checks": CHECK_COLUMNS,
}

Rows = dict[str, list[Row]]


def rows_of_cell(cell: int, record: CellRecord) -> Rows:
    """The rows of every table that one recorded cell gives, by its number in this run."""
    identity, answer = record["identity"], record["answer"]
    hold: Mapping[str, object] = answer.get("hold") or {}
    stages: Mapping[str, object] = answer.get("stages") or {}
    spent = answer.get("accounting")
    accounting: Mapping[str, object] = spent or {}
    machine = spent.get("machine") if spent else None
    threads = (machine["kernel_threads"] or []) if machine else []
    row: Row = {
        "cell": cell,
        **identity,
        "elapsed_ns": answer["elapsed_ns"],
        "tasks": answer.get("tasks"),
        "depth_mean": answer.get("depth"),
        "hold_depth_mean": hold.get("depth_mean"),
        "hold_depth_final": hold.get("depth_final"),
        "hold_share_within_target": hold.get("share_within_target"),
        **{column: accounting.get(key) for column, key in ACCOUNTS.items()},
        **_machine(machine),
        "interrupted": bool(answer.get("interrupted", False)),
    }
    for operation in OPERATIONS:
        part = answer[operation]
        row[f"{operation}_requests"], row[f"{operation}_bytes"] = part["requests"], part["bytes"]
        row |= {f"{operation}_{time}_mean_ns": part.get(f"{time}_mean_ns") for time in TIMES}
    for stage in STAGES:
        row[f"stage_{stage}"] = stages.get(stage)
    snapshots, files = answer.get("snapshots"), answer.get("files")
    seconds = [] if snapshots is None else zip(*(snapshots[key] for key in SNAPSHOTS), strict=True)
    sizes = [] if files is None else zip(*(files["sizes"][key] for key in FILE_SIZES), strict=True)
    devices = spent.get("devices", []) if spent else []
    # What a table has no column for is left out when its frame is made.
    return {
        "cells": [row],
        "members": [{"cell": cell, **member} for member in answer.get("members", [])],
        "devices": [{"cell": cell, "device": device["name"], **device} for device in devices],
        "kernel_threads": [{"cell": cell, "thread": one["name"], **one} for one in threads],
        "stations": [{"cell": cell, "station": one["name"], **one} for one in answer.get("stations") or []],
        "snapshots": [{"cell": cell, **dict(zip(SNAPSHOTS, second, strict=True))} for second in seconds],
        "accesses": [
            {"cell": cell, "access": access["name"], **access} for access in (files["accesses"] if files else [])
        ],
        "file_sizes": [{"cell": cell, **dict(zip(FILE_SIZES, size, strict=True))} for size in sizes],
        "streams": [_row_of_stream(cell, number, stream) for number, stream in enumerate(answer.get("streams") or [])],
        "records": [{"cell": cell, **answer["records"]}] if "records" in answer else [],
        "rebuilds": [_row_of_rebuild(cell, one) for one in answer.get("rebuilds") or []],
        "scrubs": [_row_of_scrub(cell, one) for one in answer.get("scrubs") or []],
        "checks": [{"cell": cell, "check": check["name"], **check} for check in answer.get("checks") or []],
    }


def _machine(machine: MachineUsage | None) -> Row:
    """What the machine used; null where nobody tells, and never 0 for that."""
    if machine is None:
        return dict.fromkeys(MACHINE)
    threads = machine["kernel_threads"]
    of_threads = None if threads is None else sum(thread["cpu_ns"] for thread in threads)
    return dict(zip(MACHINE, (machine["busy_ns"], of_threads, machine["energy_uj"]), strict=True))


def _row_of_stream(cell: int, number: int, stream: StreamAnswer) -> Row:
    """What one stream of a cell did."""
    source, sink = stream["source"], stream["sink"]
    return {
        "cell": cell,
        "number": number,
        **stream,
        "stream": stream["name"],
        "source": stream["from"],
        "sink": stream["to"],
        "source_busy_ns": source["busy_ns"],
        "source_stops": source["stops"],
        "sink_busy_ns": sink["busy_ns"],
        "sink_stops": sink["stops"],
    }


def _row_of_rebuild(cell: int, rebuild: RebuildAnswer) -> Row:
    """What became of the place of one member."""
    begun_ns = rebuild["begun_ns"]
    whole_ns = begun_ns + rebuild["elapsed_ns"] if begun_ns is not None and rebuild["is_over"] else None
    return {"cell": cell, **rebuild, "whole_ns": whole_ns}


def _row_of_scrub(cell: int, scrub: ScrubAnswer) -> Row:
    """What an array found when it went over all it holds."""
    return {"cell": cell, **scrub, "over_ns": scrub["begun_ns"] + scrub["elapsed_ns"] if scrub["is_over"] else None}


def frames(cells: Iterable[CellRecord], holds: Iterable[HoldRecord]) -> dict[str, pl.DataFrame]:
    """Every table of a run from its recorded cells, in canonical order, and its holds."""
    parts = list(frames_by_part(cells, holds))
    # In one piece: what reads a table goes over it again and again.
    return {name: pl.concat([part[name] for part in parts], rechunk=True) for name in TABLES}


def frames_by_part(cells: Iterable[CellRecord], holds: Iterable[HoldRecord]) -> Iterator[dict[str, pl.DataFrame]]:
    """The tables of a run part by part, one below the other; the cells come in canonical order, and only once.

    Rows take many times as much memory as columns: no more of them are there at once than some cells have.
    """
    numbered = enumerate(cells)
    while part := list(itertools.islice(numbered, _CELLS_AT_ONCE)):
        yield _tables_of(part, [])
    held: list[Row] = [{**record["row"]} for record in sorted(holds, key=lambda record: record["rank"])]
    yield _tables_of([], held)


_CELLS_AT_ONCE = 250


def _tables_of(numbered: list[tuple[int, CellRecord]], holds: list[Row]) -> dict[str, pl.DataFrame]:
    rows: Rows = {name: [] for name in TABLES} | {"holds": holds}
    for number, record in numbered:
        for name, found in rows_of_cell(number, record).items():
            rows[name] += found
    by_columns = {"histograms": _histograms(numbered), "snapshot_histograms": _snapshot_histograms(numbered)}
    return {name: pl.DataFrame(rows[name], schema=TABLES[name], strict=True) for name in TABLES} | by_columns


def _histograms(numbered: list[tuple[int, CellRecord]]) -> pl.DataFrame:
    """The buckets of reads and of writes; what all requests have is these added up, and is not kept twice.

    By columns: most rows of most runs are these, and one by one they would take half the time of finishing a run.
    """
    owners: list[tuple[int, str, str, int]] = []
    values: list[int] = []
    counts: list[int] = []
    for number, record in numbered:
        answer = record["answer"]
        found = [(way, time, times_of(answer[way], time)) for way in ("read", "write") for time in TIMES]
        for operation, time, columns in (*found, ("all", "gap", answer.get("gaps"))):
            if not columns:
                continue
            own, times = _plain(columns["value_ns"]), _plain(columns["count"])
            if len(own) != len(times):
                raise ValueError(f"a histogram has {len(own)} values and {len(times)} counts")
            # A cell that was watched for gaps has a row, though none was seen.
            if not own and time == "gap":
                own, times = [0], [0]
            if own:
                owners.append((number, operation, time, len(own)))
                values += own
                counts += times
    whose = pl.DataFrame(owners, schema={**_OWNERS, "rows": pl.UInt32}, orient="row")
    repeated = whose.select(pl.col(name).repeat_by("rows").explode() for name in _OWNERS)
    columns_of = {"value_ns": values, "count": counts}
    return repeated.with_columns(pl.Series(name, of, dtype=pl.UInt64) for name, of in columns_of.items())


_OWNERS: Columns = {"cell": pl.UInt32, "operation": pl.String, "time": pl.String}


def _plain(column: Column) -> list[int]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _snapshot_histograms(numbered: list[tuple[int, CellRecord]]) -> pl.DataFrame:
    """The histogram of each second, by columns: a long run has too many of these rows to handle them one by one."""
    parts = [pl.DataFrame(schema=SNAPSHOT_HISTOGRAM_COLUMNS)]
    for number, record in numbered:
        snapshots = record["answer"].get("snapshots")
        found = None if snapshots is None else snapshots.get("histograms")
        if found is not None and len(found["time_ns"]):
            columns = {"time_ns": found["time_ns"], "value_ns": found["value_ns"], "count": found["count"]}
            part = pl.DataFrame({key: pl.Series(column, dtype=pl.UInt64) for key, column in columns.items()})
            parts.append(part.select(pl.lit(number, dtype=pl.UInt32).alias("cell"), *columns))
    return pl.concat(parts)
