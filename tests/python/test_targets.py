"""What --on means, and what it refuses; members that share a device are seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from raidlab.errors import InputError, RefusedError
from raidlab.run import resolve_targets
from raidlab.run.members import live_members
from raidlab.run.physical import describe_member


def _block_devices() -> list[Path]:
    return [device for device in sorted(Path("/dev").iterdir()) if device.is_block_device()]


def test_words_and_directories(tmp_path: Path) -> None:
    targets = resolve_targets(["sim", f"{tmp_path}/new/", "original"])
    assert [target.name for target in targets] == ["sim", "original", "live"]
    assert (tmp_path / "new").is_dir()


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["smi"], "is not a target; did you mean 'sim'"),
        (["/nowhere/at/all"], "there is no such directory or device"),
        (["memory", "."], "cannot be mixed"),
    ],
)
def test_what_is_no_target_is_refused(words: list[str], pattern: str) -> None:
    with pytest.raises(InputError, match=pattern):
        resolve_targets(words)


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "precious.img"
    file.write_bytes(b"data")
    with pytest.raises(RefusedError, match="a file that raidlab has not made"):
        resolve_targets([str(file)])
    assert file.read_bytes() == b"data"


def test_a_block_device_needs_its_own_name_in_destroy() -> None:
    devices = _block_devices()
    if not devices:
        pytest.skip("no block device here")
    with pytest.raises(RefusedError, match="--destroy"):
        resolve_targets([str(devices[0])])
    assert resolve_targets([str(devices[0])], destroy=[str(devices[0])])[0].places[0].kind == "block"


def test_destroy_must_name_a_target() -> None:
    with pytest.raises(InputError, match="names a device that --on does not"):
        resolve_targets(["sim"], destroy=["/dev/null"])


def test_member_files_are_filled_and_taken_away(tmp_path: Path) -> None:
    notes: list[str] = []
    target = resolve_targets([f"{tmp_path}/"])[0]
    with live_members(target, 3, 1 << 20, seed=1, note=notes.append) as members:
        files = [Path(member["path"]) for member in members]
        contents = [file.read_bytes() for file in files]
        assert all(len(content) == 1 << 20 for content in contents)
        assert len(set(contents)) == 3, "repeated data would flatter a deduplicating target"
        facts = [describe_member(member) for member in members]
        assert len({disk for fact in facts for disk in fact["disks"]}) == 1
        assert all(file.stat().st_blocks * 512 >= 1 << 20 for file in files)
    assert list(tmp_path.iterdir()) == []
    assert "filling 3 member files of 1 MiB" in notes[0]


def test_member_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    target = resolve_targets([f"{tmp_path}/"])[0]
    with (
        pytest.raises(InputError, match="the member files need"),
        live_members(target, 4, 1 << 50, seed=1, note=lambda text: None),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_memory_members() -> None:
    target = resolve_targets(["memory"])[0]
    with live_members(target, 2, 4096, seed=1, note=lambda text: None) as members:
        assert members == [{"kind": "memory", "size_bytes": 4096}] * 2
        assert describe_member(members[0])["disks"] == []
