"""The interval of any statistic of values that depend on one another: blocks of them are drawn again and again.

Blocks of neighbours keep what neighbours have to do with one another. For the mean, each resample is studentised by
its own blocks, which also bends the interval for skewed values; for other statistics the spread of the resamples is
taken as it is.

Invariants:

- Blocks wrap around the end of the series, so that every value is drawn as often as any other.
- The same values and seed give the same interval.
- The mean is refused where `batch_means` refuses it; other statistics where too few effective values are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from raidlab.stats.answer import CONFIDENCE, Answer, Reason
from raidlab.stats.ranks import mid_ranks
from raidlab.stats.series import Judgement, as_array, judge
from raidlab.stats.special import normal_quantile, t_quantile

METHOD = "block bootstrap"
RESAMPLES = 999
_LEAST_BLOCKS = 20
# More blocks than these cost time and tell nothing more.
_MOST_BLOCKS = 400
# Resampled values held in memory at once.
_CHUNK = 4_000_000

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def bootstrap_mean(
    values: Sequence[float] | NDArray[np.float64],
    seed: int,
    confidence: float = CONFIDENCE,
    *,
    resamples: int = RESAMPLES,
    judge_tail: bool = True,
) -> Answer:
    """The mean of a steady series, with its interval by the studentised block bootstrap.

    Parameters
    ----------
    values : sequence of float
        Shape (n,), any unit, in the order of their occurrence, the warm-up cut (`mser5`).
    seed : int
        At least 0.
    confidence : float
        0 to 1.
    resamples : int
        How many; one less than a multiple of 40 gives exact ranks at 95 %.
    judge_tail : bool
        As in `batch_means`.

    Returns
    -------
    Answer
        Reasons as for `batch_means`.

    References
    ----------
    H. R. Kuensch, The jackknife and the bootstrap for general stationary observations, Annals of Statistics 17 (1989)
    1217-1241; D. N. Politis and J. P. Romano, A circular block resampling procedure for stationary data (1992); F.
    Goetze and H. R. Kuensch, Second-order correctness of the blockwise bootstrap, Annals of Statistics 24 (1996)
    1914-1933 (studentising).

    Examples
    --------
    >>> answer = bootstrap_mean(np.random.default_rng(1).normal(10.0, 1.0, 2000), seed=1)
    >>> answer.low < 10.0 < answer.high
    True
    """
    series = as_array(values)
    judged = judge(series, method=METHOD, confidence=confidence, judge_tail=judge_tail)
    if judged.refusal is not None:
        return judged.refusal
    n, mean = series.size, float(series.mean())
    length = _length(series)
    blocks = n // length
    if blocks < _LEAST_BLOCKS:
        return _few_blocks(blocks, length, n, mean, confidence)
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([series, series[:length]]) - mean)])
    block_means = (sums[length : length + n] - sums[:n]) / length
    drawn = block_means[np.random.default_rng(seed).integers(0, n, (resamples, blocks))]
    spread = drawn.std(axis=1, ddof=1)
    deviations = np.sort(drawn.mean(axis=1)[spread > 0] / spread[spread > 0])
    if deviations.size == 0:
        return Answer(mean, mean, mean, confidence, METHOD, n)
    low, high = _outer(deviations, confidence)
    # The mean of each block is nearer to the mean of all the longer the blocks are.
    scale = float(block_means.std()) * math.sqrt(blocks / (blocks - 1) / (1 - length / n)) * judged.allowance
    return Answer(mean, mean - high * scale, mean - low * scale, confidence, METHOD, n)


def bootstrap(
    values: Sequence[float] | NDArray[np.float64],
    statistic: Statistic,
    seed: int,
    confidence: float = CONFIDENCE,
    *,
    resamples: int = RESAMPLES,
) -> Answer:
    """Any statistic of a steady series that depends smoothly on it, with its interval.

    Parameters
    ----------
    values : sequence of float
        Shape (n,), any unit, in the order of their occurrence, the warm-up cut (`mser5`).
    statistic : callable
        Takes an array of shape (m, n), gives the statistic of each row, shape (m,). A mean is for `bootstrap_mean`,
        which looks at the tail as well.
    seed : int
        At least 0.
    confidence : float
        0 to 1.
    resamples : int
        How many; each costs as much as the statistic itself.

    Returns
    -------
    Answer
        `TOO_FEW_SAMPLES` below 500 values, 100 effective ones or 20 blocks.

    References
    ----------
    As for `bootstrap_mean`; the interval is that of percentiles, widened by Student's quantile for the number of
    blocks.

    Examples
    --------
    >>> values = np.random.default_rng(1).normal(10.0, 1.0, 1000)
    >>> answer = bootstrap(values, lambda rows: np.median(rows, axis=1), seed=1, resamples=199)
    >>> answer.low < 10.0 < answer.high
    True
    """
    series = as_array(values)
    # What the series is worth is judged by the ranks of its values: the statistic may not mind their tails.
    ranks = mid_ranks(series)
    judged = _judged_by_ranks(series, ranks, statistic, confidence)
    if judged.refusal is not None:
        return judged.refusal
    n, value = series.size, float(statistic(series[None, :])[0])
    length = max(_length(series), _length(ranks))
    blocks = n // length
    if blocks < _LEAST_BLOCKS:
        return _few_blocks(blocks, length, n, value, confidence)
    found = np.sort(_resampled(series, statistic, length, resamples, seed))
    low, high = _outer(found, confidence)
    quantile = (1 + confidence) / 2
    student = t_quantile(quantile, blocks - 1) / normal_quantile(quantile)
    scale = student * math.sqrt(1 / (1 - length / n)) * judged.allowance
    return Answer(value, value + (low - value) * scale, value + (high - value) * scale, confidence, METHOD, n)


def block_length(values: NDArray[np.float64]) -> float:
    """The length of blocks that serves the mean best, chosen by the autocorrelation.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (n,), in the order of their occurrence, n at least 10.

    Returns
    -------
    float
        In values, at least 1, for blocks that wrap around the end.

    References
    ----------
    D. N. Politis and H. White, Automatic block-length selection for the dependent bootstrap, Econometric Reviews 23
    (2004) 53-70; correction by A. Patton, D. N. Politis and H. White, ibid. 28 (2009) 372-375.

    Examples
    --------
    >>> noise = np.random.default_rng(1).standard_normal(3000)
    >>> block_length(noise) < block_length(np.cumsum(noise)[::3] * 0.01 + noise[::3] * 0.01)
    True
    """
    n = values.size
    in_a_row = max(5, int(math.sqrt(math.log10(n))))
    most = min(n - 1, math.ceil(math.sqrt(n)) + in_a_row)
    covariance = _autocovariance(values, most)
    if covariance[0] <= 0:
        return 1.0
    small = np.abs(covariance[1:]) < 2 * math.sqrt(math.log10(n) / n) * covariance[0]
    # The last lag before so many negligible ones in a row.
    rows = np.convolve(small, np.ones(in_a_row), "valid") == in_a_row
    last = int(rows.argmax()) if rows.any() else int(np.nonzero(~small)[0].max()) + 1
    window = min(2 * max(last, 1), most)
    lag = np.arange(1, window + 1)
    weight = np.minimum(1.0, 2 * (1 - lag / window))
    at_zero = covariance[0] + 2 * float((weight * covariance[1 : window + 1]).sum())
    slope = 2 * float((weight * lag * covariance[1 : window + 1]).sum())
    if at_zero == 0:
        return 1.0
    length = (2 * slope**2 / (4 / 3 * at_zero**2)) ** (1 / 3) * n ** (1 / 3)
    return float(min(max(1.0, length), math.ceil(min(3 * math.sqrt(n), n / 3))))


def _autocovariance(values: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    n = values.size
    centred = values - values.mean()
    padded = 1 << (n + most).bit_length()
    transformed = np.fft.rfft(centred, padded)
    found: NDArray[np.float64] = np.fft.irfft(transformed * transformed.conj(), padded)[: most + 1] / n
    return found


def _length(series: NDArray[np.float64]) -> int:
    return max(math.ceil(block_length(series)), series.size // _MOST_BLOCKS)


def _judged_by_ranks(
    series: NDArray[np.float64], ranks: NDArray[np.float64], statistic: Statistic, confidence: float
) -> Judgement:
    judged = judge(ranks, method=METHOD, confidence=confidence, judge_tail=True)
    if judged.refusal is None:
        return judged
    value = float(statistic(series[None, :])[0]) if series.size else None
    refusal = Answer.refused(
        Reason.TOO_FEW_SAMPLES,
        judged.refusal.sentence,
        method=METHOD,
        n=series.size,
        value=value,
        confidence=confidence,
    )
    return Judgement(refusal, judged.correlation_time, judged.allowance)


def _resampled(
    series: NDArray[np.float64], statistic: Statistic, length: int, resamples: int, seed: int
) -> NDArray[np.float64]:
    n = series.size
    rng = np.random.default_rng(seed)
    around = np.concatenate([series, series[: length - 1]]) if length > 1 else series
    blocks = np.lib.stride_tricks.sliding_window_view(around, length)
    rows = max(1, _CHUNK // n)
    found = []
    for first in range(0, resamples, rows):
        count = min(rows, resamples - first)
        drawn = blocks[rng.integers(0, n, (count, -(-n // length)))].reshape(count, -1)[:, :n]
        found.append(statistic(drawn))
    return np.concatenate(found)


def _outer(ordered: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    beyond = max(1, int((1 - confidence) / 2 * (ordered.size + 1)))
    return float(ordered[beyond - 1]), float(ordered[-beyond])


def _few_blocks(blocks: int, length: int, n: int, value: float, confidence: float) -> Answer:
    return Answer.refused(
        Reason.TOO_FEW_SAMPLES,
        f"{n} values make {blocks} blocks of {length}; at least {_LEAST_BLOCKS} are needed.",
        method=METHOD,
        n=n,
        value=value,
        confidence=confidence,
    )
