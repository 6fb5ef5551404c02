"""Printed figures over a study's own: hollow marks, as many as tables have values, where the comparison has ours."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair as alt
import pytest

from raidlab.analysis.metrics import Analysis
from raidlab.api import analyse, check_figures, run_study
from raidlab.directory import Directory
from raidlab.errors import InputError
from raidlab.published.compare import PublishedComparison, PublishedRow, compare_run, ids_of
from raidlab.published.compare.row import Published
from raidlab.report.figures import Figure, make_figures
from raidlab.report.figures.bars import labels_of
from raidlab.report.figures.chart import Axes, Mark, colour_and_shape, layered, point_layer, upward
from raidlab.report.figures.figure import Panel, length
from raidlab.report.figures.printed_points import Printed, hollow_layers, rows_named
from raidlab.report.figures.quantities import bars_chart
from raidlab.report.figures.style import CHART_WIDTH
from raidlab.study import load_study
from raidlab.study.figure import StudyFigure
from raidlab.study.load import load_study_text
from raidlab.study.mapping import load_mapping
from raidlab.study.published import number

STUDIES = ["chen1990", "hauser1996", "jlab1998", "ou2007", "uselton2000"]
STUDY = """
name = "printed"
title = "Printed beside ours"
on = ["sim"]

[[array]]
name = "one"
tree = "independent(1)"
[[array]]
name = "three"
tree = "raid0(3, chunk=64KiB)"

[[workload]]
name = "read 4096"
read = 1.0
size = "4KiB"
[[workload]]
name = "read 65536"
read = 1.0
size = "64KiB"

[load]
depths = [1, 4]

[sim]
device = { kind = "fixed", capacity_bytes = 1073741824, read_us = 1000.0, write_us = 1000.0 }
warmup = { requests = 20 }
measure = { requests = 200 }
repeats = 2

[[figure]]
number = "1"
title = "over the load, in thousands"
draw = "curves"
metrics = ["iops"]
times = 0.001
unit = "thousands a second"
along = "readers"
scale = "linear"
workloads = ["read 4096"]
panels = ["(a) small reads"]
arrays = ["one", "three"]
printed = ["rates:*"]

[[figure]]
number = "2"
title = "over the size"
draw = "sizes"
metrics = ["throughput_mb_s"]
workloads = ["read 4096", "read 65536"]
arrays = ["three"]
printed = ["sizes:*", "p-most"]

[[figure]]
number = "3"
title = "bars"
draw = "bars"
metrics = ["throughput_mb_s"]
workloads = ["read 4096"]
arrays = ["one", "three"]
printed = ["p-*"]

[[figure]]
number = "4"
title = "slopes"
draw = "quantities"
measure = { kind = "regression", of = "slope", metric = "response_time_ms_mean" }
axis = "slope (ms)"
workloads = ["read 4096"]
arrays = ["one", "three"]
printed = ["slopes:*"]

[[figure]]
number = "5"
title = "shares"
draw = "shares"
reference = "one"
workloads = ["read 4096"]
arrays = ["one", "three"]
series = [{ name = "here", at = "heaviest", printed = ["shares:*"] }]

[[figure]]
number = "6"
title = "the table itself"
draw = "printed"
printed = ["rates:*"]
panels = ["Table 6"]

[[figure]]
number = "7"
title = "layouts"
draw = "layout"
arrays = ["one", "three"]
"""
QUANTITIES = """
target = "sim"
[measure]
most = { kind = "metric", metric = "throughput_mb_s", array = "three", workload = "read 4096", at = "maximum" }
[claim.p-most]
value = "most"
[claim.p-bound]
value = "most"
"""
CLAIMS = """id,topic,kind,value,unit,low,high,conditions,where,checkable_by,note
p-most,throughput,range,,MB/s,10,13,three,,simulation,
p-bound,throughput,range,,MB/s,5,,three,,simulation,
"""
AT = 'array = "{array}", workload = "read 4096"'
COLUMNS = f"""
[[table]]
file = "rates.csv"
key = {{ array = "array", depth = "depth" }}
skip = [{{ rows = "depth == 4 and array == 'one'", why = "misprinted" }}]
[table.measure]
rate = {{ kind = "metric", metric = "iops", {AT}, at = {{ depth = "{{depth}}" }} }}
[table.column.thousands]
value = "rate / 1000"
unit = "thousands a second"
[[table]]
file = "sizes.csv"
key = {{ size = "size" }}
[table.measure]
rate = {{ kind = "metric", metric = "throughput_mb_s", array = "three", workload = "read {{size}}", at = "heaviest" }}
[table.column.mb_s]
value = "rate"
unit = "MB/s"
[[table]]
file = "slopes.csv"
key = {{ array = "array" }}
[table.measure]
slope = {{ kind = "regression", of = "slope", metric = "response_time_ms_mean", {AT} }}
[table.column.ms]
value = "slope"
unit = "ms"
[[table]]
file = "shares.csv"
key = {{ array = "array" }}
[table.measure]
own = {{ kind = "metric", metric = "throughput_per_disk_mb_s", {AT} }}
whole = {{ kind = "metric", metric = "throughput_per_disk_mb_s", array = "one", workload = "read 4096" }}
[table.column.percent]
value = "100 * own / whole"
unit = "percent"
"""
TABLES = {
    "rates": "array,depth,thousands\none,1,1.0\none,4,1.1\nthree,1,0.9\nthree,4,2.5\nthree,9,3.0\n",
    "sizes": "size,mb_s\n4096,11\n65536,150\n",
    "slopes": "array,ms\none,1.0\nthree,0.3\n",
    "shares": "array,percent\none,100\nthree,80\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("printed")
    (folder / "published").mkdir()
    for name, text in (("study.toml", STUDY), ("quantities.toml", QUANTITIES), ("columns.toml", COLUMNS)):
        (folder / name).write_text(text, encoding="utf-8")
    for name, text in {**TABLES, "claims": CLAIMS}.items():
        (folder / "published" / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def analysis(folder: Path) -> Analysis:
    return analyse(run_study(folder / "study.toml", out=folder / "runs"))


@pytest.fixture(scope="module")
def published(folder: Path, analysis: Analysis) -> PublishedComparison:
    return compare_run(analysis, load_mapping(folder / "study.toml"))


@pytest.fixture(scope="module")
def figures(analysis: Analysis, published: PublishedComparison) -> dict[str, Figure]:
    return {figure.title[:1]: figure for figure in make_figures(analysis, published) if figure.key.startswith("own-")}


def _hollow(figure: Figure) -> list[dict[str, Any]]:
    """The printed marks of a figure, those of all its panels."""
    found: dict[tuple[str, float, float], dict[str, Any]] = {}
    for specification in figure.specifications():
        for rows in specification["datasets"].values():
            found |= {(row["line"], row["x"], row["value"]): row for row in rows if ": printed " in row.get("tip", "")}
    return list(found.values())


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        # What was not run has no place (depth 9); what is not compared has one (the misprint).
        ("1", {("one", 1.0, 1.0), ("one", 4.0, 1.1), ("three", 1.0, 0.9), ("three", 4.0, 2.5)}),
        # Of the range both ends, at the size whose heaviest load is the one of most throughput.
        ("2", {("three", 4.0, 10.0), ("three", 4.0, 11.0), ("three", 4.0, 13.0), ("three", 64.0, 150.0)}),
        # A bound is no figure.
        ("3", {("three", 0.0, 10.0), ("three", 0.0, 13.0)}),
        ("4", {("one", 0.0, 1.0), ("three", 0.0, 0.3)}),
    ],
)
def test_hollow_marks_stand_where_the_tables_say(
    figures: dict[str, Figure], number: str, expected: set[tuple[str, float, float]]
) -> None:
    assert {(row["line"], row["x"], row["value"]) for row in _hollow(figures[number])} == expected


def test_a_share_is_that_of_its_array_and_the_reference_has_its_own(figures: dict[str, Figure]) -> None:
    found = {row["line"].partition(" ")[0]: row["value"] for row in _hollow(figures["5"])}
    assert found == {"one": 100.0, "three": 80.0}


def test_a_table_has_a_bar_a_row_and_each_its_printed_figure(figures: dict[str, Figure]) -> None:
    [panel] = figures["6"].panels
    assert panel.title == "Table 6" and len(_hollow(figures["6"])) == 5
    text = str(panel.chart.to_dict())
    assert "'label': 'not here ○ 3.0'" in text, "what was not run is printed all the same"
    assert re.search(r"'label': '[\d.]+ ○ 2\.5'", text), "ours, then what was printed"
    assert "Printed: " in panel.alt and "thousands a second" in panel.alt


def test_both_are_told_apart_in_the_legend_and_the_axis_has_the_unit_of_the_print(figures: dict[str, Figure]) -> None:
    [panel] = figures["1"].panels
    text = str(panel.chart.to_dict())
    assert "'domain': ['ours', 'printed']" in text and "thousands a second" in text and "'readers'" in text
    assert panel.title == "(a) small reads"


def test_over_hardware_of_the_users_nothing_printed_is_drawn(folder: Path, tmp_path: Path) -> None:
    text = STUDY + "[live]\nmeasure = { requests = 20 }\nwarmup = {}\nrepeats = 1\n"
    loaded = load_study_text(text, folder / "study.toml")
    analysis = analyse(run_study(loaded, on=["memory"], out=tmp_path))
    published = compare_run(analysis, load_mapping(loaded.file))
    own = {figure.title[:1]: figure for figure in make_figures(analysis, published) if figure.key.startswith("own-")}
    assert not any(_hollow(figure) for figure in own.values())
    [table] = own["6"].panels
    assert "three, depth 4" in table.alt and "three, depth 9" not in table.alt, "the table has what was run"


def test_without_a_comparison_nothing_printed_is_drawn(analysis: Analysis) -> None:
    own = [figure for figure in make_figures(analysis) if figure.key.startswith("own-")]
    assert not any(_hollow(figure) for figure in own) and "6" not in {figure.title[:1] for figure in own}


def test_a_layout_is_the_engines_own_map(figures: dict[str, Figure]) -> None:
    one, three = figures["7"].panels
    assert one.title == "one" and "3 disks; their first row: 0, 1, 2." in three.alt


def test_all_are_drawn(figures: dict[str, Figure], tmp_path: Path) -> None:
    for figure in figures.values():
        with Directory.open(tmp_path) as place:
            assert all(path.stat().st_size > 1000 for path in figure.save(place))


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (
            'arrays = ["one", "three"]\nprinted = ["rates:*"]',
            'arrays = []\nprinted = ["rate:*"]',
            "figure[0].printed[0]",
        ),
        ('"p-most"]', '"p-mist"]', "figure[1].printed[1]"),
        ('printed = ["shares:*"]', 'printed = ["share:*"]', "figure[4].series[0].printed[0]"),
    ],
)
def test_a_table_that_there_is_not_is_one_error_before_anything_is_run(
    folder: Path, old: str, new: str, where: str
) -> None:
    assert old in STUDY
    with pytest.raises(InputError) as caught:
        check_figures(load_study_text(STUDY.replace(old, new, 1), folder / "study.toml"))
    assert len(caught.value.problems) == 1 and where in str(caught.value)
    assert "is nothing that was printed" in str(caught.value) and "rates:*" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('panels = ["(a) small reads"]', 'panels = ["a", "b"]', "figure[0].panels"),
        ('draw = "layout"\n', 'draw = "layout"\nworkloads = ["read 4096"]\n', "figure[6].workloads"),
        ('draw = "printed"\nprinted = ["rates:*"]\npanels = ["Table 6"]', 'draw = "printed"', "figure[5].printed"),
        ('draw = "layout"\n', 'draw = "layout"\nprinted = ["rates:*"]\n', "figure[6].printed"),
        ('reference = "one"\n', 'reference = "one"\ntimes = 2.0\n', "figure[4].times"),
    ],
)
def test_mistakes_are_named(folder: Path, old: str, new: str, where: str) -> None:
    assert old in STUDY
    with pytest.raises(InputError) as caught:
        load_study_text(STUDY.replace(old, new), folder / "study.toml")
    assert where in str(caught.value)


@pytest.mark.parametrize("name", STUDIES)
def test_each_study_draws_the_tables_that_it_printed(name: str) -> None:
    loaded = load_study(name)
    check_figures(loaded)
    mapping = load_mapping(loaded.file)
    patterns = [pattern for figure in loaded.study.figure for pattern in figure.printed]
    patterns += [pattern for figure in loaded.study.figure for one in figure.series for pattern in one.printed]
    drawn = {one.split(":")[0] for one in ids_of(mapping) if any(fnmatchcase(one, pattern) for pattern in patterns)}
    # Tables of figures: what is only a part of another, or input of it, is not drawn.
    apart = {"configurations", "capacity_price"}
    tables = {one.split(":")[0] for one in ids_of(mapping) if ":" in one} - apart
    assert tables <= drawn, "a table that nothing draws"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hauser1996"])
def test_where_something_printed_stands_ours_is_what_the_comparison_has(name: str, tmp_path: Path) -> None:
    loaded = load_study(name)
    run = run_study(loaded, on=["original"], quick=True, out=tmp_path)
    analysis = analyse(run)
    published = compare_run(analysis, load_mapping(loaded.file))
    specs = {f"{spec.number}: {spec.title}": spec for spec in loaded.study.figure if spec.printed}
    arrays, checked = {array.name for array in loaded.study.array}, 0
    for figure in make_figures(analysis, published):
        if figure.title not in specs:
            continue
        rows = rows_named(published.published, specs[figure.title].printed)
        values = {(str(row.measures[0].get("array")), row.published.text): row.value for row in rows if row.measures}
        assert _hollow(figure), f"{figure.title} has nothing of what it names"
        for specification in figure.specifications():
            tipped = [row for data in specification["datasets"].values() for row in data if "tip" in row]
            ours = {(row["line"], row["x"]): row["value"] for row in tipped if ": printed " not in row["tip"]}
            for mark in tipped:
                found = ours.get((mark["line"], mark["x"]))
                if ": printed " in mark["tip"] and found is not None and mark["line"] in arrays:
                    assert number(mark["label"]) == mark["value"]
                    assert found == pytest.approx(values[mark["line"], mark["label"]], rel=1e-6), figure.title
                    checked += 1
    assert checked > 40


@pytest.mark.parametrize(
    ("published", "drawn"),
    [
        (Published("", "3", "5", "MB/s"), {"reads", "writes"}),
        (Published("4", unit="MB/s"), set()),
        (Published(""), set()),
    ],
)
def test_a_range_of_the_mean_of_two_workloads_is_drawn_over_each(published: Published, drawn: set[str]) -> None:
    measures = tuple({"kind": "stream_rate", "array": "box", "workload": name} for name in ("reads", "writes"))
    row = PublishedRow("3", "rate", "(r + w) / 2", published, "compared", measures=measures)
    printed = Printed((row,), SimpleNamespace(target="original"))  # type: ignore[arg-type]
    assert {name for name in ("reads", "writes", "both") if [*printed.of("box", name)]} == drawn
    assert not [*printed.of("another box", "reads")]


def test_bars_have_as_many_decimals_as_were_printed() -> None:
    marks, over = [Mark("a", 1.1), Mark("b", 0.95)], [Mark("a", 1.152, label="1.152"), Mark("b", 0.9, label="0.9")]
    assert "1.100 \u25cb 1.152" in str(bars_chart(marks, over, "MB/s", "Bang").to_dict())
    # Where nothing was printed of one, no digit that tells them apart is lost.
    assert "0.950" in str(bars_chart(marks, over[:1], "MB/s", "Bang").to_dict())
    keys = {"number": "1", "title": "t", "draw": "bars", "workloads": ["w"]}
    assert labels_of(marks[:1], StudyFigure.model_validate(keys), [Mark("a", 1, label="1")]) == {"a": "1"}


@pytest.mark.parametrize(
    "names", [["one array on one", "one on each of two", "two on each of two"], ["4+p", "5+p", "8+p", "11+p"]]
)
def test_the_legend_of_what_was_printed_stands_below_the_other(names: list[str]) -> None:
    """Beside it a chart would be wider than a phone, which shows what fits and cuts the rest."""
    marks = [Mark(name, 50.0 + place, x=2048) for place, name in enumerate(names)]
    colour, shape = colour_and_shape(names, names)
    title = "throughput (MB/s of 2^20 bytes)"
    axes = Axes(alt.X("x:Q", title="block (KiB), log scale"), upward(title), colour)
    chart = layered([point_layer(marks, axes, shape), *hollow_layers(marks, axes, shape, title)], "read")
    [svg] = Figure("own", "own", "", "", (Panel("read", chart),)).panel_svgs()
    assert all(f">{name}</text>" in svg for name in (*names, "ours", "printed"))
    assert length(svg, "width") <= CHART_WIDTH
