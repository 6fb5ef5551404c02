"""Flash drives in studies: what the tables say of their flash, the metric, the figure, the steady state, the limit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from raidlab import _core
from raidlab.analysis.metrics.utilisation import FLASH_PARTS, MEMBERS, SLOTS, limit_of, parts_of
from raidlab.analysis.model import FORMS
from raidlab.api import analyse, run_study
from raidlab.report.figures import make_figures
from raidlab.report.path import data_path
from raidlab.results import Run, load_run

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
placement = "PLACEMENT"
initial = "INITIAL"

[[compare]]
group = "all"
title = "two drives"
reference = "raid0"
equal = "members"
per = "disk"
"""


def ran(folder: Path, initial: str, duration: str, placement: str = "dynamic") -> Run:
    file = folder / "study.toml"
    text = STUDY.replace("INITIAL", initial).replace("DURATION", duration).replace("PLACEMENT", placement)
    file.write_text(text, encoding="utf-8")
    return run_study(file, out=folder / "runs", seed=1)


def amplification(run: Run) -> dict[str, float]:
    table = analyse(run).table
    return dict(zip(table["array"], table["write_amplification"], strict=True))


@pytest.mark.parametrize("placement", ["dynamic", "by_address"])
def test_a_new_drive_ends_where_a_steady_one_begins(tmp_path: Path, placement: str) -> None:
    (tmp_path / "fresh").mkdir()
    (tmp_path / "steady").mkdir()
    fresh, steady = (ran(tmp_path / initial, initial, "40s", placement) for initial in ("fresh", "steady"))
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


def test_a_placement_that_is_none_is_refused() -> None:
    from raidlab.analysis.model import cells

    device = {**cells.flash(32, 50, 20, "greedy"), "placement": "anywhere"}
    with pytest.raises(_core.CellError, match="accepted: dynamic or by_address"):
        _core.run_cell(json.dumps(cells.cell(device, cells.MEMBER, cells.closed(1), requests=10)), None)


def test_prepaid_pairs_are_refused() -> None:
    from raidlab.analysis.model import cells

    device = cells.flash(32, 50, 20, "greedy")
    cell = cells.cell(device, cells.MEMBER, cells.closed(1), requests=10)
    with pytest.raises(_core.CellError, match="no revolution") as refused:
        _core.run_cell(json.dumps({**cell, "pair_pricing": "prepaid"}), None)
    assert refused.value.key == "members[0].pair_pricing"


# Two drives of four dies on two channels: 50 us to sense, 5 ns a byte over the channel, 2 ns a byte over the link.
LIMITS = """
name = "limits"
title = "limits"
array = [{ name = "pair", tree = "raid0(2, chunk=64KiB)" }]

[[workload]]
name = "small"
read = 1.0
size = "4KiB"
address = "uniform"

[[workload]]
name = "large"
read = 1.0
size = "1MiB"
address = "sequential"

[load]
depths = [1, 256]

[sim]
measure = { duration = "2s" }

[sim.device]
kind = "ssd"
capacity_bytes = 67_108_864
channels = 2
dies_per_channel = 2
pages_per_block = 32
page_bytes = 16384
read_us = 50
program_us = 900
erase_ms = 3
channel_mb_s = 200
link_mb_s = LINK
spare_percent = 25
queue_depth = 256
initial = "filled"
"""
DIE, CHANNEL, LINK = FLASH_PARTS


@pytest.fixture(scope="module", params=[500, 300])
def limits(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, int]:
    folder = tmp_path_factory.mktemp("limits")
    file = folder / "study.toml"
    file.write_text(LIMITS.replace("LINK", str(request.param)), encoding="utf-8")
    return run_study(file, out=folder / "runs", seed=1), request.param


def test_the_limit_of_flash_drives_is_the_part_that_is_busy(limits: tuple[Run, int]) -> None:
    run, link_mb_s = limits
    points = {(point.workload, point.depth): point for point in analyse(run).points}
    found = {key: limit_of(parts_of(point)) for key, point in points.items()}
    # A single small request waits for itself: for the sensing, then the channel, then the link.
    assert found["small", 1] is None
    # Two channels give 400 MB/s, four dies that sense and send 16 KiB in 132 us 497.
    large = FLASH_PARTS[CHANNEL] if link_mb_s == 500 else FLASH_PARTS[LINK]
    assert {key: part.name for key, part in found.items() if part and key[1] == 256} == {
        ("small", 256): FLASH_PARTS[DIE],
        ("large", 256): large,
    }
    rate = 2 * min(400, link_mb_s) * 1e6
    assert points["large", 256].per_s("all_bytes") == pytest.approx(rate, rel=0.03)
    path = data_path([points["small", 256], points["large", 256]])
    assert path is not None and "the busiest die of a member in 1" in path.sentence
    assert {MEMBERS} & set(path.parts) == set() and SLOTS in path.parts


def test_busy_times_within_flash_drives_are_those_of_what_they_did(limits: tuple[Run, int]) -> None:
    run, link_mb_s = limits
    rows = run.members.join(run.cells.select("cell", "workload", "depth", "elapsed_ns"), on="cell")
    for row in rows.iter_rows(named=True):
        # What was on its way when the window closed: as many requests as were outstanding, at most.
        slack = 0.001 + 2 * row["depth"] * 2**19 / row["read_bytes"] if row["workload"] == "large" else 0.01
        assert row["servers"] == 256
        assert row[LINK] == pytest.approx(row["read_bytes"] * 1e3 / link_mb_s, rel=slack)
        # A share of two channels and of four dies, the busiest of which has somewhat more.
        channel_ns = row["read_bytes"] * 5 / 2
        assert channel_ns * (1 - slack) < row[CHANNEL] < channel_ns * (1.02 + slack)
        pages = row["read_bytes"] / (4096 if row["workload"] == "small" else 16384)
        die_ns = (pages * 50_000 + row["read_bytes"] * 5) / 4
        assert die_ns * (1 - slack) < row[DIE] < die_ns * (1.04 + slack)
        assert max(row[part] for part in FLASH_PARTS) <= row["elapsed_ns"]


def test_folders_of_before_say_nothing_of_what_limits_a_flash_drive(limits: tuple[Run, int], tmp_path: Path) -> None:
    run, _ = limits
    copy = tmp_path / "old"
    shutil.copytree(run.folder, copy)
    facts = json.loads((copy / "run.json").read_text(encoding="utf-8"))
    (copy / "run.json").write_text(json.dumps({**facts, "schema_version": 6, "tables": {}}), encoding="utf-8")
    pl.read_parquet(copy / "members.parquet").drop("servers", *FLASH_PARTS).write_parquet(copy / "members.parquet")
    assert all(parts_of(point) == [] for point in analyse(load_run(copy)).points)


def test_emulated_flash_drives_say_what_simulated_ones_do() -> None:
    from raidlab.analysis.model import cells

    cell = cells.cell(cells.flash(32, 50, 20, "greedy"), cells.MEMBER, cells.closed(4), read_fraction=0.5, requests=500)
    simulated = _core.run_cell(json.dumps(cell), None)["members"][0]
    members = [{"kind": "emulated", "device": cell["members"][0]}]
    answer = _core.run_cell(json.dumps({**cell, "engine": "live", "members": members, "speed": 20.0}), None)
    emulated = answer["members"][0]
    assert set(simulated) <= set(emulated)
    assert emulated["servers"] == simulated["servers"]
    assert emulated["flash_host_bytes"] == pytest.approx(emulated["write_bytes"], abs=8 * 4096)
    assert 0 < emulated["flash_die_busy_ns"] <= answer["elapsed_ns"]
