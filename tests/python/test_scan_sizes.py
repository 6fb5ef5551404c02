"""Sizes of files that are there, as a table for a study."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from raidlab.errors import InputError
from raidlab.study.scan import scan_sizes
from raidlab.study.workload import TableSize


def test_classes_have_equal_numbers_and_the_mean_stays(tmp_path: Path) -> None:
    sizes = [100 * number for number in range(1, 51)]
    (tmp_path / "below").mkdir()
    for number, size in enumerate(sizes):
        (tmp_path / ("below" if number % 2 else ".") / f"f{number}").write_bytes(bytes(size))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "f0")
    found = scan_sizes(tmp_path, classes=5)
    assert found.weights == (10,) * 5
    assert (found.files, found.empty) == (50, 1), "links are not followed"
    assert found.total_bytes == sum(sizes)
    assert found.bytes[0] == sum(sizes[:10]) // 10
    table = TableSize.model_validate(tomllib.loads(found.toml())["size"])
    assert table.bytes == list(found.bytes)


def test_files_of_one_size_are_one_class(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"f{number}").write_bytes(bytes(10))
    found = scan_sizes(tmp_path)
    assert (found.bytes, found.weights) == ((10,), (3,))


def test_nothing_to_count_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no files"):
        scan_sizes(tmp_path)
    with pytest.raises(InputError, match="is no directory"):
        scan_sizes(tmp_path / "nothing")
