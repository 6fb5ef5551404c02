"""Facts that checks judge by, read from trees of files in place of sysfs and procfs, and from files that are there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from raidlab.measure.trials.read_again import read_bytes
from raidlab.measure.trials.watched import watch
from raidlab.run.kernel_facts import Sources
from raidlab.run.kernel_facts.stack import StackedDevice, counters, layer_facts, stack_below
from raidlab.run.machine_facts import MachineWatch, machine_facts
from raidlab.run.placement import unwritten_bytes
from raidlab.run.target_facts import allocation, content, limits, settings, signature, target_facts

MIB = 1 << 20


def written(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def disk(root: Path, name: str, numbers: str, **queue: str) -> Path:
    """A disk in a tree that stands for sysfs."""
    node = root / "sys" / "devices" / name
    written(node / "dev", f"{numbers}\n")
    for setting, value in queue.items():
        written(node / "queue" / setting, f"{value}\n")
    by_number = root / "sys" / "dev" / "block"
    by_number.mkdir(parents=True, exist_ok=True)
    (by_number / numbers).symlink_to(node)
    return node


def sources(root: Path, ask: object = None) -> Sources:
    def nobody(_words: object) -> str:
        raise OSError("no tool is installed")

    return Sources(root / "sys", root / "proc", root / "dev", ask or nobody)  # type: ignore[arg-type]


def numbers_of(path: Path) -> str:
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def test_a_stack_goes_down_to_the_disks(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"x")
    array = disk(tmp_path, "md0", numbers_of(file))
    for name, numbers in (("sda", "8:0"), ("sdb", "8:16")):
        below = disk(tmp_path, name, numbers)
        (array / "slaves").mkdir(exist_ok=True)
        (array / "slaves" / name).symlink_to(below)
    assert [layer.name for layer in stack_below(file, sources(tmp_path))] == ["md0", "sda", "sdb"]


def test_a_loop_device_tells_of_its_file_and_a_zram_of_its_compressor(tmp_path: Path) -> None:
    node = disk(tmp_path, "loop3", "7:3")
    written(node / "loop" / "backing_file", "/a [b]/disk.img (deleted)\n")
    written(node / "loop" / "dio", "0\n")
    facts = layer_facts(StackedDevice(node, "7:3", Path("/a [b]/disk.img")))
    assert facts["backing"] == "/a [b]/disk.img" and facts["through_page_cache"] is True
    other = disk(tmp_path, "zram1", "253:1")
    written(other / "comp_algorithm", "lzo [zstd] lz4\n")
    assert layer_facts(StackedDevice(other, "253:1"))["compresses"] == "zstd"


def test_settings_that_are_not_the_kernels(tmp_path: Path) -> None:
    plain = {"scheduler": "[none] mq-deadline", "rq_affinity": "1", "iostats": "1", "max_hw_sectors_kb": "4096"}
    node = disk(tmp_path, "sda", "8:0", **plain, nomerges="2", max_sectors_kb="64")
    written(tmp_path / "proc" / "self" / "mountinfo", "")
    found = settings.fact(tmp_path / "data", [StackedDevice(node, "8:0")], sources(tmp_path))["changed"]
    assert [(one["name"], one["value"]) for one in found] == [("nomerges", "2"), ("max_sectors_kb", "64")]
    usual = disk(tmp_path, "sdb", "8:16", **plain, nomerges="0", max_sectors_kb="1280")
    assert settings.fact(tmp_path / "data", [StackedDevice(usual, "8:16")], sources(tmp_path)) == {"changed": []}


def test_mount_options_that_trade_safety_for_speed(tmp_path: Path) -> None:
    line = f"30 1 8:1 / {tmp_path} rw,relatime shared:1 - ext4 /dev/sda1 rw,nobarrier,errors=remount-ro\n"
    written(tmp_path / "proc" / "self" / "mountinfo", line)
    (found,) = settings.fact(tmp_path / "data", [], sources(tmp_path))["changed"]
    assert (found["value"], found["default"]) == ("nobarrier", "barriers")


def test_limits_of_both_kinds_of_control_groups(tmp_path: Path) -> None:
    groups = tmp_path / "sys" / "fs" / "cgroup"
    written(tmp_path / "proc" / "self" / "cgroup", "7:blkio:/a/b\n3:cpu,cpuacct:/\n0::/c\n")
    written(groups / "blkio" / "a" / "b" / "x", "")
    written(groups / "blkio" / "a" / "blkio.throttle.read_iops_device", "8:0 2000\n")
    written(groups / "unified" / "cgroup.controllers", "io\n")
    written(groups / "unified" / "c" / "io.max", "8:0 rbps=max wbps=1048576 riops=max wiops=max\n8:16 rbps=5\n")
    stack = [StackedDevice(disk(tmp_path, "sda", "8:0"), "8:0")]
    found = limits.fact(tmp_path, stack, sources(tmp_path))["found"]
    assert [(one["device"], one["what"], one["value"]) for one in found] == [
        ("sda", "read_requests_per_s", 2000),
        ("sda", "write_bytes_per_s", 1048576),
    ]


def test_holes_of_files_and_untouched_pages_of_zram(tmp_path: Path) -> None:
    hole, full = tmp_path / "hole", tmp_path / "full"
    with hole.open("wb") as file:
        file.truncate(4 * MIB)
    full.write_bytes(os.urandom(MIB))
    (place,) = allocation.fact(hole, [], sources(tmp_path))["places"]
    assert place["stored_bytes"] < MIB and place["size_bytes"] == 4 * MIB
    (place,) = allocation.fact(full, [], sources(tmp_path))["places"]
    assert place["stored_bytes"] == MIB


def test_a_sample_knows_zeros_repetition_and_what_compresses(tmp_path: Path) -> None:
    def judged(content_of: bytes) -> dict[str, object]:
        file = tmp_path / "data"
        file.write_bytes(content_of)
        return content.fact(file, [], sources(tmp_path))

    assert judged(os.urandom(MIB)) == {"block_bytes": 4096, "blocks": 64, "zero": 0, "compressible": 0, "repeated": 0}
    assert judged(bytes(MIB))["zero"] == 64
    block = os.urandom(4096)
    assert judged(block * 256)["repeated"] == 63
    # What repeats in large is found at the beginnings of mebibytes.
    assert int(str(judged(os.urandom(8 * MIB) * 4)["repeated"])) >= 20
    half = os.urandom(2048)
    assert judged((half + bytes(2048)) * 256)["compressible"] == 64
    assert "unknown" in judged(b"too little")
    assert "unknown" in content.fact(tmp_path, [], sources(tmp_path))


def test_what_stands_on_a_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "is_block_device", lambda _path: True)

    def says(text: str | Exception) -> object:
        def ask(_words: object) -> str:
            if isinstance(text, Exception):
                raise text
            return text

        return sources(tmp_path, ask)

    device = tmp_path / "sda"
    found = signature.fact(device, [], says("DEVNAME=/dev/sda\nTYPE=ext4\nUSAGE=filesystem\n"))  # type: ignore[arg-type]
    assert found == {"kind": "ext4", "usage": "filesystem"}
    blank = signature.fact(device, [], says(OSError("blkid says: it ended with code 2")))  # type: ignore[arg-type]
    assert blank == {"kind": None}
    assert "unknown" in signature.fact(device, [], says(OSError("blkid is not installed")))  # type: ignore[arg-type]


def test_counters_count_bytes_where_they_are_kept(tmp_path: Path) -> None:
    node = disk(tmp_path, "sda", "8:0", iostats="1")
    written(node / "stat", "1 0 8 0 1 0 16 0 0 0 0\n")
    assert counters(StackedDevice(node, "8:0")) == (4096, 8192)
    other = disk(tmp_path, "sdb", "8:16", iostats="0")
    written(other / "stat", "1 0 8 0 1 0 16 0 0 0 0\n")
    assert counters(StackedDevice(other, "8:16")) is None
    assert read_bytes([StackedDevice(node, "8:0")]) == 4096
    assert read_bytes([StackedDevice(node, "8:0"), StackedDevice(other, "8:16")]) is None and read_bytes([]) is None


def test_watching_what_has_no_device_finds_none(tmp_path: Path) -> None:
    nothing, somewhere = watch([None, tmp_path], 0.0)
    assert nothing["devices"] == []
    assert all(device["read_bytes"] >= 0 for device in somewhere["devices"])


def test_machine_facts_go_on() -> None:
    watched = MachineWatch()
    facts = watched.facts()
    assert facts["after"]["clock"]["monotonic_ns"] >= facts["before"]["clock"]["monotonic_ns"]
    assert facts["after"]["clock"]["resolution_ns"] > 0


def test_a_machine_that_tells_everything(tmp_path: Path) -> None:
    cpus = tmp_path / "sys" / "devices" / "system" / "cpu"
    written(cpus / "cpu0" / "thermal_throttle" / "core_throttle_count", "3\n")
    written(cpus / "cpu1" / "thermal_throttle" / "core_throttle_count", "4\n")
    written(cpus / "cpu0" / "cpufreq" / "scaling_max_freq", "2000000\n")
    written(cpus / "cpu0" / "cpufreq" / "cpuinfo_max_freq", "4000000\n")
    written(tmp_path / "sys" / "class" / "power_supply" / "AC" / "type", "Mains\n")
    written(tmp_path / "sys" / "class" / "power_supply" / "AC" / "online", "0\n")
    written(tmp_path / "proc" / "stat", "cpu  1 2 3 4 5 6 7 8 9 9\ncpu0 1\n")
    written(tmp_path / "proc" / "self" / "cgroup", "1:cpu:/a\n")
    written(tmp_path / "sys" / "fs" / "cgroup" / "cpu" / "a" / "cpu.stat", "nr_periods 5\nnr_throttled 2\n")
    found = machine_facts(sources(tmp_path))["processor"]
    assert found["heat_events"] == 7 and found["on_battery"] is True and found["quota_stops"] == 2
    assert (found["stolen_ticks"], found["all_ticks"]) == (8, 36)
    assert found["frequency_cap_khz"] == 2000000
    bare = machine_facts(sources(tmp_path / "nothing"))["processor"]
    assert set(bare.values()) == {None}


def test_others_are_neither_this_program_nor_its_own_nor_the_kernels(tmp_path: Path) -> None:
    own = os.getpid()
    for number, parent, ticks in ((own, 1, 900), (own + 1, own, 90), (2, 0, 7), (3, 2, 70), (own + 2, 1, 40)):
        written(tmp_path / "proc" / str(number) / "stat", f"{number} (a) b) S {parent}{' 0' * 9} {ticks} 1 0 0\n")
    written(tmp_path / "proc" / "pressure" / "cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull total=5\n")
    found = machine_facts(sources(tmp_path))["others"]
    assert found == {"programs": {str(own + 2): 41}, "waited_us": 1234}
    assert machine_facts(sources(tmp_path / "nothing"))["others"] == {"programs": None, "waited_us": None}


def test_facts_of_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(os.urandom(MIB))
    facts = target_facts(file)
    asked = {"settings", "limits", "allocation", "signature", "content", "traffic"}
    assert {"disks", "volumes", "stack", *asked} == set(facts)
    assert facts["content"]["blocks"] == 64
    assert target_facts(None) == {"disks": [], "volumes": [], "stack": []}


def test_what_was_reserved_and_never_written_is_not_stored(tmp_path: Path) -> None:
    file = tmp_path / "reserved"
    with file.open("wb") as opened:
        opened.write(os.urandom(MIB))
        opened.flush()
        try:
            os.posix_fallocate(opened.fileno(), 0, 4 * MIB)
        except OSError as error:
            pytest.skip(f"no fallocate here: {error}")
    if unwritten_bytes(file) in (None, 0):
        pytest.skip("the file system tells of no extents, or writes what it reserves")
    (place,) = allocation.fact(file, [], sources(tmp_path))["places"]
    assert (place["stored_bytes"], place["unwritten_bytes"]) == (MIB, 3 * MIB)


def test_a_file_system_that_counts_no_blocks_says_nothing_of_holes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data"
    file.write_bytes(os.urandom(MIB))
    nothing = SimpleNamespace(st_mode=file.stat().st_mode, st_size=MIB, st_blocks=0)
    monkeypatch.setattr(Path, "stat", lambda self, **_: nothing)
    (place,) = allocation.fact(file, [], sources(tmp_path))["places"]
    assert place["stored_bytes"] is None
