"""The studies of bad days: what their abstracts say holds in the simulator; the measure of a rebuild; its unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from raidlab.api import analyse, compare_with_published, run_study
from raidlab.errors import InputError
from raidlab.published.quantities import read_measure
from raidlab.published.quantities.kind import Source
from raidlab.study import load_study

STUDY = """
name = "one-rebuild"
title = "One rebuild"
on = ["sim"]

[[array]]
name = "rebuilt"
tree = "raid5(3, chunk=64KiB)"
missing = [1]
rebuild = { throttle = { kind = "share", fraction = 1.0 }, unit = "128KiB", watch = "0s" }

[[array]]
name = "too late"
tree = "raid5(3, chunk=64KiB)"
missing = [1]
rebuild = { throttle = { kind = "rate", kib_s = 1 } }

[[workload]]
name = "reads"
read = 1.0
size = "4KiB"

[load.open]
arrival = "uniform"
rates_per_s = [1]

[sim]
repeats = 2
warmup = { requests = 1 }
measure = { duration = "10s" }

[sim.device]
kind = "fixed"
capacity_bytes = 67108864
sector_bytes = 512
read_us = 1000
write_us = 1000
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["holland1992", "hou1993"])
def test_what_the_abstracts_say_holds(name: str, tmp_path: Path) -> None:
    run = run_study(load_study(name), on=["sim"], out=tmp_path, quick=True)
    conclusions = compare_with_published(analyse(run), name).conclusions
    assert conclusions
    assert {row.verdict for row in conclusions} == {"holds"}, [(row.name, row.verdict) for row in conclusions]


def test_a_rebuild_is_as_long_and_as_fast_as_its_units(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    study = load_study(tmp_path / "study.toml")
    source = Source(analyse(run_study(study, on=["sim"], out=tmp_path / "run")), "sim", tmp_path)
    keys = {"kind": "rebuild", "array": "rebuilt", "workload": "reads"}
    took, speed = read_measure(keys, source), read_measure({**keys, "of": "mb_s"}, source)
    assert took is not None and speed is not None
    # 512 units of 128 KiB, each read and then written at 1 ms, and about one request.
    assert took.value == pytest.approx(1.024, abs=0.003) and len(took.each) == 2
    assert speed.value == pytest.approx(67.108864 / took.value, rel=0.01)
    assert read_measure({**keys, "array": "too late"}, source) is None


@pytest.mark.parametrize(
    ("unit", "accepted"), [("0B", "above 0"), ("1GiB", "at most"), ("1000B", "a multiple of the sector")]
)
def test_a_unit_that_is_none_is_refused(unit: str, accepted: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace("128KiB", unit))
    with pytest.raises(InputError) as caught:
        run_study(load_study(tmp_path / "study.toml"), on=["sim"], out=tmp_path / "run")
    assert "unit" in str(caught.value) and accepted in str(caught.value)
