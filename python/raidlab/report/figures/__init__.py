"""Figures, one file a figure.

Adding one: a file named after its kind with a function ``figures(analysis)``, a line in `COMMON`, a test. One that
studies ask for by name (``draw``) takes what was published besides, and stands in `OWN`.

Invariants:

- A figure reads an analysis; it never runs anything.
- Axes carry units; arrays are told apart by colour and shape.
"""

from __future__ import annotations

from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison
from raidlab.report.figures import (
    amounts,
    bad_days,
    bars,
    curves,
    file_sizes,
    layout,
    member_time,
    prediction,
    printed,
    quantities,
    rate_over_time,
    relative_throughput,
    scan,
    shares,
    sizes,
    throughput_against_p90,
    total_time,
    trade_off,
    two_tools,
    winners,
)
from raidlab.report.figures.figure import Figure, Panel

COMMON = (
    bad_days,
    relative_throughput,
    throughput_against_p90,
    rate_over_time,
    member_time,
    prediction,
)
OWN = (
    curves,
    bars,
    trade_off,
    shares,
    scan,
    sizes,
    amounts,
    two_tools,
    quantities,
    total_time,
    file_sizes,
    layout,
    printed,
    winners,
)
FIGURES = (*COMMON, *OWN)


def make_figures(analysis: Analysis, published: PublishedComparison | None = None) -> list[Figure]:
    """All figures of a run, in the order of the list.

    Parameters
    ----------
    analysis : Analysis
        What was worked out of a run.
    published : PublishedComparison, optional
        What its study printed, drawn over the figures that name it.
    """
    common = [figure for module in COMMON for figure in module.figures(analysis)]
    return common + [figure for module in OWN for figure in module.figures(analysis, published)]


__all__ = ["COMMON", "FIGURES", "OWN", "Figure", "Panel", "make_figures"]
