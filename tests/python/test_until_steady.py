"""``raidlab measure --until-steady``: rounds before what is measured, until five in a row are steady."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raidlab.errors import InputError
from raidlab.measure import (
    BudgetFlags,
    Drive,
    LoadFlags,
    MeasureRequest,
    RequestedTimes,
    WorkloadFlags,
    execute,
    measure,
    request_of_flags,
)
from raidlab.study.expand import PILOT

MIB = 1 << 20


def test_rounds_go_on_until_five_are_steady_and_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data"
    file.write_bytes(os.urandom(8 * MIB))
    # Rates as those of a bucket: two rounds on credit, then steady.
    rates = iter([1000.0, 1000.0, 300.0, 301.0, 299.0, 300.0, 300.0])
    monkeypatch.setattr(execute, "LEAST_ROUND_NS", 20_000_000)
    measured = execute.bytes_per_s
    monkeypatch.setattr(execute, "bytes_per_s", lambda answer: next(rates, measured(answer)))
    asked = MeasureRequest(
        targets=[str(file)],
        workload={"name": "measure", "read": 1.0, "size": "4KiB"},
        load={"depths": [2]},
        budget=RequestedTimes(warmup="5ms", runtime="20ms", repeats=2),
        until_steady=True,
    )
    run = measure(asked, tmp_path / "runs")
    rounds = run.cells.filter(run.cells["purpose"] == PILOT)
    assert run.facts["status"] == "complete" and rounds.height == 7
    (steadied,) = run.facts["measure"]["steadied"]
    assert steadied["steady"] is True and steadied["rounds"] == 7
    assert run.cells.filter(run.cells["purpose"] == "sweep").height == 2


def test_a_search_has_no_rounds() -> None:
    flags = BudgetFlags(until_steady=True)
    with pytest.raises(InputError, match="--until-steady"):
        request_of_flags(["null"], WorkloadFlags(), LoadFlags(hold="p90=1ms"), flags, Drive())
