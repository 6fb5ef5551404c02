"""How far a model's response times are from measured ones: the demerit figure.

The root mean square of the horizontal distance between the two cumulative distributions, over equal steps of
probability.

Reference: C. Ruemmler and J. Wilkes, *An introduction to disk drive modeling*, IEEE Computer 27(3), 1994.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

STEPS = 10_000


def quantiles(values: npt.ArrayLike, steps: int = STEPS) -> npt.NDArray[np.float64]:
    """The values at the middle of each of ``steps`` equal steps of probability, linear between order statistics."""
    found: npt.NDArray[np.float64] = np.quantile(np.asarray(values, dtype=np.float64), (np.arange(steps) + 0.5) / steps)
    return found


def demerit(measured: npt.ArrayLike, modelled: npt.ArrayLike) -> float:
    """The demerit figure, in the unit of the values.

    Parameters
    ----------
    measured, modelled : array_like
        Response times; as many of each as there are.

    Examples
    --------
    >>> demerit([1.0, 2.0, 3.0], [3.5, 1.5, 2.5])
    0.5
    """
    apart = quantiles(measured) - quantiles(modelled)
    return float(np.sqrt(np.mean(apart * apart)))
