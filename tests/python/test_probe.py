"""``raidlab probe``: simulated arrays are named rightly or honestly not, and nothing is sure and wrong."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from typer.testing import CliRunner

from conftest import unmount
from raidlab.cli.app import app
from raidlab.directory import Directory
from raidlab.errors import OutputError, RaidlabError
from raidlab.measure.probe import ProbeAnswer, ProbeRequest, probe_simulated
from raidlab.measure.probe.ask import LISTED, PAGE, AskedTest, Counted, ProbeTest, SimulatedBox, asked_test
from raidlab.measure.probe.hypotheses import ArrayShape, Hypothesis, shapes
from raidlab.measure.probe.judge import LEAST_SHOWN, Judge
from raidlab.measure.probe.picture import picture
from raidlab.measure.probe.predict import DieTurn, Predictor, Reach, dies_of, shares_of
from raidlab.measure.probe.words import as_document, sentence
from raidlab.results.answer import CellAnswer
from raidlab.study.cell import CellCache
from raidlab.study.device import DeviceModel, load_device

KIB = 1024
# Twelve levels, rotations and layouts; from 1 to 12 members; chunks from 16 to 512 KiB.
ARRAYS = (
    ("single", 1, "", 0),
    *(("raid0", members, "", chunk) for members, chunk in ((2, 64), (3, 512), (4, 16), (6, 128), (8, 64), (12, 256))),
    *(("raid1", members, "", 0) for members in (2, 3)),
    *(("raid10", members, "near2", chunk) for members, chunk in ((4, 64), (5, 64), (6, 512), (8, 16))),
    ("raid10", 4, "far2", 64),
    ("raid10", 5, "offset2", 128),
    *(("raid5", members, "left_symmetric", chunk) for members, chunk in ((3, 64), (4, 512), (5, 64), (8, 128))),
    ("raid5", 5, "left_asymmetric", 64),
    ("raid5", 5, "right_symmetric", 64),
    ("raid5", 5, "right_asymmetric", 32),
    ("raid5", 5, "parity_last", 64),
    *(("raid6", members, "left_symmetric", chunk) for members, chunk in ((4, 64), (6, 512), (8, 64))),
    ("raid6", 6, "right_asymmetric", 128),
    ("raid50", 6, "2", 64),
)
STRIPE = Hypothesis(ArrayShape("raid0", 4), 64 * KIB)
RAID5 = Hypothesis(ArrayShape("raid5", 5, "left_symmetric"), 64 * KIB)
RAID10 = Hypothesis(ArrayShape("raid10", 4, "near2"), 64 * KIB)


def array(level: str, members: int, detail: str, chunk_kib: int) -> Hypothesis:
    return Hypothesis(ArrayShape(level, members, detail), chunk_kib * KIB)


def device(name: str) -> DeviceModel:
    return load_device(name, Path())


def probed(
    truth: Hypothesis,
    name: str,
    *,
    known: bool = True,
    writes: bool = False,
    members: tuple[int, int] = (2, 12),
    seed: int = 1,
) -> ProbeAnswer:
    model = device(name)
    asked = ProbeRequest(truth.title, members, model if known else None, writes, seed=seed)
    return probe_simulated(truth.tree, model, asked)


def is_among(truth: Hypothesis, found: ProbeAnswer, classes: int | None = None) -> bool:
    arrays = [one for group in found.classes[:classes] for one in group.arrays]
    return any((one.shape, one.chunk_bytes) == (truth.shape, truth.chunk_bytes) for one in arrays)


def command(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [*map(str, words)])
    if isinstance(result.exception, RaidlabError):
        return result.exception.exit_code, str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hdd-7200", "fixed-100us"])
def test_arrays_of_known_members_are_found_by_reads(name: str) -> None:
    found = {array(*one): probed(array(*one), name, seed=100 + number) for number, one in enumerate(ARRAYS)}
    assert len(found) == 28
    missed = [truth.title for truth, answer in found.items() if not is_among(truth, answer)]
    assert len(missed) <= 0.05 * len(found), missed
    elsewhere = [truth.title for truth, answer in found.items() if not is_among(truth, answer, 1)]
    assert len(elsewhere) <= 0.15 * len(found), elsewhere
    sure = {truth: answer for truth, answer in found.items() if answer.verdict.startswith("sure")}
    assert not [truth.title for truth, answer in sure.items() if not is_among(truth, answer, 1)]
    assert len(sure) >= 0.85 * len(found)
    assert max(len(answer.lines) for answer in found.values()) <= 60
    assert max(answer.busy_ns for answer in found.values()) <= 180e9


@pytest.mark.slow
def test_without_known_members_the_truth_is_among_the_candidates() -> None:
    found = {
        array(*one): probed(array(*one), "hdd-7200", known=False, seed=100 + number)
        for number, one in enumerate(ARRAYS)
    }
    missed = [truth.title for truth, answer in found.items() if not is_among(truth, answer)]
    assert len(missed) <= 0.05 * len(found), missed


@pytest.mark.slow
def test_writes_tell_what_reads_cannot() -> None:
    by_reads, by_writes = probed(RAID5, "hdd-7200"), probed(RAID5, "hdd-7200", writes=True)
    # Of offset2 there is doubt too: on disks it nearly reads as RAID 5 does.
    assert by_reads.verdict in ("sure of a class", "not sure") and "--destroy" in by_reads.needs
    assert {"raid0", "raid5"} <= {one.shape.level for one in by_reads.classes[0].arrays}
    assert {one.shape for one in by_writes.classes[0].arrays} == {RAID5.shape}
    assert by_writes.classes[0].probability > 0.9
    # What reads leave open is not drawn as one array.
    alike = len(by_reads.classes[0].arrays) - 1
    assert f"{by_reads.classes[0].arrays[0].title}, or {alike} alike" in str(picture(by_reads).specifications())


def test_a_mirror_is_told_from_a_stripe_by_what_its_members_do() -> None:
    known = probed(RAID10, "fixed-100us", members=(2, 5))
    assert (known.verdict, sentence(known)) == ("sure", "Sure (99.9 %): RAID 10 of 4, 64 KiB chunks, near2.")
    assert len(known.lines) <= 60
    drawn = picture(known)
    assert drawn.specifications() and drawn.caption == sentence(known)
    document = as_document(known)
    assert json.loads(json.dumps(document)) == document
    assert len(picture(known).panels) == 1


def test_a_small_target_is_asked_for_larger_chunks_of_fewer_members() -> None:
    """Chunks of 64 KiB are too large to be told from one disk there of 12 members, not of 4."""
    member = {"kind": "fixed", "capacity_bytes": 300 * KIB * KIB, "read_us": 100.0, "write_us": 100.0}
    model, truth = load_device(member, Path()), STRIPE
    found = probe_simulated(truth.tree, model, ProbeRequest(truth.title, (2, 12), model))
    assert is_among(truth, found, 1)
    assert "the largest chunks seen: 4 MiB of 2, 2 MiB of 3, 512 KiB of 4" in found.notes[0]
    assert found.notes[0].endswith("8 KiB of 12 members")
    for verdict in ("sure", "sure of a class"):
        assert ", among arrays that can be seen in 1.172 GiB" in sentence(replace(found, verdict=verdict))
    few = replace(found, verdict="sure", seen_in_bytes=0)
    assert "among" not in sentence(few)


def test_writes_are_asked_for_as_the_target_may_be_written() -> None:
    asked = ProbeAnswer("box", "members unknown", needs=("--destroy", "--member"), notes=("a test",))
    said = "Cannot tell: a test. This needs writes ({}) or what its members are (--member"
    for kind, words in (
        ("block", "--destroy box, which destroys what is on it"),
        ("file", "of a block device, with --destroy; a file is only read"),
        ("sim", "--destroy sim"),
    ):
        assert sentence(replace(asked, kind=kind)).startswith(said.format(words))
    assert probed(RAID5, "fixed-100us", known=False).kind == "sim"


def test_it_leaves_off_between_two_predictions() -> None:
    """Where nothing explains what was measured, thousands of them follow the last test."""
    predictor = Predictor(device("fixed-100us").parameters, rotating=False, stop=lambda: True)
    with pytest.raises(KeyboardInterrupt):
        predictor.log_rate(ProbeTest("anywhere", PAGE), STRIPE)


def test_members_that_serve_many_at_a_time_must_be_known() -> None:
    found = probed(RAID5, "fixed-100us", known=False)
    assert (found.verdict, found.needs) == ("members unknown", ("--member",))
    assert "reads are served at a time" in sentence(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ssd-sata", "ssd-nvme"])
@pytest.mark.parametrize("truth", [RAID5, RAID10], ids=lambda one: one.shape.level)
def test_arrays_of_flash_drives_are_found_at_depths_that_keep_their_dies_busy(name: str, truth: Hypothesis) -> None:
    found = probed(truth, name, members=(2, 5))
    assert is_among(truth, found, 1) and found.classes[0].probability > 0.9, sentence(found)
    assert {line.depth for line in found.lines} <= {128, 256, 512}


def test_periods_that_come_back_to_one_die_are_told_apart_by_where_they_lie_on_members() -> None:
    turn = DieTurn(64 * KIB, 24)
    # Members of RAID 10 of 4 have every second chunk: 24 MiB are 12 MiB of theirs, and 8 turns of their dies.
    every = Reach(24 * 1024 * KIB, (0,))
    assert dies_of(every, RAID10, turn) == ((96,),)
    # 8 MiB are 4, two and two thirds of a turn.
    assert dies_of(Reach(8 * 1024 * KIB, (0,)), RAID10, turn) == ((32, 32, 32),)
    assert dies_of(every, replace(RAID5, shape=ArrayShape("raid5", 4, "left_symmetric")), turn) == ((32, 32, 32),)
    assert dies_of(Reach(PAGE, (0,)), RAID10, turn) == dies_of(Reach(PAGE, (0,)), RAID5, turn) == ()


@pytest.mark.parametrize(("off", "most"), [(3.0, 0), (1.3, 8), (1.0, 40)])
def test_what_no_draw_redeems_is_not_simulated_anew(off: float, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wrong member thousands of arrays are as unlikely as one another: each would take as long as a probe."""
    again: set[Hypothesis] = set()
    at = Predictor.log_rate_at

    def counted(predictor: Predictor, asked: AskedTest, one: Hypothesis) -> float:
        again.add(one)
        return at(predictor, asked, one)

    monkeypatch.setattr(Predictor, "log_rate_at", counted)
    model = device("fixed-100us")
    said = replace(model, parameters={**model.parameters, "read_us": 100.0 * off})
    found = probe_simulated(RAID10.tree, model, ProbeRequest("box", (4, 5), said))
    assert found.verdict == ("sure" if off == 1 else "no known array")
    assert ("No known array" in sentence(found)) == (off != 1)
    assert len(again) <= most


def test_a_cache_above_is_said() -> None:
    model = device("hdd-7200")
    cache = CellCache(line=4096, fetch=64 * KIB, read_room=64 * KIB * KIB, dirty_room=KIB * KIB)
    found = probe_simulated(RAID5.tree, model, ProbeRequest("box", member=model), cache=cache)
    assert found.verdict == "a cache answers" and not found.classes
    assert sentence(found).startswith("A cache answers")


@pytest.mark.slow
def test_a_cache_that_answers_writes_is_said() -> None:
    model = device("hdd-7200")
    cache = CellCache(
        line=4096, fetch=64 * KIB, read_room=KIB * KIB, dirty_room=64 * KIB * KIB, write_back_up_to=KIB * KIB
    )
    found = probe_simulated(RAID5.tree, model, ProbeRequest("box", member=model, writes=True), cache=cache)
    assert found.writes_cached and "A cache answers writes" in sentence(found)
    assert is_among(RAID5, found, 1) and found.needs == ("the cache switched off",)
    assert not [line for line in found.lines if line.op == "write"]


def test_chunks_lie_where_the_engine_says() -> None:
    # RAID 5 left-symmetric deals chunk i to member i mod n, as RAID 0 does; other rotations do not.
    assert ArrayShape("raid5", 5, "left_symmetric").sets == [(member,) for member in range(5)]
    assert list(ArrayShape("raid5", 5, "left_symmetric").places) == list(range(5)) * 8
    assert ArrayShape("raid10", 4, "far2").sets == [(0, 1), (0, 3), (1, 2), (2, 3)]
    all_of_five = Reach(5 * 4 * 3 * 4096 * KIB, (0,))
    assert shares_of(all_of_five, RAID5) == ("", ((64,),))
    assert len(shares_of(Reach(PAGE, (0,)), RAID5)[1]) == 5
    assert len(shares_of(Reach(320 * KIB, (0, 64 * KIB)), RAID5)[1]) == 2
    assert {shape.level for shape in shapes(2, 12)} == {
        "single",
        "raid0",
        "raid1",
        "raid10",
        "raid5",
        "raid6",
        "raid50",
    }


def test_starts_are_multiples_of_the_period_within_the_target() -> None:
    test = ProbeTest("some", 320 * KIB, (0, 64 * KIB))
    starts = test.starts(10**9, 500, 7)
    assert starts == test.starts(10**9, 500, 7) != test.starts(10**9, 500, 8)
    assert {start % (320 * KIB) for start in starts} == {0, 64 * KIB}
    assert max(starts) + PAGE <= 10**9


@pytest.mark.slow
def test_a_file_is_probed_and_only_read(tmp_path: Path) -> None:
    data = tmp_path / "box.img"
    data.write_bytes(bytes(64 * KIB * KIB))
    before = data.stat().st_mtime_ns
    status, text = command("probe", data, "--members", "2-3", "--budget", "7200ms", "--json")
    assert status == 0, text
    answer = json.loads(text)
    # A file on a machine that others use may look like anything; what is said of it is never more than was seen.
    assert answer["verdict"] in (
        "sure",
        "sure of a class",
        "not sure",
        "no known array",
        "a cache answers",
        "members unknown",
    )
    assert "--destroy box.img" not in answer["sentence"]
    assert ("a file is only read" in answer["sentence"]) == ("--destroy" in answer["needs"])
    assert data.stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_loop_device_is_one_disk_or_not_named(tmp_path: Path, loops: Callable[[Path], str]) -> None:
    backing = tmp_path / "backing.img"
    backing.write_bytes(bytes(64 * KIB * KIB))
    status, text = command("probe", loops(backing), "--members", "2-3", "--budget", "7200ms", "--json")
    assert status == 0, text
    assert not_wrong(json.loads(text), "single"), text


@pytest.mark.slow
def test_a_file_of_btrfs_over_loop_devices_is_not_named_wrongly(tmp_path: Path, loops: Callable[[Path], str]) -> None:
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("no mkfs.btrfs")
    devices = []
    for number in range(2):
        backing = tmp_path / f"{number}.img"
        with backing.open("wb") as file:
            file.truncate(256 * KIB * KIB)
        devices.append(loops(backing))
    made = subprocess.run(
        ["mkfs.btrfs", "-q", "-d", "raid0", "-m", "raid1", *devices], capture_output=True, text=True, check=False
    )
    place = tmp_path / "mounted"
    place.mkdir()
    mounted = subprocess.run(["mount", devices[0], str(place)], capture_output=True, text=True, check=False)
    if made.returncode or mounted.returncode:
        pytest.skip(f"no btrfs to be had: {made.stderr.strip()}{mounted.stderr.strip()}")
    try:
        data = place / "box.img"
        data.write_bytes(os.urandom(64 * KIB * KIB))
        status, text = command("probe", data, "--members", "2-3", "--budget", "7200ms", "--json")
        assert status == 0, text
        assert not_wrong(json.loads(text), "raid0"), text
    finally:
        unmount(place)


def not_wrong(answer: Any, level: str) -> bool:
    """Whether an answer has the level in its likeliest class, or is sure of nothing."""
    return not answer["verdict"].startswith("sure") or any(
        one["level"] == level for one in answer["classes"][0]["arrays"]
    )


def test_an_array_smaller_than_a_turn_of_the_test_is_predicted_at_any_places() -> None:
    """Members of a small file that was fitted may stand for those of a large target."""
    small = load_device(
        {"kind": "fixed", "capacity_bytes": 96 * KIB * KIB, "read_us": 100.0, "write_us": 100.0}, Path()
    )
    predictor, test = Predictor(small.parameters, rotating=False), ProbeTest("far apart", 64 * KIB * KIB)
    asked = AskedTest(test, 0.0, [0, 64 * KIB * KIB, 1024 * KIB * KIB], Counted(0, 100))
    one = array("raid5", 3, "left_symmetric", 4096)
    assert predictor.log_rate_at(asked, one) == predictor.log_rate(test, one)


@pytest.mark.parametrize(("slow", "verdict"), [({2}, "sure"), ({2, 4}, "a cache answers")])
def test_a_cache_answers_each_time(slow: set[int], verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked beside other work may be slow once where nothing is kept."""
    whole, times = SimulatedBox.ask, itertools.count()

    def held_up(box: SimulatedBox, test: ProbeTest, starts: list[int], counted: Counted | None = None) -> CellAnswer:
        answer = whole(box, test, starts, counted)
        if next(times) in slow:
            answer["elapsed_ns"] *= 5
        return answer

    monkeypatch.setattr(SimulatedBox, "ask", held_up)
    model = device("fixed-100us")
    assert probe_simulated(RAID10.tree, model, ProbeRequest("box", (4, 4), model)).verdict == verdict


def test_what_a_picture_is_hindered_by_is_said_before_or_beside_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["probe", "--sim", "raid0(2, chunk=64KiB)", "--member", "fixed-100us", "--members", "2-2", "--out"]
    file = tmp_path / "file"
    file.write_text("kept")
    before = CliRunner().invoke(app, [*words, str(file)])
    assert str(before.exception).startswith("--out") and not before.stdout
    assert file.read_text() == "kept"

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Directory, "replace", full)
    beside = CliRunner().invoke(app, [*words, str(tmp_path / "pictures")])
    assert "RAID 0 of 2" in beside.stdout
    assert isinstance(beside.exception, OutputError) and "No space left on device" in str(beside.exception)


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    small = tmp_path / "small.img"
    small.write_bytes(bytes(512 * KIB))
    raid5 = "raid5(5, chunk=64KiB)"
    for words, said in (
        ((), "exactly one of them"),
        (("memory",), "nothing whose members"),
        ((small,), "no period fits"),
        ((small, "--budget", "1s"), "--budget"),
        ((small, "--members", "1-20"), "--members"),
        ((small, "--member", "hdd-72"), "--member"),
        ((small, "--device", "hdd-7200"), "--device"),
        ((small, "--destroy", "/dev/null"), "--destroy"),
        ((small, "--destroy", small), "no block device"),
        (("--sim", raid5), "--sim"),
        (("--sim", "raid5(2)", "--device", "hdd-7200"), "raid5(2)"),
        (("--sim", raid5, "--device", "hdd-7200", "--destroy", "x"), "--destroy"),
        ((tmp_path / "none",), "directory or device; accepted: a block device or a file"),
    ):
        status, text = command("probe", *words)
        assert (status, said in text) == (2, True), (words, text)


@pytest.mark.parametrize("truth", [array("raid6", 5, "right_symmetric", 64), array("raid5", 5, "left_symmetric", 64)])
def test_writes_of_part_of_a_stripe_are_predicted_where_they_were_asked(truth: Hypothesis) -> None:
    model = device("fixed-100us")
    predictor = Predictor(model.parameters, rotating=False)
    target = predictor.box(truth, seed=1)
    test = ProbeTest("writes of two chunks", 128 * KIB, op="write", size_bytes=128 * KIB, depth=16)
    off: dict[str, list[float]] = {"anywhere": [], "there": []}
    for seed in range(5):
        starts = test.starts(target.capacity_bytes, LISTED, seed)
        asked = asked_test(test, starts, target.ask(test, starts))
        off["anywhere"].append(abs(predictor.log_rate(test, truth) - asked.log_rate))
        off["there"].append(abs(predictor.log_rate_at(asked, truth) - asked.log_rate))
    # Members that take the same time each: where the requests begin is all that is left to chance.
    assert max(off["there"]) < 1e-9 and max(off["anywhere"]) > 0.05
    # An array that is smaller is asked as well, within its end.
    smaller = Hypothesis(ArrayShape("raid1", 2))
    assert predictor.box(smaller).capacity_bytes < target.capacity_bytes
    assert predictor.log_rate_at(asked, smaller) == pytest.approx(predictor.log_rate(test, smaller), abs=0.1)


@pytest.mark.parametrize("op", ["read", "write"])
def test_the_likeliest_are_held_to_the_places_that_were_asked(op: Literal["read", "write"]) -> None:
    """Also what one test has put behind by as much as it may cost, which one draw of places can."""
    model = device("fixed-100us")
    truth, other = array("raid6", 5, "right_symmetric", 64), array("raid6", 5, "left_symmetric", 64)
    judge = Judge([truth, other], Predictor(model.parameters, rotating=False), known=True)
    test = ProbeTest("of a page", PAGE, op=op, depth=16)
    target = judge.predictor.box(truth, seed=1)
    starts = test.starts(target.capacity_bytes, LISTED, 7)
    asked = asked_test(test, starts, target.ask(test, starts))
    judge.add(asked)
    if op == "read":
        # As far off as another draw of places may be; writes are predicted at their places from the first.
        judge._predicted[judge.found.index(truth)] -= 0.3
        judge._weigh()
        assert judge.probabilities[judge.found.index(truth)] < LEAST_SHOWN
        judge.settle()
    assert judge.residuals(judge.found.index(truth))[0] == pytest.approx(0.0, abs=1e-6)
