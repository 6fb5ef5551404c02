"""Standard streams that are closed, full, or read by somebody who leaves; errors that have no better home."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from raidlab.api import run_study

RUN = f"{sys.executable} -m raidlab run ./study.toml"
TINY_STUDY = """
name = "tiny"
title = "A tiny study"
[[array]]
name = "raid0"
tree = "raid0(2)"
[[workload]]
name = "reads"
read = 1.0
size = "8KiB"
[load]
depths = [1]
[sim]
device = "fixed-100us"
"""
WORDS = ["layout raid5:5", "study list", "version", "--help", "plan-io raid5:5 --read 4KiB@0"]


def _shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=cwd, capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.parametrize(
    ("redirection", "code", "pattern"),
    [
        # A pipe that nobody reads any more, and keeps too little to hide that.
        ("> >(exec true)", 0, ""),
        ("--json | head -c 1", 0, ""),
        ("> /dev/full", 1, "error: standard output: cannot be written: No space left on device"),
        (">&-", 0, ""),
        ("> /dev/null 2> /dev/full", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
    ],
)
def test_the_report_is_written_whatever_becomes_of_the_output(
    redirection: str, code: int, pattern: str, tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text(TINY_STUDY, encoding="utf-8")
    done = _shell(f"{RUN} {redirection}", tmp_path)
    assert done.returncode == code, done.stderr
    assert len(list(tmp_path.glob("runs/*/report.html"))) == 1
    errors = [line for line in done.stderr.splitlines() if "error" in line.lower() or "Traceback" in line]
    assert errors == ([pattern] if pattern else [])


@pytest.mark.parametrize("words", WORDS)
def test_a_full_standard_output_is_one_clear_error(words: str, tmp_path: Path) -> None:
    done = _shell(f"{sys.executable} -m raidlab {words} > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "error: standard output: cannot be written: No space left on device\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("printed")
    (place / "study.toml").write_text(TINY_STUDY, encoding="utf-8")
    return run_study(place / "study.toml", out=place / "runs").folder


READERS = (
    "report {}", "results export {}", "results export {} --to {}/elsewhere", "results show {}",
    "results show {} --json", "results query {} 'SELECT 1'", "results list --out {}/..",
)  # fmt: skip


@pytest.mark.parametrize("words", READERS)
def test_what_reads_runs_says_that_its_output_is_full(words: str, run: Path) -> None:
    """Also where it leaves with a code of its own after its last line, as those that print paths do."""
    done = _shell(f"{sys.executable} -m raidlab {words.replace('{}', str(run))} > /dev/full", run)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (
        1,
        ["error: standard output: cannot be written: No space left on device"],
    )
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_who_stops_reading_changes_no_exit_code(tmp_path: Path) -> None:
    program = (
        "import raidlab.cli as cli, raidlab.results.provenance as it, sys, typer\n"
        "def leave():\n"
        " print('a path')\n"
        " raise typer.Exit(3)\n"
        "it.version_facts = leave\n"
        "sys.argv = ['raidlab', 'version']\n"
        "cli.main()"
    )
    for reader, code in (("> >(exec true)", 3), ("> /dev/null", 3), ("> /dev/full", 1)):
        done = _shell(f'{sys.executable} -c "{program}" {reader}', tmp_path)
        assert (done.returncode, "Exception" in done.stderr) == (code, False), (reader, done.stderr)


def test_another_file_that_cannot_be_written_is_not_called_standard_output(tmp_path: Path) -> None:
    broken = (
        "import raidlab.results.provenance as it, raidlab.cli as cli\n"
        "def fail():\n"
        " with open('/dev/full', 'wb', buffering=0) as other: other.write(b'a')\n"
        "it.version_facts = fail\n"
        "import sys; sys.argv = ['raidlab', 'version']\n"
        "cli.main()"
    )
    done = _shell(f'{sys.executable} -c "{broken}"', tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


@pytest.mark.parametrize("module", ["raidlab.cli.app", "typer", "raidlab.cli.usage", "raidlab.results.provenance"])
@pytest.mark.parametrize(
    "how", ["import raidlab.cli; raidlab.cli.main()", "runpy.run_module('raidlab', run_name='__main__')"]
)
def test_ctrl_c_while_modules_are_imported_is_no_traceback(module: str, how: str, tmp_path: Path) -> None:
    program = (
        "import os, runpy, signal, sys\n"
        "class Interrupted:\n"
        " def find_spec(self, name, *more):\n"
        f"  if name == '{module}': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "sys.argv = ['raidlab', 'version']\n"
        f"{how}"
    )
    done = _shell(f'trap - INT; {sys.executable} -c "{program}"', tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_an_unexpected_error_is_one_line_and_says_how_to_see_more(tmp_path: Path) -> None:
    broken = (
        "import raidlab.results.provenance as it, raidlab.cli as cli\n"
        "def fail(): raise ZeroDivisionError('a\\nb')\n"
        "it.version_facts = fail\n"
        "import sys; sys.argv = ['raidlab', 'version']\n"
        "cli.main()"
    )
    command = f'{sys.executable} -c "{broken}"'
    done = _shell(command, tmp_path)
    assert done.returncode == 70
    assert done.stderr.startswith("internal error: ZeroDivisionError: a b; please report it")
    assert done.stderr.count("\n") == 1
    assert "Traceback" in _shell(f"RAIDLAB_TRACEBACK=1 {command}", tmp_path).stderr
