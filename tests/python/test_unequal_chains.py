"""Volumes that are unlike: a cache that only some have, and the rate of equal amounts over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from raidlab import run_study
from raidlab.api import analyse
from raidlab.published.quantities import NotThereError, Source, read_measure

STUDY = """
name = "chains"
title = "A slow chain beside a fast one"
on = ["original"]
array = [{ name = "two", tree = "independent(2)" }]
workload = [{ name = "reads", read = 1.0, size = "16KiB", address = "sequential", volumes = "even" }]
load = { depths = [2] }

[original]
device = { kind = "fixed", capacity_bytes = 1073741824, read_us = 900.0, write_us = 900.0, servers = 8 }
warmup = { requests = 500 }
measure = { requests = 4000 }
station = [{ name = "controller", each = "volume" }]
request_path = [{ station = "controller", phase = "command", cost = "300us" }]

[[original.cache]]
only = [0]
line = "16KiB"
fetch = "16KiB"
read_room = "8MiB"
dirty_room = "4MiB"

[[original.cache]]
line = "16KiB"
fetch = "256KiB"
read_room = "8MiB"
read_ahead = "1MiB"
dirty_room = "4MiB"
"""


def test_one_volume_reads_ahead_and_the_rate_is_of_mean_times(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    analysis = analyse(run_study(file, out=tmp_path / "runs"))
    source = Source(analysis, "original", tmp_path)
    measure = {"kind": "equal_amounts", "array": "two", "workload": "reads", "station": "controller"}
    rate = read_measure(measure, source)
    assert rate is not None
    # One waits 300 us and 900 us for each block, the other for the controller only.
    assert rate.value == pytest.approx(2 * 16384 / ((1200 + 300) / 2), rel=0.02)
    total = analysis.points[0].per_s("all_bytes") / 1e6
    assert total == pytest.approx(16384 / 1200 + 16384 / 300, rel=0.02) and rate.value < total
    with pytest.raises(NotThereError, match="'bus'"):
        read_measure(measure | {"station": "bus"}, source)


def test_on_real_members_it_is_the_throughput(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY + "[live]\nmeasure = { requests = 50 }\nwarmup = {}\nrepeats = 1\n", encoding="utf-8")
    analysis = analyse(run_study(file, on=["memory"], out=tmp_path / "runs"))
    measure = {"kind": "equal_amounts", "array": "two", "workload": "reads", "station": "controller"}
    rate = read_measure(measure, Source(analysis, "live", tmp_path))
    assert rate is not None and rate.value == pytest.approx(analysis.points[0].per_s("all_bytes") / 1e6)


def test_a_place_on_the_sweep_is_found_by_accesses(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    text = """
name = "mirror"
title = "Writes to a mirror"
on = ["sim"]
array = [{ name = "pair", tree = "raid1(2)" }, { name = "one", tree = "independent(1)" }]
workload = [{ name = "writes", read = 0.0, size = "16KiB" }]
load = { depths = [1, 4, 8] }
sim = { device = "hdd-7200-bare", measure = { requests = 300 } }
"""
    file.write_text(text, encoding="utf-8")
    source = Source(analyse(run_study(file, out=tmp_path / "runs")), "sim", tmp_path)

    def outstanding(array: str, at: object) -> float | None:
        found = read_measure(
            {"kind": "metric", "metric": "outstanding_mean", "array": array, "workload": "writes", "at": at}, source
        )
        return None if found is None else found.value

    # Two accesses a write: eight of them are four writes.
    assert outstanding("pair", {"accesses": 8}) == outstanding("pair", {"depth": 4})
    assert outstanding("one", {"accesses": 8}) == outstanding("one", {"depth": 8})
    between = outstanding("pair", {"accesses": 12})
    assert between is not None and between == pytest.approx(6, rel=0.01)
    assert outstanding("one", {"accesses": 9}) is None
