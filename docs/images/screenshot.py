"""Take the pictures of a report that the README shows: its first screen and its first figure, in light and in dark.

    .venv/bin/python docs/images/screenshot.py runs/quickstart-DATE-001/report.html

Needs Debian's chromium, and playwright of requirements-dev.lock.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH = 1200
HERE = Path(__file__).parent


def main(page_file: Path) -> None:
    """Write ``report-light.png`` and ``report-dark.png`` beside this file."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme=scheme)
            page.goto(page_file.resolve().as_uri())
            figure = page.locator("figure:visible").first
            box = figure.bounding_box()
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"]}
            page.screenshot(path=HERE / f"report-{scheme}.png", full_page=True, clip=clip)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
