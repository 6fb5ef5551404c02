"""A figure with what its repeats say of it, as flat keys of a table."""

from __future__ import annotations

from collections.abc import Sequence

from raidlab.stats.interval import mean_interval


def figure(name: str, value: float | None, each: Sequence[float]) -> dict[str, float | None]:
    """A value and the 95 % interval of its repeats, under ``name``, ``name_low`` and ``name_high``.

    Parameters
    ----------
    name : str
    value : float or None
        Of all repeats together.
    each : sequence of float
        The value of each repeat; fewer than two have no interval. None of what is measured here is below 0.

    Examples
    --------
    >>> figure("iops", 11.0, [10.0])
    {'iops': 11.0, 'iops_low': None, 'iops_high': None}
    """
    interval = mean_interval(each) if value is not None else None
    low, high = (max(0.0, interval[0]), interval[1]) if interval is not None else (None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}
