"""A study's own figures, results of others beside them, quantities over sweeps: a small study of volumes and shares."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import polars as pl
import pytest

from raidlab import _core
from raidlab.analysis.checks import PASS, UNKNOWN, WARN, run_checks
from raidlab.api import analyse, compare_with_published, run_study, write_report
from raidlab.directory import Directory
from raidlab.errors import InputError
from raidlab.report.figures import curves, layout, make_figures, scan
from raidlab.report.figures.bars import labels_of
from raidlab.report.figures.chart import Mark, columns_for
from raidlab.report.figures.own import metrics_of, places_of
from raidlab.report.figures.style import COLOURS, colours_of, shapes_of
from raidlab.results import Run, load_run
from raidlab.results.foreign import read_foreign
from raidlab.study import load_study, study_names
from raidlab.study.figure import StudyFigure

STUDY = """
name = "volumes"
title = "Two volumes against one"
on = ["sim"]
seed = 1

[[array]]
name = "two"
tree = "independent(2)"
[[array]]
name = "striped"
tree = "raid0(2, chunk=64KiB)"
[[array]]
name = "slow"
tree = "independent(2)"
device = { kind = "fixed", capacity_bytes = 1073741824, read_us = 4000.0, write_us = 4000.0 }
[[array]]
name = "parity"
group = "parity"
tree = "raid5(3, chunk=64KiB)"
on = ["sim"]

[[workload]]
name = "reads"
read = 1.0
size = "4KiB"
volumes = "even"
[[workload]]
name = "uneven"
read = 1.0
size = "4KiB"
volumes = { shares = [3, 1] }
arrays = ["two"]
[[workload]]
name = "front"
read = 1.0
size = "4KiB"
span = 0.25
arrays = ["two"]
[[workload]]
name = "writes"
read = 0.0
size = "4KiB"
arrays = ["parity"]
[[workload]]
name = "tasks"
read = 1.0
size = "4KiB"
task = [{ op = "read" }, { op = "read" }]
arrays = ["two", "slow"]
load = { open = { rates_per_s = [20, 40, 80] } }

[load]
depths = [1, 4, 16]

[sim]
device = { kind = "fixed", capacity_bytes = 1073741824, read_us = 1000.0, write_us = 1000.0 }
host = { cpus = 2, request = "10us", parity_per_kib = "2us" }
warmup = { requests = 50 }
measure = { requests = 800 }
repeats = 3

[[compare]]
group = "all"
title = "All"
reference = "striped"
equal = "members"
per = "array"

[[figure]]
number = "Figure 1"
title = "reads"
draw = "curves"
metrics = ["iops"]
workloads = ["reads"]
arrays = ["two", "striped"]
also = [{ array = "two", workload = "uneven", name = "two, uneven" }]
foreign = { level = "RAID 0", workload = "File Server" }
claims = ["v-order"]

[[figure]]
number = "Figure 2"
title = "reads, uncorrected"
draw = "curves"
metrics = ["iops"]
x = "depth_per_volume"
workloads = ["reads"]
arrays = ["two", "striped"]

[[figure]]
number = "Figure 3"
title = "processors"
draw = "bars"
metrics = ["host_requests_percent", "host_parity_percent"]
at = "heaviest"
workloads = ["writes"]
arrays = ["parity"]

[[figure]]
number = "Figure 4"
title = "tasks"
draw = "curves"
metrics = ["task_time_ms_mean"]
x = "rate_per_s"
workloads = ["tasks"]
arrays = ["two", "slow"]
"""
FOREIGN = """controller,level,workload,depth,iops,source,write_cache
Other 1,RAID 0,File Server,4,900,a magazine,
Other 1,RAID 0,File Server,16,1100,a magazine,
"""
CLAIMS = """id,topic,kind,value,unit,low,high,conditions,where,checkable_by,note
v-order,throughput,ordinal,two > striped,,,,,1,simulation,
v-time,time,value,8,ms,,,,1,simulation,
"""
ORDERS = """chart,order
reads,two > striped
writes,nobody knows
others,others > two
"""
QUANTITIES = """
target = "sim"
[measure]
least = { kind = "sweep", of = "least", metric = "iops", array = "two", reference = "striped", workload = "reads" }
mean = { kind = "sweep", metric = "iops", array = "two", reference = "striped", workload = "reads", from_depth = 4 }
deep = { kind = "sweep", of = "greatest", metric = "iops", array = "two", workload = "reads" }
slow = { kind = "where", metric = "TIME", array = "slow", workload = "tasks", reaches = REACHED }
rate = { kind = "where", array = "two", workload = "tasks", reaches = REACHED }
volumes = { kind = "tree", of = "volumes", tree = "independent(2*raid1(2))" }
efficiency = { kind = "tree", of = "efficiency", tree = "raid5(4)" }
members = { kind = "tree", of = "members", tree = "raid5(4)" }
[claim.v-order]
holds = "mean > 1"
[claim.v-time]
value = "slow"
[derived.trees]
holds = "volumes == 2 and efficiency == 0.75 and members == 4"
[derived.deep]
value = "deep"
unit = "1/s"
[derived.rate]
value = "rate"
unit = "1/s"
[derived.least]
value = "least"
""".replace("REACHED", '{ metric = "TIME", array = "two", value = 2.1 }').replace("TIME", "task_time_ms_mean")
COLUMNS = """
[[table]]
file = "orders.csv"
key = { chart = "chart" }
[table.order.order]
by = "chart"
holds = { reads = "mean > 1" }
not_evaluated = { others = "nobody has measured them" }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("volumes")
    (folder / "published").mkdir()
    for name, text in (("study.toml", STUDY), ("quantities.toml", QUANTITIES), ("columns.toml", COLUMNS)):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "published" / "claims.csv").write_text(CLAIMS, encoding="utf-8")
    (folder / "published" / "orders.csv").write_text(ORDERS, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return run_study(folder / "study.toml", out=folder / "runs")


def _iops(run: Run, array: str, workload: str, depth: int) -> float:
    points = analyse(run).points
    found = [p for p in points if (p.array, p.workload, p.depth) == (array, workload, depth)]
    return found[0].per_s("all_requests")


def test_shares_of_the_depth_are_kept(run: Run) -> None:
    # Two disks of 1 ms serve 2000 a second with two requests each, and with 12 and 4; with 3 and 1 as well.
    assert _iops(run, "two", "uneven", 16) == pytest.approx(2000, rel=0.02)
    cells = run.cells.filter((pl.col("workload") == "uneven") & (pl.col("depth") == 1))["cell"].to_list()
    reads = run.members.filter(pl.col("cell").is_in(cells)).group_by("leaf").agg(pl.sum("reads")).sort("leaf")
    assert reads["reads"][0] > 0 and reads["reads"][1] == 0, "one request has no share to divide: the larger one has it"


def test_an_array_may_have_a_device_of_its_own(run: Run) -> None:
    assert _iops(run, "slow", "reads", 4) == pytest.approx(_iops(run, "two", "reads", 4) / 4, rel=0.02)
    assert set(run.facts["array_devices"]) == {"slow"}


def test_an_array_with_a_device_of_its_own_is_not_run_on_real_members(folder: Path, tmp_path: Path) -> None:
    text = STUDY.replace("[sim]", "[live]\nmeasure = { requests = 20 }\nwarmup = {}\nrepeats = 1\n[sim]")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    run = run_study(tmp_path / "study.toml", on=["memory"], out=tmp_path / "runs")
    assert {"slow", "parity"}.isdisjoint(run.cells["array"]) and "two" in set(run.cells["array"])


def test_what_of_the_processors_is_parity(run: Run) -> None:
    analysis = analyse(run)
    index = next(i for i, p in enumerate(analysis.points) if (p.array, p.workload, p.depth) == ("parity", "writes", 16))
    values = analysis.values[index]
    parity, requests, whole = (
        values[name] for name in ("host_parity_percent", "host_requests_percent", "host_cpu_percent")
    )
    assert parity is not None and requests is not None and whole is not None
    # A small write to three disks reads the other chunk and computes over 8 KiB at 2 us each; it costs 10 us besides.
    assert parity / requests == pytest.approx(16 / 10, rel=0.02) and whole == pytest.approx(parity + requests)


def test_quantities_over_sweeps_and_orders(run: Run, folder: Path) -> None:
    rows = {row.id: row for row in compare_with_published(run, folder / "study.toml").rows}
    # With one or two requests on each disk nothing queues unevenly; a stripe leaves one of two disks idle at times.
    assert rows["v-order"].verdict == "holds", rows["v-order"].sentence
    assert rows["least"].value == pytest.approx(1.0, abs=0.02), "one request at a time is the same on both"
    assert rows["deep"].value == pytest.approx(2000, rel=0.02)
    assert rows["trees"].verdict == "holds"
    # Two steps of 1 ms and some waiting; on disks four times as slow at the same rate more than four times that.
    assert rows["rate"].value is not None and 20 < rows["rate"].value < 80
    assert rows["v-time"].value is not None and rows["v-time"].value > 8
    assert rows["orders:reads"].verdict == "holds" and rows["orders:reads"].published.text == "two > striped"
    assert rows["orders:others"].verdict == "not evaluated"
    assert rows["orders:writes"].verdict == "error" and "does not say" in rows["orders:writes"].note


def test_figures_are_drawn_under_the_studys_names(run: Run, tmp_path: Path) -> None:
    figures = {figure.title: figure for figure in make_figures(analyse(run)) if figure.key.startswith("own-")}
    assert list(figures) == [
        "Figure 1: reads",
        "Figure 2: reads, uncorrected",
        "Figure 4: tasks",
        "Figure 3: processors",
    ]
    for figure in figures.values():
        figure.specifications()
        with Directory.open(tmp_path) as folder:
            written = figure.save(folder)
        for file in written:
            assert file.stat().st_size > 0
            if file.suffix == ".svg":
                ET.fromstring(file.read_text(encoding="utf-8"))
    lines = str(figures["Figure 1: reads"].specifications())
    assert "two, uneven" in lines and "foreign" not in lines


@pytest.mark.parametrize(
    ("metrics", "labels"),
    [
        (["streams_read_mb_s", "streams_write_mb_s"], {"both": "5.7 and 18.2", "one": "9.6"}),
        (["host_requests_percent", "host_parity_percent"], {"both": "23.9", "one": "9.6"}),
    ],
)
def test_rates_over_different_times_are_not_added_up(metrics: list[str], labels: dict[str, str]) -> None:
    keys = {"number": "1", "title": "t", "draw": "bars", "metrics": metrics, "workloads": ["w"], "arrays": []}
    values = {"both": (5.68, 18.2), "one": (0.0, 9.62)}
    parts = [Mark(name, value) for name, both in values.items() for value in both]
    assert labels_of(parts, StudyFigure.model_validate(keys)) == labels


@pytest.mark.parametrize("name", study_names())
def test_a_line_looks_alike_in_all_figures_of_a_study(name: str) -> None:
    study = load_study(name).study
    looks: dict[str, set[tuple[str, str]]] = {}
    for spec in study.figure:
        if spec.draw in ("curves", "sizes", "total_time", "trade_off"):
            lines = [*spec.arrays, *(one.name or one.array for one in spec.also)]
            places = places_of(study, [*lines, "of others"])
            colours, shapes = colours_of(places), shapes_of(places)
            own = {line: (colours[line], shapes[line]) for line in [*lines, "of others"]}
            # As long as there are colours, those of one figure differ.
            assert len({colour for colour, _ in own.values()}) == min(len(own), len(COLOURS)), spec.number
            assert len(set(own.values())) == len(own), spec.number
            for line in lines:
                looks.setdefault(line, set()).add(own[line])
    assert all(len(found) == 1 for found in looks.values()), looks


def test_long_names_stand_in_fewer_columns() -> None:
    names = ("raid0", "one on each of two", "two 11+p in two arrays, two interfaces")
    assert [columns_for(names[:count]) for count in (0, 1, 2, 3)] == [4, 4, 2, 1]


def _depths(run: Run, title: str, line: str) -> set[float]:
    figure = next(figure for figure in make_figures(analyse(run)) if figure.title == title)
    datasets = [values for spec in figure.specifications() for values in spec["datasets"].values()]
    return {row["x"] for rows in datasets for row in rows if row["line"] == line}


def test_the_axis_counts_all_volumes_unless_asked_otherwise(run: Run) -> None:
    assert _depths(run, "Figure 1: reads", "two") == {1, 4, 16}
    # With one outstanding each of two volumes has half a request, which is no load of a volume.
    assert _depths(run, "Figure 2: reads, uncorrected", "two") == {2, 8}
    assert _depths(run, "Figure 2: reads, uncorrected", "striped") == {1, 4, 16}


def test_results_of_others_are_drawn_named_and_warned_of(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "others.csv"
    file.write_text(FOREIGN, encoding="utf-8")
    page = write_report(run, foreign=[file]).read_text(encoding="utf-8")
    assert "Other 1 (foreign: a magazine, drives unknown, write cache unknown)" in page
    again = analyse(run.folder)
    found = [finding for finding in run_checks(again) if finding.check == "foreign"]
    assert [finding.verdict for finding in found] == [WARN, UNKNOWN]
    assert "'File Server' beside own ones of 'reads'" in found[0].evidence
    assert "write cache" in found[1].evidence
    known = "controller,level,workload,depth,iops,source,drives,write_cache\nOther,RAID 0,File Server,4,9,x,4,off\n"
    file.write_text(known.replace("File Server", "reads"), encoding="utf-8")
    text = STUDY.replace('workload = "File Server"', 'workload = "reads"')
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    other = run_study(tmp_path / "study.toml", out=tmp_path / "runs", quick=True)
    write_report(other, foreign=[file])
    verdicts = [finding.verdict for finding in run_checks(analyse(other.folder)) if finding.check == "foreign"]
    assert verdicts == [PASS]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("controller,level\nx,y\n", "has no column 'workload'"),
        ("controller,level,workload,depth,iops,size\na,b,c,1,2,3\n", "has a column 'size'"),
        ("controller,level,workload,depth,iops\na,b,c,0,2\n", "depth"),
        ("controller,level,workload,depth,iops\na,b,c,1,none\n", "requests a second"),
        ("controller,level,workload,depth,iops\na,,c,1,2\n", "says no level"),
        ("controller,level,workload,depth,iops\na,b,c,1\n", "as many fields"),
    ],
)
def test_wrong_files_of_others_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "others.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_foreign(file)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('number = "Figure 2"', 'number = "Figure 1"', "figure[1].number"),
        ('arrays = ["parity"]\n\n[[figure]]', 'arrays = ["partly"]\n\n[[figure]]', "figure[2].arrays[0]"),
        ('workloads = ["tasks"]', 'workloads = ["task"]', "figure[3].workloads[0]"),
        ('metrics = ["task_time_ms_mean"]', 'metrics = ["iops", "throughput_mb_s"]', "figure[3].metrics"),
        ("shares = [3, 1]", "shares = [3, 0]", "workload[1].volumes"),
        ("span = 0.25", "span = 0.0", "workload[2].span"),
        ("read_us = 4000.0", "reed_us = 4000.0", "array[2].device"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, where: str) -> None:
    assert old in STUDY
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_study(file)
    assert where in str(caught.value)


def test_a_metric_that_there_is_not_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace('metrics = ["iops"]', 'metrics = ["iopz"]'), encoding="utf-8")
    with pytest.raises(InputError, match=r"figure\[0\].metrics"):
        run_study(tmp_path / "study.toml", out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_lines_stand_where_they_were_measured_and_points_beside_those_that_they_would_hide() -> None:
    spec = next(one for one in load_study("ou2007").study.figure if one.number == "Read I/O, ICH8R")
    names = [f"{index} drives" for index in range(6)]
    marks = [Mark(name, 100.0 * (depth + (name == names[-1])), depth) for name in names for depth in (1.0, 4.0)]
    [metric] = metrics_of(spec)
    chart = curves._chart(marks, [], [], names, spec, metric, "reads", None).to_dict()
    lines, points = ([*chart["datasets"][layer["data"]["name"]]] for layer in chart["layer"][:2])
    assert chart["layer"][0]["mark"]["type"] == "line" and {one["x"] for one in lines} == {1.0, 4.0}
    heights = {(one["line"], one["value"]) for one in points}
    assert heights == {(mark.line, mark.value) for mark in marks}, "each at its own height"
    low = {one["line"]: one["x"] for one in points if one["value"] < 300}
    assert low.pop(names[-1]) == 1.0, "it hides nobody"
    assert len(set(low.values())) == 5 and [*low.values()] == sorted(low.values())


def test_a_shadow_stands_behind_all_disks_that_have_one() -> None:
    members = _core.layout_map(_core.parse_tree("raid10(4, chunk=64KiB)"), 2)["members"]
    assert [layout._text(column[0]) for column in layout._copies_last(members)] == ["0", "1", "0", "1"]
    members = _core.layout_map(_core.parse_tree("raid5(3, chunk=64KiB)"), 2)["members"]
    assert layout._copies_last(members) == members


def test_a_line_of_a_scan_has_the_colour_of_the_array_that_it_is_like() -> None:
    study = load_study("chen1990").study
    [chunk, partial] = (
        next(one for one in study.figure if one.number == number)
        for number in ("Chunk, requests of 40 KiB", "Partial stripes")
    )
    places = places_of(study, ["raid0", "raid5"])
    colours, shapes = scan._looks(study, chunk.lines)
    of_0, of_5 = (colours_of(places)[name] for name in ("raid0", "raid5"))
    assert colours == {
        "RAID 0, reads": of_0,
        "RAID 0, writes": of_0,
        "RAID 5, reads": of_5,
        "RAID 5, writes": of_5,
    }
    assert len({shapes[name] for name in colours}) == 4 and shapes["RAID 5, reads"] == shapes_of(places)["raid5"]
    assert scan._looks(study, partial.lines)[0] == {"RAID 5": of_5}


def test_a_caption_names_lines_of_the_study_that_were_not_run(run: Run) -> None:
    def caption(run: Run) -> str:
        return next(one.caption for one in make_figures(analyse(run)) if one.title == "Figure 1: reads")

    assert "Not run" not in caption(run)
    part = load_run(run.folder)
    is_cut = pl.col("interrupted") | (pl.col("array") == "striped")
    vars(part)["cells"] = run.cells.with_columns(interrupted=is_cut)
    assert caption(part).endswith("Not run here: striped.")
    vars(part.study.array[1])["on"] = ["emulated"]
    assert "Not run" not in caption(part), "it is for another target"
    vars(part.study.array[1]).update({"on": None, "tree": "mounted"})
    assert "Not run" not in caption(part), "no simulated target has it"
