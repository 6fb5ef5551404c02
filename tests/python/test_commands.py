"""The family of commands: which one words mean, what a renamed one answers, and the first help screen at 80 columns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from raidlab.cli.app import _SECTIONS, app
from raidlab.errors import InputError

COLUMNS = 80


def meant(words: list[str]) -> Any:
    """The command that words mean, with its arguments, as the command line reads them."""
    context = typer.main.get_command(app).make_context("raidlab", words)
    while isinstance(context.command, TyperGroup):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context


@pytest.mark.parametrize(
    ("words", "command", "places"),
    [
        (["null"], "requests", {"targets": ["null"]}),
        (["--rw", "randread", "--depth", "8", "null"], "requests", {"targets": ["null"], "rw": "randread"}),
        (["requests", "null", "memory"], "requests", {"targets": ["null", "memory"]}),
        # What is called like one of the family can still be measured.
        (["requests", "files"], "requests", {"targets": ["files"]}),
        (["./files", "streams"], "requests", {"targets": ["./files", "streams"]}),
        (["--", "network"], "requests", {"targets": ["network"]}),
        (["files", "data"], "files", {"paths": ["data"]}),
        (["streams", "memory", "null"], "streams", {"ends": ["memory", "null"]}),
        (["network", "/mnt/box/"], "network", {"target": "/mnt/box/"}),
    ],
)
def test_requests_are_meant_where_no_other_word_stands_first(
    words: list[str], command: str, places: dict[str, Any]
) -> None:
    context = meant(["measure", *words])
    assert context.command.name == command
    assert {name: context.params[name] for name in places} == places


def test_a_word_that_is_nearly_one_of_the_family_is_answered_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"Did you mean 'streams'\?"):
        CliRunner().invoke(app, ["measure", "stream", "memory", "null"], catch_exceptions=False)
    # A file of that name is a target.
    (tmp_path / "stream").write_bytes(b"data")
    assert meant(["measure", "stream"]).params["targets"] == ["stream"]


@pytest.mark.parametrize("word", ["files", "streams", "network"])
def test_the_old_spelling_is_answered_with_the_new_one(word: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "raidlab", f"measure-{word}", str(tmp_path), "--count", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: raidlab: 'measure-{word}' is now 'raidlab measure {word}'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["agent", "/mnt/box", "--listen", "10.0.0.1:7070", "--key", "key"],
        ["measure", "network", "10.0.0.1:7070", "10.0.0.2:7070", "--key", "key"],
        ["measure", "network", "--lab=/mnt/box", "--machines", "4"],
        ["measure", "network", "/mnt/box"],
        ["run", "jlab1998", "--machine", "10.0.0.1:7070", "--key", "key"],
        ["run", "jlab1998", "--machine", "lab:/scratch"],
    ],
)
def test_what_agents_did_is_answered_with_a_cluster(words: list[str]) -> None:
    ended = CliRunner().invoke(app, words)
    assert isinstance(ended.exception, InputError) and ended.exception.exit_code == 2
    [problem] = ended.exception.problems
    assert "dask worker" in str(problem) or "--cluster" in str(problem)


def help_of(*words: str) -> str:
    ended = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(COLUMNS)})
    assert ended.exit_code == 0
    return ended.output


def test_every_command_stands_once_on_the_first_help_screen() -> None:
    names = [name for names in _SECTIONS.values() for name in names]
    assert sorted(names) == sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    shown = help_of()
    for title, names_of_section in _SECTIONS.items():
        part = shown.partition(f"{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in part.splitlines()] == list(names_of_section), "one line a command"


@pytest.mark.parametrize("words", [("run",), ("measure", "requests"), ("measure", "files"), ("study", "show")])
def test_the_usage_of_a_command_says_that_it_has_options(words: tuple[str, ...]) -> None:
    assert help_of(*words).startswith(f"Usage: raidlab {' '.join(words)} [OPTIONS] ")


@pytest.mark.parametrize("words", [(), ("measure",)])
def test_help_fits_a_terminal_of_80_columns_and_cuts_nothing(words: tuple[str, ...]) -> None:
    lines = help_of(*words).splitlines()
    assert lines[0].startswith(" ".join(["Usage: raidlab", *words])) and "..." in lines[0]
    assert [line for line in lines if len(line) > COLUMNS or (line.endswith("...") and "Usage" not in line)] == []
