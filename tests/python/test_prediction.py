"""Arrays that stand already beside their twins: facts become trees, loads get verdicts, what is planted is named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from raidlab import _core
from raidlab.analysis.checks import INVALID, WARN, Finding, run_checks
from raidlab.analysis.prediction import AGREES, FASTER, SLOWER, UNDECIDED, PredictedLoad, Prediction
from raidlab.analysis.prediction.causes import Evidence, causes_of
from raidlab.analysis.prediction.compare import ASSUMED_ERROR_PERCENT, stated_error_percent
from raidlab.api import analyse, predictions, run_study
from raidlab.cli.app import app
from raidlab.errors import InputError
from raidlab.report import write_page
from raidlab.report.prediction import headline_of
from raidlab.results import Run
from raidlab.results.facts import DeviceCounters, Member, Volume, VolumeMember
from raidlab.run.prediction import prediction_study
from raidlab.run.twin import UnmodelledError, twin_of_volumes
from raidlab.study import load_study, load_study_text
from raidlab.study.schema import POLICIES, Policy
from raidlab.study.workload import Workload
from test_md_states import EXPECTED, facts_of

LEFT = "rotation=left_symmetric"
# Of every recording in tests/md-states: the tree of its twin, or a part of the reason why there is none.
TREES = {
    "linear": "concat(2)",
    "raid0-chunk64k": "stripe(4, chunk=64KiB)",
    "raid0-chunk512k-metadata1.0": "stripe(2, chunk=512KiB)",
    "raid1-three-copies-bitmap": "mirror(3)",
    "raid1-write-mostly": "!write-mostly",
    "raid4-clean": "parity(4, chunk=64KiB, parities=1, rotation=parity_last)",
    "raid5-chunk4k-bitmap-metadata1.0": f"parity(3, chunk=4KiB, parities=1, {LEFT})",
    "raid5-chunk512k-metadata0.90": f"parity(3, chunk=512KiB, parities=1, {LEFT})",
    "raid5-two-failed": "!has failed",
    "raid5-spare": f"parity(3, chunk=64KiB, parities=1, {LEFT})",
    "raid5-replacing": f"parity(3, chunk=64KiB, parities=1, {LEFT})",
    "raid5-journal": "!a journal of its own",
    "raid5-journal-failed": "!a journal of its own",
    "raid5-ppl": "!a partial parity log",
    "raid5-reshaping": "!reshaped",
    "raid5-inactive-one-of-four": "!has failed",
    "raid6-checking-bitmap": f"parity(4, chunk=512KiB, parities=2, {LEFT})",
    "raid6-resyncing": f"parity(4, chunk=64KiB, parities=2, {LEFT})",
    "raid10-n2": "stripe(3*mirror(2), chunk=64KiB)",
    "raid10-n3": "stripe(2*mirror(3), chunk=64KiB)",
    "raid10-n2-odd": "copies(5, chunk=256KiB, layout=near2)",
    "raid10-f2": "copies(6, chunk=64KiB, layout=far2)",
    "raid10-o2": "copies(6, chunk=64KiB, layout=offset2)",
    "raid10-degraded-bitmap": "stripe(2*mirror(2), chunk=64KiB)",
    "raid10-recovering": "stripe(2*mirror(2), chunk=64KiB)",
    "raid10-resyncing": "copies(4, chunk=64KiB, layout=far2)",
    "raid10-broken": "!has failed",
} | {
    f"raid5-{word.replace('_', '-')}": f"parity(5, chunk=64KiB, parities=1, rotation={word})"
    for word in (
        "left_asymmetric",
        "right_asymmetric",
        "left_symmetric",
        "right_symmetric",
        "parity_first",
        "parity_last",
    )
}


def expected_tree(name: str) -> str:
    """What a recording's twin is to be; of levels and counts alone where the table says nothing else."""
    expected = EXPECTED[name]
    if name in TREES:
        return TREES[name]
    parities = {"raid5": 1, "raid6": 2}
    if expected.level in parities:
        return f"parity({expected.disks}, chunk={expected.chunk_kib}KiB, parities={parities[expected.level]}, {LEFT})"
    assert expected.level == "raid1", name
    return f"mirror({expected.disks})"


@pytest.mark.parametrize("name", EXPECTED)
def test_every_recorded_array_has_a_twin_or_a_reason(name: str, tmp_path: Path) -> None:
    volume, expected = facts_of(name, tmp_path), expected_tree(name)
    if expected.startswith("!"):
        with pytest.raises(UnmodelledError, match=expected[1:]):
            twin_of_volumes([volume])
        return
    twin = twin_of_volumes([volume])
    assert twin.tree == expected
    tree = json.loads(_core.parse_tree(twin.tree))
    assert _core.tree_facts(json.dumps(tree), 1 << 30, 4096)["leaves"] == EXPECTED[name].disks == len(twin.members)
    assert twin.policy == POLICIES["md"]
    Policy.model_validate(dict(twin.policy))
    rotating = twin_of_volumes([volume], rotating=True)
    assert rotating.policy == {**POLICIES["md"], "mirror_read": {"kind": "md", "rotating": True}}
    assert rotating.tree == twin.tree


def test_the_member_that_serves_stands_in_its_slot_while_it_is_replaced(tmp_path: Path) -> None:
    twin = twin_of_volumes([facts_of("raid5-replacing", tmp_path)])
    assert twin.members == ("nullb0", "nullb1", "nullb2")


def volume(kind: str, name: str, level: str | None, members: list[str], **more: Any) -> Volume:
    """A volume of the kernel's, whole and idle unless said otherwise."""
    named: list[VolumeMember] = [{"name": one, "state": "online"} for one in members]
    found: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "level": level,
        "chunk_bytes": None,
        "state": "optimal",
        "kernel_state": None,
        "activity": "idle",
        "activity_share": None,
        "missing_members": 0,
        "members": named,
        "details": {},
        "unknown": {},
    }
    return cast(Volume, found | more)


@pytest.mark.parametrize(
    ("given", "tree"),
    [
        (volume("btrfs", "/mnt", "single", ["sda"]), "member"),
        (volume("btrfs", "/mnt", "single", ["sda", "sdb"]), "!'single' over 2 devices"),
        (volume("btrfs", "/mnt", "raid0", ["sda", "sdb"], chunk_bytes=65536), "stripe(2, chunk=64KiB)"),
        (volume("btrfs", "/mnt", "raid1", ["sda", "sdb"]), "mirror(2)"),
        (volume("btrfs", "/mnt", "raid1", ["sda", "sdb", "sdc"]), "!'raid1' over 3 devices"),
        (volume("btrfs", "/mnt", "raid1c3", ["sda", "sdb", "sdc"]), "mirror(3)"),
        (volume("btrfs", "/mnt", "raid10", list("abcd"), chunk_bytes=65536), "stripe(2*mirror(2), chunk=64KiB)"),
        (volume("btrfs", "/mnt", "raid5", list("abcd"), chunk_bytes=65536), "!'raid5' over 4 devices"),
        (volume("btrfs", "/mnt", "dup", ["sda"]), "!'dup' over 1 devices"),
        (volume("dm", "vg-lv", "linear", ["sda1"]), "member"),
        (volume("dm", "vg-lv", "linear", ["sda1", "sdb1"]), "!device mapper's 'linear'"),
        (volume("dm", "vg-lv", "striped", ["sda", "sdb"], chunk_bytes=65536), "stripe(2, chunk=64KiB)"),
        (volume("dm", "vg-lv", "striped", ["sda", "sdb"]), "!the chunk of vg-lv is not known"),
        (volume("dm", "vg-lv", "mirror", ["sda", "sdb"]), "mirror(2)"),
        (
            volume("dm", "vg-lv", "raid5_ls", list("abc"), chunk_bytes=65536),
            f"parity(3, chunk=64KiB, parities=1, {LEFT})",
        ),
        (volume("dm", "vg-lv", "raid6_zr", list("abcd"), chunk_bytes=65536), "!'raid6_zr'"),
        (volume("dm", "thin", "thin", ["dm-3"]), "!'thin'"),
        (
            volume("dm", "vg-lv", None, ["sda"], unknown={"level": "dmsetup is not installed"}),
            "!dmsetup is not installed",
        ),
        (
            volume("md", "md0", "raid10", list("abcd"), chunk_bytes=65536, details={"copies": "2 near, 2 far"}),
            "!the layout '2 near, 2 far'",
        ),
        (
            volume("md", "md0", "raid10", list("abcd"), chunk_bytes=65536, details={"copies": "1 near, 2 far in sets"}),
            "!the layout '1 near, 2 far in sets'",
        ),
        (volume("zfs", "tank/v", "2 x mirror", list("abcd")), "!of zfs, of which raidlab has no model"),
    ],
)
def test_other_volumes_have_a_twin_or_a_reason(given: Volume, tree: str) -> None:
    if tree.startswith("!"):
        with pytest.raises(UnmodelledError, match=tree[1:].replace("(", r"\(")):
            twin_of_volumes([given])
    else:
        assert twin_of_volumes([given]).tree == tree


def test_volumes_on_volumes_become_one_tree() -> None:
    lower = [volume("md", f"md{n}", "raid1", [f"sd{n}a", f"sd{n}b"], raid_disks=2) for n in (1, 2)]
    over = volume("dm", "vg-lv", "striped", ["md1", "md2"], chunk_bytes=1 << 18, details={"device": "dm-0"})
    twin = twin_of_volumes([over, *lower])
    assert twin.tree == "stripe(2*mirror(2), chunk=256KiB)"
    assert twin.members == ("sd1a", "sd1b", "sd2a", "sd2b")
    assert twin.policy == POLICIES["md"]
    crypt = volume("dm", "secret", "crypt", ["md1"], details={"device": "dm-1"})
    found = twin_of_volumes([crypt, lower[0]])
    assert found.tree == "mirror(2)" and "encrypts" in found.left_out[0]
    uneven = [over, lower[0], volume("md", "md2", "raid1", ["sdc", "sdd", "sde"], raid_disks=3)]
    with pytest.raises(UnmodelledError, match="its members are not alike"):
        twin_of_volumes(uneven)


def test_btrfs_reads_the_copy_that_its_policy_says() -> None:
    mirror = volume("btrfs", "/mnt", "raid1", ["sda", "sdb"])
    assert twin_of_volumes([mirror]).policy == {"mirror_read": "primary"}, "by the number of the process"
    mirror["details"]["read_policy"] = "round-robin"
    assert twin_of_volumes([mirror]).policy == {"mirror_read": "round_robin"}
    mirror["details"]["read_policy"] = "devid"
    with pytest.raises(UnmodelledError, match="'devid'"):
        twin_of_volumes([mirror])


def test_a_controllers_volume_is_refused_and_a_plain_disk_is_a_member() -> None:
    assert twin_of_volumes([], model="ST4000NM0035").tree == "member"
    with pytest.raises(UnmodelledError, match="'PERC H730P Mini' is a controller's volume"):
        twin_of_volumes([], model="PERC H730P Mini")


# Verdicts.


def load(ratio: float, interval: tuple[float, float] | None, error: float = 10.0, **more: Any) -> PredictedLoad:
    """A load of which measured and predicted are so far apart."""
    words = {"reads": True, "writes": False, **more}
    return PredictedLoad("w", "queue depth 8", "IOPS", 100 * ratio, 100.0, ratio, interval, error, True, **words)


@given(ratio=st.floats(0.01, 100), width=st.floats(0, 2), error=st.floats(1, 50))
def test_a_verdict_follows_from_the_ratio_its_interval_and_the_models_error(
    ratio: float, width: float, error: float
) -> None:
    interval = (ratio / (1 + width), ratio * (1 + width))
    verdict, least, most = load(ratio, interval, error).verdict, 1 - error / 100, 1 + error / 100
    is_rough = 100 * abs(ratio - 1) > 15
    assert (verdict == AGREES) == (least <= ratio <= most and not is_rough)
    assert (verdict == SLOWER) == (interval[1] < least)
    assert (verdict == FASTER) == (interval[0] > most)
    assert verdict in (AGREES, SLOWER, FASTER, UNDECIDED)


def test_the_models_error_is_that_of_the_figures_of_the_same_kind() -> None:
    sheet: Any = {
        "published": [
            {"name": "stream", "address": "sequential", "read": 1.0, "tolerance_percent": 5},
            {"name": "random reads", "address": "random", "read": 1.0, "tolerance_percent": 12},
            {"name": "random writes", "address": "random", "read": 0.0},
        ]
    }

    def error(read: float, address: str) -> float | None:
        work = Workload(name="w", read=read, size="4KiB", address=address)
        return stated_error_percent(sheet, work)

    assert (error(1.0, "sequential"), error(1.0, "uniform"), error(0.0, "uniform")) == (5, 12, ASSUMED_ERROR_PERCENT)
    assert error(0.7, "uniform") == 12, "of both kinds the wider"
    assert error(0.0, "sequential") is None, "nothing was printed of such work"
    assert stated_error_percent({}, Workload(name="w", read=1.0, size="4KiB")) is None


def test_all_loads_together_are_said_in_a_sentence() -> None:
    def of(*loads: PredictedLoad) -> str:
        return headline_of(Prediction("box", "twin", "live", "raid0(2)", "hdd-7200", loads, ()))

    assert of(load(1.0, None)) == "It is as fast as predicted, within the model's stated error, in the 1 load."
    slow = of(load(0.5, (0.4, 0.6)), load(1.0, None), load(0.25, None))
    assert slow == "It is slower than predicted in 2 of 3 loads (25 to 50 % of what was predicted)."
    assert "faster than predicted in 1 of 1 load (5 times what was predicted)" in of(load(5.0, None))
    assert of(load(0.5, (0.3, 1.2))).startswith("Undecided in 1: the repeats differ too much")
    # A box that has lost half its speed does not agree with a model that may be off by 63 %.
    rough = of(load(0.5, (0.49, 0.51), 63.0), load(0.98, None, 63.0))
    assert rough == "Undecided in 1: the model may be off by 63 %, and so says too little."


STUDY = """
name = "twins"
title = "An array and its twin"
on = ["original", "sim"]

[[array]]
name = "box"
tree = "raid5(4, chunk=64KiB)"
on = ["{measured_on}"]

[[array]]
name = "box predicted"
tree = "raid5(4, chunk=64KiB)"
twin_of = "box"
user_size = "64GiB"

[[workload]]
name = "reads"
read = 1.0
size = "4KiB"

[[workload]]
name = "writes"
read = 0.0
size = "4KiB"

[[workload]]
name = "stream"
read = 1.0
size = "1MiB"
address = "sequential"

[load]
depths = [8]

[sim]
device = "hdd-7200"
warmup = {{ requests = 100 }}
measure = {{ requests = 800 }}
repeats = 3
{more}
"""
ORIGINAL = """
[original]
device = "{device}"
warmup = {{ requests = 100 }}
measure = {{ requests = 800 }}
repeats = 3
"""


def run_of(folder: Path, device: str, user_size: str | None = None) -> Run:
    """A run in which one model stands for what is measured, and another for the prediction."""
    text = STUDY.format(measured_on="original", more=ORIGINAL.format(device=device))
    used = "" if user_size is None else f'user_size = "{user_size}"\n'
    folder.mkdir(exist_ok=True)
    file = folder / "study.toml"
    file.write_text(text.replace('user_size = "64GiB"\n', used), encoding="utf-8")
    return run_study(file, out=folder / "runs")


def test_the_same_disks_agree(tmp_path: Path) -> None:
    run = run_of(tmp_path, "hdd-7200")
    (found,) = predictions(run)
    assert (found.array, found.twin, found.target, found.device) == ("box", "box predicted", "original", "hdd-7200")
    assert found.verdict == AGREES and len(found.loads) == 3 and not found.causes
    assert {one.unit for one in found.loads} == {"IOPS", "MB/s"}
    page = write_page(analyse(run)).read_text(encoding="utf-8")
    assert "It is as fast as predicted" in page and 'id="prediction"' in page


def test_other_disks_are_slower_and_nothing_is_made_up_of_it(tmp_path: Path) -> None:
    run = run_of(tmp_path, "hdd-7200-bare")
    (found,) = predictions(run)
    by_name = {one.workload: one for one in found.loads}
    assert by_name["stream"].verdict == SLOWER and by_name["stream"].ratio < 0.5
    assert found.verdict == SLOWER
    page = write_page(analyse(run)).read_text(encoding="utf-8")
    assert "slower than predicted in" in page and "slower</td>" in page


def test_a_twin_keeps_to_what_is_used_of_its_disks(tmp_path: Path) -> None:
    near, far = (run_of(tmp_path / str(size), "hdd-7200", size) for size in ("64GiB", None))
    rates = [analyse(run).swept("sim", "reads", array="box predicted")[0].per_s("all_requests") for run in (near, far)]
    assert rates[0] > 1.1 * rates[1], "the arm has a shorter way within the first 64 GiB"


@pytest.mark.parametrize(
    ("old", "new", "pattern"),
    [
        ('twin_of = "box"', 'twin_of = "bxo"', r"array\[1\].twin_of: 'bxo': is not the name of an array"),
        ('twin_of = "box"', 'twin_of = "box predicted"', r"array\[1\].twin_of: .*is a twin itself"),
        ('twin_of = "box"\n', "", r"array\[1\].user_size: .*is said of twins"),
    ],
)
def test_a_twin_is_of_another_array(old: str, new: str, pattern: str, tmp_path: Path) -> None:
    text = STUDY.format(measured_on="original", more=ORIGINAL.format(device="hdd-7200")).replace(old, new)
    with pytest.raises(InputError, match=pattern):
        load_study_text(text, tmp_path / "study.toml")


# Causes: each planted, and named.


def member(names: list[str], mean_ms: list[float], **more: Any) -> Member:
    """A volume over disks on which a request takes so long."""
    before: dict[str, DeviceCounters] = {}
    after: dict[str, DeviceCounters] = {}
    for name, time_ms in zip(names, mean_ms, strict=True):
        nothing: Any = {"read_bytes": 0, "write_bytes": 0, "reads": 0, "writes": 0, "read_ms": 0, "write_ms": 0}
        before[name] = nothing
        after[name] = cast(DeviceCounters, {**nothing, "reads": 1000, "read_ms": round(1000 * time_ms)})
    found: dict[str, Any] = {
        "kind": "block",
        "io": "direct",
        "path": "/dev/md0",
        "disks": names,
        "volumes": [volume("md", "md0", "raid5", names)],
        "stack": [{"name": "md0"}, *({"name": name} for name in names)],
        "traffic": {"at_s": 0.0, "devices": before},
        "traffic_after": {"at_s": 10.0, "devices": after},
    }
    return cast(Member, found | more)


def kinds(
    target: Member, *findings: Finding, slower: bool = True, faster: bool = False, writes: bool = True
) -> list[str]:
    """What is named as the cause where such a volume differs from its twin, whose members have no times here."""
    import polars as pl

    run = SimpleNamespace(
        live_members=lambda _array: [target],
        members=pl.DataFrame(schema={"cell": pl.UInt32, "leaf": pl.UInt32, "busy_ns": pl.UInt64}),
    )
    evidence = Evidence(
        analysis=cast(Any, SimpleNamespace(run=run)),
        array="box",
        target="live",
        findings=findings,
        slower=slower,
        faster=faster,
        slower_writes=slower and writes,
        measured=(),
        predicted=(),
    )
    return [cause.kind for cause in causes_of(evidence)]


DISKS = ["sda", "sdb", "sdc", "sdd"]


def test_nothing_is_named_where_nothing_shows() -> None:
    assert kinds(member(DISKS, [8.0, 8.1, 7.9, 8.4])) == []
    assert kinds(member(DISKS, [8.0, 30.0, 7.9, 8.4]), slower=False) == [], "nor where it is no slower"


@pytest.mark.parametrize("slow", range(4))
def test_a_slow_member_is_named(slow: int) -> None:
    times = [8.0, 8.1, 7.9, 8.4]
    times[slow] = 25.0
    target = member(DISKS, times)
    assert kinds(target) == ["a slow member"]


def test_members_on_one_disk_are_named() -> None:
    assert kinds(member(DISKS, [8.0] * 4, disks=["vda"])) == ["shared disks"]


def test_a_bitmap_is_named_where_writes_are_slow() -> None:
    with_bitmap = volume("md", "md0", "raid5", DISKS, details={"bitmap": "+8"})
    assert kinds(member(DISKS, [8.0] * 4, volumes=[with_bitmap])) == ["a bitmap"]
    assert kinds(member(DISKS, [8.0] * 4, volumes=[with_bitmap]), writes=False) == []
    without = volume("md", "md0", "raid5", DISKS, details={"bitmap": "none"})
    assert kinds(member(DISKS, [8.0] * 4, volumes=[without])) == []


def test_held_back_writes_and_misalignment_are_named() -> None:
    held = volume("md", "md0", "raid1", DISKS, details={"suspended_sectors": "0 to 2048"})
    assert kinds(member(DISKS, [8.0] * 4, volumes=[held])) == ["suspended writes"]
    stack = [{"name": "sda1", "alignment_offset_bytes": 3584, "physical_block_bytes": 4096}]
    assert kinds(member(DISKS, [8.0] * 4, stack=stack)) == ["misalignment"]


def test_what_checks_found_is_named_in_its_direction() -> None:
    target = member(DISKS, [8.0] * 4)
    busy = Finding("resync", "live", WARN, "md0 was busy with resync.", "Wait.")
    cache = Finding("cache", "live", WARN, "Of 4 GiB read 8 MiB moved.", "Ask for more.")
    elsewhere = Finding("resync", "sim", WARN, "No.", "")
    passed = Finding("array_state", "live", "PASS", "Whole.", "")
    assert kinds(target, busy, cache, elsewhere, passed) == ["busy with itself"]
    assert kinds(target, busy, cache, slower=False, faster=True) == ["a cache"]


# From the command line.


def test_a_study_of_a_prediction_asks_the_same_of_both(tmp_path: Path) -> None:
    loaded = load_study("quickstart")
    made = prediction_study(str(tmp_path), "hdd-7200", loaded, tree="raid6(8, chunk=256KiB)")
    study = load_study_text(made.text, tmp_path / "study.toml").study
    box, twin = study.array
    assert (box.volume, twin.twin_of, twin.tree) == (str(tmp_path), box.name, "raid6(8, chunk=256KiB)")
    assert twin.user_size == loaded.study.live.member_size
    assert [work.name for work in study.workload] == [work.name for work in loaded.study.workload]
    assert study.load.depths == loaded.study.load.depths and study.load.hold is None
    assert study.sim is not None and study.sim.repeats == 3
    assert any("its owner's word" in note for note in made.notes)


def test_writes_are_left_out_where_nothing_may_be_written(tmp_path: Path) -> None:
    file = tmp_path / "image"
    file.write_bytes(bytes(range(256)) * 4096)
    made = prediction_study(str(file), "fixed-100us", load_study("quickstart"), tree="raid0(2)")
    study = load_study_text(made.text, tmp_path / "study.toml").study
    assert all(work.read == 1 for work in study.workload) and len(study.workload) == 2
    assert any("it writes, and" in note for note in made.notes)


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["md0", "--device", "hdd-7200"], r"VOLUME: 'md0': is no place of an array; accepted: a path"),
        (["/nowhere/", "--device", "hdd-7200"], "'/nowhere/': there is no such directory"),
        ([".", "--device", "hdd-7000"], r"--device: 'hdd-7000': there is no such device file"),
        ([".", "--device", "hdd-7200", "--tree", "raid9(3)"], r"--tree: 'raid9\(3\)'"),
        ([".", "--device", "hdd-7200", "--destroy", "/dev/null"], r"--destroy: '/dev/null': is not the volume"),
    ],
)
def test_mistakes_are_named(words: list[str], pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["predict", *words])
    assert isinstance(done.exception, InputError)
    with pytest.raises(InputError, match=pattern):
        raise done.exception


SHORT = """
name = "short"
title = "A short one"
on = ["sim"]
[[array]]
name = "any"
tree = "raid0(2)"
[[workload]]
name = "reads"
read = 1.0
size = "4KiB"
[load]
depths = [4]
[sim]
device = "fixed-100us"
measure = { requests = 500 }
[live]
member_size = "8MiB"
warmup = { requests = 20 }
measure = { requests = 200 }
repeats = 3
"""


def test_a_directory_is_predicted_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(SHORT, encoding="utf-8")
    words = ["predict", str(tmp_path), "--device", "fixed-100us", "--study", "study.toml", "--tree", "raid0(2)"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (0, 3), done.output
    assert "beside its prediction" in " ".join(done.stdout.split()) and "reads" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    kept = Path("runs/predict-short.toml")
    assert load_study(str(kept)).study.name == "predict-short", "it can be run again as it stands"
    as_json = CliRunner().invoke(app, [*words, "--json"])
    (found,) = json.loads(as_json.stdout)["predictions"]
    assert found["tree"] == "raid0(2)" and found["loads"][0]["verdict"] in (AGREES, SLOWER, FASTER, UNDECIDED)


def tool(*words: str) -> str:
    """What a tool of the system prints; a test that needs it is skipped where it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(words[:2])}: {done.stderr.strip()[:200]}")
    return done.stdout.strip()


@pytest.fixture
def slow_pool(tmp_path: Path, loops: Any) -> Iterator[tuple[Path, str, Path]]:
    """A btrfs raid0 over four loop devices, one of which lies on a disk that a control group holds back.

    Of a mirror btrfs reads the copy that the number of the process says, which may be never the slow one.

    Where it is mounted, that device's name, and the group.
    """
    group = Path("/sys/fs/cgroup/blkio") / f"raidlab-test-{os.getpid()}"
    if shutil.which("mkfs.btrfs") is None or not group.parent.is_dir():
        pytest.skip("needs mkfs.btrfs, and control groups of version 1 that hold back devices")
    mounted: list[Path] = []
    slow = ""

    def mount(device: str, name: str) -> Path:
        (tmp_path / name).mkdir()
        tool("mount", device, str(tmp_path / name))
        mounted.append(tmp_path / name)
        return mounted[-1]

    def attached(file: Path, size: str) -> str:
        tool("truncate", "-s", size, str(file))
        device = str(loops(file))
        tool("losetup", "--direct-io=on", device)
        return device

    try:
        lower = attached(tmp_path / "lower", "400M")
        tool("mkfs.ext4", "-q", "-F", lower)
        place = mount(lower, "low")
        members = [attached(tmp_path / f"disk{number}", "200M") for number in range(3)]
        slow = attached(place / "disk3", "200M")
        tool("mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid1", *members, slow)
        pool = mount(slow, "pool")
        group.mkdir()
        numbers = (Path("/sys/block") / Path(lower).name / "dev").read_text().strip()
        (group / "blkio.throttle.read_iops_device").write_text(f"{numbers} 200")
        yield pool, Path(slow).name, group
    finally:
        for place in reversed(mounted):
            subprocess.run(["umount", str(place)], check=False)
            # Its file lies on what is unmounted next.
            subprocess.run(["losetup", "-d", slow], check=False, capture_output=True)
        if group.is_dir():
            group.rmdir()


@pytest.mark.slow
def test_a_member_that_is_held_back_is_found(slow_pool: tuple[Path, str, Path], tmp_path: Path) -> None:
    pool, slow, group = slow_pool
    (tmp_path / "study.toml").write_text(
        SHORT.replace('"8MiB"', '"64MiB"').replace("200 }", "3000 }"), encoding="utf-8"
    )
    words = ["-m", "raidlab", "predict", str(pool), "--device", "fixed-100us", "--study", "study.toml", "--json"]
    script = f'echo $$ > {group}/cgroup.procs; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    (found,) = json.loads(done.stdout)["predictions"]
    assert found["tree"] == "stripe(4, chunk=64KiB)"
    assert found["verdict"] == SLOWER, found
    named = [cause["evidence"] for cause in found["causes"] if cause["kind"] == "a slow member"]
    assert named and slow in named[0], found["causes"]
    assert "a limit" in {cause["kind"] for cause in found["causes"]}


# Disks so slow that a stall of half a second costs a run a few percent, and a slow machine nothing.
EMULATED = """
[emulated]
warmup = { duration = "1s" }
measure = { duration = "9s" }
repeats = 2
"""
SLOW_DISK = '{ kind = "fixed", capacity_bytes = 1_000_000_000, read_us = 20000.0, write_us = 20000.0 }'


@pytest.mark.slow
def test_emulated_disks_of_the_same_model_agree(tmp_path: Path) -> None:
    text = STUDY.format(measured_on="emulated", more=EMULATED).replace('device = "hdd-7200"', f"device = {SLOW_DISK}")
    text = text.replace('on = ["original", "sim"]', 'on = ["emulated", "sim"]').replace('user_size = "64GiB"\n', "")
    text = text.replace('[[workload]]\nname = "stream"\nread = 1.0\nsize = "1MiB"\naddress = "sequential"\n', "")
    file = tmp_path / "study.toml"
    file.write_text(text, encoding="utf-8")
    run = run_study(file, out=tmp_path / "runs")
    if any(one.check == "lateness" and one.verdict == INVALID for one in run_checks(analyse(run))):
        pytest.skip("this machine was too late for its emulated disks to say anything")
    (found,) = predictions(run)
    assert found.target == "emulated"
    assert all(one.verdict in (AGREES, UNDECIDED) for one in found.loads), found.loads
