"""The reference names every level, device, distribution, metric, check, figure and command of the code, and no other.

The generated parts are made from these very lists; here they are read back from the pages as a reader does, and the
engine is asked for its own words, so that a list that is generated from the wrong place is found too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from raidlab import _core
from raidlab.analysis.checks import CHECKS
from raidlab.analysis.metrics import METRICS
from raidlab.cli.app import app
from raidlab.errors import EXIT_CODES
from raidlab.published.quantities import KINDS as QUANTITIES
from raidlab.report.export import EXPORTS
from raidlab.report.figures import FIGURES
from raidlab.study import device, schema, workload

ROOT = Path(__file__).resolve().parents[2]
NAMES = "reference/levels-devices-distributions.md"


def rows_under(page: str, heading: str) -> set[str]:
    """The first column of the tables under a heading, up to the next one, without backticks."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (part,) = re.findall(rf"^(#+) {re.escape(heading)}[^\n]*\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    without_heads = re.sub(r"^\|[^\n]*\n\|[-|]+\n", "", part[1], flags=re.M)
    cells = re.findall(r"^\| ([^|]+?) \|", without_heads, re.M)
    return {name.strip("`") for cell in cells for name in cell.split(", ")}


def kinds(union: Any) -> set[str]:
    """The kinds of a union of tables."""
    if hasattr(union, "model_fields"):
        return {str(get_args(union.model_fields["kind"].annotation)[0])}
    return {kind for part in get_args(union) if hasattr(part, "model_fields") or get_args(part) for kind in kinds(part)}


def of_the_engine(call: Any, *arguments: str) -> set[str]:
    with pytest.raises(_core.CellError) as caught:
        call(*arguments)
    return {word.strip() for word in str(caught.value).partition("accepted:")[2].split(",")}


def commands(command: Any, name: str) -> Iterable[str]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name
    for word, child in (inner or {}).items():
        yield from commands(child, f"{name} {word}")


@pytest.mark.parametrize(
    ("page", "heading", "listed"),
    [
        (NAMES, "Sizes", kinds(workload.Size)),
        (NAMES, "Addresses", kinds(workload.Address)),
        (NAMES, "Mirror reads", kinds(schema.MirrorRead)),
        (NAMES, "Metrics", {metric.kind for metric in METRICS}),
        (NAMES, "Figures", {module.KIND for module in FIGURES}),
        (NAMES, "Quantities", set(QUANTITIES)),
        ("reference/checks.md", "All of them", {module.NAME for module in CHECKS}),
        ("reference/cli.md", "Exit codes", {str(code) for code in EXIT_CODES}),
    ],
)
def test_a_page_lists_what_the_code_lists(page: str, heading: str, listed: set[str]) -> None:
    assert rows_under(page, heading) == listed


def test_levels_are_those_of_the_engine() -> None:
    assert rows_under(NAMES, "Trees") == of_the_engine(_core.parse_tree, "nosuch(3)")


def test_device_kinds_are_those_of_the_engine() -> None:
    assert set(device.KINDS) == of_the_engine(_core.device_facts, '{"kind": "nosuch"}')
    text = (ROOT / "docs" / NAMES).read_text(encoding="utf-8")
    assert [kind for kind in device.KINDS if f"**`{kind}`**" not in text] == [], "each has a table of its keys"


def test_every_device_that_comes_along_is_listed() -> None:
    folder = ROOT / "devices"
    names = {str(file.relative_to(folder).with_suffix("")) for file in folder.rglob("*.toml")}
    devices = {name for name in names if not name.endswith(".parameters")}
    assert devices <= rows_under(NAMES, "Device models")


def test_every_command_has_a_heading() -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### (raidlab .*)$", text, re.M)) == set(commands(typer.main.get_command(app), "raidlab"))


def test_every_export_is_described() -> None:
    text = (ROOT / "docs" / "how-to" / "use-results-elsewhere.md").read_text(encoding="utf-8")
    assert [kind for kind in EXPORTS if f"`{kind}`" not in text] == []
