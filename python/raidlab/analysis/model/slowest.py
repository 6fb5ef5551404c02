"""Waiting for the slowest of several disks that work for one request.

Each disk takes a time of its own, drawn from the same distribution; the k-th begins k times a gap later than the first.
The request is done when the last of them is.

Invariant: exact for the times given, whatever their distribution; nothing is drawn here.

Reference: Chen, Gibson, Katz, Patterson, *An Evaluation of Redundant Arrays of Disks using an Amdahl 5890*, SIGMETRICS
1990, section 7.1.1 (without a gap, and for rotations alone: n/(n+1) of a revolution).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_PLACES = 2000


def mean_of_slowest(times: npt.ArrayLike, disks: int, gap: float = 0.0) -> float:
    """The mean time from the first beginning to the last end of several independent disks.

    Each of the ``times`` of one disk is equally likely; the disks begin one after another, a ``gap`` apart.

    Examples
    --------
    Either of two disks takes 0 or 6, so three times in four one of them takes 6:

    >>> mean_of_slowest([0.0, 6.0], 2)
    4.5

    If the second begins 6 later, it is the last, whatever it takes:

    >>> mean_of_slowest([0.0, 6.0], 2, gap=6.0)
    9.0
    """
    known = np.sort(np.asarray(times, dtype=float))
    if known.size == 0 or disks < 1 or gap < 0:
        raise ValueError("at least one time, at least one disk and a gap of at least 0 are needed")
    delays = gap * np.arange(disks)
    ends = np.unique(known[:, None] + delays[None, :]) if gap else np.unique(known)
    done = np.ones(ends.size)
    for delay in delays:
        done *= np.searchsorted(known, ends - delay, side="right") / known.size
    # The mean is the integral of the chance that it is not yet done; that chance changes only at an end.
    return float(ends[-1] - np.sum(done[:-1] * np.diff(ends)))


def rotations(revolution: float) -> npt.NDArray[np.float64]:
    """Times until sectors come round that may be anywhere: equally likely up to a whole revolution.

    Examples
    --------
    >>> round(mean_of_slowest(rotations(16.7), 10), 1)
    15.2
    """
    return revolution * (np.arange(_PLACES) + 0.5) / _PLACES
