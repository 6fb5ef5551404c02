"""DiskSim's parameter files: what they say of a disk, what is named because the model lacks it, what is refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import disksim_files as files
from raidlab import _core
from raidlab.errors import InputError
from raidlab.formats.disksim import DiskImport, import_disk
from raidlab.formats.toml import toml_text


def imported(folder: Path, **texts: Any) -> DiskImport:
    return import_disk(files.write(folder, **texts))


def mistake(folder: Path, **texts: Any) -> str:
    with pytest.raises(InputError) as caught:
        imported(folder, **texts)
    return str(caught.value).replace(f"{folder}/", "")


def capacity_sectors(device: dict[str, Any]) -> int:
    return int(_core.device_facts(json.dumps(device))["capacity_bytes"]) // 512


def test_a_whole_set_up(tmp_path: Path) -> None:
    found = imported(tmp_path)
    assert (found.name, found.notes) == ("SMALL", ())
    device = found.device
    assert {key: device[key] for key in ("kind", "heads", "cylinders", "rpm", "rpm_error_percent", "mapping")} == {
        "kind": "hdd",
        "heads": 2,
        "cylinders": 50,
        "rpm": 6000.0,
        "rpm_error_percent": 0.5,
        "mapping": "normal",
    }
    assert device["sparing"] == "sectors_per_cylinder"
    assert device["zones"][0] == {
        "first_cylinder": 0,
        "cylinders": 30,
        "sectors_per_track": 20,
        "start_angle": {"sectors": 0},
        "track_skew": {"sectors": 3},
        "cylinder_skew": {"sectors": 5},
        "reserved_sectors": 40,
        "spares": 2,
        "slips": [7, 41],
        "remaps": [[100, 39]],
    }
    assert device["zones"][1]["start_angle"] == {"sectors": 4}
    assert (device["head_switch_ms"], device["write_settle_ms"]) == (0.8, -0.25)
    assert device["seek"] == {"kind": "table", "points": [[1, 1.0], [10, 3.0], [49, 6.5]]}
    assert (device["queue_depth"], device["scheduler"]) == (8, "clook")
    assert capacity_sectors(device) == files.SECTORS
    assert set(device["provenance"]) == set(device) - {"kind", "name", "description", "provenance"}


@pytest.mark.parametrize(
    ("policy", "queueing", "expected"),
    [
        ("1", "1", {"queue_depth": 8, "scheduler": "clook"}),
        ("3", "1", {"queue_depth": 8, "scheduler": "clook", "host_scheduler": "clook"}),
        ("4", "0", {"queue_depth": 1, "scheduler": "fifo", "host_scheduler": "sstf"}),
        ("18", "0", {"queue_depth": 1, "scheduler": "fifo", "host_scheduler": {"vscan": {"percent": 20}}}),
    ],
)
def test_the_drivers_queue_is_the_hosts(tmp_path: Path, policy: str, queueing: str, expected: dict[str, Any]) -> None:
    driver = files.SET_UP.replace("{ Scheduling policy = 1", f"{{ Scheduling policy = {policy}")
    driver = driver.replace("Use queueing in subsystem = 1", f"Use queueing in subsystem = {queueing}")
    found = imported(tmp_path, set_up=driver)
    assert found.notes == ()
    keys = ("queue_depth", "scheduler", "host_scheduler")
    assert {key: found.device[key] for key in keys if key in found.device} == expected
    assert capacity_sectors(found.device) == files.SECTORS


def test_what_a_driver_does_besides_is_named(tmp_path: Path) -> None:
    driver = files.SET_UP.replace("{ Scheduling policy = 1", "{ Scheduling policy = 8")
    driver = driver.replace("Scheduling timeout scheme = 0", "Scheduling timeout scheme = 1")
    notes = [str(note) for note in imported(tmp_path, set_up=driver).notes]
    assert [note.split(": ")[1] for note in notes] == ["Scheduling timeout scheme = 1", "Scheduling policy = 8"]
    assert "host_scheduler" not in imported(tmp_path, set_up=driver).device


def test_overheads_are_scaled_and_the_bus_paces(tmp_path: Path) -> None:
    device = imported(tmp_path).device
    commands = device["commands"]
    assert (commands["every_ms"], commands["read_hit_after_write_ms"], commands["write_miss_after_write_ms"]) == (
        0.1,
        0.4,
        1.6,
    )
    # Not an overhead: the scale does not apply.
    assert commands["minimum_write_seek_ms"] == 1.5
    assert "extra_write_disconnect" not in commands
    # The slowest of bus, controller and disk paces a transfer.
    assert (device["bus"]["read_sector_ms"], device["bus"]["write_sector_ms"]) == (0.0512, 0.0256)
    assert (device["bus"]["hold_for_read"], device["bus"]["hold_for_write"]) == (False, True)
    slow = imported(tmp_path, spec=files.specs(Bulk_sector_transfer_time="0.04")).device
    assert (slow["bus"]["read_sector_ms"], slow["bus"]["write_sector_ms"]) == (0.0512, 0.04)


def test_the_buffer(tmp_path: Path) -> None:
    buffer = imported(tmp_path).device["buffer"]
    assert buffer == {
        "segments": 4,
        "segment_sectors": 64,
        "write_segments": 2,
        "separate_write_segment": False,
        "caching": True,
        "read_ahead": "next_track",
        "minimum_read_ahead_sectors": 2,
        "maximum_read_ahead_sectors": 30,
        "keep_requested": "drop",
        "read_ahead_on_hit": True,
        "read_free_sectors": False,
        "write_back": "sequential",
        "combine_writes": True,
        "read_hits_on_written": True,
        "almost_read_hits": True,
        "transfer_partial_hits": True,
        "stop_within_sector": False,
        "read_watermark": 0.5,
        "write_watermark": 0.25,
        "watermark_of_command": True,
        "write_prebuffering": False,
        "preseek": "before_completion",
    }


@pytest.mark.parametrize(
    ("seek", "expected"),
    [
        ("constant", {"kind": "constant", "ms": 5.0}),
        ("linear", {"kind": "linear", "min_ms": 1.0, "avg_ms": 4.0, "max_ms": 7.0}),
        ("curve", {"kind": "lee", "min_ms": 1.0, "avg_ms": 4.0, "max_ms": 7.0}),
        ("hpl", {"first_ms": []}),
        ("hplplus10", {"first_ms": [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9]}),
    ],
)
def test_every_kind_of_seek(tmp_path: Path, seek: str, expected: dict[str, Any]) -> None:
    mechanics = files.MECHANICS.replace("Seek type = extracted", f"Seek type = {seek}")
    device = imported(tmp_path, disk=files.model(mechanics=mechanics)).device
    if "first_ms" in expected:
        pieces = {"division": 20, "root_a_ms": 1.5, "root_b_ms": 0.4, "line_a_ms": 3.0, "line_b_ms": 0.05}
        expected = {"kind": "hp", **pieces, **expected}
    assert device["seek"] == expected
    assert capacity_sectors(device) == files.SECTORS


def test_a_single_cylinder_of_hps_curve(tmp_path: Path) -> None:
    mechanics = files.MECHANICS.replace("extracted", "hpl").replace("-1.0 ]", "0.9 ]")
    assert imported(tmp_path, disk=files.model(mechanics=mechanics)).device["seek"]["first_ms"] == [0.9]


def test_seek_files(tmp_path: Path) -> None:
    def points(text: str) -> list[list[float]]:
        found: list[list[float]] = imported(tmp_path, small__seek=text).device["seek"]["points"]
        return found

    # With a header the curve begins at no distance and no time; without one its first point holds for less.
    assert points("Seek distances measured: 2\n4, 2.0\n40, 6.0\n") == [[1, 0.5], [4, 2.0], [40, 6.0]]
    assert points("4, 2.0\n40, 6.0\n") == [[4, 2.0], [40, 6.0]]
    assert points("1, 2.0, 0.5\n\n40, 6.0, 0.1\n") == [[1, 2.0], [40, 6.0]]
    wrong = mistake(tmp_path, small__seek="1, 1.0\n5, 2.0\n3, 3.0\n")
    assert wrong == "small.seek:3: 3, 3.0: distances must rise"
    assert "holds 2 points, not 3" in mistake(tmp_path, small__seek="Seek distances measured: 3\n1, 1\n2, 2\n")
    assert "small.seek:2" in mistake(tmp_path, small__seek="1, 1.0\nabout 3\n")
    for odd in ("1.2.3", "e", "+", "--", "1e999", "\u0661", "9" * 5000):
        assert mistake(tmp_path, small__seek=f"1, 1.0\n5, {odd}\n").startswith("small.seek:2"), odd
    for odd in ("9" * 5000, "\u0661"):
        assert "small.seek:1" in mistake(tmp_path, small__seek=f"Seek distances measured: {odd}\n1, 1.0\n")
        assert "small.seek:1" in mistake(tmp_path, small__seek=f"{odd}, 1.0\n")
    lost = files.model(mechanics=files.MECHANICS.replace("small.seek", "lost.seek"))
    assert "lost.seek: cannot be read" in mistake(tmp_path, disk=lost)


@pytest.mark.parametrize("scheme", range(11))
def test_every_sparing_scheme_makes_a_disk(tmp_path: Path, scheme: int) -> None:
    layout = files.G1.replace("Sparing scheme used = 2", f"Sparing scheme used = {scheme}")
    if scheme == 1:
        # Whole tracks: slips and defects name those.
        layout = layout.replace("[ 7, 41 ], defects = [ 100, 39 ]", "[ 7 ], defects = [ 10, 59 ]")
    device = imported(tmp_path, disk=files.model(layout)).device
    assert 1500 < capacity_sectors(device) < 1800


def test_a_map_of_extents(tmp_path: Path) -> None:
    layout = """dm_layout_g2 { Layout Map File = small.map, Zones = [ dm_layout_g2_zone {
        First cylinder number = 0, Last cylinder number = 1, First LBN = 0, Last LBN = 39, Blocks per track = 10,
        Zone Skew = 0.0, Skew for track switch = 2.0, Skew for cylinder switch = 3.0 } ] }"""
    lines = ["Layout of a disk", "read by a tool", ""]
    lines += [f"lbn {10 * t} --> cyl {t // 2}, head {t % 2}, sect 0, seqcnt 9" for t in range(4)]
    lines[4:4] = ["Defect at cyl 0, head 1, sect 3"]
    disk = files.model(layout, sectors=40)
    device = imported(tmp_path, disk=disk, small__map="\n".join(lines)).device
    assert device["layout"]["bands"][0]["track_skew"] == {"sectors": 2}
    assert device["layout"]["extents"] == [[0, 0, 0, 0, 10], [10, 0, 1, 0, 10], [20, 1, 0, 0, 10], [30, 1, 1, 0, 10]]
    assert capacity_sectors(device) == 40
    short = mistake(tmp_path, disk=files.model(layout, sectors=41), small__map="\n".join(lines))
    assert "places 40 sectors, not the 41" in short
    assert "small.map:5" in mistake(tmp_path, disk=disk, small__map="\n".join([*lines[:4], "lbn 7 at 8"]))


def test_an_index_of_patterns(tmp_path: Path) -> None:
    layout = """dm_layout_g4 {
        TP = [ 0, 9, 10 ],
        IDX = [
          [ 0, 0, 0.0, 10, 0, 0.0, 10, 1, TRACK, 0, 0, 10, 0, 0.2, 10, 0, 0.0, 10, 1, TRACK, 0, 1 ],
          [ 0, 0, 0.0, 20, 1, 0.5, 1000, 50, IDX, 0 ]
        ],
        Slips = [ 100, 3 ], Remaps = [ 5, 1, 49, 1, 9, 10 ] }"""
    device = imported(tmp_path, disk=files.model(layout, sectors=990)).device
    index = device["layout"]
    assert (index["kind"], index["sectors"], index["tracks"]) == ("index", 990, [[0, 9, 10]])
    assert (index["slips"], index["remaps"]) == ([[100, 3]], [[5, 1, 49, 1, 9, 10]])
    assert [entry["child"] for entry in index["nodes"][0]] == [
        {"track": {"track": 0, "head": 0}},
        {"track": {"track": 0, "head": 1}},
    ]
    assert index["nodes"][1][0]["turn"] == 0.5
    assert capacity_sectors(device) == 990
    assert "breaks off" in mistake(tmp_path, disk=files.model(layout.replace(", IDX, 0 ]", " ]"), sectors=990))
    assert "is no child" in mistake(tmp_path, disk=files.model(layout.replace("IDX, 0 ]", "ID, 0 ]"), sectors=990))
    fraction = files.model(layout.replace("0.5, 1000, 50", "0.5, 1000.5, 50"), sectors=990)
    assert "IDX: 1000.5: is no whole number" in mistake(tmp_path, disk=fraction)


def test_what_the_model_lacks_is_named_with_its_line(tmp_path: Path) -> None:
    spec = files.specs(
        Allow_sneaky_full_read_hits="1",
        Immediate_buffer_read="1",
        Disconnect_write_if_seek="1",
        Read_directly_to_buffer="0",
    )
    set_up = files.SET_UP.replace(
        "Arbitration time = 0.0,\n   Read block transfer time = 0.05",
        "Arbitration time = 0.1,\n   Read block transfer time = 0.05",
    )
    notes = [
        str(note) for note in imported(tmp_path, spec=spec, set_up=set_up, disk=files.model(sectors=1_000_000)).notes
    ]
    lines = spec.splitlines()
    for key in ("Allow sneaky full read hits", "Immediate buffer read", "Disconnect write if seek"):
        line = next(number for number, text in enumerate(lines, start=1) if key in text)
        assert any(note.startswith(f"small.diskspecs:{line}: {key} = 1: ") for note in notes), notes
    assert any("Read directly to buffer = 0: " in note for note in notes)
    assert any(note.startswith("small.parv:9: Arbitration time = 0.1: ") for note in notes)
    assert f"small.model:2: Block count = 1000000: the layout holds {files.SECTORS} sectors; those count" in notes
    assert len(notes) == 6


def test_a_disk_gives_out_its_block_count(tmp_path: Path) -> None:
    found = imported(tmp_path, disk=files.model(sectors=files.SECTORS - 60))
    assert (found.device["sectors"], capacity_sectors(found.device), found.notes) == (
        files.SECTORS - 60,
        files.SECTORS - 60,
        (),
    )
    assert "sectors" not in imported(tmp_path).device


def test_a_policy_that_is_not_there_is_named_where_it_matters(tmp_path: Path) -> None:
    queue = files.PARAMETERS["Scheduler"].replace("policy = 3", "policy = 12")
    found = imported(tmp_path, spec=files.specs(Scheduler=queue))
    assert found.device["scheduler"] == "fifo"
    assert ["Scheduling policy" in str(note) for note in found.notes] == [True]
    alone = imported(tmp_path, spec=files.specs(Scheduler=queue, Max_queue_length="1"))
    assert (alone.device["queue_depth"], alone.notes) == (1, ())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"Fast_write_levle": "1"}, "Fast write levle: 1: is no parameter of disksim_disk; did you mean"),
        ({"Fast_write_level": "3"}, "Fast write level: 3: is not known; accepted: 0, 1, 2"),
        ({"Never_disconnect": "2"}, "Never disconnect: 2: is out of range; accepted: 0 to 1"),
        ({"Never_disconnect": "yes"}, "Never disconnect: yes: is no number"),
        ({"Segment_size_(in_blks)": "6.5"}, "Segment size (in blks): 6.5: is no whole number"),
        ({"Read_completion_overhead": "-1"}, "Read completion overhead: -1: is out of range; accepted: 0 or more"),
        ({"Model": "5"}, "Model: 5: is no block"),
    ],
)
def test_what_is_wrong_is_refused_with_file_and_line(tmp_path: Path, changes: dict[str, str], expected: str) -> None:
    text = mistake(tmp_path, spec=files.specs(**changes))
    assert text.startswith("small.diskspecs:")
    assert expected in text


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    spec = "\n".join(line for line in files.specs().splitlines() if "Fast write level" not in line)
    assert "lacks 'Fast write level'" in mistake(tmp_path, spec=spec)
    misspelt = mistake(tmp_path, spec=files.specs().replace("Fast write level", "Fast write levle"))
    assert "lacks 'Fast write level'; line" in misspelt
    assert misspelt.endswith("has 'Fast write levle'")
    assert "is no kind of block" in mistake(tmp_path, set_up=files.SET_UP + "some_thing X { a = 1 }\n")
    assert "disksim_iodriver: lacks" not in mistake(tmp_path, set_up="disksim_global G { }\n")
    assert "holds no disk" in mistake(tmp_path, set_up="disksim_global G { }\n")
    assert "lost.model" in mistake(tmp_path, spec=files.specs(Model="source lost.model"))
    assert "accepted: dm_layout_g1" in mistake(tmp_path, disk=files.model("dm_layout_g3 { }"))
    access = files.MECHANICS.replace("trackSwitchPlusRotation", "averageRotation")
    assert "Access time type: averageRotation: is not modelled" in mistake(tmp_path, disk=files.model(mechanics=access))
    settle = files.MECHANICS.replace("-0.25", "-0.9")
    assert "write_settle_ms" in mistake(tmp_path, disk=files.model(mechanics=settle))


@pytest.mark.parametrize(
    ("text", "line"),
    [("disksim_disk A { x = 1,\n y }", 2), ("disksim_disk A {\n\nx = [1, 2", 3), ("a b {\n x = }", 2), ("= 1", 1)],
)
def test_what_does_not_follow_the_grammar(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "x.parv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        import_disk(file)
    assert str(caught.value).startswith(f"{file}:{line}"), caught.value


def test_a_file_that_names_itself_ends(tmp_path: Path) -> None:
    assert "small.parv" in mistake(tmp_path, set_up="source small.parv\n")


def test_files_that_name_one_another_are_counted(tmp_path: Path) -> None:
    # Two to the power of thirty, were each read as often as it is named.
    for number in range(30):
        (tmp_path / f"s{number}").write_text(f"source s{number + 1}\n" * 2)
    (tmp_path / "s30").write_text("dm_disk a { X = 1 }\n")
    with pytest.raises(InputError, match=r"source: s\d+: is the 1,025th file that is named"):
        import_disk(tmp_path / "s0")


def test_names_of_all_ranges_are_counted_together(tmp_path: Path) -> None:
    text = "instantiate [ " + ", ".join(["d0 .. d65535"] * 4000) + " ] as x\n"
    assert "all ranges together have more than 65,536 names" in mistake(tmp_path, set_up=text)


def test_blocks_that_take_over_from_one_another_are_counted(tmp_path: Path) -> None:
    def chain(count: int) -> str:
        return "dm_disk b0 { }\n" + "".join(f"b{i} b{i + 1} {{}}\n" for i in range(count))

    assert "takes over from more than 63 blocks in a row" in mistake(tmp_path, set_up=chain(4500))
    assert "in a row" not in mistake(tmp_path, set_up=chain(50))


def test_any_of_its_files_will_do(tmp_path: Path) -> None:
    files.write(tmp_path)
    alone = import_disk(tmp_path / "small.diskspecs").device
    # Without a bus its own transfer time counts.
    assert alone["bus"]["read_sector_ms"] == 0.01
    mechanics = import_disk(tmp_path / "small.model")
    assert (mechanics.name, "buffer" in mechanics.device, capacity_sectors(mechanics.device)) == (
        "SMALL",
        False,
        files.SECTORS,
    )


def test_one_of_several_disks_and_what_it_inherits(tmp_path: Path) -> None:
    two = files.specs() + "SMALL OTHER { Number of buffer segments = 9 }\n"
    assert imported(tmp_path, spec=two).name == "SMALL", "the one that is instantiated"
    file = files.write(tmp_path, spec=two)
    other = import_disk(file, "OTHER").device
    assert (other["buffer"]["segments"], other["buffer"]["segment_sectors"]) == (9, 64)
    with pytest.raises(InputError, match="SMALL, OTHER"):
        import_disk(file, "THIRD")
    with pytest.raises(InputError, match="has several disks"):
        import_disk(tmp_path / "small.diskspecs")


def test_the_text_of_a_device_file_says_the_same(tmp_path: Path) -> None:
    device = imported(tmp_path).device
    text = toml_text(device, ["not modelled: this", "and that"])
    assert text.startswith("# not modelled: this\n# and that\n")
    assert tomllib.loads(text) == device
    # A table within a list stands on one line; TOML knows no other way.
    assert max(len(line) for line in text.splitlines() if not line.startswith("    {")) <= 120


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text("abz_-09 .é", min_size=1, max_size=6),
        st.recursive(
            st.one_of(
                st.booleans(),
                st.integers(-(2**53), 2**53),
                st.floats(allow_nan=False, allow_infinity=False),
                st.text(max_size=9),
            ),
            lambda inner: (
                st.lists(inner, max_size=40)
                | st.dictionaries(st.text('abc "', min_size=1, max_size=3), inner, max_size=4)
            ),
            max_leaves=60,
        ),
        max_size=6,
    )
)
def test_whatever_a_device_file_holds_is_read_back(device: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(device)) == device
