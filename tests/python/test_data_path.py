"""Stations of a study: what is paid at them, and which part of the data path is called the limit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raidlab import run_study
from raidlab.analysis.metrics.utilisation import MEMBERS, limit_of, parts_of
from raidlab.api import analyse, write_report
from raidlab.errors import InputError
from raidlab.report.figures import make_figures
from raidlab.results import Run
from raidlab.study import load_study

STUDY = """
name = "chains"
title = "Two disks behind one bus"
array = [{ name = "pair", tree = "raid0(2, chunk=64KiB)" }]
workload = [{ name = "reads", read = 1.0, size = "64KiB", address = "uniform" }]
load = { depths = [1, 16] }
compare = [{ group = "all", title = "One array", reference = "pair", equal = "members" }]
figure = [
    { number = "1", title = "steps", draw = "curves", workloads = ["reads"], arrays = ["pair"], limits = true },
    { number = "2", title = "none asked", draw = "curves", workloads = ["reads"], arrays = ["pair"] },
]

[sim]
device = { kind = "fixed", capacity_bytes = 1073741824, read_us = 1000.0, write_us = 1000.0 }
measure = { requests = 2000 }
station = [{ name = "bus" }, { name = "switch", servers = 2 }]
member_path = [{ station = "bus", phase = "data", cost = "100us", mb_s = 64.0, only = [0, 1] }]
request_path = [{ station = "switch", phase = "status", cost = "10us", on = "read" }]
transfer_quantum = "16KiB"
"""


def study(folder: Path, text: str = STUDY) -> Path:
    file = folder / "study.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("chains")
    return run_study(study(folder), out=folder / "runs")


def test_the_bus_is_the_limit_of_a_deep_queue_and_nothing_of_a_shallow_one(run: Run) -> None:
    shallow, deep = analyse(run).points
    # 65,536 bytes at 64 MB/s and 100 us a transfer: 1,124 us of bus to 500 us of each of two disks.
    limit = limit_of(parts_of(deep))
    assert limit is not None and limit.name == "bus"
    assert deep.per_s("all_requests") == pytest.approx(1e6 / 1124, rel=0.01)
    assert {part.name for part in parts_of(deep)} == {"bus", "switch", MEMBERS}
    assert limit_of(parts_of(shallow)) is None
    assert sum(part.share for part in parts_of(shallow)) < 1.5


def test_a_figure_names_the_limit_at_each_load_where_it_is_asked(run: Run) -> None:
    captions = {figure.title: figure.caption for figure in make_figures(analyse(run))}
    assert captions["1: steps"] == "The limit, busy 90 % of the time or more: reads: none at 1, bus at 16."
    assert captions["2: none asked"] == ""


def test_a_member_with_several_servers_is_busy_when_all_of_them_are(tmp_path: Path) -> None:
    text = STUDY.replace("write_us = 1000.0", "write_us = 1000.0, servers = 4")
    text = text.replace("[1, 16]", "[1, 4, 64]").replace("only = [0, 1]", "only = []")
    one, four, many = analyse(run_study(study(tmp_path, text), out=tmp_path / "runs")).points
    members = [next(part for part in parts_of(point) if part.name == MEMBERS) for point in (one, four, many)]
    # One request at a time keeps one of eight servers busy; the busier of two members has a little more of them.
    assert members[0].share == pytest.approx(1 / 8, rel=0.1)
    assert limit_of(parts_of(one)) is None and limit_of(parts_of(four)) is None
    assert limit_of(parts_of(many)) == members[2] and members[2].share > 0.95


def test_a_lone_request_pays_for_the_path(run: Run) -> None:
    shallow = analyse(run).points[0]
    # The disk, the bus quantum by quantum without a gap, the switch.
    assert shallow.response.percentile_ns(50) == pytest.approx(1_000_000 + 1_124_000 + 10_000, rel=0.001)


SHARED = (
    STUDY.replace(
        'device = { kind = "fixed", capacity_bytes = 1073741824, read_us = 1000.0, write_us = 1000.0 }',
        """device = { kind = "hdd", rpm = 6000, heads = 2, zones = [{ cylinders = 2000, sectors_per_track = 100 }], \
seek = { kind = "constant", ms = 1.0 }, bus = { read_sector_ms = 0.1, write_sector_ms = 0.1 } }""",
    )
    .replace("raid0(2, ", "raid0(4, ")
    .replace(
        'member_path = [{ station = "bus", phase = "data", cost = "100us", mb_s = 64.0, only = [0, 1] }]',
        'member_path = [{ station = "bus", phase = "bus" }]',
    )
)


def test_disks_on_one_bus_take_it_in_turns(tmp_path: Path) -> None:
    assert 'phase = "bus"' in SHARED and "read_sector_ms" in SHARED
    _, together = analyse(run_study(study(tmp_path, SHARED), out=tmp_path / "runs")).points
    bus = next(part for part in parts_of(together) if part.name == "bus")
    # 128 sectors of 0.1 ms a request, in which a disk also gets to the next one: four of them want more than there is.
    assert 0.9 < bus.share <= 1.0
    assert together.per_s("all_requests") <= 1.001e3 / 12.8
    assert bus.wait_ns is not None and bus.wait_ns > 1e6


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('phase = "bus"', 'phase = "bus", cost = "1us"', "member_path"),
        ('"bus" }, {', '"bus", servers = 2 }, {', "member_path"),
        ("bus = { read_sector_ms = 0.1, write_sector_ms = 0.1 }", "queue_depth = 1", "accepted: a disk with a [bus]"),
    ],
)
def test_what_is_no_bus_of_disks_is_refused_before_a_run(tmp_path: Path, old: str, new: str, where: str) -> None:
    assert old in SHARED
    with pytest.raises(InputError) as caught:
        run_study(study(tmp_path, SHARED.replace(old, new)), out=tmp_path / "runs")
    assert where in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_the_report_names_the_limit(run: Run) -> None:
    page = write_report(run).read_text(encoding="utf-8")
    assert "The data path: what limits" in page
    assert '<td class="l">bus</td>' in page


def test_parts_that_are_never_busy_have_no_column_and_are_named(tmp_path: Path) -> None:
    spare = STUDY.replace('{ name = "switch", servers = 2 }', '{ name = "spare 1" }, { name = "spare 2" }')
    paths = ", ".join(f'{{ station = "spare {one}", phase = "status", cost = "10us", on = "write" }}' for one in (1, 2))
    text = re.sub(r"request_path = .*", f"request_path = [{paths}]", spare)
    page = write_report(run_study(study(tmp_path, text), out=tmp_path / "runs")).read_text(encoding="utf-8")
    table = page[page.index("The data path: what limits") :]
    assert "Never busy, and without a column: &#39;spare 1&#39; to &#39;spare 2&#39;." in table
    assert "<th>bus</th>" in table and "<th>spare 1</th>" not in table


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('phase = "data", cost', 'phase = "date", cost', "sim.member_path[0].phase"),
        ('cost = "100us"', "cost = 100", "sim.member_path[0].cost"),
        ("mb_s = 64.0", "mb_s = 0.0", "sim.member_path[0].mb_s"),
        ("servers = 2", "servers = 0", "sim.station[1].servers"),
        ('"16KiB"', '"0"', "sim.transfer_quantum"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, where: str) -> None:
    assert old in STUDY
    with pytest.raises(InputError) as caught:
        load_study(study(tmp_path, STUDY.replace(old, new)))
    assert where in str(caught.value)
