"""Rebuild, resync and check against what real Linux md did over the same exact disks; see ``README.md`` here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "md-lab"))

import witness_tasks
from witness_tasks import TaskCase, TaskFigures, outside, simulate

MD = witness_tasks.read_kept()


def test_every_case_was_run_on_md() -> None:
    assert list(MD) == witness_tasks.task_cases()
    assert set(witness_tasks.KNOWN) <= {case.name for case in MD}


@pytest.mark.parametrize("case", MD, ids=lambda case: case.name)
def test_a_task_is_as_far_from_md_as_is_known(case: TaskCase) -> None:
    assert outside(case, MD[case], simulate(case)) == witness_tasks.KNOWN.get(case.name, ())


def test_the_bounds_of_tasks_bite() -> None:
    case = TaskCase("raid5", 5, 64, "check", "r", 8)
    md = TaskFigures(10.0, 10_000, 10**9, 5_000, 10**9, 1_000)
    assert outside(case, md, md) == ()
    further = TaskFigures(10.6, 11_000, 1_040_000_000, 5_400, 1_040_000_000, 1_200)
    assert outside(case, md, further) == ("duration", "reads", "read bytes", "writes", "write bytes", "rate")


def test_slower_disks_are_seen() -> None:
    case = next(case for case in MD if case.name == "raid10-n4-check")
    assert "duration" in outside(case, MD[case], simulate(case, service_ns=6_000_000))
