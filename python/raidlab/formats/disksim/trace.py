"""Validation traces: what a real disk took for requests given to it one at a time.

They are read by the engine, as all traces are (format ``disksim_validation``). Here they become what a device is held
to: the gap between a request's completion and the next one, instead of the time at which it was issued.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from raidlab.errors import InputError
from raidlab.formats.traces import input_error

FORMAT = "disksim_validation"
SECTOR_BYTES = 512


@dataclass(frozen=True)
class TraceColumns:
    """The requests of a trace, a column each."""

    is_write: npt.NDArray[np.uint8]
    lba: npt.NDArray[np.uint64]
    sectors: npt.NDArray[np.uint64]
    """In sectors of 512 bytes, as the addresses are."""
    measured_ns: npt.NDArray[np.uint64]
    """What a request took."""
    gap_ns: npt.NDArray[np.uint64]
    """The time from its end to the next one; after the last one that is 0."""
    line: npt.NDArray[np.uint64]
    """Where each stands in the file, from 1."""


def read_trace(file: Path) -> TraceColumns:
    """Read a validation trace."""
    from raidlab import _core

    try:
        columns = _core.trace_columns(str(file), FORMAT)
    except _core.CellError as error:
        raise input_error(error) from None
    if not len(columns["line"]):
        raise InputError.one("--trace", "holds no request", value=str(file))
    issued, measured = columns["time_ns"], columns["response_ns"]
    gaps = np.zeros_like(issued)
    gaps[:-1] = issued[1:] - issued[:-1] - measured[:-1]
    return TraceColumns(
        columns["is_write"].astype(np.uint8),
        columns["offset_bytes"] // SECTOR_BYTES,
        columns["bytes"] // SECTOR_BYTES,
        measured,
        gaps,
        columns["line"],
    )
