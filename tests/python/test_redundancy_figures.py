"""Stages of a lone request, trade-offs, shares and scans, conclusions within the noise: three levels, little work."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from raidlab.analysis.checks import INVALID, WARN, Concern, Finding, single_run
from raidlab.analysis.metrics import Analysis
from raidlab.analysis.model.slowest import mean_of_slowest, rotations
from raidlab.api import analyse, compare_with_published, published_beside, run_study, write_report
from raidlab.errors import InputError
from raidlab.report.figures import make_figures
from raidlab.report.figures.chart import Mark
from raidlab.report.figures.held_points import line_points
from raidlab.report.page import fill, render
from raidlab.report.published import concluded
from raidlab.report.sections import targets_of
from raidlab.results import Run, load_run
from raidlab.study import load_study
from raidlab.study.expression import Relation, read

STUDY = """
name = "levels"
title = "Three levels"
on = ["sim"]
seed = 1

[[array]]
name = "raid0"
tree = "raid0(4, chunk=16KiB)"
[[array]]
name = "raid1"
tree = "raid10(8, chunk=16KiB)"
[[array]]
name = "raid5"
tree = "raid5(5, chunk=16KiB, rotation=right_asymmetric)"

WORKLOADS

[load]
depths = [1, 4, 16]
[load.hold]
percentile = 90
target = { times_idle = 3, of = "raid0" }
max_depth = 64

[sim]
host = { cpus = 2, request = "1ms", issue = "1ms" }
pair_pricing = "prepaid"
warmup = { requests = 100 }
measure = { requests = 1500 }
repeats = 3
[sim.device]
kind = "hdd"
sector_bytes = 512
revolution_ms = 10.0
heads = 4
zones = [{ cylinders = 500, sectors_per_track = 100 }]
head_switch_ms = 0.0
read_overhead_ms = 0.5
write_overhead_ms = 0.5
write_settle_ms = 0.0
seek = { kind = "lee", min_ms = 1.0, avg_ms = 6.0, max_ms = 12.0 }
pair_turnaround_ms = 1.0
scheduler = "fifo"

[[compare]]
group = "all"
title = "All"
reference = "raid0"
equal = "user_capacity"

[[figure]]
number = "Figure 1"
title = "stages"
draw = "bars"
metrics = [
    "idle_request_overhead_ms",
    "idle_io_cpu_ms",
    "idle_disconnect_ms",
    "idle_synchronisation_ms",
    "idle_connect_ms",
    "idle_write_back_ms",
]
mark = "response_time_ms_mean"
at = 1
workloads = ["chunk, 0 % reads", "stripe, 100 % reads"]
arrays = ["raid0", "raid1", "raid5"]

[[figure]]
number = "Figure 2"
title = "trade-off"
draw = "trade_off"
of_maximum = true
workloads = ["chunk, 0 % reads"]
arrays = ["raid0", "raid5"]

[[figure]]
number = "Figure 3"
title = "shares"
draw = "shares"
reference = "raid0"
workloads = ["chunk, 0 % reads"]
arrays = ["raid1", "raid5"]
series = [
    { name = "here" },
    { name = "by time", of = "disk_time" },
    { name = "by accesses", of = "access_count" },
    { name = "other", at = "target", workloads = ["chunk, 100 % reads"] },
]

[[figure]]
number = "Figure 4"
title = "mix"
draw = "scan"
over = "read_percent"
at = "target"
workloads = ["chunk, 0 % reads", "chunk, 50 % reads", "chunk, 100 % reads"]
arrays = ["raid0", "raid5"]
flat = ["raid0"]
straight = true

[[figure]]
number = "Figure 5"
title = "disks"
draw = "scan"
over = "disks"
at = 4
workloads = ["chunk, 0 % reads"]
arrays = []
lines = [{ name = "redundant", arrays = ["raid1", "raid5"], workloads = ["chunk, 0 % reads"], reference = "raid0" }]
""".replace(
    "WORKLOADS",
    "\n".join(
        f"""
[[workload]]
name = "{name}, {100 * reads:g} % reads"
read = {reads}
size = "{size}"
address = {{ kind = "aligned_stripe", stripe = "64KiB", chunk = "16KiB" }}
"""
        for name, size, mixes in (("chunk", "16KiB", (0.0, 0.5, 1.0)), ("stripe", "64KiB", (1.0,)))
        for reads in mixes
    ),
)
QUANTITIES = """
target = "original"
[measure]
write_0 = { kind = "metric", metric = "throughput_mb_s", array = "raid0", workload = "chunk, 0 % reads" }
write_5 = { kind = "metric", metric = "throughput_mb_s", array = "raid5", workload = "chunk, 0 % reads" }
read_0 = { kind = "metric", metric = "iops", array = "raid0", workload = "chunk, 100 % reads", at = { depth = 1 } }
read_5 = { kind = "metric", metric = "iops", array = "raid5", workload = "chunk, 100 % reads", at = { depth = 1 } }
deep = { kind = "metric", metric = "iops", array = "raid5", workload = "chunk, 100 % reads", at = { depth = 300 } }
[conclusion.clear]
says = "Parity costs small writes"
holds = "write_5 < 0.6 * write_0"
[conclusion.reverse]
says = "Parity helps small writes"
holds = "write_5 > write_0"
[conclusion.noisy]
says = "One of two that are the same is ahead"
holds = "read_5 > read_0"
[conclusion.absent]
says = "Nobody looked"
holds = "deep > 1"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("levels")
    (folder / "published").mkdir()
    header = "id,topic,kind,value,unit,low,high,conditions,where,checkable_by,note\n"
    (folder / "published" / "claims.csv").write_text(header, encoding="utf-8")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "quantities.toml").write_text(QUANTITIES, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return run_study(folder / "study.toml", out=folder / "runs")


def _values(analysis: Analysis, array: str, workload: str) -> dict[str, float | None]:
    found = [i for i, p in enumerate(analysis.points) if (p.array, p.workload, p.depth) == (array, workload, 1)]
    return analysis.values[found[0]]


@pytest.mark.parametrize("array", ["raid0", "raid1", "raid5"])
@pytest.mark.parametrize("workload", ["chunk, 0 % reads", "chunk, 100 % reads", "stripe, 100 % reads"])
def test_the_stages_of_a_lone_request_add_up_to_its_response_time(run: Run, array: str, workload: str) -> None:
    values = _values(analyse(run), array, workload)
    total, mean = values["idle_sum_ms"], values["response_time_ms_mean"]
    assert total is not None and mean is not None
    # 4500 requests: a standard error of 0.1 ms. The spindles of a repeat keep their angles to one another, of which
    # three draws are averaged here, and the arms of a parity stripe are not all together: some tenths of a millisecond.
    assert total == pytest.approx(mean, rel=0.035), values


def test_a_figure_of_stages_says_how_far_they_add_up(run: Run) -> None:
    analysis = analyse(run)
    shares = [
        100 * float(values["idle_sum_ms"] or 0) / float(values["response_time_ms_mean"] or 1)
        for array in ("raid0", "raid1", "raid5")
        for workload in ("chunk, 0 % reads", "stripe, 100 % reads")
        if (values := _values(analysis, array, workload))
    ]
    captions = {figure.title: figure.caption for figure in make_figures(analysis)}
    said = f"Here they add up to {min(shares):.0f} to {max(shares):.0f} % of the stroke."
    assert captions["Figure 1: stages"] == said and said not in captions["Figure 3: shares"]


def test_only_requests_of_several_disks_wait_for_the_slowest(run: Run) -> None:
    analysis = analyse(run)
    alone = _values(analysis, "raid0", "chunk, 100 % reads")["idle_synchronisation_ms"]
    pair = _values(analysis, "raid1", "chunk, 0 % reads")["idle_synchronisation_ms"]
    assert alone == pytest.approx(0, abs=1e-9)
    # Two rotations of 10 ms that begin 1 ms apart: 2/3 of one and a little more, less half of one and half a gap.
    assert pair is not None and 10 / 6 < pair < 10 / 6 + 0.1
    mixed = [p for p in analysis.points if p.workload == "chunk, 50 % reads" and p.depth == 1]
    assert analysis.values[analysis.points.index(mixed[0])]["idle_sum_ms"] is None, "reads and writes have other stages"


def test_the_slowest_of_rotations_is_known_in_closed_form() -> None:
    for disks in (1, 2, 10, 11):
        assert mean_of_slowest(rotations(16.7), disks) == pytest.approx(16.7 * disks / (disks + 1), rel=1e-3)
    # Gaps as long as a revolution: the last is always the last.
    assert mean_of_slowest(rotations(10.0), 5, gap=10.0) == pytest.approx(45.0, rel=1e-3)
    with pytest.raises(ValueError, match="at least one"):
        mean_of_slowest([], 2)


def _rows(run: Run, title: str) -> list[dict[str, object]]:
    figure = next(one for one in make_figures(analyse(run)) if one.title == title)
    return [row for spec in figure.specifications() for values in spec["datasets"].values() for row in values]


def test_trade_offs_are_in_percent_of_their_own_maximum(run: Run) -> None:
    rows = _rows(run, "Figure 2: trade-off")
    best = {str(row["line"]): row["value"] for row in rows if "line" in row and row["level"] == 16}
    assert best == {"raid0": 100.0, "raid5": 100.0}
    assert any("line" not in row and row["x"] for row in rows), "the target is marked"


def test_what_is_held_stands_on_the_target(run: Run) -> None:
    analysis = analyse(run)
    comparison = next(one for one in analysis.comparisons if one.workload == "chunk, 0 % reads")
    row = next(row for row in comparison.rows if row.array == "raid5")
    assert row.held is not None and row.held.rates
    figure = next(one for one in make_figures(analysis) if one.kind == "throughput_against_p90")
    panel = next(one for one in figure.panels if one.title == "chunk, 0 % reads")
    found = [one for values in panel.chart.to_dict()["datasets"].values() for one in values]
    held = next(one for one in found if one.get("line") == "raid5" and "held at a p90" in one["tip"])
    assert held["x"] == row.held.target_ms
    assert held["value"] == pytest.approx(sum(row.held.rates) / len(row.held.rates) / 1e6)
    assert "Held at the target: " in panel.alt and "diamonds" in figure.caption


def test_a_line_passes_through_what_is_held_only_in_order() -> None:
    loads = [Mark("a", 1.0, x, level=level) for level, x in ((1, 10.0), (4, 20.0), (16, 90.0))]
    between, beyond, unknown = (Mark("a", 1.0, 50.0, level=level) for level in (6.5, 2, None))
    assert line_points(loads, [between, beyond, unknown]) == [*loads, between]


def test_shares_stand_beside_the_models(run: Run) -> None:
    rows = [row for row in _rows(run, "Figure 3: shares") if "part" in row]
    shares = {(str(row["line"]).partition(" (")[0], row["part"]): row for row in rows}
    assert shares["raid5", "by accesses"]["value"] == pytest.approx(25.0)
    assert shares["raid1", "by accesses"]["value"] == pytest.approx(50.0)
    # A pair takes a revolution and a transfer more than an access: 6.0 + 5 + 3.2 + 0.5 of it on each of two disks.
    by_time = shares["raid5", "by time"]["value"]
    assert isinstance(by_time, float) and 25 < by_time < 35
    assert {name for array, name in shares if array == "raid1"} == {"here", "by time", "by accesses", "other"}
    assert shares["raid5", "other"]["value"] != shares["raid5", "here"]["value"]
    assert shares["raid5", "here"]["low"] < shares["raid5", "here"]["high"], "three repeats have an interval"


@pytest.mark.slow
def test_captions_speak_of_intervals_only_where_there_are_repeats(run: Run, folder: Path, tmp_path: Path) -> None:
    def caption(run: Run) -> str:
        return next(one.caption for one in make_figures(analyse(run)) if one.title == "Figure 3: shares")

    assert "intervals over repeats" in caption(run)
    quick = run_study(folder / "study.toml", out=tmp_path, quick=True)
    assert "intervals" not in caption(quick) and "One run each" in caption(quick)


def test_scans_lie_over_what_differs(run: Run) -> None:
    mix = _rows(run, "Figure 4: mix")
    assert {row["x"] for row in mix if row.get("line") == "raid5"} == {0, 50, 100}
    level = {row["value"] for row in mix if row.get("line") == "raid0" and "low" not in row}
    assert len(level) == 1, "drawn level"
    disks = {row["x"]: row["value"] for row in _rows(run, "Figure 5: disks") if "line" in row}
    assert set(disks) == {8, 5} and all(isinstance(share, float) and 20 < share < 60 for share in disks.values())


def test_conclusions_hold_fail_or_are_within_the_noise(run: Run, folder: Path) -> None:
    verdicts = {row.id: row for row in compare_with_published(run, folder / "study.toml").conclusions}
    assert {name: row.verdict for name, row in verdicts.items()} == {
        "clear": "holds",
        "reverse": "fails",
        # One request at a time finds the same disks idle, at other places.
        "noisy": "within the noise",
        "absent": "not evaluated",
    }
    assert "write_5 = " in verdicts["clear"].details and not verdicts["clear"].is_single
    assert "with 300 outstanding" in verdicts["absent"].note


def test_conclusions_need_no_published_figures_and_are_in_the_report(run: Run, folder: Path) -> None:
    beside = published_beside(run, folder / "study.toml")
    assert beside is not None and not beside.published and len(beside.conclusions) == 4
    assert "conclusion" not in (run.folder / "comparison.csv").read_text(encoding="utf-8").splitlines()[0]
    write_report(run)
    assert (run.folder / "report.html").is_file()


def test_what_is_said_of_pairs_stands_behind_a_space() -> None:
    said = {"tree": "raid5(11)", "volume": "", "members": 11, "efficiency": 0.9, "pair_pricing": "queued"}
    array = {"name": "raid5", "group": "", **said}
    page = fill("basis.html.j2", arrays=[array], hardware=[], members=[], metrics=[])
    assert '</code> <span class="soft">pair: queued</span>' in page.replace("\n", " ")


def test_what_a_check_says_of_single_figures_stands_where_they_do(run: Run, folder: Path) -> None:
    analysis, beside = analyse(run), published_beside(run, folder / "study.toml", keep=False)
    concern = Concern("raid5", "stripe, 100 % reads", "It is plain")
    finding = Finding("made_up", "sim", WARN, "All is plain.", "Mend it.", (concern,))
    figures = make_figures(analysis)
    (target,) = targets_of(analysis, figures, beside, [finding])
    told = {shown.title: shown.care for section in target.sections for shown in section.figures if shown.care}
    assert set(told) == {"Figure 1: stages"}, "the only one that draws it"
    (part,) = targets_of(analysis, [one for one in figures if one.title != "Figure 1: stages"], beside, [])
    assert [one.note for one in part.sections if one.figures][:1] == ["Not here, for nothing of it was run: Figure 1."]
    assert [one.note for one in target.sections if one.figures][:1] == [""]
    assert [one.evidence for one in told["Figure 1: stages"]] == ["It is plain."]
    assert [section.title for section in target.sections if section.care] == ["All"], "its table has it"
    assert beside is not None
    (sound,) = concluded(beside, [finding])
    assert not sound.care and "warn" not in sound.sentence, "no conclusion rests on it"
    writes = replace(finding, concerns=(Concern("raid5", "chunk, 0 % reads", "It is plain"),))
    (spoilt,) = concluded(beside, [writes])
    assert set(spoilt.care) == {"clear", "reverse"}
    assert spoilt.sentence.endswith("2 of the 3 rest on figures that checks warn of")
    page = render(analysis, figures, [writes], beside)
    assert page.count("made_up: It is plain.") == 2 + 5 + 1, "two conclusions, five figures, one table"


def test_repeats_that_lie_far_apart_are_warned_of_on_any_clock(run: Run, tmp_path: Path) -> None:
    (sound,) = single_run.check(analyse(run))
    assert sound.verdict == "PASS" and not sound.concerns
    copy = tmp_path / "run"
    shutil.copytree(run.folder, copy)
    slow = (
        pl.when(pl.col("cell") == run.cells["cell"][0]).then(3 * pl.col("elapsed_ns")).otherwise(pl.col("elapsed_ns"))
    )
    run.cells.with_columns(elapsed_ns=slow).write_parquet(copy / "cells.parquet")
    (copy / "run.json").write_text(json.dumps({**run.facts, "tables": {}}), encoding="utf-8")
    analysis = analyse(load_run(copy))
    (finding,) = single_run.check(analysis)
    point = analysis.points[0]
    assert finding.verdict == "WARN" and finding.remedy == "Measure longer, or repeat more."
    assert f"({point.array}, {point.workload}, {point.level}); over more than 20 % in 1 of" in finding.evidence
    assert [(one.array, one.workload) for one in finding.concerns] == [(point.array, point.workload)]


def test_nothing_is_concluded_from_a_target_that_a_check_calls_invalid(run: Run, folder: Path) -> None:
    beside = published_beside(run, folder / "study.toml", keep=False)
    assert beside is not None
    (sound,) = concluded(beside, [Finding("lateness", "live", INVALID, "Late.", "Slower.")])
    assert len(sound.rows) == 4 and "conclusions that are tested on any hardware hold" in sound.sentence
    (broken,) = concluded(beside, [Finding("lateness", sound.target, INVALID, "Late.", "Slower.")])
    assert broken.sentence == "No answer: lateness says INVALID: its conclusions are not judged" and not broken.rows


def test_what_is_undecided_stays_so_unless_the_rest_decides() -> None:
    def judge(one: Relation) -> bool | None:
        by = min(one.margins({"a": 1.0, "b": 1.0, "c": 2.0}))
        return None if by == 0 else by > 0

    verdicts = {
        "a > b": None,
        "c > a": True,
        "a > c and a > b": False,
        "c > a and a > b": None,
        "c > a or a > b": True,
        "not a > b": None,
        "not c > a": False,
        "a < c < 3": True,
        "about(a, b)": True,
        "about(a, c)": False,
        "a < min(b, c)": None,
        "a < min(c, 3)": True,
    }
    assert {text: read(text).decided(judge) for text in verdicts} == verdicts
    with pytest.raises(ValueError, match="no comparison"):
        read("a + b").decided(judge)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('reference = "raid0"\nworkloads', 'reference = "raid9"\nworkloads', "figure[2].reference"),
        ('over = "disks"\n', "", "figure[4]"),
        ('flat = ["raid0"]', 'flat = ["raid1"]', "figure[3].flat[0]"),
        (
            'workloads = ["chunk, 100 % reads"] }',
            'workloads = ["chunk, 99 % reads"] }',
            "figure[2].series[3].workloads[0]",
        ),
        ("of_maximum = true", 'metrics = ["iops", "throughput_mb_s"]', "figure[1].metrics"),
        ("at = 1\n", 'at = "target"\n', "figure[0].at"),
        ('arrays = ["raid1", "raid5"], workloads', 'arrays = ["raid9"], workloads', "figure[4].lines[0].arrays[0]"),
        ("straight = true", 'crossing = ["raid0"]', "figure[3].crossing"),
    ],
)
def test_mistakes_in_figures_are_named(tmp_path: Path, old: str, new: str, where: str) -> None:
    assert old in STUDY
    (tmp_path / "study.toml").write_text(STUDY.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_study(tmp_path / "study.toml")
    assert where in str(caught.value)


def test_a_metric_along_an_axis_that_there_is_not_is_refused(tmp_path: Path) -> None:
    text = STUDY.replace("of_maximum = true", 'against = "response_time"')
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"figure\[1\].against"):
        run_study(tmp_path / "study.toml", out=tmp_path / "runs")
