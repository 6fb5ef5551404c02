"""A device from a trace recorded of it, one request at a time: a table of times by operation, place, distance and size.

The first half is fitted, and the second predicted by replaying it with several seeds: there is the median of
their demerits, and the means of groups over all replays, for a demerit over all says nothing of a device whose reads
are too slow by as much as its writes are too fast.

Invariants:

- Requests that overlap are refused: what one waited for another is not what the device took for it.
- Where a request lies is told as the engine tells it (`crates/device/src/table.rs`).
- A request takes longer by as much for each sector that it moves, at any distance: so all tell of the least size and of
  the greatest, and the table is linear between.
"""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from raidlab import _core
from raidlab.errors import InputError
from raidlab.formats.traces import input_error
from raidlab.histogram import Histogram
from raidlab.measure.fit.table import ALIKE_SHARE, PROBABILITIES, quantiles_us
from raidlab.reading import Plain
from raidlab.stats.demerit import demerit
from raidlab.study.device import MOST_FIT_ERROR_PERCENT

SECTOR_BYTES = 512
# The engine looks at so many of the operations before one.
_REMEMBERED = 32
# Fewer have no tail.
_LEAST_IN_ROW = 100
# A request that moved nothing would have taken something yet.
_LEAST_NS = 1000.0
# Distances are told apart as far as these shares of the device, each four times the one before.
_DISTANCE_SHARES = tuple(4.0**-power for power in range(6, 0, -1))
# An odd number, for one of them is in the middle.
_REPLAYS = 21
# Fewer are no group, and no half.
_LEAST_IN_GROUP, _LEAST_REQUESTS = 50, 1000
Times = npt.NDArray[np.float64]
Counts = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class TracedRequests:
    """Requests of one device, each issued when the one before it was complete."""

    is_write: npt.NDArray[np.uint8]
    lba: Counts
    sectors: Counts
    took_ns: Counts
    gap_ns: Counts
    place: npt.NDArray[np.str_]
    far: Counts
    """Sectors from where the request before it ended."""

    def part(self, of: slice) -> TracedRequests:
        """Some of them, one after another."""
        return TracedRequests(*(getattr(self, one.name)[of] for one in fields(self)))


@dataclass(frozen=True)
class TraceGroup:
    """Requests of one kind in the half that was held out."""

    name: str
    requests: int
    measured_ms: float
    modelled_ms: float

    @property
    def error_percent(self) -> float:
        """How much longer they take in the model, on average."""
        return 100 * (self.modelled_ms / self.measured_ms - 1)


@dataclass(frozen=True)
class TraceFit:
    """A device as a trace tells of it, and what it makes of the half that it has not seen."""

    document: dict[str, Plain]
    requests: int
    demerit_percent: float
    groups: tuple[TraceGroup, ...]

    @property
    def error_percent(self) -> float:
        """The worst of all groups."""
        return max(abs(one.error_percent) for one in self.groups)


def fit_trace(file: str, name: str = "", seed: int = 1) -> TraceFit:
    """Fit the first half of a trace, and predict the second."""
    all_of = traced_requests(file)
    half = len(all_of.lba) // 2
    first, second = all_of.part(slice(0, half)), all_of.part(slice(half, None))
    sectors = int((all_of.lba + all_of.sectors).max())
    device: dict[str, Plain] = {
        "kind": "empirical",
        "name": name or Path(file).stem,
        "description": f"Fitted from the first half of the trace {Path(file).name}.",
        "capacity_bytes": sectors * SECTOR_BYTES,
        "sector_bytes": SECTOR_BYTES,
        "servers": 1,
        "probabilities": list(PROBABILITIES),
        "measured": [dict(row) for row in _rows(first, sectors)],
    }
    measured_ms = second.took_ns / 1e6
    replays = [_replayed(device, second, seed * _REPLAYS + turn) for turn in range(_REPLAYS)]
    apart = median(100 * demerit(measured_ms, replay) / float(measured_ms.mean()) for replay in replays)
    groups = tuple(_groups(second, measured_ms, np.mean(replays, axis=0)))
    found = TraceFit(device, len(all_of.lba), apart, groups)
    error = found.error_percent
    device["provenance"] = {
        "capacity_bytes": {"status": "assumed", "why": "as far as the trace reaches; the device may hold more"},
        "sector_bytes": {"status": "assumed", "why": "that of the trace's addresses"},
        "servers": {"status": "assumed", "why": "requests were recorded one at a time"},
        "probabilities": {"status": "assumed", "why": "a grid that is finer in the tail"},
        "measured": {
            "status": "fitted",
            "why": f"{half} requests; {len(second.lba)} others predicted with a demerit of {apart:.1f} %, means of "
            f"{len(groups)} groups within {error:.1f} %",
        },
    }
    device["fit"] = {
        "error_percent": round(error, 2),
        "validation": "failed" if error > MOST_FIT_ERROR_PERCENT else "passed",
        "demerit_percent": round(apart, 2),
        "requests": half,
        "seed": seed,
    }
    return found


def traced_requests(file: str) -> TracedRequests:
    """Read a trace; `InputError` where it does not tell what a device takes for a request."""
    try:
        columns = _core.trace_columns(file)
    except _core.CellError as error:
        raise input_error(error) from None
    if "response_ns" not in columns:
        message = "does not say how long requests took"
        raise InputError.one("--trace", message, value=f"'{file}'", accepted="a trace with completions")
    if len(columns["volumes"]) > 1:
        message = f"is of {len(columns['volumes'])} volumes"
        raise InputError.one("--trace", message, value=f"'{file}'", accepted="a trace of one device")
    issued, took = np.asarray(columns["time_ns"]), np.asarray(columns["response_ns"])
    if len(issued) < _LEAST_REQUESTS:
        message = f"holds {len(issued)} requests"
        raise InputError.one("--trace", message, value=f"'{file}'", accepted=f"at least {_LEAST_REQUESTS}")
    gaps = issued[1:].astype(np.int64) - (issued[:-1] + took[:-1]).astype(np.int64)
    if (early := np.flatnonzero(gaps < 0)).size:
        message = f"line {int(columns['line'][early[0] + 1])} begins before the request before it is complete"
        raise InputError.one("--trace", message, value=f"'{file}'", accepted="one request at a time")
    writes = np.asarray(columns["is_write"]).astype(np.uint8)
    lba = np.asarray(columns["offset_bytes"]) // SECTOR_BYTES
    sectors = np.asarray(columns["bytes"]) // SECTOR_BYTES
    gap_ns = np.append(gaps, 0).astype(np.uint64)
    # What comes first is as far from nothing as can be, as the engine has it.
    far = np.append(lba.max() + 1, np.abs(np.diff(lba.astype(np.int64)) - sectors[:-1].astype(np.int64)))
    return TracedRequests(writes, lba, sectors, took, gap_ns, _places(writes, lba, sectors), far.astype(np.uint64))


def _places(writes: npt.NDArray[np.uint8], lba: Counts, sectors: Counts) -> npt.NDArray[np.str_]:
    """Where each lies: as the latest of the last operations has it that it goes on from, or rewrites."""
    last: deque[tuple[int, int, int]] = deque(maxlen=_REMEMBERED)
    found = []
    for write, start, count in zip(writes.tolist(), lba.tolist(), sectors.tolist(), strict=True):
        place = "random"
        for began, end, wrote in reversed(last):
            if wrote == write and end == start:
                place = "sequential"
                break
            if write and not wrote and began == start:
                place = "rewrite"
                break
        found.append(place)
        last.append((start, start + count, write))
    return np.array(found)


def _rows(of: TracedRequests, capacity: int) -> list[dict[str, Plain]]:
    found = []
    for write, op in ((0, "read"), (1, "write")):
        for place in ("random", "sequential", "rewrite"):
            chosen = np.flatnonzero((of.is_write == write) & (of.place == place))
            if len(chosen) >= _LEAST_IN_ROW:
                parts = _by_distance(of, chosen, capacity) if place == "random" else [({}, chosen)]
                slope = _ns_per_sector(of, [part for _, part in parts])
                least, most = int(of.sectors[chosen].min()), int(of.sectors[chosen].max())
                found += [
                    {"op": op, "place": place} | within | _times(of, part, size, slope)
                    for within, part in parts
                    for size in ((least, most) if slope and least < most else (most,))
                ]
    return found


def _by_distance(
    of: TracedRequests, chosen: npt.NDArray[np.intp], capacity: int
) -> list[tuple[dict[str, Plain], npt.NDArray[np.intp]]]:
    """Requests of similar distances together, with how far they reach.

    Too few go with those that are farther, and so do those that take what those take.
    """
    classes: list[tuple[int | None, npt.NDArray[np.intp]]] = []
    left = chosen
    for within in (int(share * capacity) for share in _DISTANCE_SHARES):
        is_near = of.far[left] <= within
        if is_near.sum() >= _LEAST_IN_ROW and (~is_near).sum() >= _LEAST_IN_ROW:
            classes.append((within, left[is_near]))
            left = left[~is_near]
    merged: list[tuple[int | None, npt.NDArray[np.intp]]] = []
    classes.append((None, left))
    for reach, part in classes:
        if merged and abs(of.took_ns[merged[-1][1]].mean() / of.took_ns[part].mean() - 1) < ALIKE_SHARE:
            merged[-1] = reach, np.concatenate([merged[-1][1], part])
        else:
            merged.append((reach, part))
    return [({} if reach is None else {"within_bytes": reach * SECTOR_BYTES}, part) for reach, part in merged]


def _ns_per_sector(of: TracedRequests, parts: list[npt.NDArray[np.intp]]) -> float:
    """How much longer a request takes for each sector, among requests of similar distances, by least squares.

    None is longer where that may be chance: within three standard errors of nothing.
    """
    sectors, took = (
        np.concatenate([values[part] - values[part].mean() for part in parts])
        for values in (of.sectors.astype(np.float64), of.took_ns.astype(np.float64))
    )
    spread = float(np.sum(sectors**2))
    if not spread:
        return 0.0
    slope = float(np.sum(sectors * took)) / spread
    error = math.sqrt(float(np.mean((took - slope * sectors) ** 2)) / spread)
    return slope if slope > 3 * error else 0.0


def _times(of: TracedRequests, chosen: npt.NDArray[np.intp], sectors: int, slope: float) -> dict[str, Plain]:
    """What requests would have taken, had each moved so many sectors: all of them tell of each size."""
    took_ns = of.took_ns[chosen] + slope * (sectors - of.sectors[chosen].astype(np.float64))
    values, counts = np.unique(np.maximum(took_ns, _LEAST_NS).astype(np.uint64), return_counts=True)
    us = quantiles_us(Histogram(values, counts.astype(np.uint64)), float(np.maximum(took_ns, _LEAST_NS).mean()))
    return {"bytes": sectors * SECTOR_BYTES, "depth": 1, "us": us}


def _replayed(device: dict[str, Plain], of: TracedRequests, seed: int) -> Times:
    done = _core.device_replay(json.dumps(device), of.is_write, of.lba, of.sectors, of.gap_ns, seed)
    found: Times = np.asarray(done["response_ns"]) / 1e6
    return found


def _groups(of: TracedRequests, measured_ms: Times, modelled_ms: Times) -> list[TraceGroup]:
    """Reads and writes, near and far from where the last request ended, short and long, by place."""
    is_near, is_short = of.far <= np.median(of.far), of.sectors <= np.median(of.sectors)
    kinds = {"near": is_near, "far": ~is_near, "short": is_short, "long": ~is_short}
    found = []
    for write, op in ((0, "reads"), (1, "writes")):
        is_op = of.is_write == write
        kinds |= {op: is_op} | {f"{place} {op}": is_op & (of.place == place) for place in np.unique(of.place)}
    for name, chosen in kinds.items():
        if chosen.sum() >= _LEAST_IN_GROUP:
            means = (float(times[chosen].mean()) for times in (measured_ms, modelled_ms))
            found.append(TraceGroup(name, int(chosen.sum()), *means))
    return found
