"""A figure with what its repeats say of it, as flat keys of a table."""

from __future__ import annotations

from raidlab.stats.answer import Answer

Figure = dict[str, float | str | None]


def figure(name: str, value: float | None, answer: Answer) -> Figure:
    """A value and the 95 % interval of its repeats, under ``name``, ``name_low`` and ``name_high``.

    Parameters
    ----------
    value : float or None
        Of all repeats together.
    answer : Answer
        What the repeats say: `student` of their means or rates, `percentile_of_repeats` of their times. None of what
        is measured here is below 0.

    Returns
    -------
    dict
        With the reason under ``name_no_interval`` where there is none, None otherwise.

    Examples
    --------
    >>> from raidlab.stats.interval import student
    >>> figure("iops", 11.0, student([10.0]))
    {'iops': 11.0, 'iops_low': None, 'iops_high': None, 'iops_no_interval': 'too_few_samples'}
    """
    low, high = answer.interval if answer.interval is not None and value is not None else (None, None)
    return {
        name: value,
        f"{name}_low": None if low is None else max(0.0, low),
        f"{name}_high": high,
        f"{name}_no_interval": None if answer.reason is None else answer.reason.value,
    }
