"""The cache of simulated cells: the same bytes as simulating, a change found, bounded, of modelled cells only."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Hashable
from pathlib import Path

import pytest

from conftest import SMALL_STUDY
from raidlab.api import run_study
from raidlab.results import Run, RunWriter, load_run, new_folder
from raidlab.results.folder import what_decides
from raidlab.results.tables import TABLES
from raidlab.run.cached import CachedRunner, KeptCells, default_folder
from raidlab.run.progress import PlainLines, Progress
from raidlab.run.runner import KeyedAnswer, run_request
from raidlab.study import load_study
from raidlab.written import WrittenAnswer

ROOT = Path(__file__).resolve().parents[2]
TREE = {"kind": "stripe", "chunk_bytes": 65536, "children": [{"kind": "member"}] * 2}
REQUEST = json.dumps(
    {
        "engine": "sim",
        "seed": 7,
        "sector_bytes": 512,
        "tree": TREE,
        "members": [{"kind": "fixed", "name": "fixed", "capacity_bytes": 1 << 30, "sector_bytes": 512, "read_ms": 1.0}],
        "load": {"kind": "closed", "depth": 4},
        "measure": {"requests": 20},
    }
)


class _Counted:
    """A runner that simulates nothing, and counts what it is asked for."""

    def __init__(self, answer: object) -> None:
        self.asked: list[Hashable] = []
        self._queue: list[Hashable] = []
        self._answer = answer

    def submit(self, key: Hashable, request: str) -> None:
        del request
        self.asked.append(key)
        self._queue.append(key)

    def next_done(self) -> KeyedAnswer | None:
        return (self._queue.pop(), self._answer) if self._queue else None  # type: ignore[return-value]

    def close(self) -> list[KeyedAnswer]:
        return []


class _Notes(Progress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def kept(tmp_path: Path) -> KeptCells:
    return KeptCells(tmp_path / "cells")


def _asked(cache: KeptCells, answer: object, request: str = REQUEST) -> tuple[_Counted, list[KeyedAnswer], list[str]]:
    behind, notes = _Counted(answer), _Notes()
    runner = CachedRunner(behind, cache, notes)
    runner.submit("cell", request)
    done = []
    while (one := runner.next_done()) is not None:
        done.append(one)
    runner.close()
    return behind, done, notes.said


def _digests(run: Run) -> object:
    return run.facts["tables"]


def _run(tmp_path: Path, *, text: str = SMALL_STUDY, **more: object) -> tuple[Run, list[str]]:
    (tmp_path / "small.toml").write_text(text, encoding="utf-8")
    notes = _Notes()
    run = run_study(tmp_path / "small.toml", out=tmp_path / "runs", progress=notes, **more)  # type: ignore[arg-type]
    return run, notes.said


def _kept_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: object) -> list[Path]:
    """What is kept of cells, without what is kept of runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(KeptCells, "put_tables", lambda *_: None)
    _run(tmp_path, cache=True, **more)
    return sorted(default_folder().glob("??/*"))


def _flip(victim: Path) -> None:
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)


def test_a_second_run_gives_the_same_bytes_and_says_where_they_are_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, _ = _run(tmp_path)
    cells = _kept_files(tmp_path, monkeypatch)
    second, said = _run(tmp_path, cache=True)
    assert len(cells) == second.cells.height > 1
    assert _digests(plain) == _digests(second)
    assert [one for one in said if f"{second.cells.height} cells were simulated before (--no-cache" in one]


def test_the_same_run_again_asks_for_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many cells it has: no request is written and no answer read, the tables are there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first, said = _run(tmp_path, cache=True)
    assert not [one for one in said if "simulated before" in one]
    with monkeypatch.context() as patched:
        patched.setattr(KeptCells, "place", lambda *_: pytest.fail("a cell was asked for"))
        patched.setattr("raidlab.run.execute.cell_request", lambda *_args, **_more: pytest.fail("was written"))
        second, said = _run(tmp_path, cache=True)
    assert _digests(first) == _digests(second) and second.facts["status"] == "complete"
    assert second.cells.equals(first.cells) and second.cells.height > 1
    assert not (second.folder / "parts.jsonl").exists() and second.folder != first.folder
    assert [one for one in said if f"its {second.cells.height} cells were simulated before (--no-cache" in one]


@pytest.mark.parametrize(
    "more",
    [
        {"seed": 5},
        {"quick": True},
        {"text": SMALL_STUDY.replace("requests = 1500", "requests = 1600")},
        {"records": True},
        {"cache": False},
    ],
    ids=["seed", "budget", "text", "records", "no cache"],
)
def test_a_run_that_is_not_the_same_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, object]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _run(tmp_path, cache=True)
    _, said = _run(tmp_path, **{"cache": True, **more})
    assert not [one for one in said if "its" in one and "simulated before" in one]


def test_another_code_or_device_makes_its_own_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    device = (ROOT / "devices" / "hdd-7200-bare.toml").read_text(encoding="utf-8")
    (tmp_path / "own.toml").write_text(device, encoding="utf-8")
    text = re.sub(r'device = "[^"]*"', 'device = "own.toml"', SMALL_STUDY)
    first, _ = _run(tmp_path, cache=True, text=text)
    changed = device.replace("rpm = 7200.0", "rpm = 5400.0")
    assert changed != device
    (tmp_path / "own.toml").write_text(changed, encoding="utf-8")
    second, said = _run(tmp_path, cache=True, text=text)
    assert _digests(first) != _digests(second) and not [one for one in said if "simulated before" in one]
    monkeypatch.setattr("raidlab.run.cached.code_digest", lambda: "another")
    _, said = _run(tmp_path, cache=True, text=text)
    assert [one for one in said if one.startswith(f"{second.cells.height} cells were simulated before")]


def test_a_byte_that_flips_in_any_kept_table_or_their_list_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        cells = set(_kept_files(tmp_path, patched, quick=True))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first, _ = _run(tmp_path, cache=True, quick=True)
    victims = sorted(set(default_folder().glob("??/*")) - cells)
    # The list of them, and a file each: those without rows differ in their columns.
    assert len(victims) == len(TABLES) + 1
    for victim in victims[::5]:
        _flip(victim)
        second, said = _run(tmp_path, cache=True, quick=True)
        assert _digests(first) == _digests(second) and second.cells.equals(first.cells)
        assert [one for one in said if str(victim) in one and "changed" in one], said
        assert victim.exists(), "and kept again"
    for victim in victims:
        content = victim.read_bytes()
        _flip(victim)
        with pytest.raises(ValueError, match="was changed"):
            _taken(tmp_path, first)
        victim.write_bytes(content)
        assert _taken(tmp_path, first) == first.facts["tables"]


def _taken(tmp_path: Path, run: Run) -> object:
    """What the tables kept of a run are once they are taken."""
    loaded, cache = load_study(tmp_path / "small.toml"), KeptCells()
    tables = cache.tables_of(what_decides(loaded, seed=run.facts["seed"], targets=["sim"], quick=True))
    assert tables is not None
    writer = RunWriter(new_folder(tmp_path, "taken"), loaded, seed=1, targets=["sim"], quick=True, argv=[])
    writer.finish_with(tables)
    return load_run(writer.folder).facts["tables"]


def test_one_byte_that_flips_is_found_and_the_cell_simulated_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = _run(tmp_path)
    victim = _kept_files(tmp_path, monkeypatch)[0]
    _flip(victim)
    second, said = _run(tmp_path, cache=True)
    assert _digests(first) == _digests(second)
    assert [one for one in said if str(victim) in one and "changed after it was written" in one]
    assert victim.exists(), "and kept again"


@pytest.mark.parametrize("place", [0, 31, 32, 40, 60, -1])
def test_wherever_it_flips(kept: KeptCells, place: int) -> None:
    answer = {"engine": "sim", "numbers": [1, 2, 3], "word": "x" * 100}
    _asked(kept, answer)
    (file,) = kept.folder.glob("??/*")
    content = bytearray(file.read_bytes())
    content[place] ^= 0x10
    file.write_bytes(content)
    behind, done, said = _asked(kept, answer)
    assert behind.asked == ["cell"] and done == [("cell", answer)] and len(said) == 1


def test_another_request_engine_or_trace_finds_nothing(
    kept: KeptCells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kept.place(REQUEST)
    assert kept.place(REQUEST.replace('"seed": 7', '"seed": 8')) != first == kept.place(REQUEST)
    trace = tmp_path / "trace"
    trace.write_text("one", encoding="utf-8")
    request = json.dumps({"engine": "sim", "trace": {"file": str(trace)}})
    of_one = KeptCells(tmp_path).place(request)
    trace.write_text("two", encoding="utf-8")
    assert KeptCells(tmp_path).place(request) != of_one
    trace.unlink()
    assert KeptCells(tmp_path).place(request) is None
    monkeypatch.setattr("raidlab.run.cached.engine_digest", lambda: "another")
    assert kept.place(REQUEST) != first


def test_only_what_is_modelled_and_ran_to_its_end_is_kept(kept: KeptCells) -> None:
    _asked(kept, {"engine": "sim", "interrupted": True})
    _asked(kept, {"engine": "live"}, json.dumps({"engine": "live"}))
    _asked(kept, {"engine": "direct"}, json.dumps({"engine": "direct"}))
    assert not list(kept.folder.glob("??/*"))


def test_it_is_bounded_and_what_was_used_last_stays(tmp_path: Path) -> None:
    cache = KeptCells(tmp_path, most_bytes=30_000)
    requests = [json.dumps({"engine": "sim", "seed": seed}) for seed in range(20)]
    answer = {"engine": "sim", "word": "x" * 2000}
    for age, request in enumerate(requests[:10]):
        _asked(cache, answer, request)
        place = cache.place(request)
        assert place is not None
        os.utime(place, (1000 + age, 1000 + age))
    # Used again, so that it is the oldest no more.
    assert _asked(cache, answer, requests[0])[0].asked == []
    for request in requests[10:]:
        _asked(cache, answer, request)
    kept = [seed for seed, request in enumerate(requests) if cache.place(request).exists()]  # type: ignore[union-attr]
    assert sum(file.stat().st_size for file in tmp_path.glob("??/*")) <= 30_000
    assert 0 in kept and 1 not in kept and kept[-10:] == list(range(10, 20))


def test_a_folder_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    answer = {"engine": "sim"}
    for _ in range(2):
        behind, done, said = _asked(KeptCells(tmp_path / "file"), answer)
        assert (behind.asked, done) == (["cell"], [("cell", answer)])
        (line,) = said
        assert line.startswith(f"nothing more is kept of what is simulated: {tmp_path / 'file'} cannot be written (")


def test_that_nothing_is_kept_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raidlab").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run, said = _run(tmp_path, cache=True)
    assert run.cells.height > 1 and len([one for one in said if "cannot be written (Not a directory)" in one]) == 1


def test_how_many_cells_were_damaged_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = _run(tmp_path)
    victims = _kept_files(tmp_path, monkeypatch)[:3]
    for victim in victims:
        victim.write_bytes(b"nothing of what was there")
    second, said = _run(tmp_path, cache=True)
    assert _digests(first) == _digests(second)
    (line,) = [one for one in said if "changed after it was written" in one]
    assert line.endswith(f"and 2 more in {default_folder()}")


def test_what_was_there_says_nothing_of_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    lines = PlainLines(sys.stdout)
    lines.begin("simulating", 10)
    for _ in range(5):
        lines.known()
        lines.advance()
    assert lines._where(lines._began_s + 2) == "5 of about 10 cells, 5 of them known before"
    lines.advance()
    lines._known_s = 1.0
    assert lines._where(lines._began_s + 3) == "6 of about 10 cells, 5 of them known before, 8 s left"
    lines.end()
    assert "6 cells in" in capsys.readouterr().out


def test_runs_that_keep_every_request_take_nothing_from_it(tmp_path: Path) -> None:
    _run(tmp_path, cache=True)
    run, said = _run(tmp_path, cache=True, records=True)
    assert not [one for one in said if "simulated before" in one]
    assert run.requests(cells=[0]).height


def test_what_is_kept_is_had_at_least_fifty_times_as_fast(kept: KeptCells, small_study: Path) -> None:
    """A cell of a study's own budget, whose simulation takes tens of milliseconds or more."""
    from raidlab.run.request import cell_request
    from raidlab.study import expand, load_study

    loaded = load_study(small_study)
    cell = expand(loaded.study, "sim", seed=1, quick=False).cells[-1]
    model = loaded.geometry.device("sim", cell.array.name)
    request = cell_request(
        loaded, cell, members=[model.parameters], sector_bytes=model.sector_bytes, quick=False
    ).replace('"requests": 1500', '"requests": 60000')
    began = time.perf_counter()
    answer = run_request(request)
    simulated = time.perf_counter() - began
    _asked(kept, answer, request)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        _, ((_, again),), _ = _asked(kept, None, request)
        times.append(time.perf_counter() - began)
    assert isinstance(again, WrittenAnswer) and again == WrittenAnswer.of(answer)  # type: ignore[arg-type]
    assert simulated >= 50 * min(times), (simulated, times)


def test_how_many_cells_are_put_into_tables_at_once_changes_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, _ = _run(tmp_path)
    monkeypatch.setattr("raidlab.results.tables._CELLS_AT_ONCE", 4)
    again, _ = _run(tmp_path)
    assert plain.cells.height > 8 and _digests(plain) == _digests(again)
