"""Did the machine change while the repeats were run?

Repeats of all configurations are interleaved, so a drift hits all alike; but it widens their intervals, and what was
measured is a machine that changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.stats.drift import drift
from raidlab.study.words import ON_THE_CLOCK

NAME = "order_drift"
_CHANCE = 0.01
# Less than this from the first repeat to the last is nobody's worry, however certain.
_SMALL_PERCENT = 2.0


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when throughput rises or falls with the order of repeats, by 2 % or more and beyond chance."""
    for target in analysis.targets:
        if target not in ON_THE_CLOCK:
            continue
        points = analysis.swept(target)
        groups = []
        for point in points:
            rows = sorted((row for row in point.rows if row["elapsed_ns"]), key=lambda row: int(row["order"]))
            groups.append([row["all_bytes"] / row["elapsed_ns"] for row in rows])
        found = drift(groups, least_p=_CHANCE)
        repeats = max((len(group) for group in groups), default=0)
        if found.p is None or found.percent_a_step is None:
            continue
        total = found.percent_a_step * (repeats - 1)
        evidence = (
            f"From the first repeat to the last throughput changes by {total:+.1f} % in the median of {len(groups)} "
            f"points; so much agreement comes by chance with a probability of {found.p:.2g}."
        )
        if found.p < _CHANCE and abs(total) >= _SMALL_PERCENT:
            remedy = "Let the machine and the target settle first (a longer warm-up), and keep other work off it."
            yield Finding(NAME, target, WARN, evidence, remedy)
        else:
            yield Finding(NAME, target, PASS, evidence)
