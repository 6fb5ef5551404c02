"""What MkDocs does not do by itself: pages from outside docs/, notebooks as pages, wildcards in the navigation.

Invariants:

- A page reads the same in the source tree and on the site; nothing is written for the site alone but `index.md`.
- A link that leaves docs/ becomes a page of the site, or the path in the source tree; it never dies.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parent))
from notebooks import images_of, page_of

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Pages that lie at the top of the source tree, where people and source forges look for them.
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
# The page in which the simulator runs, where `make web` has built it; in the tree a link to it is one to its template.
SIMULATOR = ROOT / "python" / "raidlab" / "report" / "simulator.html"
TEMPLATE = "docs/site/simulator/page.html.j2"
LINK = re.compile(r"(?<!`)(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Replace `folder/*` in the navigation by the pages of that folder that have no place of their own."""
    named = set(_pages_in(config.nav))
    config.nav = _expanded(config.nav, named)
    return config


def _pages_in(item: Any) -> list[str]:
    if isinstance(item, str):
        return [item]
    parts = item.values() if isinstance(item, dict) else item
    return [page for part in parts for page in _pages_in(part)]


def _expanded(item: Any, named: set[str]) -> Any:
    if isinstance(item, dict):
        return {title: _expanded(part, named) for title, part in item.items()}
    if isinstance(item, str):
        return item
    out: list[Any] = []
    for part in item:
        if isinstance(part, str) and part.endswith("/*"):
            out += [page for page in _pages_below(part[:-2]) if page not in named]
        else:
            out.append(_expanded(part, named))
    # A section without pages would be shown empty.
    return [part for part in out if not (isinstance(part, dict) and list(part.values()) == [[]])]


def _pages_below(folder: str) -> list[str]:
    found = sorted([*(DOCS / folder).glob("*.md"), *(DOCS / folder).glob("*.ipynb")])
    return [f"{folder}/{file.stem}.md" for file in found]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/, and the notebooks."""
    for source, target in OUTSIDE.items():
        if source != "README.md":
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, target, content=_links_made_inner(text, source, target)))
    if SIMULATOR.exists():
        files.append(File.generated(config, SIMULATOR.name, abs_src_path=str(SIMULATOR)))
    for file in sorted(DOCS.rglob("*.ipynb")):
        place = file.relative_to(DOCS).with_suffix("")
        notebook = json.loads(file.read_text(encoding="utf-8"))
        text = _links_made_inner(page_of(notebook, file.name, place.name), f"docs/{place}.md", f"{place}.md")
        files.append(File.generated(config, f"{place}.md", content=text))
        for name, content in images_of(notebook, place.name):
            files.append(File.generated(config, f"{place.parent}/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Mend the links that leave docs/."""
    if page.file.generated_by is not None:
        return markdown
    return _links_made_inner(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


def _links_made_inner(text: str, source: str, target: str) -> str:
    """The text of `source` (a path in the tree), with its links as those of the page `target`."""

    def inner(found: re.Match[str]) -> str:
        mark, words, link = found.groups()
        if re.match(r"[a-z]+:|#", link):
            return found[0]
        path, hash_, anchor = link.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if place in OUTSIDE:
            place = f"docs/{OUTSIDE[place]}"
        if place == TEMPLATE and SIMULATOR.exists():
            place = f"docs/{SIMULATOR.name}"
        if not place.startswith("docs/") or place == TEMPLATE:
            return f"{words} (`{place}`)" if words.strip("`") != place else f"`{place}`"
        # A notebook from elsewhere is its page; beside the page, it is the file to take along.
        if "/" in path and place.endswith(".ipynb"):
            place = f"{place.removesuffix('.ipynb')}.md"
        relative = posixpath.relpath(place.removeprefix("docs/"), posixpath.dirname(target) or ".")
        return f"{mark}[{words}]({relative}{hash_}{anchor})"

    # What stands in a fence is no link.
    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(inner, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, LINK.sub(inner, text[at:])])
