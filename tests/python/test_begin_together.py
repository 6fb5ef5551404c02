"""Whole files and streams begin at a moment that they are told, all ready, as plain targets do (`test_hosts`)."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from raidlab.errors import CellFailedError
from raidlab.run.runner import Answer, run_request
from raidlab.study.cell import (
    BufferEnd,
    FilesCell,
    FilesMeasure,
    LiveStream,
    MadeFiles,
    NullEnd,
    StreamsCell,
    text_of,
)
from raidlab.study.workload import FixedSize

Cell = FilesCell | StreamsCell
# So long that a machine that stalls for half a second is still in time.
AHEAD_NS = 2_000_000_000


@pytest.fixture(params=["files", "streams"])
def cell(request: pytest.FixtureRequest, tmp_path: Path) -> Cell:
    if request.param == "streams":
        stream = LiveStream(name="one", source=BufferEnd(), sink=NullEnd(), bytes=1 << 20, block_bytes=1 << 16)
        return StreamsCell(streams=[stream])
    made = MadeFiles(directories=[tmp_path], sizes=FixedSize(bytes=8192), count=4)
    return FilesCell(files=made, measure=FilesMeasure(files=4))


def _at(cell: Cell, begin_at_unix_ns: int) -> str:
    return text_of(cell.model_copy(update={"begin_at_unix_ns": begin_at_unix_ns}))


def _began_ns(answer: Answer) -> int:
    return int(answer["facts"]["began_unix_ns"])


def test_nothing_begins_before_its_moment_and_all_that_wait_for_it_begin_then(cell: Cell, tmp_path: Path) -> None:
    cells = [cell]
    if isinstance(cell, FilesCell):
        other = tmp_path / "other"
        other.mkdir()
        cells.append(cell.model_copy(update={"files": cell.files.model_copy(update={"directories": [other]})}))
    else:
        cells.append(cell)
    begin_at, answers = time.time_ns() + AHEAD_NS, list[Answer]()
    threads = [
        threading.Thread(target=lambda one=one: answers.append(run_request(_at(one, begin_at)))) for one in cells
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 2
    for answer in answers:
        assert answer["stopped_by"] is None and not answer["interrupted"]
        # Late by what a busy machine may stall, and by no setting up, which was over before.
        assert 0 <= _began_ns(answer) - begin_at < AHEAD_NS / 2


def test_without_one_it_says_when_it_began(cell: Cell) -> None:
    before = time.time_ns()
    assert before <= _began_ns(run_request(text_of(cell))) <= time.time_ns()


def test_who_waits_can_be_called_off(cell: Cell) -> None:
    asked_s = time.monotonic()
    answer = run_request(_at(cell, time.time_ns() + 60_000_000_000), lambda _share: False)
    assert answer["interrupted"] and _began_ns(answer) == 0 and time.monotonic() - asked_s < 30


def test_a_moment_that_nobody_waits_for_is_refused(cell: Cell) -> None:
    with pytest.raises(CellFailedError, match=r"begin_at_unix_ns.*more than five minutes away"):
        run_request(_at(cell, time.time_ns() + 400_000_000_000))
