"""Whether a built site can be read with the network cut: nothing on its pages is fetched from elsewhere.

    .venv/bin/python docs/site/check.py site

Prints every reference to another host but plain links (`<a href>`, which a reader follows or not), and every reference
to a file that is not there; status 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ELSEWHERE = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
# Attributes by which a browser fetches something by itself.
FETCHED = {"src", "srcset", "data", "poster", "background"}
# `<link>`s that are fetched, or prepare for it; others (canonical, prev, next) only say something.
FETCHING_LINKS = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "modulepreload",
    "manifest",
    "apple-touch-icon",
}
IN_STYLES = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")


class References(HTMLParser):
    """What a page fetches, and what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.linked: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sort a tag's attributes."""
        values = {name: value or "" for name, value in attrs}
        self.fetched += [value.split()[0] for name, value in values.items() if name in FETCHED and value.strip()]
        if tag == "link" and set(values.get("rel", "").split()) & FETCHING_LINKS:
            self.fetched.append(values.get("href", ""))
        if tag in ("use", "image"):
            self.fetched += [values[name] for name in ("href", "xlink:href") if name in values]
        if tag == "a" and "href" in values:
            self.linked.append(values["href"])
        self.fetched += styled(values.get("style", ""))


def styled(text: str) -> list[str]:
    """What a style sheet fetches."""
    return [one or two for one, two in IN_STYLES.findall(text)]


def problems_of(site: Path) -> list[str]:
    """One line a reference that fails without a network, or leads nowhere."""
    found = []
    for page in sorted(site.rglob("*.html")):
        references = References()
        references.feed(page.read_text(encoding="utf-8"))
        name = page.relative_to(site)
        for reference in references.fetched:
            if ELSEWHERE.match(reference):
                found.append(f"{name}: fetches {reference}")
        # The page for what is not found is served from any folder, so that its links begin at the root.
        if name.name != "404.html":
            found += [
                f"{name}: {link} is not there" for link in references.fetched + references.linked if _dead(page, link)
            ]
    for sheet in sorted(site.rglob("*.css")):
        for reference in styled(sheet.read_text(encoding="utf-8")):
            if ELSEWHERE.match(reference):
                found.append(f"{sheet.relative_to(site)}: fetches {reference}")
    return found


def _dead(page: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return False
    return not (page.parent / unquote(parts.path)).exists()


def main() -> int:
    """Check a site."""
    site = Path(sys.argv[1])
    pages = len(list(site.rglob("*.html")))
    found = problems_of(site)
    print(
        "\n".join(found) if found else f"{site}: {pages} pages, nothing is fetched from elsewhere, no file is missing"
    )
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
