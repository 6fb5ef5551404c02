"""What the first sentence of a report says, and what it must not say."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from raidlab.analysis.checks import INVALID, PASS, WARN, Finding
from raidlab.analysis.metrics import Analysis, ComparedArray, Comparison, HoldResult
from raidlab.analysis.metrics.comparison import ALWAYS_EXCEEDED, NEVER_EXCEEDED
from raidlab.analysis.metrics.point import Point
from raidlab.api import analyse
from raidlab.report import answers
from raidlab.report.answer import TableAnswer
from raidlab.report.cards import cards_of
from raidlab.results import Run

RATES = {"raid0": (100.0, 101.0, 99.0)}


def row(
    array: str,
    rates: tuple[float, ...],
    reference: tuple[float, ...],
    held: HoldResult | None = None,
    requests: float = 1000,
) -> ComparedArray:
    percent = 100 * sum(rates) / sum(reference)
    place = cast(Point, SimpleNamespace(load="closed", keeps_up=True, total=lambda _: requests))
    return ComparedArray(
        array, place, {"relative_throughput_percent": percent, "response_time_ms_p90": None}, held, rates, None
    )


def held(percent: float, bound: str = "between", target_ms: float = 20.0) -> HoldResult:
    return HoldResult(90, target_ms, percent, 100.0, 4.0, percent, bound, (percent, percent * 1.001))


def answer(
    *tables: list[ComparedArray],
    target: str = "live",
    findings: tuple[Finding, ...] = (),
    contenders: tuple[str, ...] = (),
    workloads: tuple[str, ...] = (),
    sweep_from: int | None = None,
) -> TableAnswer:
    asked = {"contenders": contenders, "workloads": workloads, "sweep_from": sweep_from}
    compare = SimpleNamespace(group="all", reference="raid0", per="disk", **asked)
    comparisons = [
        Comparison(cast(Any, compare), target, f"small writes{' again' * index}", "queue depth 8", tuple(rows))
        for index, rows in enumerate(tables)
    ]
    study = SimpleNamespace(compare=[compare])
    analysis = SimpleNamespace(comparisons=comparisons, run=SimpleNamespace(study=study))
    return answers(cast(Analysis, analysis), findings)[0]


def sentence(rows: list[ComparedArray], target: str = "live", findings: tuple[Finding, ...] = ()) -> str:
    return answer(rows, target=target, findings=findings).sentence


def closed(**arrays: tuple[float, ...]) -> list[ComparedArray]:
    reference = arrays["raid0"]
    return [row(array, rates, reference) for array, rates in arrays.items()]


def test_only_who_is_ahead_of_the_reference_leads() -> None:
    text = sentence(closed(raid0=(100, 101, 99), raid10=(120, 121, 119), raid5=(30, 31, 29)))
    assert "raid10 leads in small writes (120 %, 95 % interval" in text


def test_who_is_behind_the_reference_only_comes_closest() -> None:
    text = sentence(closed(raid0=(100, 101, 99), raid10=(50, 51, 49), raid5=(30, 31, 29)))
    assert "raid10 comes closest in small writes (50 %" in text
    assert "lead" not in text


def test_a_noisy_best_keeps_up_at_most() -> None:
    text = sentence(closed(raid0=(100, 60, 140), raid10=(90, 70, 130), raid5=(10, 11, 9)))
    assert "raid10 keeps up in small writes" in text


@pytest.mark.parametrize(
    ("rates", "said"), [((71, 20, 122), "may keep up"), ((130, 20, 240), "may lead"), ((98, 60, 136), "keeps up")]
)
def test_what_only_scatter_makes_level_is_not_said_to_keep_up(rates: tuple[float, ...], said: str) -> None:
    text = sentence(closed(raid0=(100, 60, 140), raid10=rates, raid5=(1, 1.1, 0.9)))
    assert f"raid10 {said} in small writes" in text


def test_who_is_next_is_said_of_a_lone_workload() -> None:
    raid0, raid10, raid5 = (100, 101, 99), (50, 51, 49), (30, 31, 29)
    assert "; next is raid5 with 30 %)" in sentence(closed(raid0=raid0, raid10=raid10, raid5=raid5, raid6=(20, 21, 19)))
    # Of those level with the best none is next.
    assert "next" not in sentence(closed(raid0=raid0, raid10=raid10, raid1=(48, 49, 47)))


def test_what_is_behind_the_reference_is_not_hidden_by_an_array_between_them() -> None:
    said = sentence(closed(raid0=(100, 101, 99), raid10=(97, 98, 96), raid5=(93, 94, 92)))
    assert "raid10 keeps up in small writes (97 %, 95 % interval 97 to 97; next is raid5 with 93 %)" in said
    led = sentence(closed(raid0=(100, 101, 99), raid10=(107, 108, 106), raid5=(103, 104, 102)))
    assert "raid10 leads" in led and "next is raid5 with 103 %" in led


def test_next_may_be_the_reference() -> None:
    raid0, raid10 = (100, 101, 99), (120, 121, 119)
    assert "next is raid0 with 100 %" in sentence(closed(raid0=raid0, raid10=raid10, raid5=(30, 31, 29)))
    assert "next is raid5 with 103 %" in sentence(closed(raid0=raid0, raid10=raid10, raid5=(103, 104, 102)))
    # That it leads says as much.
    assert "next" not in sentence(closed(raid0=raid0, raid10=raid10))


def test_only_the_contenders_that_a_study_names_are_answered_about() -> None:
    rows = closed(raid0=(100, 101, 99), quad=(150, 151, 149), raid10=(104, 105, 103), raid5=(30, 31, 29))
    said = answer(rows, contenders=("raid10", "raid5")).sentence
    assert "quad" not in said and "raid10 keeps up" in said and "next is raid5 with 30 %" in said
    assert "again" not in answer(rows, rows, workloads=("small writes",)).sentence


def test_an_answer_over_the_sweep_is_the_mean_of_its_ratios() -> None:
    rows = closed(raid0=(100, 101, 99), raid10=(90, 91, 89))
    swept = {"raid0": (50.0, 51.0, 49.0), "raid10": (60.0, 61.2, 58.8)}
    rows = [replace(one, sweep_rates=swept[one.array]) for one in rows]
    said = answer(rows, sweep_from=4).sentence
    assert said.startswith("Throughput per disk on average over all loads from queue depth 4, as a share of raid0")
    assert "raid10 leads in small writes (120 %" in said
    # Where an array was not run at them, it is the heaviest load that is answered from.
    assert "at queue depth 8" in answer([replace(rows[0], sweep_rates=()), rows[1]], sweep_from=4).sentence


def test_one_that_is_better_than_another_is_never_left_out_of_the_tie() -> None:
    # raid6's repeats scatter so much that it cannot be told from the best; raid5 lies between and can.
    rows = closed(raid0=(10, 10, 10), raid10=(112, 112.5, 112.2), raid5=(100, 100.5, 100.2), raid6=(60, 130, 86))
    text = sentence(rows)
    assert "raid10 leads" in text
    assert "raid6" not in text


def test_a_workload_that_only_one_array_ran_is_not_counted_among_those_compared() -> None:
    both = closed(raid0=(100, 101, 99), raid10=(50, 51, 49))
    summary = answer(both, both, closed(raid0=(100, 101, 99))).summary
    assert summary == "raid0 is best or as good as the best in 2 of 2 workloads."
    three = closed(raid0=(100, 101, 99), raid10=(50, 51, 49), raid5=(30, 31, 29))
    summary = answer(three, three, both, closed(raid0=(100, 101, 99))).summary
    assert summary == "Beside raid0, raid10 is best or as good as the best in 3 of 3 workloads."


def test_of_two_the_one_that_is_ahead_is_the_answer() -> None:
    raid0 = (100, 101, 99)
    behind = answer(closed(raid0=raid0, raid10=(50, 51, 49)))
    assert behind.sentence.endswith("raid0 leads in small writes (raid10 has 50 %, 95 % interval 49 to 51).")
    assert behind.clauses[0].standing == "ahead"
    assert "raid10 leads in small writes (120 %" in sentence(closed(raid0=raid0, raid10=(120, 121, 119)))
    assert "no difference is shown" in sentence(closed(raid0=(100, 20, 180), raid10=(70, 130, 40)))
    # One that nobody asks about makes no third.
    third = closed(raid0=raid0, raid10=(50, 51, 49), raid5=(30, 31, 29))
    assert "raid0 leads" in answer(third, contenders=("raid10",)).sentence


@pytest.mark.parametrize("reference", ["raid0", "raid10"])
def test_the_card_says_how_many_members_of_each_array_may_fail(
    small_run: Run, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    compare = small_run.study.compare[0].model_copy(update={"reference": reference})
    monkeypatch.setitem(small_run.__dict__, "study", small_run.study.model_copy(update={"compare": [compare]}))
    (card,) = cards_of(analyse(small_run), [], has_published=False)
    assert card.failures_borne == "Members that may fail, whichever: none of raid0, 1 of raid5, 1 of raid10."
    assert card.reference_note == (", which has no redundancy" if reference == "raid0" else "")


def test_no_difference_is_an_answer() -> None:
    text = sentence(closed(raid0=(100, 101, 99), raid10=(101, 100, 102), raid5=(99, 101, 100)))
    assert "no difference is shown in small writes" in text


def test_live_cells_run_once_answer_nothing() -> None:
    assert sentence(closed(raid0=(100,), raid10=(150,))) == "Each cell was run once, so no difference can be shown."
    assert "raid10 leads" in sentence(closed(raid0=(100,), raid10=(150,)), target="sim")


def test_few_requests_answer_nothing() -> None:
    reference = (100.0, 101.0, 99.0)
    rows = [row("raid0", reference, reference), row("raid10", (50.0, 51.0, 49.0), reference, requests=35)]
    assert sentence(rows).endswith("as a share of raid0: too few requests to say in small writes.")


def test_an_invalid_target_answers_nothing() -> None:
    finding = Finding("too_short", "live", INVALID, "Too few.", "More.")
    assert (
        sentence(closed(raid0=(100, 1), raid10=(150, 1)), findings=(finding,)) == "No answer: too_short says INVALID."
    )
    other = Finding("too_short", "sim", INVALID, "Too few.", "More.")
    assert "No answer" not in sentence(closed(raid0=(100, 101), raid10=(150, 151)), findings=(other,))


def test_members_on_one_device_are_said_before_anything_else() -> None:
    rows = closed(raid0=(100, 101), raid10=(150, 151))
    shared = Finding("shared_device", "live", WARN, "One device.", "Give more.")
    assert "does not judge separate disks" in answer(rows, findings=(shared,)).caution
    for other in (replace(shared, target="sim"), replace(shared, verdict=PASS), replace(shared, check="cache")):
        assert answer(rows, findings=(other,)).caution == ""


@pytest.mark.parametrize(
    ("bound", "basis"), [("between", "at the same p90 of response time (20 ms)"), (NEVER_EXCEEDED, "at queue depth 8")]
)
def test_equal_response_time_is_claimed_only_where_it_was_met(bound: str, basis: str) -> None:
    reference = (100.0, 101.0, 99.0)
    rows = [
        row("raid0", reference, reference, held(100)),
        row("raid10", (50.0, 51.0, 49.0), reference, held(60, bound)),
    ]
    assert basis in sentence(rows)


def _missing(array: str, bound: str) -> ComparedArray:
    found = replace(held(60, bound), relative_percent=None) if bound == ALWAYS_EXCEEDED else held(60, bound)
    return row(array, (50.0, 51.0, 49.0), RATES["raid0"], found)


def test_workloads_that_hold_no_response_time_are_told_from_those_that_do() -> None:
    reference = RATES["raid0"]
    at_target = [row("raid0", reference, reference, held(100)), row("raid10", (50, 51, 49), reference, held(60))]
    found = answer(at_target, closed(raid0=reference, raid10=(70, 71, 69)))
    assert found.basis == (
        "Throughput per disk at the same p90 of response time (20 ms) in small writes, and at queue depth 8"
        " in small writes again (no response time is held there), as a share of raid0"
    )
    # Each is judged by its own figures.
    assert [clause.figure.split(" %")[0] for clause in found.clauses] == ["raid10 has 60", "raid10 has 70"]


def test_two_targets_are_not_said_to_be_one() -> None:
    reference = RATES["raid0"]
    tables = [
        [row("raid0", reference, reference, held(100, target_ms=ms)), row("raid5", (50, 51, 49), reference, held(60))]
        for ms in (20.0, 30.0)
    ]
    assert answer(*tables).basis == "Throughput per disk at the same p90 of response time, as a share of raid0"


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        ((ALWAYS_EXCEEDED, "between"), "raid10 misses the target even with one request at a time"),
        ((ALWAYS_EXCEEDED, ALWAYS_EXCEEDED), "raid10 and raid5 miss the target even with one request at a time"),
        ((NEVER_EXCEEDED, "between"), "raid10 stays below the target at every depth tried"),
    ],
)
def test_why_an_answer_is_not_given_at_the_target_is_said(bounds: tuple[str, str], why: str) -> None:
    rows = [row("raid0", RATES["raid0"], RATES["raid0"], held(100))]
    rows += [_missing(array, bound) for array, bound in zip(("raid10", "raid5"), bounds, strict=True)]
    assert f"at queue depth 8 in small writes ({why}), as a share of raid0: " in sentence(rows)


def test_overload_is_no_response_time() -> None:
    point = {"load": "open", "keeps_up": False}
    place = cast(Point, SimpleNamespace(**point))
    rows = [ComparedArray(name, place, {"response_time_ms_p90": 900.0}, None, (), None) for name in ("raid0", "raid5")]
    text = sentence(rows)
    assert "raid0 and raid5 cannot keep up" in text
    assert "900" not in text
