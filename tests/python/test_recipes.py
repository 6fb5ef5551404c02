"""The recipes of the docs fit the source tree: their files and changes can be applied, and those in Python work.

A block with a title is a new file; a ``diff`` is a change. What a recipe in Rust does is not tried here: too slow.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doc_blocks import FILE, ROOT, blocks_of, name_of
from raidlab.results import Run

RECIPES = sorted((ROOT / "docs" / "how-to").glob("add-*.md"))
IN_PYTHON = {
    "add-a-metric.md": "assert 'iops_per_disk' in analysis.table.columns",
    "add-a-check.md": "assert 'long_tail' in {one.check for one in run_checks(analysis)}",
    "add-a-figure.md": "assert 'percentiles' in {one.kind for one in make_figures(analysis)}",
}
HEAD = """
import sys
from raidlab.api import analyse
from raidlab.checks import run_checks
from raidlab.figures import make_figures
analysis = analyse(sys.argv[1])
"""


def applied(page: Path, tree: Path, *options: str) -> None:
    """Follow a recipe in a tree; one line of context is enough, for lists grow."""
    for block in blocks_of(page):
        if block.language == "diff":
            command = ["git", "apply", "-C1", *options, "-"]
            done = subprocess.run(command, cwd=tree, input=block.text, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{name_of(page)} does not fit the source any more: {done.stderr}"
        elif block.how == FILE and block.file is not None and "--check" not in options and "/" in block.file:
            (tree / block.file).write_text(block.text, encoding="utf-8")


@pytest.fixture(autouse=True)
def _with_git() -> None:
    if shutil.which("git") is None:
        pytest.skip("git applies the changes")


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_fits_the_source(page: Path) -> None:
    assert any(block.language == "diff" for block in blocks_of(page))
    applied(page, ROOT, "--check")
    new = [block.file for block in blocks_of(page) if block.how == FILE and block.file and "/" in block.file]
    assert new or "policy" in page.stem
    assert not [file for file in new if (ROOT / file).exists()], "what a recipe adds is not there yet"


@pytest.mark.parametrize(("name", "works"), IN_PYTHON.items())
def test_a_recipe_in_python_works(name: str, works: str, small_run: Run, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "python", tmp_path / "python", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests" / "python", tmp_path / "tests" / "python", ignore=shutil.ignore_patterns("fixtures"))
    applied(ROOT / "docs" / "how-to" / name, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "python")}
    command = [sys.executable, "-c", HEAD + works, str(small_run.folder)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
