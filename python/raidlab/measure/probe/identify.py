"""A probe from its first question to its answer.

In this order: how long one read takes, whether a cache answers, at which depth the target is busy, the periods that
bring arrays back to one member, whatever separates the arrays that are left, a few tests more to see whether what was
found explains them, and, where the target may be overwritten, writes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from raidlab.analysis.model.access_count import accesses
from raidlab.errors import InputError
from raidlab.measure.probe.answer import ProbeAnswer, ProbeLine, ProbeRequest, Verdict
from raidlab.measure.probe.ask import LISTED, PAGE, Counted, ProbeSubject, ProbeTest, asked_test, rate_in
from raidlab.measure.probe.hypotheses import CHUNKS, WRITE_POLICIES, Hypothesis, hypotheses, shapes
from raidlab.measure.probe.judge import LEAST_SHOWN, MOST_CHI2, SURE, CandidateClass, Judge
from raidlab.measure.probe.plan import LEAST_PLACES, first_tests, periods_of, pool_of, write_tests
from raidlab.measure.probe.predict import Predictor
from raidlab.reading import Plain
from raidlab.results.answer import CellAnswer
from raidlab.run.progress import Progress
from raidlab.study.device import DeviceModel, load_device
from raidlab.study.tree import Tree
from raidlab.study.units import format_bytes

MOST_TESTS = 60
# A test that separates two arrays less often than that is not worth its time; so many more are asked only to see
# whether what was found explains what it was not found by.
_LEAST_GAIN, _CONFIRMING = 0.02, 4
_FOLLOWED = 40
_MOST_WRITE_TESTS = 12
# What takes longer to read is a spindle; what is quicker is asked at depths that rise until the rate does not.
_SPINDLE_NS = 1_000_000
_DEPTHS = (16, 32, 64, 128, 256, 512)
_STILL_RISING = 1.15
# Of single servers in so many members; more at a time are within them.
_PARALLEL = 1.1
# What is asked for again comes so many times as fast: it was kept somewhere.
_CACHED = 3.0
_PLACES_AGAIN, _BURST = 512, 64
# Without knowing the members: one whose rate rises with what waits, and one that serves one request after another.
_SPINDLE = "hdd-7200"
_PLAIN: dict[str, Plain] = {"kind": "fixed", "capacity_bytes": 2**40, "read_us": 100.0, "write_us": 100.0}


@dataclass
class Prober:
    """One probe on its way."""

    subject: ProbeSubject
    asked: ProbeRequest
    progress: Progress
    stop: Callable[[], bool] = lambda: False
    """Whether to leave off, also between two predictions."""
    busy_ns: int = 0
    notes: list[str] = field(default_factory=list)
    seen_in_bytes: int = 0
    _number: int = 0

    def answer(self) -> ProbeAnswer:
        """Ask all that is to be asked, and judge."""
        self._largest_chunks()
        self.progress.begin("probing", MOST_TESTS, "test")
        try:
            return self._answer()
        finally:
            self.progress.end()

    def _answer(self) -> ProbeAnswer:
        latency_ns = 1e9 / self._counted(ProbeTest("one at a time", PAGE, depth=1), Counted(0, 100))
        ratio = self._cached_ratio(0)
        if ratio >= _CACHED:
            # Other work may have held up the one and not the other: a cache answers each time.
            ratio = min(ratio, self._cached_ratio(1))
        if ratio >= _CACHED:
            return self._ended("a cache answers", latency_ns, ratio)
        depth = 16 if latency_ns >= _SPINDLE_NS else self._risen()
        most = self.asked.members[1]
        if self.asked.member is None and latency_ns < _SPINDLE_NS:
            at_once = self._rate(ProbeTest("anywhere", PAGE, depth=depth)) * latency_ns / 1e9
            if at_once > _PARALLEL * most:
                self.notes.append(
                    f"{at_once:.0f} reads are served at a time, more than {most} members that serve one each could"
                )
                return self._ended("members unknown", latency_ns, ratio, needs=("--member",))
        judge, pool, cached = self._judged(latency_ns, depth)
        return self._concluded(judge, pool, latency_ns, ratio, writes_cached=cached)

    def _risen(self) -> int:
        """The depth at which the target gets no faster."""
        before = 0.0
        for depth in _DEPTHS:
            rate = self._rate(ProbeTest("anywhere", PAGE, depth=depth))
            if rate < _STILL_RISING * before:
                break
            before = rate
        return depth

    def _judged(self, latency_ns: float, depth: int) -> tuple[Judge, list[ProbeTest], bool]:
        largest = self._largest_chunks()
        if len(largest) <= self.asked.members[1] - self.asked.members[0] or min(largest.values()) < CHUNKS[-1]:
            self.notes.append(self._limits(largest))
            self.seen_in_bytes = self.subject.capacity_bytes
        counts = list(largest)
        found = [
            one
            for one in hypotheses(list(shapes(counts[0], counts[-1])), CHUNKS)
            if one.chunk_bytes <= largest.get(one.shape.members, 0)
        ]
        judge = Judge(
            found,
            self._predictor(latency_ns),
            known=self.asked.member is not None,
            member_error=_stated_error(self.asked.member),
        )
        for test in first_tests(largest, depth):
            self._put(judge, test)
        pool = self._separate(judge, largest, depth)
        judge.settle()
        if not self.asked.writes:
            return judge, pool, False
        return judge, *self._writes(judge, pool, depth)

    def _largest_chunks(self) -> dict[int, int]:
        """The largest chunk that arrays of each number of members may have to be seen in a target of this size."""
        least, most = self.asked.members
        places = self.subject.capacity_bytes // LEAST_PLACES
        largest = {
            count: max((chunk for chunk in CHUNKS if chunk * periods_of(count) <= places), default=0)
            for count in range(least, most + 1)
        }
        largest = {count: chunk for count, chunk in largest.items() if chunk}
        if not largest:
            needed = format_bytes(periods_of(least) * CHUNKS[0] * LEAST_PLACES)
            message = f"holds {format_bytes(self.subject.capacity_bytes)}: no period fits into it {LEAST_PLACES} times"
            raise InputError.one("TARGET", message, value=f"'{self.asked.title}'", accepted=f"at least {needed}")
        return largest

    def _limits(self, largest: Mapping[int, int]) -> str:
        """Which arrays a target of this size is too small for."""
        most = {chunk: count for count, chunk in largest.items()}
        seen = ", ".join(f"{format_bytes(chunk)} of {count}" for chunk, count in most.items())
        more = f"; arrays of more than {max(largest)} are not" if max(largest) < self.asked.members[1] else ""
        return f"in {format_bytes(self.subject.capacity_bytes)} these are the largest chunks seen: {seen} members{more}"

    def _predictor(self, latency_ns: float) -> Predictor:
        member, is_spindle = self.asked.member, latency_ns >= _SPINDLE_NS
        if member is not None:
            return Predictor(member.parameters, rotating=member.parameters["kind"] == "hdd", stop=self.stop)
        parameters = load_device(_SPINDLE, Path()).parameters if is_spindle else _PLAIN
        return Predictor(parameters, rotating=is_spindle, stop=self.stop)

    def _separate(self, judge: Judge, largest: Mapping[int, int], depth: int) -> list[ProbeTest]:
        """Ask what separates what is left, then a few tests more; returns what more could be asked."""
        asked: set[ProbeTest] = set()
        drawn, left = random.Random(self.asked.seed), _CONFIRMING
        while True:
            likely = [judge.found[index] for index in judge.order()[:_FOLLOWED]]
            whole = pool_of(likely, self.subject.capacity_bytes, largest, depth)
            pool = [test for test in whole if test not in asked]
            if not pool or not left or len(judge.asked) >= MOST_TESTS:
                return pool
            test, gain = judge.best_test(pool)
            if gain < _LEAST_GAIN:
                test, left = drawn.choice(pool), left - 1
            asked.add(test)
            self._put(judge, test)

    def _writes(self, judge: Judge, pool: list[ProbeTest], depth: int) -> tuple[list[ProbeTest], bool]:
        """Ask writes that separate what is left; whether a cache answers them that is none of the members'."""
        judge.keep(_FOLLOWED, LEAST_SHOWN / 10)
        if judge.known and self._burst_is_cached(judge):
            return pool, True
        judge.split(
            [
                [Hypothesis(one.shape, one.chunk_bytes, policy) for policy in WRITE_POLICIES]
                if one.shape.has_parity
                else [one]
                for one in judge.found
            ]
        )
        tests = write_tests(judge.found, self.subject.capacity_bytes, depth)
        for _ in range(min(_MOST_WRITE_TESTS, len(tests))):
            test, gain = judge.best_test(tests)
            if gain < _LEAST_GAIN or len(judge.asked) >= MOST_TESTS:
                break
            tests.remove(test)
            self._put(judge, test)
        judge.settle()
        return [*pool, *tests], False

    def _burst_is_cached(self, judge: Judge) -> bool:
        """Whether a burst of writes ends far sooner than the likeliest array's own members would let it."""
        test, counted = ProbeTest("a burst of writes", PAGE, op="write", depth=1), Counted(0, _BURST)
        likeliest = judge.predictor.box(judge.found[judge.order()[0]])
        starts = test.starts(likeliest.capacity_bytes, _BURST, self.asked.seed)
        return self._counted(test, counted) >= _CACHED * rate_in(likeliest.ask(test, starts, counted))

    def _put(self, judge: Judge, test: ProbeTest) -> None:
        starts = self._starts(test)
        answer = self.subject.ask(test, starts)
        self._seen(answer)
        judge.add(asked_test(test, starts, answer))
        self.progress.advance()

    def _rate(self, test: ProbeTest) -> float:
        """Requests a second of a test, which draws other starts each time."""
        return self._counted(test, None)

    def _counted(self, test: ProbeTest, counted: Counted | None) -> float:
        return self._seen(self.subject.ask(test, self._starts(test), counted))

    def _starts(self, test: ProbeTest) -> list[int]:
        self._number += 1
        return test.starts(self.subject.capacity_bytes, LISTED, self.asked.seed + self._number)

    def _cached_ratio(self, turn: int) -> float:
        """How many times as fast many places are read that were just read as as many others."""
        test, many = ProbeTest("anywhere", PAGE), _PLACES_AGAIN
        starts = test.starts(self.subject.capacity_bytes, 2 * many, self.asked.seed + turn)
        again, fresh = (
            self._seen(self.subject.ask(test, some, Counted(many, many))) for some in (2 * starts[:many], starts)
        )
        return again / fresh

    def _seen(self, answer: CellAnswer) -> float:
        self.busy_ns += answer["elapsed_ns"]
        return rate_in(answer)

    def _concluded(
        self, judge: Judge, pool: Sequence[ProbeTest], latency_ns: float, ratio: float, *, writes_cached: bool
    ) -> ProbeAnswer:
        classes = judge.classes(pool)
        first = classes[0]
        verdict: Verdict = "not sure"
        if first.chi2 > MOST_CHI2:
            verdict = "no known array"
        elif first.probability >= SURE:
            verdict = "sure" if len(first.arrays) == 1 else "sure of a class"
        needs = () if verdict in ("sure", "no known array") else tuple(self._needs(classes, writes_cached))
        shown = tuple(one for one in classes if one.probability >= LEAST_SHOWN)
        second = classes[1].arrays[0] if len(classes) > 1 else None
        lines = lines_of(judge, first.arrays[0], second)
        ended = self._ended(verdict, latency_ns, ratio, needs)
        return replace(ended, classes=shown, runner_up=second, lines=lines, writes_cached=writes_cached)

    def _needs(self, classes: Sequence[CandidateClass], writes_cached: bool) -> list[str]:
        """What would tell the likely arrays apart."""
        likely = [one for group in classes if group.probability >= LEAST_SHOWN for one in group.arrays]
        costs = {accesses(cast(Tree, one.tree), PAGE, write=True) for one in likely}
        needs = []
        if not self.asked.writes and (len(costs) > 1 or any(one.shape.has_parity for one in likely)):
            needs.append("--destroy")
        if self.asked.member is None and len({one.shape.level for one in likely}) > 1:
            needs.append("--member")
        if writes_cached:
            needs.append("the cache switched off")
        return needs

    def _ended(
        self,
        verdict: Verdict,
        latency_ns: float,
        ratio: float,
        needs: tuple[str, ...] = (),
    ) -> ProbeAnswer:
        return ProbeAnswer(
            self.asked.title,
            verdict,
            latency_ns=latency_ns,
            cache_ratio=ratio,
            needs=needs,
            notes=tuple(self.notes),
            busy_ns=self.busy_ns,
            seen_in_bytes=self.seen_in_bytes,
        )


def _stated_error(member: DeviceModel | None) -> float:
    """What a fitted device says that its throughputs are off, as a share."""
    percent = None if member is None else member.fit.get("error_percent")
    return percent / 100 if isinstance(percent, int | float) else 0.0


def lines_of(judge: Judge, first: Hypothesis, second: Hypothesis | None) -> tuple[ProbeLine, ...]:
    """Every test beside what two arrays predict."""
    best = judge.found.index(first)
    other = None if second is None else judge.predicted(judge.found.index(second))
    residuals, predicted = judge.residuals(best), judge.predicted(best)
    return tuple(
        ProbeLine(
            asked.test.name,
            asked.test.op,
            asked.test.depth,
            math.exp(asked.log_rate),
            math.exp(predicted[index]),
            None if other is None else math.exp(other[index]),
            float(residuals[index]),
        )
        for index, asked in enumerate(judge.asked)
    )


__all__ = ["MOST_TESTS", "Prober"]
