"""The part of the study schema that says which figures are drawn under the study's own names.

Invariant: data only; that a metric exists is looked after by whoever knows the metrics.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

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


class FigureSeries(Table):
    """A bar of each array in a figure of shares of a reference."""

    name: Name
    """What it is called."""
    of: Literal["throughput", "access_count", "disk_time"] = "throughput"
    """Throughput per disk, or what a model says of it: accesses counted, or the time of disks that a request takes with
    one outstanding."""
    at: Literal["maximum", "heaviest", "target"] | Depth = "heaviest"
    """Throughput: at the load of most of it, at the heaviest, at the held response time, or at a depth."""
    workloads: list[Name] = []
    """Other workloads in the place of the figure's, one for each."""
    printed: list[Line] = []
    """Which printed figures are drawn over its bars."""


class FigureScan(Table):
    """A line over something in which its workloads or arrays differ."""

    name: Name
    """What it is called."""
    arrays: Annotated[list[Name], Field(min_length=1)]
    """Its arrays; more than one where they are what differs."""
    workloads: Annotated[list[Name], Field(min_length=1)]
    """Its workloads."""
    reference: Name | None = None
    """In percent of this array under the same workload."""
    like: Name | None = None
    """The array whose colour it has, as in figures of which that is a line; lines that are like one array differ in
    shape."""


class StudyFigure(Table):
    """A figure under the study's own name or number, with the claims tested on it."""

    number: Name
    """What the study calls it: a number, or a heading; used once."""
    title: Line
    """What it shows."""
    draw: Literal[
        "curves",
        "bars",
        "trade_off",
        "shares",
        "scan",
        "sizes",
        "amounts",
        "two_tools",
        "quantities",
        "total_time",
        "file_sizes",
        "layout",
        "printed",
        "winners",
    ]
    """Curves over a load; bars at one load; a trade-off of a metric against response time; shares of a reference array,
    several beside one another; a scan over what workloads or arrays differ in; lines over the size of requests, or over
    the amount moved; what ``live.second_tool`` measured beside raidlab; bars of a quantity, such as a slope;
    the total time of several tasks, one after another and at once (the first workload alone, and the last's slope);
    how large the files were that were read; where chunks lie; columns of printed tables, in their order, with what
    comes out here; a map of which level gives most, over the size of requests and the share of reads (a panel for each
    load)."""
    metrics: Annotated[list[Line], Field(min_length=1, max_length=6)] = ["throughput_per_disk_mb_s"]
    """What is drawn: of bars parts that are stacked, else one metric; shares are of throughput per disk."""
    workloads: list[Name] = []
    """A panel each; of a scan the places of its lines; over sizes and amounts the points. Only ``printed``
    and ``layout`` have none."""
    panels: list[Line] = []
    """What its panels are called, where the study has other words for them."""
    arrays: list[Name] = []
    """Its lines or bars, in this order."""
    printed: list[Line] = []
    """Which printed figures are drawn over it, as hollow marks: ids of claims and of figures in tables as
    ``raidlab study compare`` has them, ``*`` for any text (``table1:*:bang_mb_s``). They are in the unit of the axis.
    Of ``draw = "printed"`` a panel each."""
    also: list[FigureLine] = []
    """Further ones, such as the same array under another workload."""
    x: Literal["depth", "depth_per_volume", "rate_per_s"] = "depth"
    """Curves: over the outstanding requests of all volumes together, of each volume alone (which flatters arrays of
    several volumes), or over the rate offered."""
    at: Literal["maximum", "heaviest", "target"] | Depth = "maximum"
    """Bars and scans: at the load of most throughput, at the heaviest, or at a depth; scans also at the held response
    time."""
    measure: dict[str, Any] | None = None
    """Quantities, sizes, amounts: what each bar or point is, as in ``quantities.toml``, without its ``array`` and
    ``workload``."""
    axis: Line = ""
    """Quantities: what the axis is called, with its unit."""
    along: Line = ""
    """Curves, amounts, total time: what stands along the axis, in the study's word, such as ``readers``."""
    times: Annotated[float, Field(gt=0)] = 1.0
    """By what metrics and quantities are multiplied, for the study's unit."""
    unit: Line | None = None
    """That unit, of a metric."""
    mark: Line | None = None
    """Bars: a metric drawn as a stroke on each, such as what its parts should add up to."""
    against: Line = "response_time_ms_p90"
    """Trade-offs: the metric along the axis."""
    of_maximum: bool = False
    """Trade-offs: in percent of the greatest value of the same line."""
    reference: Name | None = None
    """Shares: the array that is 100 %."""
    series: list[FigureSeries] = []
    """Shares: the bars of each array."""
    over: Literal["read_percent", "request_mb", "disks", "chunk_kib"] | None = None
    """Scans: what is along the axis."""
    lines: list[FigureScan] = []
    """Scans: lines; one for each of the arrays, over all of the workloads, when left out."""
    straight: bool = False
    """Scans: also the straight line between the ends of each."""
    flat: list[Name] = []
    """Scans: lines drawn level, at the mean of their ends."""
    crossing: list[Name] = []
    """Scans: two lines, where they cross is marked."""
    scale: Literal["log", "linear"] = "log"
    """Sizes, amounts: both axes. Curves: that of the load."""
    limits: bool = False
    """Curves: which part of the data path is the limit at each load stands below the title."""
    foreign: ForeignLines | None = None
    """Results of others drawn beside."""
    claims: list[Line] = []
    """Ids of published claims that are tested on it."""
    note: Prose = ""
    """A remark for the reader."""
