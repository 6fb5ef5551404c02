"""What a terminal shows of a run that compares nothing: its points, or of many of them a row an array."""

from __future__ import annotations

from pathlib import Path

import pytest

from raidlab.api import analyse, run_study
from raidlab.cli import output


def test_more_points_than_a_terminal_can_show_are_counted_array_by_array(
    small_study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_study.write_text(small_study.read_text().partition("[[compare]]")[0])
    analysis = analyse(run_study(small_study, out=small_study.parent / "runs", quick=True))
    points = [point for point in analysis.points if point.is_swept]
    output.print_run(analysis, [])
    whole = capsys.readouterr().out
    assert "p99" in whole and "in the report" not in whole
    monkeypatch.setattr(output, "_MOST_ROWS", len(points) - 1)
    output.print_run(analysis, [])
    short = capsys.readouterr().out
    assert f"{len(points)} points, all of them in the report" in " ".join(short.split()) and "p99" not in short
    for array in {point.array for point in points}:
        assert len([line for line in short.splitlines() if line.split(" ")[0] == array]) == 1
