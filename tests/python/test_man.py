"""The man page is what the command line says, troff has nothing to object, and shells are given completions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "man" / "raidlab.1"
CLI = [sys.executable, "-c", "import sys; sys.argv[0] = 'raidlab'\nfrom raidlab.cli import main\nmain()"]


def test_the_man_page_is_up_to_date() -> None:
    checked = subprocess.run([sys.executable, str(ROOT / "docs" / "man.py"), "--check"], check=False)
    assert checked.returncode == 0, "run docs/generate.py"


@pytest.mark.parametrize("width", ["80n", "60n"])
def test_troff_has_nothing_to_object(width: str) -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff here")
    command = ["groff", "-man", "-ww", "-Tutf8", f"-rLL={width}", str(PAGE)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    # At 60 columns a word can be too long for its line; what is objected to in the source shows at any width.
    said = [line for line in shown.stderr.splitlines() if "adjust" not in line and "break" not in line]
    assert said == [] and "EXIT STATUS" in shown.stdout.replace("\b", "").replace(
        "EEXXIITT SSTTAATTUUSS", "EXIT STATUS"
    )


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "COMPREPLY"), ("zsh", "#compdef"), ("fish", "complete --command")]
)
def test_shells_are_given_a_completion(shell: str, word: str) -> None:
    environment = {**os.environ, "_RAIDLAB_COMPLETE": f"source_{shell}"}
    shown = subprocess.run(CLI, env=environment, capture_output=True, text=True, check=False)
    assert word in shown.stdout and "raidlab" in shown.stdout, shown.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("re", {"report", "results"}),
        ("run quick", {"quickstart"}),
        ("run quickstart --on s", {"sim"}),
        ("measure n", {"network", "null"}),
        ("measure --de", {"--depth", "--destroy"}),
        ("measure null --de", {"--depth", "--destroy"}),
        ("measure files . --dr", {"--drop-caches"}),
    ],
)
def test_completion_offers_commands_studies_and_targets(typed: str, offered: set[str]) -> None:
    words = f"raidlab {typed}"
    place = str(len(words.split()) - 1)
    environment = {**os.environ, "_RAIDLAB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
    shown = subprocess.run(CLI, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert offered <= set(shown.stdout.split()), (shown.stdout, shown.stderr)
