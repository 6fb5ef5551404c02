"""Would the rate last, or was it a burst?

Volumes that are rented run on credits, drives write into a fast cache, heat slows both. Such a target is fast for a
while, and a run that ends before shows nothing of it. Where the end of a burst was seen, the credits are named as a
bucket: so many requests beyond the rate at which it is filled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from raidlab.analysis.checks.cache import in_memory
from raidlab.analysis.checks.finding import PASS, UNKNOWN, WARN, Finding
from raidlab.analysis.checks.knobs import knob
from raidlab.analysis.checks.members import is_stored
from raidlab.analysis.metrics import Analysis, Point
from raidlab.stats.changes import change_p, step_at
from raidlab.study.expand import PILOT

NAME = "sustained"
_SECOND_NS = 1_000_000_000
# A shorter load tells nothing of what comes after it.
_LEAST_S = 60
# What is called a burst is faster by this than what follows.
_FALLEN = 0.8
_CHANCE = 0.001


@dataclass(frozen=True)
class Burst:
    """A rate that fell and stayed: requests a second before and after, and the requests beyond the latter."""

    fast_per_s: float
    slow_per_s: float
    seconds: int
    bucket: float


def check(analysis: Analysis) -> Iterator[Finding]:
    """WARN for a burst, whose credits are named; UNKNOWN where no load lasted a minute; PASS says how long it did."""
    stored = [member for member in analysis.run.live_members() if is_stored(member) and not in_memory(member)]
    points = [point for point in analysis.points if point.target == "live" and point.load in ("closed", "open")]
    if not stored or not points:
        return
    loads = [(load, point) for point in points for load in [_seconds(analysis, point)] if load]
    bursts = [(burst, point) for load, point in loads if (burst := burst_of(np.concatenate(load))) is not None]
    if bursts:
        burst, point = min(bursts, key=lambda entry: entry[0].slow_per_s / entry[0].fast_per_s)
        evidence = (
            f"{point.array}, {point.workload}, {point.level}: {burst.fast_per_s:,.0f} requests/s for {burst.seconds} "
            f"s, and {burst.slow_per_s:,.0f} from then on, as from a bucket of {burst.bucket:,.0f} requests that is "
            f"filled at {burst.slow_per_s:,.0f} a second (or from a cache, or before heat)."
        )
        remedy = knob(
            analysis,
            "Raise warmup of [live] until the burst is over, and name both rates.",
            "Raise quick.warmup of [live] until the burst is over, and name both rates.",
            "Measure with --until-steady, and name both rates.",
        )
        yield Finding(NAME, "live", WARN, evidence, remedy)
        return
    measure = analysis.run.facts.get("measure")
    rounds = (measure.get("steadied") or []) if measure is not None else []
    unsteady = [one for one in rounds if not one["steady"]]
    if unsteady:
        one = unsteady[0]
        evidence = (
            f"{one['subject']}, {one['load']}: {one['rounds']} rounds in {one['seconds']:.0f} s, and the last five are "
            "not steady."
        )
        remedy = "Keep other work off the target, or measure longer rounds with --runtime."
        yield Finding(NAME, "live", WARN, evidence, remedy)
        return
    if all(len(point.rows_of("streams")) for point in points):
        evidence = "Could not be determined, because of streams no rate of each second is recorded."
        remedy = "Move more, and set it beside a small amount; requests have such a rate."
        yield Finding(NAME, "live", UNKNOWN, evidence, remedy)
        return
    longest = max((sum(part.size for part in load) for load, _ in loads), default=0)
    most = max((float(sum(part.sum() for part in load)) for load, _ in loads), default=0.0)
    told = f"one load lasted {longest} s ({most:,.0f} requests)" if longest else "no load lasted longer than a second"
    if longest < _LEAST_S:
        evidence = f"Could not be determined, because {told}: credits, caches and heat that last longer are not seen."
        remedy = knob(
            analysis,
            f"Let [live] measure for {_LEAST_S}s or more.",
            "Leave out --quick.",
            f"--until-steady tells, or --runtime {_LEAST_S}s.",
        )
        yield Finding(NAME, "live", UNKNOWN, evidence, remedy)
        return
    yield Finding(NAME, "live", PASS, f"No burst ended: {told}; what comes later is not known.")


def _seconds(analysis: Analysis, point: Point) -> list[NDArray[np.float64]]:
    """Requests of every whole second of this load, in the order of the cells, pilots and warm-ups included."""
    same = ("array", "workload", "load", "depth", "rate_per_s")
    alike = pl.all_horizontal(pl.col(key) == getattr(point, key) for key in same)
    kinds = pl.col("purpose").is_in(["sweep", PILOT])
    cells = analysis.run.cells.filter((pl.col("target") == "live") & alike & kinds)
    # Rounds come before what is measured, and each begins an order of its own.
    is_pilot = pl.col("purpose") == PILOT
    cells = cells.sort(~is_pilot, pl.when(is_pilot).then("repeat").otherwise("order"))
    found = [whole_seconds(analysis.run.of_cells("snapshots", [cell])) for cell in cells["cell"]]
    return [part for part in found if part.size]


def whole_seconds(rows: pl.DataFrame) -> NDArray[np.float64]:
    """Requests completed in each second of a cell but its last, which may be cut."""
    if rows.height < 2:
        return np.zeros(0)
    ends = rows["time_ns"].to_numpy().astype(np.int64) // _SECOND_NS
    counts = np.zeros(int(ends.max()) - int(ends.min()) + 1)
    counts[ends - ends.min()] = rows["requests"].to_numpy()
    return counts[:-1]


def burst_of(seconds: NDArray[np.float64]) -> Burst | None:
    """The burst at the beginning of a load; None where its rate did not fall for good."""
    chance = change_p(seconds)
    if chance is None or chance > _CHANCE:
        return None
    at = step_at(seconds)
    before, after = seconds[:at], seconds[at:]
    fast, slow = float(np.median(before)), float(np.median(after))
    # It fell, and neither came back nor went on falling.
    middle = (fast + slow) / 2
    stays = np.mean(after > middle) < 0.1 and np.mean(before < middle) < 0.25
    if fast <= 0 or slow > _FALLEN * fast or not stays:
        return None
    return Burst(fast, slow, at, float(np.maximum(seconds[: at + 1] - slow, 0).sum()))
