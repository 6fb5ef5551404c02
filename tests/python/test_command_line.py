"""Mistakes on the command line and places that cannot be used: one clear line and the documented exit code."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import raidlab
from raidlab.api import run_study, write_report
from raidlab.cli.app import app
from raidlab.cli.layout import layout
from raidlab.cli.plan_io import plan_io
from raidlab.errors import EXIT_BAD_INPUT, EXIT_INVALID_RESULT, InputError
from raidlab.results import SCHEMA_VERSION, Run, load_run
from raidlab.study.find import find_study

PLAN: dict[str, Any] = {
    "write": None,
    "read": None,
    "missing": None,
    "volume": 0,
    "sector": "512",
    "member_size": "1GiB",
    "parity_write": "fewest_accesses",
    "parity_read": "skip",
    "as_json": False,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"write": "8KiB@0", "member_size": "9" * 26},
            "--member-size: '9{26}': a size must be at most 1 EiB",
        ),
        ({"write": "8KiB@0", "member_size": "0"}, "--member-size: '0': a size must be above 0; accepted: "),
        (
            {"write": "8KiB@0", "sector": "99999999999"},
            "--sector: '99999999999': is too large; accepted: at most 1",
        ),
        ({"write": "8KiB@0", "sector": "x"}, "--sector: 'x': is not a size; accepted: "),
        ({"write": "8KiB@-1"}, "--write: '8KiB@-1': an offset must be at least 0; accepted: LENGTH@OFFSET"),
        ({"write": "0@0"}, "--write: '0@0': a size must be above 0; accepted: LENGTH@OFFSET"),
        ({"read": "8KiB"}, "--read: '8KiB': has no offset; accepted: LENGTH@OFFSET"),
        ({"read": "7@0"}, "--read: '7@0': 7 is no multiple of the sector of 512 bytes"),
        ({"read": "8KiB@100GiB"}, "--read: '8KiB@100GiB': 8192 bytes at 107374182400; accepted: within"),
        ({"read": "8KiB@0", "missing": [9]}, "--missing: member 9; accepted: 0 to 4$"),
        ({"read": "8KiB@0", "volume": 1}, "--volume: volume 1; accepted: 0 to 0$"),
        ({"read": "8KiB@0", "missing": [1, 2]}, "--missing: node 0 of the tree has lost more members"),
        (
            {"write": "8KiB@0", "parity_write": "foo"},
            "--parity-write: 'foo': is not known here; accepted: read_modify_write, reconstruct_write, few",
        ),
        (
            {"read": "8KiB@0", "parity_read": "x"},
            "--parity-read: 'x': is not known here; accepted: skip or read",
        ),
        ({}, "--write, --read: exactly one of them is needed"),
    ],
)
def test_a_mistake_in_a_plan_names_its_option_once(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_io("raid5:5", **{**PLAN, **given})
    assert re.match(expected, str(caught.value)), caught.value


def test_a_plan_for_one_of_several_volumes(capsys: pytest.CaptureFixture[str]) -> None:
    plan_io("independent(raid1(2), raid1(2))", **{**PLAN, "write": "8KiB@64KiB", "volume": 1})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:3] for line in lines[1:3]] == [["write", "2"], ["write", "3"]]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("raid5:-3", "TREE: 'raid5:-3': a number of members is expected at '-3'; accepted: 1 to 4096"),
        ("raid9", "TREE: 'raid9': unknown level 'raid9'; accepted: "),
    ],
)
def test_a_mistake_in_a_tree_says_its_place_once(tree: str, expected: str) -> None:
    for command in (lambda: layout(tree), lambda: plan_io(tree, **{**PLAN, "read": "8KiB@0"})):
        with pytest.raises(InputError) as caught:
            command()
        assert str(caught.value).startswith(expected)


@pytest.mark.parametrize("place", ["/dev/null", "/proc/x", "a file", "a file/below"])
def test_where_no_folder_can_be_made_nothing_is_run(place: str, small_study: Path, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("precious", encoding="utf-8")
    out = place if place.startswith("/") else f"{tmp_path}/{place}"
    with pytest.raises(InputError, match=f"--out: '{out}': no folder can be made there: .*; accepted: a directory"):
        run_study(small_study, on=["sim"], out=out)
    assert (tmp_path / "a file").read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("below", ["", "/below"])
def test_a_link_that_leads_nowhere_is_said_to_be_one(below: str, small_study: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=r"no folder can be made there: .*is a link to '.*gone', which is not there"):
        run_study(small_study, on=["sim"], out=f"{tmp_path}/link{below}")
    assert not (tmp_path / "gone").exists()


def test_a_directory_that_is_no_study_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a directory without a study\.toml"):
        find_study(f"{tmp_path}/")


def test_a_target_without_a_table_names_what_can_be_said(small_study: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"accepted: sim, emulated, memory, a directory, a block device$"):
        run_study(small_study, on=["original"], out=tmp_path / "runs")


@pytest.mark.parametrize(("given", "where"), [({"out": ""}, "--out"), ({"on": [""]}, "--on")])
def test_an_empty_word_is_refused(given: dict[str, Any], where: str, small_study: Path) -> None:
    with pytest.raises(InputError, match=f"{where}: '': is empty"):
        run_study(small_study, **given)


def test_a_refused_run_makes_no_directory(small_study: Path, tmp_path: Path) -> None:
    text = small_study.read_text(encoding="utf-8").replace('member_size = "16MiB"', 'member_size = "1000TiB"')
    small_study.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="the member files need"):
        run_study(small_study, on=[f"{tmp_path}/"], out=tmp_path / "runs")
    with pytest.raises(InputError, match=r"--on: '.*/deep/er/': there is no such directory.*mkdir -p"):
        run_study(small_study, on=[f"{tmp_path}/deep/er/"], out=tmp_path / "runs")
    assert list(tmp_path.iterdir()) == [small_study]


def _damage(name: str, content: bytes | None) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)

    return change


def _damage_of_old(name: str, content: bytes) -> Callable[[Path], None]:
    """The same in the folder of a version that kept no digests."""

    def change(folder: Path) -> None:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        (folder / "run.json").write_text(json.dumps({**facts, "tables": {}}), encoding="utf-8")
        (folder / name).write_bytes(content)

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_damage("run.json", b"{"), "run.json': is not JSON"),
        (_damage("run.json", b"[]"), "run.json': is not a table of facts"),
        (_damage("run.json", b"\xff\xfe"), "run.json': is not JSON"),
        (_damage("run.json", b'{"schema_version": %d}' % SCHEMA_VERSION), "run.json': lacks 'study'"),
        (_damage("run.json", b'{"schema_version": 999}'), "was written with result schema 999"),
        (_damage("run.json", None), "is not a run folder"),
        (_damage("cells.parquet", b"garbage"), "cells.parquet': was changed since it was written"),
        (_damage("cells.parquet", b""), "cells.parquet': was changed since it was written"),
        (_damage_of_old("cells.parquet", b"garbage"), "cells.parquet': cannot be read"),
        (_damage_of_old("cells.parquet", b""), "cells.parquet': cannot be read"),
        (_damage("cells.parquet", None), "lacks cells.parquet"),
    ],
)
def test_a_damaged_run_folder_is_one_clear_error(
    change: Callable[[Path], None], expected: str, small_run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(small_run.folder, folder)
    change(folder)
    with pytest.raises(InputError) as caught:
        write_report(folder)
    assert len(caught.value.problems) == 1 and expected in str(caught.value), caught.value


def test_a_study_that_can_no_longer_be_read_is_one_clear_error(small_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(small_run.folder, folder)
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    text = facts["study"]["text"].replace("[load]", "[lode]")
    facts["study"] |= {"text": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    (folder / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(InputError, match=r"run.json': has no study that can be read"):
        load_run(folder)


def test_a_parity_backend_that_is_none_is_named_before_anything_is_made(small_study: Path) -> None:
    command = [sys.executable, "-m", "raidlab", "run", str(small_study), "--on", "memory"]
    environment = {"PATH": "/usr/bin:/bin", "RAIDLAB_PARITY": "foo", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        command, cwd=small_study.parent, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 2, done.stderr
    assert re.match(r"error: RAIDLAB_PARITY: 'foo': is no parity backend .*; accepted: naive, portable", done.stderr)
    assert done.stderr.count("\n") == 1
    assert [file.name for file in small_study.parent.iterdir()] == ["study.toml"]


def test_report_and_export_end_with_the_verdict(
    small_run: Run, tmp_path: Path, as_invalid: Callable[[Run, Path], Path]
) -> None:
    bad = as_invalid(small_run, tmp_path / "bad")
    for words in (["report"], ["results", "export"]):
        ended = CliRunner().invoke(app, [*words, str(bad)])
        assert ended.exit_code == EXIT_INVALID_RESULT, ended.output
        assert all(Path(line).exists() for line in ended.output.splitlines()), "it is written all the same"
        fine = shutil.copytree(small_run.folder, tmp_path / f"fine-{words[-1]}")
        assert CliRunner().invoke(app, [*words, str(fine)]).exit_code == 0


def test_what_is_no_path_is_no_run() -> None:
    with pytest.raises(InputError, match="run: None: is no path; accepted: the folder of a run"):
        raidlab.load_run(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", ["-1", str(2**63), str(2**64)])
def test_a_seed_that_no_study_could_have_is_refused(seed: str, small_study: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"--seed: {seed}: is no root seed; accepted: 0 to 9223372036854775807"):
        run_study(small_study, out=tmp_path / "runs", seed=int(seed))
    ended = CliRunner().invoke(app, ["run", str(small_study), "--out", str(tmp_path / "runs"), "--seed", seed])
    assert isinstance(ended.exception, InputError) and ended.exception.exit_code == EXIT_BAD_INPUT
    assert not (tmp_path / "runs").exists()


def test_a_directory_is_left_as_it_was(small_study: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    run_study(small_study, on=[str(tmp_path / "mine")], out=tmp_path / "runs")
    assert list((tmp_path / "mine").iterdir()) == []
