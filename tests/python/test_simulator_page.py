"""The simulator's page in a real browser: the engine's figures to the last bit, and files that raidlab reads.

Needs the compiled door (``make web``), Debian's ``chromium`` and the package ``playwright``; else it is skipped.
Screenshots are kept where ``RAIDLAB_SCREENSHOTS`` says.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import random
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest

from browser_scripts import OVERLAPS, TOO_FAINT
from raidlab import _core
from raidlab.analysis.checks import run_checks
from raidlab.api import analyse, run_study
from raidlab.recommend.load import load_need
from raidlab.report.cards import cards_of
from raidlab.run.request import cell_request
from raidlab.study import expand, load_study_text
from raidlab.study.device import load_device

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "target" / "wasm32-unknown-unknown" / "web" / "raidlab_web.wasm"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if not MODULE.exists():
    pytest.skip("the simulator is not compiled for browsers: make web", allow_module_level=True)
if CHROMIUM is None:
    pytest.skip("chromium is not installed: apt-get install --no-install-recommends chromium", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup")

# What a stalled machine needs to run some hundred cells; what never comes must not hang the tests.
_PATIENCE_MS = 300_000
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
FEW = "#device=hdd-7200-bare&levels=raid0,raid10&disks=4&depth=2"
# Few cells, and all that a page can ask for: both goals, both meanings of equal, every pattern.
LINKS = (
    "#device=hdd-7200&disks=6&levels=raid0,raid10,raid5,raid6&read=70&depth=4",
    "#device=hdd-7200-bare&disks=4&equal=user_capacity&levels=raid0,raid5&size=64KiB&read=0&pattern=hot&p90=60ms&depth=2",
    "#device=hdd-7200-bare&disks=4&gone=1&levels=raid0,raid10,raid5,raid6&depth=2",
    "#device=hdd-7200-bare&disks=6&gone=2&levels=raid10,raid5,raid6,raid50&p90=60ms",
    "#device=ssd-sata&disks=8&levels=raid10,raid50,raid60&size=16KiB&chunk=512KiB&read=100&pattern=sequential&depth=2",
)


def script(name: str) -> ModuleType:
    """A script of ``docs/site/simulator``, which belongs to no package."""
    path = ROOT / "docs" / "site" / "simulator" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(f"simulator_{name}", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, from the scripts as they are."""
    page = tmp_path_factory.mktemp("page") / "simulator.html"
    page.write_text(script("build").render(MODULE.read_bytes()), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Opened:
    """The page, opened from its file with the network cut, with what it asked for and what went wrong in it."""

    def __init__(self, browser: Any, file: Path, link: str = "", **settings: Any) -> None:
        self.context = browser.new_context(offline=True, **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(_PATIENCE_MS)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri() + link)
        self.page.locator("#controls:enabled").wait_for()

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def done(self) -> Any:
        """The page when it has run all that its settings ask for."""
        self.page.locator("#state", has_text="Done").wait_for()
        return self.page

    def text(self, name: str) -> str:
        """One of the texts to copy."""
        return str(self.page.locator(f"#{name}").input_value())


def plain(value: Any) -> Any:
    """An answer of the engine as JSON has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def settings_of(link: str) -> dict[str, str]:
    """The settings of a link, by key."""
    return dict(parse_qsl(link.removeprefix("#")))


def same_text(value: Any) -> str:
    """A text that is the same only where every number is, to its last bit."""
    return json.dumps(value, sort_keys=True)


def native_cells(study: str) -> list[dict[str, Any]]:
    """The cells of a study, as raidlab asks its own engine."""
    loaded = load_study_text(study, ROOT / "simulated.toml")
    model = load_device(loaded.study.sim.device, ROOT / "-")
    shape = {"members": [model.parameters], "sector_bytes": model.sector_bytes, "quick": False}
    return [json.loads(cell_request(loaded, cell, **shape)) for cell in expand(loaded.study, "sim", seed=1).cells]


def without_provenance(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell without what a device's file says of its figures, which the engine skips."""
    members = [{key: value for key, value in member.items() if key != "provenance"} for member in cell["members"]]
    return {**cell, "members": members}


def some_cells(count: int) -> Iterator[dict[str, Any]]:
    """Cells of all devices, levels, loads, sizes and addresses, short enough that hundreds are run in seconds."""
    data = script("build").page_data()
    draw = random.Random(19)
    trees = (
        "raid0(3)",
        "raid1(3)",
        "raid10(4, chunk=16KiB)",
        "raid5(5)",
        "raid6(6, chunk=32KiB)",
        "raid50(6)",
        "raid60(8)",
    )
    sizes = (
        {"kind": "fixed", "bytes": 8192},
        {"kind": "exponential", "mean": 16384},
        {"kind": "normal", "mean": 65536, "sd": 16384},
        {"kind": "lognormal", "mean": 24576, "sigma": 1.1},
        {"kind": "table", "bytes": [4096, 65536], "weights": [3, 1]},
    )
    addresses = (
        {"kind": "uniform"},
        {"kind": "sequential", "streams": 3},
        {"kind": "zipf", "theta": 0.9},
        {"kind": "mixed", "sequential": 0.5, "local": 0.3, "local_sd": 1 << 20},
    )
    loads = (
        {"kind": "closed", "depth": 7},
        {"kind": "open", "arrival": {"kind": "poisson", "rate_per_s": 90.0}},
        {"kind": "open", "arrival": {"kind": "h2", "rate_per_s": 70.0, "cv2": 4.0}},
        {"kind": "hold", "percentile": 90, "target": 40_000_000, "initial_depth": 1, "max_depth": 32},
    )
    devices = sorted(data["devices"])
    for number in range(count):
        device = data["devices"][devices[number % len(devices)]]
        yield {
            **data["cell"],
            "seed": draw.getrandbits(63),
            "sector_bytes": device["sector_bytes"],
            "tree": json.loads(_core.parse_tree(draw.choice(trees))),
            "members": [device["parameters"]],
            "load": draw.choice(loads),
            "workload": {
                "read": draw.choice((0.0, 0.3, 0.7, 1.0)),
                "size": draw.choice(sizes),
                "address": draw.choice(addresses),
            },
            "warmup": {"requests": 20},
            "measure": {"requests": 150},
        }


@pytest.mark.slow
def test_200_cells_give_what_the_engine_gives_to_the_last_bit(browser: Any, simulator: Path) -> None:
    with Opened(browser, simulator, "#levels=raid0&depth=1") as opened:
        different = []
        for number, cell in enumerate(some_cells(200)):
            text = json.dumps(cell)
            told = json.loads(opened.page.evaluate("text => raidlab.run(text)", text))
            if same_text(told.get("answer")) != same_text(plain(_core.run_cell(text))):
                different.append((number, told.get("error")))
        assert different == []


def test_a_bad_cell_is_refused_in_the_same_words(browser: Any, simulator: Path) -> None:
    (cell,) = some_cells(1)
    with Opened(browser, simulator, "#levels=raid0&depth=1") as opened:
        for spoilt in ({**cell, "sped": 1}, {**cell, "workload": {**cell["workload"], "read": 2.0}}, {"engine": "sim"}):
            text = json.dumps(spoilt)
            with pytest.raises(_core.CellError) as refused:
                _core.run_cell(text)
            error = json.loads(opened.page.evaluate("text => raidlab.run(text)", text))["error"]
            assert error == {"key": refused.value.key, "message": refused.value.message}


def alike(value: Any) -> Any:
    """A cell without what the engine skips, whose whole numbers are all whole, whichever side wrote them."""
    if isinstance(value, dict):
        return {key: alike(item) for key, item in value.items() if key != "provenance"}
    if isinstance(value, list):
        return [alike(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize("link", LINKS)
def test_the_study_that_is_copied_has_the_cells_of_the_page(browser: Any, simulator: Path, link: str) -> None:
    with Opened(browser, simulator, link) as opened:
        asked = opened.page.evaluate("raidlab.cells()")
        study = opened.text("study")
    native = native_cells(study)
    assert len(native) == len(asked) > 20
    assert {same_text(alike(json.loads(text))) for text in asked} == {same_text(alike(cell)) for cell in native}


@pytest.mark.parametrize(
    "link", [*LINKS, "#levels=raid1&disks=2", "#equal=user_capacity&disks=3&levels=raid0,raid60&p90=250us"]
)
def test_the_need_that_is_copied_is_one(browser: Any, simulator: Path, link: str, tmp_path: Path) -> None:
    with Opened(browser, simulator, link) as opened:
        (tmp_path / "need.toml").write_text(opened.text("need"), encoding="utf-8")
    need = load_need(tmp_path / "need.toml").need
    assert need.asked == "fastest"
    asked = settings_of(link)
    assert (need.need.p90 is not None) == ("p90" in asked)
    assert (need.need.degraded is not None) == ("p90" in asked and "gone" in asked)
    (work,) = need.workload
    assert (work.load is not None) == ("p90" not in asked)


def test_a_need_says_what_of_the_page_it_cannot_ask(browser: Any, simulator: Path) -> None:
    with Opened(browser, simulator, "#disks=6&gone=2&levels=raid10,raid6&depth=4") as opened:
        need = opened.text("need")
        assert "# Left out: two gone" in need and tomllib.loads(need)["need"] == {"tolerate": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        "levels=raid0,raid10,raid5&depth=4",
        "levels=raid0,raid10,raid5&p90=60ms",
        "levels=raid0,raid10,raid5&gone=1&depth=4",
        "levels=raid10,raid6&gone=2&depth=4",
        "levels=raid5,raid6&read=100&depth=4",
    ],
)
def test_the_page_says_what_the_report_of_its_study_says(
    browser: Any, simulator: Path, asked: str, tmp_path: Path
) -> None:
    """The same sentence, the same figures, the same checks."""
    with Opened(browser, simulator, f"#device=hdd-7200-bare&disks=4&read=50&{asked}") as opened:
        page = opened.done()
        (tmp_path / "simulated.toml").write_text(opened.text("study"), encoding="utf-8")
        headline, findings = page.locator("#headline").inner_text(), page.locator("#findings").inner_text()
        borne, sureness = page.locator("#borne").inner_text(), page.locator("#sureness").inner_text()
        title = page.locator("#target-title").inner_text()
    analysis = analyse(run_study(tmp_path / "simulated.toml", out=tmp_path / "runs", seed=1))
    checks = run_checks(analysis)
    (card,) = cards_of(analysis, checks, has_published=False)
    assert (headline, borne, sureness, title) == (card.headline, card.failures_borne, card.sureness, card.title)
    said = {finding.check: f"{finding.verdict} {finding.check}: {finding.evidence}" for finding in checks}
    assert [line for line in findings.splitlines() if line] == [
        said[name] for name in ("single_run", "target_never_reached") if name in said
    ]


def test_a_slider_that_is_moved_by_key_changes_picture_link_and_files(browser: Any, simulator: Path) -> None:
    with Opened(browser, simulator, FEW, viewport=DESKTOP) as opened:
        page = opened.done()
        before = page.locator("#curves").get_attribute("aria-label")
        slider = page.get_by_role("slider", name="Reads")
        slider.focus()
        slider.press("End")
        assert slider.get_attribute("aria-valuetext") == "100\u00a0%"
        assert "read=100&" in page.url and tomllib.loads(opened.text("study"))["workload"][0]["read"] == 1.0
        opened.done()
        assert page.locator("#curves").get_attribute("aria-label") != before
        assert opened.complaints == []


def test_a_link_opens_the_settings_that_it_was_copied_from(browser: Any, simulator: Path) -> None:
    with Opened(browser, simulator, viewport=DESKTOP) as opened:
        page = opened.page
        page.get_by_label("Which").select_option("ssd-sata")
        page.get_by_label("nine of ten answered in time").check()
        page.get_by_label("RAID 50").check()
        page.get_by_role("slider", name="failed").press("ArrowRight")
        link, study, need = "#" + page.url.partition("#")[2], opened.text("study"), opened.text("need")
    with Opened(browser, simulator, link, viewport=DESKTOP) as opened:
        assert (opened.text("study"), opened.text("need")) == (study, need)
        assert opened.page.get_by_label("RAID 50").is_checked() and "gone=1" in link
        assert "RAID 0: its data are lost with a disk." in opened.page.locator("#levels-out").inner_text()


def test_what_a_link_has_that_is_not_known_is_named(browser: Any, simulator: Path) -> None:
    with Opened(browser, simulator, "#disks=3&device=floppy&depth=-1&levels=raid0,raid6,raid5") as opened:
        told = opened.page.get_by_role("alert").inner_text()
        assert "device=floppy" in told and "depth=-1" in told and "disks" not in told
        assert "RAID 6 has 3 member(s); it needs at least 4" in opened.page.locator("#levels-out").inner_text()


@pytest.mark.parametrize(
    "link", ["#__proto__=1", "#device=toString&pattern=valueOf&levels=constructor", "#%", "#%E0%A4%A"]
)
def test_a_link_that_means_nothing_breaks_nothing(browser: Any, simulator: Path, link: str) -> None:
    with Opened(browser, simulator, link) as opened:
        assert "is not known here" in opened.page.get_by_role("alert").inner_text()
        opened.page.locator("#state", has_text="Working").wait_for()
        assert opened.complaints == []


def test_one_disk_is_always_left(browser: Any, simulator: Path) -> None:
    with Opened(browser, simulator, "#disks=1&gone=2&levels=raid0&depth=1", viewport=DESKTOP) as opened:
        assert "gone=2" in opened.page.get_by_role("alert").inner_text()
        assert "gone" not in opened.page.locator("h1").inner_text()
        slider = opened.page.get_by_role("slider", name="How many")
        slider.press("ArrowRight")
        opened.page.get_by_role("slider", name="failed").press("End")
        assert "disks=2&gone=1&" in opened.page.url
        slider.press("ArrowLeft")
        assert "disks=1&equal" in opened.page.url


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("disks=4&gone=2&levels=raid5,raid6", "Of raid5 and raid6 only raid6 can be; the table says why."),
        ("disks=4&gone=2&levels=raid0,raid5", "Of raid0 and raid5 none can be; the table says why."),
        ("disks=4&levels=raid6", "Choose two levels."),
    ],
)
def test_why_nothing_is_compared_is_said(browser: Any, simulator: Path, asked: str, said: str) -> None:
    with Opened(browser, simulator, f"#device=hdd-7200-bare&depth=1&{asked}") as opened:
        page = opened.done()
        assert page.locator("#headline").inner_text() == said
        if "none" in said:
            assert {opened.text("study"), opened.text("need")} == {"# None of these levels can be.\n"}
        else:
            assert len(native_cells(opened.text("study"))) == 5
        assert opened.complaints == []


def survives(tree: str, missing: tuple[int, ...]) -> bool:
    """Whether the engine runs an array without some members."""
    (cell,) = some_cells(1)
    device = {"kind": "fixed", "capacity_bytes": 1 << 24, "read_us": 100.0, "write_us": 100.0}
    parsed = json.loads(_core.parse_tree(tree))
    short = {"members": [device], "warmup": {"requests": 0}, "measure": {"requests": 1}}
    work = {"read": 1.0, "size": {"kind": "fixed", "bytes": 4096}, "address": {"kind": "uniform"}}
    load = {"kind": "closed", "depth": 1}
    asked = {**cell, **short, "tree": parsed, "missing": list(missing), "workload": work, "load": load}
    try:
        _core.run_cell(json.dumps(asked))
    except _core.CellError as error:
        assert error.key == "missing"
        return False
    return True


@pytest.mark.parametrize("disks", [3, 4, 5, 6, 8])
def test_each_level_lacks_members_without_which_the_engine_runs_it(browser: Any, simulator: Path, disks: int) -> None:
    """And how many pairs are the end of it is what the engine says."""
    levels = ("raid0", "raid10", "raid5", "raid6", "raid50", "raid60", "raid1")
    with Opened(browser, simulator, f"#disks={disks}&gone=2&depth=1&levels={','.join(levels)}") as opened:
        arrays = {array["name"]: array for array in tomllib.loads(opened.text("study"))["array"]}
        fatal, out = opened.page.locator("#fatal").inner_text(), opened.page.locator("#levels-out").inner_text()
    pairs = list(itertools.combinations(range(disks), 2))
    for name in levels:
        tree = f"{name}({disks})"
        try:
            _core.parse_tree(tree)
        except _core.CellError:
            assert name not in arrays
            continue
        served = [pair for pair in pairs if survives(tree, pair)]
        title = name.replace("raid", "RAID ")
        assert (name in arrays) == bool(served)
        assert (f"{title}: its data are lost with any 2 disks." in out) == (not served)
        lost = f"{len(pairs) - len(served)} of the {len(pairs)} pairs of disks of {name}"
        assert (re.search(rf"{lost}\b", fatal) is not None) == (0 < len(served) < len(pairs))
        if served:
            assert tuple(arrays[name]["missing"]) in served


def test_nothing_is_asked_for_and_nothing_complains(browser: Any, simulator: Path) -> None:
    with Opened(browser, simulator, "#levels=raid0,raid5&disks=3&depth=1", viewport=DESKTOP) as opened:
        opened.done()
        own = ("data:", "blob:", simulator.as_uri())
        assert [url for url in opened.asked if not url.startswith(own)] == [] and opened.complaints == []
        refused = opened.page.evaluate("fetch('https://example.org/').then(() => 'sent', () => 'refused')")
        assert refused == "refused" and any("Content Security Policy" in complaint for complaint in opened.complaints)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_it_can_be_read(browser: Any, simulator: Path, tmp_path: Path, scheme: str, viewport: dict[str, int]) -> None:
    link = "#device=hdd-7200-bare&levels=raid0,raid10,raid5,raid6&depth=4"
    with Opened(browser, simulator, link, viewport=viewport, color_scheme=scheme) as opened:
        page = opened.done()
        kept = Path(os.environ.get("RAIDLAB_SCREENSHOTS", tmp_path))
        page.screenshot(path=kept / f"simulator-{scheme}-{viewport['width']}.png", full_page=True)
        for words in page.locator("summary").all():
            words.click()
        assert page.evaluate(f"({TOO_FAINT})()") == []
        assert page.evaluate(f"({OVERLAPS})()") == []
        assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
        unnamed = (
            "[...document.querySelectorAll('input, select, textarea, button')].filter((one) => !one.labels?.length"
        )
        assert page.evaluate(f"{unnamed} && !one.ariaLabel && !one.textContent).map((one) => one.id)") == []


def test_a_mark_tells_its_figures_by_mouse_and_by_key(browser: Any, simulator: Path) -> None:
    with Opened(browser, simulator, FEW, viewport=DESKTOP) as opened:
        page, tip = opened.done(), opened.page.locator("#tip")
        mark = page.locator("#curves [aria-label^='raid10, queue depth 2']")
        mark.hover()
        assert tip.inner_text() == mark.get_attribute("aria-label") and "95 % interval" in tip.inner_text()
        page.locator("#curves").press("Escape")
        page.locator("#curves").press("ArrowRight")
        assert "raid0" in tip.inner_text()


def test_it_is_compiled_where_a_rust_can(tmp_path: Path) -> None:
    """By the target where it is installed, else by the library's source, else not at all."""
    command_for = script("compile").command_for
    assert command_for(tmp_path) is None
    (tmp_path / "src" / "rust" / "library" / "std").mkdir(parents=True)
    (tmp_path / "x86_64-unknown-linux-gnu" / "bin").mkdir(parents=True)
    linker = tmp_path / "x86_64-unknown-linux-gnu" / "bin" / "rust-lld"
    linker.touch()
    command, variables = command_for(tmp_path)
    assert "-Zbuild-std=std,panic_abort" in command and variables["RUSTC_BOOTSTRAP"] == "1"
    assert variables["CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER"] == str(linker)
    (tmp_path / "wasm32-unknown-unknown" / "lib").mkdir(parents=True)
    (tmp_path / "wasm32-unknown-unknown" / "lib" / "libstd-1.rlib").touch()
    command, variables = command_for(tmp_path)
    assert variables == {} and not any(word.startswith("-Z") for word in command)
