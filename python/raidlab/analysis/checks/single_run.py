"""Was each cell run more than once?

Storage varies from run to run; a single run has no interval, and a small difference in it means nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.checks.knobs import knob
from raidlab.analysis.metrics import Analysis
from raidlab.stats import spread_percent
from raidlab.study.words import ON_THE_CLOCK

NAME = "single_run"
_LARGE_SPREAD_PERCENT = 20.0
REPEATED = (
    "Each cell was run {repeats} times; the throughputs of its repeats range over {median} % of their mean in the "
    "median cell and {worst} % in the worst."
)


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for targets on the real clock that were run once; say how far repeats lie apart otherwise."""
    for target in analysis.targets:
        points = analysis.swept(target)
        repeats = min((len(point.rows) for point in points), default=0)
        if repeats == 1 and target in ON_THE_CLOCK:
            evidence = "Each cell was run once: nothing shows how much a repeat would differ."
            remedy = knob(
                analysis,
                f"Raise {target}.repeats.",
                f"Leave out --quick, or raise {target}.quick.repeats.",
                "Raise --repeats.",
            )
            yield Finding(NAME, target, WARN, evidence, remedy)
        elif repeats > 1:
            spreads = sorted(spread_percent(point.each_per_s("all_bytes")) or 0.0 for point in points)
            median, worst = spreads[len(spreads) // 2], spreads[-1]
            evidence = REPEATED.format(repeats=repeats, median=f"{median:.1f}", worst=f"{worst:.0f}")
            if target in ON_THE_CLOCK and worst > _LARGE_SPREAD_PERCENT:
                remedy = "Measure longer, repeat more, and keep other work off the machine."
                yield Finding(NAME, target, WARN, evidence, remedy)
            else:
                yield Finding(NAME, target, PASS, evidence)
