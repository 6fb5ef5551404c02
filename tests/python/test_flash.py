"""Flash drives in studies: what the tables say of their flash, the metric, the figure, the steady state."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from raidlab import _core
from raidlab.api import analyse, run_study
from raidlab.figures import make_figures
from raidlab.model import FORMS
from raidlab.results import Run

STUDY = """
name = "flash"
title = "flash"
on = ["sim"]

[[array]]
name = "raid0"
tree = "raid0(2, chunk=64KiB)"

[[array]]
name = "raid10"
tree = "raid10(2, chunk=64KiB)"

[[workload]]
name = "writes"
read = 0.0
size = "4KiB"
address = "uniform"

[load]
depths = [32]

[sim]
warmup = { requests = 1 }
measure = { duration = "DURATION" }

[sim.device]
kind = "ssd"
capacity_bytes = 33_554_432
channels = 1
dies_per_channel = 2
pages_per_block = 32
page_bytes = 4096
read_us = 50
program_us = 900
erase_ms = 3
channel_mb_s = 400
link_mb_s = 500
spare_percent = 25
cache_bytes = 65536
initial = "INITIAL"

[[compare]]
group = "all"
title = "two drives"
reference = "raid0"
equal = "members"
per = "disk"
"""


def ran(folder: Path, initial: str, duration: str) -> Run:
    file = folder / "study.toml"
    file.write_text(STUDY.replace("INITIAL", initial).replace("DURATION", duration), encoding="utf-8")
    return run_study(file, out=folder / "runs", seed=1)


def amplification(run: Run) -> dict[str, float]:
    table = analyse(run).table
    return dict(zip(table["array"], table["write_amplification"], strict=True))


def test_a_new_drive_ends_where_a_steady_one_begins(tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    (tmp_path / "steady").mkdir()
    fresh, steady = ran(tmp_path / "fresh", "fresh", "40s"), ran(tmp_path / "steady", "steady", "40s")
    expected = FORMS["flash_greedy"].value(spare_factor=1.25, units_per_block=32)
    for array, seen in amplification(steady).items():
        assert seen == pytest.approx(expected, rel=0.05), array
    # The mean over everything is less, for the beginning costs nothing.
    assert all(1 < seen < expected * 0.95 for seen in amplification(fresh).values())
    per_second = fresh.snapshots.join(fresh.cells.select("cell", "array"), on="cell").filter(pl.col("array") == "raid0")
    rates = per_second.sort("time_ns")["requests"].to_list()
    steady_rate = steady.cells.filter(pl.col("array") == "raid0")["all_requests"][0] / 40
    assert rates[1] > 1.8 * steady_rate
    assert sum(rates[-10:-1]) / 9 == pytest.approx(steady_rate, rel=0.05)
    kinds = {figure.kind for figure in make_figures(analyse(fresh))}
    assert "rate_over_time" in kinds


def test_every_byte_is_accounted_for(tmp_path: Path) -> None:
    run = ran(tmp_path, "steady", "2s")
    members = run.members
    # Whole units of 4 KiB: what the host wrote is what the drives were given, but for what was on its way.
    difference = (members["flash_host_bytes"].cast(pl.Int64) - members["write_bytes"].cast(pl.Int64)).abs()
    assert (difference <= 64 * 4096).all()
    assert (members["flash_padded_bytes"] == 0).all()
    # Each block erased gave back 32 pages of 4 KiB; some are not filled yet.
    programmed = members["flash_host_bytes"] + members["flash_moved_bytes"]
    erased = members["flash_erased_blocks"] * 32 * 4096
    assert ((programmed.cast(pl.Int64) - erased.cast(pl.Int64)).abs() <= 6 * 32 * 4096).all()
    assert "rate_over_time" not in {figure.kind for figure in make_figures(analyse(run))}


def test_prepaid_pairs_are_refused() -> None:
    from raidlab.model import cells

    device = cells.flash(32, 50, 20, "greedy")
    cell = cells.cell(device, cells.MEMBER, cells.closed(1), requests=10)
    with pytest.raises(_core.CellError, match="no revolution") as refused:
        _core.run_cell(json.dumps({**cell, "pair_pricing": "prepaid"}), None)
    assert refused.value.key == "members[0].pair_pricing"
