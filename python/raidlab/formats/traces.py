"""Traces of requests recorded elsewhere: what a file holds, and the same in another format.

The engine reads and writes them (its module `load::trace` has the formats, each with its reference), in one pass and in
memory that does not grow with their length.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from raidlab.errors import InputError, Problem

if TYPE_CHECKING:
    from raidlab._core import CellError, TraceSummary

PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class TraceFacts:
    """What a trace holds."""

    file: str
    is_guessed: bool
    """Whether the format was told by the first lines."""
    summary: TraceSummary
    """In the engine's words, volumes in order of first appearance: see `docs/internals/cell-contract.md`."""

    @property
    def requests(self) -> int:
        """How many there are."""
        return self.summary["requests"]

    def total(self, *keys: Literal["reads", "read_bytes", "write_bytes", "sequential", "working_set_bytes"]) -> int:
        """The sum of these figures over all volumes."""
        return sum(volume[key] for volume in self.summary["volumes"] for key in keys)

    @property
    def read_share(self) -> float:
        """The share of requests that read."""
        return self.total("reads") / max(self.requests, 1)

    @property
    def span_s(self) -> float:
        """From the first time stamp to the last."""
        return self.summary["span_ns"] / 1e9

    @property
    def rate_per_s(self) -> float | None:
        """Mean rate; None where all happens at once."""
        return self.requests / self.span_s if self.span_s else None

    @cached_property
    def size_percentiles(self) -> dict[int, int] | None:
        """Sizes that so many percent of requests do not exceed; None where there were too many sizes to list."""
        sizes, counts = self.summary["sizes"]["bytes"], self.summary["sizes"]["requests"]
        if self.summary["other_sizes"] or not len(sizes):
            return None
        below = np.cumsum(counts)
        found = np.searchsorted(below, [percent / 100 * below[-1] for percent in PERCENTILES])
        return {percent: int(sizes[at]) for percent, at in zip(PERCENTILES, found, strict=True)}

    def as_json(self) -> str:
        """All of it, for a program."""
        document = {
            "file": self.file,
            "is_guessed": self.is_guessed,
            **self.summary,
            "sizes": {key: column.tolist() for key, column in self.summary["sizes"].items()},
            "read_share": self.read_share,
            "rate_per_s": self.rate_per_s,
            "working_set_bytes": self.total("working_set_bytes"),
        }
        return json.dumps(document, indent=2)


def trace_facts(file: Path, format_name: str | None = None) -> TraceFacts:
    """Read a trace to its end and say what it holds."""
    from raidlab import _core

    try:
        return TraceFacts(str(file), format_name is None, _core.trace_summary(str(file), format_name))
    except _core.CellError as error:
        raise input_error(error) from None


def convert_trace(file: Path, to: Path, to_format: str, format_name: str | None = None) -> int:
    """Write a trace in another format to a new file; answers with how many requests it has."""
    from raidlab import _core

    try:
        return _core.trace_convert(str(file), format_name, str(to), to_format)
    except _core.CellError as error:
        raise input_error(error) from None


def input_error(error: CellError) -> InputError:
    """The engine's sentence, which names file and line itself; only a wrong word is an option's fault."""
    message, _, accepted = error.message.partition("; accepted: ")
    where = "--format" if error.key == "format" else ""
    return InputError([Problem("", where, message, accepted=accepted or None)])
