"""Least squares over a function that is expensive and a little rough: damped Gauss-Newton within bounds.

Invariants:

- Every value tried lies within its bounds, and the best one tried is what is given back.
- Derivatives are differences over a step that is large against the roughness of a simulation (`STEP` of the bounds'
  width), so its last digits do not matter.
- The function is asked for all points of one derivative together, so that they can be run side by side.

Reference: K. Levenberg, A method for the solution of certain non-linear problems in least squares, 1944;
D. W. Marquardt, An algorithm for least-squares estimation of nonlinear parameters, 1963.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEP = 0.01
_DAMPING, _SOFTER, _HARDER = 1e-2, 0.3, 4.0
_MOST_DAMPING = 1e4
# A step that improves the sum of squares by less than this share is the last one.
_ENOUGH = 1e-3

Vector = NDArray[np.float64]
Residuals = Callable[[list[Vector]], list[Vector]]


@dataclass(frozen=True)
class Solution:
    """What a search found."""

    values: Vector
    """The parameters."""
    residuals: Vector
    jacobian: NDArray[np.float64]
    """Of the residuals by the parameters, each over the width of its bounds."""
    evaluations: int
    """How often the function was asked."""

    @property
    def cost(self) -> float:
        """The sum of squares."""
        return float(self.residuals @ self.residuals)


def least_squares(
    residuals: Residuals,
    start: Sequence[float],
    bounds: Sequence[tuple[float, float]],
    *,
    iterations: int = 12,
) -> Solution:
    """Find parameters within bounds, in so many steps, for which the residuals have the least sum of squares.

    ``residuals`` takes a list of parameter vectors, and gives the residuals of each.

    Examples
    --------
    >>> def line(points):
    ...     return [np.array([p[0] + p[1] - 3.0, p[0] - p[1] - 1.0]) for p in points]
    >>> [round(float(v), 6) for v in least_squares(line, [0.0, 0.0], [(-10, 10), (-10, 10)]).values]
    [2.0, 1.0]
    """
    low, high = np.array([one[0] for one in bounds], float), np.array([one[1] for one in bounds], float)
    width = high - low
    # All parameters run from 0 to 1, so that one damping suits them all.
    at = np.clip((np.array(start, float) - low) / width, 0.0, 1.0)
    asked = 0

    def ask(points: list[Vector]) -> list[Vector]:
        nonlocal asked
        asked += len(points)
        return residuals([low + point * width for point in points])

    [here] = ask([at])
    damping = _DAMPING
    slope = _jacobian(ask, at, here)
    for _ in range(iterations):
        moved = False
        while not moved and damping < _MOST_DAMPING:
            normal = slope.T @ slope
            scale = np.diag(normal) + 1e-9 * max(1e-12, float(np.max(np.diag(normal), initial=0.0)))
            step = np.linalg.solve(normal + damping * np.diag(scale), -slope.T @ here)
            candidate = np.clip(at + step, 0.0, 1.0)
            [there] = ask([candidate])
            moved = float(there @ there) < float(here @ here)
            damping = max(damping * (_SOFTER if moved else _HARDER), 1e-7)
        if not moved:
            break
        gained = 1 - float(there @ there) / float(here @ here) if float(here @ here) else 0.0
        at, here = candidate, there
        slope = _jacobian(ask, at, here)
        if gained < _ENOUGH:
            break
    return Solution(low + at * width, here, slope, asked)


def _jacobian(ask: Residuals, at: Vector, here: Vector) -> NDArray[np.float64]:
    """Differences towards the inside of the bounds."""
    steps = np.where(at + STEP <= 1.0, STEP, -STEP)
    points = []
    for index, step in enumerate(steps):
        point = at.copy()
        point[index] += step
        points.append(point)
    found = ask(points)
    return np.stack([(one - here) / step for one, step in zip(found, steps, strict=True)], axis=1)
