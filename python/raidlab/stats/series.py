"""A series of values, as all methods take it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def as_array(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Values as floating point numbers; a `ValueError` where they are not one row of finite ones."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ValueError(f"values must be one row of finite numbers; they have the shape {array.shape}")
    return array
