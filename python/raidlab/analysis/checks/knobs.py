"""Where the user turns what a check wants turned: a key of the study, or a flag of ``raidlab measure``."""

from __future__ import annotations

from raidlab.analysis.metrics import Analysis


def is_measurement(analysis: Analysis) -> bool:
    """Whether this is a run of ``raidlab measure`` and not of a study file."""
    return analysis.run.facts["command"] == "measure"


def knob(analysis: Analysis, in_study: str, in_quick_study: str, by_flag: str) -> str:
    """The sentence for what this run was: a study, a study run with ``--quick``, or a measurement."""
    if is_measurement(analysis):
        return by_flag
    return in_quick_study if analysis.run.facts["quick"] else in_study
