"""``raidlab device page``: a device by itself, and what it was held to, in figures that are known of it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from raidlab.devices.page import DevicePage, device_page, render_device_page
from raidlab.directory import write_file
from raidlab.formats.toml import toml_text
from raidlab.measure.fit import FitRequest, fit_model
from raidlab.reading import Plain

CAPACITY = 1 << 29
# Four at a time, each 200 us, or 80 to be written.
KNOWN: dict[str, Plain] = {
    "kind": "fixed",
    "capacity_bytes": CAPACITY,
    "read_us": 200.0,
    "write_us": 80.0,
    "servers": 4,
}


@pytest.fixture(scope="module")
def disk() -> DevicePage:
    return device_page("hdd-7200")


def test_a_disk_has_its_seeks_and_its_rates(disk: DevicePage) -> None:
    seeks = list(disk.alone.seek_ms.items())
    assert [time for _, time in seeks] == sorted(time for _, time in seeks)
    # The model's own figures: one cylinder 0.8 ms, the mean 8.5 ms, which is that of a third of the stroke.
    assert 0.8 <= seeks[0][1] < 1.2
    shares, times = zip(*seeks, strict=True)
    assert float(np.interp(1 / 3, shares, times)) == pytest.approx(8.5, rel=0.1)
    rates = list(disk.alone.rate_mb_s.values())
    assert rates[0] == pytest.approx(175, rel=0.02) and rates[-1] == pytest.approx(83, rel=0.02)
    assert rates == sorted(rates, reverse=True)
    reads = {one.depth: one.per_s for one in disk.alone.random["reads"]}
    assert reads[32] > 2 * reads[1], "a queue of 32 is served in good order"


def test_the_page_says_what_was_drawn(disk: DevicePage) -> None:
    text = render_device_page(disk, seed=1)
    assert text.count('role="img"') == 5
    assert "Every figure that it is held to (4) is met" in text and "-0.0" not in text
    assert re.search(r"sustained rate, outermost tracks, reads</th><td[^>]*>175 MB/s", text.replace("\u00a0", " "))
    assert "typical of the class" in text and "buffer.segments" in re.sub(r"<wbr>", "", text)
    assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text), "nothing is fetched"


def test_a_fitted_table_shows_what_was_measured(tmp_path: Path) -> None:
    asked = FitRequest("known", budget_ns=20_000_000_000, quick=True)
    write_file(tmp_path / "known.toml", toml_text(fit_model(KNOWN, CAPACITY, asked).document).encode())
    page = device_page(str(tmp_path / "known.toml"))
    assert [figure.title for figure in page.figures] == [
        "What it is held to",
        "What it does by itself",
        "What was measured",
    ]
    assert page.alone.seek_ms == {} == page.alone.rate_mb_s
    # A request that waits for none takes 200 us; eight at a time wait for as long again.
    times = {one.depth: one.within_ms[50.0] for one in page.alone.random["reads"]}
    assert times[1] == pytest.approx(0.2, rel=0.05) and times[8] == pytest.approx(0.4, rel=0.05)
    assert [panel.title for panel in page.figures[2].panels] == ["random reads", "random writes"]
    text = render_device_page(page, seed=1)
    assert "random reads" in text and "fitted" in text


def test_a_device_that_was_only_read_is_drawn_reading(tmp_path: Path) -> None:
    rows: list[Plain] = [{"op": "read", "bytes": 4096, "depth": 1, "us": [100.0, 120.0]}]
    device: dict[str, Plain] = {
        "kind": "empirical",
        "capacity_bytes": CAPACITY,
        "probabilities": [0.0, 1.0],
        "measured": rows,
    }
    write_file(tmp_path / "reads.toml", toml_text(device).encode())
    assert list(device_page(str(tmp_path / "reads.toml")).alone.random) == ["reads"]
