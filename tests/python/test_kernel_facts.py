"""Facts of the kernel's arrays: md, device mapper and ZFS against trees of files and texts as the kernel's and the
tools' documentation write them; btrfs for real, on loop devices."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from raidlab.run.kernel_facts import Sources, btrfs, dm, md, mount_of, volumes_below, zfs
from raidlab.run.kernel_facts.stack import StackedDevice, disks_below, layer_facts

TEXTS = Path(__file__).parent / "kernel_texts"
MDSTAT = (TEXTS / "mdstat").read_text(encoding="utf-8")


class FakeSystem:
    """A tree of files in place of sysfs, procfs and /dev, and answers in place of tools."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.answers: dict[tuple[str, ...], str] = {}
        for folder in ("sys/dev/block", "proc/self", "dev", "sys/devices/virtual/block"):
            (root / folder).mkdir(parents=True)

    def ask(self, words: Sequence[str]) -> str:
        if tuple(words) not in self.answers:
            raise OSError(f"{words[0]} is not installed")
        return self.answers[tuple(words)]

    @property
    def sources(self) -> Sources:
        return Sources(self.root / "sys", self.root / "proc", self.root / "dev", self.ask)

    def block(self, name: str, files: dict[str, str] | None = None, below: Sequence[str] = ()) -> Path:
        """A block device with files, made of others."""
        node = self.root / "sys/devices/virtual/block" / name
        for file, text in (files or {}).items():
            (node / file).parent.mkdir(parents=True, exist_ok=True)
            (node / file).write_text(text + "\n", encoding="utf-8")
        (node / "slaves").mkdir(parents=True, exist_ok=True)
        for slave in below:
            (node / "slaves" / slave).symlink_to(f"../../{slave}")
        return node

    def mount(self, name: str) -> Path:
        """A directory that lies, as its device number says, on a block device of the tree."""
        number = self.root.stat().st_dev
        link = self.root / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
        link.symlink_to(f"../../devices/virtual/block/{name}")
        return self.root


@pytest.fixture
def system(tmp_path: Path) -> FakeSystem:
    return FakeSystem(tmp_path)


def raid5(array_state: str = "clean", degraded: str = "0", action: str = "idle", **more: str) -> dict[str, str]:
    files = {
        "md/level": "raid5",
        "md/raid_disks": "3",
        "md/chunk_size": "524288",
        "md/layout": "2",
        "md/array_state": array_state,
        "md/degraded": degraded,
        "md/sync_action": action,
        "md/sync_completed": "none",
        "md/metadata_version": "1.2",
        "md/consistency_policy": "bitmap",
        "md/bitmap/location": "+8",
        "md/stripe_cache_size": "256",
    }
    for slot, name in enumerate(("sda1", "sdb1", "sdc1")):
        files |= {
            f"md/dev-{name}/state": "in_sync",
            f"md/dev-{name}/slot": str(slot),
            f"md/dev-{name}/errors": "0",
        }
    return files | more


def test_an_optimal_md_array(system: FakeSystem) -> None:
    system.block("sda1"), system.block("sdb1"), system.block("sdc1")
    system.block("md0", raid5(), below=["sda1", "sdb1", "sdc1"])
    (found,) = volumes_below(system.mount("md0"), system.sources)
    assert found["kind"] == "md" and found["name"] == "md0" and found["level"] == "raid5"
    assert (found["chunk_bytes"], found["state"], found["activity"]) == (524288, "optimal", "idle")
    assert [(member["name"], member["slot"], member["state"]) for member in found["members"]] == [
        ("sda1", 0, "online"),
        ("sdb1", 1, "online"),
        ("sdc1", 2, "online"),
    ]
    assert found["details"]["rotation"] == "left_symmetric"
    assert found["details"]["bitmap"] == "+8"
    assert found["unknown"] == {}


def test_a_degraded_md_array_that_is_being_rebuilt(system: FakeSystem) -> None:
    files = raid5("active", "1", "recover")
    files |= {
        "md/dev-sdb1/state": "faulty",
        "md/dev-sdb1/slot": "none",
        "md/dev-sdc1/state": "spare",
        "md/dev-sdd1/state": "spare",
        "md/dev-sdd1/slot": "none",
        "md/sync_completed": "250 / 1000",
    }
    found = md.facts(system.block("md0", files), system.sources)
    assert (found["state"], found["missing_members"]) == ("degraded", 1)
    assert (found["activity"], found["activity_share"]) == ("recover", 0.25)
    states = {member["name"]: member["state"] for member in found["members"]}
    assert states == {"sda1": "online", "sdb1": "failed", "sdc1": "rebuilding", "sdd1": "spare"}


def test_an_array_being_reshaped_tells_its_new_numbers_first(system: FakeSystem) -> None:
    node = system.block("md0", raid5(**{"md/raid_disks": "4 (3)", "md/chunk_size": "65536 (524288)"}))
    found = md.facts(node, system.sources)
    assert (found["raid_disks"], found["chunk_bytes"]) == (4, 65536)


def test_md_levels_without_redundancy_have_nothing_to_lose(system: FakeSystem) -> None:
    files = {"md/level": "raid0", "md/raid_disks": "2", "md/chunk_size": "65536", "md/array_state": "clean"}
    found = md.facts(system.block("md7", files), system.sources)
    assert (found["state"], found["missing_members"], found["activity"]) == ("optimal", 0, "idle")
    assert found["unknown"] == {}


def test_an_md_array_that_takes_no_io_has_failed(system: FakeSystem) -> None:
    found = md.facts(system.block("md0", raid5("inactive")), system.sources)
    assert found["state"] == "failed"


def test_what_sysfs_withholds_mdstat_may_tell(system: FakeSystem) -> None:
    files = raid5()
    for name in ("md/degraded", "md/sync_action", "md/chunk_size"):
        del files[name]
    node = system.block("md0", files)
    found = md.facts(node, system.sources)
    assert found["state"] is None
    assert "no degraded" in found["unknown"]["missing_members"]
    assert found["unknown"]["state"]
    (system.root / "proc/mdstat").write_text(MDSTAT, encoding="utf-8")
    found = md.facts(node, system.sources)
    assert (found["state"], found["missing_members"], found["chunk_bytes"]) == ("degraded", 1, 512 * 1024)
    assert (found["activity"], found["activity_share"]) == ("recover", 0.085)
    assert found["unknown"] == {}


def test_mdstat_is_read_array_by_array() -> None:
    found = md.parse_mdstat(MDSTAT)
    assert list(found) == ["md1", "md0", "md7", "md9"]
    assert found["md1"]["activity"] == "resync" and found["md1"]["missing_members"] == 0
    assert found["md1"]["chunk_bytes"] is None, "the bitmap's chunk is not the array's"
    states = {member["name"]: member["state"] for member in found["md0"]["members"]}
    assert states == {"sdd1": "online", "sdc1": "failed", "sdb1": "online", "sda1": "online", "sdg1": "spare"}
    assert (found["md7"]["level"], found["md7"]["chunk_bytes"]) == ("raid0", 65536)
    assert found["md9"]["level"] is None


def logical_volume(system: FakeSystem, table: str | None, status: str | None) -> dict[str, Any]:
    system.block("sda"), system.block("sdb")
    node = system.block("dm-0", {"dm/name": "vg-data", "dm/uuid": "LVM-abc", "dm/suspended": "0"}, below=["sda", "sdb"])
    for verb, text in (("table", table), ("status", status)):
        if text is not None:
            system.answers["dmsetup", verb, "vg-data"] = text
    return dm.facts(node, system.sources)


def test_a_striped_volume_of_the_device_mapper(system: FakeSystem) -> None:
    found = logical_volume(system, "0 409600 striped 2 128 8:0 2048 8:16 2048\n", "0 409600 striped 2 8:0 8:16 1 AA\n")
    assert (found["level"], found["chunk_bytes"], found["state"]) == ("striped", 65536, "optimal")
    assert found["details"]["made_by"] == "lvm"
    assert [member["name"] for member in found["members"]] == ["sda", "sdb"]
    assert found["unknown"] == {}


# As a kernel gave them in the lab (tests/md-lab); letters of failures are those of its documentation.
@pytest.mark.parametrize(
    ("table", "status", "expected"),
    [
        ("0 65536 striped 2 128 253:0 0 253:1 0", "0 65536 striped 2 253:0 253:1 1 AA", ("optimal", "idle", None, 0)),
        ("0 65536 striped 2 128 253:0 0 253:1 0", "0 65536 striped 2 253:0 253:1 1 AD", ("failed", None, None, 1)),
        (
            "0 65536 mirror core 2 1024 nosync 2 253:0 0 253:1 0",
            "0 65536 mirror 2 253:0 253:1 64/64 1 AA 1 core",
            ("optimal", "idle", None, 0),
        ),
        (
            "0 65536 mirror core 1 1024 2 253:0 0 253:1 0",
            "0 65536 mirror 2 253:0 253:1 2/64 1 AA 1 core",
            ("optimal", "resync", 2 / 64, 0),
        ),
        (
            "0 65536 mirror disk 2 253:9 1024 3 253:0 0 253:1 0 253:2 0",
            "0 65536 mirror 3 253:0 253:1 253:2 64/64 1 ADA 3 disk 253:9 A",
            ("degraded", "idle", None, 1),
        ),
    ],
)
def test_stripes_and_mirrors_of_the_device_mapper(
    system: FakeSystem, table: str, status: str, expected: tuple[object, ...]
) -> None:
    found = logical_volume(system, table, status)
    assert (found["state"], found["activity"], found["activity_share"], found["missing_members"]) == expected
    assert found["level"] == table.split()[2]


def test_a_namespace_of_nvme_names_its_controller(system: FakeSystem) -> None:
    controller = system.root / "sys/class/nvme/nvme0"
    controller.mkdir(parents=True)
    (controller / "model").write_text("A Fast Drive\n", encoding="utf-8")
    node = system.block("nvme0n2", {"nsid": "2", "queue/rotational": "0"})
    (node / "device").symlink_to(controller)
    facts = layer_facts(StackedDevice(node, "259:1"))
    assert facts["namespace"] == "namespace 2 of nvme0 (A Fast Drive)"
    assert "namespace" not in layer_facts(StackedDevice(system.block("sda"), "8:0"))


def test_a_degraded_raid_volume_of_the_device_mapper(system: FakeSystem) -> None:
    found = logical_volume(
        system,
        "0 1960893648 raid raid6_zr 3 128 region_size 2048 5 8:1 8:2 8:17 8:18 8:33 8:34 8:49 8:50 8:65 8:66\n",
        "0 1960893648 raid raid6_zr 5 AAaAD 2/490221568 recover 0 2048 -\n",
    )
    assert (found["level"], found["chunk_bytes"], found["state"]) == ("raid6_zr", 65536, "degraded")
    assert found["missing_members"] == 1 and found["activity"] == "recover"
    assert [member["state"] for member in found["members"]] == ["online", "online", "rebuilding", "online", "failed"]


def test_what_dmsetup_may_not_tell_is_said_to_be_unknown(system: FakeSystem) -> None:
    found = logical_volume(system, None, None)
    assert found["level"] is None and found["state"] is None
    assert found["unknown"] == dict.fromkeys(("level", "chunk_bytes", "state"), "dmsetup is not installed")
    thin = logical_volume_thin(system)
    assert thin["state"] is None and "'thin' says nothing of redundancy" in thin["unknown"]["state"]


def logical_volume_thin(system: FakeSystem) -> dict[str, Any]:
    system.answers["dmsetup", "table", "vg-data"] = "0 409600 thin 253:2 1\n"
    system.answers["dmsetup", "status", "vg-data"] = "0 409600 thin 8192 409599\n"
    return dm.facts(system.root / "sys/devices/virtual/block/dm-0", system.sources)


def test_a_volume_on_an_array_shows_both(system: FakeSystem) -> None:
    system.block("sda1"), system.block("sdb1"), system.block("sdc1")
    system.block("md0", raid5(), below=["sda1", "sdb1", "sdc1"])
    system.block("dm-3", {"dm/name": "vault", "dm/uuid": "CRYPT-LUKS2-x", "dm/suspended": "0"}, below=["md0"])
    found = volumes_below(system.mount("dm-3"), system.sources)
    assert [(volume["kind"], volume["name"]) for volume in found] == [("dm", "vault"), ("md", "md0")]


ZPOOL = (TEXTS / "zpool-status").read_text(encoding="utf-8")


def test_a_volume_of_zfs(system: FakeSystem) -> None:
    node = system.block("zd16")
    (system.root / "dev/zvol/tank").mkdir(parents=True)
    (system.root / "dev/zvol/tank/vol").symlink_to("../../zd16")
    (system.root / "dev/zd16").write_text("", encoding="utf-8")
    found = zfs.facts(node, system.sources)
    assert found["name"] == "tank/vol" and found["state"] is None
    assert found["unknown"]["level"] == "zpool is not installed"
    properties = ",".join(zfs._PROPERTIES)
    system.answers["zfs", "get", "-Hp", "-o", "property,value", properties, "tank/vol"] = (
        "volblocksize\t16384\nrecordsize\t-\ncompression\tlz4\nsync\tstandard\n"
    )
    system.answers["zpool", "status", "-P", "tank"] = ZPOOL
    found = zfs.facts(node, system.sources)
    assert (found["level"], found["state"], found["kernel_state"]) == ("1 x raidz2", "degraded", "DEGRADED")
    assert (found["activity"], found["activity_share"]) == ("resilver", 0.4)
    assert [member["name"] for member in found["members"]] == ["/dev/sda1", "/dev/sdb1", "/dev/sde1", "/dev/sdc1"]
    assert found["missing_members"] == 1
    assert found["details"] == {
        "volblocksize": "16384",
        "compression": "lz4",
        "sync": "standard",
        "device": "zd16",
    }
    assert found["unknown"] == {}


def test_a_plain_disk_is_no_array(system: FakeSystem) -> None:
    system.block("sda")
    assert volumes_below(system.mount("sda"), system.sources) == []


def test_the_longest_mount_point_wins(system: FakeSystem) -> None:
    (system.root / "proc/self/mountinfo").write_text(
        "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"21 20 0:40 / {system.root}/with\\040blank rw shared:1 - btrfs /dev/sdb rw,subvolid=5\n",
        encoding="utf-8",
    )
    inside = system.root / "with blank" / "folder"
    inside.mkdir(parents=True)
    found = mount_of(inside, system.sources)
    assert found is not None and (found.kind, found.source) == ("btrfs", "/dev/sdb")
    other = mount_of(system.root, system.sources)
    assert other is not None and other.kind == "ext4"


def test_usage_of_btrfs_is_read_from_its_first_part() -> None:
    text = "Overall:\n    Device size:\t 943718400\n    Used:\t 1\n    Data ratio:\t 1.50\n\nData: Size:1, Used:0\n"
    assert btrfs.parse_usage(text) == {"size_bytes": 943718400, "used_bytes": 1, "data_ratio": 1.5}


@pytest.fixture
def btrfs_mount(tmp_path: Path, loops: Callable[[Path], str]) -> Iterator[Path]:
    """A btrfs of three loop devices, raid1 for data."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("no mkfs.btrfs here (btrfs-progs)")
    mount_point, devices = tmp_path / "mounted", []
    mount_point.mkdir()
    try:
        for index in range(3):
            backing = tmp_path / f"disk{index}"
            with backing.open("wb") as file:
                file.truncate(128 << 20)
            devices.append(loops(backing))
        subprocess.run(
            ["mkfs.btrfs", "-q", "-f", "-d", "raid1", "-m", "raid1", *devices], check=True, capture_output=True
        )
        subprocess.run(["btrfs", "device", "scan"], check=False, capture_output=True)
        mounted = subprocess.run(["mount", devices[0], str(mount_point)], capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"btrfs cannot be mounted here: {mounted.stderr.strip()}")
        yield mount_point
    finally:
        subprocess.run(["umount", str(mount_point)], check=False, capture_output=True)


def test_btrfs_for_real(btrfs_mount: Path) -> None:
    found = volumes_below(btrfs_mount / ".")[0]
    assert (found["kind"], found["level"], found["state"], found["activity"]) == ("btrfs", "raid1", "optimal", "idle")
    assert len(found["members"]) == 3
    assert all(member["name"].startswith("loop") and member["state"] == "online" for member in found["members"])
    assert all(member["errors"]["write_errs"] == 0 for member in found["members"])
    assert found["details"]["data_ratio"] == 2.0
    assert found["name"] == str(btrfs_mount)
    assert found["unknown"] == {}
    assert disks_below(btrfs_mount) == disks_below(btrfs_mount.parent), "the loops lie on one disk"
