"""Are the throughputs as precise as was asked?

Repeating ends when every interval is narrow enough, or when more repeats will not do it.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.checks.finding import PASS, WARN, Finding
from raidlab.metrics import Analysis
from raidlab.stats import half_width_percent

NAME = "precision"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when the 95 % interval of a throughput is wider than was asked."""
    asked = (analysis.run.facts.get("measure") or {}).get("precision_percent")
    points = [point for point in analysis.points if point.target == "live" and point.is_swept]
    if asked is None or not points:
        return
    widths = [(half_width_percent(point.each_per_s("all_bytes")), point) for point in points]
    wide = [(width, point) for width, point in widths if width is None or width > asked]
    if not wide:
        widest = max(width for width, _ in widths if width is not None)
        yield Finding(NAME, "live", PASS, f"Every throughput is known to ±{widest:.2g} %, asked were ±{asked:g} %.")
        return
    width, point = max(wide, key=lambda pair: float("inf") if pair[0] is None else pair[0])
    reached = "has no interval" if width is None else f"is known to ±{width:.2g} %"
    yield Finding(
        NAME,
        "live",
        WARN,
        f"{len(wide)} of {len(points)} throughputs are less precise than the ±{asked:g} % asked for; that of "
        f"{point.array}, {point.level}, {reached} after {len(point.rows)} repeats.",
        "Measure longer with --runtime, keep other work off the machine, or ask for less.",
    )
