"""Was each cell run more than once, and do its repeats agree?

Storage varies from run to run; a single run has no interval, and a small difference in it means nothing. Of repeats
that lie far apart the mean says little, on the simulator's clock, too: there chance alone tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap

from raidlab.analysis.checks.finding import PASS, WARN, Concern, Finding
from raidlab.analysis.checks.knobs import knob
from raidlab.analysis.metrics import Analysis, Point
from raidlab.stats import spread_percent
from raidlab.study.words import ON_THE_CLOCK

NAME = "single_run"
WIDE_PERCENT = 20.0
REPEATED = (
    "Each cell was run {repeats} times; the throughputs of its repeats range over {median} % of their mean in the "
    "median cell and {worst} % in the worst"
)
WIDE = " ({array}, {workload}, {level}); over more than {limit} % in {wide} of {points}, where a mean says little"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for targets on the real clock that were run once, and where repeats of a cell lie far apart."""
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
            yield _of_repeats(target, points, repeats)


def _of_repeats(target: str, points: list[Point], repeats: int) -> Finding:
    """How far the repeats of cells lie apart."""
    spreads = sorted(((spread_percent(point.each_per_s("all_bytes")) or 0.0, point) for point in points), key=_first)
    worst, point = spreads[-1]
    evidence = REPEATED.format(repeats=repeats, median=f"{spreads[len(spreads) // 2][0]:.1f}", worst=f"{worst:.0f}")
    wide = [one for one in reversed(spreads) if one[0] > WIDE_PERCENT]
    if not wide:
        return Finding(NAME, target, PASS, f"{evidence}.")
    names = {"array": point.array, "workload": point.workload, "level": point.level}
    evidence += WIDE.format(**names, limit=f"{WIDE_PERCENT:g}", wide=len(wide), points=len(points))
    on_clock = "Measure longer, repeat more, and keep other work off the machine."
    remedy = on_clock if target in ON_THE_CLOCK else "Measure longer, or repeat more."
    widest: dict[tuple[str, str], tuple[float, Point]] = {}
    for spread, one in wide:
        widest.setdefault((one.array, one.workload), (spread, one))
    return Finding(NAME, target, WARN, f"{evidence}.", remedy, tuple(starmap(_concern, widest.values())))


def _concern(spread: float, point: Point) -> Concern:
    said = f"The throughputs of {len(point.rows)} repeats range over {spread:.0f} % of their mean"
    return Concern(point.array, point.workload, f"{said} ({point.array}, {point.workload}, {point.level})")


def _first(pair: tuple[float, Point]) -> float:
    return pair[0]
