"""How long to run before measuring: what the user says, or what a pilot shows.

A pilot is one more run of a point, as long as a repeat and without warm-up. MSER-5 on its seconds says where its
beginning ends. The repeats then run that long before they measure: afresh, so that the cut is not chosen by the values
it is applied to.

Invariants:

- Runs too short to be cut by seconds have no pilot: they get a tenth of their time, and half a second at least.
- A pilot that does not settle gives its own length, and a sentence that says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from raidlab.results.answer import CellAnswer
from raidlab.stats.answer import Reason
from raidlab.stats.warm_up import mser5
from raidlab.study.units import format_time_ns

AUTO = "auto"

LEAST_WARM_UP_NS = 500_000_000
_SECOND_NS = 1_000_000_000
# MSER-5 takes no series of fewer values; a second is a value, for it is a mean of many already.
LEAST_PILOT_NS = 11 * _SECOND_NS


@dataclass(frozen=True)
class PilotWarmUp:
    """What a pilot showed."""

    warmup_ns: int
    """How long to run before measuring."""
    sentence: str
    """Why."""
    settled: bool
    """Whether the pilot came to an end of its beginning."""


def found_by_pilot(answer: CellAnswer) -> PilotWarmUp:
    """Where the beginning of a pilot ends.

    ``answer``: with a snapshot a second.
    """
    elapsed_ns = int(answer["elapsed_ns"])
    times, requests = answer["snapshots"]["time_ns"], answer["snapshots"]["requests"]
    # A second that was not whole is no rate.
    rates = [float(count) for time, count in zip(times, requests, strict=True) if int(time) <= elapsed_ns]
    least_ns = max(LEAST_WARM_UP_NS, elapsed_ns // 10)
    cut = mser5(rates, batch=1)
    if cut.cut is None:
        if cut.reason is not Reason.TOO_FEW_SAMPLES:
            words = f"a pilot of {format_time_ns(elapsed_ns)} had not settled at its end: {cut.sentence.rstrip('.')}"
            return PilotWarmUp(elapsed_ns, words, settled=False)
        return PilotWarmUp(least_ns, f"a pilot gave too few seconds to look at: {cut.sentence}", settled=True)
    warmup_ns = max(least_ns, cut.cut * _SECOND_NS)
    words = f"MSER-5 cuts {cut.cut} of the {cut.n} seconds of a pilot"
    return PilotWarmUp(warmup_ns, words, settled=True)
