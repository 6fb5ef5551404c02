"""Did each cell run at one rate from its beginning to its end?

A mean over a rate that falls says when the measurement ended, not how fast the target is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from raidlab.analysis.checks.finding import PASS, WARN, Finding
from raidlab.analysis.checks.knobs import knob
from raidlab.analysis.metrics import Analysis, Point
from raidlab.stats.changes import change_p
from raidlab.stats.holm import holm
from raidlab.stats.steady_state import MOST_RANGE_PERCENT, MOST_SLOPE_PERCENT, WINDOW, SteadyState, steady_state

NAME = "not_steady"
_SECOND_NS = 1_000_000_000
_LEAST_SECONDS = 2 * WINDOW
# Rates of seconds differ by chance, and a slow second is seldom alone. Only what chance would hardly do in any of the
# cells counts.
_CHANCE = 0.01
# A simulated clock may leap over days without a request; there is no rate to speak of then.
_MOST_SPARSE = 10


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN when five equal parts of a cell differ by more than the steady state allows, and by more than chance."""
    for target in analysis.targets:
        # The depth of a held percentile is meant to move, and so is a rate where members fail.
        failing = {array.name for array in analysis.run.study.array if array.events or array.rebuild is not None}
        points = [
            point
            for point in analysis.points
            if point.target == target and point.load != "hold" and point.array not in failing
        ]
        repeats = [found for point in points for found in _long_repeats(point)]
        if not repeats:
            continue
        chances = holm([chance for *_, chance in repeats])
        unsteady = [
            (state, point)
            for (point, state, _), chance in zip(repeats, chances, strict=True)
            if not state.steady and chance < _CHANCE
        ]
        if unsteady:
            state, point = max(unsteady, key=lambda pair: pair[0].range_percent or 0.0)
            evidence = (
                f"{len(unsteady)} of {len(repeats)} cells of {_LEAST_SECONDS} s or more are not steady; for one, "
                f"{point.array}, {point.workload}, {point.level}: five equal parts range over "
                f"{state.range_percent:.0f} % of their mean (at most {MOST_RANGE_PERCENT:g}), their line climbs or "
                f"falls by {state.slope_percent:.0f} % (at most {MOST_SLOPE_PERCENT:g})."
            )
            # Streams begin and end as they would, without a warm-up.
            streams = "Raise bytes of its streams, so that their beginning counts less."
            remedy = (
                streams
                if len(point.rows_of("streams"))
                else knob(
                    analysis,
                    f"Raise warmup of [{target}] in the study.",
                    f"Raise quick.warmup of [{target}] in the study, or leave out --quick.",
                    "Raise --warmup, or --runtime until the rate settles.",
                )
            )
            yield Finding(NAME, target, WARN, evidence, remedy)
            continue
        widest = max(state.range_percent or 0.0 for _, state, _ in repeats)
        evidence = (
            f"All {len(repeats)} cells of {_LEAST_SECONDS} s or more are steady: five equal parts of one range over at "
            f"most {widest:.1f} % of their mean, or differ by no more than chance."
        )
        yield Finding(NAME, target, PASS, evidence)


def _long_repeats(point: Point) -> Iterator[tuple[Point, SteadyState, float]]:
    """Of each repeat that is long enough: whether it is steady, and how probable so much change is by chance."""
    for row in point.rows:
        if row["elapsed_ns"] < _LEAST_SECONDS * _SECOND_NS:
            continue
        seconds = _measured_seconds(point.run.of_cells("snapshots", [row["cell"]]), int(row["elapsed_ns"]))
        # Streams that move so much each end one after another: of one rate they are only while all of them run.
        streams = point.run.of_cells("streams", [row["cell"]])["elapsed_ns"]
        seconds = seconds[: int(streams.min()) // _SECOND_NS] if len(streams) else seconds  # type: ignore[arg-type]
        if seconds.size < _LEAST_SECONDS:
            continue
        parts = np.array_split(seconds, WINDOW)
        chance = change_p(seconds)
        means = np.array([part.mean() for part in parts])
        if chance is not None and (means > 0).all():
            yield point, steady_state(means), chance


def _measured_seconds(rows: pl.DataFrame, elapsed_ns: int) -> NDArray[np.float64]:
    """Requests completed in each whole second of the measuring window, seconds without any included."""
    if rows.is_empty():
        return np.zeros(0)
    ends = rows["time_ns"].to_numpy().astype(np.int64) // _SECOND_NS
    last = int(ends.max())
    # The window ends somewhere in the last second, which may be cut; the warm-up lies before it.
    first = last - (elapsed_ns // _SECOND_NS) + 1
    if last - first > _MOST_SPARSE * rows.height:
        return np.zeros(0)
    counts = np.zeros(max(0, last - first))
    inside = (ends >= first) & (ends < last)
    counts[ends[inside] - first] = rows["requests"].to_numpy()[inside]
    return counts
