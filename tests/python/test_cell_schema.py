"""One vocabulary on both sides of the border to Rust.

The engine refuses a key that it does not know and says which it does: so its own door tells what its structs are, and
no second list of them is kept. Every table of `raidlab.study.cell` is held against that, key by key and word by word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest

from raidlab import _core
from raidlab.study.cell import ArrayCell, DirectCell, FilesCell, StreamsCell
from raidlab.study.words import Table

CRATES = Path(__file__).parents[2] / "crates"
UNKNOWN = "no such key"
# Told by the engine of the cell, of which each has its own door.
_ENGINE = "engine"
# An enum in Rust, of which a table of the study is one variant.
_VARIANTS = {"volumes"}
# Of these the engine tells in other words what it accepts.
_NUMBER_OR_WORD = {"align", "block_bytes"}

CELLS = ((ArrayCell, "sim"), (DirectCell, "direct"), (FilesCell, "files"), (StreamsCell, "streams"))

Wrap = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Place:
    """A table of the cell: where it stands, what it is, and how a cell is made with something else in its place."""

    where: str
    table: type[Table]
    wrap: Wrap


def _complaint(cell: dict[str, Any]) -> str:
    """What the engine has against a cell of which nothing is sound but the way to one place."""
    with pytest.raises(_core.CellError) as caught:
        _core.run_cell(json.dumps(cell))
    return str(caught.value.message)


def _keys_known(place: Place) -> set[str]:
    """The keys that the engine knows there."""
    kind = place.table.model_fields.get("kind")
    told = _complaint(place.wrap({**({} if kind is None else {"kind": get_args(kind.annotation)[0]}), UNKNOWN: 0}))
    # A variant without fields takes no notice.
    _, found, known = told.partition(f"unknown field `{UNKNOWN}`, ")
    return (set(re.findall(r"`(\w+)`", known)) if found else set()) | ({"kind"} if kind is not None else set())


def _words_known(wrap: Wrap) -> set[str]:
    """The words that the engine knows there."""
    known = _complaint(wrap("no-such-word")).partition("accepted: ")[2]
    return {word for word in re.findall(r"\w+", known) if word != "or"}


def _unwrapped(annotation: Any) -> Iterator[Any]:
    """What may stand in a field, besides nothing."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _unwrapped(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for one in get_args(annotation):
            yield from _unwrapped(one)
    elif annotation is not NoneType:
        yield annotation


def _places(table: type[Table], where: str, wrap: Wrap) -> Iterator[Place]:
    """Every table of a cell, from the outermost."""
    yield Place(where, table, wrap)
    for key, field in table.model_fields.items():
        if key not in _VARIANTS:
            kind = {"kind": get_args(table.model_fields["kind"].annotation)[0]} if "kind" in table.model_fields else {}
            yield from _below(
                field.annotation, f"{where}.{key}", lambda value, k=key, kind=kind: wrap({**kind, k: value})
            )


def _below(annotation: Any, where: str, wrap: Wrap) -> Iterator[Place]:
    for one in _unwrapped(annotation):
        if get_origin(one) is list:
            yield from _below(get_args(one)[0], f"{where}[0]", lambda value: wrap([value]))
        elif isinstance(one, type) and issubclass(one, Table):
            yield from _places(one, where, wrap)


def _all() -> list[Place]:
    found: list[Place] = []
    for table, engine in CELLS:
        found += _places(
            table, engine, lambda value, e=engine: {**value, _ENGINE: e} if isinstance(value, dict) else {}
        )
    return found


PLACES = _all()


@pytest.mark.parametrize("place", PLACES, ids=[f"{place.where}-{place.table.__name__}" for place in PLACES])
def test_every_table_of_a_cell_is_the_struct_that_the_engine_reads(place: Place) -> None:
    # Engines that are told apart before their cell is read do not list the word that does it.
    assert set(place.table.model_fields) - {_ENGINE} == _keys_known(place) - {_ENGINE}


def test_the_walk_comes_to_the_tables_of_the_study() -> None:
    names = {place.table.__name__ for place in PLACES}
    assert {
        "DrawnRequests",
        "PathVisit",
        "CellCache",
        "HostCost",
        "FileSystemShape",
        "LognormalSize",
        "TapeEnd",
        "ConnectionEnd",
        "FilesMeasure",
        "MadeFiles",
    } <= names
    assert len(PLACES) > 60


def test_every_kind_and_word_of_a_cell_is_one_of_the_engine() -> None:
    wrong = []
    kinds: dict[str, set[str]] = {}
    wraps: dict[str, Wrap] = {}
    for place in PLACES:
        tag = place.table.model_fields.get("kind")
        if tag is not None:
            kinds.setdefault(place.where, set()).update(get_args(tag.annotation))
            wraps[place.where] = lambda word, wrap=place.wrap: wrap({"kind": word})
        for key, field in place.table.model_fields.items():
            words = {
                word for one in _unwrapped(field.annotation) if get_origin(one) is Literal for word in get_args(one)
            }
            words = {word for word in words if isinstance(word, str)}
            if key in ("kind", _ENGINE) or key in _VARIANTS or key in _NUMBER_OR_WORD or not words:
                continue
            own = {} if tag is None else {"kind": get_args(tag.annotation)[0]}
            known = _words_known(lambda word, p=place, k=key, own=own: p.wrap({**own, k: word}))
            wrong += [f"{place.where}.{key}: {words - known}"] if words - known else []
    wrong += [
        f"{where}: {own} and {known}" for where, own in kinds.items() if own != (known := _words_known(wraps[where]))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_field_in_rust_is_called_as_its_key_with_the_unit_at_most() -> None:
    units = {"bytes", "s", "ms", "us", "fraction"}
    renamed = re.compile(r'#\[serde\(rename = "(\w+)"[^\n]*\n(?:\s*#\[serde[^\n]*\n)*\s*(?:pub )?(\w+):')
    found = []
    for file in CRATES.glob("*/src/**/*.rs"):
        for key, name in renamed.findall(file.read_text(encoding="utf-8")):
            if not name.startswith("_"):
                found.append((file.name, key, name))
    assert len(found) > 30
    for file_name, key, name in found:
        plain = [word for word in name.split("_") if word not in units]
        assert "_".join(plain) in (key, f"{key}s"), f"{file_name}: {key} is {name}"
