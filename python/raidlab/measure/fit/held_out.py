"""What was held out, predicted by the device that was fitted without it: the error that the file states.

Reference: V. Vovk, A. Gammerman and G. Shafer, *Algorithmic Learning in a Random World*, 2005 (conformal prediction):
of n errors that are exchangeable with the next one, the ceil(0.9 (n + 1))-th smallest is not exceeded by it with 90 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from raidlab.measure.fit.situations import Situation, Slot
from raidlab.measure.fit.subject import ModelSubject
from raidlab.measure.fit.table import Measured, Sample, sample_of
from raidlab.reading import Plain

STATED_SHARE = 0.9
# As long as it takes: the virtual clock is cheap.
_MODEL_NS = 3_600_000_000_000


@dataclass(frozen=True)
class HeldOut:
    """A situation that the fit has not seen: measured, and as the fitted device has it."""

    situation: Situation
    measured: Measured
    modelled: Sample

    @property
    def rate_error_percent(self) -> float:
        """How much more throughput the model gives."""
        return 100 * (self.modelled.rate_per_s / self.measured.rate_per_s - 1)

    def time_error_percent(self, percentile: float) -> float:
        """How much longer a percentile of response time is in the model."""
        measured = self.measured.times.percentile_ns(percentile) or 0
        modelled = self.modelled.times.percentile_ns(percentile) or 0
        return 100 * (modelled / measured - 1) if measured else math.nan

    @property
    def floor_percent(self) -> float:
        """How far the device is from itself: the throughputs of its turns, the most over the least."""
        rates = [turn.rate_per_s for turn in self.measured.turns]
        return 100 * (max(rates) / min(rates) - 1)


def predicted(device: Mapping[str, Plain], measured: Sequence[Measured], seed: int) -> list[HeldOut]:
    """Every situation that was held out, as a device has it."""
    model = ModelSubject(device, size_bytes=int(str(device["capacity_bytes"])), seed=seed)
    found = []
    for one in measured:
        slot = Slot(one.situation, turn=0, warmup_ns=0, measure_ns=_MODEL_NS)
        found.append(HeldOut(one.situation, one, sample_of(one.situation, 0, model.ask(slot))))
    return found


def stated_error_percent(held: Sequence[HeldOut]) -> float:
    """What the error of a throughput stays below with 90 %; with fewer than nine situations, the worst."""
    errors = sorted(abs(one.rate_error_percent) for one in held)
    rank = math.ceil(STATED_SHARE * (len(errors) + 1))
    return errors[min(rank, len(errors)) - 1]


def as_figure(one: HeldOut, source: str, tolerance_percent: float) -> dict[str, Plain]:
    """A situation as `raidlab device validate` takes it, in the words of a published figure."""
    address: Literal["random", "sequential"] = "sequential" if one.situation.place == "sequential" else "random"
    return {
        "name": one.situation.name,
        "value": float(f"{one.measured.rate_per_s:.5g}"),
        "unit": "IOPS",
        "source": source,
        "read": one.situation.read_share,
        "size": one.situation.size_bytes,
        "address": address,
        "depth": one.situation.depth,
        "tolerance_percent": tolerance_percent,
    }
