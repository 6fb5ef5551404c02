"""Figures of quantities, and of the total time of several tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raidlab.analysis.metrics import METRICS, Analysis
from raidlab.api import analyse, run_study
from raidlab.directory import Directory
from raidlab.report.figures import Panel, make_figures, over_blocks, quantities, total_time
from raidlab.report.figures.chart import Mark, most_of
from raidlab.report.figures.figure import Figure, length
from raidlab.report.figures.style import CHART_WIDTH
from raidlab.study import load_study

STUDY = """
name = "lines"
title = "What each further one adds"
on = ["sim"]

[[array]]
name = "one"
tree = "independent(1)"

[[array]]
name = "three"
tree = "raid0(3, chunk=64KiB)"

[[array]]
name = "elsewhere"
tree = "raid0(4, chunk=64KiB)"
on = ["emulated"]

[[workload]]
name = "reads"
read = 1.0
size = "4KiB"

[load]
depths = [1, 4, 8]

[sim]
device = "hdd-7200-bare"
measure = { requests = 800 }

[[figure]]
number = "1"
title = "slopes"
draw = "quantities"
measure = { kind = "regression", of = "slope", metric = "response_time_ms_mean" }
axis = "slope (s)"
times = 0.001
workloads = ["reads"]
arrays = ["one", "three", "elsewhere"]

[[figure]]
number = "2"
title = "no such quantity"
draw = "quantities"
measure = { kind = "nothing" }
workloads = ["reads"]
arrays = ["one"]

[[figure]]
number = "3"
title = "total time"
draw = "total_time"
workloads = ["reads"]
arrays = ["one", "three", "elsewhere"]
"""


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    folder = tmp_path_factory.mktemp("figures")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return analyse(run_study(folder / "study.toml", out=folder / "runs"))


def _rows(panel: Panel) -> list[dict[str, Any]]:
    """The data of a chart, all layers of which show the same."""
    first: list[dict[str, Any]] = next(iter(panel.chart.to_dict()["datasets"].values()))
    return first


def test_a_bar_is_the_quantity_of_its_array(analysis: Analysis) -> None:
    [figure] = quantities.figures(analysis)
    [panel] = figure.panels
    rows = _rows(panel)
    assert [row["line"] for row in rows] == ["one", "three"], "what was not run is left out"
    points = {(point.array, point.depth): point for point in analysis.points}
    rise = points["one", 8].rows[0]["all_response_mean_ns"] - points["one", 1].rows[0]["all_response_mean_ns"]
    assert rows[0]["value"] == pytest.approx(rise / 1e9 / 7, rel=0.1)
    assert rows[0]["value"] > rows[1]["value"]
    assert "one" in panel.alt


def test_total_time_is_that_of_one_and_what_each_further_one_adds(analysis: Analysis) -> None:
    [figure] = total_time.figures(analysis)
    [panel] = figure.panels
    rows = _rows(panel)
    of_one = {(row["part"], row["x"]): row["value"] for row in rows if row["line"] == "one"}
    assert of_one["one after another", 10] == pytest.approx(10 * of_one["at once", 1])
    added = of_one["at once", 3] - of_one["at once", 2]
    assert of_one["at once", 10] == pytest.approx(of_one["at once", 1] + 9 * added)


def test_both_are_drawn(analysis: Analysis, tmp_path: Path) -> None:
    found = [figure for figure in make_figures(analysis) if figure.kind in ("quantities", "total_time")]
    assert len(found) == 2
    for figure in found:
        with Directory.open(tmp_path) as folder:
            assert all(path.stat().st_size > 1000 for path in figure.save(folder))
        figure.specifications()


def test_a_run_in_which_nothing_was_done_has_a_place_on_a_logarithmic_axis() -> None:
    spec = next(figure for figure in load_study("uselton2000").study.figure if figure.number == "Figure 2")
    metric = next(metric for metric in METRICS if metric.kind == "throughput_mb_s")
    marks = [Mark("4+p", 5.0, 0.5, (0.0, 9.0)), Mark("4+p", 50.0, 8.0, (40.0, 60.0))]
    beside = Mark("4+p", 90.0, 8.0, (70.0, 120.0))
    chart = over_blocks._chart(marks, [], [*marks, beside], ["4+p"], spec, metric, "read", "block (KiB)").to_dict()
    # What stands beside it has the same axis.
    assert "'domain': [9.0, 120.0]" in str(chart) and "60.0" in str(chart)


def test_panels_have_one_axis_unless_one_of_them_would_be_flat() -> None:
    reads, writes, few = [Mark("a", 12.0), Mark("a", 20.0, interval=(19.0, 24.0))], [Mark("a", 9.0)], [Mark("a", 7.9)]
    assert most_of([reads, writes]) == 24.0
    assert most_of([reads, writes, few]) is None
    assert most_of([[], []]) is None and most_of([]) is None


@pytest.mark.parametrize("letters", [4, 17, 34, 60])
def test_a_phone_shows_bars_and_their_figures_whole(letters: int) -> None:
    """Whatever their names are; only a word of its own that is too long is cut."""
    names = [
        ("3-disk RAID 0+1 (mirrored), 160 KB of ten files each, and more" * 2)[:letters] + str(one) for one in (1, 2)
    ]
    marks = [Mark(name, value, interval=(value, value * 1.1)) for name, value in zip(names, (0.02, 0.03), strict=True)]
    chart = quantities.bars_chart(marks, [], "average retrieval time (s)", "one reader")
    (svg,) = Figure("k", "k", "t", "", (Panel("one reader", chart),)).panel_svgs()
    assert length(svg, "width") <= CHART_WIDTH
    assert "0.030" in svg


def test_what_repeats_do_not_determine_is_asked_and_stretches_no_axis() -> None:
    marks = [Mark("steep", 10.0, interval=(9.0, 11.0)), Mark("nearly level", 979.0)]
    assert quantities._undetermined(marks) == {"nearly level"}
    assert quantities._undetermined(marks[1:]) == set(), "single runs have no intervals at all"
    chart = quantities.bars_chart(marks, [], "rate (MB/s)", "small files", unsure={"nearly level"})
    (svg,) = Figure("k", "k", "t", "", (Panel("small files", chart),)).panel_svgs()
    assert "979 ?" in svg and "10 ?" not in svg and ">200<" not in svg
