"""Did requests go to all of the span, or only to a part of it?

The first tenth of a disk lies on its fastest tracks, and an arm that stays there hardly moves. Requests drawn from all
over the span sample every zone; a scan samples as far as it comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import floor, log10
from typing import Any

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.checks.knobs import knob
from raidlab.analysis.metrics import Analysis, Point
from raidlab.study.workload import Workload

NAME = "coverage"
_PARTS = 10
_LEAST_PARTS = 5
_DRAWS_A_PART = 5
# A device model that is as fast everywhere has no zones to sample.
_PLACELESS = ("fixed", "empirical", "random")


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when a workload touched less than five tenths of the span."""
    workloads = {workload.name: workload for workload in analysis.run.study.workload}
    for target in analysis.targets:
        if not _has_places(analysis, target):
            continue
        points = analysis.swept(target)
        touched = [
            (parts, point) for point in points if (parts := tenths(point, workloads[point.workload])) is not None
        ]
        if not touched:
            continue
        fewest, point = min(touched, key=lambda pair: pair[0])
        few = sum(1 for parts, _ in touched if parts < _LEAST_PARTS)
        if not few:
            told = "all" if fewest == _PARTS else f"at least {fewest} tenths"
            yield Finding(NAME, target, PASS, f"Every workload touched {told} of the span.")
            continue
        told = f"{fewest} tenth{'' if fewest == 1 else 's'}"
        share = min(row["all_bytes"] for row in _runs(point)) / _span_bytes(point)
        evidence = (
            f"{few} of {len(touched)} points touched less than {_LEAST_PARTS} tenths of the span; {point.workload} "
            f"({point.array}, {point.level}) moved {_percent(share)} of it a run and touched {told}."
        )
        remedy = knob(
            analysis,
            f"Raise measure of [{target}], or scan in several streams (address = {{ kind = 'sequential', "
            "streams = 10 }), which begin all over the span.",
            f"Raise quick.measure of [{target}], leave out --quick, or scan in several streams.",
            "Raise --runtime, measure several --span, or scan in several streams (--address sequential:streams=10).",
        )
        yield Finding(NAME, target, WARN, evidence, remedy)


def _has_places(analysis: Analysis, target: str) -> bool:
    if target == "live":
        return any(member["kind"] not in ("memory", "null") for member in analysis.run.live_members())
    device = analysis.run.facts["devices"].get(target)
    return device is None or device["kind"] not in _PLACELESS


def _percent(share: float) -> str:
    """A share by two digits, however small: a run of a large disk may touch a millionth of it.

    Examples
    --------
    >>> _percent(0.2268), _percent(0.004), _percent(0.0000312), _percent(1.5)
    ('23 %', '0.4 %', '0.0031 %', '150 %')
    """
    percents = 100 * share
    digits = 1 - floor(log10(percents)) if percents > 0 else 0
    text = f"{percents:.{max(digits, 0)}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def tenths(point: Point, workload: Workload) -> int | None:
    """How many tenths of the span a run of a point touched at least; None where its tasks have places of their own."""
    if workload.trace is not None:
        # Where its requests lie is the trace's own affair.
        return None
    if workload.task is not None and any(step.address is not None for step in workload.task):
        return None
    user_bytes = _span_bytes(point)
    runs = _runs(point)
    if not runs:
        return None
    if workload.streams is not None:
        return _tenths_of_scans(1, min(row["all_bytes"] for row in runs) / user_bytes)
    if workload.address.kind == "sequential":
        share = min(row["all_bytes"] for row in runs) / user_bytes
        return _tenths_of_scans(workload.address.streams, share)
    if workload.address.kind == "strided":
        return _tenths_of_scans(1, min(row["all_requests"] for row in runs) * workload.address.stride / user_bytes)
    drawn = 1.0
    if workload.address.kind == "mixed":
        drawn = 1.0 - workload.address.sequential - workload.address.local
    # Drawn from all over: with so many draws a tenth, none is missed but by a chance of nothing.
    fewest = min(int(row["all_requests"]) for row in runs)
    return min(_PARTS, max(1, round(drawn * fewest) // _DRAWS_A_PART))


def _runs(point: Point) -> list[Mapping[str, Any]]:
    """The repeats that did something; what is told is of the one that did least."""
    return [row for row in point.rows if row["all_requests"]]


def _span_bytes(point: Point) -> int:
    """What its requests are spread over: of a twin so much as what it stands for holds."""
    used = next((array.user_size for array in point.run.study.array if array.name == point.array), None)
    whole = max(int(point.rows[0]["user_bytes"]), 1)
    return whole if used is None else min(whole, used)


def _tenths_of_scans(streams: int, share: float) -> int:
    """How many tenths of the span are touched by scans that begin at equal distances and move a share of it together.

    Examples
    --------
    >>> [_tenths_of_scans(*scans) for scans in ((1, 0.05), (1, 0.25), (4, 0.1), (20, 0.01), (1, 3.0))]
    [1, 3, 4, 10, 10]
    """
    found: set[int] = set()
    for stream in range(streams):
        begin = stream / streams
        end = begin + min(share, 1.0) / streams
        first, last = int(begin * _PARTS), min(_PARTS - 1, int(max(begin, end - 1e-12) * _PARTS))
        found.update(range(first, last + 1))
    return len(found)
