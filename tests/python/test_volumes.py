"""Arrays that stand already as arrays of a study: named in the file or by --on, read and never assumed."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import itertools
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from raidlab.analysis.checks import INVALID, PASS, UNKNOWN, Finding, array_state, resync, run_checks
from raidlab.api import analyse, resume_run, run_study
from raidlab.cli.output import print_run
from raidlab.errors import InputError, RefusedError
from raidlab.report import write_page
from raidlab.results.facts import Member, Volume
from raidlab.results.volumes import volume_words
from raidlab.run.kernel_facts import Sources, stack, volumes_below
from raidlab.run.targets import LivePlace, resolve_targets
from raidlab.run.volumes import shared_parts, usable_bytes
from raidlab.study import load_study_text
from raidlab.study.schema import Array

STUDY = """
name = "old-and-new"
title = "Is the old box worth keeping?"

[[array]]
name = "raid5"
tree = "raid5(3, chunk=64KiB)"
{arrays}
[[workload]]
name = "reads"
read = 1.0
size = "4KiB"
{workload}
[load]
depths = [1, 4]

[live]
member_size = "4MiB"
warmup = {{ requests = 20 }}
measure = {{ requests = 60 }}
repeats = 1

[[compare]]
group = "all"
title = "Same work"
reference = "raid5"
equal = "members"
per = "array"
"""
WRITES = '[[workload]]\nname = "writes"\nread = 0.0\nsize = "4KiB"\n'


def _volume(name: str, place: Path | str, more: str = "") -> str:
    return f'[[array]]\nname = "{name}"\nvolume = "{place}"\n{more}\n'


def _study(arrays: str, workload: str = "") -> str:
    return STUDY.format(arrays=arrays, workload=workload)


@pytest.fixture
def plain(tmp_path: Path) -> Callable[[str], Path]:
    """Makes directories of a file system on one disk."""
    if any(len(volume["members"]) > 1 for volume in volumes_below(tmp_path)):
        pytest.skip("the temporary directory lies on an array, which two directories would share")

    def make(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    return make


@pytest.mark.parametrize(
    ("arrays", "pattern"),
    [
        ('[[array]]\nname = "x"\n', r"array\[1\].tree: is missing; accepted: tree = .* or volume ="),
        (_volume("x", "/dev/md0", 'tree = "raid5(3)"'), r"array\[1\].tree: .*raid5\(3\).*does not go with a volume"),
        (_volume("x", "/dev/md0", "of_group = 2"), r"array\[1\].of_group: does not go with a volume"),
        (_volume("x", "md0"), r"array\[1\].volume: 'md0': is no path; accepted: a path such as '/dev/md0'"),
        (
            _volume("x", "/dev/md0", 'state = "whole"'),
            r"array\[1\].state: 'whole': .*accepted: optimal, degraded, resyncing",
        ),
        (_volume("x", "/dev/md0", "disks = 0"), r"array\[1\].disks"),
        ('[[array]]\nname = "x"\ntree = "raid0(2)"\nsays = "old"\n', r"array\[1\].says: 'old': is said of volumes"),
    ],
)
def test_an_array_is_a_tree_or_a_volume(arrays: str, pattern: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=pattern):
        load_study_text(_study(arrays), tmp_path / "x.toml")


def test_a_volume_with_a_mistake_is_one_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "v").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, pattern in (
        ("v", r"'v': is no path; did you mean './v'\?; accepted"),
        (r"v\u0000x", "control character"),
    ):
        with pytest.raises(InputError, match=pattern) as refused:
            load_study_text(_study(_volume("x", name)), tmp_path / "x.toml")
        assert len(refused.value.problems) == 1


def test_a_study_of_volumes_alone_runs_where_they_stand(tmp_path: Path) -> None:
    only = _study(_volume("old", tmp_path)).replace('tree = "raid5(3, chunk=64KiB)"', f'volume = "{tmp_path}/"')
    loaded = load_study_text(only + '[sim]\ndevice = "hdd-7200"\n', tmp_path / "x.toml")
    assert loaded.study.default_targets == [f"raid5={tmp_path}/", f"old={tmp_path}"]
    with_a_tree = load_study_text(
        _study(_volume("old", tmp_path)) + '[sim]\ndevice = "hdd-7200"\n', tmp_path / "x.toml"
    )
    assert with_a_tree.study.default_targets == ["sim"]


@pytest.mark.parametrize("words", [["odd={0}"], ["odd={0},{0}/b"], ["a={0}", "b={0}/b"]])
def test_a_name_that_is_no_array_is_not_called_a_group_where_nothing_can_lie_over_it(
    words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    only = _study("").replace('tree = "raid5(3, chunk=64KiB)"', f'volume = "{tmp_path}/"')
    loaded = load_study_text(only, tmp_path / "x.toml")
    with pytest.raises(InputError, match=r"no array of the study has this name.* accepted: ARRAY=PLACE .* of raid5"):
        run_study(loaded, on=[word.format(tmp_path) for word in words], out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_what_is_given_up_is_a_block_device(tmp_path: Path) -> None:
    for place, pattern in ((tmp_path, "is no block device"), (tmp_path / "gone", "there is no such device")):
        with pytest.raises(InputError, match=f"--destroy: .*{pattern}.* accepted: block devices"):
            resolve_targets([f"{tmp_path}/"], destroy=[str(place)])


def test_a_volume_that_cannot_be_read_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "image"
    file.write_bytes(bytes(1 << 20))
    loaded = load_study_text(_study(_volume("image", file)), tmp_path / "study.toml")
    opened = Path.open

    def refuse(path: Path, *words: Any, **options: Any) -> Any:
        # Whoever runs the tests may well be allowed to read everything.
        if path == file:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *words, **options)

    monkeypatch.setattr(Path, "open", refuse)
    for words, where in ((None, r"array\[1\].volume"), ([f"raid5={file}"], "--on")):
        with pytest.raises(InputError, match=f"{where}: '.*image': cannot be read: Permission denied"):
            run_study(loaded, on=words, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_volume_runs_on_real_members_only(tmp_path: Path) -> None:
    loaded = load_study_text(_study(_volume("old", tmp_path)), tmp_path / "x.toml")
    assert [array.name for array in loaded.study.arrays_on("sim")] == ["raid5"]
    assert loaded.study.default_targets == [f"old={tmp_path}"], "where it is need not be said twice"
    (target,) = resolve_targets(loaded.study.default_targets, study=loaded.study)
    assert (target.kind, target.volumes["old"].path) == ("volumes", tmp_path)
    assert not [one for one in resolve_targets(["sim"], study=loaded.study) if one.is_live]


def test_the_command_line_says_where_arrays_stand(tmp_path: Path) -> None:
    loaded = load_study_text(_study(_volume("old box", "/nowhere/")), tmp_path / "x.toml")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (target,) = resolve_targets([f"raid5={tmp_path}/a,old box={tmp_path}/b"], study=loaded.study)
    assert {name: place.path for name, place in target.volumes.items()} == {
        "raid5": tmp_path / "a",
        "old box": tmp_path / "b",
    }
    # Without an array of that name it is a group of members, as ever.
    (target,) = resolve_targets([f"shelf={tmp_path}/a,{tmp_path}/b", f"old box={tmp_path}/b"], study=loaded.study)
    assert [group.names for group in target.groups] == [("shelf",)]
    assert list(target.volumes) == ["old box"]


def test_names_and_places_may_have_commas(tmp_path: Path) -> None:
    for name in ("a,b", "c", "d=e"):
        (tmp_path / name).mkdir()
    arrays = _volume("RAID 5, write-back", "/nowhere/") + _volume("RAID 5", "/nowhere/")
    loaded = load_study_text(_study(arrays), tmp_path / "x.toml")
    word = f"RAID 5, write-back={tmp_path}/a,b,RAID 5={tmp_path}/c,raid5={tmp_path}/d=e"
    (target,) = resolve_targets([word], study=loaded.study)
    found = {name: place.path and place.path.name for name, place in target.volumes.items()}
    assert found == {"raid5": "d=e", "RAID 5, write-back": "a,b", "RAID 5": "c"}


def test_an_array_that_is_only_modelled_is_measured_where_it_stands(
    plain: Callable[[str], Path], tmp_path: Path
) -> None:
    text = _study("").replace('chunk=64KiB)"', 'chunk=64KiB)"\non = ["sim"]') + '[sim]\ndevice = "hdd-7200"\n'
    # What is made ready first must not be a request that is no whole sectors.
    text = text.replace(
        'read = 1.0\nsize = "4KiB"',
        'read = 1.0\nsize = "64KiB"\n[[workload]]\nname = "pattern"\nread = 1.0\n'
        'size = { kind = "table", bytes = [512, "64KiB"], weights = [1, 1] }',
    ).replace("[live]", "[live]\nsector = 512")
    loaded = load_study_text(text, tmp_path / "study.toml")
    run = run_study(loaded, on=[f"raid5={plain('box')}"], out=tmp_path / "runs")
    assert set(run.cells["array"]) == {"raid5"} and "reads" in set(run.cells["workload"])
    assert write_page(analyse(run)).exists()


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["{0}", "old=/nowhere"], "'/nowhere': there is no such directory or device"),
        (["{0}", "old=/dev/null"], "is no array, nor holds one; accepted: the block device of an array"),
        (["{0}", "odl={0}/b"], "is no array of the study; did you mean 'old'"),
        (["{0}", "old={0},old={0}/b"], r"b': gives the array 'old' a second place; accepted: one place"),
        (["sim", "raid5={0}"], "'sim' models the array 'raid5' by its tree; accepted: a run of its own"),
        (["{0}"], r"array\[1\].volume: '/nowhere/': there is no such directory or device"),
    ],
)
def test_what_is_no_volume_is_refused(words: list[str], pattern: str, tmp_path: Path) -> None:
    loaded = load_study_text(_study(_volume("old", "/nowhere/")), tmp_path / "x.toml")
    with pytest.raises(InputError, match=pattern):
        resolve_targets([word.format(tmp_path) for word in words], study=loaded.study)


def test_two_plain_directories_beside_an_array_of_raidlabs(plain: Callable[[str], Path], tmp_path: Path) -> None:
    places = [plain(name) for name in ("pool", "one", "two")]
    arrays = _volume("one", places[1], "disks = 3\nsays = 'RAID 5 of 3 disks'") + _volume("two", places[2])
    loaded = load_study_text(_study(arrays, WRITES), tmp_path / "study.toml")
    run = run_study(loaded, on=[str(places[0])], out=tmp_path / "runs")
    assert [list(place.iterdir()) for place in places] == [[], [], []], "what was made is gone"
    assert sorted(run.cells["array"].unique()) == ["one", "raid5", "two"]
    assert run.facts["members_of"] == {"raid5": [0, 1, 2], "one": [3], "two": [4]}
    assert run.facts["volumes"] == {"one": str(places[1]), "two": str(places[2])}
    assert str(run.live_members("two")[0]["path"]).startswith(str(places[2]))
    points = {point.array: point for point in analyse(run).points if point.target == "live"}
    # What nothing tells is as its owner says; where he says nothing, it is one disk, as far as is known.
    assert (points["one"].members, points["one"].disks) == (3, 3)
    assert (points["two"].members, points["two"].storage_efficiency) == (1, None)
    words = volume_words(run.standing["one"], run.live_members("one"))
    assert words.endswith("; its owner says: RAID 5 of 3 disks, 3 disks")
    findings = {finding.check: finding for finding in run_checks(analyse(run)) if finding.target == "live"}
    assert findings["array_state"].verdict == UNKNOWN
    assert "its owner says: RAID 5 of 3 disks" in findings["array_state"].evidence
    assert findings["equal_capacity"].verdict == INVALID
    page = write_page(analyse(run)).read_text(encoding="utf-8")
    assert "its owner says: RAID 5 of 3 disks" in page
    assert resume_run(run.folder).facts["volumes"] == run.facts["volumes"]


@pytest.mark.parametrize(("equal", "disks"), [("members", 0), ("members", 1), ("user_capacity", 0)])
def test_of_a_volume_of_which_nothing_tells_no_equality_is_claimed(
    plain: Callable[[str], Path], tmp_path: Path, equal: str, disks: int
) -> None:
    more = f"disks = {disks}" if disks else ""
    arrays = _volume("one", plain("one"), more) + _volume("two", plain("two"), more)
    text = _study(arrays).replace('reference = "raid5"', 'reference = "one"').replace('"members"', f'"{equal}"')
    text = text.replace('[[array]]\nname = "raid5"\ntree = "raid5(3, chunk=64KiB)"\n', "")
    loaded = load_study_text(text, tmp_path / "study.toml")
    run = run_study(loaded, on=[f"one={tmp_path / 'one'},two={tmp_path / 'two'}"], out=tmp_path / "runs")
    (found,) = (one for one in run_checks(analyse(run)) if one.check == "equal_capacity")
    assert found.verdict == (UNKNOWN if (equal, disks) == ("members", 0) else PASS), found
    if found.verdict == UNKNOWN:
        assert "'one', 'two'" in found.evidence and "disks = 8" in found.remedy
    assert ("this is the file that was measured" in found.evidence) == (equal == "user_capacity")


def test_volumes_whose_study_says_that_they_have_other_numbers_of_disks_are_not_equal(tmp_path: Path) -> None:
    arrays = _volume("one", "/dev/md0", "disks = 3") + _volume("two", "/dev/md1", "disks = 5")
    with pytest.raises(InputError, match=r"compare\[0\].equal: .* differ: members from 3 to 5 \(on live\)"):
        load_study_text(_study(arrays), tmp_path / "study.toml")
    for same in (arrays.replace("5", "3"), arrays.replace("disks = 5", "")):
        load_study_text(_study(same), tmp_path / "study.toml")


def test_one_directory_is_not_two_arrays(plain: Callable[[str], Path], tmp_path: Path) -> None:
    place, link = plain("pool"), tmp_path / "link"
    link.symlink_to(place)
    loaded = load_study_text(_study(_volume("one", place) + _volume("two", link)), tmp_path / "study.toml")
    for words in ([f"one={place},two={link}"], [f"one={place}", str(link)]):
        with pytest.raises(InputError, match=r"the array 'one' \(.*\) and .* are both made of the same place"):
            run_study(loaded, on=words, out=tmp_path / "runs")


def test_arrays_without_members_are_left_out(
    plain: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = plain("one")
    loaded = load_study_text(_study(""), tmp_path / "study.toml")
    more = loaded.study.array[0].model_copy(update={"name": "raid0"})
    study = loaded.study.model_copy(update={"array": [*loaded.study.array, more]})
    geometry = dataclasses.replace(loaded.geometry, trees={**loaded.geometry.trees, "raid0": {"kind": "member"}})
    loaded = dataclasses.replace(loaded, study=study, geometry=geometry)
    run = run_study(loaded, on=[f"raid5={place}"], out=tmp_path / "runs")
    assert set(run.cells["array"]) == {"raid5"}
    assert run.standing["raid5"].volume == str(place)
    print_run(analyse(run), [])
    assert "raid5: not raidlab's" in " ".join(capsys.readouterr().out.split())


def test_an_existing_file_is_read_and_not_written(plain: Callable[[str], Path], tmp_path: Path) -> None:
    file = plain("there") / "image"
    file.write_bytes(bytes(range(256)) * 4096 * 3)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    loaded = load_study_text(_study(_volume("image", file)), tmp_path / "study.toml")
    run = run_study(loaded, on=[f"image={file}"], out=tmp_path / "runs")
    (size,) = run.cells.filter(run.cells["target"] == "live")["member_bytes"].unique()
    assert size == usable_bytes(file.stat().st_size)
    written = load_study_text(_study(_volume("image", file), WRITES), tmp_path / "study.toml")
    # Where the study says it, that is where it is to be changed.
    for words in (None, [f"image={file}"]):
        with pytest.raises(RefusedError, match=r"array\[1\].volume: .*was not made by raidlab"):
            run_study(written, on=words, out=tmp_path / "runs")
    elsewhere = load_study_text(_study(_volume("image", tmp_path / "gone"), WRITES), tmp_path / "study.toml")
    with pytest.raises(RefusedError, match=r"--on: .*was not made by raidlab"):
        run_study(elsewhere, on=[f"image={file}"], out=tmp_path / "runs")
    assert hashlib.sha256(file.read_bytes()).hexdigest() == digest
    short = plain("short") / "image"
    short.write_bytes(b"x" * 5000)
    with pytest.raises(InputError, match="too little to measure; accepted: a volume of at least 8 KiB"):
        run_study(loaded, on=[f"image={short}"], out=tmp_path / "runs")


def test_a_block_device_is_read_only_unless_given_up(loops: Callable[[Path], str], tmp_path: Path) -> None:
    backing = tmp_path / "disk"
    backing.write_bytes(b"precious" * (1 << 20))
    digest = hashlib.sha256(backing.read_bytes()).hexdigest()
    device = loops(backing)
    reading = load_study_text(_study(_volume("old", device)), tmp_path / "study.toml")
    run = run_study(reading, out=tmp_path / "runs")
    assert set(run.cells["array"]) == {"old"} and run.cells["member_bytes"].to_list()[0] == 8 << 20
    writing = load_study_text(_study(_volume("old", device), WRITES), tmp_path / "study.toml")
    with pytest.raises(RefusedError, match=r"the array 'old': '/dev/loop\d+': is a block device.*--destroy /dev/loop"):
        run_study(writing, out=tmp_path / "runs")
    # What is only read elsewhere may stand beside what is written: raidlab's own arrays.
    (tmp_path / "pool").mkdir()
    own = _study(_volume("old", device), WRITES + 'arrays = ["raid5"]\n')
    beside = load_study_text(own, tmp_path / "study.toml")
    run_study(beside, on=[f"{tmp_path}/pool/"], out=tmp_path / "runs")
    assert hashlib.sha256(backing.read_bytes()).hexdigest() == digest
    given_up = run_study(writing, destroy=[device], out=tmp_path / "runs")
    assert set(given_up.cells["workload"]) == {"reads", "writes"}
    assert hashlib.sha256(backing.read_bytes()).hexdigest() != digest


# Every state that a volume may be found in, and every state that it may be asked to be in.
_FOUND: list[tuple[str, str]] = list(itertools.product(("optimal", "degraded", "failed"), ("idle", "resync")))


@pytest.mark.parametrize("asked", ["optimal", "degraded", "resyncing"])
@pytest.mark.parametrize(("state", "activity"), _FOUND)
def test_a_volume_is_to_be_in_the_state_that_is_asked_for(asked: Any, state: str, activity: str) -> None:
    volume: Volume = {
        "kind": "md",
        "name": "md0",
        "level": "raid1",
        "chunk_bytes": None,
        "state": state,
        "activity": activity,
        "activity_share": None,
        "missing_members": int(state != "optimal"),
        "members": [{"name": name, "state": "online"} for name in "ab"],
        "details": {},
        "unknown": {},
    }
    member: Member = {"kind": "block", "io": "direct", "path": "/dev/md0", "disks": [], "volumes": [volume]}
    array = Array(name="old", volume="/dev/md0", state=asked)
    verdicts = [judge(member, array) for judge in (array_state.judge_standing, resync.judge_standing)]
    invalid = any(found is not None and found.verdict == INVALID for found in verdicts)
    wanted = {
        "optimal": (state, activity) == ("optimal", "idle"),
        "degraded": (state, activity) == ("degraded", "idle"),
        "resyncing": activity == "resync" and state != "failed",
    }
    assert invalid == (not wanted[asked])


def _make(tool: str, *words: str | Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool} here")
    subprocess.run([tool, *map(str, words)], check=True, capture_output=True)


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mounts devices on directories, and takes them off again."""
    made: list[Path] = []

    def mount(device: str, name: str, *options: str) -> Path:
        place = tmp_path / name
        place.mkdir(exist_ok=True)
        done = subprocess.run(["mount", *options, device, str(place)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
        made.append(place)
        return place

    yield mount
    for place in made:
        subprocess.run(["umount", str(place)], check=False, capture_output=True)


@pytest.fixture
def disks(tmp_path: Path, loops: Callable[[Path], str]) -> Callable[[int], list[str]]:
    """Loop devices of 128 MiB, over files without content."""
    numbers = itertools.count()

    def make(count: int) -> list[str]:
        found = []
        for _ in range(count):
            backing = tmp_path / f"disk{next(numbers)}"
            with backing.open("wb") as file:
                file.truncate(128 << 20)
            found.append(loops(backing))
        return found

    return make


def _btrfs(level: str, devices: list[str]) -> None:
    _make("mkfs.btrfs", "-q", "-f", "-d", level, "-m", level, *devices)
    subprocess.run(["btrfs", "device", "scan", *devices], check=False, capture_output=True)


def _of(findings: list[Finding], check: str) -> Finding:
    return next(finding for finding in findings if finding.check == check and finding.target == "live")


@pytest.fixture
def striped(disks: Callable[[int], list[str]]) -> Iterator[str | None]:
    """A stripe of the device mapper over two devices; None where the kernel has no device mapper."""
    mapper = Path("/proc/devices").read_text(encoding="utf-8")
    if "device-mapper" not in mapper or shutil.which("dmsetup") is None:
        yield None
        return
    devices = disks(2)
    table = f"0 {2 * (128 << 20) // 512} striped 2 128 {devices[0]} 0 {devices[1]} 0"
    done = subprocess.run(["dmsetup", "create", "raidlab-test", "--table", table], check=False, capture_output=True)
    yield "/dev/mapper/raidlab-test" if done.returncode == 0 else None
    subprocess.run(["dmsetup", "remove", "raidlab-test"], check=False, capture_output=True)


def test_arrays_of_the_kernels_beside_a_raid_5_of_raidlabs(
    disks: Callable[[int], list[str]],
    mounts: Callable[..., Path],
    plain: Callable[[str], Path],
    striped: str | None,
    tmp_path: Path,
) -> None:
    mirrors, stripes = disks(2), disks(4)
    _btrfs("raid1", mirrors)
    _btrfs("raid10", stripes)
    raid1, raid10 = mounts(mirrors[0], "raid1"), mounts(stripes[0], "raid10")
    places = {"raid1": raid1, "raid10": raid10, "first": plain("first"), "second": plain("second")}
    arrays = "".join(_volume(name, place) for name, place in places.items())
    arrays += _volume("striped", striped) if striped is not None else ""
    loaded = load_study_text(_study(arrays), tmp_path / "study.toml")
    pool = plain("pool")
    run = run_study(loaded, on=[f"{pool}/"], out=tmp_path / "runs")
    assert run.facts["status"] == "complete"
    names = ["raid5", *places, *(["striped"] if striped is not None else [])]
    points = {point.array: point for point in analyse(run).points if point.target == "live"}
    assert sorted(points) == sorted(names), "one table has them all"
    found = {name: run.live_members(name)[0].get("volumes", []) for name in places}
    assert [(one["kind"], one["level"], one["state"]) for one in found["raid1"]][:1] == [("btrfs", "raid1", "optimal")]
    assert [(one["kind"], one["level"], one["state"]) for one in found["raid10"]][:1] == [
        ("btrfs", "raid10", "optimal")
    ]
    assert (points["raid1"].members, points["raid10"].members, points["raid5"].members) == (2, 4, 3)
    assert found["raid10"][0]["chunk_bytes"] == 64 * 1024
    if striped is not None:
        (volume,) = run.live_members("striped")[0]["volumes"]
        assert (volume["kind"], volume["level"], volume["chunk_bytes"]) == ("dm", "striped", 65536)
        assert points["striped"].members == 2
    assert _of(run_checks(analyse(run)), "array_state").verdict == UNKNOWN, "of plain directories nothing tells"
    only = run_study(loaded, on=[f"raid1={raid1}", f"raid10={raid10}"], out=tmp_path / "runs")
    if striped is None:
        assert set(only.cells["array"]) == set(names) - {"raid5"}
    # A member of one array is nobody else's, whatever it is called.
    for words in ([f"{pool}/", f"first={raid1}"], [f"{pool}/", f"first={mirrors[1]}"], [f"{raid10}/"]):
        with pytest.raises(InputError, match=r"the array '\w+' \(.*\) and .* are both made of loop\d+"):
            run_study(loaded, on=words, out=tmp_path / "runs")


def test_a_degraded_array_is_invalid_unless_the_study_asks_for_it(
    disks: Callable[[int], list[str]], mounts: Callable[..., Path], plain: Callable[[str], Path], tmp_path: Path
) -> None:
    devices = disks(3)
    _btrfs("raid1", devices)
    lost = Path(devices[1])
    # A device without its signature is missing when the file system is mounted next.
    _make("wipefs", "-a", "-f", lost)
    subprocess.run(["btrfs", "device", "scan", "--forget", str(lost)], check=False, capture_output=True)
    place = mounts(devices[0], "raid1", "-o", "degraded")
    pool = plain("pool")
    for asked, verdict in (("optimal", INVALID), ("degraded", PASS), ("resyncing", PASS)):
        study = _study(_volume("box", place, f'state = "{asked}"'))
        run = run_study(load_study_text(study, tmp_path / "study.toml"), on=[f"{pool}/"], out=tmp_path / "runs")
        findings = run_checks(analyse(run))
        state = _of(findings, "array_state")
        assert state.verdict == verdict, asked
        assert "1 of 3 members missing" in state.evidence
        # It is not busy with anything, which one that is to be resyncing would be.
        assert _of(findings, "resync").verdict == (INVALID if asked == "resyncing" else PASS)


def test_a_file_system_and_its_device_are_not_two_arrays(
    disks: Callable[[int], list[str]], mounts: Callable[..., Path]
) -> None:
    (device,) = disks(1)
    _make("mkfs.ext4", "-q", "-F", device)
    place = mounts(device, "ext4")
    name = Path(device).name
    both = (LivePlace("block", Path(device)), LivePlace("directory", place))
    assert shared_parts(both, Sources()) == [name]
    assert shared_parts((both[1], LivePlace("directory", place)), Sources()) == [], "two directories on one plain disk"


def test_arrays_share_what_has_sectors_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of md over partitions of the same disks share no member; an array and its members, or its parts, do."""
    block = tmp_path / "block"

    def device(name: str, *below: Path, of: Path | None = None) -> Path:
        node = (of or block) / name
        (node / "slaves").mkdir(parents=True)
        if of is not None:
            (node / "partition").write_text("1\n", encoding="utf-8")
            (node / "slaves").rmdir()
        for one in below:
            (node / "slaves" / one.name).symlink_to(one)
        return node

    disks = [device(name) for name in ("sda", "sdb")]
    first, second = ([device(f"{disk.name}{number}", of=disk) for disk in disks] for number in (1, 2))
    md0, md1 = device("md0", *first), device("md1", *second)
    part, volume, other = device("md0p1", of=md0), device("dm-0", md0), device("dm-1", md0)
    shared = {
        (md0, md1): False,
        (md0, first[0]): True,
        (md0, disks[1]): True,
        (md0, second[0]): False,
        (first[0], second[0]): False,
        (part, md0): True,
        (part, first[1]): True,
        (volume, other): True,
        (volume, part): True,
        (volume, md1): False,
        (md1, disks[0]): True,
    }
    nodes = {node.name: node for pair in shared for node in pair}
    monkeypatch.setattr(stack, "device_folders", lambda path, _sources: [nodes[path.name]])
    for (one, two), is_shared in shared.items():
        for pair in ((one, two), (two, one)):
            below = [stack.blocks_below(Path("/dev") / node.name, Sources()) for node in pair]
            found = any(stack.overlaps(left, right) for left in below[0] for right in below[1])
            assert found == is_shared, pair
