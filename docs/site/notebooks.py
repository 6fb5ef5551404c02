"""A notebook as a page: its words, its code, and what the code printed and drew when it was last run.

Invariant: nothing is run here. `tests/python/test_notebooks.py` runs every notebook and compares what it prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEAD = "<!-- made from {file} -->\n\n*This page is a notebook; [get it]({file}) and run it.*\n"
# What a cell can show, the best first.
IMAGE, TEXT = "image/svg+xml", "text/plain"


def page_of(notebook: dict[str, Any], file: str, name: str) -> str:
    """The notebook as Markdown; its title comes first, the way to the notebook after it."""
    parts: list[str] = []
    for index, cell in enumerate(notebook["cells"]):
        text = _joined(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif text:
            parts.append(f"```python\n{text}\n```")
        parts += _shown(cell, f"{name}-{index}")
        if index == 0:
            parts.append(HEAD.format(file=file))
    return "\n\n".join(parts) + "\n"


def images_of(notebook: dict[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """The pictures of a notebook: their file names and contents."""
    for index, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", []):
            if IMAGE in output.get("data", {}):
                yield f"{name}-{index}.svg", _joined(output["data"][IMAGE])


def printed(cell: dict[str, Any]) -> str:
    """What a cell printed, its last value included; pictures are left out.

    A kernel sends what is printed in as many pieces as its buffer was emptied between: a busy machine cuts
    one table into two outputs, which are one text.
    """
    text = ""
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if output["output_type"] == "stream":
            text += _joined(output["text"])
        elif TEXT in data and IMAGE not in data:
            text = _line_ended(text) + _joined(data[TEXT])
    return text.rstrip("\n")


def _line_ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _shown(cell: dict[str, Any], name: str) -> list[str]:
    parts = []
    if text := printed(cell):
        parts.append(f"```text\n{text}\n```")
    if any(IMAGE in output.get("data", {}) for output in cell.get("outputs", [])):
        parts.append(f"![{_alt(cell)}]({name}.svg)")
    return parts


def _alt(cell: dict[str, Any]) -> str:
    """What a picture shows, which the notebook says in the metadata of its cell."""
    return str(cell.get("metadata", {}).get("alt", "figure"))


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
