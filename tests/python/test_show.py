"""`raidlab results show`: a report for a terminal, of 80 columns, with and without colours and blocks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from raidlab.cli.output import print_study
from raidlab.results import Run
from raidlab.study import load_study


def _shown(run: Run, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "raidlab", "results", "show", str(run.folder)],
        capture_output=True,
        check=False,
        timeout=600,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(environment.get("PYTHONIOENCODING", "utf-8"))


def test_the_answer_comes_first_and_every_line_fits(small_run: Run) -> None:
    text = _shown(small_run, PYTHONIOENCODING="utf-8")
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert lines[0] == "A small study"
    order = ["Beside raid0, ", "Bars: % of raid0", "Equal user capacity", "Checks: "]
    places = [next(index for index, line in enumerate(lines) if words in line) for words in order]
    assert places == sorted(places)


def test_bars_are_as_long_as_shares(small_run: Run) -> None:
    text = _shown(small_run, PYTHONIOENCODING="utf-8")
    shares = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition(" ")
        if name in ("raid0", "raid5", "raid10") and "\u2588" in rest:
            shares.setdefault(rest[: rest.index("%")].split()[-1], rest.split()[0].count("\u2588"))
    by_share = sorted(shares, key=float)
    assert len(by_share) > 2
    assert [shares[share] for share in by_share] == sorted(shares.values())


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_blocks_gets_plain_characters(small_run: Run, encoding: str) -> None:
    text = _shown(small_run, PYTHONIOENCODING=encoding)
    assert "  raid0" in text and "####" in text and "\u2588" not in text


def test_a_name_that_the_terminal_has_no_letters_for_is_no_failure(small_study: Path) -> None:
    text = small_study.read_text(encoding="utf-8")
    small_study.write_text(text.replace('title = "A small study"', 'title = "Zufällig 日"'), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "raidlab", "study", "show", str(small_study)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, b"Zuf?llig ?" in done.stdout) == (0, True), done.stderr


def test_colours_say_nothing_of_their_own(small_run: Run) -> None:
    plain = _shown(small_run, PYTHONIOENCODING="utf-8", NO_COLOR="1", COLUMNS="80")
    assert "\x1b[" not in plain
    assert plain == _shown(small_run, PYTHONIOENCODING="utf-8")


def test_a_long_list_is_told_by_its_least_and_largest(capsys: pytest.CaptureFixture[str]) -> None:
    print_study(load_study("ou2007"), all_rows=False)
    words = " ".join(capsys.readouterr().out.split())
    assert "8 from 512 to" in words and "8 from 2.0 to" in words
