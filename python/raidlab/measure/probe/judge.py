"""What the tests say: how likely each array is, which of them timing cannot tell apart, and what to ask next.

Invariants:

- One free scale an operation, held near 1 where the members are known; nothing else is fitted to the answers.
- A residual beyond 4 sigma counts as 4, so that one bad test decides nothing by itself.
- What no test that could be asked separates is one class, and only a class can be sure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from raidlab.measure.probe.ask import PAGE, AskedTest, ProbeTest
from raidlab.measure.probe.hypotheses import Hypothesis, log_priors
from raidlab.measure.probe.predict import Predictor

Values = npt.NDArray[np.float64]

# Of a logarithm of a rate: what a model is off, with known members and without; and of writes longer than a page, which
# md gathers into rows as they happen to meet.
SIGMA_KNOWN, SIGMA_UNKNOWN, SIGMA_LONG_WRITES = 0.06, 0.10, 0.30
# How far the scale may be from 1 where members are known, as a logarithm.
_MOST_SCALE = 0.05
_MOST_RESIDUAL = 4.0
# In logarithms of odds: what is farther behind is not followed up.
_GIVEN_UP = 25.0
# Predictions nearer than so many sigma are the same to any test.
_SAME = 1.0
_MOST_COMPARED = 80
_WORTH_MORE = 1e-3
# What a model is off by it is off again: more tests than these are no more evidence.
_INDEPENDENT = 20
# Of the tests: where this share of them happened to be drawn badly, an array may yet explain the target.
_DRAWN_BADLY = 0.25
SURE, MOST_CHI2, LEAST_SHOWN = 0.95, 2.0, 0.01


@dataclass(frozen=True)
class CandidateClass:
    """Arrays that timing cannot tell apart, the likeliest first."""

    probability: float
    arrays: tuple[Hypothesis, ...]
    chi2: float
    """Of each test, of the likeliest."""


class Judge:
    """Weighs hypotheses by the tests so far."""

    def __init__(
        self, found: Sequence[Hypothesis], predictor: Predictor, *, known: bool, member_error: float = 0.0
    ) -> None:
        """``member_error``: what the members' own file says that it is off, as a share."""
        self.found, self.predictor, self.known = list(found), predictor, known
        self._sigma = max(SIGMA_KNOWN, member_error) if known else SIGMA_UNKNOWN
        self._most_scale = max(_MOST_SCALE, member_error)
        self.asked: list[AskedTest] = []
        self._priors = np.array(log_priors(found))
        self._predicted: Values = np.empty((len(found), 0))
        self._costs: Values = np.zeros(len(found))

    def add(self, asked: AskedTest) -> None:
        """Take a test into account, and drop what is far behind."""
        # Few are left when writes are asked, and each is simulated for them anyway.
        is_there = asked.test.op == "write"
        rates = [
            self.predictor.log_rate_at(asked, one) if is_there else self.predictor.log_rate(asked.test, one)
            for one in self.found
        ]
        column = np.array(rates)
        self.asked.append(asked)
        self._predicted = np.column_stack([self._predicted, column])
        self._weigh()
        score = self._priors - self._costs
        self._keep(np.flatnonzero(score >= score.max() - _GIVEN_UP))

    def keep(self, most: int, least: float) -> None:
        """Drop all but so many, and what is less likely than so much."""
        probabilities = self.probabilities
        self._keep(np.array([index for index in self.order()[:most] if probabilities[index] >= least]))

    def _keep(self, kept: npt.NDArray[np.intp]) -> None:
        self.found = [self.found[index] for index in kept]
        self._priors, self._predicted, self._costs = self._priors[kept], self._predicted[kept], self._costs[kept]

    def settle(self) -> None:
        """Weigh what may yet be shown by what it gives where the reads of each test really began.

        How evenly members are read depends on the places that happened to be drawn, for several tests from the same
        numbers: the draw that was asked says more than another. One test may have put the truth behind by as much as it
        may cost. Where an arm moves to each place is more than a model of a disk knows, so disks that turn keep their
        reads. What writes take depends on which of them happen to meet: they are asked so from the first (`add`).

        What more than a quarter of the tests speak against is not redeemed by where reads began, and is left as it is:
        where nothing explains the target, as with members of another kind than was said, all would be simulated anew.
        """
        if self.predictor.rotating:
            return
        least = LEAST_SHOWN * math.exp(-(_MOST_RESIDUAL**2) / 2)
        reads = [number for number, asked in enumerate(self.asked) if asked.test.op == "read"]
        settled: set[int] = set()
        # What falls back may leave the lead to others, which are held to the same then.
        while likely := {int(index) for index in np.flatnonzero(self._may_be(least))} - settled:
            for index in likely:
                for number in reads:
                    asked, one = self.asked[number], self.found[index]
                    self._predicted[index, number] = self.predictor.log_rate_at(asked, one)
            settled |= likely
            self._weigh()

    def _may_be(self, least: float) -> npt.NDArray[np.bool_]:
        """What is not less likely than that, and explains the tests but for one, or for a quarter of them."""
        most = MOST_CHI2 + _MOST_RESIDUAL**2 * max(_DRAWN_BADLY, 1 / len(self.asked))
        return np.asarray((self.probabilities >= least) & (self._chi2() <= most))

    def split(self, found: Sequence[Sequence[Hypothesis]]) -> None:
        """Put several hypotheses in the place of each, such as its write policies, which share its prior."""
        sizes = np.array([len(some) for some in found])
        self.found = [one for some in found for one in some]
        self._priors = np.repeat(self._priors - np.log(sizes), sizes)
        self._predicted = np.repeat(self._predicted, sizes, axis=0)
        self._costs = np.repeat(self._costs, sizes)

    def _sigmas(self, tests: Sequence[ProbeTest]) -> Values:
        """What a model is off in each of these."""
        long = [test.op == "write" and test.size_bytes > PAGE for test in tests]
        return np.where(long, max(self._sigma, SIGMA_LONG_WRITES), self._sigma)

    def residuals(self, index: int) -> Values:
        """Of each test, in sigma."""
        return np.asarray(self._residuals()[index])

    def predicted(self, index: int) -> Values:
        """Logarithms of the rates that a hypothesis predicts, with the scale that suits it."""
        sigmas = self._sigmas([asked.test for asked in self.asked])
        return np.array([asked.log_rate for asked in self.asked]) - sigmas * self.residuals(index)

    def _scales(self, op: str) -> Values:
        """The free scale of each hypothesis for an operation, as a logarithm."""
        of = [number for number, asked in enumerate(self.asked) if asked.test.op == op]
        if not of:
            return np.zeros(len(self.found))
        observed = np.array([self.asked[number].log_rate for number in of])
        scale = np.median(observed - self._predicted[:, of], axis=1)
        return np.clip(scale, -self._most_scale, self._most_scale) if self.known else np.asarray(scale)

    def _fitted(self) -> Values:
        """What each hypothesis predicts of the tests asked, in sigma, each with the scale that suits it."""
        scales = {op: self._scales(op) for op in ("read", "write")}
        scale = np.column_stack([scales[asked.test.op] for asked in self.asked])
        return np.asarray((self._predicted + scale) / self._sigmas([asked.test for asked in self.asked]))

    def _residuals(self) -> Values:
        observed = np.array([asked.log_rate for asked in self.asked])
        return np.asarray(observed / self._sigmas([asked.test for asked in self.asked]) - self._fitted())

    def _weigh(self) -> None:
        self._costs = self._chi2() * min(len(self.asked), _INDEPENDENT) / 2

    def _chi2(self) -> Values:
        """Of each test, of each hypothesis."""
        return np.asarray(np.mean(np.minimum(self._residuals() ** 2, _MOST_RESIDUAL**2), axis=1))

    def _expected(self, tests: Sequence[ProbeTest], order: Sequence[int]) -> Values:
        """What these would give, in sigma: a row a hypothesis, each with the scale that suits it."""
        scales = {op: self._scales(op) for op in ("read", "write")}
        rows = [
            [self.predictor.log_rate(test, self.found[index]) + scales[test.op][index] for test in tests]
            for index in order
        ]
        return np.asarray(rows) / self._sigmas(tests)

    @property
    def probabilities(self) -> Values:
        """Of what is left."""
        score = self._priors - self._costs
        weights = np.exp(score - score.max())
        return np.asarray(weights / weights.sum())

    def order(self) -> list[int]:
        """The likeliest first."""
        return [int(index) for index in np.argsort(-self.probabilities, kind="stable")]

    def best_test(self, pool: Sequence[ProbeTest]) -> tuple[ProbeTest, float]:
        """The test that is likeliest to separate two arrays drawn by their probabilities, and how likely."""
        order = self.order()[:_MOST_COMPARED]
        weights = self.probabilities[order]
        weights = weights / weights.sum()
        best = pool[0], 0.0
        for test, values in zip(pool, self._expected(pool, order).T, strict=True):
            apart = np.abs(values[:, None] - values[None, :])
            told = np.where(apart > _SAME, 1 - np.exp(-(apart**2) / 8), 0.0)
            gain = float(weights @ told @ weights)
            # Of two that say as much, the first is the simpler one.
            if gain > best[1] + _WORTH_MORE:
                best = (test, gain)
        return best

    def classes(self, pool: Sequence[ProbeTest]) -> list[CandidateClass]:
        """What is left, together where no test of these or of those asked tells arrays apart."""
        order = self.order()[:_MOST_COMPARED]
        ops = {asked.test.op for asked in self.asked}
        more = self._expected([test for test in pool if test.op in ops], order)
        table = np.column_stack([self._fitted()[order], more])
        probabilities, chi2 = self.probabilities, self._chi2()
        left, found = list(range(len(order))), []
        while left:
            first = left[0]
            same = [one for one in left if np.max(np.abs(table[one] - table[first])) <= _SAME]
            left = [one for one in left if one not in same]
            arrays = tuple(self.found[order[one]] for one in same)
            probability = float(sum(probabilities[order[one]] for one in same))
            found.append(CandidateClass(probability, arrays, float(chi2[order[first]])))
        return sorted(found, key=lambda one: -one.probability)
