"""Facts of md from recordings of real arrays in every state (`tests/md-states`), from sysfs and from mdstat alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from raidlab.results.facts import Member, Volume
from raidlab.results.volumes import volume_words
from raidlab.run.kernel_facts import Sources, md
from raidlab.study.schema import Array

STATES = Path(__file__).parents[1] / "md-states"


class Expected(NamedTuple):
    """What was made in the lab (`md-states.sh`), in raidlab's words."""

    level: str | None
    disks: int | None
    chunk_kib: int | None
    state: str
    activity: str
    missing: int | None
    members: str
    """How many are online, failed, rebuilding and spare."""
    details: str = ""


# A line a recording, as the script makes it: level, disks, chunk, state, activity, missing, members, details.
EXPECTED = {
    name: Expected(
        level if level != "-" else None,
        int(disks) if disks != "-" else None,
        int(chunk) if chunk != "-" else None,
        state,
        activity.replace("_", " "),
        int(missing) if missing != "-" else None,
        members,
        " ".join(details),
    )
    for name, level, disks, chunk, state, activity, missing, members, *details in (
        line.split()
        for line in """
linear                            linear 2   -  optimal  idle    0 2.0.0.0 metadata_version=1.2
raid0-chunk64k                    raid0  4  64  optimal  idle    0 4.0.0.0 metadata_version=1.2
raid0-chunk512k-metadata1.0       raid0  2 512  optimal  idle    0 2.0.0.0 metadata_version=1.0
raid1-clean                       raid1  2   -  optimal  idle    0 2.0.0.0 bitmap=none
raid1-read-only                   raid1  2   -  optimal  idle    0 2.0.0.0
raid1-three-copies-bitmap         raid1  3   -  optimal  idle    0 3.0.0.0 bitmap=+8 consistency_policy=bitmap
raid1-metadata0.90                raid1  2   -  optimal  idle    0 2.0.0.0 metadata_version=0.90
raid1-metadata1.1                 raid1  2   -  optimal  idle    0 2.0.0.0 metadata_version=1.1
raid1-write-mostly                raid1  2   -  optimal  idle    0 2.0.0.0
raid1-degraded-from-the-start     raid1  2   -  degraded idle    1 1.0.0.0
raid1-spare                       raid1  2   -  optimal  idle    0 2.0.0.1
raid1-faulty                      raid1  2   -  degraded *       1 1.1.0.0
raid1-removed                     raid1  2   -  degraded idle    1 1.0.0.0
raid1-recovering                  raid1  2   -  degraded recover 1 1.0.1.0
raid1-resyncing                   raid1  2   -  optimal  resync  0 2.0.0.0
raid1-frozen                      raid1  2   -  optimal  resync_pending 0 2.0.0.0
raid1-checking                    raid1  2   -  optimal  check   0 2.0.0.0
raid1-repairing                   raid1  2   -  optimal  repair  0 2.0.0.0
raid1-read-auto-resync-pending    raid1  2   -  optimal  resync_pending 0 2.0.0.0
raid1-partly-suspended            raid1  2   -  optimal  idle    0 2.0.0.0 suspended_sectors=0_to_2048
raid4-clean                       raid4  4  64  optimal  idle    0 4.0.0.0
raid5-left-asymmetric             raid5  5  64  optimal  idle    0 5.0.0.0 rotation=left_asymmetric
raid5-right-asymmetric            raid5  5  64  optimal  idle    0 5.0.0.0 rotation=right_asymmetric
raid5-left-symmetric              raid5  5  64  optimal  idle    0 5.0.0.0 rotation=left_symmetric
raid5-right-symmetric             raid5  5  64  optimal  idle    0 5.0.0.0 rotation=right_symmetric
raid5-parity-first                raid5  5  64  optimal  idle    0 5.0.0.0 rotation=parity_first
raid5-parity-last                 raid5  5  64  optimal  idle    0 5.0.0.0 rotation=parity_last
raid5-chunk4k-bitmap-metadata1.0  raid5  3   4  optimal  idle    0 3.0.0.0 metadata_version=1.0 bitmap=-16
raid5-chunk512k-metadata0.90      raid5  3 512  optimal  idle    0 3.0.0.0 metadata_version=0.90
raid5-active                      raid5  4  64  optimal  idle    0 4.0.0.0
raid5-faulty                      raid5  4  64  degraded *       1 3.1.0.0
raid5-degraded                    raid5  4  64  degraded idle    1 3.0.0.0
raid5-recovering                  raid5  4  64  degraded recover 1 3.0.1.0
raid5-two-failed                  raid5  4  64  failed   *       2 2.1.0.1
raid5-resyncing-bitmap            raid5  4  64  optimal  resync  0 4.0.0.0 consistency_policy=bitmap
raid5-spare                       raid5  3  64  optimal  idle    0 3.0.0.1
raid5-replacing                   raid5  3  64  optimal  recover 0 3.0.1.0
raid5-journal                     raid5  3  64  optimal  idle    0 4.0.0.0 consistency_policy=journal
raid5-journal-failed              raid5  3  64  degraded idle    0 3.1.0.0 consistency_policy=journal
raid5-ppl                         raid5  3  64  optimal  idle    0 3.0.0.0 consistency_policy=ppl
raid5-reshaping                   raid5  4  64  optimal  reshape 0 4.0.0.0
raid5-inactive-one-of-four        -      -   -  failed   idle    - 0.0.0.1
raid6-clean                       raid6  6  64  optimal  idle    0 6.0.0.0 rotation=left_symmetric
raid6-one-failed                  raid6  6  64  degraded *       1 5.1.0.0
raid6-two-failed                  raid6  6  64  degraded *       2 4.2.0.0
raid6-two-removed                 raid6  6  64  degraded idle    2 4.0.0.0
raid6-recovering-one-of-two       raid6  6  64  degraded recover 2 4.0.1.0
raid6-checking-bitmap             raid6  4 512  optimal  check   0 4.0.0.0 consistency_policy=bitmap
raid6-resyncing                   raid6  4  64  optimal  resync  0 4.0.0.0
raid10-n2                         raid10 6  64  optimal  idle    0 6.0.0.0 copies=2_near,_1_far
raid10-f2                         raid10 6  64  optimal  idle    0 6.0.0.0 copies=1_near,_2_far
raid10-o2                         raid10 6  64  optimal  idle    0 6.0.0.0 copies=1_near,_2_offset
raid10-n3                         raid10 6  64  optimal  idle    0 6.0.0.0 copies=3_near,_1_far
raid10-n2-odd                     raid10 5 256  optimal  idle    0 5.0.0.0 copies=2_near,_1_far
raid10-degraded-bitmap            raid10 4  64  degraded idle    1 3.0.0.0 consistency_policy=bitmap
raid10-recovering                 raid10 4  64  degraded recover 1 3.0.1.0
raid10-resyncing                  raid10 4  64  optimal  resync  0 4.0.0.0 copies=1_near,_2_far
raid10-broken                     raid10 4  64  failed   *       1 3.1.0.0
raid1-beside-raid0                raid1  2   -  optimal  idle    0 2.0.0.0
""".strip().splitlines()
    )
}
# In the moment after a failure md looks whether there is anything to rebuild on: its word may be either.
ANY_MOMENT = "*"
# mdstat calls a repair a resync.
_MDSTAT_WORD = {"repair": "resync"}


def laid_out(name: str, root: Path) -> Sources:
    """A recording as the tree of files that it was read from."""
    files: dict[str, list[str]] = {}
    for line in (STATES / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        path, _, value = line.partition("=")
        files.setdefault(path, []).append(value)
    for path, lines in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if "/slaves/" in path:
            (root / path).mkdir()
        else:
            (root / path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Sources(root / "sys", root / "proc", root / "dev")


def facts_of(name: str, root: Path, array: str = "md0") -> Volume:
    """The facts of a recorded array."""
    sources = laid_out(name, root)
    return md.facts(sources.sys / "block" / array, sources)


def test_every_recording_is_expected_and_every_expectation_recorded() -> None:
    assert {file.stem for file in STATES.glob("*.txt")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_array_is_read_as_it_was_made(name: str, tmp_path: Path) -> None:
    found, expected = facts_of(name, tmp_path), EXPECTED[name]
    chunk = found["chunk_bytes"]
    assert (found["level"], found.get("raid_disks"), None if chunk is None else chunk // 1024) == expected[:3]
    assert (found["state"], found["missing_members"]) == (expected.state, expected.missing)
    assert found["activity"] in ((expected.activity,) if expected.activity != ANY_MOMENT else ("idle", "recover"))
    states = [member["state"] for member in found["members"]]
    assert ".".join(str(states.count(one)) for one in ("online", "failed", "rebuilding", "spare")) == expected.members
    for pair in expected.details.split():
        key, _, value = pair.partition("=")
        wanted = value.replace("_", " ") if key in ("copies", "suspended_sectors") else value
        assert found["details"][key] == wanted
    is_under_way = expected.activity in ("recover", "resync", "check", "repair", "reshape")
    assert (found["activity_share"] is not None) == is_under_way or expected.activity == ANY_MOMENT
    assert not found["unknown"] or expected.level is None
    # Whatever it is, it can be said in a line.
    words = volume_words(Array(name="old", volume="/dev/md0"), [_member_of(found)])
    assert (expected.level or "level that is not known") in words
    assert re.search(rf"\b{expected.state}\b", words) and not words.startswith("/dev/md0: md0")


def _member_of(volume: Volume) -> Member:
    return {"kind": "block", "io": "direct", "disks": [], "volumes": [volume]}


@pytest.mark.parametrize("name", EXPECTED)
def test_mdstat_alone_says_the_same(name: str, tmp_path: Path) -> None:
    """Two texts of the kernel's, written by different code of it, and one array."""
    whole = facts_of(name, tmp_path)
    text = "\n".join(
        line.removeprefix("proc/mdstat=")
        for line in (STATES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        if line.startswith("proc/mdstat=")
    )
    told = md.parse_mdstat(text)[whole["name"]]
    assert told["level"] == whole["level"]
    assert told["missing_members"] == whole["missing_members"]
    # A mirror and a line of disks have none; mdstat says it of an array that is not assembled neither.
    assert told["chunk_bytes"] == whole["chunk_bytes"]
    assert sorted(one["name"] for one in told["members"]) == sorted(one["name"] for one in whole["members"])
    # A member that is being filled has no mark there, unless it replaces another.
    by_name = {one["name"]: one["state"] for one in whole["members"]}
    for one in told["members"]:
        assert one["state"] == by_name[one["name"]] or (one["state"], by_name[one["name"]]) == ("online", "rebuilding")
    if EXPECTED[name].activity != ANY_MOMENT:
        activity = str(whole["activity"])
        assert told["activity"] == _MDSTAT_WORD.get(activity, activity)


def test_two_arrays_are_told_apart(tmp_path: Path) -> None:
    mirror, stripe = facts_of("raid1-beside-raid0", tmp_path), facts_of("raid1-beside-raid0", tmp_path / "b", "md1")
    assert (mirror["level"], stripe["level"], stripe["chunk_bytes"]) == ("raid1", "raid0", 65536)
    assert not {one["name"] for one in mirror["members"]} & {one["name"] for one in stripe["members"]}


@pytest.mark.parametrize("name", EXPECTED)
def test_whatever_line_is_missing_nothing_is_guessed(name: str, tmp_path: Path) -> None:
    """Without a file of sysfs a fact is the same, as mdstat tells it, or not known, with a reason; never another."""
    sources = laid_out(name, tmp_path)
    node = sources.sys / "block" / "md0"
    whole = md.facts(node, sources)
    for key, file in (
        ("level", "level"),
        ("chunk_bytes", "chunk_size"),
        ("missing_members", "degraded"),
        ("activity", "sync_action"),
    ):
        place = node / "md" / file
        if not place.is_file():
            continue
        text = place.read_text(encoding="utf-8")
        place.unlink()
        found = md.facts(node, sources)
        place.write_text(text, encoding="utf-8")
        now, then = found[key], whole[key]  # type: ignore[literal-required]
        same = now == then or _MDSTAT_WORD.get(str(then)) == now
        assert same or (now is None and key in found["unknown"]) or EXPECTED[name].activity == ANY_MOMENT, (key, now)
        if found["state"] is None:
            assert re.search(r"could be read|not ", found["unknown"]["state"])
