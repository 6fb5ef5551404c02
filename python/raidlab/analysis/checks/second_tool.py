"""Does a second, independent tool measure the same?

A meter that is wrong is wrong in silence. How far two tools lie apart is the accuracy of the measurement, as how far
five runs lie apart is its precision.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Literal

from raidlab.analysis.checks.finding import PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import SecondTool, ToolMeasured

NAME = "second_tool"
_FIGURE = "throughput_mb_s"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN where the second tool's throughput with one job is further from raidlab's than the study allows."""
    found = analysis.run.facts.get("second_tool", [])
    for one in found:
        if "missing" in one:
            yield Finding(NAME, "live", UNKNOWN, f"No second tool has measured: {one['missing']}", "Install fio.")
        elif one["depth"] == 1:
            yield _finding(one, list(_beside(one, found)))


def _beside(one: ToolMeasured, found: list[SecondTool]) -> Iterator[ToolMeasured]:
    """The same with more jobs."""
    for other in found:
        is_same = (one["array"], one["workload"]) == (other["array"], other["workload"])
        if "missing" not in other and other["depth"] > 1 and is_same:
            yield other


def _finding(found: ToolMeasured, beside: list[ToolMeasured]) -> Finding:
    """The finding of one job, with the figures of more jobs beside it."""
    own, other = _rates(found, "raidlab"), _rates(found, "fio")
    if not all((*own, *other)):
        return Finding(NAME, "live", UNKNOWN, "Could not be determined, because a run of a tool moved nothing.")
    apart = 100 * (statistics.median(other) / statistics.median(own) - 1)
    evidence = (
        f"{found['workload']}, one job on {found['target']}: fio measured {statistics.median(other):.4g} "
        f"MB/s, raidlab {statistics.median(own):.4g} ({apart:+.1f} %, allowed {found['within_percent']:g} %); highest "
        f"minus lowest of {len(own)} runs {_spread(other):.1f} and {_spread(own):.1f} % of the median."
    )
    for more in beside:
        own, other = _rates(more, "raidlab"), _rates(more, "fio")
        evidence += (
            f" With {more['depth']} jobs {statistics.median(other):.4g} and {statistics.median(own):.4g} MB/s, "
            f"runs {_spread(other):.1f} and {_spread(own):.1f} % apart."
        )
    if abs(apart) <= found["within_percent"]:
        return Finding(NAME, "live", PASS, evidence)
    remedy = "Keep other work off the machine and run again; if they still differ, find out which of them is right."
    return Finding(NAME, "live", WARN, evidence, remedy)


def _rates(found: ToolMeasured, tool: Literal["raidlab", "fio"]) -> list[float]:
    return [pair[tool][_FIGURE] for pair in found["pairs"]]


def _spread(values: list[float]) -> float:
    """Highest minus lowest, in percent of the median."""
    middle = statistics.median(values)
    return 100 * (max(values) - min(values)) / middle if middle else 0.0
