"""Runs set against each other: in pairs, as they are, or not at all."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import raidlab
from raidlab.analysis.checks import INVALID, WARN, Finding, that_concern, words_of
from raidlab.analysis.metrics.repeat_figures import REPEAT_FIGURES
from raidlab.api import compare, run_study
from raidlab.cli.app import app
from raidlab.errors import EXIT_INVALID_RESULT, InputError, OutputError
from raidlab.report.differences import answer_words
from raidlab.results import Run
from raidlab.stats import Reason, compare_unpaired, corrected
from raidlab.stats import compare as compare_pairs
from raidlab.stats.power import power_of_error

STUDY = """
name = "sides"
title = "Two disks, two arrays"
array = [
    { name = "raid5", tree = "raid5(5, chunk=64KiB)", group = "equal" },
    { name = "raid10", tree = "raid10(8, chunk=64KiB)", group = "equal" },
    { name = "raid0", tree = "raid0(2, chunk=64KiB)", group = "small" },
]
workload = [{ name = "reads", read = 1.0, size = "8KiB" }, { name = "mix", read = 0.5, size = "8KiB" }]
load = { depths = [8, 32] }

[sim]
device = "hdd-7200-bare"
measure = { requests = 400 }
repeats = 4
"""
FIXED = '{ kind = "fixed", capacity_bytes = 1073741824, read_us = 1000, write_us = 1000 }'


def _run(folder: Path, seed: int, *changes: tuple[str, str]) -> Run:
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return run_study(folder / "study.toml", out=folder / "runs", seed=seed)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def one(place: Path) -> Run:
    return _run(place, 1)


@pytest.fixture(scope="module")
def other_seed(place: Path) -> Run:
    return _run(place, 2)


def test_a_run_and_its_twin_are_the_same_in_every_repeat(one: Run, place: Path) -> None:
    found = compare(one, _run(place, 1))
    assert not found.refused and found.rows
    for row in found.rows:
        assert row.is_paired and row.values[0] == row.values[1]
        assert row.difference.ratio.interval == (1.0, 1.0) and row.difference.shown is False
        assert answer_words(row.difference) == "the same in every repeat"
        assert row.difference.found_percent() == 0.0


def test_every_load_workload_and_direction_is_compared(one: Run, other_seed: Run) -> None:
    found = compare(one, other_seed)
    # 3 arrays, 2 loads; reads in one direction and the mix in two; two figures.
    assert len(found.rows) == 3 * 2 * 3 * 2
    assert all(row.difference.comparisons == len(found.rows) for row in found.rows)
    assert {row.operation for row in found.rows if row.a.workload == "reads"} == {"read"}
    assert not any(row.is_paired for row in found.rows), "other seeds ask for other requests"
    assert {row.difference.ratio.method for row in found.rows} == {"welch, log values"}
    row = found.rows[0]
    mine = one.cells.filter(
        (pl.col("array") == "raid5") & (pl.col("workload") == "reads") & (pl.col("depth") == 8)
    ).sort("repeat")
    rates = (mine["read_bytes"] / mine["elapsed_ns"] * 1e3).to_list()
    assert list(row.each[0].values()) == pytest.approx(rates)
    assert row.merged[0] == pytest.approx(mine["read_bytes"].sum() / mine["elapsed_ns"].sum() * 1e3)
    assert row.values[0] == pytest.approx(math.prod(rates) ** (1 / len(rates)))


def test_no_repeat_is_left_out_and_the_ratio_is_that_of_the_columns(one: Run, place: Path) -> None:
    fewer = _run(place, 1, ("repeats = 4", "repeats = 2"))
    found = compare(one, fewer)
    for row in found.rows:
        assert not row.is_paired and [len(part) for part in row.each] == [4, 2], "two of four are no pairs of four"
        assert row.difference.ratio.value == pytest.approx(row.values[1] / row.values[0])
        assert row.difference.ratio.method == "welch, log values" and row.difference.ratio.n == 6
    for kind, mean in found.geometric_means().items():
        ratios = [row.values[1] / row.values[0] for row in found.rows if row.figure.kind == kind]
        assert mean.value == pytest.approx(math.prod(ratios) ** (1 / len(ratios)))
    assert "The repeats are not the same: A has 4, B 2." in found.notes
    text = _said(str(one.folder), str(fewer.folder))
    assert "(Welch): the repeats of A and B are not the same ones" in " ".join(text.split())
    paired = compare(one, one, arrays=("raid5", "raid10")).rows
    assert all(row.difference.ratio.value == pytest.approx(row.values[1] / row.values[0]) for row in paired)


def test_one_repeat_against_several_is_no_pair_of_the_first(one: Run, place: Path) -> None:
    single = _run(place, 1, ("repeats = 4", "repeats = 1"))
    for row in compare(one, single).rows:
        assert row.difference.ratio.value == pytest.approx(row.values[1] / row.values[0])
        assert answer_words(row.difference).endswith("%, too few repeats")
    text = _said(str(one.folder), str(single.folder))
    footer = " ".join(text.split("geometric mean")[-1].split())
    assert "All lines have a single repeat on a side" in footer and "nothing was tested" in footer
    assert not any(word in footer for word in ("Welch", "in pairs", "'finds'", "Intervals")), footer


def test_a_run_cut_short_says_how_many_repeats_are_missing(one: Run, place: Path) -> None:
    # As a run that was killed after the first repeat of one array is read: fewer cells, and another status.
    kept = one.cells.filter((pl.col("repeat") == 0) | (pl.col("array") != "raid5"))
    cut = Run(place / "cut", {**one.facts, "status": "interrupted"})
    cut.__dict__.update({"cells": kept, "_histograms": one._histograms, "holds": one.holds})
    notes = compare(one, cut).notes
    # 3 arrays, 2 workloads, 2 loads, 4 repeats; 3 of 4 are gone of one array.
    assert "B is interrupted: 12 of its 48 repeats (each of one array, workload and load) are not there." in notes
    assert "The repeats are not the same in 12 of 36 lines: A has 4, B 1." in notes


def test_an_interval_says_what_the_verdict_says(one: Run, other_seed: Run) -> None:
    for found in (
        compare(one, other_seed),
        compare(one, one, arrays=("raid5", "raid10"), metrics=list(REPEAT_FIGURES)),
    ):
        for row in found.rows:
            low, high = row.difference.interval
            assert row.difference.shown is not (low <= 1 <= high)
            assert low <= row.difference.ratio.low <= row.difference.ratio.value <= row.difference.ratio.high <= high


def test_arrays_of_one_run_are_compared_in_pairs(one: Run) -> None:
    found = compare(one, one, arrays=("raid5", "raid10"), metrics=["throughput_mb_s"])
    assert {(row.a.array, row.b.array) for row in found.rows} == {("raid5", "raid10")}
    assert all(row.is_paired and len(row.each[0]) == 4 for row in found.rows)
    writes = next(row for row in found.rows if row.operation == "write" and row.a.depth == 32)
    pairs = [[values[repeat] for repeat in range(4)] for values in writes.each]
    expected = compare_pairs(pairs[1], pairs[0])
    assert writes.difference.ratio == expected.ratio
    assert (
        writes.difference.p == pytest.approx(min(1.0, len(found.rows) * expected.p), rel=1) and writes.difference.shown
    )
    assert "% more (" in answer_words(writes.difference)
    per_disk = compare(one, one, arrays=("raid5", "raid10"), metrics=["throughput_mb_s"], per="disk")
    for plain, divided in zip(found.rows, per_disk.rows, strict=True):
        assert divided.values == pytest.approx((plain.values[0] / 5, plain.values[1] / 8))


@pytest.fixture(scope="module")
def two_clocks(place: Path) -> Run:
    """A run in the simulator and on the clock, of the same disk."""
    folder = place / "two-clocks"
    folder.mkdir()
    text = STUDY.replace('"hdd-7200-bare"', FIXED) + f"[emulated]\ndevice = {FIXED}\nspeed = 1.0\n"
    text += 'measure = { duration = "150ms" }\nwarmup = { duration = "20ms" }\nrepeats = 4\n'
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return run_study(folder / "study.toml", out=folder / "runs", on=["sim", "emulated"])


@pytest.mark.slow
def test_two_targets_of_one_run_are_compared_array_by_array(two_clocks: Run) -> None:
    found = compare(two_clocks, two_clocks, targets=("sim", "emulated"))
    assert {(row.a.target, row.b.target) for row in found.rows} == {("sim", "emulated")}
    assert all(row.a.array == row.b.array and row.a.workload == row.b.workload for row in found.rows)
    assert {row.a.array for row in found.rows} == {"raid5", "raid10", "raid0"} and found.refused == []
    # What the clock adds to a request of a millisecond and more is never less than nothing, and small unless other work
    # has the processors; beyond a factor of twenty it would be another unit.
    (mean,) = [mean for kind, mean in found.geometric_means().items() if kind == "throughput_mb_s"]
    assert 0.05 < (mean.value or 0) < 1.05
    assert any("runs on the clock" in note for note in found.notes)
    folder = str(two_clocks.folder)
    text = _said(f"{folder}@sim", f"{folder}@emulated")
    assert "emulated against sim, raid5: reads" in text and "NOT COMPARED" not in text
    one_array = json.loads(_said(f"{folder}@sim:raid5", f"{folder}@emulated:raid10", "--json"))
    assert {(row["target_a"], row["array_a"]) for row in one_array["rows"]} == {("sim", "raid5")}
    assert {(row["target_b"], row["array_b"]) for row in one_array["rows"]} == {("emulated", "raid10")}


@pytest.mark.slow
def test_a_target_named_on_one_side_is_meant_of_both(two_clocks: Run, one: Run) -> None:
    found = compare(two_clocks, one, targets=("sim", "sim"), arrays=("raid5", "raid5"), unequal_capacity=True)
    assert {row.b.target for row in found.rows} == {"sim"}
    text = _said(f"{two_clocks.folder}@sim", str(one.folder), "--metric", "iops", "--unequal-capacity")
    assert "emulated" not in text.partition("throughput")[2]


def test_the_geometric_mean_is_that_of_the_ratios(one: Run, other_seed: Run) -> None:
    found = compare(one, one, arrays=("raid5", "raid10"))
    means = found.geometric_means()
    assert set(means) == {"throughput_mb_s", "response_time_ms_p90"}
    ratios = [row.difference.ratio.value for row in found.rows if row.figure.kind == "throughput_mb_s"]
    mean = means["throughput_mb_s"]
    assert mean.value == pytest.approx(math.prod(ratios) ** (1 / len(ratios)))
    assert mean.low < mean.value < mean.high
    unpaired = compare(one, other_seed).geometric_means()["throughput_mb_s"]
    assert unpaired.interval is None and unpaired.reason is Reason.NOT_INDEPENDENT


def test_a_slower_disk_is_found_by_what_it_is_slower(place: Path) -> None:
    runs = [_run(place, 1, ('"hdd-7200-bare"', FIXED.replace("1000,", f"{us},"))) for us in (1000, 1050)]
    found = compare(*runs, metrics=["throughput_mb_s"])
    reads = [row for row in found.rows if row.operation == "read" and row.a.workload == "reads"]
    assert all(
        row.difference.ratio.value == pytest.approx(1 / 1.05, rel=1e-3) and row.difference.shown for row in reads
    )
    assert "The device models differ." in found.notes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([('read = 0.5, size = "8KiB"', 'read = 0.5, size = "4KiB"')], "another workload: size"),
        ([("raid5(5, chunk", "raid5(6, chunk")], "another user capacity: "),
        (
            [("depths = [8, 32]", "depths = [4]")],
            "no load in common: queue depth 8, queue depth 32 against queue depth 4",
        ),
        ([("{ depths = [8, 32] }", "{ open = { rates_per_s = [50] } }")], "a closed loop against an open loop"),
        ([('name = "raid10"', 'name = "ten"')], "sim: raid10, reads: is only in A"),
    ],
)
def test_what_is_not_comparable_is_refused_with_the_reason(
    changes: list[tuple[str, str]], expected: str, one: Run, place: Path
) -> None:
    other = _run(place, 1, *changes)
    try:
        found = compare(one, other)
    except InputError as error:
        # Where all is refused there is no comparison, and the reasons are the error.
        assert expected in str(error)
        assert str(error).startswith("RUN: nothing of A and B can be compared: ")
        return
    reasons = [f"{refused.what}: {refused.reason}" for refused in found.refused]
    assert any(expected in reason for reason in reasons), reasons
    compared = {(row.a.array, row.a.workload) for row in found.rows}
    assert all(f"sim: {array}, {workload}:" not in reason for array, workload in compared for reason in reasons)


def test_unequal_capacity_is_compared_where_it_is_asked_for(one: Run) -> None:
    with pytest.raises(InputError, match=r"another user capacity: .*--unequal-capacity compares them all the same"):
        compare(one, one, arrays=("raid5", "raid0"))
    assert compare(one, one, arrays=("raid5", "raid0"), unequal_capacity=True).rows
    per_byte = compare(one, one, arrays=("raid5", "raid0"), metrics=["iops"], per="user_capacity")
    user = {row["array"]: row["user_bytes"] for row in one.cells.iter_rows(named=True)}
    row = per_byte.rows[0]
    assert row.values[0] == pytest.approx(row.a.per_s("read_requests") / user["raid5"])


@pytest.mark.slow
def test_an_open_loop_is_compared_by_response_times_only(place: Path) -> None:
    change = ("{ depths = [8, 32] }", "{ open = { rates_per_s = [20, 100000] } }")
    found = compare(_run(place, 1, change), _run(place, 2, change))
    assert {row.figure.kind for row in found.rows} == {"response_time_ms_p90"}
    assert {row.a.rate_per_s for row in found.rows} == {20.0}
    assert any(
        "100000 requests/s offered: the rate is not kept up with" in f"{r.what}: {r.reason}" for r in found.refused
    )


@pytest.mark.slow
def test_targets_held_are_compared(place: Path) -> None:
    hold = 'load = { depths = [8], hold = { percentile = 90, target = "80ms", max_depth = 64 } }'
    runs = [_run(place, seed, ("load = { depths = [8, 32] }", hold)) for seed in (1, 2)]
    found = compare(*runs, metrics=["throughput_mb_s"])
    held = [row for row in found.rows if row.figure.kind == "throughput_mb_s_at_percentile"]
    assert held and all(row.level == "p90 at 80 ms" and row.operation == "all" for row in held)
    mine = runs[0].holds.filter((pl.col("array") == held[0].a.array) & (pl.col("workload") == held[0].a.workload))
    rates = (mine["throughput_bytes_per_s"] / 1e6).to_list()
    assert held[0].merged[0] == pytest.approx(sum(rates) / 4)
    assert held[0].values[0] == pytest.approx(math.prod(rates) ** (1 / 4))
    later = _run(place, 1, ("load = { depths = [8, 32] }", hold.replace("80ms", "90ms")))
    again = compare(runs[0], later, metrics=["throughput_mb_s"])
    assert any("another response time was held: p90 at 90 ms" in refused.reason for refused in again.refused)


def test_single_runs_have_a_ratio_and_no_verdict(place: Path) -> None:
    runs = [_run(place, seed, ("repeats = 4", "repeats = 1")) for seed in (1, 2)]
    for row in compare(*runs).rows:
        assert row.difference.shown is None and row.difference.p is None
        assert answer_words(row.difference).endswith("%, single run")
    text = _said(*(str(run.folder) for run in runs))
    assert "B against A, without intervals" in text
    assert not any(word in text for word in ("Welch", "in pairs", "'finds'", "geometric means of the repeats"))


def test_a_run_is_not_compared_with_itself(one: Run) -> None:
    with pytest.raises(InputError, match="B: 'B': is A; accepted: another run, another array as RUN:ARRAY"):
        compare(one, one)


def test_all_figures_are_there_for_every_direction(one: Run, other_seed: Run) -> None:
    found = compare(one, other_seed, metrics=list(REPEAT_FIGURES))
    assert {row.figure.kind for row in found.rows} == set(REPEAT_FIGURES)
    assert all(value > 0 for row in found.rows for value in row.values)


def _said(*words: str) -> str:
    return CliRunner().invoke(app, ["results", "compare", *words], catch_exceptions=False).stdout


def test_the_table_fits_a_terminal(one: Run, other_seed: Run) -> None:
    folder = one.folder.parent
    for words in (
        (one.folder.name, other_seed.folder.name),
        (f"{one.folder.name}:raid5", f"{one.folder.name}:raid10", "--per", "disk"),
        (one.folder.name, f"{other_seed.folder.name}:raid5", "--metric", "response_time_ms_p99"),
    ):
        text = _said(*words, "--out", str(folder))
        lines = [line for line in text.splitlines() if not line.startswith(("NOT COMPARED", "NOTE", "A ", "B "))]
        assert max(len(line) for line in lines) <= 80, text
        assert "corrected for" in text and "finds" in text


def test_the_document_has_every_row(one: Run, other_seed: Run) -> None:
    document = json.loads(_said(str(one.folder), str(other_seed.folder), "--json"))
    found = compare(one, other_seed)
    assert document["comparisons"] == len(document["rows"]) == len(found.rows)
    for row, ours in zip(document["rows"], found.rows, strict=True):
        assert row["ratio"] == pytest.approx(ours.difference.ratio.value)
        assert row["ratio_low"] < row["single_low"] < row["ratio"] < row["single_high"] < row["ratio_high"]
        assert row["ratio"] == pytest.approx(row["b"] / row["a"])
        assert row["shown"] is not (row["ratio_low"] <= 1 <= row["ratio_high"])
        assert 0.95 <= row["ratio_confidence"] < 1 and row["merged_a"] == pytest.approx(ours.merged[0])
        assert (row["paired"], row["repeats_a"], row["method"]) == (False, 4, "welch, log values")
        assert row["found_percent"] > 0
    assert {mean["metric"] for mean in document["geometric_means"]} == {"throughput_mb_s", "response_time_ms_p90"}
    assert document["a"]["run"] == str(one.folder) and document["refused"] == []


def test_the_page_says_what_the_terminal_says(one: Run, tmp_path: Path) -> None:
    page = tmp_path / "comparison.html"
    words = (f"{one.folder}:raid5", f"{one.folder}:raid10", "--per", "disk")
    said = _said(*words, "--report", str(page))
    text = html.unescape(page.read_text(encoding="utf-8"))
    for row in compare(one, one, arrays=("raid5", "raid10"), per="disk").rows:
        words_of_row = answer_words(row.difference)
        assert words_of_row in said and words_of_row in text
    assert text.index("Throughput: B has more in") < text.index("<svg") < text.index("<table>")
    figures = re.findall(r'<svg role="img" aria-label="[^"]*\d %[^"]*"', text)
    # For throughput and for p90: reads, and both directions of the mix.
    assert len(figures) == 2 * 3


@pytest.mark.parametrize("value", [5e-324, 1e-310, 1e-200])
def test_what_gives_no_ratio_is_left_out_as_what_is_nothing(value: float, place: Path) -> None:
    hold = 'load = { depths = [8], hold = { percentile = 90, target = "80ms", max_depth = 64 } }'
    one, other = (_run(place, seed, ("load = { depths = [8, 32] }", hold)) for seed in (1, 2))
    assert "throughput at an equal percentile" in _said(str(one.folder), str(other.folder))
    holds = pl.read_parquet(other.folder / "holds.parquet")
    holds.with_columns(throughput_bytes_per_s=pl.lit(value)).write_parquet(other.folder / "holds.parquet")
    facts = json.loads((other.folder / "run.json").read_text(encoding="utf-8"))
    (other.folder / "run.json").write_text(json.dumps({**facts, "tables": {}}), encoding="utf-8")
    said = " ".join(_said(str(one.folder), str(other.folder)).split())
    assert "throughput at an equal percentile" not in said and "nothing was served" in said
    json.loads(_said(str(one.folder), str(other.folder), "--json"))


def test_repeats_however_far_apart_have_an_interval() -> None:
    for test in (compare_pairs, compare_unpaired):
        low, high = test([1e-90, 1e90], [1.0, 1.5]).interval or (1, 1)
        assert 0 <= low < 1 < high < math.inf


def test_a_full_disk_is_no_mistake_of_an_option(one: Run) -> None:
    words = [f"{one.folder}:raid5", f"{one.folder}:raid10", "--report", "/dev/full"]
    with pytest.raises(OutputError, match="--report: '/dev/full': cannot be written: No space left on device"):
        CliRunner().invoke(app, ["results", "compare", *words], catch_exceptions=False)


def test_a_page_that_cannot_be_written_is_one_clear_error(one: Run, tmp_path: Path) -> None:
    words = [f"{one.folder}:raid5", f"{one.folder}:raid10", "--report", str(tmp_path / "none" / "it.html")]
    with pytest.raises(InputError, match=r"--report: .*cannot be written"):
        CliRunner().invoke(app, ["results", "compare", *words], catch_exceptions=False)


def test_a_verdict_of_either_side_is_said_and_ends_the_program(
    one: Run, other_seed: Run, place: Path, as_invalid: Callable[[Run, Path], Path]
) -> None:
    folder = as_invalid(other_seed, place / "invalid")
    runner = CliRunner()

    def compared(a: Path | str, b: Path | str, *words: str) -> tuple[int, str]:
        result = runner.invoke(app, ["results", "compare", str(a), str(b), "--metric", "iops", *words])
        return result.exit_code, result.stdout

    code, text = compared(one.folder, folder)
    (line,) = [line for line in text.splitlines() if line.startswith("CHECKS of B: ")]
    assert code == EXIT_INVALID_RESULT and line.startswith("CHECKS of B: INVALID made_up (sim)")
    assert "INVALID" not in "".join(line for line in text.splitlines() if line.startswith("CHECKS of A: "))
    code, text = compared(folder, one.folder, "--json")
    checks = {side: {check["check"]: check["verdict"] for check in json.loads(text)[side]["checks"]} for side in "ab"}
    assert code == EXIT_INVALID_RESULT and checks["a"]["made_up"] == "INVALID" and "made_up" not in checks["b"]
    code, text = compared(f"{folder}:raid5", f"{folder}:raid10")
    assert code == EXIT_INVALID_RESULT and text.count("CHECKS of ") == text.count("CHECKS of A and B: INVALID") == 1
    code, text = compared(one.folder, other_seed.folder)
    assert code == 0 and "INVALID" not in text


def test_a_verdict_on_a_target_that_is_not_compared_is_left_out() -> None:
    found = [Finding("a", "live", INVALID, "It."), Finding("b", "sim", WARN, "It."), Finding("c", "run", WARN, "It.")]
    kept = that_concern(found, {"sim"}, among=["live", "sim"])
    assert [finding.check for finding in kept] == ["b", "c"]
    assert words_of(kept, (INVALID, WARN)) == "WARN b (sim), c (run)"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["last:raid6", "last:raid5"], "A: 'last:raid6': the run has no such array"),
        (["last@sim", "last@live"], "B: 'last@live': the run has no such target"),
        (["last:raid5", "last:raid10", "--metric", "throughput"], "--metric: 'throughput': is not known"),
        (["last:raid5", "last:raid10", "--per", "disc"], "--per: 'disc': is not known"),
        (["nosuch", "last"], "run: '"),
        (["last", "last"], "B: 'last': is A"),
    ],
)
def test_a_mistake_is_one_clear_error(words: list[str], expected: str, one: Run) -> None:
    out = ["--out", str(one.folder.parent)]
    result = CliRunner().invoke(app, ["results", "compare", *words, *out])
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(expected) and len(result.exception.problems) == 1


def test_it_is_there_for_notebooks(one: Run, other_seed: Run) -> None:
    assert raidlab.compare(one.folder, other_seed.folder).rows


def test_an_uncorrected_interval_may_leave_out_one_where_no_difference_is_shown() -> None:
    # Twenty comparisons at p = 0.03: alone each is a difference, together none is.
    alone = compare_pairs([1.10, 1.31, 1.19, 1.08], [1.0, 1.0, 1.0, 1.0])
    assert alone.ratio.low > 1 and 0.02 < alone.p < 0.05
    together = corrected({str(number): alone for number in range(20)})
    assert all(one.shown is False and one.interval[0] < 1 and one.ratio == alone.ratio for one in together.values())


def test_verdict_and_interval_agree_whatever_the_probabilities() -> None:
    rng = np.random.default_rng(23)
    for _ in range(200):
        effects = rng.choice([0.0, 0.02, 0.2], 8)
        alone = {
            str(i): compare_pairs(np.exp(rng.normal(e, 0.03, 5)).tolist(), [1.0] * 5) for i, e in enumerate(effects)
        }
        for one in corrected(alone).values():
            low, high = one.interval
            assert one.shown is not (low <= 1 <= high)


OWN, OTHER = [5.2, 6.1, 5.8, 6.6, 5.5], [3.9, 3.1, 3.6, 4.4]


def test_welch_by_hand() -> None:
    logs = [np.log(OWN), np.log(OTHER)]
    errors = [values.var(ddof=1) / len(values) for values in logs]
    degrees = sum(errors) ** 2 / sum(e**2 / (len(v) - 1) for e, v in zip(errors, logs, strict=True))
    found = compare_unpaired(OWN, OTHER)
    assert found.ratio.value == pytest.approx(math.exp(logs[0].mean() - logs[1].mean()))
    assert found.degrees == pytest.approx(degrees)
    assert found.error == pytest.approx(math.sqrt(sum(errors)))
    # What ttest_ind(*logs, equal_var=False) of SciPy 1.17.1 gives.
    assert found.p == pytest.approx(0.0035040378220946183, rel=1e-9)


def test_welch_asks_the_order_of_repeats() -> None:
    rising, level = [100.0 + number for number in range(12)], [50.0, 52.0, 49.0, 51.0] * 3
    for pair in ((rising, level), (level, rising)):
        refused = compare_unpaired(*pair).ratio
        assert refused.interval is None and refused.reason is Reason.NOT_INDEPENDENT
        assert refused.value == pytest.approx(compare_unpaired(*pair, independent=True).ratio.value)
    assert compare_unpaired(rising[:9], level).ratio.interval is not None, "nine say nothing of their order"


def test_welch_is_wrong_as_often_as_it_says() -> None:
    # 2,000 comparisons at 5 %, spreads three to one and numbers two to one: beyond 66 to 138 once in 4,000 seeds.
    rng = np.random.default_rng(21)
    wrong = sum(
        bool(compare_unpaired(np.exp(rng.normal(0, 0.09, 5)).tolist(), np.exp(rng.normal(0, 0.03, 10)).tolist()).shown)
        for _ in range(2000)
    )
    assert 66 <= wrong <= 138


def test_welch_finds_what_it_promises() -> None:
    # 1,000 comparisons of 8 with 8 that vary by 3 %; the power of the test with the true spread, give or take 3 sigma.
    promised = power_of_error(5.0, 3.0 * math.sqrt(2 / 8), 14)
    rng = np.random.default_rng(22)
    found = sum(
        bool(
            compare_unpaired(
                np.exp(rng.normal(math.log(1.05), 0.03, 8)).tolist(), np.exp(rng.normal(0, 0.03, 8)).tolist()
            ).shown
        )
        for _ in range(1000)
    )
    sigma = math.sqrt(promised * (1 - promised) / 1000)
    assert abs(found / 1000 - promised) < 3 * sigma + 0.01


@pytest.mark.parametrize(
    ("own", "other", "value"), [([1.0], [2.0, 2.0], 0.5), ([], [1.0, 2.0], None), ([0.0, 3.0], [1.0, 1.0], 3.0)]
)
def test_too_few_are_refused(own: list[float], other: list[float], value: Any) -> None:
    found = compare_unpaired(own, other)
    assert found.ratio.reason is Reason.TOO_FEW_SAMPLES and found.p is None and found.found_percent() is None
    assert found.ratio.value == (None if value is None else pytest.approx(value))
