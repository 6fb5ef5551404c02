"""Checks of honesty and fairness, one file a check.

Adding one: a file named after its name with a function ``check(analysis)``, a line in `CHECKS`, a test. One that can
judge a target without a run has ``judge(member)``, one that judges the machine ``of_machine(machine, target)``.

Invariants:

- Every check is made on every run; the user cannot switch one off.
- A check reads the analysis of a run, or facts it is given; it measures nothing.
"""

from __future__ import annotations

from typing import Any

from raidlab.analysis.checks import (
    array_state,
    background_load,
    buffered_io,
    busy_processors,
    cache,
    clock,
    compression,
    content,
    coverage,
    data_loss,
    dedupe,
    device_too_plain,
    engine,
    equal_capacity,
    events,
    foreign,
    generator_limited,
    incomplete,
    lateness,
    not_steady,
    order_drift,
    overloaded,
    precision,
    raw_device,
    rebuild,
    replay,
    reread,
    resync,
    sat_out,
    scrub,
    second_tool,
    settings,
    shared_device,
    short_stroke,
    single_run,
    sparse,
    stacked_striping,
    stalls,
    sustained,
    target_never_reached,
    throttling,
    too_short,
    unreadable,
    warm_up,
    write_cache,
    zone_spread,
)
from raidlab.analysis.checks.finding import (
    INVALID,
    PASS,
    SEVERITY,
    UNKNOWN,
    WARN,
    Concern,
    Finding,
    frame_of,
    that_concern,
    warns_of,
    words_of,
)
from raidlab.analysis.checks.members import of_target
from raidlab.analysis.metrics import Analysis
from raidlab.results.facts import Machine, Member

CHECKS: tuple[Any, ...] = (
    incomplete,
    shared_device,
    raw_device,
    buffered_io,
    cache,
    reread,
    write_cache,
    sparse,
    compression,
    dedupe,
    content,
    array_state,
    resync,
    stacked_striping,
    settings,
    short_stroke,
    coverage,
    zone_spread,
    equal_capacity,
    overloaded,
    target_never_reached,
    warm_up,
    too_short,
    single_run,
    not_steady,
    order_drift,
    stalls,
    sustained,
    precision,
    second_tool,
    generator_limited,
    lateness,
    events,
    rebuild,
    sat_out,
    scrub,
    unreadable,
    data_loss,
    replay,
    device_too_plain,
    throttling,
    busy_processors,
    background_load,
    clock,
    engine,
    foreign,
)


def run_checks(analysis: Analysis) -> list[Finding]:
    """Make all checks of a run; the worst first, otherwise in the order of the list.

    Parameters
    ----------
    analysis : Analysis
        What was worked out of a run.
    """
    return _worst_first([finding for module in CHECKS for finding in module.check(analysis)])


def check_targets(members: list[Member], machine: Machine) -> list[Finding]:
    """Make the checks that need no run: target by target, then of the machine; within each the worst first.

    Facts of a target are those that a run's ``live_members`` have, and what was tried on it.
    """
    found: list[Finding] = []
    for member in members:
        judges = [module for module in CHECKS if hasattr(module, "judge")]
        found += _worst_first([one for module in judges for one in of_target(module.NAME, member, module.judge)])
    stored = [member for member in members if member.get("disks")]
    of_all = [shared_device.check_together(stored)] if len(stored) > 1 else []
    of_machine = [module.of_machine(machine, "machine") for module in CHECKS if hasattr(module, "of_machine")]
    return found + _worst_first(of_all + of_machine)


def _worst_first(found: list[Finding]) -> list[Finding]:
    return sorted(found, key=lambda finding: -SEVERITY[finding.verdict])


__all__ = [
    "CHECKS",
    "INVALID",
    "PASS",
    "SEVERITY",
    "UNKNOWN",
    "WARN",
    "Concern",
    "Finding",
    "check_targets",
    "frame_of",
    "run_checks",
    "that_concern",
    "warns_of",
    "words_of",
]
