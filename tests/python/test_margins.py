"""Margins: crossings of known curves, busy time by hand, words, files of strangers, what a run shows."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from raidlab.analysis.checks import run_checks
from raidlab.analysis.margins import BestMargins, Margin, keep_margins, kept_margins, nearest_first, with_simulated
from raidlab.analysis.margins.chance import reversed_percent
from raidlab.analysis.margins.crossing import as_is, crossings
from raidlab.analysis.margins.reckoned import Demand, crossing_of_reads
from raidlab.api import analyse, run_study
from raidlab.directory import Directory
from raidlab.errors import InputError
from raidlab.report.answer import margins_of_run
from raidlab.study import LoadedStudy
from raidlab.study.load import load_study_text

# Two arrays beside each other under one load of requests that are read or written.
TWO = """
name = "two"
title = "Two arrays"
on = ["sim"]
array = [
    {{ name = "{first[0]}", tree = "{first[1]}", group = "both"{first[2]} }},
    {{ name = "{second[0]}", tree = "{second[1]}", group = "both"{second[2]} }},
]
[[workload]]
name = "mixed"
read = {read}
size = "{size}"
address = "uniform"
[load]
depths = [{depth}]
[sim]
device = "{device}"
warmup = {{ requests = {warmup} }}
measure = {{ requests = {requests} }}
repeats = 6
[[compare]]
group = "both"
title = "both"
reference = "{reference}"
equal = "members"
per = "array"
"""


def turn(**words: object) -> Margin:
    known = {"axis": "read", "now": 70.0, "turns_at": 93.0, "low": 91.0, "high": 95.0, "instead": "b", "how": "swept"}
    return Margin(**{**known, **words})  # type: ignore[arg-type]


def test_straight_curves_cross_where_they_do_in_every_repeat() -> None:
    draw = random.Random(4)
    for _ in range(200):
        places = [4.0**power * draw.uniform(1, 2) for power in range(6)]
        true = draw.uniform(3, 500)
        shifts = [draw.gauss(0, 0.01) for _ in range(5)]
        curve = [(x, [math.log(true) + shift - math.log(x) for shift in shifts]) for x in places]
        found = crossings(curve, places[0])
        assert len(found) == 1
        at, low, high = found[0]
        assert at == pytest.approx(true * math.exp(sum(shifts) / 5))
        assert low is not None and high is not None and low < at < high


def test_a_crossing_is_one_only_where_the_second_is_shown_to_be_ahead() -> None:
    noise = [(1.0, [0.2, 0.3]), (2.0, [0.01, -0.02]), (4.0, [-0.01, 0.02])]
    assert crossings(noise, 1.0) == []
    assert crossings([(1.0, [0.2]), (2.0, [-0.01])], 1.0) == [], "a single run shows no 1 %"
    assert crossings([(1.0, [0.2]), (2.0, [-0.2])], 1.0)[0][1:] == (None, None)
    assert crossings([(0.0, [0.1]), (1.0, [-0.1])], 0.0, as_is)[0][0] == pytest.approx(0.5)
    both = [(1.0, [-0.2, -0.21]), (4.0, [0.2, 0.21]), (16.0, [-0.2, -0.21])]
    assert [round(place[0], 6) for place in crossings(both, 4.0)] == [2.0, 8.0]
    assert crossings([], 1.0) == [] and crossings([(1.0, [])], 1.0) == []


def test_a_single_access_of_reckoning_by_hand() -> None:
    # 4 and 5 members of 1 ms: 4 / (2 - r) against 5 / (4 - 3 r) requests a ms, level at 6/7.
    mirrors, parity = Demand(1, 2), Demand(1, 4)
    rates = [members / demand.at(0.5) for members, demand in ((4, mirrors), (5, parity))]
    found = crossing_of_reads(0.5, ([rates[0]] * 3, [mirrors] * 3), ([rates[1]] * 3, [parity] * 3))
    assert found is not None and found[0] == pytest.approx(6 / 7)
    assert crossing_of_reads(0.5, ([2.0], [Demand(1, 2)]), ([1.0], [Demand(1, 2)])) is None, "parallel lines"
    assert crossing_of_reads(0.5, ([4 / 1.5], [mirrors]), ([4 / 2.5], [parity])) is None, "alike at the very end only"


def test_the_chance_of_a_reversal_is_that_of_a_new_run() -> None:
    """Seen from where the new run comes out, the probability told is as often below p as p says (20,000 runs)."""
    draw = random.Random(11)
    told = []
    for _ in range(20_000):
        first, second = ([draw.gauss(0.05, 0.1) for _ in range(4)] for _ in range(2))
        new = sum(second) / 4
        told.append(reversed_percent([value - new for value in first]) or 0.0)
    for percent in (1, 5, 20, 50, 80):
        share = sum(one < percent for one in told) / len(told)
        assert share == pytest.approx(percent / 100, abs=4 * math.sqrt(percent / 100 * (1 - percent / 100) / 20_000))
    assert reversed_percent([0.1]) is None and reversed_percent([0.1, 0.1]) == 0 and reversed_percent([0.0, 0.0]) == 50


def test_words() -> None:
    assert turn().condition() == "reads exceed 93 % (swept, 91 to 95, then b)"
    assert turn(turns_at=40.0, low=None, high=None).condition() == "reads fall below 40 % (swept, then b)"
    size = turn(axis="size", now=8192.0, turns_at=65536.0, low=None, high=None)
    assert size.condition() == "requests are larger than 64 KiB (swept, then b)"
    p90 = turn(axis="response", now=50.0, turns_at=340.0, low=320.0, high=361.0, percentile=90.0)
    assert p90.condition() == "p90 may exceed 340 ms (swept, 320 to 361, then b)"
    price = turn(axis="price", now=1.0, turns_at=1.6, low=1.59, high=1.61, how="reckoned")
    assert price.condition() == "its disks cost 1.6 times those of b (reckoned, 1.59 to 1.61)"
    chance = turn(axis="seeds", now=None, turns_at=3.2, low=None, high=None, how="chance")
    best = BestMargins("sim", "w", "a", "b", nearest_first([chance, p90, price, turn()]))
    assert best.sentence == (
        "a stays first unless reads exceed 93 % (swept, 91 to 95, then b), or its disks cost 1.6 times those of b "
        "(reckoned, 1.59 to 1.61)."
    )
    assert best.more.startswith("a stays first unless p90 may exceed 340 ms") and "3 of 100 new runs" in best.more
    beside = BestMargins("sim", "w", "a", "b", (turn(),), ("c",), "r")
    assert beside.sentence.startswith("a and c stay best beside r unless reads exceed 93 %")


def test_of_two_ways_along_one_axis_the_surer_is_told() -> None:
    found = nearest_first([turn(how="reckoned", turns_at=80.0), turn(), turn(how="simulated", turns_at=92.0)])
    assert [one.how for one in found] == ["simulated"]
    assert len(nearest_first([turn(turns_at=40.0), turn()])) == 2, "below and above are two margins"


@pytest.fixture(scope="module")
def known_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("known")
    return run_study(known_study(place), out=place).folder


def two_arrays(place: Path, **words: object) -> LoadedStudy:
    """A study of two arrays, written into a place; a device of one's own is that of a file there."""
    file = place / "two.toml"
    file.write_text(TWO.format(**words))
    return load_study_text(file.read_text(), file)


def known_study(place: Path, requests: int = 2000) -> LoadedStudy:
    """A study whose crossing is known.

    RAID 5 of disks that take 1 ms an access, beside RAID 10 of disks that take 1.2: with one request at a time a write
    costs the one 2 ms, the other 1.2, and a read 1 ms and 1.2. They are level where 4 of 5 requests are reads.
    """
    for name, us in (("quick", 1000), ("slow", 1200)):
        (place / f"{name}.toml").write_text(fixed_device(name, us))
    return two_arrays(
        place,
        first=("mirrors", "raid10(4, chunk=64KiB)", f', device = "{place}/slow.toml"'),
        second=("parity", "raid5(4, chunk=64KiB)", ""),
        **{"reference": "parity", "read": 0.5, "size": "4KiB", "depth": 1},
        **{"device": f"{place}/quick.toml", "warmup": 1, "requests": requests},
    )


def fixed_device(name: str, us: int) -> str:
    figures = {
        **{"capacity_bytes": 1 << 30, "sector_bytes": 512, "read_us": float(us), "write_us": float(us)},
        **{"read_ns_per_byte": 0.0, "write_ns_per_byte": 0.0, "servers": 1, "scheduler": "fifo"},
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in figures.items()]
    known = [f'{key} = {{ status = "assumed", why = "for a test" }}' for key in figures]
    return "\n".join((f'kind = "fixed"\nname = "{name}"\ndescription = "constant"', *lines, "[provenance]", *known))


def test_files_of_strangers_are_held_to_their_types(known_run: Path, tmp_path: Path) -> None:
    run = analyse(known_run).run
    margins = [BestMargins("sim", "mixed", "mirrors", "parity", (turn(how="simulated"),))]
    with Directory.open(known_run) as folder:
        keep_margins(margins, folder)
    assert kept_margins(run) == margins
    assert with_simulated([BestMargins("sim", "mixed", "mirrors", "parity", ())], margins) == margins
    other = BestMargins("sim", "mixed", "parity", "mirrors", ())
    assert with_simulated([other], margins) == [other], "what was simulated for another best says nothing of this one"
    file = known_run / "margins.json"
    good = json.loads(file.read_text())
    for damage in (
        lambda d: d.update(version=2),
        lambda d: d.update(more=1),
        lambda d: d["margins"][0].update(first=3),
        lambda d: d["margins"][0]["turns"][0].update(axis="colour"),
        lambda d: d["margins"][0]["turns"][0].update(turns_at=float("nan")),
        lambda d: d["margins"][0]["turns"][0].update(instead="a\nb"),
        lambda d: d["margins"][0]["turns"][0].update(low="1"),
    ):
        document = json.loads(json.dumps(good))
        damage(document)
        file.write_text(json.dumps(document))
        with pytest.raises(InputError, match=r"margins\.json"):
            kept_margins(run)
    for text in ("", "[]", "{" * 100_000):
        file.write_text(text)
        with pytest.raises(InputError, match=r"margins\.json"):
            kept_margins(run)
    file.unlink()
    assert kept_margins(run) == []
    (tmp_path / "elsewhere").write_text(json.dumps(good))
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"margins\.json"):
        kept_margins(run)
    file.unlink()


def test_a_run_tells_what_it_shows(known_run: Path) -> None:
    analysis = analyse(known_run)
    (best,) = margins_of_run(analysis, run_checks(analysis))
    assert (best.first, best.second) == ("mirrors", "parity")
    by_axis = {one.axis: one for one in best.turns}
    # At half reads 1.2 ms against 1.5 ms.
    assert by_axis["price"].turns_at == pytest.approx(1.25, rel=0.02)
    assert by_axis["seeds"].turns_at < 0.1
    assert "read" not in by_axis, "with one request at a time members idle, and nothing is reckoned"
