"""The documentation against the code: links resolve, and no option, kind or column is missing or invented.

What is generated (`docs/generate.py`) must be up to date. What is written by hand must name everything the engine's own
messages list, and nothing else. The page of the study file has a test of its own (`test_reference.py`).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

import pytest

from raidlab import _core
from raidlab.results.tables import TABLES
from raidlab.study import schema as schema_of
from raidlab.study import workload as workload_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
REFERENCE = ROOT / "docs" / "reference"
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
WIDTH = 125


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """`docs/generate.py`, which belongs to no package."""
    specification = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    broken = []
    for target in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short(page: Path) -> None:
    lines = without_code(page.read_text(encoding="utf-8")).splitlines()
    # A row of a table cannot be broken.
    assert not [line for line in lines if len(line) > WIDTH and not line.startswith("|")]


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page: Path, generate: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == generate.filled(text), "run docs/generate.py"


def test_every_column_has_words_and_no_other(generate: ModuleType) -> None:
    known = {column for columns in TABLES.values() for column in columns}
    known |= {f"{name}.{column}" for name, columns in TABLES.items() for column in columns}
    assert set(generate.COLUMNS) <= known
    for name, columns in TABLES.items():
        for column in columns:
            assert f"{name}.{column}" in generate.COLUMNS or column in generate.COLUMNS, f"{name}.{column}"
    assert set(generate.TABLE_MEANINGS) == set(TABLES)


def test_every_kind_of_a_study_file_is_on_the_page() -> None:
    page = (REFERENCE / "levels-devices-distributions.md").read_text(encoding="utf-8")
    kinds = re.findall(r"of kind `(\w+)`", (REFERENCE / "study-file.md").read_text(encoding="utf-8"))
    assert kinds
    tables = (schema_of.Array, schema_of.Policy, workload_of.OpenLoop)
    words = [word for table in tables for word in literals(table)]
    assert not [kind for kind in kinds + words if f"`{kind}`" not in page]


def literals(annotation: Any) -> Iterator[str]:
    """The words that a type, or the keys of a table, accept."""
    for info in getattr(annotation, "model_fields", {}).values():
        yield from literals(info.annotation)
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif get_origin(annotation) is not None:
        for inner in get_args(annotation):
            yield from literals(inner)


def accepted(call: Any, *arguments: Any) -> set[str]:
    """The names that an error of the engine lists."""
    with pytest.raises(_core.CellError) as caught:
        call(*arguments)
    return {word.strip() for word in str(caught.value).partition("accepted:")[2].split(",")}


def first_column(page: str, heading: str) -> set[str]:
    """The names in the first column of the tables under a heading."""
    part = re.split(rf"^#+ {re.escape(heading)}.*$", page, flags=re.MULTILINE)[1]
    part = re.split(r"^#+ ", part, flags=re.MULTILINE)[0]
    return {
        name for row in re.findall(r"^\| (`[^|]*) \|", part, flags=re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }


@pytest.mark.parametrize(("heading", "tree"), [("Trees", "nosuch(3)"), ("Rotations", "raid5(5, rotation=nosuch)")])
def test_trees_and_rotations_are_those_of_the_engine(heading: str, tree: str) -> None:
    page = (REFERENCE / "levels-devices-distributions.md").read_text(encoding="utf-8")
    assert first_column(page, heading) == accepted(_core.parse_tree, tree)


def test_tree_keys_are_those_of_the_engine() -> None:
    page = (REFERENCE / "levels-devices-distributions.md").read_text(encoding="utf-8")
    for key in accepted(_core.parse_tree, "raid5(5, nosuch=1)"):
        assert key in page


def test_cli_page_names_every_option(generate: ModuleType) -> None:
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for name, command in generate.commands():
        assert f"### {name}\n" in page
        part = page.partition(f"### {name}\n")[2].partition("\n### ")[0]
        for item in command.params:
            if item.param_type_name == "option" and "--help" not in item.opts:
                assert item.opts[0] in part, f"{name} {item.opts[0]}"


def shown_commands() -> Iterator[Any]:
    """The commands whose whole output a page shows, with that output and the studies of the page."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        studies = [
            block
            for block in re.findall(r"^```toml\n(.*?)^```$", text, re.M | re.S)
            if "[sim]" in block or "sim =" in block
        ]
        for command, output in re.findall(r"^```text\n\$ raidlab ([^\n]*)\n(.*?)^```$", text, re.M | re.S):
            own = command.startswith(("run ", "study show ")) and "error:" not in output
            if command.startswith(("layout", "plan-io")) or own:
                yield pytest.param(command, output, studies, id=f"{page.relative_to(ROOT)}-{command}")


def raidlab(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command line on a terminal of 80 columns."""
    return subprocess.run(
        [sys.executable, "-c", "from raidlab.cli import main; main()", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "80"},
    )


@pytest.mark.parametrize(("command", "output", "studies"), list(shown_commands()))
def test_commands_print_what_the_pages_show(command: str, output: str, studies: list[str], tmp_path: Path) -> None:
    words = shlex.split(command)
    if words[0] in ("run", "study"):
        (tmp_path / words[-1]).write_text(studies[0], encoding="utf-8")
    done = raidlab(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.strip().splitlines()] == output.strip().splitlines()


def test_mistakes_are_told_as_the_tutorial_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    study = re.findall(r"^```toml\n(.*?)^```$", page, re.M | re.S)[0]
    wrong = study.replace("raid6(6,", "raid6(3,").replace("read = ", "reed = ")
    (tmp_path / "wrong.toml").write_text(wrong, encoding="utf-8")
    done = raidlab("run", "wrong.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert f"$ raidlab run wrong.toml\n{done.stderr}```" in page


@pytest.mark.slow
def test_arrays_are_compared_as_the_page_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "choose-a-level.md").read_text(encoding="utf-8")
    (tmp_path / "six-disks.toml").write_text(
        re.findall(r"^```toml\n(.*?)^```$", page, re.M | re.S)[0], encoding="utf-8"
    )
    found = re.search(r"^```text\n\$ raidlab (results compare [^\n]*)\n(.*?)^```$", page, re.M | re.S)
    assert found is not None
    command, shown = found.groups()
    for words in (["run", "six-disks.toml"], shlex.split(command)):
        done = raidlab(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    # The page leaves lines out, and shows where.
    for part in shown.split("...\n"):
        assert part in done.stdout
