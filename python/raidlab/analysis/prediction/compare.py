"""Measured beside predicted, load by load.

Invariants:

- A model is believed as far as its file says that it may be: the widest tolerance of its ``[[published]]`` figures of
  the same kind of work. What lies within is agreement, unless it is further off than a fit may be that passed: a model
  that may be off by half agrees with a box that has lost half its speed, and tells nothing of it.
- What lies outside is called slower or faster only where the repeats show it: where their interval does, too.
- A ratio is one of speed: below 1 what was measured is slower, be it a rate or a response time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from raidlab.analysis.checks import Finding
from raidlab.analysis.metrics import Analysis, Point
from raidlab.analysis.prediction.causes import Cause, Evidence, causes_of
from raidlab.results.facts import DeviceSheet, SheetFigure
from raidlab.stats import compare_unpaired
from raidlab.study.device import MOST_FIT_ERROR_PERCENT
from raidlab.study.schema import Array
from raidlab.study.workload import Workload

AGREES, SLOWER, FASTER, UNDECIDED = "agrees", "slower", "faster", "undecided"
# Where a device file prints no figure of such work, or a figure no tolerance.
ASSUMED_ERROR_PERCENT = 10.0
# Requests of more are told in bytes a second.
_LARGE_BYTES = 128 << 10
NS_PER_MS = 1e6


@dataclass(frozen=True)
class PredictedLoad:
    """One load of one workload, measured and predicted."""

    workload: str
    level: str
    unit: str
    """``IOPS`` or ``MB/s``, or ``ms`` of mean response time where requests arrive whatever the array does."""
    measured: float
    predicted: float
    ratio: float
    """Of the speeds, measured to predicted."""
    interval: tuple[float, float] | None
    """Its 95 % interval over repeats; None where there are too few."""
    error_percent: float
    """How far the model may be off for work of this kind."""
    error_is_stated: bool
    """Whether the file of its device says so; else it is assumed."""
    reads: bool
    writes: bool

    @property
    def verdict(self) -> str:
        """``agrees``, ``slower``, ``faster``; ``undecided`` where repeats, or so rough a model, do not show which."""
        least, most = 1 - self.error_percent / 100, 1 + self.error_percent / 100
        low, high = self.interval or (self.ratio, self.ratio)
        if least <= self.ratio <= most:
            return UNDECIDED if self.model_is_too_rough else AGREES
        if self.ratio < least:
            return SLOWER if high < least else UNDECIDED
        return FASTER if low > most else UNDECIDED

    @property
    def model_is_too_rough(self) -> bool:
        """Whether it lies within what the model may be off, and further off than a fit may be that passed."""
        off_percent = 100 * abs(self.ratio - 1)
        return MOST_FIT_ERROR_PERCENT < off_percent <= self.error_percent


@dataclass(frozen=True)
class Prediction:
    """An array on one target beside its twin."""

    array: str
    twin: str
    target: str
    """Where the array was measured."""
    tree: str
    device: str
    loads: tuple[PredictedLoad, ...]
    causes: tuple[Cause, ...]
    """What may be behind the loads that do not agree, what is surest first; empty where all agree."""

    def counted(self, verdict: str) -> int:
        """How many loads have a verdict."""
        return sum(load.verdict == verdict for load in self.loads)

    @property
    def verdict(self) -> str:
        """Of all loads together: slower where any is, else faster where any is, else undecided, else agreement."""
        return next((one for one in (SLOWER, FASTER, UNDECIDED) if self.counted(one)), AGREES)


def predictions_of(analysis: Analysis, findings: Sequence[Finding]) -> list[Prediction]:
    """Every array of a run that has a twin, on each target where it was measured beside that.

    Parameters
    ----------
    analysis : Analysis
        What was worked out of a run.
    findings : sequence of Finding
        What the checks say of it.
    """
    found = []
    for twin in analysis.run.study.array:
        for target in analysis.targets if twin.twin_of is not None else ():
            prediction = _prediction(analysis, twin, target, findings)
            if prediction is not None:
                found.append(prediction)
    return found


def _prediction(analysis: Analysis, twin: Array, target: str, findings: Sequence[Finding]) -> Prediction | None:
    works = {workload.name: workload for workload in analysis.run.study.workload}
    sheet = _sheet_of(analysis, twin)
    modelled = {_load_key(point): point for point in analysis.swept("sim", array=twin.name)}
    loads, points = [], []
    for point in analysis.swept(target, array=twin.twin_of):
        other = modelled.get(_load_key(point))
        load = None if other is None else _load(point, other, works[point.workload], sheet)
        if load is not None and other is not None:
            loads.append(load)
            points.append((point, other))
    if not loads:
        return None
    evidence = Evidence(
        analysis=analysis,
        array=str(twin.twin_of),
        target=target,
        findings=tuple(findings),
        slower=any(load.verdict == SLOWER for load in loads),
        faster=any(load.verdict == FASTER for load in loads),
        slower_writes=any(load.verdict == SLOWER and load.writes for load in loads),
        measured=tuple(point for point, _ in points),
        predicted=tuple(point for _, point in points),
    )
    return Prediction(
        array=str(twin.twin_of),
        twin=twin.name,
        target=target,
        tree=twin.tree,
        device=_device_name(analysis, twin),
        loads=tuple(loads),
        causes=tuple(causes_of(evidence)),
    )


def _load_key(point: Point) -> tuple[object, ...]:
    return point.workload, point.load, point.depth, point.rate_per_s


def _sheet_of(analysis: Analysis, twin: Array) -> DeviceSheet:
    facts = analysis.run.facts
    own: DeviceSheet | None = facts.get("array_sheets", {}).get(twin.name)
    return own or facts.get("sheets", {}).get("sim") or {}


def _device_name(analysis: Analysis, twin: Array) -> str:
    facts, sim = analysis.run.facts, analysis.run.study.sim
    device = facts.get("array_devices", {}).get(twin.name) or facts["devices"].get("sim")
    named = twin.device or (sim.device if sim is not None else None)
    if isinstance(named, str):
        return named
    return str(device.get("name") or device["kind"]) if device else ""


def _load(measured: Point, predicted: Point, work: Workload, sheet: DeviceSheet) -> PredictedLoad | None:
    """One load; None where either side served nothing, or could not keep up with what was offered."""
    if not (measured.keeps_up and predicted.keeps_up):
        return None
    is_time = measured.is_open
    column = "all_bytes" if _is_large(work) else "all_requests"
    per_unit = 1e6 if _is_large(work) else 1.0
    figures = [_response_ms(point) if is_time else point.per_s(column) / per_unit for point in (measured, predicted)]
    if not all(figures):
        return None
    own, model = (figure or 0.0 for figure in figures)
    each = [
        [_response_ms(one) or 0.0 for one in point.repeats] if is_time else point.each_per_s(column)
        for point in (measured, predicted)
    ]
    # Of times the longer is the slower.
    difference = compare_unpaired(*(reversed(each) if is_time else each))
    stated = stated_error_percent(sheet, work)
    return PredictedLoad(
        workload=measured.workload,
        level=measured.level,
        unit="ms" if is_time else "MB/s" if _is_large(work) else "IOPS",
        measured=own,
        predicted=model,
        ratio=model / own if is_time else own / model,
        interval=difference.ratio.interval,
        error_percent=ASSUMED_ERROR_PERCENT if stated is None else stated,
        error_is_stated=stated is not None,
        reads=bool(measured.total("read_requests")),
        writes=bool(measured.total("write_requests")),
    )


def _is_large(work: Workload) -> bool:
    return work.trace is None and work.size.typical_bytes >= _LARGE_BYTES


def _response_ms(point: Point) -> float | None:
    mean_ns = point.weighted_mean("all_response_mean_ns")
    return None if mean_ns is None else mean_ns / NS_PER_MS


def stated_error_percent(sheet: DeviceSheet, work: Workload) -> float | None:
    """How far a device's model may be off for a workload, by what its file says of its figures, published or held out.

    None where it has no figure of such work.

    Parameters
    ----------
    sheet : DeviceSheet
        What the device's file says.
    work : Workload
        Of which the figures of its kind count: sequential or not, reading or writing.
    """
    figures = [*sheet.get("published", []), *sheet.get("held_out", [])]
    alike = [figure for figure in figures if _is_alike(figure, work)]
    return max((_tolerance(figure) for figure in alike), default=None)


def _tolerance(figure: SheetFigure) -> float:
    return figure.get("tolerance_percent", ASSUMED_ERROR_PERCENT)


def _is_alike(figure: SheetFigure, work: Workload) -> bool:
    if work.trace is not None:
        return True
    is_sequential = work.address.kind == "sequential"
    if (figure.get("address") == "sequential") != is_sequential:
        return False
    share = figure.get("read", 1.0)
    return 0 < work.read < 1 or (share >= 0.5) == (work.read >= 0.5)


def documents_of(predictions: Iterable[Prediction]) -> list[dict[str, Any]]:
    """Predictions as JSON has them."""
    return [
        {
            "array": one.array,
            "twin": one.twin,
            "target": one.target,
            "tree": one.tree,
            "device": one.device,
            "verdict": one.verdict,
            "loads": [
                {
                    "workload": load.workload,
                    "load": load.level,
                    "unit": load.unit,
                    "measured": load.measured,
                    "predicted": load.predicted,
                    "ratio": load.ratio,
                    "ratio_low": None if load.interval is None else load.interval[0],
                    "ratio_high": None if load.interval is None else load.interval[1],
                    "error_percent": load.error_percent,
                    "error_is_stated": load.error_is_stated,
                    "verdict": load.verdict,
                }
                for load in one.loads
            ],
            "causes": [vars(cause) for cause in one.causes],
        }
        for one in predictions
    ]
