"""Validation traces: what a real disk took for requests given to it one at a time.

Each line: ``R|W Hit|Miss|Doub|Trip LBN sectors service_us gap_us``; the gap lies between a request's completion and the
next request.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from raidlab.errors import InputError, Problem

_FIELDS = 6
# What the traced driver saw of the buffer; `Doub` and `Trip` are writes that left the bus twice or thrice.
BUFFER_WORDS = ("Hit", "Miss", "Doub", "Trip")


@dataclass(frozen=True)
class Trace:
    """The requests of a trace, a column each.

    Attributes
    ----------
    is_write : numpy.ndarray of uint8
    buffer : tuple of str
        ``Hit``, ``Miss``, ``Doub`` or ``Trip``.
    lba, sectors : numpy.ndarray of uint64
        In sectors of 512 bytes.
    measured_ns, gap_ns : numpy.ndarray of uint64
    line : numpy.ndarray of uint64
        Where each stands in the file, from 1.
    """

    is_write: npt.NDArray[np.uint8]
    buffer: tuple[str, ...]
    lba: npt.NDArray[np.uint64]
    sectors: npt.NDArray[np.uint64]
    measured_ns: npt.NDArray[np.uint64]
    gap_ns: npt.NDArray[np.uint64]
    line: npt.NDArray[np.uint64]


def read_trace(file: Path) -> Trace:
    """Read a validation trace.

    Raises
    ------
    InputError
        With file and line, for a line that is no request.
    """
    try:
        text = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError.one("--trace", f"cannot be read: {reason}", value=str(file)) from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    rows = [_row(file, number, line) for number, line in lines]
    if not rows:
        raise InputError.one("--trace", "holds no request", value=str(file))
    writes, words, lba, sectors, measured, gap = zip(*rows, strict=True)
    return Trace(
        np.array(writes, dtype=np.uint8),
        words,
        np.array(lba, dtype=np.uint64),
        np.array(sectors, dtype=np.uint64),
        np.array(measured, dtype=np.uint64),
        np.array(gap, dtype=np.uint64),
        np.array([number for number, _ in lines], dtype=np.uint64),
    )


def _row(file: Path, number: int, line: str) -> tuple[bool, str, int, int, int, int]:
    words = line.split()
    try:
        direction, buffer, lba, sectors, service_us, gap_us = words
        service_ns, gap_ns = (round(float(text) * 1000) for text in (service_us, gap_us))
        row = (direction == "W", buffer, int(lba), int(sectors), service_ns, gap_ns)
        fits = direction in ("R", "W") and buffer in BUFFER_WORDS and row[3] > 0
        fits = fits and min(row[2], service_ns, gap_ns) >= 0
    except (ValueError, OverflowError):
        fits = False
    if not fits:
        accepted = f"R|W {'|'.join(BUFFER_WORDS)} LBN sectors service_us gap_us"
        problem = Problem(str(file), "", "is no request", value=line.strip(), accepted=accepted, line=number)
        raise InputError([problem])
    return row
