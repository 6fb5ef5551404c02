"""The recipes of the docs fit the source tree: their files and changes can be applied, and work.

A block with a title is a new file; a ``diff`` is a change. Those in Rust are all put into one tree, which is compiled.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
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
# A test of each: of the file that it adds, or that it changes.
IN_RUST = {
    "add-a-level.md": "every_other_row_goes_back",
    "add-a-size-distribution.md": "mean_deviation_and_ends_are_those_asked_for",
    "add-a-device.md": "time_goes_with_the_distance_from_where_the_last_operation_ended",
    "add-a-mirror-read-policy.md": "each_copy_reads_its_own_part_and_stands_in_for_one_that_is_gone",
}
# A kind that stands in one place costs few changes elsewhere; more than these, and a list is said twice somewhere.
MOST_FILES = {"add-a-level.md": 5, "add-a-size-distribution.md": 4}
HEAD = """
import sys
from raidlab.api import analyse
from raidlab.analysis.checks import run_checks
from raidlab.report.figures import make_figures
analysis = analyse(sys.argv[1])
"""


def applied(page: Path, source: Path, target: Path | None = None) -> None:
    """Follow a recipe: changes of the files of a tree, written into another (None: nowhere), and its new files."""
    for block in blocks_of(page):
        if block.language == "diff":
            for name, hunks in re.findall(r"^\+\+\+ b/(\S+)\n(.*?)(?=^--- |\Z)", block.text, re.M | re.S):
                text = changed((source / name).read_text(encoding="utf-8"), hunks, f"{name_of(page)}: {name}")
                if target is not None:
                    (target / name).write_text(text, encoding="utf-8")
        elif block.how == FILE and block.file is not None and "/" in block.file and target is not None:
            (target / block.file).write_text(block.text, encoding="utf-8")


def changed(text: str, hunks: str, place: str) -> str:
    """A text with the changes of a diff, each at the line before or after it, wherever that is now: lists grow."""
    lines = text.splitlines()
    moved = 0
    for start, hunk in re.findall(r"^@@ -(\d+)[^\n]*\n(.*?)(?=^@@|\Z)", hunks, re.M | re.S):
        at, before = int(start) - 1 + moved, None
        rows = hunk.splitlines()
        for index, row in enumerate(rows):
            kind, line = row[:1], row[1:]
            if kind == "+":
                after = next((other[1:] for other in rows[index + 1 :] if other[:1] == " "), None)
                found = nearest(lines, before, at)
                # At the front of a hunk, or where what stood before it is gone: before what follows.
                here = found + 1 if found is not None else nearest(lines, after, at)
                assert here is not None, f"{place} has neither {before!r} nor {after!r} any more"
                lines.insert(here, line)
                at, moved = here, moved + 1
            elif kind == "-":
                found = nearest(lines, line, at)
                assert found is not None, f"{place} has {line!r} no more"
                del lines[found]
                at, moved = found - 1, moved - 1
                line = lines[at] if at >= 0 else None
            else:
                at = nearest(lines, line, at + 1) or at
            before = line
    return "\n".join(lines) + "\n"


def nearest(lines: list[str], line: str | None, at: int) -> int | None:
    """Where a line stands, the nearest to a place."""
    places = [index for index, other in enumerate(lines) if other == line]
    return min(places, key=lambda place: abs(place - at), default=None)


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_fits_the_source(page: Path) -> None:
    assert any(block.language == "diff" for block in blocks_of(page))
    applied(page, ROOT)
    new = [block.file for block in blocks_of(page) if block.how == FILE and block.file and "/" in block.file]
    assert new or "policy" in page.stem
    assert not [file for file in new if (ROOT / file).exists()], "what a recipe adds is not there yet"


@pytest.mark.parametrize(("name", "most"), MOST_FILES.items())
def test_a_new_kind_touches_few_files(name: str, most: int) -> None:
    blocks = blocks_of(ROOT / "docs" / "how-to" / name)
    new = {block.file for block in blocks if block.how == FILE and block.file and "/" in block.file}
    text = "".join(block.text for block in blocks if block.language == "diff")
    touched = new | set(re.findall(r"^\+\+\+ b/(\S+)$", text, re.M))
    assert len(touched) <= most, sorted(touched)


@pytest.mark.parametrize(("name", "works"), IN_PYTHON.items())
def test_a_recipe_in_python_works(name: str, works: str, small_run: Run, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "python", tmp_path / "python", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests" / "python", tmp_path / "tests" / "python", ignore=shutil.ignore_patterns("fixtures"))
    shutil.copytree(ROOT / "benches" / "checks-bite", tmp_path / "benches" / "checks-bite")
    applied(ROOT / "docs" / "how-to" / name, tmp_path, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "python")}
    command = [sys.executable, "-c", HEAD + works, str(small_run.folder)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_recipes_in_rust_compile_and_pass_their_tests() -> None:
    # Always the same folder, so that only what has changed since is compiled.
    tree = ROOT / "target" / "recipes"
    shutil.rmtree(tree, ignore_errors=True)
    for folder in ("crates", "python", "docs", "devices"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    # Under their own version cargo would take what is compiled of them for what this repository's sources give.
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    own = re.compile(rf'((?:^version|raidlab-\w+"\nversion) = )"{re.escape(version)}"', re.M)
    for file, count in (("Cargo.toml", 1), ("Cargo.lock", 0)):
        text = (ROOT / file).read_text(encoding="utf-8")
        (tree / file).write_text(own.sub(rf'\1"{version}-recipes"', text, count=count), encoding="utf-8")
    for name in IN_RUST:
        applied(ROOT / "docs" / "how-to" / name, tree, tree)
    packages = [word for crate in ("array", "load", "device") for word in ("-p", f"raidlab-{crate}")]
    command = ["cargo", "test", "--locked", *packages, "--lib", "--test", "machine_cases", "--", *IN_RUST.values()]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target")}
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [test for test in IN_RUST.values() if f"{test} ... ok" not in done.stdout] == []
