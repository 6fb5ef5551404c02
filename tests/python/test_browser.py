"""Reports in a real browser: the network cut, tabs, tooltips, phones, dark paper, nothing that moves or overlaps.

Needs Debian's ``chromium`` and the package ``playwright``, which drives it; without them the tests are skipped.
Screenshots are kept where ``RAIDLAB_SCREENSHOTS`` says.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_scripts import OVERLAPS, TOO_FAINT
from conftest import NAMED_ALIKE_STUDY, SMALL_STUDY
from raidlab.analysis.checks import run_checks
from raidlab.api import analyse, compare, run_study, write_report
from raidlab.report.comparison import render_comparison
from raidlab.results import Run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("chromium is not installed: apt-get install --no-install-recommends chromium", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup")

# How long a page may take to do what it is asked, which takes a moment; what never comes must not hang the tests.
_PATIENCE_MS = 20_000
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
SECOND_TABLE = """
[[array]]
name = "alone"
tree = "concat(1)"
group = "ones"
[[array]]
name = "pair"
tree = "raid1(2)"
group = "ones"
[[compare]]
group = "ones"
title = "One disk's space"
reference = "alone"
equal = "user_capacity"
per = "array"
"""
# How large the letters of each chart are, in pixels, by how much it is shrunk.
LETTERS = """[...document.querySelectorAll("svg.chart")].map((chart) => [chart, chart.getBoundingClientRect().width])
  .filter(([, width]) => width).map(([chart, width]) => 12 * width / chart.viewBox.baseVal.width)"""
# Charts that a reader has to move to see all of.
CUT_CHARTS = """[...document.querySelectorAll(".panel")].filter((one) => one.scrollWidth > one.clientWidth).length"""
COUNT_SHIFTS = """
  window.shifts = [];
  new PerformanceObserver((list) => window.shifts.push(...list.getEntries().map((entry) => entry.value)))
    .observe({ type: "layout-shift", buffered: true });
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with two tables, of two repeats."""
    folder = tmp_path_factory.mktemp("browser")
    study = folder / "small.toml"
    text = SMALL_STUDY.replace("measure = { requests = 1500 }", "measure = { requests = 1500 }\nrepeats = 2")
    study.write_text(text + SECOND_TABLE, encoding="utf-8")
    return run_study(study, out=folder / "runs")


@pytest.fixture(scope="module")
def report(run: Run) -> Path:
    """Its report."""
    return write_report(run)


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run whose tables have names that are alike."""
    file = tmp_path_factory.mktemp("alike") / "study.toml"
    file.write_text(NAMED_ALIKE_STUDY, encoding="utf-8")
    return write_report(run_study(file, out=file.parent / "runs"))


@pytest.fixture(scope="module")
def comparison(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two of its arrays set against each other."""
    page = tmp_path_factory.mktemp("compared") / "comparison.html"
    findings = run_checks(analyse(run))
    found = compare(run, run, arrays=("raid5", "raid10"), per="disk")
    page.write_text(render_comparison(found, [findings, findings]), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Opened:
    """A page that was opened with the network cut, with what went wrong in it."""

    def __init__(self, browser: Any, file: Path, **settings: Any) -> None:
        self.context = browser.new_context(offline=True, **settings)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.add_init_script(COUNT_SHIFTS)
        self.page.goto(file.as_uri())
        self.page.set_default_timeout(_PATIENCE_MS)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def test_nothing_is_fetched_nothing_moves_nothing_is_complained_of(browser: Any, report: Path) -> None:
    for viewport in (DESKTOP, PHONE):
        with Opened(browser, report, viewport=viewport) as opened:
            assert [url for url in opened.asked if not url.startswith("data:")] == [report.as_uri()]
            assert opened.complaints == []
            assert sum(opened.page.evaluate("window.shifts")) == 0


def test_the_policy_would_stop_a_request(browser: Any, report: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.html"
    text = report.read_text(encoding="utf-8")
    spoilt.write_text(text.replace("</body>", '<img src="https://example.org/a.png" alt=""></body>'), encoding="utf-8")
    with Opened(browser, spoilt, viewport=DESKTOP) as opened:
        assert any("Content Security Policy" in complaint for complaint in opened.complaints)


def test_tabs_show_one_table_at_a_time(browser: Any, report: Path) -> None:
    with Opened(browser, report, viewport=DESKTOP) as opened:
        page = opened.page
        first, second = (
            page.get_by_role("tab", name="Equal user capacity"),
            page.get_by_role("tab", name="One disk's space"),
        )
        panels = page.get_by_role("tabpanel")
        assert panels.count() == 1 and panels.get_by_text("raid5").first.is_visible()
        second.click()
        assert panels.count() == 1 and panels.get_by_role("rowheader", name="pair").first.is_visible()
        assert second.get_attribute("aria-selected") == "true" and first.get_attribute("aria-selected") == "false"
        second.press("ArrowRight")
        assert first.get_attribute("aria-selected") == "true"
        assert first.evaluate("tab => tab === document.activeElement")
        assert sum(page.evaluate("window.shifts")) == 0


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_tab_opens_each_of_several_tables_whose_names_are_alike(browser: Any, alike: Path, viewport: Any) -> None:
    with Opened(browser, alike, viewport=viewport) as opened:
        page = opened.page
        for first, second in (("ink", "currentColor"), ("b0", "#1f2328"), ("c0", "c1"), ("d0", "d1"), ("e0", "e1")):
            page.get_by_role("tab", name=f"Table {first}").click()
            panels = page.get_by_role("tabpanel")
            assert panels.count() == 1
            assert panels.get_by_role("rowheader").all_inner_texts()[-2:] == [first, second]
            assert panels.locator("svg.chart").first.is_visible()
        assert opened.complaints == []


def test_a_link_into_a_tab_that_is_not_shown_shows_it(browser: Any, report: Path) -> None:
    with Opened(browser, report, viewport=DESKTOP) as opened:
        opened.page.evaluate("location.hash = '#ones-sim'")
        opened.page.get_by_role("tab", name="One disk's space", selected=True).wait_for()


def test_without_a_script_everything_is_there(browser: Any, report: Path) -> None:
    with Opened(browser, report, viewport=DESKTOP, java_script_enabled=False) as opened:
        assert opened.page.get_by_role("heading", name="One disk's space").is_visible()
        assert opened.page.get_by_role("heading", name="Equal user capacity").is_visible()


def test_a_mark_that_is_pointed_at_tells_its_figures(browser: Any, report: Path) -> None:
    with Opened(browser, report, viewport=DESKTOP) as opened:
        page, tip = opened.page, opened.page.locator("#tip")
        assert not tip.is_visible()
        chart = page.locator("svg.chart:visible").first
        mark = chart.locator("[aria-label^='raid10, queue depth']").first
        # A page that is still being scrolled to the mark takes the tip away again.
        mark.scroll_into_view_if_needed()
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        mark.hover()
        tip.wait_for(state="visible")
        said = mark.get_attribute("aria-label")
        assert tip.inner_text() == said and "% of raid0" in said
        page.mouse.move(2, 2)
        tip.wait_for(state="hidden")
        chart.press("ArrowRight")
        tip.wait_for(state="visible")
        assert "raid0" in tip.inner_text()
        chart.press("Escape")
        tip.wait_for(state="hidden")


def test_every_figure_says_what_it_shows(browser: Any, report: Path) -> None:
    with Opened(browser, report, viewport=DESKTOP) as opened:
        charts = opened.page.locator("svg.chart").all()
        assert charts
        for chart in charts:
            assert chart.get_attribute("width") and chart.get_attribute("height")
            assert any(letter.isdigit() for letter in chart.get_attribute("aria-label").partition(".")[2])


@pytest.mark.parametrize("width", [320, PHONE["width"]])
def test_letters_of_charts_are_as_large_on_a_phone(browser: Any, report: Path, width: int) -> None:
    with Opened(browser, report, viewport={**PHONE, "width": width}) as opened:
        sizes = opened.page.evaluate(LETTERS)
        assert sizes and min(sizes) >= 11 and max(sizes) <= 12.01
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width
        if width == PHONE["width"]:
            assert opened.page.evaluate(CUT_CHARTS) == 0


def test_a_phone_scrolls_tables_and_not_the_page(browser: Any, report: Path) -> None:
    with Opened(browser, report, viewport=PHONE) as opened:
        page = opened.page
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        box = page.locator(".scroll:visible").first
        assert box.evaluate("box => box.scrollWidth > box.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_text_can_be_read(browser: Any, report: Path, tmp_path: Path, scheme: str, viewport: dict[str, int]) -> None:
    with Opened(browser, report, viewport=viewport, color_scheme=scheme) as opened:
        kept = Path(os.environ.get("RAIDLAB_SCREENSHOTS", tmp_path))
        shot = kept / f"report-{scheme}-{viewport['width']}.png"
        opened.page.screenshot(path=shot, full_page=True)
        assert shot.stat().st_size > 10_000
        opened.page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert opened.page.evaluate(TOO_FAINT) == []
        assert opened.page.evaluate(OVERLAPS) == []
        paper = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_paper_has_everything_in_light_colours(browser: Any, report: Path) -> None:
    with Opened(browser, report, viewport=DESKTOP, color_scheme="dark") as opened:
        page = opened.page
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.get_by_role("heading", name="One disk's space").is_visible()
        assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_comparison_is_such_a_page_too(browser: Any, comparison: Path, viewport: dict[str, int]) -> None:
    with Opened(browser, comparison, viewport=viewport, color_scheme="dark") as opened:
        page = opened.page
        assert opened.asked == [comparison.as_uri()] and opened.complaints == []
        assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        assert page.evaluate(TOO_FAINT) == []
        assert page.evaluate(OVERLAPS) == []
        mark = page.locator("svg.chart").first.locator("[aria-label*='depth 64']").first
        mark.hover()
        assert page.locator("#tip").inner_text() == mark.get_attribute("aria-label")
        assert sum(page.evaluate("window.shifts")) == 0
