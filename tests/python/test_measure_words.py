"""The flags and targets of ``raidlab measure``: what they mean, and what is refused before anything is touched."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raidlab._core import device_user
from raidlab.errors import InputError, RefusedError
from raidlab.measure import BudgetFlags, Drive, LoadFlags, RequestedTimes, WorkloadFlags, request_of_flags
from raidlab.measure.places import NULL_BYTES, short_name, wanted_targets
from raidlab.measure.plan import TOTAL, check_depths, check_drive, study_of, subjects_of, toml_text
from raidlab.measure.words import load_document, parse_kind, validated, workload_document
from raidlab.study.schema import Study

MIB = 1 << 20


def flags_to_study(words: list[str], **given: Any) -> Study:
    """The study that some targets and flags become."""
    asked = request_of_flags(words, WorkloadFlags(), LoadFlags(), BudgetFlags(), Drive(), **given)
    wanted = wanted_targets(words, (), writes=False, file_bytes=asked.file_bytes)
    loaded = study_of(
        subjects_of(wanted, each=asked.each),
        words=words,
        seed=asked.seed,
        workload=asked.workload,
        load=asked.load,
        budget=asked.budget,
    )
    assert Study.model_validate(tomllib.loads(loaded.text)) == loaded.study
    return loaded.study


def test_the_defaults_are_random_reads_of_a_page() -> None:
    study = flags_to_study(["null"])
    workload = study.workload[0]
    assert (workload.read, workload.address.kind, workload.size.model_dump()) == (
        1.0,
        "uniform",
        {"kind": "fixed", "bytes": 4096},
    )
    assert study.load.depths == [32]
    assert study.live is not None and study.live.repeats == 3 and study.live.measure.duration == 3 * 10**9
    assert [array.name for array in study.array] == ["null"]


@pytest.mark.parametrize(
    ("word", "read", "address"),
    [("read", 1.0, "sequential"), ("randwrite", 0.0, "uniform"), ("randrw", 0.5, "uniform"), ("rw", 0.5, "sequential")],
)
def test_words_of_fio_are_short_for_two_flags(word: str, read: float, address: str) -> None:
    short = workload_document(WorkloadFlags(rw=word), volumes=1)
    long = workload_document(WorkloadFlags(read=f"{read:.0%}", address=address), volumes=1)
    assert short == long


def test_a_word_for_both_directions_leaves_their_shares_open() -> None:
    document = workload_document(WorkloadFlags(rw="randrw", read="70%"), volumes=1)
    assert (document["read"], document["address"]) == (0.7, {"kind": "uniform"})


def test_kinds_are_written_as_in_a_study() -> None:
    assert parse_kind("8KiB") == "8KiB"
    assert parse_kind("exponential:8KiB") == {"kind": "exponential", "mean": "8KiB"}
    assert parse_kind("zipf:0.99") == {"kind": "zipf", "theta": 0.99}
    assert parse_kind("sequential:streams=4") == {"kind": "sequential", "streams": 4}


def test_an_open_loop() -> None:
    document = load_document(LoadFlags(rate="1000/s,2000", arrival="h2:cv2=4"))
    assert document == {"open": {"arrival": "h2", "cv2": 4, "rates_per_s": [1000.0, 2000.0]}}


def test_a_held_percentile_needs_no_depth() -> None:
    assert load_document(LoadFlags(hold="p99.9=20ms")) == {"hold": {"percentile": 99.9, "target": "20ms"}}
    both = load_document(LoadFlags(hold="p90=20ms", depth="1,8"))
    assert both["depths"] == [1, 8]


@pytest.mark.parametrize(
    ("make", "pattern"),
    [
        (
            lambda: workload_document(WorkloadFlags(rw="randread", read="50%"), volumes=1),
            "--rw: 'randread': says what --read says too",
        ),
        (
            lambda: workload_document(WorkloadFlags(rw="rw", address="zipf:1"), volumes=1),
            "says what --address says too",
        ),
        (lambda: workload_document(WorkloadFlags(rw="random"), volumes=1), "--rw: 'random': is not known"),
        (lambda: workload_document(WorkloadFlags(read="170%"), volumes=1), "--read: '170%': is not a share"),
        (lambda: workload_document(WorkloadFlags(size="8 apples"), volumes=1), "--size: .*'apples' is not a unit"),
        (lambda: workload_document(WorkloadFlags(size="expo:8KiB"), volumes=1), "--size: .*did you mean 'exponential'"),
        (lambda: workload_document(WorkloadFlags(address="zipf"), volumes=1), "--address: theta: is missing"),
        (
            lambda: workload_document(WorkloadFlags(address="zipf:theta=0.9,a=1"), volumes=1),
            "--address: a: unknown key",
        ),
        (lambda: load_document(LoadFlags(rate="10", depth="3")), "--rate or --depth"),
        (lambda: load_document(LoadFlags(depth="0")), "--depth: '0'"),
        (lambda: load_document(LoadFlags(rate="-3")), "--rate: '-3'"),
        (lambda: load_document(LoadFlags(arrival="poisson")), "no --rate says how many"),
        (lambda: load_document(LoadFlags(rate="5", arrival="h2")), "cv2 goes with h2"),
        (lambda: load_document(LoadFlags(hold="90=20ms")), "--hold: '90=20ms'"),
        (lambda: load_document(LoadFlags(hold="p90=20")), "a time above 0 with its unit"),
        (lambda: validated(Drive, {"interface": "uring"}), "--interface: 'uring': .*did you mean 'io_uring'"),
        (lambda: request_of_flags(["null"], *plain(runtime="5"), Drive()), "--runtime: '5': is a time without a unit"),
        (
            lambda: request_of_flags(["null"], *plain(precision="0"), Drive()),
            "--precision: '0': .*; accepted: above 0% and up to",
        ),
        (
            lambda: request_of_flags(["null"], *plain(precision="0%"), Drive()),
            "--precision: '0%': is no width that can be asked",
        ),
        (lambda: request_of_flags(["null"], *plain(precision="101%"), Drive()), "--precision: '101%': is no width"),
        (lambda: request_of_flags(["null"], *plain(precision="-2%"), Drive()), "--precision: '-2%': is no width"),
        (lambda: request_of_flags(["null"], *plain(), Drive(), file_size="much"), "--file-size: 'much'"),
        (lambda: request_of_flags(["null"], *plain(), Drive(), workload="x"), "it beside --study"),
        (
            lambda: request_of_flags(["null"], *plain(), Drive(), study="quickstart", workload="x"),
            "has no workload of this name",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_the_name_of_the_flag(make: Callable[[], object], pattern: str) -> None:
    with pytest.raises(InputError, match=pattern):
        make()


def plain(**budget: Any) -> tuple[WorkloadFlags, LoadFlags, BudgetFlags]:
    return WorkloadFlags(), LoadFlags(), BudgetFlags(**budget)


def test_a_study_gives_workload_load_and_seed_and_flags_give_the_time() -> None:
    asked = request_of_flags(
        ["null"], *plain(runtime="7s"), Drive(), study="quickstart", workload="8 KiB random writes"
    )
    assert asked.workload["read"] == 0.0 and asked.workload["name"] == "8 KiB random writes"
    assert asked.budget.runtime == "7s"
    with pytest.raises(InputError, match="either --study or --size"):
        request_of_flags(["null"], WorkloadFlags(size="8KiB"), LoadFlags(), BudgetFlags(), Drive(), study="quickstart")


def test_precision_is_in_per_cent_with_or_without_its_sign() -> None:
    for text in ("2.5", "2.5%"):
        assert request_of_flags(["null"], *plain(precision=text), Drive()).precision_percent == pytest.approx(2.5)


def wanted(words: list[str], **given: Any) -> list[Any]:
    return wanted_targets(words, given.pop("destroy", ()), **{"writes": False, "file_bytes": MIB, **given})


def test_targets_are_what_they_are(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (64 * 1024 + 5))
    found = wanted(["null", "memory", str(tmp_path), str(file), f"raid5(3)@{tmp_path},{tmp_path}"])
    assert [target.places[0].kind for target in found] == ["null", "memory", "directory", "file", "directory"]
    assert found[0].places[0].size_bytes == NULL_BYTES
    assert found[3].places[0].size_bytes == 60 * 1024, "whole pages, without the last, which may hold raidlab's mark"
    assert found[4].tree == "raid5(3)" and len(found[4].places) == 2


def test_a_target_may_have_a_name_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "c=d").mkdir()
    words = [f"raid10={tmp_path}", "the memory=memory", f"mine=raid5(3, chunk=64KiB)@{tmp_path},{tmp_path}"]
    found = wanted([*words, f"raid5(3, chunk=64KiB)@{tmp_path},{tmp_path}", f"{tmp_path}/c=d"])
    assert [target.title for target in found[:3]] == ["raid10", "the memory", "mine"]
    assert [target.places[0].kind for target in found] == ["directory", "memory", "directory", "directory", "directory"]
    assert [target.tree is None for target in found] == [True, True, False, False, True]
    assert not found[3].name and not found[4].name, "a key of a tree, and a path, are no names"
    with pytest.raises(InputError, match="no such file, directory or device"):
        wanted(["raid10=/nowhere"])


def test_a_path_with_an_at_sign_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a@b"
    folder.mkdir()
    assert wanted([str(folder)])[0].tree is None


@pytest.mark.parametrize(
    ("word", "pattern"),
    [
        ("nul", "there is no such file, directory or device; did you mean 'null'"),
        ("/nowhere/at/all", "there is no such file, directory or device"),
        ("/dev/null", "is a character device; did you mean 'null'"),
        ("raid5(3)@memory,/", "cannot be mixed in one array"),
    ],
)
def test_what_is_no_target_is_refused(word: str, pattern: str) -> None:
    with pytest.raises(InputError, match=pattern):
        wanted([word])


def test_small_files_twins_and_stray_destroy_are_refused(tmp_path: Path) -> None:
    small, file = tmp_path / "small", tmp_path / "file"
    small.write_bytes(b"x" * 5000)
    file.write_bytes(b"x" * MIB)
    with pytest.raises(InputError, match="which is too little to measure"):
        wanted([str(small)])
    with pytest.raises(InputError, match="is given twice"):
        wanted([str(file), f"{tmp_path}/../{tmp_path.name}/file"])
    for word in ("/dev/null", str(file), "memory"):
        with pytest.raises(InputError, match=f"--destroy: '{word}': is no block device; accepted: block devices that"):
            wanted(["null", str(file)], destroy=[word])


def test_a_block_device_is_written_only_when_it_is_given_up(tmp_path: Path, loops: Callable[[Path], str]) -> None:
    backing = tmp_path / "backing.img"
    backing.write_bytes(bytes(1 << 20))
    device = loops(backing)
    assert wanted([device])[0].places[0].given_up is False
    with pytest.raises(RefusedError, match=f"--destroy {device}"):
        wanted([device], writes=True)
    assert wanted([device], writes=True, destroy=[device])[0].places[0].given_up


def test_a_block_device_that_is_in_use_is_refused_whatever_is_asked() -> None:
    # Not loop devices, which other tests take and leave meanwhile.
    devices = [one for one in sorted(Path("/dev").iterdir()) if one.is_block_device() and "loop" not in one.name]
    used = [str(one) for one in devices if _size(one) and device_user(str(one)) is not None]
    if not used:
        pytest.skip("no block device here that is in use")
    for device in used:
        with pytest.raises(RefusedError, match=f"^--destroy: {device} is "):
            wanted([device], destroy=[device])


def _size(device: Path) -> int:
    number = device.stat().st_rdev
    entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/size")
    return int(entry.read_text()) if entry.exists() else 0


def test_several_targets_are_one_subject_or_each_its_own(tmp_path: Path) -> None:
    targets = wanted(["null", "memory"])
    (total,) = subjects_of(targets, each=False)
    assert (total.name, total.tree, len(total.places)) == (TOTAL, "independent(2)", 2)
    assert [subject.name for subject in subjects_of(targets, each=True)] == ["null", "memory"]
    assert [subject.name for subject in subjects_of(wanted(["null", "null"]), each=True)] == ["null", "null #2"]
    assert flags_to_study(["null", "memory"]).workload[0].volumes == "even", "each gets the same number of requests"
    with pytest.raises(InputError, match="an array is measured by itself"):
        subjects_of(wanted(["raid5(3)@memory", "null"]), each=False)


def test_every_target_needs_a_share_of_the_depth() -> None:
    subjects = subjects_of(wanted(["null", "memory"]), each=False)
    check_depths(subjects, {"depths": [2]}, workers=2)
    with pytest.raises(InputError, match="1 outstanding over 2 targets"):
        check_depths(subjects, {"depths": [1, 2]}, workers=1)
    with pytest.raises(InputError, match="2 outstanding over 3 workers"):
        check_depths(subjects, {"depths": [2]}, workers=3)


def test_arrays_take_no_flags_of_plain_targets() -> None:
    subjects = subjects_of(wanted(["raid5(3)@memory"]), each=False)
    check_drive(subjects, Drive())
    with pytest.raises(InputError, match=r"--compressible: .* is not for arrays"):
        check_drive(subjects, Drive(compressible_percent=50))


@pytest.mark.parametrize(
    ("word", "size", "pattern"),
    [
        ("memory", "1GiB", "holds 256 MiB, and a request is 1 GiB"),
        ("raid5(3, chunk=1000)@memory", "4KiB", "has a chunk of 1000 bytes"),
        ("raid9(3)@memory", "4KiB", "unknown level 'raid9'"),
        ("raid5(3)@null", "4KiB", "cannot be built over files that exist, nor over null"),
    ],
)
def test_what_does_not_fit_is_refused(word: str, size: str, pattern: str) -> None:
    workload = workload_document(WorkloadFlags(size=size), volumes=1)
    with pytest.raises(InputError, match=pattern):
        study_of(
            subjects_of(wanted([word]), each=False),
            words=[word],
            seed=1,
            workload=workload,
            load={"depths": [1]},
            budget=RequestedTimes(),
        )


def test_long_names_keep_their_end() -> None:
    name = short_name("/a/very/long/path" * 10)
    assert len(name) == 60 and name.startswith("...") and name.endswith("/path")


def test_toml_gives_back_what_it_was_given() -> None:
    document = {
        "name": 'quoted "name"',
        "on": ["/dev/ü", "b"],
        "seed": 2**62,
        "load": {"depths": [1, 8], "hold": {"percentile": 99.9, "target": "20ms"}},
        "workload": [{"name": "w", "task": [{"op": "read"}, {"op": "write", "same_extent_as": 0}]}],
    }
    assert tomllib.loads(toml_text(document)) == document
