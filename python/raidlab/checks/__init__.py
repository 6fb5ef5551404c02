"""Checks of honesty and fairness, one file a check.

Adding one: a file named after its name with a function ``check(analysis)``, a line in `CHECKS`, a test.

Invariants:

- Every check is made on every run; the user cannot switch one off.
- A check reads the analysis of a run; it measures nothing.
"""

from __future__ import annotations

from raidlab.checks import (
    array_state,
    buffered_io,
    engine,
    equal_capacity,
    generator_limited,
    incomplete,
    lateness,
    not_steady,
    order_drift,
    overloaded,
    precision,
    shared_device,
    short_stroke,
    single_run,
    target_never_reached,
    too_short,
    warm_up,
)
from raidlab.checks.finding import INVALID, PASS, SEVERITY, WARN, Finding
from raidlab.metrics import Analysis

CHECKS = (
    incomplete,
    shared_device,
    buffered_io,
    array_state,
    short_stroke,
    equal_capacity,
    overloaded,
    target_never_reached,
    warm_up,
    too_short,
    single_run,
    not_steady,
    order_drift,
    precision,
    generator_limited,
    lateness,
    engine,
)


def run_checks(analysis: Analysis) -> list[Finding]:
    """Make all checks of a run; the worst first, otherwise in the order of the list.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    list of Finding
    """
    found = [finding for module in CHECKS for finding in module.check(analysis)]
    return sorted(found, key=lambda finding: -SEVERITY[finding.verdict])


__all__ = ["CHECKS", "INVALID", "PASS", "SEVERITY", "WARN", "Finding", "run_checks"]
