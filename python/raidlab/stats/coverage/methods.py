"""The methods that the grid holds to their word, each through the function that everything else calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import Answer
from raidlab.stats.batch_means import batch_means
from raidlab.stats.block_bootstrap import bootstrap, bootstrap_mean
from raidlab.stats.coverage.models import Model
from raidlab.stats.interval import student
from raidlab.stats.percentile import TESTED_FROM, percentile_of_values
from raidlab.stats.series_percentile import percentile_of_series
from raidlab.stats.tail import tail_index

SIZES = (30, 100, 300, 500, 1000, 3000, 10_000, 30_000)
REPEATS = (3, 5, 10, 30)
REQUESTS_A_REPEAT = 1000
_RESAMPLES = 119

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Method:
    """One row of tables in the grid.

    Attributes
    ----------
    name : str
    answer : callable
        Takes one row of values and a seed.
    truth : callable
        What the interval should hold, of a model.
    sizes : tuple of int
        Values a row; for `repeated`, repeats of 1000 values each.
    exact : bool
        Whether covering more often than asked is the method's nature: ranks are whole numbers.
    repeated : bool
        Whether a row is several runs, one after another.
    vouched_below : int
        Below so many values the caller vouches that they are independent, and correlated models are not asked.
    """

    name: str
    answer: Callable[[Values, int], Answer]
    truth: Callable[[Model], float]
    sizes: tuple[int, ...] = SIZES
    exact: bool = False
    repeated: bool = False
    vouched_below: int = 0

    def asks(self, model: Model, size: int) -> bool:
        """Whether this method is tried on a model at a size."""
        return size in self.sizes and size <= model.largest and not (model.correlated and size < self.vouched_below)


def _student_over_repeats(values: Values, _seed: int) -> Answer:
    repeats = values.reshape(-1, REQUESTS_A_REPEAT).mean(axis=1)
    return student(repeats.tolist(), tail=tail_index(values))


def _mean(model: Model) -> float:
    return model.mean


def _percentile_methods(percentile: float) -> tuple[Method, Method]:
    def truth(model: Model) -> float:
        return model.quantile(percentile / 100)

    return (
        Method(
            f"p{percentile:g} by ranks",
            lambda values, _seed: percentile_of_values(values, percentile),
            truth,
            sizes=SIZES[:-1],
            exact=True,
            vouched_below=TESTED_FROM,
        ),
        Method(
            f"p{percentile:g} by ranks of a series",
            lambda values, _seed: percentile_of_series(values, percentile),
            truth,
        ),
    )


def _p90(rows: Values) -> Values:
    at = int(np.ceil(0.9 * rows.shape[1])) - 1
    return np.asarray(np.partition(rows, at, axis=1)[:, at])


METHODS: tuple[Method, ...] = (
    Method("mean by Student's t over repeats", _student_over_repeats, _mean, sizes=REPEATS, repeated=True),
    Method("mean by batch means", lambda values, _seed: batch_means(values), _mean),
    Method("mean by block bootstrap", lambda values, seed: bootstrap_mean(values, seed, resamples=_RESAMPLES), _mean),
    Method(
        "p90 by block bootstrap",
        lambda values, seed: bootstrap(values, _p90, seed, resamples=_RESAMPLES),
        lambda model: model.quantile(0.9),
        sizes=(500, 1000),
    ),
    *_percentile_methods(50),
    *_percentile_methods(90),
    *_percentile_methods(99),
)
