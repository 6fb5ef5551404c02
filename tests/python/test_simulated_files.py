"""Whole files in the simulator: from the study file to the tables, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from raidlab import _core
from raidlab.api import analyse, run_study
from raidlab.errors import InputError
from raidlab.study import load_study_text

STUDY = """
name = "files"
title = "Whole files"
on = ["sim"]

[[array]]
name = "volumes"
tree = "independent(2)"

[[array]]
name = "striped"
tree = "raid0(2, chunk=16KiB)"

[[workload]]
name = "files"
read = 1.0
size = { kind = "table", bytes = ["50kB", "150kB", "250kB"], weights = [1, 1, 1] }
files = { count = 360, numbers = "even", lists = 4 }

[load]
depths = [1, 2, 4]

[sim]
device = "fixed-100us"
host = { file = "1ms", file_per_kib = "10us" }
file_system = { inode_cache = "64KiB", inode_update = "50ms" }
warmup = { requests = 50 }
measure = { requests = 400 }
"""


def _problems(text: str) -> str:
    with pytest.raises(InputError) as caught:
        load_study_text(text, Path("study.toml"))
    return str(caught.value)


def test_files_are_what_requests_are_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    run = run_study(file, out=tmp_path / "runs")
    assert run.cells.height == 6
    assert run.cells["all_requests"].to_list() == [400] * 6
    mean_bytes = run.cells["all_bytes"].sum() / run.cells["all_requests"].sum()
    assert mean_bytes == pytest.approx(150_000, rel=0.05)
    accesses = run.accesses.filter(pl.col("cell") == 0)
    per_file = {row["access"]: row["count"] / 400 for row in accesses.iter_rows(named=True)}
    # Clusters: 50 kB is one, 150 kB two and one behind its indirect block, 250 kB two and three behind it.
    assert per_file["data"] == pytest.approx((1 + 3 + 5) / 3, rel=0.05)
    assert per_file["indirect"] == pytest.approx(2 / 3, rel=0.06)
    assert 0 < per_file["inode update"] <= 1
    assert per_file["inode"] + accesses["found"][0] / 400 == pytest.approx(1, abs=0.02)
    sizes = run.file_sizes.filter(pl.col("cell") == 0)
    assert sizes["size_bytes"].to_list() == [50_000, 150_000, 250_000]
    assert sizes["files"].sum() == 400
    means = (sizes["time_ns"] / sizes["files"]).to_list()
    assert means == sorted(means)
    # The host's one processor: 1 ms and 10 us a KiB for each file, which is all that four readers can share.
    fastest_s = (1000 + 10 * mean_bytes / 1024) / 1e6
    assert max(point.per_s("all_requests") for point in analyse(run).points) <= 1.02 / fastest_s


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("count = 360, ", "", "accepted: count or fill"),
        ("lists = 4", "lists = 3", "are fewer than the 4 readers"),
        ("read = 1.0", "read = 0.5", "whole files are read"),
        ("depths = [1, 2, 4]", "open = { rates_per_s = [10] }", "whole files need a load of depths"),
        ('{ kind = "table", bytes = ["50kB", "150kB", "250kB"], weights = [1, 1, 1] }', '"50kB"', "sizes of a table"),
    ],
)
def test_mistakes_are_named(old: str, new: str, told: str) -> None:
    assert told in _problems(STUDY.replace(old, new))


def test_what_the_engine_refuses_is_told_in_the_words_of_the_study(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace('inode_update = "50ms"', 'group = "10000"'), encoding="utf-8")
    with pytest.raises(InputError, match=r"sim\.file_system\.group"):
        run_study(file, out=tmp_path / "runs")


@pytest.mark.slow
def test_files_on_raw_members_are_the_same_extents(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    live = (
        '[live]\nmemory_member_size = "64MiB"\nwarmup = { requests = 1 }\nmeasure = { requests = 100 }\nrepeats = 1\n'
    )
    file.write_text(STUDY + live, encoding="utf-8")
    run = run_study(file, on=["memory"], out=tmp_path / "runs")
    live_cells = run.cells.filter(pl.col("target") == "live")
    assert live_cells["all_requests"].to_list() == [100] * 6
    of_cell = run.accesses.filter(pl.col("cell") == int(live_cells["cell"][0]))
    per_file = {row["access"]: row["count"] / 100 for row in of_cell.iter_rows(named=True)}
    assert per_file["data"] == pytest.approx(3, abs=0.7)
    assert per_file["inode update"] == 0, "what is only read is not changed"
    assert live_cells["write_requests"].sum() == 0


def test_the_work_of_a_host_is_not_modelled_where_the_host_is_real() -> None:
    request = json.loads(_live_cell())
    request["host"] = {"file": 5000}
    with pytest.raises(_core.CellError, match="host: is modelled, and the host is real here"):
        _core.run_cell(json.dumps(request))
    whole = json.loads(_live_cell())
    with pytest.raises(_core.CellError, match="whole files are read from arrays of which no member is lost"):
        _core.run_cell(json.dumps({**whole, "missing": [0], "tree": json.loads(_core.parse_tree("raid1(2)"))}))


def _live_cell() -> str:
    return json.dumps(
        {
            "engine": "live",
            "seed": 1,
            "tree": json.loads(_core.parse_tree("raid0(2, chunk=16KiB)")),
            "members": [{"kind": "memory", "size_bytes": 2**24}],
            "load": {"kind": "closed", "depth": 1},
            "workload": {
                "size": {"kind": "fixed", "bytes": 50_000},
                "address": {"kind": "uniform"},
                "read": 1,
            },
            "files": {"count": 20},
            "measure": {"requests": 20},
        }
    )
