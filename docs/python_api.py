"""The reference of the Python API, from signatures and docstrings (numpy's convention).

Invariant: what is listed here is what `raidlab.__all__` names, and what these functions take and give.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

# What a reader of a run meets, by chapter; the first chapter is filled from `raidlab.__all__`.
CHAPTERS: dict[str, tuple[str, ...]] = {
    "Run, load, analyse": (),
    "What is worked out": (
        "raidlab.analysis.metrics.Analysis",
        "raidlab.analysis.metrics.Point",
        "raidlab.analysis.metrics.Metric",
        "raidlab.analysis.metrics.Comparison",
        "raidlab.analysis.metrics.run_comparison.RunComparison",
        "raidlab.histogram.Histogram",
        "raidlab.analysis.checks.run_checks",
        "raidlab.analysis.checks.Finding",
    ),
    "Figures": ("raidlab.report.figures.make_figures", "raidlab.report.figures.Figure", "raidlab.report.figures.Panel"),
    "Errors": (
        "raidlab.errors.RaidlabError",
        "raidlab.errors.InputError",
        "raidlab.errors.RefusedError",
        "raidlab.errors.OutputError",
        "raidlab.errors.CellFailedError",
    ),
}
_WIDTH = 119
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def lines() -> list[str]:
    """Every object, chapter by chapter."""
    import raidlab

    public = [f"raidlab.{name}" for name in raidlab.__all__ if not name.startswith("__")]
    found: list[str] = []
    for chapter, names in CHAPTERS.items():
        found += [f"## {chapter}", ""]
        for name in names or public:
            found += _object(name)
    return found


def _object(name: str) -> Iterator[str]:
    room, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(room), last)
    yield f"### {name}"
    yield ""
    if not inspect.isclass(thing):
        yield from _code(name, thing)
        yield from _text(thing)
        return
    yield from _text(thing)
    if dataclasses.is_dataclass(thing) and "Attributes\n---" not in (inspect.getdoc(thing) or ""):
        yield from ["*Attributes*", "", *(f"- `{one.name}` ({one.type})" for one in dataclasses.fields(thing)), ""]
    rows = sorted(_properties(thing))
    if rows:
        yield from ["| attribute | is |", "|---|---|", *(f"| `{word}` | {meaning} |" for word, meaning in rows), ""]
    for word, method in _methods(thing):
        yield from _code(f"{last}.{word}", method)
        yield from _text(method)


def _code(name: str, call: Callable[..., Any]) -> list[str]:
    """A call as it stands in Python, on several lines where it is long."""
    signature = inspect.signature(call)
    parameters, kind = [], None
    for one in signature.parameters.values():
        if one.name == "self":
            continue
        if one.kind is inspect.Parameter.KEYWORD_ONLY and kind is not one.kind:
            parameters.append("*")
        kind = one.kind
        has_default = one.default is not inspect.Parameter.empty
        shown = one.name if one.annotation is inspect.Parameter.empty else f"{one.name}: {one.annotation}"
        parameters.append(f"{shown} = {one.default!r}" if has_default else shown)
    back = "" if signature.return_annotation is inspect.Signature.empty else f" -> {signature.return_annotation}"
    text = f"{name}({', '.join(parameters)}){back}"
    if len(text) > _WIDTH:
        text = "\n".join([f"{name}(", *(f"    {part}," for part in parameters), f"){back}"])
    return ["```text", text, "```", ""]


def _own(thing: type) -> Iterator[tuple[str, Any]]:
    """What a class and those of raidlab below it define, the nearest first."""
    seen: set[str] = set()
    for base in thing.__mro__:
        if base.__module__.startswith("raidlab"):
            for word, value in vars(base).items():
                if not word.startswith("_") and word not in seen:
                    seen.add(word)
                    yield word, value


def _properties(thing: type) -> Iterator[tuple[str, str]]:
    for word, value in _own(thing):
        if isinstance(value, property) or type(value).__name__ == "cached_property":
            yield word, _sentence(inspect.getdoc(value) or "")


def _methods(thing: type) -> list[tuple[str, Any]]:
    found = []
    for word, value in _own(thing):
        call = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(call):
            found.append((word, getattr(thing, word)))
    return found


def _text(thing: Any) -> list[str]:
    """A docstring as Markdown: its words, then its sections as lists."""
    parts = _SECTION.split((inspect.getdoc(thing) or "").strip())
    found = [line for part in _marked(parts[0].strip()).split("\n\n") for line in (*_wrapped(part), "")]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title == "Examples":
            found += ["```pycon", body.strip("\n"), "```", ""]
            continue
        found += [f"*{title}*", "", *_items(body), ""]
    return found


def _items(body: str) -> list[str]:
    """`name : type` with an indented meaning below, as a list."""
    items: list[str] = []
    for line in body.strip("\n").splitlines():
        if line.startswith(" "):
            items[-1] += f" {_marked(line.strip())}"
        elif line.strip():
            head, colon, kind = line.partition(" : ")
            items.append(f"- `{head.strip()}`{f' ({kind})' if colon else ''}:")
    return [line for item in items for line in _wrapped(item.removesuffix(":"), "  ")]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _marked(text: str) -> str:
    return text.replace("``", "`")


def _sentence(text: str) -> str:
    return _marked(" ".join(text.split("\n\n", maxsplit=1)[0].split())).replace("|", "\\|")
