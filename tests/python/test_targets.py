"""What --on means, and what it refuses; members that share a device are seen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from raidlab.errors import InputError, RefusedError
from raidlab.run.kernel_facts.stack import disks_below
from raidlab.run.members import check_places, live_members, remove_abandoned
from raidlab.run.targets import resolve_targets
from raidlab.study import load_study
from raidlab.study.find import study_names


def _block_devices() -> list[Path]:
    return [device for device in sorted(Path("/dev").iterdir()) if device.is_block_device()]


def test_words_and_directories(tmp_path: Path) -> None:
    targets = resolve_targets(["sim", f"{tmp_path}/", "original"])
    assert [target.name for target in targets] == ["sim", "original", "live"]
    assert list(tmp_path.iterdir()) == [], "nothing is made yet"


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["smi"], "is not a target; did you mean 'sim'"),
        (["/nowhere/at/all"], "there is no such directory or device; accepted: mkdir -p /nowhere/at/all first, or sim"),
        (["/dev/nowhere"], "there is no such directory or device; accepted: sim"),
        (["memory", "."], "cannot be mixed"),
    ],
)
def test_what_is_no_target_is_refused(words: list[str], pattern: str) -> None:
    with pytest.raises(InputError, match=pattern):
        resolve_targets(words)


@pytest.mark.parametrize(("words", "destroy"), [([""], []), (["sim", " "], []), (["sim"], [""])])
def test_an_empty_word_is_not_the_current_directory(words: list[str], destroy: list[str]) -> None:
    with pytest.raises(InputError, match="is empty"):
        resolve_targets(words, destroy)


def test_a_word_too_long_for_a_path_is_refused() -> None:
    with pytest.raises(InputError, match="File name too long"):
        resolve_targets(["x" * 5000])


@pytest.mark.parametrize("name", study_names())
def test_a_bundled_study_runs_where_it_says_in_an_empty_directory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ``make demo`` does on a fresh clone: a directory that the study names must be there."""
    monkeypatch.chdir(tmp_path)
    assert resolve_targets(load_study(name).study.default_targets)


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "precious.img"
    file.write_bytes(b"data")
    with pytest.raises(RefusedError, match="a file that raidlab has not made"):
        resolve_targets([str(file)])
    assert file.read_bytes() == b"data"


def test_a_block_device_is_written_only_when_it_is_given_up() -> None:
    devices = _block_devices()
    if not devices:
        pytest.skip("no block device here")
    device = str(devices[0])
    with pytest.raises(RefusedError, match="--destroy"):
        resolve_targets([device])[0].refuse_writes()
    resolve_targets([device], destroy=[device])[0].refuse_writes()


def test_destroy_must_name_a_target(loops: Callable[[Path], str], tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(bytes(1 << 20))
    device = loops(tmp_path / "disk")
    with pytest.raises(InputError, match="names a device that --on does not"):
        resolve_targets(["sim"], destroy=[device])
    with pytest.raises(InputError, match="'/dev/null': is no block device"):
        resolve_targets(["sim"], destroy=["/dev/null"])


def test_member_files_lie_in_a_folder_of_their_own_that_is_taken_away(tmp_path: Path) -> None:
    target = resolve_targets([f"{tmp_path}/"])[0]
    with live_members(target, 3, 1 << 20) as members:
        paths = [Path(member["path"]) for member in members]
        assert len({path.parent for path in paths}) == 1
        assert paths[0].parent.parent == tmp_path
        paths[0].write_bytes(b"x")
        assert disks_below(paths[0]) == disks_below(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_members_are_dealt_out_over_directories_in_turn(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    target = resolve_targets([f"{tmp_path}/a/", f"{tmp_path}/b/"])[0]
    with live_members(target, 3, 4096) as members:
        assert [Path(member["path"]).parent.parent.name for member in members] == ["a", "b", "a"]


def test_what_a_killed_run_has_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from raidlab.run.members import member_files\n"
        "with member_files([Path(sys.argv[1])], 2, 4096, ('--on', '')) as files:\n"
        "    files[0].write_bytes(bytes(4096)); print(files[0].parent, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    theirs = tmp_path / "raidlab-members-of-somebody-else"
    theirs.mkdir()
    (theirs / "member-00.dat").write_bytes(b"precious")
    said: list[str] = []
    remove_abandoned([tmp_path], said.append)
    assert folder.is_dir() and not said, "its run goes on"
    process.kill()
    process.communicate()
    assert folder.is_dir()
    target = resolve_targets([f"{tmp_path}/"])[0]
    check_places(target, 1, 4096, said.append)
    assert len(said) == 1 and str(folder) in said[0] and "killed" in said[0]
    assert list(tmp_path.iterdir()) == [theirs]
    assert (theirs / "member-00.dat").read_bytes() == b"precious"


def test_a_file_of_somebody_else_keeps_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "raidlab-members-0123abcd"
    folder.mkdir()
    for name in ("raidlab-owner", "member-00.dat", "notes.txt"):
        (folder / name).write_text("x", encoding="utf-8")
    remove_abandoned([tmp_path])
    assert (folder / "notes.txt").exists()
    # One of a run that was killed loses what raidlab made in it, and keeps the mark by which it can be told later.
    (folder / "raidlab-owner").write_text("raidlab makes and removes this folder; process 1\n", encoding="utf-8")
    remove_abandoned([tmp_path])
    assert sorted(file.name for file in folder.iterdir()) == ["notes.txt", "raidlab-owner"]
    (folder / "notes.txt").unlink()
    remove_abandoned([tmp_path])
    assert not folder.exists()


def test_member_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    target = resolve_targets([f"{tmp_path}/"])[0]
    with pytest.raises(InputError, match="the member files need"), live_members(target, 4, 1 << 50):
        pass
    assert list(tmp_path.iterdir()) == []


def test_memory_members() -> None:
    with live_members(resolve_targets(["memory"])[0], 2, 4096) as members:
        assert members == [{"kind": "memory", "size_bytes": 4096}] * 2
