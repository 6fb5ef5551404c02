"""The checks of steadiness: within a cell, and along the order of repeats, on a run whose records are rewritten."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from raidlab.analysis.checks import Finding, not_steady, order_drift, sustained
from raidlab.analysis.metrics import Analysis
from raidlab.results import Run, load_run
from raidlab.results.tables import SNAPSHOT_COLUMNS, STREAM_COLUMNS
from raidlab.stats.changes import LEAST_SIDE, change_p, step_at

WARM_UP_S = 5


def rewritten(run: Run, folder: Path, **tables: pl.DataFrame) -> Analysis:
    """The same run with other tables."""
    folder.mkdir(parents=True)
    for file in run.folder.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")
    # What is made up has no digest.
    (folder / "run.json").write_text(json.dumps({**run.facts, "tables": {}}), encoding="utf-8")
    return Analysis(load_run(folder))


def with_rates(run: Run, folder: Path, rates: NDArray[np.float64]) -> Analysis:
    """Cells that completed so many requests in each second of their window, after a warm-up at another rate.

    ``rates`` has a row for the first cells of the run, a column a second; the other cells have no snapshots.
    """
    cells, seconds = rates.shape
    rows = [
        {"cell": cell, "time_ns": (second + 1) * 10**9, "requests": int(count), "bytes": 1, "response_sum_ns": 1}
        for cell in range(cells)
        for second, count in enumerate([9999] * WARM_UP_S + list(rates[cell]))
        if count
    ]
    # The window ends in the middle of one second more.
    rows += [
        {"cell": cell, "time_ns": (WARM_UP_S + seconds + 1) * 10**9, "requests": 1, "bytes": 1, "response_sum_ns": 1}
        for cell in range(cells)
    ]
    elapsed_ns = seconds * 10**9 + 5 * 10**8
    table = run.cells.with_columns(pl.lit(elapsed_ns, dtype=pl.UInt64).alias("elapsed_ns"))
    return rewritten(run, folder, cells=table, snapshots=pl.DataFrame(rows, schema=SNAPSHOT_COLUMNS, orient="row"))


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_a_rate_that_falls_is_not_steady(small_run: Run, tmp_path: Path) -> None:
    rates = np.random.default_rng(52).poisson(np.linspace(400.0, 200.0, 20), (4, 20)).astype(np.float64)
    rates[1:] = 300.0
    finding = only(list(not_steady.check(with_rates(small_run, tmp_path / "falling", rates))))
    assert finding.verdict == "WARN" and finding.remedy
    assert finding.evidence.startswith("1 of 4 cells")


def test_streams_that_end_one_after_another_are_one_rate_while_all_of_them_run(small_run: Run, tmp_path: Path) -> None:
    rates = np.random.default_rng(1).poisson(1000, (3, 40)).astype(float)
    rates[:, 20:] /= 2
    (tmp_path / "made").mkdir()
    made = with_rates(small_run, tmp_path / "made" / "run", rates).run

    def finding(ends_s: list[float]) -> Finding:
        rows = [
            {"cell": cell, "number": number, "stream": "copy", "source": "memory", "sink": "array", "bytes": 1}
            | {"elapsed_ns": int(end * 1e9), "bound_by": "sink"}
            for cell in range(3)
            for number, end in enumerate(ends_s)
        ]
        table = pl.DataFrame(rows, schema=STREAM_COLUMNS, orient="row")
        filled = table.with_columns(pl.col(pl.UInt64, pl.UInt32, pl.UInt16, pl.UInt8).fill_null(0))
        copy = rewritten(made, tmp_path / str(ends_s[0]), streams=filled)
        return only(list(not_steady.check(copy)))

    assert finding([20.5, 40.5]).verdict == "PASS", "the rate halves where the first of two ends"
    both = finding([40.5, 40.5])
    assert both.verdict == "WARN" and both.remedy == "Raise bytes of its streams, so that their beginning counts less."


def test_a_rate_that_breaks_down_in_between_is_not_steady(small_run: Run, tmp_path: Path) -> None:
    rates = np.random.default_rng(53).poisson(300.0, (2, 20)).astype(np.float64)
    rates[0, 8:12] = 0.0
    rates[0, 9] = 1.0
    assert only(list(not_steady.check(with_rates(small_run, tmp_path / "gap", rates)))).verdict == "WARN"


def test_a_step_within_one_short_part_is_not_steady(small_run: Run, tmp_path: Path) -> None:
    rates = np.array([[4000.0] * 5 + [1248.0] + [1000.0] * 8])
    assert only(list(not_steady.check(with_rates(small_run, tmp_path / "step", rates)))).verdict == "WARN"


def test_steady_rates_seldom_seem_unsteady(small_run: Run, tmp_path: Path) -> None:
    # 40 runs of 10 cells, from a handful to thousands of requests a second, each run wrong once in a hundred at most:
    # more than 3 once in 1,000 seeds.
    rng = np.random.default_rng(54)
    false = 0
    for number in range(40):
        rates = rng.poisson(np.geomspace(4.0, 4000.0, 10)[:, None], (10, 15)).astype(np.float64)
        false += only(list(not_steady.check(with_rates(small_run, tmp_path / str(number), rates)))).verdict != "PASS"
    assert false <= 3


def sustained_of(run: Run, folder: Path, rates: NDArray[np.float64]) -> Finding:
    """What `sustained` says of a live run whose first cell completed so many requests in each second."""
    analysis = with_rates(run, folder, rates[None, :])
    cells = analysis.run.cells.with_columns(pl.lit("live").alias("target"))
    disk = {"kind": "block", "name": "/dev/sda", "io": "direct", "disks": ["sda"], "stack": []}
    rewritten(analysis.run, folder / "live", cells=cells)
    facts = json.loads((folder / "live" / "run.json").read_text())
    (folder / "live" / "run.json").write_text(json.dumps({**facts, "live_members": [disk]}), encoding="utf-8")
    return only(list(sustained.check(Analysis(load_run(folder / "live")))))


def test_a_burst_is_named_with_its_credits(small_run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(59)
    # 40 s at 1,800 a second on credit, and 300 a second from then on: a bucket of 60,000.
    rates = rng.poisson(np.where(np.arange(80) < 40, 1800, 300)).astype(np.float64)
    burst = sustained.burst_of(rates)
    assert burst is not None and burst.seconds == 40
    assert burst.bucket == pytest.approx(60_000, rel=0.03) and burst.slow_per_s == pytest.approx(300, rel=0.05)
    assert sustained.burst_of(rng.poisson(300.0, 80).astype(np.float64)) is None
    # Slower for a while is no burst.
    dip = rng.poisson(np.where((np.arange(80) > 30) & (np.arange(80) < 50), 300, 1800)).astype(np.float64)
    assert sustained.burst_of(dip) is None


def test_how_long_a_rate_lasted(small_run: Run, tmp_path: Path) -> None:
    # The warm-up of 5 s counts: it is load too.
    short = sustained_of(small_run, tmp_path / "short", np.full(9, 9999.0))
    assert short.verdict == "UNKNOWN" and "14 s" in short.evidence and "60s" in short.remedy
    lasting = np.full(80, 9999.0)
    assert sustained_of(small_run, tmp_path / "lasting", lasting).verdict == "PASS"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sustained, "_seconds", lambda *_: [])
        blink = sustained_of(small_run, tmp_path / "blink", lasting)
    assert blink.verdict == "UNKNOWN" and "no load lasted longer than a second:" in blink.evidence
    fallen = np.where(np.arange(80) < 40, 9999.0, 300.0)
    found = sustained_of(small_run, tmp_path / "fallen", fallen)
    assert found.verdict == "WARN" and "300 from then on" in found.evidence


def test_correlated_rates_seldom_seem_to_be_bursts() -> None:
    # 600 stationary series whose neighbours are alike by 0.7, scattered by 20 %: at most 1 in 200 seems a burst.
    series = 1000 * (1 + 0.2 * correlated(np.random.default_rng(61), 600, 40, 0.7))
    assert sum(sustained.burst_of(np.maximum(one, 1.0)) is not None for one in series) <= 3


def test_what_is_too_short_to_be_judged(small_run: Run, tmp_path: Path) -> None:
    rates = np.linspace(400.0, 200.0, 9)[None, :]
    assert list(not_steady.check(with_rates(small_run, tmp_path / "short", rates))) == []


def with_repeats(run: Run, folder: Path, throughputs: NDArray[np.float64]) -> Analysis:
    """The first cells of the run as live repeats: a row a point, a column a repeat, run in that order."""
    points, repeats = throughputs.shape
    first = run.cells.filter(pl.col("purpose") == "sweep").head(points)
    rows = []
    for point, row in enumerate(first.iter_rows(named=True)):
        rows += [
            {
                **row,
                "cell": point * repeats + repeat,
                "target": "live",
                "repeat": repeat,
                "order": repeat * points + point,
                "elapsed_ns": 10**9,
                "all_bytes": int(throughputs[point, repeat]),
            }
            for repeat in reversed(range(repeats))
        ]
    return rewritten(run, folder, cells=pl.DataFrame(rows, schema=run.cells.schema, orient="row"))


def test_a_machine_that_slows_down_is_seen_in_the_order_of_repeats(small_run: Run, tmp_path: Path) -> None:
    noise = np.random.default_rng(55).normal(1.0, 0.01, (6, 5))
    falling = 1e8 * np.linspace(1.0, 0.9, 5) * noise
    finding = only(list(order_drift.check(with_repeats(small_run, tmp_path / "falling", falling))))
    assert finding.verdict == "WARN" and "-10" in finding.evidence
    same = only(list(order_drift.check(with_repeats(small_run, tmp_path / "same", 1e8 * noise))))
    assert same.verdict == "PASS"


def test_two_repeats_show_no_drift(small_run: Run, tmp_path: Path) -> None:
    throughputs = np.array([[1e8, 0.9e8]] * 2)
    assert list(order_drift.check(with_repeats(small_run, tmp_path / "two", throughputs))) == []
    assert list(order_drift.check(Analysis(small_run))) == []


def test_the_best_of_all_steps_is_found_without_trying_each() -> None:
    rng = np.random.default_rng(1)
    for size in (6, 7, 40, 200):
        for step in (0.0, 5.0, 40.0):
            seconds = rng.poisson(50, size).astype(float)
            seconds[size // 3 :] += step
            within = {
                place: sum(float(side.var() * side.size) for side in np.split(seconds, [place]))
                for place in range(LEAST_SIDE, size - LEAST_SIDE + 1)
            }
            assert within[step_at(seconds)] == pytest.approx(min(within.values()))


def correlated(rng: np.random.Generator, count: int, seconds: int, alike: float) -> NDArray[np.float64]:
    """Stationary series in which each value is so much of the one before, plus chance; of unit variance."""
    found = np.zeros((count, seconds))
    found[:, 0] = rng.standard_normal(count)
    for second in range(1, seconds):
        found[:, second] = alike * found[:, second - 1] + np.sqrt(1 - alike**2) * rng.standard_normal(count)
    return found


@pytest.mark.parametrize("seconds", [10, 15, 30, 60, 120])
@pytest.mark.parametrize(("alike", "most"), [(0.0, 9), (0.5, 18), (0.7, 22)])
def test_correlated_seconds_seldom_seem_to_change(seconds: int, alike: float, most: int) -> None:
    # 300 series of which 1, 3 and 4 in 100 at most may seem changed at 0.01; with so many more as chance adds once in
    # 1,000 seeds. An analysis of variance sees changes in 40 to 69 of 100 where neighbours are alike by 0.7.
    series = correlated(np.random.default_rng(57), 300, seconds, alike)
    changed = sum((change_p(one) or 0.0) < 0.01 for one in series)
    assert changed <= most, f"{changed} of 300"


@pytest.mark.parametrize("seconds", [12, 30, 120])
@pytest.mark.parametrize("alike", [0.0, 0.7])
def test_a_fall_to_a_half_is_seen_among_correlated_seconds(seconds: int, alike: float) -> None:
    noise = 1 + 0.05 * correlated(np.random.default_rng(58), 50, seconds, alike)
    for shape in (np.where(np.arange(seconds) < seconds // 2, 1.0, 0.5), np.linspace(1.0, 0.5, seconds)):
        assert sum((change_p(shape * one) or 0.0) < 0.01 for one in noise) >= 40
