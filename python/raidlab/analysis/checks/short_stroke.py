"""Does the measurement cover what it names?

Over a part of a disk the arm travels less, the beginning of a disk holds more a track than its end, and over a part of
a flash device the mapping may fit a cache: a figure of a part is not one of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis

NAME = "short_stroke"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when requests went to a part of each target only; where a study asks for that, it is named."""
    yield from _of_study(analysis)
    measure = analysis.run.facts.get("measure")
    members = analysis.run.live_members()
    if measure is None or all(member["kind"] in ("memory", "null") for member in members):
        return
    low, high = measure["span_percent"]
    if (low, high) == (0, 100):
        yield Finding(NAME, "live", PASS, "Requests went to the whole of each target.")
        return
    evidence = f"Requests went to {low:g} to {high:g} % of each target only: a short stroke."
    yield Finding(NAME, "live", WARN, evidence, "Say so wherever you give the figure, or leave out --span.")


def _of_study(analysis: Analysis) -> Iterator[Finding]:
    """Workloads that the study itself confines to the front of each volume."""
    parts = {work.name: work.span for work in analysis.run.study.workload if work.span < 1}
    for target in dict.fromkeys(point.target for point in analysis.points if point.workload in parts):
        ran = {point.workload for point in analysis.points if point.target == target}
        named = ", ".join(f"'{name}' to the first {100 * span:g} %" for name, span in parts.items() if name in ran)
        yield Finding(NAME, target, PASS, f"Short strokes, as the study asks: {named} of each volume.")
