"""The reference pages: study files are what the schema says, and calls say what their parameters are."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import python_api
import study_file

import raidlab


def test_the_page_is_up_to_date() -> None:
    assert study_file.PAGE.read_text(encoding="utf-8") == study_file.page(), "run docs/generate.py"


def test_every_key_has_a_meaning() -> None:
    rows = [line for line in study_file.page().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert all(not line.endswith("|  |") for line in rows)


def documented_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """What the Python page shows with a signature."""
    public = [f"raidlab.{name}" for name in raidlab.__all__ if not name.startswith("__")]
    for name in [*public, *(name for names in python_api.CHAPTERS.values() for name in names)]:
        room, _, last = name.rpartition(".")
        thing = getattr(importlib.import_module(room), last)
        if inspect.isclass(thing):
            yield from ((f"{name}.{word}", method) for word, method in python_api._methods(thing))
        else:
            yield name, thing


@pytest.mark.parametrize(("name", "call"), [pytest.param(*one, id=one[0]) for one in documented_calls()])
def test_every_parameter_is_described(name: str, call: Callable[..., Any]) -> None:
    _, _, section = (inspect.getdoc(call) or "").partition("Parameters\n----------\n")
    heads = [line.partition(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    described = {word.strip("* ") for head in heads for word in head.split(",")}
    assert set(inspect.signature(call).parameters) - {"self", "cls"} <= described, name
