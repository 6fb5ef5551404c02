"""Directories that a stranger has prepared: no link in them is followed, nothing outside is deleted or overwritten."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from conftest import unmount
from raidlab.analysis.metrics import Analysis
from raidlab.api import resume_run, write_report
from raidlab.cli.results import app
from raidlab.directory import Directory, write_file
from raidlab.errors import InputError, OutputError, RaidlabError
from raidlab.measure.files import FilesPlan, files_of, measure_whole_files
from raidlab.measure.trials import flushed, repeated_pair
from raidlab.measure.trials.target import TrialTarget
from raidlab.published.compare import write_csv
from raidlab.report.export import EXPORTS
from raidlab.results import Run, load_run
from raidlab.results.finish import write_run
from raidlab.results.parts import PARTS, read_parts
from raidlab.run.interrupt import StopFlag
from raidlab.run.members import live_members, member_files, remove_abandoned
from raidlab.run.progress import Silent
from raidlab.run.streams import measure_streams
from raidlab.run.targets import resolve_targets
from raidlab.study.cell import BufferEnd, FileEnd, FilesCell, LiveStream, MadeFiles, StreamsCell

# A hundred thousand take minutes: RAIDLAB_RACES=100000.
TRIES = int(os.environ.get("RAIDLAB_RACES", "10000"))
OWNED = b"raidlab makes and removes this folder; process 1\n"
MARKED = b"raidlab file set, version 1\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A directory with files that bear every name raidlab removes or writes."""
    folder = tmp_path / "victim"
    folder.mkdir()
    names = ["member-00.dat", "raidlab-owner", "f00000001", "made-by-raidlab", "notes.txt", "report.html", "run.json"]
    for name in [*names, "cells.parquet", PARTS, "points.csv", "prices.toml"]:
        (folder / name).write_bytes(b"precious")
    (folder / "made-by-raidlab").write_bytes(MARKED)
    (folder / "raidlab-owner").write_bytes(OWNED)
    return folder


def _content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def _abandoned(directory: Path, name: str = "raidlab-members-0123abcd") -> Path:
    """A folder as a killed run leaves it."""
    folder = directory / name
    folder.mkdir(parents=True)
    (folder / "raidlab-owner").write_bytes(OWNED)
    (folder / "member-00.dat").write_bytes(b"x")
    return folder


# A process of its own: a thread would swap only while this one waits.
SWAPPING = """
import ctypes, sys
libc = ctypes.CDLL(None)
one, other = (name.encode() for name in sys.argv[1:])
print(flush=True)
while True:
    libc.renameat2(-100, one, -100, other, 2)  # RENAME_EXCHANGE; either may be gone for a moment
"""


@contextmanager
def _swapping(*pairs: tuple[Path, Path]) -> Iterator[None]:
    """Pairs of names that change places all the time."""
    with ExitStack() as started:
        for pair in pairs:
            command = [sys.executable, "-SE", "-c", SWAPPING, *map(str, pair)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE)
            started.callback(_end, process)
            assert process.stdout is not None and process.stdout.readline()
        yield


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.parametrize("name", ["raidlab-members-0123abcd", "raidlab-members-x"])
@pytest.mark.parametrize("where", ["files-0/raidlab-files", "files-0", "member-00.dat", ""])
def test_a_link_in_a_prepared_folder_is_not_followed(where: str, name: str, victim: Path, tmp_path: Path) -> None:
    before, place = _content(victim), tmp_path / "scratch"
    folder = _abandoned(place, name)
    if not where:
        shutil.rmtree(folder)
    link = folder / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(victim)
    said: list[str] = []
    remove_abandoned([place], said.append)
    assert _content(victim) == before and not said


def test_an_owner_file_that_is_a_link_or_a_fifo_or_somebody_elses_is_none(victim: Path, tmp_path: Path) -> None:
    for number, make in enumerate(
        (
            lambda owner: owner.symlink_to(victim / "raidlab-owner"),
            os.mkfifo,
            lambda owner: owner.write_bytes(b"my notes on owners\n"),
            lambda owner: os.link(victim / "raidlab-owner", owner),
        )
    ):
        folder = _abandoned(tmp_path / "scratch", f"raidlab-members-0123abc{number}")
        (folder / "raidlab-owner").unlink()
        make(folder / "raidlab-owner")
    remove_abandoned([tmp_path / "scratch"])
    assert len(list((tmp_path / "scratch").iterdir())) == 4
    assert (victim / "raidlab-owner").exists()


def test_a_file_with_a_second_name_is_not_removed(victim: Path, tmp_path: Path) -> None:
    folder = _abandoned(tmp_path / "scratch")
    (folder / "member-00.dat").unlink()
    os.link(victim / "notes.txt", folder / "member-00.dat")
    remove_abandoned([tmp_path / "scratch"])
    assert (folder / "member-00.dat").exists() and (victim / "notes.txt").read_bytes() == b"precious"


def test_what_belongs_to_another_user_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("files of another user need root")
    whole, within = _abandoned(tmp_path, "raidlab-members-0123abcd"), _abandoned(tmp_path, "raidlab-members-4567cdef")
    for path in (whole, *whole.iterdir()):
        os.chown(path, 12345, 12345)
    os.chown(within / "member-00.dat", 12345, 12345)
    around = _abandoned(tmp_path, "raidlab-members-89abcdef")
    os.chown(around, 12345, 12345)
    remove_abandoned([tmp_path])
    assert all((folder / "member-00.dat").exists() for folder in (whole, within, around))


@pytest.mark.parametrize(
    "place",
    [
        "raidlab-members-0123abcd/member-00.dat.old",
        "raidlab-members-0123abcd/files-0/photograph",
        "raidlab-members-0123abcd/files-0/raidlab-files/photograph",
        "raidlab-members-0123abcd/files-0/raidlab-files/f00000001.jpg",
        "raidlab-members-0123abcd-kept/member-00.dat",
        "raidlab-members-0123abc/member-00.dat",
    ],
)
def test_what_has_no_name_of_raidlabs_stays(place: str, tmp_path: Path) -> None:
    _abandoned(tmp_path, place.partition("/")[0])
    around = tmp_path / place.partition("/")[0] / "files-0" / "raidlab-files"
    around.mkdir(parents=True)
    (around / "made-by-raidlab").write_bytes(MARKED)
    (tmp_path / place).write_bytes(b"precious")
    remove_abandoned([tmp_path])
    assert (tmp_path / place).read_bytes() == b"precious"


def test_a_set_with_another_mark_stays(tmp_path: Path) -> None:
    around = _abandoned(tmp_path) / "files-0" / "raidlab-files"
    around.mkdir(parents=True)
    for name, content in (("made-by-raidlab", b"my notes\n"), ("f00000001", b"precious")):
        (around / name).write_bytes(content)
    remove_abandoned([tmp_path])
    assert sorted(file.name for file in around.iterdir()) == ["f00000001", "made-by-raidlab"]


@pytest.mark.parametrize("where", ["files-0", "files-0/raidlab-files"])
def test_what_is_mounted_below_stays(where: str, victim: Path, tmp_path: Path) -> None:
    place = _abandoned(tmp_path / "scratch") / where
    place.mkdir(parents=True)
    if where == "files-0":
        (victim / "raidlab-files").mkdir()
        for name in ("made-by-raidlab", "f00000001"):
            shutil.copy(victim / name, victim / "raidlab-files")
    # Bound from the same file system, its device number is the same too.
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", victim, place], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        before = sorted(victim.rglob("*"))
        remove_abandoned([tmp_path / "scratch"])
        assert sorted(victim.rglob("*")) == before
    finally:
        unmount(place)


def test_a_folder_in_use_and_one_of_the_past_are_told_apart(tmp_path: Path) -> None:
    folder = _abandoned(tmp_path)
    (folder / "files-0" / "raidlab-files").mkdir(parents=True)
    for name, content in (("made-by-raidlab", MARKED), ("f00000001", b"x")):
        (folder / "files-0" / "raidlab-files" / name).write_bytes(content)
    with (folder / "raidlab-owner").open("rb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        remove_abandoned([tmp_path])
        assert (folder / "member-00.dat").exists()
    said: list[str] = []
    remove_abandoned([tmp_path], said.append)
    assert len(said) == 1 and not folder.exists()


def test_a_directory_swapped_for_a_link_while_it_is_cleared_leads_nowhere(victim: Path, tmp_path: Path) -> None:
    """Whoever may write in the directory swaps names all the time: of the folder, and of what is in it."""
    before, place = _content(victim), tmp_path / "scratch"
    (victim / "raidlab-files").mkdir()
    for name in ("made-by-raidlab", "f00000001"):
        shutil.copy(victim / name, victim / "raidlab-files")
    files = _content(victim / "raidlab-files")
    place.mkdir()
    link, inner = tmp_path / "link", tmp_path / "inner"
    link.symlink_to(victim)
    inner.symlink_to(victim)
    folder = place / "raidlab-members-0123abcd"
    made = linked = number = 0
    with _swapping((folder, link), (folder / "files-0", inner)):
        # More than so many, should others have the processors until both have been seen.
        for number in range(100 * TRIES):
            if number >= TRIES and 0 < linked < number and made > 2:
                break
            # As the stranger does: what was removed is there again.
            with suppress(OSError):
                folder.mkdir()
            with suppress(OSError), Directory.open(place) as opened, opened.child(folder.name) as mine:
                with suppress(FileExistsError):
                    mine.make_child("files-0")
                for name, content in (("raidlab-owner", OWNED), ("member-00.dat", b"x")):
                    with suppress(FileExistsError), os.fdopen(mine.create_file(name), "wb") as file:
                        file.write(content)
                        made += 1
            linked += folder.is_symlink()
            remove_abandoned([place])
    assert 0 < linked < number and made > 2, (linked, made)
    assert _content(victim) == before and _content(victim / "raidlab-files") == files


def test_member_files_are_not_made_or_removed_through_a_link(victim: Path, tmp_path: Path) -> None:
    before = _content(victim)
    with member_files([tmp_path], 1, 4096, ("--on", "")) as (file,):
        file.parent.rename(tmp_path / "aside")
        file.parent.symlink_to(victim)
    assert _content(victim) == before
    assert list((tmp_path / "aside").iterdir()) == [], "raidlab's own files are gone, wherever their folder went"


@pytest.mark.parametrize("trial", [repeated_pair, flushed])
def test_a_trial_writes_nothing_through_a_link(trial: ModuleType, victim: Path, tmp_path: Path) -> None:
    with (victim / "member-00.dat").open("wb") as file:
        file.truncate(1 << 20)
    before, changed = _content(victim), victim.stat().st_mtime_ns
    with member_files([tmp_path], 1, 1 << 20, ("TARGET", "")) as (file,):
        target = TrialTarget(file, {"kind": "file"}, 1 << 20, {}, writable=True)
        file.parent.rename(tmp_path / "aside")
        file.parent.symlink_to(victim)
        with pytest.raises(NotADirectoryError):
            trial.tried(target)
    assert _content(victim) == before
    assert victim.stat().st_mtime_ns == changed, "not even a file that was removed again was made there"


@pytest.mark.parametrize("kind", ["second name", "pipe"])
def test_a_trial_writes_only_to_a_regular_file_with_one_name(kind: str, tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "member-00.dat", tmp_path / "elsewhere"
    elsewhere.write_bytes(bytes(1 << 20))
    os.link(elsewhere, path) if kind == "second name" else os.mkfifo(path)
    with pytest.raises(OSError, match=r"second name|regular|No such device"):
        flushed.tried(TrialTarget(path, {"kind": "file"}, 1 << 20, {}, writable=True))
    assert elsewhere.read_bytes() == bytes(1 << 20)


def test_a_device_that_was_named_by_a_link_is_tried(tmp_path: Path, loops: Callable[[Path], str]) -> None:
    with (tmp_path / "disk").open("wb") as file:
        file.truncate(1 << 20)
    link = tmp_path / "by-id"
    link.symlink_to(loops(tmp_path / "disk"))
    assert flushed.tried(TrialTarget(link, {"kind": "block"}, 1 << 20, {}, writable=True))["flushed"]["median_ns"] > 0


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no such directory.*mkdir -p"):
        resolve_targets([f"{tmp_path}/no/such/"])
    assert list(tmp_path.iterdir()) == []


def test_a_file_set_of_somebody_else_is_neither_used_nor_removed(tmp_path: Path) -> None:
    theirs = tmp_path / "raidlab-files"
    theirs.mkdir()
    (theirs / "f00000000").write_bytes(b"precious")
    (theirs / "photographs").write_bytes(b"precious")
    made = MadeFiles(directories=[], sizes={"kind": "fixed", "bytes": 4096}, count=2)
    plan = FilesPlan(FilesCell(files=files_of([str(tmp_path)], made)), (1,), 1)
    with pytest.raises(RaidlabError, match="was not made by raidlab"):
        measure_whole_files(plan, progress=Silent(), stop=StopFlag())
    assert len(list(theirs.iterdir())) == 2


@pytest.mark.parametrize("to", ["nothing", "notes.txt"])
def test_a_stream_neither_follows_nor_removes_a_link(to: str, victim: Path, tmp_path: Path) -> None:
    before, link = _content(victim), tmp_path / "sink.dat"
    link.symlink_to(victim / to)
    stream = LiveStream(name="s", source=BufferEnd(), sink=FileEnd(path=link), bytes=1 << 20)
    with pytest.raises(RaidlabError):
        measure_streams(StreamsCell(streams=[stream]))
    assert link.is_symlink() and _content(victim) == before


@pytest.fixture
def received(small_run: Run, tmp_path: Path) -> Path:
    """A run folder as one receives it."""
    folder = tmp_path / "received"
    shutil.copytree(small_run.folder, folder)
    return folder


def _cut_short(folder: Path, run: Run) -> None:
    """Make a run folder one that was killed before it was finished."""
    facts = {key: value for key, value in run.facts.items() if key not in ("status", "failure", "tables")}
    lines = [{"facts": {**facts, "times": {"started": facts["times"]["started"], "sessions": [
        {"started": facts["times"]["sessions"][0]["started"]}]}}}]  # fmt: skip
    (folder / PARTS).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for file in (*folder.glob("*.parquet"), folder / "run.json"):
        file.unlink()


def _files(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("command", [["show"], ["query", "SELECT count(*) FROM cells"], ["export", "--to", "{out}"]])
def test_looking_at_a_cut_short_run_writes_nothing_into_its_folder(
    command: list[str], received: Path, small_run: Run, tmp_path: Path
) -> None:
    _cut_short(received, small_run)
    before = _files(received)
    words = [command[0], str(received), *(word.format(out=tmp_path / "out") for word in command[1:])]
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (0, 3), done.output
    assert _files(received) == before


def test_a_report_of_a_cut_short_run_does_not_finish_it(received: Path, small_run: Run) -> None:
    _cut_short(received, small_run)
    parts = (received / PARTS).read_bytes()
    assert "raidlab was killed" in write_report(received).read_text(encoding="utf-8")
    assert (received / PARTS).read_bytes() == parts
    assert not (received / "run.json").exists() and not list(received.glob("*.parquet"))


@pytest.mark.parametrize("name", ["cells.parquet.new", "run.json.new"])
def test_a_received_folder_that_was_cut_short_is_not_finished_through_a_link(
    name: str, received: Path, small_run: Run, victim: Path
) -> None:
    before = _content(victim)
    _cut_short(received, small_run)
    (received / name).symlink_to(victim / "notes.txt")
    assert load_run(received).facts["status"] == "failed"
    assert _content(victim) == before


def test_a_report_is_not_written_through_links(received: Path, victim: Path) -> None:
    before = _content(victim)
    for name, to in (("report.html", "notes.txt"), ("comparison.csv", "notes.txt"), ("figures", ".")):
        (received / name).unlink(missing_ok=True)
        (received / name).symlink_to(victim / to)
    with pytest.raises(OutputError, match=r"figures: cannot be written: is a symbolic link"):
        write_report(received)
    (received / "figures").unlink()
    write_report(received)
    with Directory.open(received) as folder:
        write_csv([], folder)
    assert _content(victim) == before
    assert not (received / "report.html").is_symlink() and not (received / "comparison.csv").is_symlink()


@pytest.mark.parametrize("name", ["run.json", "cells.parquet", PARTS, "foreign", "prices.toml"])
def test_a_link_in_a_received_folder_is_not_read_through(name: str, received: Path, small_run: Run) -> None:
    outside = received.parent / "outside"
    if name == PARTS:
        _cut_short(received, small_run)
    if (received / name).exists():
        (received / name).rename(outside)
    else:
        outside.mkdir()
    (received / name).symlink_to(outside)
    with pytest.raises(RaidlabError, match="is a symbolic link"):
        if name == "prices.toml":
            from raidlab.published.rules import kept_prices

            kept_prices(received, None)  # type: ignore[arg-type]
        else:
            run = load_run(received)
            _ = run.cells, run.foreign


def test_a_fifo_in_a_received_folder_is_not_waited_for(received: Path) -> None:
    (received / "cells.parquet").unlink()
    os.mkfifo(received / "cells.parquet")
    with pytest.raises(InputError, match="is not a regular file"):
        _ = load_run(received).cells


def test_parts_that_are_a_link_or_a_second_name_are_not_gone_on_with(
    received: Path, small_run: Run, small_study: Path, victim: Path
) -> None:
    _cut_short(received, small_run)
    torn = (received / PARTS).read_bytes() + b'{"half a li'
    precious = victim / PARTS
    precious.write_bytes(torn)
    for make in (os.link, os.symlink):
        (received / PARTS).unlink()
        make(precious, received / PARTS)
        with pytest.raises(RaidlabError):
            resume_run(received, small_study)
        assert precious.read_bytes() == torn, "half a line is not cut off somebody else's file"


def test_exports_replace_links_and_do_not_write_through_them(received: Path, victim: Path) -> None:
    before = _content(victim)
    (received / "export").symlink_to(victim)
    done = CliRunner().invoke(app, ["export", str(received)])
    assert isinstance(done.exception, InputError) and "is a symbolic link" in str(done.exception)
    out = received.parent / "out"
    out.mkdir()
    (out / "points.csv").symlink_to(victim / "notes.txt")
    with Directory.open(out) as folder:
        EXPORTS["csv"](Analysis(load_run(received)), folder)
    assert _content(victim) == before and not (out / "points.csv").is_symlink()


def test_a_run_folder_swapped_for_a_link_while_it_is_finished_or_reported(received: Path, victim: Path) -> None:
    before = _content(victim)
    run, link = load_run(received), received.parent / "link"
    link.symlink_to(victim)
    figures = received / "figures"
    shutil.rmtree(figures, ignore_errors=True)
    figures.mkdir()
    inner = received.parent / "inner"
    inner.symlink_to(victim)
    opened = done = number = 0
    with _swapping((received, link), (figures, inner)):
        for number in range(100 * TRIES):
            if number >= TRIES and 0 < done < opened < number:
                break
            with suppress(OSError), run.directory() as folder:
                opened += 1
                folder.replace("report.html", b"page")
                folder.replace("cells.parquet", b"table")
                with folder.child("figures", make=True) as place:
                    place.replace("notes.txt", b"figure")
                    done += 1
    assert 0 < done < opened < number, (done, opened)
    assert _content(victim) == before


def test_finishing_writes_into_the_folder_that_the_run_began_in(tmp_path: Path, victim: Path) -> None:
    before, folder = _content(victim), tmp_path / "run"
    folder.mkdir()
    (folder / PARTS).write_text('{"facts": {}}\n', encoding="utf-8")
    with Directory.open(folder) as place:
        identity = place.identity
    parts = read_parts(folder)
    folder.rename(tmp_path / "aside")
    folder.symlink_to(victim)
    with pytest.raises(OSError, match="replaced by another directory"):
        write_run(folder, {"status": "failed", "command": "run"}, *parts[1:], identity)
    assert _content(victim) == before


def test_what_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    write_file(tmp_path / "link" / "page.html", b"one")
    (tmp_path / "page.html").symlink_to(real / "page.html")
    (real / "page.html").chmod(0o600)
    write_file(tmp_path / "page.html", b"two")
    assert (real / "page.html").read_bytes() == b"two" and (tmp_path / "page.html").is_symlink()
    assert stat.S_IMODE((real / "page.html").stat().st_mode) == 0o600
    assert list(real.iterdir()) == [real / "page.html"]
    write_file(Path(os.devnull), b"three")
    target = resolve_targets([f"{tmp_path}/link/"])[0]
    with live_members(target, 1, 4096) as members:
        Path(members[0]["path"]).write_bytes(b"x")
    assert list(real.iterdir()) == [real / "page.html"]


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.html").write_bytes(b"before")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdatasync", full)
    with Directory.open(tmp_path) as folder, pytest.raises(OSError, match="No space left"):
        folder.replace("page.html", b"after")
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"before"]


def test_of_two_who_write_one_new_file_the_second_is_refused(tmp_path: Path) -> None:
    """Both found the name free when they began."""
    with Directory.open(tmp_path) as folder, pytest.raises(FileExistsError), folder.replacing("a", is_new=True) as file:
        file.write(b"second")
        write_file(tmp_path / "a", b"first", is_new=True)
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "a", b"third", is_new=True)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"first"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b"])
def test_a_name_with_a_way_in_it_is_none(name: str, tmp_path: Path) -> None:
    with Directory.open(tmp_path) as folder, pytest.raises(OSError, match="is no name of a file"):
        folder.replace(name, b"x")


def test_what_cannot_be_removed_is_named_with_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    with Directory.open(tmp_path) as folder, pytest.raises(OSError, match="it") as caught:
        folder.remove("it")
    assert caught.value.filename == str(tmp_path / "it")
