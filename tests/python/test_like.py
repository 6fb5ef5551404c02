"""A device that is like another one: what is said, what follows, and what cannot follow."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raidlab.devices import compare_published
from raidlab.errors import InputError
from raidlab.study.device import DeviceModel, load_device
from raidlab.study.load import load_study_text

DISK = "hdd-nearline-20tb"
SHIPPED = ["hdd-7200", "hdd-7200-bare", "hdd-nearline-20tb", "hdd-nearline-4tb", "hdd-sas-10k", "original/fc-15k"]


def like(said: dict[str, Any]) -> DeviceModel:
    return load_device(said, Path.cwd() / "-")


def test_the_same_name_and_nothing_else_is_the_same_disk() -> None:
    base, same = load_device(DISK, Path.cwd() / "-"), like({"like": DISK})
    about = ("name", "description", "provenance")
    assert {key: value for key, value in same.parameters.items() if key not in about} == {
        key: value for key, value in base.parameters.items() if key not in about
    }
    # A figure printed of one disk says nothing of another.
    assert base.published and not same.published


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(SHIPPED),
    capacity=st.none() | st.integers(10**11, 6 * 10**13),
    rpm=st.none() | st.sampled_from([5400, 5900, 7200.0, 10_000, 15_000]),
    outer=st.none() | st.floats(100, 400),
    share=st.none() | st.floats(0.3, 1),
    heads=st.none() | st.integers(1, 22),
)
def test_a_disk_has_what_its_label_says(
    name: str, capacity: int | None, rpm: float | None, outer: float | None, share: float | None, heads: int | None
) -> None:
    label = {"capacity_bytes": capacity, "rpm": rpm, "sustained_mb_s": outer, "heads": heads}
    said = {key: value for key, value in label.items() if value is not None}
    if outer is not None and share is not None:
        said["sustained_inner_mb_s"] = outer * share
    try:
        disk = like({"like": name, **said})
    except ValueError as error:
        # Few heads on large disks need more cylinders, and more sectors a track, than any disk has.
        assert "zones" in str(error)
        return
    zones: Any = disk.parameters["zones"]
    base = load_device(name, Path.cwd() / "-")
    cylinder = disk.parameters["heads"] * zones[-1]["sectors_per_track"] * 512  # type: ignore[operator]
    least = capacity if capacity is not None else base.capacity_bytes
    if capacity is not None or {"sustained_mb_s", "heads"} & set(said):
        assert 0 <= disk.capacity_bytes - least < cylinder
    revolution = 60e3 / float(disk.parameters["rpm"])  # type: ignore[arg-type]
    for end, key in ((0, "sustained_mb_s"), (-1, "sustained_inner_mb_s")):
        if key in said:
            skews = [disk.parameters[skew]["ms"] for skew in ("track_skew", "cylinder_skew")]  # type: ignore[index,call-overload]
            count = disk.parameters["heads"]
            ms = count * revolution + (count - 1) * skews[0] + skews[1]  # type: ignore[operator]
            rate = zones[end]["sectors_per_track"] * count * 512 / ms / 1e3
            assert rate == pytest.approx(said[key], rel=2e-3)
    tracks = [zone["sectors_per_track"] for zone in zones]
    assert tracks == sorted(tracks, reverse=True)
    assert len(tracks) == len(base.parameters["zones"])  # type: ignore[arg-type]


def test_five_lines_are_a_disk_that_reads_as_its_sheet_says(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'like = "hdd-nearline-20tb"\ncapacity_bytes = "8TB"\nrpm = 5640\nsustained_mb_s = 210\ncache_bytes = "256MiB"\n'
    )
    figures = compare_published(str(file))
    assert [one.figure.value for one in figures] == [210]
    assert all(one.is_met for one in figures)
    buffer: Any = load_device(str(file), tmp_path / "-").parameters["buffer"]
    assert buffer["segments"] * buffer["segment_sectors"] * 512 == 128 << 20
    assert buffer["write_cache_sectors"] * 512 == 64 << 20
    # A little more than a revolution, as of the other disk.
    assert buffer["destage_after_read_ms"] == pytest.approx(10 * 7200 / 5640)


def test_provenance_says_what_was_derived_and_from_what() -> None:
    disk = like({"like": DISK, "capacity_bytes": "8TB", "seek": {"avg_ms": 9.0}, "queue_depth": 16})
    told: Any = disk.parameters["provenance"]
    assert told["zones"]["status"] == "derived"
    assert told["zones"]["why"].startswith(f"from {DISK}: 16 zones scaled to 285 MB/s outside")
    assert told["heads"]["why"].startswith(f"from {DISK}")
    assert told["buffer.segments"]["why"].startswith(f"as {DISK} (assumed: half of the 512 MB")
    # What was said here is not that disk's.
    assert "seek.avg_ms" not in told and "queue_depth" not in told and "seek.min_ms" in told
    assert disk.parameters["seek"] == {"kind": "lee", "min_ms": 0.5, "avg_ms": 9.0, "max_ms": 16.0}
    own = like(
        {"like": DISK, "queue_depth": 16, "provenance": {"queue_depth": {"status": "published", "why": "sheet"}}}
    )
    assert own.parameters["provenance"]["queue_depth"]["why"] == "sheet"  # type: ignore[index,call-overload]


def test_a_seek_curve_in_cylinders_is_stretched_with_them(tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text(
        'kind = "hdd"\nrpm = 7200\nheads = 2\nzones = [{ cylinders = 1000, sectors_per_track = 100 }]\n'
        'seek = { kind = "curve", a_ms = 1.0, b_ms = 0.1, c_ms = 0.001 }\ntrack_skew = { sectors = 10 }\n'
    )
    twice = load_device({"like": "base", "capacity_bytes": 2 * 10**5 * 1024, "heads": 2}, tmp_path / "study.toml")
    assert twice.parameters["zones"] == [{"cylinders": 2000, "sectors_per_track": 100}]
    seek: Any = twice.parameters["seek"]
    for share in (0.1, 0.5, 1.0):
        near, far = share * 1000, share * 2000
        assert seek["b_ms"] * far**0.5 + seek["c_ms"] * far == pytest.approx(0.1 * near**0.5 + 0.001 * near)
    faster = load_device({"like": "base", "rpm": 14400}, tmp_path / "study.toml")
    # Twice the angle is the same time.
    assert faster.parameters["track_skew"] == {"sectors": 20}


def test_devices_may_be_like_others_that_are_like_others(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('like = "hdd-7200"\ncapacity_bytes = "2TB"\n')
    (tmp_path / "b.toml").write_text('like = "a"\nqueue_depth = 8\n')
    disk = load_device("b", tmp_path / "study.toml")
    assert disk.parameters["queue_depth"] == 8
    assert disk.capacity_bytes // 10**9 == 2000
    flash = like({"like": "ssd-sata", "spare_percent": 28.0, "capacity_bytes": "1GB"})
    assert flash.parameters["spare_percent"] == 28.0 and flash.capacity_bytes < 10**9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('like = "hdd-720"', "mine.toml:1: like: 'hdd-720': there is no such device; did you mean 'hdd-7200'?"),
        ('like = "mine"', "mine.toml:1: like: 'mine': comes back to itself (mine.toml -> mine.toml)"),
        ('like = "other"', "other.toml:1: like: 'mine': comes back to itself (mine.toml -> other.toml -> mine.toml)"),
        ("like = 3", "mine.toml:1: like: 3: is not the name of a device"),
        ('like = "hdd-7200"\ncapacity_bytes = "8XB"', "mine.toml:2: capacity_bytes: '8XB': 'XB' is not a unit of size"),
        (
            'like = "hdd-7200"\ncapacity_bytes = 8',
            "capacity_bytes: 8: is less than a cylinder in each zone; accepted: ",
        ),
        ('like = "hdd-7200"\nsustained_mb_s = 0', "mine.toml:2: sustained_mb_s: 0: is not a rate"),
        ('like = "hdd-7200"\nsustained_inner_mb_s = 300', "sustained_inner_mb_s: 300.0: is more than outside"),
        ('like = "hdd-7200"\nrpm = "fast"', "mine.toml:2: rpm: 'fast': is not a speed"),
        ('like = "hdd-7200"\nheads = 2.5', "mine.toml:2: heads: 2.5: is no number of heads; accepted: 1 to 256"),
        ('like = "hdd-7200"\nbuffer = 3', "mine.toml:2: buffer: 3: is not a table"),
        ('like = "hdd-7200"\nrmp = 3', "mine.toml:2: rmp: unknown key; did you mean 'rpm'?; accepted: name"),
        ('like = "hdd-7200"\nkind = "ssd"', "mine.toml:2: kind: 'ssd': 'hdd-7200' is of another kind"),
        ('like = "hdd-7200-bare"\ncache_bytes = "1MiB"', "cache_bytes: 1048576: 'hdd-7200-bare' has no buffer"),
        ('like = "hdd-7200"\nheads = 2\nzones = []', "heads: goes with the zones of the other device"),
        ('like = "spared"\nheads = 2', "heads: 'spared' says where its sectors lie one by one"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    (tmp_path / "other.toml").write_text('like = "mine"\n')
    (tmp_path / "spared.toml").write_text(
        'kind = "hdd"\nrpm = 7200\nheads = 1\nseek = { kind = "constant", ms = 1.0 }\n'
        "zones = [{ cylinders = 9, sectors_per_track = 9, slips = [3] }]\n"
    )
    with pytest.raises(ValueError) as caught:
        load_device("mine", tmp_path / "study.toml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_study_may_say_a_device_like_another(tmp_path: Path) -> None:
    text = """
name = "six"
title = "Six disks"
on = ["sim"]
[[array]]
name = "raid6"
tree = "raid6(6)"
[[workload]]
name = "reads"
read = 1.0
size = "8KiB"
address = "uniform"
[load]
depths = [4]
[sim]
warmup = { requests = 10 }
measure = { requests = 100 }
[sim.device]
like = "hdd-nearline-20tb"
capacity_bytes = "8TB"
"""
    study = load_study_text(text, tmp_path / "study.toml")
    assert study.geometry.devices["sim"].capacity_bytes // 10**9 == 8000
    with pytest.raises(InputError) as caught:
        load_study_text(text + 'queue_depth = "x"\n', tmp_path / "study.toml")
    (problem,) = caught.value.problems
    assert (problem.where, problem.value, problem.message) == ("sim.device.queue_depth", "'x'", "is not a whole number")
    assert problem.line == text.count("\n") + 1
    assert tomllib.loads(text)["sim"]["device"]["like"] == "hdd-nearline-20tb"
