"""Values with a known truth: independent, correlated, heavy-tailed, of two modes.

Invariants:

- A model's mean and percentiles are closed forms, not estimates.
- Rows are independent of one another; within a row values stand in the order of their occurrence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.special import normal_cdf, normal_quantile

Rows = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Rows]


@dataclass(frozen=True)
class Model:
    """A stationary series.

    Attributes
    ----------
    name : str
    draw : callable
        Takes a generator, the number of rows and their length.
    mean : float
    quantile : callable
        Of a share, 0 to 1.
    correlated : bool
    largest : int
        The length of series up to which the model is worth drawing: correlated ones need more.
    """

    name: str
    draw: Draw
    mean: float
    quantile: Callable[[float], float]
    correlated: bool = False
    largest: int = 10_000


def _normal(rng: np.random.Generator, rows: int, n: int) -> Rows:
    return 100 + rng.standard_normal((rows, n))


def _exponential(rng: np.random.Generator, rows: int, n: int) -> Rows:
    return rng.standard_exponential((rows, n))


def _autoregressive(phi: float) -> Draw:
    def draw(rng: np.random.Generator, rows: int, n: int) -> Rows:
        waves = rng.standard_normal((n, rows))
        waves[1:] *= math.sqrt(1 - phi * phi)
        for i in range(1, n):
            waves[i] += phi * waves[i - 1]
        return 100 + np.ascontiguousarray(waves.T)

    return draw


def _lognormal(sigma: float) -> Draw:
    return lambda rng, rows, n: np.exp(sigma * rng.standard_normal((rows, n)))


def _correlated_lognormal(phi: float) -> Draw:
    waves = _autoregressive(phi)
    return lambda rng, rows, n: np.exp(waves(rng, rows, n) - 100)


def _pareto(exponent: float) -> Draw:
    return lambda rng, rows, n: 1 + rng.pareto(exponent, (rows, n))


# A cache in front of a disk: nine of ten requests take 0.1 ms, the tenth 8 ms.
_SLOW, _HIT_MS, _MISS_MS, _HIT_SPREAD, _MISS_SPREAD = 0.1, 0.1, 8.0, 0.01, 1.0


def _bimodal(rng: np.random.Generator, rows: int, n: int) -> Rows:
    slow = rng.random((rows, n)) < _SLOW
    noise = rng.standard_normal((rows, n))
    return np.where(slow, _MISS_MS + _MISS_SPREAD * noise, _HIT_MS + _HIT_SPREAD * noise)


def _bimodal_quantile(share: float) -> float:
    low, high = 0.0, 2 * _MISS_MS
    while high - low > 1e-12:
        middle = (low + high) / 2
        below = (1 - _SLOW) * normal_cdf((middle - _HIT_MS) / _HIT_SPREAD)
        below += _SLOW * normal_cdf((middle - _MISS_MS) / _MISS_SPREAD)
        low, high = (middle, high) if below < share else (low, middle)
    return (low + high) / 2


def _normal_quantile(share: float) -> float:
    return 100 + normal_quantile(share)


MODELS: tuple[Model, ...] = (
    Model("normal", _normal, 100.0, _normal_quantile),
    Model("exponential", _exponential, 1.0, lambda share: -math.log1p(-share)),
    Model("bimodal latency", _bimodal, _SLOW * _MISS_MS + (1 - _SLOW) * _HIT_MS, _bimodal_quantile),
    Model("lognormal, sigma 1", _lognormal(1.0), math.exp(0.5), lambda share: math.exp(normal_quantile(share))),
    Model("lognormal, sigma 1.5", _lognormal(1.5), math.exp(1.125), lambda s: math.exp(1.5 * normal_quantile(s))),
    Model("Pareto, exponent 2.5", _pareto(2.5), 2.5 / 1.5, lambda share: (1 - share) ** (-1 / 2.5)),
    Model("Pareto, exponent 1.5", _pareto(1.5), 3.0, lambda share: (1 - share) ** (-1 / 1.5)),
    Model("AR(0.5)", _autoregressive(0.5), 100.0, _normal_quantile, True),
    Model("AR(0.9)", _autoregressive(0.9), 100.0, _normal_quantile, True),
    Model("AR(0.99)", _autoregressive(0.99), 100.0, _normal_quantile, True, 30_000),
    Model(
        "lognormal AR(0.9)",
        _correlated_lognormal(0.9),
        math.exp(0.5),
        lambda share: math.exp(normal_quantile(share)),
        True,
    ),
)
