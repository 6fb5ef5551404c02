"""Many comparisons at once: what is left of their probabilities.

Invariants:

- The chance that any of the comparisons of things that do not differ is called a difference is at most the level,
  whatever the comparisons have to do with one another.
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Probabilities, corrected for their number.

    Parameters
    ----------
    p_values : sequence of float
        0 to 1, one a comparison.

    Returns
    -------
    list of float
        In the same order, at least as large and at most 1; compare them with the level itself.

    References
    ----------
    S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979) 65-70.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = largest
    return corrected


def holm_levels(p_values: Sequence[float], level: float) -> list[float]:
    """The level at which the procedure judged each comparison: that of an interval that agrees with its verdict.

    The smallest probability is held against ``level / n``, the next against ``level / (n - 1)``, until one is not
    below; that one and all after it are judged at the level it failed. An interval at the level so found leaves out
    "the same" where, and only where, the corrected probability is below ``level``. Each covers what it claims on its
    own; that all of a family do so at once is not promised.

    Parameters
    ----------
    p_values : sequence of float
        As for `holm`, not corrected.
    level : float
        That of the family, 0 to 1.

    Examples
    --------
    >>> [round(level, 4) for level in holm_levels([0.01, 0.04, 0.03], 0.05)]
    [0.0167, 0.025, 0.025]
    """
    levels = [level] * len(p_values)
    at, failed = level, False
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        if not failed:
            at = level / (len(p_values) - place)
            failed = p_values[index] >= at
        levels[index] = at
    return levels
