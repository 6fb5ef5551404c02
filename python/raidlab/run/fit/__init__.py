"""Fits: parameters of a study's original hardware, found anew from the figures that it published.

Invariants:

- What may move, within which bounds, and to which figures, stands in the study's ``quantities.toml``; nothing here
  knows a study.
- A figure weighs less where rounding alone could move it: its residual is its relative error (of percentages, points
  over 100) over the root of the squares of `TOLERANCE` and of half its last printed digit.
- Leave-one-out errors are of figures that the parameters have not seen: from what the whole found, one Gauss-Newton
  step goes to what the rest alone asks for, and the study is run there. A direction that the rest does not determine is
  not gone in; the parameters that make it up are named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from raidlab.errors import InputError
from raidlab.published.compare import PublishedRow
from raidlab.run.fit.search import Solution, Vector, least_squares
from raidlab.run.fit.trial import DEVICE, TrialRunner
from raidlab.run.fit.write import write_values
from raidlab.run.interrupt import StopFlag
from raidlab.run.pool import PoolRunner
from raidlab.study import LoadedStudy
from raidlab.study.mapping import Mapping
from raidlab.study.published import half_unit, number

# A relative error that a fit need not look beyond.
TOLERANCE = 0.02
ASIDE = 0.05
# A direction in which the parameters may go `ASIDE` without any residual changing by this is not determined, and those
# parameters are named that make up this share of it.
_INSENSITIVE = 0.5
_SHARE = 0.35
# Directions that are weaker than the strongest by this are not gone in.
_RCOND = 1e-2
Note = Callable[[str], None]


@dataclass(frozen=True)
class ValidationGroup:
    """A group of figures that was left out, and how well the rest predicts it."""

    group: str
    count: int
    median: float | None
    largest: float | None
    """Of the errors, in percent or points; None where the rest determines none of its figures."""
    unidentified: list[str]
    """Parameters that the other figures do not determine, alone or together."""
    rows: list[PublishedRow]
    """Its figures as the rest predicts them; one that the rest does not determine has no value."""


@dataclass(frozen=True)
class FitResult:
    """What a fit found."""

    before: dict[str, float]
    values: dict[str, float]
    """Every parameter it may move, as it stood and as it was found."""
    rows: list[PublishedRow]
    """The figures it was held to, at the values found."""
    left_out: list[ValidationGroup]
    trials: int
    """How often the study was run."""


@dataclass
class _Fit:
    trials: TrialRunner
    names: list[str]
    bounds: list[tuple[float, float]]
    group_of: Callable[[PublishedRow], str]
    count: int = 0
    groups: list[str] = field(default_factory=list)

    def rows(self, points: Sequence[Vector]) -> list[list[PublishedRow]]:
        self.count += len(points)
        return self.trials.rows([dict(zip(self.names, map(float, point), strict=True)) for point in points])

    def search(self, start: Sequence[float]) -> Solution:
        def residuals(points: list[Vector]) -> list[Vector]:
            return [np.array([residual_of(row) for row in rows]) for rows in self.rows(points)]

        return least_squares(residuals, start, self.bounds)

    def named(self, values: Vector) -> dict[str, float]:
        return {name: float(value) for name, value in zip(self.names, values, strict=True)}


def fit_study(
    loaded: LoadedStudy, mapping: Mapping, *, leave_one_out: bool = False, note: Note = lambda _text: None
) -> FitResult:
    """Find the parameters of a study's hardware anew; its mapping has a ``[fit]``.

    With ``leave_one_out`` each group of figures is also left out in turn. ``note`` is told how far it is.
    """
    spec = mapping.quantities.fit
    if spec is None:
        raise InputError.one("quantities.toml", "has no [fit]", accepted="a study with fitted parameters")
    runner = PoolRunner(StopFlag())
    try:
        fit = _Fit(
            TrialRunner(loaded, mapping, runner),
            list(spec.parameters),
            [(low, high) for low, high in spec.parameters.values()],
            {"table": lambda row: row.table, "claim": lambda row: row.id, "row": _row_of}[spec.leave_out],
        )
        start = [start_of(loaded, mapping.quantities.target, name) for name in fit.names]
        found = fit.search(start)
        note(f"{fit.count} trials; sum of squares {found.cost:.4g}")
        [rows] = fit.rows([found.values])
        left = [_left_out(fit, found, rows, group, note) for group in _groups(fit, rows)] if leave_one_out else []
        return FitResult(fit.named(np.array(start)), fit.named(found.values), rows, left, fit.count)
    finally:
        runner.close()


def residual_of(row: PublishedRow) -> float:
    """How far a figure is off, in units of what is tolerated."""
    ends, value = row.published.ends(), row.value
    assert ends is not None and value is not None, "only figures that were compared are fitted to"
    printed = number(row.published.value)
    if printed is None:
        # Anywhere within a range is as good.
        low, high = ends
        nearest = min(max(value, low), high)
        return (value - nearest) / (abs(nearest) or 1.0) / TOLERANCE
    if row.published.is_percent:
        return (value - printed) / 100 / TOLERANCE
    rounding = half_unit(row.published.value) / abs(printed) if printed else 0.0
    return math.log(max(value, 1e-12) / printed) / math.hypot(TOLERANCE, rounding)


def start_of(loaded: LoadedStudy, target: str, name: str) -> float:
    """Where a parameter stands now."""
    if not name.startswith(DEVICE):
        known = loaded.hardware[target].parameters
        if name not in known:
            raise InputError.one("quantities.toml: fit.parameters", "is no parameter", value=f"'{name}'")
        return known[name].value
    found: object = loaded.geometry.devices[target].parameters
    for step in name.removeprefix(DEVICE).split("."):
        found = found.get(step) if isinstance(found, dict) else None
    if not isinstance(found, int | float):
        raise InputError.one("quantities.toml: fit.parameters", "is no number of the device", value=f"'{name}'")
    return float(found)


def _row_of(row: PublishedRow) -> str:
    """The row of a table: its label without the column."""
    return row.id.rpartition(":")[0] or row.id


def _groups(fit: _Fit, rows: list[PublishedRow]) -> list[str]:
    found = list(dict.fromkeys(fit.group_of(row) for row in rows))
    return found if len(found) > 1 else []


def _left_out(fit: _Fit, whole: Solution, rows: list[PublishedRow], group: str, note: Note) -> ValidationGroup:
    kept = np.array([fit.group_of(row) != group for row in rows])
    jacobian = whole.jacobian[kept]
    step = np.linalg.lstsq(jacobian, -whole.residuals[kept], rcond=_RCOND)[0]
    low, high = np.array(fit.bounds).T
    [there] = fit.rows([np.clip(whole.values + step * (high - low), low, high)])
    open_names = _undetermined(fit.names, jacobian)
    mine = [row for row in there if fit.group_of(row) == group]
    if open_names:
        # A parameter that nothing holds stands where the left-out figures had put it: that is no prediction of them.
        mine = [replace(row, value=None, error=None) for row in mine]
    errors = [abs(row.error or 0.0) for row in mine if row.value is not None]
    middle, largest = (median(errors), max(errors)) if errors else (None, None)
    said = f"median error {middle:.2g}, largest {largest:.2g}" if errors else "the rest does not determine it"
    note(f"without {group}: {said}")
    return ValidationGroup(group, len(mine), middle, largest, open_names, mine)


def _undetermined(names: list[str], jacobian: NDArray[np.float64]) -> list[str]:
    """Parameters that could move without the figures changing."""
    _, strengths, directions = np.linalg.svd(jacobian, full_matrices=True)
    padded = np.zeros(len(names))
    padded[: strengths.size] = strengths
    loose = directions[padded * ASIDE < _INSENSITIVE]
    return [name for index, name in enumerate(names) if np.any(np.abs(loose[:, index]) > _SHARE)]


__all__ = ["DEVICE", "FitResult", "ValidationGroup", "fit_study", "residual_of", "start_of", "write_values"]
