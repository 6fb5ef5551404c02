"""The reference page of study files, from the types, defaults and docstrings of the schema.

.venv/bin/python docs/generate.py            # writes docs/reference/study-file.md too
.venv/bin/python docs/generate.py --check    # status 1 if it is not up to date
"""

from __future__ import annotations

import sys
import types
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from raidlab.study.schema import Study
from raidlab.study.units import (
    BYTES_ACCEPTED,
    TIME_ACCEPTED,
    format_bytes,
    format_time_ns,
    parse_bytes,
    parse_moment_ns,
    parse_rate_per_s,
    parse_time_ns,
)

PAGE = Path(__file__).resolve().parent / "reference" / "study-file.md"
_HEAD = """\
# The study file

A study file is TOML. This page is made from the schema (`docs/generate.py`); the commented example to start from is
`studies/quickstart/study.toml`, and `raidlab study show FILE` checks a file without running it.

- Sizes: {sizes}; KiB is 1024 and kB 1000; a lone k is 1024, as in fio.
- Times: {times}.
- Unknown keys are errors.
"""
_MOMENT = "time from 0"
_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): "nothing"}


def page() -> str:
    """The whole page, as Markdown."""
    return page_of(Study, _HEAD.format(sizes=BYTES_ACCEPTED, times=TIME_ACCEPTED))


def page_of(file: type[BaseModel], head: str, elsewhere: Collection[type[BaseModel]] = ()) -> str:
    """The page of a file: what is above its tables, and the tables but for those told of elsewhere."""
    lines = [head]
    for name, model in _tables(file, "The file", set(elsewhere)):
        lines += [f"## {name}", "", _first_line(model), ""]
        fields = [(key, info) for key, info in model.model_fields.items() if key != "kind"]
        if fields:
            lines += [*table(("key", "accepts", "default", "meaning"), [_row(key, info) for key, info in fields]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _tables(model: type[BaseModel], name: str, seen: set[type[BaseModel]] | None = None) -> Iterator[tuple[str, Any]]:
    """Every table, each once, in the order in which a reader meets them."""
    found = set[type[BaseModel]]() if seen is None else seen
    found.add(model)
    yield name, model
    for key, info in model.model_fields.items():
        for inner in _models(info.annotation, info.metadata):
            if inner not in found:
                kind = inner.model_fields.get("kind")
                word = f"`{key}`" if kind is None else f"`{key}` of kind `{get_args(kind.annotation)[0]}`"
                yield from _tables(inner, word, found)


def _models(annotation: Any, metadata: Any = ()) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) if not isinstance(inner, str) for model in _models(inner)]


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """A Markdown table; upright strokes in cells are escaped."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in (head, *rows)]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def _row(key: str, info: FieldInfo) -> tuple[str, ...]:
    words = accepts(info.annotation, info.metadata)
    default = "required" if info.is_required() else _default(info.default, words)
    return f"`{key}`", words, default, " ".join((info.description or "").split()).replace("``", "`")


def accepts(annotation: Any, metadata: Any = ()) -> str:
    """A type in the words of a study file."""
    readers = [getattr(item, "func", None) for item in metadata]
    if parse_bytes in readers:
        return "size"
    if parse_time_ns in readers:
        return "time"
    if parse_moment_ns in readers:
        return _MOMENT
    if parse_rate_per_s in readers:
        return "rate"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return accepts(arguments[0], arguments[1:])
    if origin is Literal:
        return " | ".join(f"`{value}`" for value in arguments)
    if origin is list:
        return f"list of {accepts(arguments[0])}"
    if origin is dict:
        return "table"
    if origin in (Union, types.UnionType):
        parts = dict.fromkeys(accepts(inner) for inner in arguments if inner is not type(None))
        return " or ".join(parts)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table" if "kind" not in annotation.model_fields else "kind or table"
    return _PLAIN.get(annotation, str(annotation)) + _limit(metadata)


def _limit(metadata: Any) -> str:
    """The greatest value of a count that has one worth telling."""
    for item in metadata:
        found = _limit(item.metadata) if isinstance(item, FieldInfo) else ""
        most = getattr(item, "le", None)
        if isinstance(most, int | float) and most > 1:
            found = f" up to {most:g}" if isinstance(most, float) else f" up to {most}"
        if found:
            return found
    return ""


def _default(value: Any, words: str) -> str:
    if value is None or value in ("", []):
        return "-"
    if isinstance(value, BaseModel):
        shown = value.model_dump(exclude_none=True, exclude_defaults=True)
        if "kind" in shown:
            return f"`{shown['kind']}`"
        return ", ".join(_shown(shown)) or "as below"
    if words == "list of size":
        return ", ".join(map(format_bytes, value))
    is_time = words in ("time", _MOMENT)
    return format_bytes(value) if words == "size" else format_time_ns(value) if is_time else f"`{value}`"


def _shown(table: dict[str, Any]) -> Iterator[str]:
    """The keys of a table, those of tables within it behind their names."""
    words = {"duration": format_time_ns}
    for key, item in table.items():
        yield f"{key} {', '.join(_shown(item)) if isinstance(item, dict) else words.get(key, str)(item)}"


def _first_line(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split()).replace("``", "`")


def main() -> int:
    """Write the page, or check it."""
    return write(PAGE, page())


def write(file: Path, text: str) -> int:
    """Write a page, or check it."""
    is_current = file.is_file() and file.read_text(encoding="utf-8") == text
    if "--check" not in sys.argv:
        file.write_text(text, encoding="utf-8")
    elif not is_current:
        print(f"docs/reference/{file.name} is not up to date: run docs/generate.py")
    return 0 if is_current or "--check" not in sys.argv else 1
