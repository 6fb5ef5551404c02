"""The part of the study schema that says which figures are drawn under the study's own names.

Invariant: data only; that a metric exists is looked after by whoever knows the metrics.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from raidlab.study.words import Depth, Line, Name, Prose, Table


class FigureLine(Table):
    """A line or bar beside those of the figure's arrays."""

    array: Name
    """Which array."""
    workload: Name | None = None
    """Its workload; that of the panel when left out."""
    name: Name | None = None
    """How it is called; as the array when left out."""


class ForeignLines(Table):
    """Results of others, from files given with ``--foreign``, in the words of those files."""

    level: Line
    """Their level."""
    workload: Line
    """Their workload; a check says WARN where it is not that of the panel."""


class StudyFigure(Table):
    """A figure under the study's own name or number, with the claims tested on it."""

    number: Name
    """What the study calls it: a number, or a heading; used once."""
    title: Line
    """What it shows."""
    draw: Literal["curves", "bars"]
    """Curves over a load, or bars at one load."""
    metrics: Annotated[list[Line], Field(min_length=1, max_length=4)]
    """What is drawn: of curves one metric, of bars parts that are stacked."""
    workloads: Annotated[list[Name], Field(min_length=1)]
    """A panel each."""
    arrays: list[Name]
    """Its lines or bars, in this order."""
    also: list[FigureLine] = []
    """Further ones, such as the same array under another workload."""
    x: Literal["depth", "depth_per_volume", "rate_per_s"] = "depth"
    """Curves: over the outstanding requests of all volumes together, of each volume alone (which flatters arrays of
    several volumes), or over the rate offered."""
    at: Literal["maximum", "heaviest"] | Depth = "maximum"
    """Bars: at the load of most throughput, at the heaviest, or at a depth."""
    foreign: ForeignLines | None = None
    """Results of others drawn beside."""
    claims: list[Line] = []
    """Ids of published claims that are tested on it."""
    note: Prose = ""
    """A remark for the reader."""
