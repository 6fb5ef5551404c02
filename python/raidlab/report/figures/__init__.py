"""Figures, one file a figure.

Adding one: a file named after its kind with a function ``figures(analysis)``, a line in `FIGURES`, a test.

Invariants:

- A figure reads an analysis; it never runs anything.
- Axes carry units; arrays are told apart by colour and shape.
"""

from __future__ import annotations

from raidlab.analysis.metrics import Analysis
from raidlab.report.figures import (
    amounts,
    bars,
    curves,
    member_time,
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
)
from raidlab.report.figures.figure import Figure, Panel

FIGURES = (
    relative_throughput,
    throughput_against_p90,
    rate_over_time,
    member_time,
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
)


def make_figures(analysis: Analysis) -> list[Figure]:
    """All figures of a run, in the order of the list.

    Parameters
    ----------
    analysis : Analysis
        What was worked out of a run.
    """
    return [figure for module in FIGURES for figure in module.figures(analysis)]


__all__ = ["FIGURES", "Figure", "Panel", "make_figures"]
