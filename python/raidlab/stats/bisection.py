"""Where something turns between two places, halved until the two are close.

Invariant: the first place is always one where it has not turned, the second one where it has.
"""

from __future__ import annotations

from collections.abc import Callable


def bisected(
    before: float,
    beyond: float,
    is_before: Callable[[float], bool | None],
    is_close: Callable[[float, float], bool],
) -> tuple[float, float] | None:
    """Two places between which it turns that are close; None where ``is_before`` cannot say.

    Parameters
    ----------
    before, beyond : float
        Places on either side, in whatever order and on whatever scale.
    is_before : callable
        Whether it has not turned at a place; None where that cannot be found out.
    is_close : callable
        Whether two places, the one before and the one beyond, are near enough.

    Examples
    --------
    >>> bisected(0.0, 8.0, lambda place: place < 5.3, lambda a, b: abs(a - b) <= 0.5)
    (5.0, 5.5)
    """
    while not is_close(before, beyond):
        middle = (before + beyond) / 2
        found = is_before(middle)
        if found is None:
            return None
        before, beyond = (middle, beyond) if found else (before, middle)
    return before, beyond
