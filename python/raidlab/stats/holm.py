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
