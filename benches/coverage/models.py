"""Values with a known truth: independent, correlated, heavy-tailed, of a queue, of long memory, with rare slow ones.

Invariants:

- A model's mean and percentiles are closed forms, not estimates.
- Rows are independent of one another; within a row values stand in the order of their occurrence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.special import normal_cdf

_NORMAL = NormalDist()
Rows = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Rows]


@dataclass(frozen=True)
class Model:
    """A stationary series of values above 0.

    Attributes
    ----------
    name : str
    draw : callable
        Takes a generator, the number of rows and their length.
    mean : float
    quantile : callable
        Of a share, 0 to 1.
    length : int
        Values of one repeat.
    """

    name: str
    draw: Draw
    mean: float
    quantile: Callable[[float], float]
    length: int = 1000


def autoregressive(phi: float) -> Draw:
    """Standard normal values around 100, each phi times the last and noise."""

    def draw(rng: np.random.Generator, rows: int, n: int) -> Rows:
        waves = rng.standard_normal((n, rows))
        waves[1:] *= math.sqrt(1 - phi * phi)
        for i in range(1, n):
            waves[i] += phi * waves[i - 1]
        return 100 + np.ascontiguousarray(waves.T)

    return draw


def long_memory(hurst: float) -> Draw:
    """Fractional Gaussian noise around 100, exact, by circulant embedding (Davies and Harte, Biometrika 74, 1987)."""

    def draw(rng: np.random.Generator, rows: int, n: int) -> Rows:
        lag = np.arange(n + 1.0)
        power = 2 * hurst
        covariance = ((lag + 1) ** power - 2 * lag**power + np.abs(lag - 1) ** power) / 2
        spectrum = np.fft.fft(np.concatenate([covariance, covariance[1:-1][::-1]])).real.clip(0)
        size = spectrum.size
        noise = rng.standard_normal((rows, size)) + 1j * rng.standard_normal((rows, size))
        return np.ascontiguousarray(100 + np.fft.fft(noise * np.sqrt(spectrum / size), axis=1).real[:, :n])

    return draw


def queue(utilisation: float) -> Draw:
    """Response times of M/M/1 in equilibrium, services of mean 1, by Lindley's recursion written as sums."""

    def draw(rng: np.random.Generator, rows: int, n: int) -> Rows:
        services = rng.standard_exponential((rows, n))
        gaps = rng.standard_exponential((rows, n)) / utilisation
        services[:, 0] = rng.standard_exponential(rows) / (1 - utilisation)
        gaps[:, 0] = 0.0
        # The wait of a request is how far the work brought stands above its lowest so far.
        steps = np.zeros((rows, n))
        steps[:, 1:] = np.cumsum(services[:, :-1] - gaps[:, 1:], axis=1)
        return services + steps - np.minimum.accumulate(steps, axis=1)

    return draw


# A cache in front of a disk: nine of ten requests take 0.1 ms, the tenth 8 ms.
_SLOW, _HIT_MS, _MISS_MS, _HIT_SPREAD, _MISS_SPREAD = 0.1, 0.1, 8.0, 0.01, 1.0
# One request of fifty is slow, two hundred of them in a row.
_BURST_SHARE, _BURST, _BURST_FACTOR = 0.02, 200, 20.0


def _bimodal(rng: np.random.Generator, rows: int, n: int) -> Rows:
    slow = rng.random((rows, n)) < _SLOW
    noise = rng.standard_normal((rows, n))
    return np.maximum(1e-3, np.where(slow, _MISS_MS + _MISS_SPREAD * noise, _HIT_MS + _HIT_SPREAD * noise))


def _bimodal_cdf(value: float) -> float:
    hits = (1 - _SLOW) * normal_cdf((value - _HIT_MS) / _HIT_SPREAD)
    return hits + _SLOW * normal_cdf((value - _MISS_MS) / _MISS_SPREAD)


def _bursts(rng: np.random.Generator, rows: int, n: int) -> Rows:
    # Whether a stretch of 200 is slow is drawn for each; the first begins anywhere within one.
    stretches = rng.random((rows, n // _BURST + 2)) < _BURST_SHARE
    places = (np.arange(n) + rng.integers(0, _BURST, (rows, 1))) // _BURST
    slow = np.take_along_axis(stretches, places, axis=1)
    return rng.standard_exponential((rows, n)) * np.where(slow, _BURST_FACTOR, 1.0)


def _bursts_cdf(value: float) -> float:
    return 1 - (1 - _BURST_SHARE) * math.exp(-value) - _BURST_SHARE * math.exp(-value / _BURST_FACTOR)


def _inverse(cdf: Callable[[float], float]) -> Callable[[float], float]:
    def quantile(share: float) -> float:
        low, high = 0.0, 1000.0
        while high - low > 1e-10:
            middle = (low + high) / 2
            low, high = (middle, high) if cdf(middle) < share else (low, middle)
        return (low + high) / 2

    return quantile


def _normal_quantile(share: float) -> float:
    return 100 + _NORMAL.inv_cdf(share)


def _queue(utilisation: float, length: int) -> Model:
    rate = 1 - utilisation
    name = f"M/M/1 at {utilisation:g}, {length:,}"
    return Model(name, queue(utilisation), 1 / rate, lambda share: -math.log1p(-share) / rate, length)


def _lognormal(sigma: float) -> Model:
    return Model(
        f"lognormal, sigma {sigma:g}",
        lambda rng, rows, n: np.exp(sigma * rng.standard_normal((rows, n))),
        math.exp(sigma * sigma / 2),
        lambda share: math.exp(sigma * _NORMAL.inv_cdf(share)),
    )


def _pareto(exponent: float) -> Model:
    return Model(
        f"Pareto, exponent {exponent:g}",
        lambda rng, rows, n: 1 + rng.pareto(exponent, (rows, n)),
        exponent / (exponent - 1),
        lambda share: (1 - share) ** (-1 / exponent),
    )


EXPONENTIAL = Model(
    "exponential", lambda rng, rows, n: rng.standard_exponential((rows, n)), 1.0, lambda s: -math.log1p(-s)
)

MODELS: tuple[Model, ...] = (
    EXPONENTIAL,
    Model("exponential, 500", EXPONENTIAL.draw, 1.0, EXPONENTIAL.quantile, 500),
    Model("bimodal", _bimodal, _SLOW * _MISS_MS + (1 - _SLOW) * _HIT_MS, _inverse(_bimodal_cdf)),
    _lognormal(1.0),
    _lognormal(1.5),
    _pareto(2.5),
    _pareto(1.5),
    Model("AR(0.5)", autoregressive(0.5), 100.0, _normal_quantile),
    Model("AR(0.9)", autoregressive(0.9), 100.0, _normal_quantile),
    Model("long memory, H 0.7", long_memory(0.7), 100.0, _normal_quantile),
    _queue(0.7, 1000),
    _queue(0.7, 10_000),
    _queue(0.9, 10_000),
    Model(
        "bursts of 200, 10,000",
        _bursts,
        1 + _BURST_SHARE * (_BURST_FACTOR - 1),
        _inverse(_bursts_cdf),
        10_000,
    ),
)
