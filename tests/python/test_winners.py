"""The map of which level gives most: who wins, by how much, and what is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raidlab.analysis.metrics import Analysis
from raidlab.api import analyse, run_study
from raidlab.errors import InputError
from raidlab.report.cards import cards_of
from raidlab.report.figures import winners
from raidlab.report.figures.figure import Panel
from raidlab.report.figures.style import COLOURS
from raidlab.stats import NOTHING_SHOWN_PERCENT
from raidlab.study import load_study

STUDY = """
name = "map"
title = "Two levels"
on = ["sim"]
seed = 1
array = [
  { name = "striped, small", tree = "raid0(4, chunk=4KiB)" },
  { name = "striped, large", tree = "raid0(4, chunk=1MiB)" },
  { name = "mirror", tree = "raid1(4)" },
]
workload = [
  { name = "reads", read = 1, size = "64KiB", address = "uniform" },
  { name = "writes", read = 0, size = "64KiB", address = "uniform" },
  { name = "small writes", read = 0, size = "4KiB", address = "uniform" },
]
[load]
depths = [1, 16]
[sim]
device = { kind = "fixed", capacity_bytes = 1073741824, read_us = 1000.0, write_us = 1000.0 }
measure = { requests = 200 }
[[figure]]
number = "Map"
title = "stripes or mirrors"
draw = "winners"
metrics = ["iops"]
arrays = ["striped, small", "striped, large", "mirror"]
workloads = ["reads", "writes", "small writes"]
"""


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    place = tmp_path_factory.mktemp("map")
    (place / "map.toml").write_text(STUDY, encoding="utf-8")
    return analyse(run_study(place / "map.toml", out=place / "runs"))


@pytest.fixture(scope="module")
def panels(analysis: Analysis) -> tuple[Panel, ...]:
    (figure,) = winners.figures(analysis)
    return figure.panels


def test_a_field_has_the_level_that_gives_most(panels: tuple[Panel, ...]) -> None:
    assert [panel.title for panel in panels] == ["queue depth 1", "queue depth 16"]
    rows = next(iter(panels[1].chart.to_dict()["datasets"].values()))
    fields = {(row["part"], row["value"]): row for row in rows}
    assert list(fields) == [("4 KiB", 0.0), ("64 KiB", 0.0), ("64 KiB", 100.0)]
    # A write takes every mirror for a while, and of the stripes with large chunks one disk of four.
    written = fields["64 KiB", 0.0]
    assert written["line"] == "raid0" and written["level"] > 100 and "striped, large" in written["tip"]
    assert "% more than mirror" in written["tip"] and written["label"] == f"+{written['level']:.0f} %"
    assert "Of 3 fields raid0 in" in panels[1].alt


def test_a_tie_is_nobodys_win(panels: tuple[Panel, ...]) -> None:
    # One request at a time reads one disk, of stripes and of mirrors alike.
    drawn = panels[0].chart.to_dict()
    rows = next(iter(drawn["datasets"].values()))
    (read,) = (row for row in rows if row["value"] == 100.0)
    assert read["line"] == read["label"] == "tie" and read["level"] < NOTHING_SHOWN_PERCENT
    assert read["tip"].endswith(": a tie") and "tie in" in panels[0].alt and read["tip"] not in panels[0].alt
    colours = drawn["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(colours["domain"], colours["range"], strict=True))["tie"] not in COLOURS


def test_the_maps_are_the_answer(analysis: Analysis) -> None:
    (card,) = cards_of(analysis, [], has_published=False)
    assert card.headline.startswith("Of 6 fields") and "raid0 in 2, raid1 in 1, tie in 3." in card.headline
    assert [(clause.workload, clause.said) for clause in card.clauses] == [
        ("Map, queue depth 1", "tie in 3 of 3"),
        ("Map, queue depth 16", "raid0 in 2, raid1 in 1 of 3"),
    ]


def test_a_lead_that_repeats_do_not_bear_out_is_a_tie(tmp_path: Path) -> None:
    # A disk at random and few requests: a read of one disk takes as long on stripes as on mirrors, and runs differ.
    service = '{ kind = "exponential", mean_us = 1000.0 }'
    device = f'kind = "random", capacity_bytes = 1073741824, read = {service}, write = {service}'
    text = re.sub(r'kind = "fixed".* = 1000.0', device, STUDY)
    text = text.replace("measure = { requests = 200 }", "measure = { requests = 30 }\nrepeats = 3")
    (tmp_path / "map.toml").write_text(text, encoding="utf-8")
    (figure,) = winners.figures(analyse(run_study(tmp_path / "map.toml", out=tmp_path / "runs")))
    rows = next(iter(figure.panels[0].chart.to_dict()["datasets"].values()))
    assert all(row["level"] > NOTHING_SHOWN_PERCENT for row in rows)
    # A write is over when the slowest of the mirrors is.
    assert [row["label"] == "tie" for row in rows] == [False, False, True]


def test_what_is_no_map_is_refused(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(STUDY.replace("[[figure]]", '[[figure]]\npanels = ["a", "b", "c"]'), "utf-8")
    with pytest.raises(InputError, match="panels"):
        load_study(tmp_path / "map.toml")
