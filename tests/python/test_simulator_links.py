"""Links from a report to the simulator's page: only where the page can ask the same, and with the same settings."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs

import pytest

from raidlab.api import analyse, run_study, write_report
from raidlab.report import simulator

STUDY = """
name = "linked"
title = "Linked"
on = ["sim"]
[[array]]
name = "a"
tree = "raid10(4, chunk=128KiB)"
[[array]]
name = "b"
tree = "raid5(4, chunk=128KiB)"
[[workload]]
name = "some reads"
read = 0.35
size = "16KiB"
[load]
depths = [1, 3]
[sim]
device = "hdd-7200-bare"
measure = { requests = 60 }
[[compare]]
group = "all"
title = "Four members"
reference = "a"
equal = "members"
"""
SETTINGS = {
    "device": ["hdd-7200-bare"],
    "disks": ["4"],
    "equal": ["members"],
    "levels": ["raid10,raid5"],
    "chunk": ["128KiB"],
    "read": ["35"],
    "size": ["16KiB"],
    "pattern": ["random"],
    "depth": ["3"],
}


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page, whatever is in it."""
    page = tmp_path / "built.html"
    page.write_text("the simulator", encoding="utf-8")
    monkeypatch.setattr(simulator, "BUILT", page)
    monkeypatch.setattr("raidlab.report.page.BUILT", page)
    return page


def addresses(study: str, folder: Path) -> list[str]:
    """Where the links of a study's report lead."""
    file = folder / "study.toml"
    file.write_text(study, encoding="utf-8")
    links = simulator.simulator_links(analyse(run_study(file, out=folder / "runs")))
    return [link.address for link in links]


def test_a_link_has_the_settings_of_what_was_simulated(tmp_path: Path) -> None:
    (address,) = addresses(STUDY, tmp_path)
    page, _, settings = address.partition("#")
    assert page == "simulator.html" and parse_qs(settings) == SETTINGS


def test_a_response_time_that_is_held_and_equal_space_are_settings_too(tmp_path: Path) -> None:
    study = STUDY.replace("raid10(4,", "raid10(6,").replace('"members"', '"user_capacity"')
    held = 'depths = [1, 3]\nhold = { percentile = 90, target = "30ms", max_depth = 8 }'
    (address,) = addresses(study.replace("depths = [1, 3]", held), tmp_path)
    found = parse_qs(address.partition("#")[2])
    assert found == SETTINGS | {"disks": ["3"], "equal": ["user_capacity"], "p90": ["30ms"]}


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("raid5(4, chunk=128KiB)", "raid5(4, chunk=64KiB)"),
        ("raid5(4, chunk=128KiB)", "concat(4)"),
        ('size = "16KiB"', 'size = { kind = "exponential", mean = "16KiB" }'),
        ('size = "16KiB"', 'size = "16KiB"\nspan = 0.5'),
        ("read = 0.35", "read = 0.355"),
        ("[sim]", "[sim]\nhost = { cpus = 2, request = '10us' }"),
        ("[sim]", '[policy]\nparity_read = "read_through"\n[sim]'),
        ("depths = [1, 3]", 'open = { arrival = "poisson", rates_per_s = [20] }'),
    ],
)
def test_what_the_page_cannot_ask_has_no_link(said: str, instead: str, tmp_path: Path) -> None:
    assert said in STUDY
    assert addresses(STUDY.replace(said, instead), tmp_path) == []


def test_the_page_lies_beside_the_report_that_links_to_it(tmp_path: Path, built: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    run = run_study(tmp_path / "study.toml", out=tmp_path / "runs")
    assert 'href="simulator.html#device=hdd-7200-bare&amp;disks=4' in write_report(run).read_text(encoding="utf-8")
    assert (run.folder / "simulator.html").read_bytes() == built.read_bytes()
    built.unlink()
    (run.folder / "simulator.html").unlink()
    assert "simulator.html" not in write_report(run).read_text(encoding="utf-8")
    assert not (run.folder / "simulator.html").exists()
