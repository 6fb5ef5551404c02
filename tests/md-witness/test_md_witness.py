"""The simulator against what real Linux md did over the same exact disks; see ``README.md`` in this folder."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "md-lab"))

import witness
import witness_cases
from witness_cases import Case, Figures, judge

MD = witness.read_committed()
SLOW = {("raid5", "write"), ("raid6", "write")}
ARRAYS = [
    pytest.param(*array, marks=[pytest.mark.slow] if array in SLOW else [])
    for array in sorted({(case.level, case.operation) for case in MD})
]


def outside(case: Case, **changes: object) -> tuple[str, ...]:
    simulated = witness_cases.simulate(case, **changes)
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
    md = Figures(280.0, 0.0, 160_000.0, 0.0, 120_000.0, reads=1.98, writes=2.0, bytes=16_300.0)
    assert judge(case, md, md).outside == ()
    for change, name in (
        ({"iops": 277.0}, "iops"),
        ({"write_p90_us": 177_000.0}, "write p90"),
        ({"reads": 1.91}, "reads"),
        ({"writes": 2.07}, "writes"),
        ({"bytes": 16_700.0}, "bytes"),
    ):
        assert judge(case, md, dataclasses.replace(md, **change)).outside == (name,)


def test_the_witness_knows_one_policy_from_another() -> None:
    assert "iops" in outside(Case("raid1", 4, None, 5_000_000, "read", 32), mirror_read={"kind": "primary"})
    # Which copy is read, and where the copies lie.
    far = Case("raid10", 4, 64, 5_000_000, "read", 32, copies="far2")
    assert "iops" in outside(far, mirror_read={"kind": "primary"})
    far = dataclasses.replace(far, operation="write", depth=8, block_bytes=1 << 18, align_bytes=4096)
    near = witness_cases.simulate(dataclasses.replace(far, copies="near2"))
    assert {"iops", "writes"} <= set(judge(far, MD[far], near).outside)
    # What lies together on a member is read in several accesses, and a part of a page is written as a page.
    chunks = Case("raid10", 4, 64, 5_000_000, "read", 1, 1 << 20, 4096)
    assert {"iops", "reads"} <= set(outside(chunks, chunk_accesses="joined"))
    assert {"reads", "bytes"} <= set(outside(Case("raid5", 3, 16, 5_000_000, "write", 8, 512), parity_row=0))
    # Eight requests of 64 rows each are more than there are in memory.
    assert "iops" in outside(Case("raid5", 5, 64, 5_000_000, "write", 8, 1 << 20), stripe_cache_size=0)
    stream = Case("raid0", 4, 64, 5_000_000, "read", 8, 4096, 0)
    assert {"iops", "reads"} <= set(outside(stream, merge=0))
    # Both ways take as many accesses; which members they go to makes the difference.
    tie = Case("raid5", 4, 64, 5_000_000, "write", 8)
    assert "iops" in outside(tie, parity_write_tie="read_modify_write")
    assert "write p90" in outside(Case("raid6", 6, 64, 5_000_000, "write", 32), scheduler="fifo")
