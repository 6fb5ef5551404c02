"""Margins: what would change the answer, and how that is known.

One file a way: `crossing` (swept between cells of the run), `reckoned` (from the members' busy time), `prices` and
`chance`. `of_run` joins them for one best; those that need a simulation are found by `raidlab.run.margins` and kept in
the run's folder (`file`), where reports read them.

Invariant: nothing here runs anything.
"""

from raidlab.analysis.margins.file import keep_margins, kept_margins, margins_json, with_simulated
from raidlab.analysis.margins.margin import AXES, WAYS, BestMargins, Margin, nearest_first
from raidlab.analysis.margins.of_run import Contest, margins_of, margins_of_open, rates_of

__all__ = [
    "AXES",
    "WAYS",
    "BestMargins",
    "Contest",
    "Margin",
    "keep_margins",
    "kept_margins",
    "margins_json",
    "margins_of",
    "margins_of_open",
    "nearest_first",
    "rates_of",
    "with_simulated",
]
