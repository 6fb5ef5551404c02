"""The checks of steadiness: within a cell, and along the order of repeats, on a run whose records are rewritten."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from raidlab.checks import Finding, not_steady, order_drift
from raidlab.metrics import Analysis
from raidlab.results import Run, load_run
from raidlab.results.tables import SNAPSHOT_COLUMNS
from raidlab.stats.groups import groups_p

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


def test_fishers_own_probabilities() -> None:
    # R: oneway.test(var.equal = TRUE) of these gives F = 9.2647, p = 0.002399.
    groups = [[6.0, 8.0, 4.0, 5.0, 3.0, 4.0], [8.0, 12.0, 9.0, 11.0, 6.0, 8.0], [13.0, 9.0, 11.0, 8.0, 7.0, 12.0]]
    assert groups_p(groups) == pytest.approx(0.002399, abs=1e-5)
    assert groups_p([[1.0, 2.0]]) is None
    assert groups_p([[2.0, 2.0], [2.0, 2.0]]) == 1.0
    assert groups_p([[1.0, 1.0], [2.0, 2.0]]) == 0.0


def test_groups_that_do_not_differ_seldom_seem_to() -> None:
    # 2,000 times 5 groups of Poisson counts at 5 %: beyond 66 to 138 once in 4,000 seeds.
    counts = np.random.default_rng(51).poisson(40.0, (2000, 5, 4))
    assert 66 <= sum((groups_p(list(one)) or 0.0) < 0.05 for one in counts) <= 138


def test_a_rate_that_falls_is_not_steady(small_run: Run, tmp_path: Path) -> None:
    rates = np.random.default_rng(52).poisson(np.linspace(400.0, 200.0, 20), (4, 20)).astype(np.float64)
    rates[1:] = 300.0
    finding = only(list(not_steady.check(with_rates(small_run, tmp_path / "falling", rates))))
    assert finding.verdict == "WARN" and finding.mend
    assert finding.evidence.startswith("1 of 4 cells")


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
    for size in (5, 6, 7, 40, 200):
        for step in (0.0, 5.0, 40.0):
            seconds = rng.poisson(50, size).astype(float)
            seconds[size // 3 :] += step
            tried = [groups_p(np.split(seconds, [place])) for place in range(3, size - 2)]
            known = [chance for chance in tried if chance is not None]
            expected = len(known) * min(known) if known else None
            assert not_steady._step_chance(seconds) == (pytest.approx(expected, rel=1e-6) if known else None)
