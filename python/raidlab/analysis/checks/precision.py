"""Are the throughputs as precise as was asked?

Repeating ends when every interval is narrow enough, or when more repeats will not do it.
"""

from __future__ import annotations

from collections.abc import Iterator

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.stats import mean_so_far

NAME = "precision"


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when the 95 % interval of a throughput is wider than was asked."""
    measure = analysis.run.facts.get("measure")
    asked = None if measure is None else measure["precision_percent"]
    points = [point for point in analysis.points if point.target == "live" and point.is_swept]
    if asked is None or not points:
        return
    answers = [(mean_so_far(point.each_per_s("all_bytes")), point) for point in points]
    widths = [answer.half_width_percent for answer, _ in answers]
    wide = [pair for pair, width in zip(answers, widths, strict=True) if width is None or width > asked]
    if not wide:
        widest = max(width for width in widths if width is not None)
        yield Finding(NAME, "live", PASS, f"Every throughput is known to ±{widest:.2g} %, asked were ±{asked:g} %.")
        return
    answer, point = max(wide, key=lambda pair: pair[0].half_width_percent or float("inf"))
    width = answer.half_width_percent
    reached = (
        f"is known to ±{width:.2g} %"
        if width is not None
        else f"has no interval ({answer.reason.words})"
        if answer.reason
        else "is 0"
    )
    why = f" {answer.sentence}" if answer.sentence else ""
    evidence = (
        f"{len(wide)} of {len(points)} throughputs are less precise than the ±{asked:g} % asked for; that of "
        f"{point.array}, {point.level}, {reached} after {len(point.rows)} repeats.{why}"
    )
    remedy = "Measure longer with --runtime, keep other work off the machine, or ask for less."
    yield Finding(NAME, "live", WARN, evidence, remedy)
