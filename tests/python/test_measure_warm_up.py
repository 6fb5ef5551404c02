"""How long ``raidlab measure`` runs before it measures, with an engine that answers at once."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from raidlab.analysis.checks import run_checks
from raidlab.analysis.metrics import Analysis
from raidlab.api import analyse
from raidlab.measure import BudgetFlags, Drive, LoadFlags, RequestedTimes, WorkloadFlags, measure, request_of_flags
from raidlab.measure.warm_up import found_by_pilot

SECOND_NS = 10**9


def answer_of(rates: list[int], engine: str = "direct") -> dict[str, Any]:
    """The answer of a run with so many requests in each second."""
    total = sum(rates)
    tally = {
        "requests": total,
        "bytes": 4096 * total,
        "failed": 0,
        "response": {"value_ns": [1000], "count": [total]},
        "service": {"value_ns": [1000], "count": [total]},
        "response_mean_ns": 1000.0,
        "service_mean_ns": 1000.0,
    }
    none = {**tally, "requests": 0, "bytes": 0, "response": {"value_ns": [], "count": []}}
    none |= {"service": none["response"], "response_mean_ns": None, "service_mean_ns": None}
    return {
        "engine": engine,
        "requests": total,
        "tasks": total,
        "elapsed_ns": len(rates) * SECOND_NS,
        "read": tally,
        "write": none,
        "all": tally,
        "depth": 32.0,
        "members": [],
        "snapshots": {
            "time_ns": [(second + 1) * SECOND_NS for second in range(len(rates))],
            "requests": rates,
            "bytes": [4096 * rate for rate in rates],
            "response_sum_ns": [1000 * rate for rate in rates],
        },
        "facts": {"targets": [{"kind": "null", "size_bytes": 1 << 40, "io": "none"}], "engine": {}},
        "checks": [],
        "stopped_by": None,
        "interrupted": False,
    }


def test_without_a_pilot_a_tenth_of_the_time_and_half_a_second_at_least() -> None:
    assert RequestedTimes("auto", "3s").fixed_warmup_ns == SECOND_NS // 2
    assert RequestedTimes("auto", "10s").fixed_warmup_ns == SECOND_NS
    assert RequestedTimes("2s", "10s").fixed_warmup_ns == 2 * SECOND_NS
    pilots = [
        RequestedTimes("auto", "10s").wants_pilot,
        RequestedTimes("auto", "11s").wants_pilot,
        RequestedTimes("2s", "60s").wants_pilot,
    ]
    assert pilots == [False, True, False]


def test_a_pilot_is_cut_where_its_beginning_ends() -> None:
    found = found_by_pilot(answer_of([900, 700, 400] + [100, 101, 99, 100] * 6))
    assert (found.warmup_ns, found.settled) == (3 * SECOND_NS, True)
    assert "MSER-5 cuts 3 of the 27 seconds" in found.sentence


def test_a_pilot_that_never_settles_gives_its_own_length_and_says_so() -> None:
    found = found_by_pilot(answer_of([1000 - 30 * second for second in range(30)]))
    assert (found.warmup_ns, found.settled) == (30 * SECOND_NS, False)
    assert "had not settled" in found.sentence


def test_a_second_that_was_not_whole_is_no_rate() -> None:
    answer = answer_of([100] * 12)
    answer["snapshots"]["time_ns"] = [*answer["snapshots"]["time_ns"], 13 * SECOND_NS]
    answer["snapshots"]["requests"] = [*answer["snapshots"]["requests"], 3]
    assert found_by_pilot(answer).warmup_ns == 1_200_000_000, "nothing to cut: a tenth of the time"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """In place of the engine: what it was asked is kept, a run without warm-up begins three times as fast."""
    asked: list[dict[str, Any]] = []

    def run_request(text: str, *_: object) -> dict[str, Any]:
        request = json.loads(text)
        asked.append(request)
        if request["measure"].get("requests") == 1:
            return answer_of([1])
        seconds = max(1, round(request["measure"]["duration"] / 1e9))
        fast = 0 if request["warmup"] else 2
        return answer_of([3000] * fast + [1000 + index % 3 for index in range(seconds - fast)])

    monkeypatch.setattr("raidlab.run.runner.run_request", run_request)
    monkeypatch.setattr("raidlab.run.session.run_request", run_request)
    return asked


def asked_of_null(**budget: Any) -> Any:
    return request_of_flags(["null"], WorkloadFlags(), LoadFlags(depth="1,8"), BudgetFlags(**budget), Drive())


def test_repeats_run_as_long_before_as_their_pilot_showed(engine: list[dict[str, Any]], tmp_path: Path) -> None:
    run = measure(asked_of_null(runtime="20s", repeats=2), tmp_path)
    ready, *cells = engine
    assert ready["measure"] == {"requests": 1}
    pilots, repeats = cells[:2], cells[2:]
    assert all(pilot["warmup"] == {} and pilot["measure"] == {"duration": 20_000_000_000} for pilot in pilots)
    assert [repeat["warmup"] for repeat in repeats] == [{"duration": 2_000_000_000}] * 4
    assert not {pilot["seed"] for pilot in pilots} & {repeat["seed"] for repeat in repeats}, "other addresses"
    analysis = analyse(run)
    assert [len(point.rows) for point in analysis.points] == [2, 2], "pilots are no results"
    found = {finding.check: finding for finding in run_checks(analysis)}["warm_up"]
    assert found.verdict == "PASS" and "MSER-5 cuts 2 of the 20 seconds" in found.evidence
    pilot, *others = run.facts["measure"]["warmups"]
    told = {**run.facts["measure"], "warmups": [{**pilot, "settled": False}, *others]}
    unsettled = Analysis(dataclasses.replace(run, facts={**run.facts, "measure": told}))
    (found,) = (finding for finding in run_checks(unsettled) if finding.check == "warm_up")
    assert found.verdict == "WARN" and "1 of 2 pilots had not settled" in found.evidence and found.remedy


def test_short_runs_have_no_pilot(engine: list[dict[str, Any]], tmp_path: Path) -> None:
    run = measure(asked_of_null(runtime="3s", repeats=1), tmp_path)
    assert [cell["warmup"] for cell in engine[1:]] == [{"duration": 500_000_000}] * 2
    assert run.facts["measure"]["warmups"] == []
    assert RequestedTimes().warmup == "auto"
