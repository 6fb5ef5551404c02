"""``raidlab measure files`` and ``raidlab measure streams``: what they print, and what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from raidlab.cli.measure.result import half_width, intervals_sentence
from raidlab.cli.measure.streams import _table as streams_table
from raidlab.errors import CellFailedError, InputError
from raidlab.measure.streams import _against_itself, streams_of
from raidlab.measure.turns import Turns, in_turns
from raidlab.measure.words import parse_counts, parse_kind, validated
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Silent
from raidlab.run.streams import StreamResult
from raidlab.study.cell import MadeFiles
from verdicts import assert_ended

CLI = [sys.executable, "-c", "from raidlab.cli import main\nif __name__ == '__main__': main()"]


def run(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*CLI, *map(str, words)], capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"}
    )
    assert_ended(done.returncode, done.stdout, done.stderr, code)
    assert "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("error:")]) == (0 if code in (0, 3) else 1)
    assert done.stdout.startswith("{") or max(map(len, done.stdout.splitlines()), default=0) <= 80
    return done


def in_memory(folder: Path) -> bool:
    """Whether a folder lies in memory, where everything is in the page cache and nothing can be believed."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    points = {line.split()[4]: line.partition(" - ")[2].split()[0] for line in mounts}
    best = max((point for point in points if str(folder).startswith(point.rstrip("/") + "/")), key=len)
    return points[best] in ("tmpfs", "ramfs")


def test_a_half_width_is_that_of_the_longer_side() -> None:
    # Of percentiles an interval is seldom symmetric, and neither end may lie beyond what is said.
    row = {"iops": 100.0, "iops_low": 98.0, "iops_high": 130.0, "iops_no_interval": None, "repeats": 5}
    assert half_width(row, "iops") == "±30%"
    assert half_width({**row, "iops_low": 60.0}, "iops") == "±40%"


def test_files_are_made_read_by_every_number_of_readers_and_taken_away(tmp_path: Path) -> None:
    if in_memory(tmp_path):
        pytest.skip("files in memory are in the page cache, and the result is INVALID")
    words = [
        "measure",
        "files",
        tmp_path,
        "--count",
        "12",
        "--size",
        "table:20kB,60kB",
        "--readers",
        "2,1",
        "--repeats",
        "2",
    ]
    found: dict[str, Any] = json.loads(run(*words, "--json").stdout)
    assert [row["readers"] for row in found["results"]] == [1, 2]
    assert found["written"]["files"] == 12 and found["written"]["bytes"] == 6 * 20_000 + 6 * 60_000
    alone = found["results"][0]
    assert (alone["files"], alone["bytes"], alone["repeats"]) == (24, 2 * found["written"]["bytes"], 2)
    assert alone["open_time_ns_mean"] <= alone["first_byte_time_ns_mean"] <= alone["total_time_ns_mean"]
    assert found["checks"][0]["check"] == "page_cache"
    table = run(*words).stdout
    assert "12 files written at" in table and "readers" in table
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_there_are_only_read(tmp_path: Path) -> None:
    if in_memory(tmp_path):
        pytest.skip("files in memory are in the page cache, and the result is INVALID")
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_bytes(os.urandom(50_000))
    before = [file.read_bytes() for file in files]
    found = json.loads(run("measure", "files", *files, "--readers", "1", "--repeats", "1", "--json").stdout)
    assert found["written"] is None and found["results"][0]["bytes"] == 100_000
    assert [file.read_bytes() for file in files] == before
    assert sorted(tmp_path.iterdir()) == files


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no file system in memory here")
def test_a_verdict_on_files_comes_with_its_remedy() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        if not in_memory(Path(folder)):
            pytest.skip("/dev/shm does not lie in memory here")
        said = " ".join(
            run("measure", "files", folder, "--count", "4", "--readers", "1", "--repeats", "1", code=3).stdout.split()
        )
    assert "INVALID page_cache: " in said
    assert said.count("Name a directory on a disk: a file system in memory is its own page cache.") == 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"repeats": 1, "iops_low": None}], ""),
        ([{"repeats": 3, "iops_low": None}], ""),
        (
            [{"repeats": 3, "iops_low": 1.0, "mean_low": None}, {"repeats": 5, "iops_low": 0.0}],
            "Intervals (95 %) are over 3 to 5 repeats, taken to be independent and normal, "
            "which fewer than 30 cannot show.",
        ),
        ([{"repeats": 34, "low": 1.0}], "Intervals (95 %) are over 34 repeats."),
    ],
)
def test_what_intervals_take_for_granted_is_said_below_them(rows: list[dict[str, Any]], said: str) -> None:
    lines = intervals_sentence(rows)
    assert " ".join(lines) == said and max(map(len, lines), default=0) <= 80


def test_a_file_that_may_not_be_written_in_full_is_no_mistake_of_the_users(tmp_path: Path) -> None:
    words = [*CLI, "measure", "files", str(tmp_path), "--size", "16MiB", "--count", "2"]
    limited = ["sh", "-c", 'ulimit -f 4096; exec "$@"', "sh", *words]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("error: PATH: ")
    assert done.stderr.endswith("File too large\n") and list(tmp_path.iterdir()) == []


def test_a_verdict_on_streams_comes_with_its_remedy() -> None:
    table = streams_table([], [{"name": "page_cache", "verdict": "INVALID", "evidence": "So.", "mend": "Move more."}])
    assert table.splitlines()[-1] == "INVALID page_cache: So. Move more."


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["measure", "files", "/nowhere"], "PATH: '/nowhere': there is no such file or directory"),
        (["measure", "files", ".", "--readers", "0"], "--readers: '0'"),
        (["measure", "files", ".", "--order", "randm"], "did you mean 'random'"),
        (["measure", "files", ".", "--size", "8 apples"], "--size: '8 apples'"),
        (["measure", "streams", "memory"], "the last stream has no end"),
        (["measure", "streams", "memory", "."], "is a directory: name a file in it"),
        (["measure", "streams", "tape:fast", "null"], "tape:fast"),
        (["measure", "streams", "memory", "null", "--size", "0"], "--size: '0'"),
    ],
)
def test_bad_input_is_one_line(words: list[str], pattern: str) -> None:
    assert pattern in run(*words, code=2).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["measure", "files", "{here}", "--size", "1TiB", "--count", "1000"], "PATH: {here} has room for"),
        (["measure", "files", "{here}", "--block", "1000"], "--block: 1000 must be a multiple of 512"),
        (["measure", "streams", "memory", "{here}/new", "--size", "1000"], "--size: 1000 must be a multiple of"),
        (["measure", "streams", "memory", "{here}/new", "--block", "1000"], "--block: 1000 must be a multiple of"),
        (["measure", "streams", "memory", "null", "--buffers", "100000"], "--buffers: 100000 must be 1 to 1024"),
    ],
)
def test_what_only_the_engine_sees_is_said_of_the_flag(words: list[str], said: str, tmp_path: Path) -> None:
    done = run(*(word.format(here=tmp_path) for word in words), code=2)
    assert f"error: {said.format(here=tmp_path)}" in done.stderr
    assert not list(tmp_path.iterdir()), "nothing was written"


def test_streams_alone_and_together(tmp_path: Path) -> None:
    words = [
        "measure",
        "streams",
        "memory",
        tmp_path / "written",
        "memory",
        "tape:200MB",
        "--size",
        "4MiB",
        "--repeats",
        "2",
    ]
    found = json.loads(run(*words, "--json").stdout)
    first, tape, total = found["results"]
    assert (first["bytes"], first["repeats"]) == (2 * 4 * 2**20, 2)
    # The ratio is of the repeats' mean rates, which other work on the machine may set far apart; all bytes over all
    # time weighs the slower one more.
    least, most = (100 * first[key] / first["alone_mb_s"] for key in ("throughput_mb_s", "throughput_mb_s_high"))
    assert least * 0.999 <= first["together_percent"] <= most
    assert tape["throughput_mb_s"] < 200 * 1.05, "a tape is never faster than it is"
    assert total["stream"] == "all"
    assert "bound by" in run(*words).stdout
    assert list(tmp_path.iterdir()) == []


def test_a_stream_beside_others_is_held_against_itself_alone() -> None:
    together, alone = (
        [cast(StreamResult, SimpleNamespace(mb_s=rate)) for rate in rates] for rates in ((60, 40), (99, 101))
    )
    found = _against_itself(together, alone)
    assert (found["alone_mb_s"], found["together_percent"]) == (100, 50)
    assert found["together_percent_low"] < 50 < found["together_percent_high"]
    assert set(_against_itself(together, []).values()) == {None}


def test_a_paced_stream_keeps_its_pace() -> None:
    words = ["measure", "streams", "null", "null", "--size", "8MiB", "--rate", "50MB/s", "--repeats", "1"]
    (row,) = json.loads(run(*words, "--json").stdout)["results"]
    assert row["throughput_mb_s"] <= 50.5 and row["bound_by"] == "pace" and row["late_ns_p99"] is not None


def test_a_file_of_others_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "precious"
    file.write_bytes(b"data" * 4096)
    assert "was not made by raidlab" in run("measure", "streams", "memory", file, "--size", "8KiB", code=4).stderr
    assert file.read_bytes() == b"data" * 4096


def turns(run: Callable[[str, int], int], stop: StopFlag | None = None) -> Turns[str, int]:
    return in_turns(["a", "b", "c"], 4, run, seed=1, title="", progress=Silent(), stop=stop or StopFlag())


def test_things_are_measured_repeat_by_repeat_in_shuffled_order() -> None:
    order: list[tuple[str, int]] = []

    def note(key: str, repeat: int) -> int:
        order.append((key, repeat))
        return repeat

    assert turns(note).results == {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3], "c": [0, 1, 2, 3]}
    assert [repeat for _, repeat in order] == sorted(repeat for _, repeat in order)
    firsts = [order[3 * repeat][0] for repeat in range(4)]
    assert len(set(firsts)) > 1, "not always in the same order"
    assert turns(note) and order[:12] == order[12:], "the same seed, the same order"


def test_what_was_measured_is_kept_whatever_ends_it() -> None:
    stop = StopFlag()

    def stopping(key: str, repeat: int) -> int:
        if repeat == 1:
            stop.raise_flag()
        return repeat

    found = turns(stopping, stop)
    assert found.status == "interrupted" and sum(map(len, found.results.values())) == 4

    def failing(key: str, repeat: int) -> int:
        if repeat == 2:
            raise CellFailedError("the disk is gone")
        return repeat

    found = turns(failing)
    assert (found.status, found.failure) == ("failed", "the disk is gone")
    assert sum(map(len, found.results.values())) == 6


def test_before_the_first_there_is_nothing_to_keep() -> None:
    def refuse(kind: str) -> Callable[[str, int], int]:
        def run(key: str, repeat: int) -> int:
            raise CellFailedError("x", kind)

        return run

    with pytest.raises(InputError):
        turns(refuse("bad_input"))
    with pytest.raises(CellFailedError):
        turns(refuse("io"))


def test_twin_streams_have_names_of_their_own() -> None:
    streams = streams_of(["memory", "null", "memory", "null"], size_bytes=4096, block_bytes=4096)
    assert [stream.name for stream in streams] == ["memory to null", "memory to null #2"]


def test_words() -> None:
    assert parse_counts("--readers", "4,1,4") == (1, 4)
    made = validated(MadeFiles, {"directories": [], "sizes": parse_kind("exponential:8KiB")})
    assert made.sizes.model_dump() == {"kind": "exponential", "mean": 8192}


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=lambda value: str(int(value))
)
@pytest.mark.parametrize(
    "words",
    [
        # A day at this pace.
        ["measure", "streams", "memory", "null", "--rate", "1MB/s", "--size", "80GiB"],
        ["measure", "files", ".", "--count", "100", "--size", "1MiB", "--readers", "1", "--repeats", "100"],
    ],
    ids=lambda words: words[1],
)
@pytest.mark.slow
def test_each_signal_has_its_exit_code(words: list[str], number: int, code: int, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*CLI, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        # The first line is said when it has begun.
        begun = running.stderr.readline()
        running.send_signal(number)
        _, said = running.communicate(timeout=600)
    assert running.returncode == code, begun + said
    assert "interrupted" in said and "Traceback" not in said
    assert not list(tmp_path.iterdir())
