"""Streams in a study: from the study file to the tables on both clocks, and what is refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from raidlab.analysis.checks import stalls, sustained
from raidlab.analysis.metrics import METRICS
from raidlab.api import analyse, run_study
from raidlab.errors import InputError
from raidlab.published.quantities import KINDS, Source
from raidlab.report.sections import stream_rows
from raidlab.results import Run, load_run
from raidlab.study import load_study_text

STUDY = """
name = "streams"
title = "Streams"
on = ["sim"]

[[array]]
name = "box"
tree = "concat(1)"

[[array]]
name = "only modelled"
tree = "raid0(2, chunk=64KiB)"
on = ["sim"]

[[workload]]
name = "alone"
read = 0.0
size = "256KiB"
streams = [{ name = "write", source = "memory", sink = "array", bytes = "4MiB" }]
load = { depths = [1, 3] }

[[workload]]
name = "with tape"
read = 0.5
size = "256KiB"
streams = [
    { name = "write", source = "memory", sink = "array", bytes = "4MiB", quick_bytes = "1MiB" },
    { name = "to tape", source = "array", sink = "tape", bytes = "4MiB", quick_bytes = "1MiB", begin = 0.5 },
]

[[workload]]
name = "over links"
read = 1.0
size = "256KiB"
streams = [{ name = "fetch", source = "array", sink = "far", bytes = "4MiB", buffers = 2 }]
load = { depths = [1, 4] }
on = ["sim"]

[load]
depths = [1]

[sim]
device = { kind = "fixed", capacity_bytes = 104857600, read_us = 1000.0, write_us = 1000.0 }
host = { file_per_kib = "1us" }
file_system = { cluster = "128KiB", read_ahead_clusters = 2, write_behind_clusters = 2 }
end_quantum = "32KiB"

[[sim.station]]
name = "server link"

[[sim.station]]
name = "own link"
each = "stream"

[[sim.end]]
name = "tape"
tape = { mb_s = 50, buffer = "512KiB", start_stop = "100ms" }

[[sim.end]]
name = "far"
path = [
    { station = "server link", phase = "data", mb_s = 40 },
    { station = "own link", phase = "data", mb_s = 20 },
]

[live]
memory_member_size = "64MiB"
repeats = 1

[[live.end]]
name = "tape"
tape = { mb_s = 50, buffer = "512KiB" }
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The study on the virtual clock."""
    folder = tmp_path_factory.mktemp("streams")
    file = folder / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    return run_study(file, out=folder / "runs")


def _streams(run: Run, array: str, workload: str, depth: int = 1) -> list[dict[str, object]]:
    cells = run.cells.filter((pl.col("array") == array) & (pl.col("workload") == workload) & (pl.col("depth") == depth))
    assert cells.height == 1
    return run.streams.filter(pl.col("cell") == cells["cell"][0]).to_dicts()


def _rate(stream: dict[str, object]) -> float:
    return float(str(stream["bytes"])) / float(str(stream["elapsed_ns"])) * 1000


def test_each_stream_is_a_row_and_its_bytes_are_those_of_the_array(simulated: Run) -> None:
    alone, three = _streams(simulated, "box", "alone"), _streams(simulated, "box", "alone", 3)
    assert [stream["stream"] for stream in three] == ["write"] * 3
    assert {stream["bytes"] for stream in alone + three} == {4 * 2**20}
    # One disk, 1 ms a cluster: 131 MB/s for one, the same shared by three.
    assert _rate(alone[0]) == pytest.approx(131, rel=0.03)
    assert all(_rate(stream) == pytest.approx(131 / 3, rel=0.05) for stream in three)
    cell = simulated.cells.filter((pl.col("workload") == "with tape") & (pl.col("array") == "box")).to_dicts()[0]
    assert (cell["read_bytes"], cell["write_bytes"]) == (4 * 2**20, 4 * 2**20)
    write, tape = _streams(simulated, "box", "with tape")
    assert (tape["source"], tape["sink"], write["source"]) == ("array", "tape", "memory")
    assert tape["sink_stops"] == 0 and _rate(tape) == pytest.approx(50, rel=0.05)


def test_a_link_of_ones_own_limits_one_and_the_shared_one_limits_many(simulated: Run) -> None:
    one, four = _streams(simulated, "box", "over links"), _streams(simulated, "box", "over links", 4)
    # 13.1 ms for a block on its own link, and 0.8 ms until the first piece of it is over the server's.
    assert _rate(one[0]) == pytest.approx(18.8, rel=0.03)
    assert one[0]["bound_by"] == "sink"
    assert sum(_rate(stream) for stream in four) == pytest.approx(40, rel=0.08)
    stations = simulated.stations.filter(pl.col("station") == "own link 3")
    assert stations.height > 0, "each stream has its own"


def test_rates_by_direction_are_those_of_the_streams(simulated: Run) -> None:
    analysis = analyse(simulated)
    kinds = ("streams_read_mb_s", "streams_write_mb_s")
    for workload, depth in (("with tape", 1), ("alone", 3)):
        index, point = next(
            (index, point)
            for index, point in enumerate(analysis.points)
            if (point.array, point.workload, point.depth) == ("box", workload, depth)
        )
        rows = _streams(simulated, "box", workload, depth)
        ways = [[row for row in rows if row[end] == "array"] for end in ("source", "sink")]
        # Of a direction until its last stream has ended: what is added up went over one time.
        expected = [
            sum(row["bytes"] for row in way) / max(row["elapsed_ns"] for row in way) * 1000 if way else 0.0
            for way in ways
        ]
        assert [analysis.values[index][kind] for kind in kinds] == pytest.approx(expected)
        # A direction beside one that takes longer is not slower for it.
        whole = point.per_s("all_bytes") / 1e6
        assert sum(expected) >= whole * 0.999


def test_rates_are_a_kind_of_quantity(simulated: Run) -> None:
    kind = KINDS["stream_rate"]
    source = Source(analyse(simulated), "sim", Path())
    keys = {"array": "box", "workload": "over links", "copies": 4}
    mean, total = (
        kind.read(kind.keys.model_validate({**keys, "of": of}), source) for of in ("mean_mb_s", "total_mb_s")
    )
    assert mean is not None and total is not None
    assert 4 * mean.value == pytest.approx(total.value)
    stops = kind.read(
        kind.keys.model_validate({"array": "box", "workload": "with tape", "stream": "to tape", "of": "stops"}), source
    )
    assert stops is not None and stops.value == 0


def test_rates_of_streams_are_the_same_in_sheets_and_in_figures(simulated: Run) -> None:
    run, kind = load_run(simulated.folder), KINDS["stream_rate"]
    [cell] = run.cells.filter(array="box", workload="alone", depth=3)["cell"]
    # A second repeat, which took three times as long: all bytes count over all time.
    again = {"cell": pl.lit(1000, run.cells.schema["cell"]), "elapsed_ns": 3 * pl.col("elapsed_ns")}
    for table in ("cells", "streams"):
        rows = getattr(run, table)
        vars(run)[table] = pl.concat([rows, rows.filter(cell=cell).with_columns(**again)])
    analysis = analyse(run)
    point = next(one for one in analysis.points if set(one.cells) == {cell, 1000})
    drawn = next(metric for metric in METRICS if metric.kind == "streams_write_mb_s").compute(point, None)
    keys = {"array": "box", "workload": "alone", "copies": 3}
    mean, total = (
        kind.read(kind.keys.model_validate({**keys, "of": of}), Source(analysis, "sim", Path()))
        for of in ("mean_mb_s", "total_mb_s")
    )
    assert drawn and total.value == pytest.approx(drawn) and 3 * mean.value == pytest.approx(drawn)
    assert total.each == pytest.approx((2 * drawn, 2 * drawn / 3))
    told = next(row for row in stream_rows(analysis, "sim") if (row.workload, row.each) == ("alone", 3))
    assert told.mb_s == pytest.approx(mean.value), "the table has no mean of rates beside the sheet's"


def test_the_same_streams_run_on_real_members(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    run = run_study(file, on=["memory"], out=tmp_path / "runs", quick=True)
    assert run.cells["array"].unique().to_list() == ["box"], "what is only modelled is left out"
    assert set(run.cells["workload"]) == {"alone", "with tape"}
    write, tape = _streams(run, "box", "with tape")
    assert (write["bytes"], tape["bytes"]) == (2**20, 2**20)
    assert (write["source"], write["sink"], tape["sink"]) == ("memory", "array", "tape")
    assert len(_streams(run, "box", "alone", 3)) == 3
    cell = run.cells.filter(pl.col("workload") == "with tape").to_dicts()[0]
    assert (cell["read_requests"], cell["write_requests"], cell["read_bytes"]) == (4, 4, 2**20)
    assert run.members.height > 0
    # Measuring again would record no more.
    found = {one.check: one for check in (stalls, sustained) for one in check.check(analyse(run))}
    assert "of streams and whole files it is not recorded" in found["stalls"].evidence
    assert found["stalls"].remedy == "Measure requests."
    told = "no load lasted longer than a second"
    assert all(told not in one.evidence for one in found.values()), "streams have no rate of each second"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('sink = "far"', 'sink = "fare"', "is no end of sim; did you mean 'far'"),
        ("read = 0.5", "read = 0.4", "the share of the streams that read"),
        ('tape = { mb_s = 50, buffer = "512KiB" }', "", "one of tape, path, machine"),
        ('name = "to tape", source = "array"', 'name = "write", source = "array"', "already the name of a stream"),
        ('name = "fetch", source = "array", sink = "far"', 'name = "f", source = "memory", sink = "memory"', "memory"),
        (
            'size = "256KiB"\nstreams = [{ name = "write"',
            'size = { kind = "exponential", mean = "8KiB" }\nstreams = [{ name = "write"',
            "one size",
        ),
    ],
)
def test_mistakes_are_named(old: str, new: str, told: str) -> None:
    assert old in STUDY
    with pytest.raises(InputError) as caught:
        load_study_text(STUDY.replace(old, new), Path("study.toml"))
    assert told in str(caught.value)


def test_what_the_engine_refuses_is_told_in_the_words_of_the_study(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace("begin = 0.5", "begin = 0.99"), encoding="utf-8")
    with pytest.raises(InputError, match=r"streams\[1\]\.begin"):
        run_study(file, out=tmp_path / "runs")


def test_a_target_that_nothing_is_for_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    text = STUDY.replace('tree = "concat(1)"', 'tree = "concat(1)"\non = ["sim"]')
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="no array, or no workload"):
        run_study(file, on=["memory"], out=tmp_path / "runs")
