"""Conclusions and claims of all studies that come along: each can hold and can fail, each of its comparisons decides.

The readings of a run are planted: what is measured is replaced by numbers that are searched for, first such that the
conclusion holds, then such that its effects are the other way. What is no result of a run (what a study printed, what
a plan has) stays what it is, so that a conclusion made of constants cannot be turned round.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from raidlab.analysis.metrics.point import Point
from raidlab.published.compare.clause import Words, judged, sentence_of
from raidlab.published.compare.conclude import conclusions_on
from raidlab.published.compare.row import PublishedRow
from raidlab.published.quantities import KINDS
from raidlab.published.quantities.kind import Kind, Reading, Source, over_repeats, repeats_of
from raidlab.stats import mean_interval
from raidlab.study import load_study, study_names
from raidlab.study.expression import Relation, read
from raidlab.study.mapping import Conclusion, Mapping, has_mapping, load_mapping
from raidlab.study.words import Table

# The repeats of a planted reading differ by so much, which no planted effect is as small as.
_SCATTER = (0.9999, 1.0, 1.0001)
_EFFECT = 0.002
_TRIALS = 40_000
_STUDIES = [name for name in study_names() if has_mapping(load_study(name).file)]
Numbers = dict[str, float]


def _told(study: str) -> dict[str, Conclusion]:
    """What a study says of runs, by name: its conclusions, and the claims that are orders of what is measured."""
    quantities = load_mapping(load_study(study).file).quantities
    orders = {
        name: Conclusion(says=name, holds=one.holds)
        for name, one in quantities.claim.items()
        # What counts accesses or printed figures is no result of a run, and cannot be turned round.
        if one.holds
        and any(KINDS[str(quantities.measure[measure]["kind"])].is_run for measure in read(one.holds).names)
    }
    return quantities.conclusion | orders


_TOLD = [(study, name) for study in _STUDIES for name in _told(study)]


class _Keys(Table):
    name: str


class Planted:
    """A conclusion of a study over readings that are chosen."""

    def __init__(self, mapping: Mapping, conclusion: Conclusion, patch: pytest.MonkeyPatch) -> None:
        measures = mapping.quantities.measure
        names = read(conclusion.holds).names
        self.measured = sorted(name for name in names if KINDS[str(measures[name]["kind"])].is_run)
        self.numbers: Numbers = {}
        planted = {name: {"kind": "planted", "name": name} for name in names}
        for name in names - set(self.measured):
            # Parameters of hardware and the like come from a run that there is none of.
            patch.setitem(self.numbers, name, _constant(measures[name], mapping))
        kind = Kind("planted", "planted", _Keys, self._reading)
        patch.setitem(KINDS, "planted", kind)
        patch.setitem(KINDS, "constant", replace(kind, kind="constant", is_run=False))
        planted |= {name: {"kind": "constant", "name": name} for name in names - set(self.measured)}
        changed = mapping.quantities.model_copy(update={"measure": planted, "conclusion": {"this": conclusion}})
        self._mapping = replace(mapping, quantities=changed)
        self.relations: list[Relation] = []
        read(conclusion.holds).decided(lambda one: self.relations.append(one) or True)
        self._random = random.Random(conclusion.holds)
        self._conclusion = conclusion

    def _reading(self, keys: Any, _source: Source) -> Reading:
        value = self.numbers[keys.name]
        return Reading(value, tuple(value * one for one in _SCATTER) if keys.name in self.measured else ())

    def row(self) -> PublishedRow:
        """What comes of it."""
        target = (self._conclusion.on or ["planted"])[0]
        return conclusions_on(self._mapping, Source(cast("Any", None), target, self._mapping.published))[0]

    def lack(self, relations: list[Relation], wanted: int = 1) -> float:
        """By how much relations are not as they are asked for (1) or not the other way (-1); 0 where all are."""
        return sum(self._lack(one, wanted if one.is_asked else -wanted) for one in relations)

    def _lack(self, one: Relation, wanted: int) -> float:
        margin = wanted * min(one.margins(self.numbers))
        scale = max(abs(one.first.value(self.numbers)), abs(one.second.value(self.numbers))) or 1.0
        # Nearer is less at every scale, also where the figures themselves grow on the way.
        return 0.0 if margin / scale >= _EFFECT else _EFFECT + math.asinh(1e6 * max(0.0, -margin))

    def search(self, lack: Callable[[], float], names: list[str]) -> bool:
        """Move readings until nothing lacks."""
        best = lack()
        for _ in range(_TRIALS):
            if best <= 0:
                return True
            name = self._random.choice(names)
            before = self.numbers[name]
            step = self._random.choice((1.01, 1.1, 2.0, 10.0))
            self.numbers[name] = min(max(before * self._random.choice((step, 1 / step)), 1e-9), 1e9)
            now = lack()
            if now < best or (now == best and self._random.random() < 0.2):
                best = now
            else:
                self.numbers[name] = before
        return best <= 0

    def start(self) -> None:
        """Everything alike."""
        self.numbers |= dict.fromkeys(self.measured, 1.0)


def _constant(measure: dict[str, object], mapping: Mapping) -> float:
    kind = KINDS[str(measure["kind"])]
    keys = kind.keys.model_validate({key: value for key, value in measure.items() if key not in ("kind", "as")})
    try:
        reading = kind.read(keys, Source(cast("Any", None), "planted", mapping.published))
    except AttributeError:
        return 50.0
    return 50.0 if reading is None else reading.value


def _problem(mapping: Mapping, conclusion: Conclusion, patch: pytest.MonkeyPatch) -> str | None:
    """Why a conclusion is none that could hold and fail; None for one that could."""
    planted = Planted(mapping, conclusion, patch)
    if not planted.measured:
        return "is made of constants"
    planted.start()
    planted.search(lambda: planted.lack(planted.relations), planted.measured)
    if (row := planted.row()).verdict != "holds":
        return f"cannot hold: {row.verdict}, {row.sentence}"
    held = dict(planted.numbers)
    # Each comparison the other way by itself, the rest as it may: of several joined by `and` each decides.
    for one in planted.relations:
        planted.numbers |= held
        names = sorted((one.first.names | one.second.names) & set(planted.measured))
        turned = bool(names) and planted.search(lambda one=one: planted.lack([one], -1), names)
        if not turned:
            return f"has a comparison that cannot fail: {one.first.text} {one.sign} {one.second.text}"
        if " or " not in conclusion.holds and (row := planted.row()).verdict != "fails":
            return f"does not fail with {one.first.text} {one.sign} {one.second.text}: {row.sentence}"
    # All the other way at once, as far as they can be.
    planted.numbers |= held
    # What is to lie between two ends cannot lie beyond both; alternatives have to fail together.
    if not planted.search(lambda: planted.lack(planted.relations, -1), planted.measured):
        return "has alternatives that cannot all fail" if " or " in conclusion.holds else None
    if (row := planted.row()).verdict != "fails":
        return f"does not fail with its effects the other way: {row.verdict}, {row.sentence}"
    return None


@pytest.mark.parametrize(("study", "name"), _TOLD, ids=[f"{study}-{name}" for study, name in _TOLD])
def test_every_conclusion_of_every_study_can_hold_and_can_fail(
    study: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = _problem(load_mapping(load_study(study).file), _told(study)[name], monkeypatch)
    assert problem is None, f"'{name}' of {study} {problem}"


@pytest.mark.parametrize(
    ("holds", "said"),
    [
        ("0.127 + 9 * 0.041 < 10 * 0.109", "made of constants"),
        ("art_s6 > 0 and 0.127 < 0.2", "cannot fail"),
        ("art_s6 < 2 * art_s6", "cannot fail"),
        ("about(art_s6, art_s3, 100)", "cannot fail"),
        ("art_s6 < art_s3 and art_s3 < art_s6", "cannot hold"),
    ],
)
def test_a_conclusion_that_cannot_fail_is_found(holds: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = load_mapping(load_study("hauser1996").file)
    problem = _problem(mapping, Conclusion(says="", holds=holds), monkeypatch)
    assert problem is not None and said in problem


_MEASURES = load_mapping(load_study("hauser1996").file).quantities.measure


@pytest.mark.parametrize(
    ("holds", "verdict", "said"),
    [
        (
            "art_f6n < art_f6w",
            "holds",
            "mean time of one reader: 6-disk RAID 0, 16 KB takes 80.0 % [75.4, 84.6] of 6-disk RAID 0, 160 KB",
        ),
        (
            "art_f6n > min(art_f6w, art_s6)",
            "fails",
            "mean time of one reader: 6-disk RAID 0, 16 KB takes 80.0 % [75.4, 84.6] of "
            "6-disk RAID 0, 160 KB, the least of 2 (asked: more)",
        ),
        (
            "art_f6n < min(art_f6w, art_s6, art_s3)",
            "within the noise",
            "mean time of one reader: 6-disk RAID 0, 16 KB takes 100.0 % [94.3, 105.7] of 3 simple volumes"
            " (asked: less); 6-disk RAID 0, 16 KB takes 80.0 % [75.4, 84.6] of 6-disk RAID 0, 160 KB; "
            "6-disk RAID 0, 16 KB takes 50.0 % [47.1, 52.9] of 6 simple volumes",
        ),
        (
            "about(art_f6n + aat_f6n, art_s6 + aat_s6)",
            "fails",
            "mean time of one reader and additional time together: 6-disk RAID 0, 16 KB takes 50.0 % [47.4, 52.6] of "
            "6 simple volumes (asked: within 5 %)",
        ),
        (
            "162.5 / (art_f6n + aat_f6n) > 162.5 / (art_s6 + aat_s6)",
            "holds",
            "Bang: 6-disk RAID 0, 16 KB gives 200 % [190, 210] of 6 simple volumes",
        ),
        (
            "(art_f6n + art_f6w + art_s6) / 3 < 0.75 * art_s6 + 0.25 * art_f6w",
            "holds",
            "mean time of one reader: the mean of 6-disk RAID 0, 16 KB, 6-disk RAID 0, 160 KB and 6 simple volumes is "
            "78.2 % [77.1, 79.2] of the mean of 6 simple volumes (75 %) and 6-disk RAID 0, 160 KB (25 %)",
        ),
        (
            "art_s6 - art_f6n > 120",
            "fails",
            "mean time of one reader: 6 simple volumes less 6-disk RAID 0, 16 KB is 100 [94, 106] ms, "
            "asked above 120 ms",
        ),
        (
            "art_f6n * aat_f6n > 9000",
            "fails",
            "6-disk RAID 0, 16 KB: mean time of one reader times additional time is 1000 [943, 1057], asked above 9000",
        ),
        (
            "art_f6n < 0.9 * art_f6w",
            "holds",
            "mean time of one reader: 6-disk RAID 0, 16 KB takes 80.0 % [75.4, 84.6] of 6-disk RAID 0, 160 KB"
            " (asked: less than 90 %)",
        ),
        (
            "about(art_f6n, 2 * art_s6, 10)",
            "fails",
            "mean time of one reader: 6-disk RAID 0, 16 KB takes 50.0 % [47.1, 52.9] of 6 simple volumes"
            " (asked: within 10 % of 200 %)",
        ),
        (
            "not art_f6n > 90",
            "fails",
            "mean time of one reader: 6-disk RAID 0, 16 KB is 100 [94, 106] ms, asked no more than 90 ms",
        ),
    ],
)
def test_a_comparison_is_told_in_words_with_its_interval(holds: str, verdict: str, said: str) -> None:
    names = {"art_f6n": 100.0, "art_f6w": 125.0, "art_s6": 200.0, "art_s3": 100.0, "aat_f6n": 10.0, "aat_s6": 20.0}
    repeats = [{**names, "art_f6n": 100.0 + by} for by in (-2.3, 0.0, 2.3)]
    found, clauses = judged(read(holds), names, repeats, Words(_MEASURES, reckoned={"162.5 / (art + aat)": "Bang"}))
    assert found == verdict
    assert sentence_of(clauses).startswith(said)


_RATIOS: dict[str, dict[str, object]] = {
    "least": {"kind": "sweep", "of": "least", "metric": "iops", "array": "A", "reference": "B", "workload": "reads"},
    "mean": {
        "kind": "sweep",
        "metric": "iops",
        "array": "A",
        "workload": "writes",
        "reference": "A",
        "reference_workload": "reads",
        "from_depth": 4,
    },
    "a": {"kind": "metric", "metric": "iops", "array": "A", "workload": "reads", "at": {"depth": 4}},
    "b": {"kind": "metric", "metric": "iops", "array": "B", "workload": "reads", "at": {"depth": 4}},
    "c": {"kind": "metric", "metric": "iops", "array": "A", "workload": "reads", "at": {"depth": 8}},
    "d": {"kind": "metric", "metric": "iops", "array": "B", "workload": "reads", "at": {"depth": 8}},
}


@pytest.mark.parametrize(
    ("holds", "said"),
    [
        ("least > 0.98", "requests a second, reads: A gives at least 90.0 % of B (asked: more than 98 %)"),
        (
            "not mean > 0.6",
            "A, requests a second, from depth 4: writes give on average 70.0 % of reads (asked: no more than 60 %)",
        ),
        (
            "about(mean, 1, 5)",
            "A, requests a second, from depth 4: writes give on average 70.0 % of reads (asked: within 5 % of 100 %)",
        ),
        ("a / b > 1.6", "requests a second, reads, with 4 outstanding: A gives 150 % of B (asked: more than 160 %)"),
        (
            "110 < 100 * b / a",
            "requests a second, reads, with 4 outstanding: B gives 66.7 % of A (asked: more than 110 %)",
        ),
        (
            "a < c",
            "A, requests a second, reads: with 4 outstanding gives 150 % of that with 8 outstanding (asked: less)",
        ),
        (
            "a / b < c / d",
            "A against B, requests a second, reads: with 4 outstanding is 150 % of that with 8 outstanding"
            " (asked: less)",
        ),
    ],
)
def test_a_quotient_is_told_as_a_share(holds: str, said: str) -> None:
    names = {"least": 0.9, "mean": 0.7, "a": 300.0, "b": 200.0, "c": 200.0, "d": 200.0}
    found, clauses = judged(read(holds), names, [], Words(_RATIOS))
    assert found == "fails"
    assert sentence_of(clauses) == said


@pytest.mark.parametrize(
    ("holds", "measured", "verdict"),
    [
        ("a > 1", 0.9998, "within the noise"),
        ("a > 1", 1.049, "within the noise"),
        ("a > 1", 1.06, "holds"),
        ("a > 1", 0.94, "fails"),
        ("not a > 1", 1.049, "within the noise"),
        ("about(a, 1)", 1.02, "holds"),
        ("about(a, 1)", 1.06, "within the noise"),
        ("about(a, 1)", 1.09, "fails"),
        # Half of a narrow tolerance, never more than what is level.
        ("about(a, 1, 1)", 1.004, "holds"),
        ("about(a, 1, 40)", 1.5, "holds"),
        ("about(a, 1, 40)", 1.6, "within the noise"),
        # One sure comparison decides for those that are not.
        ("a > 1 and a > 2", 1.01, "fails"),
        ("a > 1 or a > 0.5", 1.01, "holds"),
    ],
)
def test_a_single_run_decides_nothing_that_is_called_level(holds: str, measured: float, verdict: str) -> None:
    assert judged(read(holds), {"a": measured}, [], Words({}))[0] == verdict
    # What is no result of a run is exact.
    exact = judged(read(holds), {"a": measured}, [], Words({}), {"a"})[0]
    assert exact == ("holds" if read(holds).value({"a": measured}) else "fails")
    # So are repeats that are all alike.
    alike = judged(read(holds), {"a": measured}, [{"a": measured}] * 3, Words({}))[0]
    assert alike == exact


def test_the_weakest_comparisons_stand_first_and_the_rest_are_counted() -> None:
    names = {"art_f4n": 1.0, "art_f5n": 2.0, "art_f6n": 3.0, "art_s6": 4.0, "art_p6n": 5.0}
    found, clauses = judged(read("art_f4n < min(art_f5n, art_f6n, art_s6, art_p6n)"), names, [], Words(_MEASURES))
    assert found == "holds" and sentence_of(clauses).endswith("of 6 simple volumes; 1 more holds")
    assert not any(clause.has_interval for clause in clauses)


def test_of_alternatives_those_stand_first_for_which_the_whole_holds() -> None:
    names = {"art_f6n": 3.0, "art_s6": 4.0, "art_p6n": 5.0}
    found, clauses = judged(
        read("art_p6n < art_s6 or art_f6n < art_s6 or art_p6n < art_f6n"), names, [], Words(_MEASURES)
    )
    assert found == "holds" and [clause.verdict for clause in clauses] == ["holds", "fails", "fails"]
    assert sentence_of(clauses).endswith("6-disk RAID 0, 16 KB takes 75.0 % of 6 simple volumes; 2 more fail")


class _Load:
    """A point whose repeats are numbers."""

    is_served = True

    def __init__(self, rows: Sequence[float]) -> None:
        self.rows = tuple(rows)

    def of_repeats(self, numbers: Sequence[int]) -> _Load:
        return _Load([self.rows[number] for number in numbers])

    @property
    def mean(self) -> float:
        return statistics.fmean(self.rows)


def _extremes(chance: random.Random, greatest: float) -> dict[str, Reading]:
    """The least and the greatest of seven loads of five repeats, which scatter by 5 %; one is truly ``greatest``."""
    loads = cast("list[Point]", [_Load([chance.gauss(1, 0.05) for _ in range(5)]) for _ in range(6)])
    loads.append(cast("Point", _Load([chance.gauss(greatest, 0.05) for _ in range(5)])))
    found = {}
    for name, extreme in (("least", min), ("most", max)):
        reading = over_repeats(loads, lambda points, extreme=extreme: extreme(point.mean for point in points))
        assert reading is not None
        found[name] = reading
    return found


def test_extremes_of_what_is_alike_are_not_told_from_it() -> None:
    alike, chance = read("most < 1.03 and least > 0.97"), random.Random(7)
    rounds = [_extremes(chance, 1.0) for _ in range(400)]
    values = [{name: one.value for name, one in each.items()} for each in rounds]
    verdicts = [
        judged(alike, known, repeats_of(each), Words({}))[0] for known, each in zip(values, rounds, strict=True)
    ]
    assert verdicts.count("fails") <= 20
    # What is truly beyond is still found.
    found = [_extremes(chance, 1.2) for _ in range(100)]
    verdicts = [judged(alike, {"most": 1.2, "least": 1.0}, repeats_of(each), Words({}))[0] for each in found]
    assert verdicts.count("fails") >= 90


def test_an_extreme_of_several_figures_is_told_from_them_as_one_of_a_sweep_is() -> None:
    """The mean of each repeat's own greatest lies above 1.03 in more than half of the rounds, and surely so."""
    chance, own, together = random.Random(7), 0, 0
    greatest, names = read("max(a, b, c, d, e, f, g)"), "abcdefg"
    for _ in range(400):
        repeats = [{name: chance.gauss(1, 0.05) for name in names} for _ in range(5)]
        known = {name: statistics.fmean(one[name] for one in repeats) for name in names}
        interval = mean_interval([float(greatest.value(one)) for one in repeats])
        own += interval is not None and interval[0] > 1.03
        together += judged(read(f"about({greatest.text}, 1, 3)"), known, repeats, Words({}))[0] == "fails"
    assert own > 200 and together <= 20


def test_a_share_is_decided_by_its_own_interval() -> None:
    """The shares of five repeats lie above 100 %, all about alike; their differences scatter as the figures do."""
    repeats = [{"a": 1.2 * times, "b": times} for times in (10.0, 1000.0, 20.0, 40.0, 15.0)]
    known = {name: statistics.fmean(one[name] for one in repeats) for name in "ab"}
    words = Words({name: {"kind": "metric", "metric": "iops", "array": name, "workload": "reads"} for name in "ab"})
    found, clauses = judged(read("a > b"), known, repeats, words)
    assert (found, sentence_of(clauses)) == ("holds", "requests a second, reads: a gives 120 % [120, 120] of b")


def test_no_interval_of_rates_goes_below_nothing() -> None:
    """Repeats that lie far apart have wide intervals; a share of rates is 0 at the least, a difference may be less."""
    repeats = [{"a": value, "b": 10.0} for value in (0.1, 20.0, 0.2)]
    known = {name: statistics.fmean(one[name] for one in repeats) for name in "ab"}

    def said(holds: str, of: str = "") -> str:
        shared = {"kind": "metric", "metric": "iops", "workload": "reads"}
        words = Words({name: {**shared, "array": name, **({"of": of} if of else {})} for name in "ab"})
        return sentence_of(judged(read(holds), known, repeats, words)[1])

    assert "67.7 % [0.0, 352.4] of b" in said("a > b")
    assert "[0.00, 35.24]" in said("a > 5"), said("a > 5")
    assert "[-" in said("a - b > 1") and "[-" in said("a > b", of="slope")


def test_what_does_not_differ_is_not_only_within_the_noise() -> None:
    """Noise hides what may be 10 % as well as nothing; repeats that agree to a tenth of a percent hide nothing."""

    def said(by: float, holds: str = "a > b") -> str:
        known = {"a": 100.0, "b": 100.0}
        repeats = [{"a": 100.0 + one, "b": 100.0} for one in (-by, 0.0, by)]
        words = Words({name: {"kind": "metric", "metric": "iops", "array": name, "workload": "reads"} for name in "ab"})
        found, clauses = judged(read(holds), known, repeats, words)
        assert found == ("within the noise" if holds == "a > b" else "holds")
        return sentence_of(clauses)

    assert said(0.1).endswith("of b (asked: more), no difference")
    assert said(10).endswith("of b (asked: more)")
    assert "no difference" not in said(0.1, "about(a, b)")


def test_of_what_holds_each_thing_that_is_asked_is_told() -> None:
    known = {"a": 80.0, "b": 81.0, "c": 82.0, "d": 40.0, "e": 30.0, "r": 100.0}
    words = Words({name: {"kind": "metric", "metric": "iops", "array": name, "workload": "reads"} for name in known})
    holds = "a > 0.75 * r and b > 0.75 * r and c > 0.75 * r and d < 0.7 * r and e < 0.7 * r"
    repeats = [{name: value * by for name, value in known.items()} for by in (0.999, 1.0, 1.001)]
    found, clauses = judged(read(holds), known, repeats, words)
    assert found == "holds"
    # Controls are nearly missed and the effect is not: it is what the sentence is of.
    assert [clause.says[0] for clause in clauses] == ["a", "d", "b", "e", "c"]


def test_where_no_share_can_be_told_the_difference_is_that_decides() -> None:
    repeats = [{"a": 2.0 + by, "b": -1.0 + by} for by in (-3.0, 0.0, 3.0)]
    known = {"a": 2.0, "b": -1.0}
    found, clauses = judged(read("a > b"), known, repeats, Words({}))
    assert found == "holds"
    said = "a is 2.00 [-5.45, 9.45], b -1.00 [-8.45, 6.45]; the first less the second is 3.00 [3.00, 3.00]"
    assert sentence_of(clauses) == said
    # Of a single run nothing is shown by what is small beside the figures themselves.
    assert judged(read("a > b"), {"a": -1.0, "b": -1.01}, [], Words({}))[0] == "within the noise"


def test_of_what_fails_the_comparison_is_told_that_fails_it() -> None:
    """`b` scatters so much that it may be further from what is asked than `a` is; `c` is outdone by its alternative."""
    repeats = [{"a": 0.97 + by / 1000, "b": 1.0 + by, "c": 0.1, "d": 2.0 + by / 1000} for by in (-0.9, 0.0, 0.9)]
    known = {"a": 0.97, "b": 1.0, "c": 0.1, "d": 2.0}
    found, clauses = judged(read("b > 1 and (c > 1 or d > 1) and a > 1"), known, repeats, Words({}))
    assert found == "fails"
    assert [clause.verdict for clause in clauses] == ["fails", "within the noise", "fails", "holds"]
    said = "a: a is 0.970 [0.968, 0.972], asked above 1"
    assert sentence_of(clauses) == f"{said}; 1 more holds; 1 more fails; 1 more within the noise"
