"""The simulator against what real Linux md did over the same exact disks; see ``README.md`` in this folder."""

from __future__ import annotations

import dataclasses
import functools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "md-lab"))

import witness
import witness_cases
from witness_cases import Case, Figures, judge

MD = witness.read_committed()
ARRAYS = sorted({(case.level, case.operation) for case in MD})

offsets = functools.cache(witness_cases.loadgen_offsets)


def outside(case: Case, **changes: object) -> tuple[str, ...]:
    simulated = witness_cases.simulate(case, offsets(case.seed, case.depth), **changes)
    return judge(case, MD[case], simulated).outside


def test_every_case_was_run_on_md() -> None:
    assert list(MD) == witness_cases.cases()


@pytest.mark.parametrize(("level", "operation"), ARRAYS)
def test_the_simulator_is_where_md_is(level: str, operation: str) -> None:
    wanted = [case for case in MD if (case.level, case.operation) == (level, operation)]
    apart = {case.name: found for case in wanted if (found := outside(case))}
    assert not apart


def test_the_bounds_bite() -> None:
    case = Case("raid5", 6, 64, 5_000_000, "write", 32)
    md = Figures(iops=280.0, p90_us=160_000.0, reads=1.98, writes=2.0)
    assert judge(case, md, md).outside == ()
    for change, name in (
        ({"iops": 262.0}, "iops"),
        ({"p90_us": 177_000.0}, "p90"),
        ({"reads": 1.91}, "reads"),
        ({"writes": 2.07}, "writes"),
    ):
        assert judge(case, md, dataclasses.replace(md, **change)).outside == (name,)


def test_the_witness_knows_one_policy_from_another() -> None:
    assert "iops" in outside(Case("raid1", 4, None, 5_000_000, "read", 32), mirror_read={"kind": "primary"})
    # Both ways take as many accesses; which members they go to makes the difference.
    tie = Case("raid5", 4, 64, 5_000_000, "write", 8)
    assert "iops" in outside(tie, parity_write_tie="read_modify_write")
    assert "p90" in outside(Case("raid6", 6, 64, 5_000_000, "write", 32), scheduler="fifo")
