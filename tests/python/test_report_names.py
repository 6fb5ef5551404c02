"""Names of groups and arrays that differ only by what a file name cannot have, or that mean something elsewhere."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from conftest import NAMED_ALIKE_STUDY
from raidlab.api import analyse, run_study, write_report
from raidlab.report.figures import make_figures
from raidlab.report.figures.style import INK, PAPER_INK
from raidlab.report.sections import targets_of
from raidlab.results import Run
from raidlab.study.words import without_control

TABLES = (("ink", "currentColor"), ("b0", "#1f2328"), ("c0", "c1"), ("d0", "d1"), ("e0", "e1"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    file = tmp_path_factory.mktemp("names") / "study.toml"
    file.write_text(NAMED_ALIKE_STUDY, encoding="utf-8")
    run = run_study(file, out=file.parent / "runs")
    write_report(run.folder)
    return run


def test_each_table_has_a_section_and_figures_of_its_own(run: Run) -> None:
    analysis = analyse(run)
    figures = make_figures(analysis)
    (target,) = targets_of(analysis, figures, None, [])
    keys = [section.key for section in target.sections]
    assert keys == ["own-sim", "a-b-sim", "a-b-2-sim", "sim", "2-sim", "own-2-sim"]
    for section, arrays in zip(target.sections[1:], TABLES, strict=True):
        assert {row.array for one in section.comparisons for row in one.rows} == set(arrays), section.title
        assert {figure.title for figure in section.figures} >= {f"Throughput per disk relative to {arrays[0]}"}
        drawn = "".join(svg for figure in section.figures for svg in figure.svgs)
        labels = {*re.findall(r">([b-e][01]|ink|currentColor|#1f2328)<", drawn)}
        assert labels == set(arrays), section.title


def test_no_two_figures_share_a_file_and_no_two_parts_of_the_page_an_id(run: Run) -> None:
    figures = make_figures(analyse(run))
    files = {path.name for path in (run.folder / "figures").iterdir()}
    assert files == {f"{figure.key}.{form}" for figure in figures for form in ("svg", "png")}
    assert len(files) == 2 * len(figures)
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    ids = Counter(re.findall(r'<\w+ id="([^"]*)"', page))
    assert max(ids.values()) == 1, ids.most_common(3)
    assert {*re.findall(r'href="#([^"]+)"', page)} <= set(ids)


def test_an_ordinary_name_keeps_its_file(run: Run) -> None:
    names = {path.name for path in (run.folder / "figures").glob("*.svg")}
    assert {"relative-throughput-a-b-sim.svg", "own-figure-1-a-sim.svg", "own-figure-1-a-2-sim.svg"} <= names


def test_a_name_that_is_called_like_an_ink_stays_as_it_is(run: Run) -> None:
    """Ink is what charts called theirs once, and the others are what it is on a page and on paper."""
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    for name in ("ink", "currentColor", "#1f2328"):
        assert f">{name}</text>" in page, name
    sheets = [path.read_text(encoding="utf-8") for path in sorted((run.folder / "figures").glob("*.svg"))]
    for name in ("ink", "currentColor", "#1f2328"):
        assert any(f">{name}</text>" in sheet for sheet in sheets), name
    assert 'fill="currentColor"' in page and not re.search(r'(fill|stroke)="(currentColor|\W*ink)"', "".join(sheets))
    assert INK not in page and not any(INK in sheet for sheet in sheets)
    assert PAPER_INK in sheets[0]


def test_no_name_of_a_study_has_the_ink_of_charts() -> None:
    with pytest.raises(ValueError, match="control character"):
        without_control(INK)
