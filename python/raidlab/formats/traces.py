"""Traces of requests recorded elsewhere: what a file holds, and the same in another format.

The engine reads and writes them (its module `load::trace` has the formats, each with its reference), in one pass and in
memory that does not grow with their length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from raidlab.errors import InputError, Problem

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class VolumeFacts:
    """What a trace asks of one of its volumes.

    Attributes
    ----------
    name : str
        As the trace calls it.
    reads, read_bytes, writes, write_bytes : int
    end_bytes : int
        One past the last byte touched: what a volume must have at least.
    sequential : int
        Requests that begin where the one before them ended.
    working_set_bytes : int
        Of all pages of 4 KiB that were touched.
    """

    name: str
    reads: int
    read_bytes: int
    writes: int
    write_bytes: int
    end_bytes: int
    sequential: int
    working_set_bytes: int

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes


@dataclass(frozen=True)
class TraceFacts:
    """What a trace holds.

    Attributes
    ----------
    file, format : str
    is_guessed : bool
        Whether the format was told by the first lines.
    volumes : tuple of VolumeFacts
        In order of first appearance.
    told : dict
        The engine's words for the rest: see `docs/internals/cell-contract.md`.
    """

    file: str
    format: str
    is_guessed: bool
    volumes: tuple[VolumeFacts, ...]
    told: dict[str, Any]

    @property
    def requests(self) -> int:
        """How many there are."""
        return int(self.told["requests"])

    @property
    def read_share(self) -> float:
        """The share of requests that read."""
        return sum(volume.reads for volume in self.volumes) / max(self.requests, 1)

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return sum(volume.read_bytes + volume.write_bytes for volume in self.volumes)

    @property
    def span_s(self) -> float:
        """From the first time stamp to the last."""
        return int(self.told["span_ns"]) / 1e9

    @property
    def rate_per_s(self) -> float | None:
        """Mean rate; None where all happens at once."""
        return self.requests / self.span_s if self.span_s else None

    @property
    def sequential_share(self) -> float:
        """The share of requests that begin where the one before them on their volume ended."""
        return sum(volume.sequential for volume in self.volumes) / max(self.requests, 1)

    @property
    def working_set_bytes(self) -> int:
        """Of all volumes together."""
        return sum(volume.working_set_bytes for volume in self.volumes)

    @cached_property
    def size_percentiles(self) -> dict[int, int] | None:
        """Sizes that so many percent of requests do not exceed; None where there were too many sizes to list."""
        sizes, counts = self.told["sizes"]["bytes"], self.told["sizes"]["requests"]
        if self.told["other_sizes"] or not len(sizes):
            return None
        below = np.cumsum(counts)
        found = np.searchsorted(below, [percent / 100 * below[-1] for percent in PERCENTILES])
        return {percent: int(sizes[at]) for percent, at in zip(PERCENTILES, found, strict=True)}

    def as_json(self) -> dict[str, Any]:
        """All of it, for a program."""
        sizes = {key: [int(value) for value in column] for key, column in self.told["sizes"].items()}
        return {
            "file": self.file,
            "is_guessed": self.is_guessed,
            **self.told,
            "sizes": sizes,
            "read_share": self.read_share,
            "rate_per_s": self.rate_per_s,
            "working_set_bytes": self.working_set_bytes,
        }


def trace_facts(file: Path, format_name: str | None = None) -> TraceFacts:
    """Read a trace to its end and say what it holds.

    Raises
    ------
    InputError
        With file and line, for a line that is no request.
    """
    from raidlab import _core

    try:
        told = dict(_core.trace_summary(str(file), format_name))
    except _core.CellError as error:
        raise _input_error(error) from None
    volumes = tuple(VolumeFacts(**volume) for volume in told["volumes"])
    return TraceFacts(str(file), str(told["format"]), format_name is None, volumes, told)


def convert_trace(file: Path, to: Path, to_format: str, format_name: str | None = None) -> int:
    """Write a trace in another format to a new file; answers with how many requests it has.

    Raises
    ------
    InputError
        For a line that is no request, a request that the format cannot say, a file that is there already.
    """
    from raidlab import _core

    try:
        return _core.trace_convert(str(file), format_name, str(to), to_format)
    except _core.CellError as error:
        raise _input_error(error) from None


def _input_error(error: Any) -> InputError:
    """The engine's sentence, which names file and line itself; only a wrong word is an option's fault."""
    message, _, accepted = str(error.message).partition("; accepted: ")
    where = "--format" if error.key == "format" else ""
    return InputError([Problem("", where, message, accepted=accepted or None)])
