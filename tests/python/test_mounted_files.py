"""Whole files on mounted file systems: a study's volumes are the directories that are given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from raidlab.analysis.checks import run_checks, zone_spread
from raidlab.analysis.checks.members import MemberVerdict
from raidlab.api import analyse, run_study
from raidlab.errors import InputError
from raidlab.histogram import Histogram
from raidlab.run.answers import again_and_first
from raidlab.run.files import FilesRead
from raidlab.run.members import remove_abandoned
from raidlab.run.mounted import on_live, runs_mounted, runs_raw
from raidlab.run.placement import extents_of, placement
from raidlab.study import load_study_text

STUDY = """
name = "files"
title = "Whole files"
on = ["sim"]

[[array]]
name = "striped"
tree = "raid0(2, chunk=16KiB)"

[[array]]
name = "as mounted"
tree = "mounted"

[[workload]]
name = "one"
read = 1.0
size = { kind = "table", bytes = ["5kB", "15kB", "25kB"], weights = [1, 1, 1] }
files = { count = 60, numbers = "even" }
load = { depths = [1] }

[[workload]]
name = "many"
read = 1.0
size = { kind = "table", bytes = ["5kB", "15kB", "25kB"], weights = [1, 1, 1] }
files = { count = 60, numbers = "even", lists = 4 }

[load]
depths = [1, 4]

[sim]
device = "fixed-100us"
measure = { requests = 100 }

[live]
member_size = "4MiB"
warmup = { requests = 5 }
measure = { requests = 90 }
repeats = 1
"""


def test_directories_are_read_and_left_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    run = run_study(file, on=[str(place) for place in places], out=tmp_path / "runs")
    assert [list(place.iterdir()) for place in places] == [[], []]
    assert set(run.cells["array"]) == {"as mounted"}, "directories hold no raw arrays"
    assert run.cells["members"].to_list() == [2] * 3
    assert run.cells["all_requests"].min() >= 80
    members = run.live_members()
    assert [member["kind"] for member in members] == ["directory"] * 2
    # Both workloads read the same files, which were written once, each directory its half of every size.
    assert [[one["files"] for one in member["sets"]] for member in members] == [[30], [30]]
    sizes = run.file_sizes.filter(pl.col("cell") == 0)
    assert sizes["size_bytes"].to_list() == [5000, 15_000, 25_000]
    assert sizes["files"].sum() == run.cells["all_requests"][0]
    said = {finding.check for finding in run_checks(analyse(run))}
    assert {"page_cache", "zone_spread"} <= said


def test_what_runs_where() -> None:
    loaded = load_study_text(STUDY, Path("study.toml"))
    given = on_live(loaded, 3)
    assert runs_mounted(given) and not runs_raw(given)
    assert len(given.geometry.trees["as mounted"]["children"]) == 3
    raw = on_live(loaded, 0)
    assert runs_raw(raw) == ["striped"] and not runs_mounted(raw)


def test_only_whole_files_are_read_from_directories() -> None:
    text = STUDY.replace('files = { count = 60, numbers = "even" }', 'arrays = ["as mounted"]')
    with pytest.raises(InputError, match="only whole files are read from it"):
        load_study_text(text, Path("study.toml"))


def test_what_a_killed_run_has_left_is_taken_away(tmp_path: Path) -> None:
    left = tmp_path / "raidlab-members-0123abcd"
    (left / "files-0" / "raidlab-files").mkdir(parents=True)
    (left / "files-0" / "raidlab-files" / "f00000001").write_bytes(b"x")
    (left / "files-0" / "raidlab-files" / "made-by-raidlab").write_bytes(b"raidlab file set, version 1\n")
    (left / "raidlab-owner").write_bytes(b"")
    remove_abandoned([tmp_path])
    assert not left.exists()


def _read(files: list[int], times: list[int]) -> FilesRead:
    columns = {"file": files, "total_ns": times, "start_ns": range(len(files))}
    nothing = Histogram.of({"value_ns": [], "count": []})
    records = {name: np.array(list(column), dtype=np.uint64) for name, column in columns.items()}
    return FilesRead(len(files), 0, 0, 1, nothing, nothing, nothing, 0.0, 0.0, 0.0, 0, 0, 0, records)


def test_first_and_later_readings_are_told_apart() -> None:
    first, again = again_and_first(_read([1, 2, 1, 3, 2, 1], [10, 20, 1, 30, 2, 1]))
    assert (sorted(first), sorted(again)) == ([10, 20], [1, 1, 2])


def test_extents_of_a_file_that_is_there(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(bytes(100_000))
    found = extents_of(file)
    assert found is None or sum(length for _, length in found) >= 100_000 or found == []
    assert extents_of(tmp_path / "nothing") is None
    assert "unknown" in placement([tmp_path / "nothing"])


@pytest.mark.parametrize(("tenths", "last", "verdict"), [(10, 900, "PASS"), (6, 900, "WARN"), (10, 300, "WARN")])
def test_sizes_that_are_not_all_over_the_volume(tenths: int, last: int, verdict: str) -> None:
    place = {
        "volume_bytes": 1000,
        "first_bytes": 0,
        "last_bytes": last,
        "extents": 1.0,
        "sizes": 2,
        "tenths": tenths,
        "tenths_used": 10,
    }
    member = {"kind": "directory", "path": "/d", "sets": [{"workload": "w", "files": 100, "placement": place}]}
    judged = zone_spread.spread(member)
    assert isinstance(judged, MemberVerdict) and judged.verdict == verdict
    few = {**member, "sets": [{"workload": "w", "files": 99, "placement": place}]}
    unsaid = zone_spread.spread(few)
    assert unsaid is not None and unsaid.verdict == "UNKNOWN"
