"""The docs site builds without a warning and without a network, and nothing on it is fetched from elsewhere."""

from __future__ import annotations

import http.server
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed: make setup")

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def check() -> ModuleType:
    """`docs/site/check.py`, which belongs to no package."""
    specification = importlib.util.spec_from_file_location("check", ROOT / "docs" / "site" / "check.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does; with the network cut where that can be done."""
    folder = tmp_path_factory.mktemp("site")
    cut = ["unshare", "--map-root-user", "--net"]
    can_cut = (
        shutil.which("unshare") and subprocess.run([*cut, "true"], check=False, capture_output=True).returncode == 0
    )
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [*(cut if can_cut else []), *build]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return folder


def test_nothing_is_fetched_from_elsewhere_and_nothing_is_missing(site: Path, check: ModuleType) -> None:
    assert check.problems_of(site) == []
    assert len(list(site.rglob("*.html"))) > 50


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<script src="https://example.org/a.js"></script>', "fetches https://example.org/a.js"),
        ('<link rel="preconnect" href="//fonts.example.org">', "fetches //fonts.example.org"),
        ('<p style="background: url(http://example.org/a.png)">', "fetches http://example.org/a.png"),
        ('<a href="nowhere.html">there</a>', "nowhere.html is not there"),
        ('<a href="https://example.org/">a plain link</a>', None),
    ],
)
def test_the_check_bites(text: str, said: str | None, check: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    assert check.problems_of(tmp_path) == ([f"page.html: {said}"] if said else [])


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Where the site is served, on this machine alone."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_pages_open_and_can_be_searched(site: Path, address: str) -> None:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright: Any = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "reference" / "cli.html").as_uri())
        assert page.locator("h1").first.inner_text().startswith("The command line")
        assert asked and all(url.startswith("file:") for url in asked), "from a file system nothing else is asked for"
        asked.clear()
        page.goto(f"{address}/index.html?q=serpentine")
        page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
        assert all(url.startswith((address, "blob:", "data:")) for url in asked)
        browser.close()
