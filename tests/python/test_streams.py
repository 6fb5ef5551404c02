"""Streams through Python: endpoints as one writes them, the answer's sums, the pace, what is refused, an early end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from raidlab._core import parse_tree
from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.run.streams import endpoint, measure_streams
from raidlab.study.cell import (
    BlockEnd,
    BufferEnd,
    FileEnd,
    LiveArray,
    LiveEnd,
    LiveStream,
    NullEnd,
    StreamsCell,
    TapeEnd,
    VolumeEnd,
)

MIB = 1024 * 1024
ONE_MIB = BufferEnd(size_bytes=MIB)


def copy_of(name: str, source: LiveEnd, sink: LiveEnd, **more: Any) -> LiveStream:
    return LiveStream(name=name, source=source, sink=sink, **more)


def test_endpoints_are_read_as_one_writes_them(tmp_path: Path) -> None:
    assert endpoint("null") == NullEnd()
    assert endpoint("tape:10MB/s,buffer=256KiB,stop=1500ms") == TapeEnd(mb_s=10, buffer="256KiB", start_stop="1500ms")
    assert endpoint(str(tmp_path / "new")) == FileEnd(path=tmp_path / "new")
    for text, sentence in [
        ("tape:fast", "tape:fast"),
        ("tape:10MB,speed=3", "neither 'stop' nor 'buffer'"),
        (str(tmp_path), "is a directory"),
    ]:
        with pytest.raises(InputError, match=sentence):
            endpoint(text)


def test_streams_at_once_agree_with_their_sums(tmp_path: Path) -> None:
    copy = copy_of("copy", FileEnd(path=tmp_path / "source"), FileEnd(path=tmp_path / "sink"), bytes=4 * MIB)
    idle = copy_of("null", NullEnd(), NullEnd(), bytes=64 * MIB, block_bytes=4096)
    result = measure_streams(StreamsCell(streams=[copy, idle], content="verify"))
    assert result.stopped_by is None and not result.interrupted
    assert [stream.bytes for stream in result.streams] == [4 * MIB, 64 * MIB]
    assert result.bytes == 68 * MIB
    assert result.elapsed_ns == max(stream.start_ns + stream.elapsed_ns for stream in result.streams)
    for stream in result.streams:
        assert int(stream.series["bytes"].sum()) == stream.bytes
        assert stream.source.time.total == stream.sink.time.total == stream.blocks
        assert stream.mb_s == pytest.approx(stream.bytes / 1e6 / (stream.elapsed_ns / 1e9))
        assert stream.late is None
    copied, null = result.streams
    assert copied.overlapped and not null.overlapped
    assert (copied.blocks_checked, copied.mismatch_count, null.blocks_checked) == (16, 0, 0)
    kinds = [end["kind"] for end in result.facts["endpoints"]]
    assert kinds == ["file", "file", "null", "null"]
    source = result.facts["endpoints"][0]["target"]
    assert result.page_cache is not None
    assert (result.page_cache["verdict"] == "INVALID") == (source["filesystem"]["kind"] in ("tmpfs", "ramfs"))
    assert list(tmp_path.iterdir()) == [], "what was made is gone"


def test_a_pace_and_a_tape_are_never_beaten() -> None:
    paced = copy_of("paced", ONE_MIB, NullEnd(), bytes=2 * MIB, rate_mb_s=20)
    taped = copy_of("taped", ONE_MIB, TapeEnd(mb_s=20), bytes=2 * MIB)
    result = measure_streams(StreamsCell(streams=[paced, taped]))
    for stream in result.streams:
        assert stream.mb_s is not None and stream.mb_s <= 20
    assert result.streams[0].late is not None and result.streams[0].late.total == result.streams[0].blocks
    assert result.streams[1].sync_ns > 0
    assert result.page_cache is None


def test_one_array_is_written_and_read_at_the_same_time() -> None:
    tree = json.loads(parse_tree("raid5(5, chunk=64KiB)"))
    array = LiveArray(tree=tree, members=[{"kind": "memory", "size_bytes": 4 * MIB}], missing=[3])
    write = copy_of("write", ONE_MIB, VolumeEnd(), bytes=4 * MIB)
    read = copy_of("read", VolumeEnd(offset_bytes=8 * MIB), TapeEnd(mb_s=1e5), bytes=4 * MIB)
    result = measure_streams(StreamsCell(streams=[write, read], arrays=[array], content="verify"))
    assert result.stopped_by is None
    assert [stream.bytes for stream in result.streams] == [4 * MIB, 4 * MIB]
    assert (result.streams[0].blocks_checked, result.streams[0].mismatch_count) == (16, 0)
    (facts,) = result.facts["arrays"]
    assert facts["targets"][3] is None and facts["members"][3]["writes"] == 0
    assert sum(member["write_bytes"] for member in facts["members"]) >= 4 * MIB
    with pytest.raises(CellFailedError, match=r"streams\[0\].source.array"):
        measure_streams(StreamsCell(streams=[read]))


def test_what_is_not_raidlabs_is_not_written(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"precious" * MIB)
    with pytest.raises(RefusedError, match="was not made by raidlab"):
        measure_streams(StreamsCell(streams=[copy_of("over", BufferEnd(), FileEnd(path=theirs), bytes=MIB)]))
    assert theirs.read_bytes() == b"precious" * MIB
    read = measure_streams(StreamsCell(streams=[copy_of("read", FileEnd(path=theirs), NullEnd(), bytes=8 * MIB)]))
    assert read.bytes == 8 * MIB and theirs.exists(), "somebody else's file stays"
    with pytest.raises(CellFailedError, match=r"streams\[0\].sink.path"):
        measure_streams(StreamsCell(streams=[copy_of("no device", BufferEnd(), BlockEnd(path=theirs), bytes=MIB)]))
    with pytest.raises(CellFailedError, match=r"streams\[0\]\.block_bytes"):
        measure_streams(StreamsCell(streams=[copy_of("small", BufferEnd(), NullEnd(), bytes=MIB, block_bytes=7)]))


def test_the_page_about_files_and_streams_runs(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "measure-files-and-streams.md"
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "1 readers", "2 readers", "4 readers", "write", "to tape", "write", "to tape",
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == [], "nothing is left"


def test_an_early_end_keeps_what_was_measured() -> None:
    endless = copy_of("endless", TapeEnd(mb_s=50), NullEnd(), bytes=1 << 50)
    # Ended once something has arrived.
    result = measure_streams(StreamsCell(streams=[endless]), lambda share: share == 0)
    assert result.interrupted and 0 < result.bytes < 1 << 50
    # Long enough for a machine that is busy with other things to move something.
    timed = measure_streams(StreamsCell(streams=[endless], duration=900_000_000))
    assert not timed.interrupted and timed.stopped_by is None
    assert timed.mb_s is not None and 0 < timed.mb_s <= 50
    assert float(timed.streams[0].series_mb_s.max()) < 60
