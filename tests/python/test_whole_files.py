"""Whole files through Python: the request, the answer's names and sums, what is refused, an early end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from raidlab.errors import CellFailedError, RefusedError
from raidlab.run.files import measure_files
from raidlab.study.cell import FilesCell, FilesMeasure, FilesWarmup, GivenFiles, MadeFiles, text_of
from raidlab.study.workload import WholeFiles

TEN_SIZES = {"kind": "table", "bytes": [size * 25_000 for size in range(2, 12)], "weights": [1] * 10}


def made(*directories: Path, count: int = 40, keep: bool = False) -> MadeFiles:
    return MadeFiles(directories=list(directories), sizes=TEN_SIZES, numbers="even", count=count, keep=keep)


def test_a_request_says_all_that_the_contract_has() -> None:
    cell = json.loads(text_of(FilesCell(files=made(Path("/a")), readers=3, lists=12, measure=FilesMeasure(files=5))))
    assert cell["files"]["directories"] == ["/a"] and cell["files"]["count"] == 40
    assert "total_bytes" not in cell["files"], "only one of the two may stand there"
    assert cell["measure"] == {"files": 5}
    assert set(cell) == {
        "engine", "seed", "files", "readers", "lists", "order", "block_bytes", "io", "drop_caches", "warmup", "measure",
        "verify",
    }  # fmt: skip


def test_every_figure_agrees_with_the_records(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    files = made(tmp_path / "a", tmp_path / "b")
    result = measure_files(FilesCell(files=files, readers=2, lists=4, io="buffered"))
    assert result.stopped_by is None and not result.interrupted
    assert result.fill is not None and result.fill.files == 40
    assert result.fill.bytes == result.size_bytes.sum() == 40 * 162_500
    assert np.bincount(result.directory).tolist() == [20, 20]
    read = result.read
    assert read.files == read.total.total == 20, "two lists of four"
    assert read.bytes == read.records["size_bytes"].sum() == 20 * 162_500
    assert (read.records["size_bytes"] == result.size_bytes[read.records["file"]]).all()
    assert read.total_mean_ns == pytest.approx(float(read.records["total_ns"].mean()))
    assert (read.records["open_ns"] <= read.records["first_byte_ns"]).all()
    assert (read.records["first_byte_ns"] <= read.records["total_ns"]).all()
    ends = read.records["start_ns"] + read.records["total_ns"]
    assert read.elapsed_ns == ends.max() - read.records["start_ns"].min()
    assert read.mb_s == pytest.approx(read.bytes / 1e6 / (read.elapsed_ns / 1e9))
    assert read.in_flight is not None and 0 < read.in_flight <= 2
    kind = result.facts["directories"][0]["filesystem"]["kind"]
    page_cache = read.page_cache
    assert (page_cache["verdict"] == "INVALID") == (kind in ("tmpfs", "ramfs")), page_cache["evidence"]
    assert not list((tmp_path / "a").iterdir()), "nothing is left"


def test_memory_is_never_taken_for_a_disk() -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir():
        pytest.skip("no /dev/shm here")
    directory = shm / f"raidlab-test-{np.random.default_rng().integers(1 << 40)}"
    directory.mkdir()
    try:
        read = measure_files(FilesCell(files=made(directory, count=10))).read
        assert read.cached_share == 1.0
        assert read.page_cache["verdict"] == "INVALID"
    finally:
        directory.rmdir()


def test_kept_files_serve_again_and_only_ours_are_written(tmp_path: Path) -> None:
    kept = FilesCell(files=made(tmp_path, keep=True), readers=0)
    first = measure_files(kept)
    assert first.fill is not None and first.read.files == 0
    limits = {"warmup": FilesWarmup(files=7), "measure": FilesMeasure(files=100)}
    again = measure_files(FilesCell(files=made(tmp_path), order="random", readers=3, **limits))
    assert again.fill is None and (again.read.files, again.read.warmup_files) == (100, 7)
    assert not list(tmp_path.iterdir())
    (tmp_path / "raidlab-files").mkdir()
    (tmp_path / "raidlab-files" / "f00000000").write_text("precious")
    with pytest.raises(RefusedError, match="was not made by raidlab"):
        measure_files(kept)
    assert (tmp_path / "raidlab-files" / "f00000000").read_text() == "precious"


def test_given_files_are_read_and_mistakes_name_their_key(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(b"x" * 100_000)
    result = measure_files(FilesCell(files=GivenFiles(paths=[path]), block_bytes="whole"))
    assert (result.read.bytes, result.fill) == (100_000, None)
    with pytest.raises(CellFailedError, match=r"files\.paths\[1\]"):
        measure_files(FilesCell(files=GivenFiles(paths=[path, tmp_path / "none"])))
    with pytest.raises(CellFailedError, match="block_bytes"):
        measure_files(FilesCell(files=GivenFiles(paths=[path]), block_bytes=0))


def test_a_file_that_vanishes_and_an_early_end_keep_what_was_measured(tmp_path: Path) -> None:
    def endless(place: Path) -> FilesCell:
        # Written before, however long that takes: what is told then is told of reading.
        place.mkdir()
        files = made(place, keep=True)
        assert measure_files(FilesCell(files=files, readers=0)).fill is not None
        return FilesCell(files=files, order="shuffled", measure=FilesMeasure(files=1_000_000))

    def has_read(share: float) -> bool:
        # Of files that were begun: from the second on, one has been read. All, while they are put out of the cache.
        return 1 / 1_000_000 < share < 1

    def remove(share: float) -> bool:
        if has_read(share):
            (tmp_path / "one" / "raidlab-files" / "f00000003").unlink(missing_ok=True)
        return True

    result = measure_files(endless(tmp_path / "one"), remove)
    assert result.stopped_by is not None and "f00000003: opening it: No such file" in result.stopped_by
    assert result.read.files > 0
    result = measure_files(endless(tmp_path / "other"), lambda share: not has_read(share))
    assert result.interrupted and result.stopped_by is None and result.read.files > 0


AS_NOBODY = """
import os, sys
from pathlib import Path
from raidlab import _core
from raidlab.errors import RaidlabError
from raidlab.run.files import measure_files
from raidlab.study.cell import FilesCell, GivenFiles, MadeFiles

# Only now: nobody may not even read where this interpreter lies.
os.setgroups([]), os.setgid(65534), os.setuid(65534)
place = Path(sys.argv[1])
sizes = {"kind": "fixed", "bytes": 1000}
cells = [
    FilesCell(files=GivenFiles(paths=[place / "readable"])),
    FilesCell(files=GivenFiles(paths=[place / "secret"])),
    FilesCell(files=MadeFiles(directories=[place], sizes=sizes, count=1)),
    FilesCell(files=GivenFiles(paths=[place / "readable"]), drop_caches=True),
]
for cell in cells:
    try:
        result = measure_files(cell)
        print(result.stopped_by or result.read.page_cache)
    except RaidlabError as error:
        print(error)
"""


def test_without_rights_there_is_one_sentence_and_what_is_unknown_is_said() -> None:
    if os.geteuid() != 0:
        pytest.skip("becoming nobody needs root")
    place = Path(tempfile.mkdtemp(prefix="raidlab-test-"))
    try:
        place.chmod(0o755)
        (place / "readable").write_bytes(b"x" * 5000)
        (place / "readable").chmod(0o644)
        (place / "secret").write_bytes(b"x" * 5000)
        (place / "secret").chmod(0o600)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(place)], capture_output=True, text=True, check=False
        )
        lines = done.stdout.splitlines()
        assert len(lines) == 4, done.stderr
        assert "does not tell what of 1 files" in lines[0], "no file of nobody's own: the kernel keeps it to itself"
        assert "files.paths[0]" in lines[1] and "Permission denied" in lines[1]
        assert "files.directories[0]" in lines[2] and "Permission denied" in lines[2]
        assert "drop_caches" in lines[3] and "Permission denied" in lines[3]
    finally:
        shutil.rmtree(place)


def test_of_files_that_fill_an_array_there_may_be_a_most() -> None:
    files = WholeFiles(fill=0.5, count=3)
    assert files.total_bytes(1000, 100) == 300 and files.total_bytes(400, 100) == 200
    assert WholeFiles(fill=0.5).total_bytes(1000, 100) == 500
    assert WholeFiles(count=3).total_bytes(1000, 100) is None
