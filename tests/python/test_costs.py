"""What a load costs: processors by who worked, and energy; what nobody tells has no figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from raidlab.analysis.metrics import METRICS, Point
from raidlab.analysis.metrics.energy import power_of
from raidlab.api import analyse, run_study
from raidlab.report import write_page
from raidlab.report.costs import cost_sentence, costs_of
from raidlab.results import Run
from raidlab.results.tables import MACHINE, rows_of_cell
from raidlab.study.device import load_device

BY_KIND = {metric.kind: metric for metric in METRICS}
ENERGIES = ("disk_power_watts", "disk_energy_per_request_mj", "processor_energy_per_request_mj")
STUDY = """
name = "costs"
title = "Of what is used"
on = ["sim"]
[[array]]
name = "raid1"
tree = "raid1(2)"
[[workload]]
name = "reads"
read = 1.0
size = "4KiB"
[load]
depths = [1, 8]
[sim]
device = {device}
warmup = {{ requests = 20 }}
measure = {{ requests = 200 }}
repeats = 2
[live]
member_size = "8MiB"
measure = {{ requests = 300 }}
repeats = 1
"""
FIXED = '{ kind = "fixed", capacity_bytes = 1_000_000_000, read_us = 1000.0, write_us = 1000.0%s }'
POWER = ', power = { idle_watts = 4.0, active_watts = 10.0, source = "a sheet" }'


def run_of(folder: Path, device: str, on: str = "sim") -> Run:
    """A run of a small study over a device."""
    file = folder / "study.toml"
    file.write_text(STUDY.format(device=device), encoding="utf-8")
    return run_study(file, on=[on], out=folder / "runs")


def values(point: Point) -> dict[str, float | None]:
    """The metrics of energy of a point."""
    return {kind: BY_KIND[kind].compute(point, None) for kind in ENERGIES}


def test_modelled_disks_draw_what_their_file_says(tmp_path: Path) -> None:
    run = run_of(tmp_path, FIXED % POWER)
    for point in analyse(run).points:
        found = values(point)
        busy_ns = run.members.filter(pl.col("cell").is_in(point.cells))["busy_ns"].sum()
        # Two disks idle at 4 W; the 6 W more are drawn for as long as they work, over both repeats.
        watts = 2 * 4.0 + 6.0 * busy_ns / point.total("elapsed_ns")
        assert found["disk_power_watts"] == pytest.approx(watts) and 8.0 < watts <= 20.0
        per_request = 1000 * watts * point.total("elapsed_ns") / 1e9 / point.total("all_requests")
        assert found["disk_energy_per_request_mj"] == pytest.approx(per_request)
        assert found["processor_energy_per_request_mj"] is None, "nothing moves in the simulator"
    one, eight = analyse(run).points
    assert (values(one)["disk_energy_per_request_mj"] or 0) > (values(eight)["disk_energy_per_request_mj"] or 0)
    costs = costs_of(analyse(run))
    assert costs is not None and costs.kinds[-2:] == ENERGIES[:2] and len(costs.rows) == 1
    assert cost_sentence(costs, "sim") == "", "no processor of this machine is part of it"
    assert 'id="costs"' in write_page(analyse(run)).read_text(encoding="utf-8")


def test_a_disk_that_says_no_watts_has_no_figure(tmp_path: Path) -> None:
    run = run_of(tmp_path, FIXED % "")
    assert all(value is None for point in analyse(run).points for value in values(point).values())
    assert power_of(analyse(run).points[0]) is None
    assert costs_of(analyse(run)) is None
    assert 'id="costs"' not in write_page(analyse(run)).read_text(encoding="utf-8")


def test_a_flash_drive_is_as_busy_as_its_busiest_part(tmp_path: Path) -> None:
    run = run_of(tmp_path, '"ssd-sata"')
    light, heavy = (values(point)["disk_power_watts"] for point in analyse(run).points)
    assert light is not None and heavy is not None and 2 * 1.1 < light < heavy <= 2 * 5.6


@pytest.mark.parametrize(
    ("power", "pattern"),
    [
        ("3", "power: 3: is no table"),
        ("{ idle_watts = 4.0, source = 'x' }", r"power.active_watts: is missing; accepted: a number from 0"),
        ("{ idle_watts = -1.0, active_watts = 2.0, source = 'x' }", r"power.idle_watts: .*: is not a number of watts"),
        ("{ idle_watts = true, active_watts = 2.0, source = 'x' }", r"power.idle_watts: .*: is not a number of watts"),
        ("{ idle_watts = 1.0, active_watts = 2.0 }", r"power.source: is missing"),
        ("{ idle_watts = 1.0, active_watts = 2.0, source = 'x', seek_watts = 1 }", r"power.seek_watts: unknown key"),
    ],
)
def test_watts_need_a_source_and_a_range(power: str, pattern: str, tmp_path: Path) -> None:
    import tomllib

    table = tomllib.loads(f"power = {power}")["power"]
    device = {"kind": "fixed", "capacity_bytes": 10**6, "read_us": 1.0, "write_us": 1.0, "power": table}
    with pytest.raises(ValueError, match=pattern):
        load_device(cast(Any, device), tmp_path / "-")


def test_real_cells_have_the_machines_time(tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    run = run_of(tmp_path, FIXED % "", f"{tmp_path}/pool/")
    live = run.cells.filter(pl.col("target") == "live")
    assert not live["machine_busy_ns"].has_nulls() and not live["kernel_threads_ns"].has_nulls()
    told = run.kernel_threads.group_by("cell").agg(pl.col("cpu_ns").sum())
    sums = dict(told.iter_rows())
    assert all(sums.get(cell, 0) == ns for cell, ns in live.select("cell", "kernel_threads_ns").iter_rows())
    has_counters = Path("/sys/class/powercap/intel-rapl:0/energy_uj").exists()
    assert has_counters or live["energy_uj"].is_null().all(), "what nobody counts is not 0"
    costs = costs_of(analyse(run))
    assert costs is not None and "all programs" in cost_sentence(costs, "live")


def record(machine: object) -> Any:
    """A recorded cell whose engine tells so much of the machine."""
    tally = {"requests": 1, "bytes": 1, "failed": 0}
    accounting = {"user_ns": 1, "system_ns": 1, "voluntary_switches": 0, "involuntary_switches": 0, "machine": machine}
    answer = {"elapsed_ns": 1, "accounting": accounting, **dict.fromkeys(("all", "read", "write"), tally)}
    return {"rank": [0.0], "identity": {}, "answer": answer}


def test_what_the_kernel_does_not_tell_is_null(tmp_path: Path) -> None:
    def told(machine: object) -> tuple[object, ...]:
        (row,) = rows_of_cell(0, record(machine))["cells"]
        return tuple(row[column] for column in MACHINE)

    assert told({"busy_ns": None, "kernel_threads": None, "energy_uj": None}) == (None, None, None)
    assert told({"busy_ns": 7, "kernel_threads": [], "energy_uj": 5}) == (7, 0, 5)
    threads = [{"name": "md0_raid5", "cpu_ns": 3}, {"name": "kworker", "cpu_ns": 4}]
    assert told({"busy_ns": 7, "kernel_threads": threads, "energy_uj": None}) == (7, 7, None)
    rows = rows_of_cell(0, record({"busy_ns": 7, "kernel_threads": threads, "energy_uj": None}))["kernel_threads"]
    assert [(row["thread"], row["cpu_ns"]) for row in rows] == [("md0_raid5", 3), ("kworker", 4)]
