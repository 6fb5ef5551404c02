"""Fits: the search itself, a study whose parameter is known, and what is written back."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import numpy as np
import pytest

from raidlab.analysis.metrics import Analysis
from raidlab.api import run_study
from raidlab.errors import InputError
from raidlab.published.compare import compare_run, errors_of, write_left_out
from raidlab.run.fit import fit_study, write_values
from raidlab.run.fit.search import least_squares
from raidlab.study import load_study
from raidlab.study.find import find_study
from raidlab.study.mapping import load_mapping
from raidlab.study.published import read_tables

STUDY = """
name = "known"
title = "A study with a known parameter"
on = ["original"]

[[array]]
name = "one"
tree = "independent(1)"

[[workload]]
name = "4 KiB"
read = 1.0
size = "4KiB"

[[workload]]
name = "64 KiB"
read = 1.0
size = "64KiB"

[load]
depths = [1]

[original]
device = { kind = "fixed", capacity_bytes = 1073741824, read_us = 100.0, write_us = 100.0 }
parameters = "known.parameters.toml"
measure = { requests = 200 }
warmup = { requests = 10 }
[[original.station]]
name = "bus"
[[original.request_path]]
station = "bus"
phase = "command"
cost = "$command"
[[original.request_path]]
station = "bus"
phase = "data"
mb_s = "$rate"
"""
PARAMETERS = """
name = "known"
[parameter.command] # what an I/O costs
value = 500
unit = "us"
status = "fitted"
to = ["times"]
why = "to be found"
[parameter.rate]
value = 20
unit = "MB/s"
status = "fitted"
to = ["times"]
why = "to be found"
"""
QUANTITIES = """
[fit]
parameters = { command = [10, 1000], rate = [1, 100] }
to = ["times"]
leave_out = "row"
"""
COLUMNS = """
[[table]]
file = "times.csv"
key = { block = "block" }
[table.measure]
time = { kind = "stage", stage = "response", array = "one", workload = "{block} KiB" }
[table.column.ms]
value = "time"
unit = "ms"
"""
# 100 us of disk, 300 us a command, 50 MB/s.
TIMES = "block,ms\n4,0.48192\n64,1.71072\n"


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A study whose table was made with a command of 300 us and 50 MB/s."""
    for name, text in (
        ("study.toml", STUDY),
        ("known.parameters.toml", PARAMETERS),
        ("quantities.toml", QUANTITIES),
        ("columns.toml", COLUMNS),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "times.csv").write_text(TIMES, encoding="utf-8")
    return tmp_path / "study.toml"


def test_a_known_parameter_is_found_and_written(known: Path) -> None:
    loaded = load_study(str(known))
    mapping = load_mapping(known)
    found = fit_study(loaded, mapping, leave_one_out=True)
    assert found.values["command"] == pytest.approx(300, rel=0.01)
    assert found.values["rate"] == pytest.approx(50, rel=0.01)
    assert found.before == {"command": 500, "rate": 20}
    # Each of the two rows alone cannot tell the one parameter from the other.
    assert [one.group for one in found.left_out] == ["times:4", "times:64"]
    assert all(one.unidentified for one in found.left_out)
    # So neither is predicted: that it comes out as fitted is no news.
    assert all(one.largest is None and [row.value for row in one.rows] == [None] for one in found.left_out)
    [file] = write_values(loaded, "original", found.values)
    text = file.read_text(encoding="utf-8")
    assert "[parameter.command] # what an I/O costs" in text
    assert load_study(str(known)).hardware["original"].parameters["rate"].value == pytest.approx(50, rel=0.01)


def test_a_row_that_the_rest_determines_is_predicted_from_it(known: Path) -> None:
    more = '[[workload]]\nname = "16 KiB"\nread = 1.0\nsize = "16KiB"\n\n[load]'
    known.write_text(STUDY.replace("[load]", more), encoding="utf-8")
    # 16 KiB take 400 us and 16384 bytes at 50 MB/s; printed is a tenth more.
    (known.parent / "published" / "times.csv").write_text(TIMES + "16,0.7999\n", encoding="utf-8")
    mapping = load_mapping(known)
    found = fit_study(load_study(str(known)), mapping, leave_one_out=True)
    of_16 = next(one for one in found.left_out if one.group == "times:16")
    assert not of_16.unidentified and of_16.rows[0].value == pytest.approx(0.7277, rel=0.01)
    assert of_16.largest == pytest.approx(9, abs=1)
    # It is kept beside the study, and stands beside the fitted figures.
    write_left_out([row for one in found.left_out for row in one.rows], known.parent)
    run = run_study(known, on=["original"], out=known.parent / "runs")
    rows = {row.id: row for row in compare_run(Analysis(run), mapping).published}
    assert rows["times:16:ms"].left_out == pytest.approx(0.7277, rel=0.01)
    [errors] = errors_of(rows.values())
    assert errors.left_out is not None and errors.left_out[1] > 5
    (known.parent / "left-out.toml").write_text("times = [", encoding="utf-8")
    with pytest.raises(InputError, match=r"left-out\.toml"):
        compare_run(Analysis(run), mapping)


def test_what_is_held_out_moves_nothing_and_is_a_prediction(known: Path) -> None:
    more = '[[workload]]\nname = "16 KiB"\nread = 1.0\nsize = "16KiB"\n\n[load]'
    known.write_text(STUDY.replace("[load]", more), encoding="utf-8")
    (known.parent / "published" / "times.csv").write_text(TIMES + "16,99\n", encoding="utf-8")
    (known.parent / "quantities.toml").write_text(QUANTITIES + 'held_out = ["times:16:*"]\n', encoding="utf-8")
    mapping = load_mapping(known)
    found = fit_study(load_study(str(known)), mapping, leave_one_out=False)
    assert found.values["command"] == pytest.approx(300, rel=0.01)
    run = run_study(known, on=["original"], out=known.parent / "runs")
    kinds = {row.id: row.kind for row in compare_run(Analysis(run), mapping).published}
    assert kinds == {"times:4:ms": "fitted", "times:64:ms": "fitted", "times:16:ms": "predicted"}


def test_what_a_study_holds_out_is_there() -> None:
    mapping = load_mapping(find_study("hauser1996"))
    assert mapping.quantities.fit is not None
    held_out = mapping.quantities.fit.held_out
    rows = [
        f"{table.name}:{','.join(text for text in columns.keys_of(line).values() if text)}:{column}"
        for columns in mapping.columns.table
        for table in read_tables(mapping.published, columns.file)
        for line in table.rows
        for column in columns.column
    ]
    assert held_out and all(fnmatch.filter(rows, pattern) for pattern in held_out)


def test_a_parameter_that_is_none_is_named(known: Path) -> None:
    text = QUANTITIES.replace("rate = [1, 100]", "speed = [1, 100]")
    (known.parent / "quantities.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="'speed'"):
        fit_study(load_study(str(known)), load_mapping(known))


def test_a_name_without_a_parameter_is_a_mistake_of_the_study(known: Path) -> None:
    known.write_text(STUDY.replace("$command", "$comand"), encoding="utf-8")
    with pytest.raises(InputError, match=r"\$comand.*did you mean 'command'"):
        load_study(str(known))


def test_the_search_stays_within_bounds_and_does_not_mind_roughness() -> None:
    rng = np.random.default_rng(1)

    def rough(points: list[np.ndarray]) -> list[np.ndarray]:
        return [
            np.array([p[0] ** 2 - 4, p[1] * p[0] - 6, 0.1 * (p[2] + 9)]) + 1e-6 * rng.standard_normal(3) for p in points
        ]

    found = least_squares(rough, [1.0, 1.0, 1.0], [(0.1, 10), (0.1, 10), (-1, 10)])
    assert found.values == pytest.approx([2, 3, -1], abs=1e-2)
