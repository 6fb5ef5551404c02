"""Every example on the pages is run as a reader would run it, or read by the parser that the reader would meet.

- A page's ``bash`` and ``python`` blocks are run one after the other, in one folder of the page's own, beside the files
  that the page says to save and those of `GIVEN`. Runs that it names by a folder are there.
- Where a comment says ``parsed only`` (needs disks, takes minutes), each `raidlab` command is read by the parser of the
  command line, each target of `make` and each file must be there. So are commands in blocks of output.
- ``toml``: a study is loaded and checked; a part of one is put into a study; the rest is read by what reads such files.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from doc_blocks import FILE, LEFT, PAGES, PARSED, ROOT, RUN, Block, blocks_of, name_of
from raidlab.cli.app import app
from raidlab.published.rules import load_choice
from raidlab.published.scorecard.facts import FactsFile
from raidlab.results import Run
from raidlab.study import Study, load_study
from raidlab.study.device import load_device
from raidlab.study.mapping import Columns, Quantities
from raidlab.study.parameters import load_parameters

# What a page takes for granted that its reader has.
GIVEN = {
    "web_0.csv": "".join(
        f"{128166372003061629 + 40_000 * place},web,0,{'Read' if place % 3 else 'Write'},{8192 * place},8192,1000\n"
        for place in range(400)
    ),
    "job.fio": "[job]\nfilename=data\nsize=64m\nrw=randread\nbs=4k\nruntime=1\ntime_based=1\n",
}
# A verdict of INVALID is the machine's, not the page's.
FINE = (0, 3)
NAMED_RUN = re.compile(r"runs/([\w-]+?)-\d{4}-\d\d-\d\d-\d{3}")


def with_blocks(language: str) -> list[Any]:
    return [
        pytest.param(page, id=name_of(page))
        for page in PAGES
        if any(block.language == language and block.how == RUN for block in blocks_of(page))
    ]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder as a reader has it: what is given, the studies and devices, and `raidlab` in the path."""
    for name, text in GIVEN.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for folder in ("studies", "devices"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "raidlab"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m raidlab "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return tmp_path


def run(command: list[str], place: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]),
        "COLUMNS": "80",
    }
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=600)
    if "io_uring" in done.stderr and done.returncode == 1:
        pytest.skip(f"no io_uring here: {done.stderr.strip()}")
    assert done.returncode in FINE, f"{command[-1]}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", with_blocks("bash"))
@pytest.mark.slow
def test_commands_of_a_page_run(page: Path, place: Path) -> None:
    for block in blocks_of(page):
        if block.how == FILE:
            continue
        if block.file is not None:
            (place / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "text" and block.text.startswith("$ raidlab run "):
            # A page that shows what a run prints has run it; what it prints is compared by test_docs.py.
            first = block.text.splitlines()[0].removeprefix("$ ")
            if (place / first.split()[2]).exists():
                run(["bash", "-c", first], place)
        elif block.language == "bash" and block.how == RUN:
            # Each line must do: only the last one's status would count.
            run(["bash", "-c", f"trap 's=$?; [ $s = 3 ] || exit $s' ERR\n{block.text}"], place)


@pytest.mark.parametrize("page", with_blocks("python"))
@pytest.mark.slow
def test_programs_of_a_page_run(page: Path, place: Path, small_run: Run) -> None:
    text = page.read_text(encoding="utf-8")
    for name in {found[0] for found in NAMED_RUN.finditer(text)}:
        shutil.copytree(small_run.folder, place / name)
    programs = [block.text for block in blocks_of(page) if block.language == "python" and block.how == RUN]
    sessions = [program for program in programs if program.startswith(">>>")]
    for session in sessions:
        test = doctest.DocTestParser().get_doctest(session, {}, name_of(page), str(page), 0)
        assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0
    run([sys.executable, "-c", "\n".join(program for program in programs if program not in sessions)], place)


COMMANDS = typer.main.get_command(app)


def read_by_the_parser(words: list[str]) -> None:
    """Have the command line read its words, without running anything."""
    if {"-h", "--help", "--install-completion", "--show-completion"} & set(words):
        return
    context = COMMANDS.make_context(words[0], words[1:])
    while isinstance(context.command, TyperGroup):
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page)) for page in PAGES])
def test_commands_that_are_not_run_are_commands(page: Path) -> None:
    for block in blocks_of(page):
        shown = block.language == "text" or (block.language == "bash" and block.how == PARSED)
        for words in block.commands() if shown else ():
            # A page may show a mistake, with what is said of it.
            if words[0] == "raidlab" and not (block.language == "text" and "error:" in block.text):
                try:
                    read_by_the_parser(words)
                except typer.TyperException as error:
                    pytest.fail(f"{' '.join(words)}: {error}")
            elif words[0] == "make":
                assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), words
            elif words[0].endswith("python") and words[1] != "-m":
                assert (ROOT / words[1]).exists(), words


def test_nothing_is_left_out_without_a_reason() -> None:
    left = [block.text for page in PAGES for block in blocks_of(page) if block.how == LEFT]
    assert all("raidlab " not in text or "make setup" in text for text in left), "commands can at least be parsed"


def toml_blocks() -> list[Any]:
    return [
        pytest.param(block, id=f"{name_of(page)}-{index}")
        for page in PAGES
        for index, block in enumerate(one for one in blocks_of(page) if one.language == "toml" and one.how == RUN)
    ]


@pytest.mark.parametrize("block", toml_blocks())
def test_toml_is_what_it_says(block: Block, place: Path) -> None:
    document = tomllib.loads(block.text)
    file = place / "study.toml"
    file.write_text(block.text, encoding="utf-8")
    if "parameter" in document:
        file.rename(place / "page.parameters.toml")
        load_parameters("page.parameters.toml", place / "study.toml")
    elif "box" in document:
        FactsFile.model_validate(document)
    elif {"rule", "candidate"} & document.keys():
        file.rename(place / "choice.toml")
        load_choice(file)
    elif isinstance(document.get("table"), dict):
        Columns.model_validate({"table": [{"file": "chart.csv", "key": {"chart": "chart"}, **document["table"]}]})
    elif "table" in document:
        Columns.model_validate(document)
    elif {"measure", "claim", "fit", "derived", "given", "conclusion"} & document.keys():
        Quantities.model_validate({"target": "original", **document})
    elif document.keys() == {"power"}:
        load_device({"like": "hdd-7200", **document}, file)
    elif "like" in document:
        load_device(str(file), file)
    elif "array" in document and "name" in document:
        load_study(file)
    else:
        base = tomllib.loads((ROOT / "studies" / "quickstart" / "study.toml").read_text(encoding="utf-8"))
        if document.keys() <= {"trace"}:
            document = {"workload": [{"name": "replayed", **document}]}
        if "array" in document:
            document["array"] = [*base["array"], *document["array"]]
        Study.model_validate({**base, **document})
