"""Every notebook of the docs runs, and prints what it was committed with; pictures are drawn, not compared."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason="the notebook's tools are not installed here")
nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """`docs/site/notebooks.py`, which belongs to no package."""
    specification = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "site" / "notebooks.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def pictures(cell: Any) -> int:
    return sum("image/svg+xml" in output.get("data", {}) for output in cell.get("outputs", []))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)
@pytest.mark.slow
def test_a_notebook_prints_what_it_shows(
    file: Path, pages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))
    committed = nbformat.read(file, as_version=4)
    run = nbformat.read(file, as_version=4)
    nbclient.NotebookClient(run, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for before, after in zip(committed.cells, run.cells, strict=True):
        assert pages.printed(after) == pages.printed(before), after.source
        assert pictures(after) == pictures(before)
    assert any(pictures(cell) for cell in run.cells), "a notebook of ours draws something"


def test_what_is_printed_in_pieces_is_one_text(pages: ModuleType) -> None:
    def stream(text: str) -> dict[str, Any]:
        return {"output_type": "stream", "text": text}

    value = {"output_type": "execute_result", "data": {"text/plain": "42"}}
    whole = pages.printed({"outputs": [stream("a\nb\n"), value]})
    assert whole == "a\nb\n42"
    assert pages.printed({"outputs": [stream("a\n"), stream("b"), stream("\n"), value]}) == whole


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.name)
def test_pictures_have_words(file: Path) -> None:
    for cell in nbformat.read(file, as_version=4).cells:
        assert not pictures(cell) or cell.metadata.get("alt"), "say what it shows in the cell's metadata"
