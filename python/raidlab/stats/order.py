"""The order in which configurations are run.

Invariants:

- Each repeat is complete before the next begins, so that a drift of the machine hits all configurations alike.
- Within a repeat the order is shuffled by seed, so that no configuration always follows the same other one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def interleaved(items: Iterable[T], repeat_of: Callable[[T], int], seed_of: Callable[[int], int]) -> list[T]:
    """Order items repeat by repeat, shuffled within each.

    Parameters
    ----------
    items : iterable
        What is to be run, each item once for each of its repeats.
    repeat_of : callable
        The repeat an item belongs to.
    seed_of : callable
        The seed of a repeat's order; the same on every machine for one run.

    References
    ----------
    T. Mytkowicz, A. Diwan, M. Hauswirth and P. F. Sweeney, Producing wrong data without doing anything obviously
    wrong, ASPLOS 2009, 265-276 (what orders do, and that randomising mends it).

    Examples
    --------
    >>> runs = [(name, repeat) for name in "abc" for repeat in (0, 1)]
    >>> order = interleaved(runs, lambda run: run[1], lambda repeat: 7 + repeat)
    >>> [run[1] for run in order], sorted(order[:3])
    ([0, 0, 0, 1, 1, 1], [('a', 0), ('b', 0), ('c', 0)])
    """
    by_repeat: dict[int, list[T]] = {}
    for item in items:
        by_repeat.setdefault(repeat_of(item), []).append(item)
    order: list[T] = []
    for repeat in sorted(by_repeat):
        random.Random(seed_of(repeat)).shuffle(by_repeat[repeat])
        order.extend(by_repeat[repeat])
    return order
