"""Arrays of a study with members missing: what is asked of the others, what reports say, what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from raidlab.analysis.bad_days import bad_days
from raidlab.analysis.checks import run_checks
from raidlab.analysis.metrics.comparable import refusals
from raidlab.api import analyse, run_study
from raidlab.cli.app import app
from raidlab.errors import InputError
from raidlab.report import render
from raidlab.report.bad_days import headline, notes, rows_of, span, terabytes
from raidlab.report.figures import make_figures
from raidlab.results import Run
from raidlab.study import load_study
from raidlab.study.schema import IdleThrottle, MdThrottle, RateThrottle

# Twenty requests of a chunk, one after the other, are five stripes of four chunks of data: each of the five members has
# four of them, and the parity once.
ROUND = 20
ROUNDS = 50
STUDY = """\
name = "degraded"
title = "What does a missing member cost?"
[sim]
device = {{ kind = "fixed", capacity_bytes = 67108864, read_us = 100, write_us = 100 }}
warmup = {{ requests = 20 }}
measure = {{ requests = {requests} }}

[load]
depths = [1]

[[array]]
name = "whole"
tree = "{tree}"

[[array]]
name = "degraded"
tree = "{tree}"
missing = {missing}

[[workload]]
name = "chunks"
read = {read}
size = "64KiB"
address = "sequential"

[[compare]]
group = "all"
title = "on a bad day"
reference = "whole"
equal = "user_capacity"
"""


def _study(place: Path, tree: str, missing: list[int], *, read: int = 1) -> Path:
    file = place / "study.toml"
    text = STUDY.format(tree=tree, missing=missing, read=read, requests=ROUND * ROUNDS)
    file.write_text(text, encoding="utf-8")
    return file


def _counts(run: Run, array: str, count: str) -> list[int]:
    cells = run.cells.filter(pl.col("array") == array)["cell"]
    return run.members.filter(pl.col("cell").is_in(cells.to_list())).sort("leaf")[count].to_list()


def test_a_read_of_a_lost_chunk_reads_all_the_others(tmp_path: Path) -> None:
    run = run_study(_study(tmp_path, "raid5(5, chunk=64KiB)", [2]), out=tmp_path / "runs")
    assert _counts(run, "whole", "reads") == [4 * ROUNDS] * 5
    # Of four chunks in twenty each of the others reads its own part too.
    assert _counts(run, "degraded", "reads") == [8 * ROUNDS] * 2 + [0] + [8 * ROUNDS] * 2
    assert sum(_counts(run, "degraded", "writes")) == 0


def test_raid6_without_two_reads_what_it_takes_and_no_more(tmp_path: Path) -> None:
    run = run_study(_study(tmp_path, "raid6(5, chunk=64KiB)", [1, 3]), out=tmp_path / "runs")
    reads = _counts(run, "degraded", "reads")
    assert reads[1] == reads[3] == 0
    # Any three of five give back the rest: a chunk that is lost costs three reads, in place of one.
    requests = ROUND * ROUNDS
    lost = requests * 2 // 5
    assert sum(reads) == pytest.approx(requests + 2 * lost, abs=ROUND)


def test_writes_go_to_the_members_that_are_there(tmp_path: Path) -> None:
    run = run_study(_study(tmp_path, "raid10(4, chunk=64KiB)", [2], read=0), out=tmp_path / "runs")
    half = ROUND * ROUNDS // 2
    assert _counts(run, "whole", "writes") == [half] * 4
    assert _counts(run, "degraded", "writes") == [half, half, 0, half]


def test_reports_say_what_is_missing_and_capacity_stays(tmp_path: Path) -> None:
    run = run_study(_study(tmp_path, "raid5(5, chunk=64KiB)", [2]), out=tmp_path / "runs")
    assert run.cells["members"].unique().to_list() == [5]
    assert run.cells["user_bytes"].n_unique() == 1
    analysis = analyse(run)
    assert {point.array: point.failures_borne for point in analysis.points} == {"whole": 1, "degraded": 0}
    rows = {row.array: row.values for row in analysis.comparisons[0].rows}
    assert rows["whole"]["access_count_model_percent"] == pytest.approx(100)
    assert rows["degraded"]["access_count_model_percent"] is None
    page = render(analysis, [], [])
    assert "degraded: member 2 missing" in page


@pytest.mark.parametrize(
    ("tree", "missing", "message"),
    [
        ("raid5(5, chunk=64KiB)", [5], r"missing\[0\]: 5: there is no such member.*accepted: 0 to 4"),
        ("raid5(5, chunk=64KiB)", [1, 1], r"missing\[1\]: 1: this member is named before.*accepted: each member once"),
        (
            "raid5(5, chunk=64KiB)",
            [0, 1],
            r"missing: members 0, 1 cannot be missing: this array bears the loss of any one member.*: \[\] or one of",
        ),
        ("raid0(5, chunk=64KiB)", [0], r"missing: member 0 cannot be missing: this array bears no failure.*: \[\]"),
    ],
)
def test_what_an_array_cannot_lose_is_refused(tmp_path: Path, tree: str, missing: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_study(_study(tmp_path, tree, missing), out=tmp_path / "runs")


def test_a_rebuild_is_run_beside_the_load_and_told(tmp_path: Path) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    text = file.read_text(encoding="utf-8")
    # So many requests that the rebuild is over before they are, and no warm-up that would not be counted.
    text = text.replace('"sequential"', '"sequential"\ncount = 5000')
    file.write_text(text.replace("missing = [2]", 'missing = [2]\nrebuild = { throttle = "md" }'), encoding="utf-8")
    run = run_study(file, out=tmp_path / "runs")
    rows = 64 * 2**20 // (64 * 1024)
    # Every row of the new member is written once, from a read of each of the others.
    assert _counts(run, "degraded", "writes") == [0, 0, rows, 0, 0]
    reads = _counts(run, "degraded", "reads")
    assert sum(reads[:2] + reads[3:]) >= 4 * rows
    analysis = analyse(run)
    found = [finding for finding in run_checks(analysis) if finding.check == "rebuild"]
    assert len(found) == 1 and found[0].verdict == "PASS"
    assert "Member 2 was rebuilt in" in found[0].evidence and "67 MB" in found[0].evidence
    assert "member 2 rebuilt (throttle: md from 1000 KiB/s)" in render(analysis, [], [])


BAD_DAY = 'events = [{ at = "6s", fail = 2 }]\nrebuild = { throttle = "md", after = "5s", watch = "4s" }'


@pytest.fixture(scope="module")
def bad_day(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in which a member fails at 6 s and a new one is there at 11 s."""
    place = tmp_path_factory.mktemp("bad-day")
    file = _study(place, "raid5(5, chunk=64KiB)", [2])
    text = file.read_text(encoding="utf-8").replace("missing = [2]", BAD_DAY)
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "100s" }')
    # A disk that takes 4 ms an operation rebuilds its 1024 rows in seconds, not within one.
    text = text.replace("read_us = 100, write_us = 100", "read_us = 4000, write_us = 4000")
    file.write_text(text, encoding="utf-8")
    return run_study(file, out=place / "runs")


def test_a_member_fails_is_replaced_and_the_run_ends_when_it_is_whole(bad_day: Run) -> None:
    day, *others = bad_days(analyse(bad_day))
    assert not others and day.point.array == "degraded"
    before, degraded, rebuilding, after = day.phases
    assert [phase.name for phase in day.phases] == ["before", "degraded", "rebuilding", "after"]
    assert (before.spans_s, degraded.spans_s) == (((0, 6),), ((6, 11),))
    # A row is one read of the others and one write after it, and the client's reads wait for one another.
    assert rebuilding.length_s > 1024 * 0.004
    assert day.rebuild_s == pytest.approx(rebuilding.length_s) and day.is_whole
    assert day.risk_s == pytest.approx(5 + rebuilding.length_s)
    assert after.length_s == pytest.approx(4, abs=1.01)
    # One request at a time: a chunk is read in 4 ms, and as soon without its member, for the others are read together.
    assert before.requests_per_s == pytest.approx(250, rel=0.01)
    assert after.requests_per_s == pytest.approx(before.requests_per_s, rel=0.01)
    kept = day.kept_percent("rebuilding")
    assert kept is not None and kept < 99
    assert before.p99_ms == pytest.approx(4, rel=0.01)
    assert rebuilding.p99_ms is not None and rebuilding.p99_ms > 4.5
    assert day.rebuilt_bytes == day.member_bytes == 64 * 2**20
    assert day.hours_a_tb == pytest.approx(1e12 / (64 * 2**20 / day.rebuild_s) / 3600, rel=1e-6)
    assert len(day.repeats[0].series) >= 12
    assert (day.fatal, day.others) == ((0, 1, 3, 4), 4)


@pytest.mark.parametrize(("rate_per_s", "kept"), [(20, "all that arrives"), (400, r"\d+ % of what arrives")])
def test_of_requests_that_arrive_the_share_of_those_is_kept(tmp_path: Path, rate_per_s: int, kept: str) -> None:
    """Twenty a second are far from busy: what was served before is chance, and says nothing of the array."""
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    text = file.read_text(encoding="utf-8").replace("missing = [2]", BAD_DAY)
    text = text.replace("depths = [1]", f"open = {{ rates_per_s = [{rate_per_s}] }}")
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "100s" }')
    file.write_text(text.replace("read_us = 100, write_us = 100", "read_us = 8000, write_us = 8000"), encoding="utf-8")
    run = run_study(file, out=tmp_path / "runs")
    (day,) = bad_days(analyse(run))
    rebuilding = day.phase("rebuilding")
    assert rebuilding is not None and rebuilding.requests_per_s is not None
    assert day.kept_percent("rebuilding") == pytest.approx(100 * rebuilding.requests_per_s / rate_per_s)
    status, text = shown_of(run)
    assert status == 0
    assert re.search(rf"keeps {kept} during .* of rebuild at the throttle md", " ".join(text.split())), text
    result = CliRunner().invoke(app, ["results", "show", str(run.folder), "--json"])
    (row,) = json.loads(result.stdout)["bad_days"]
    assert list(row["phases"])[:3] == ["before", "degraded", "rebuilding"] and row["must_not_fail"] == [0, 1, 3, 4]
    assert row["risk_s"] == pytest.approx(sum(row["phases"][name]["length_s"] for name in ("degraded", "rebuilding")))


def shown_of(run: Run) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["results", "show", str(run.folder)])
    return result.exit_code, result.stdout


def test_a_rebuild_into_a_distributed_spare_is_told_as_one(tmp_path: Path) -> None:
    file = _study(tmp_path, "declustered(7, width=3, spares=1, chunk=64KiB)", [2])
    text = file.read_text(encoding="utf-8").replace("missing = [2]", BAD_DAY)
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "100s" }')
    file.write_text(text, encoding="utf-8")
    findings = {one.check: one for one in run_checks(analyse(run_study(file, out=tmp_path / "runs")))}
    assert "was rebuilt into a distributed spare in" in findings["rebuild"].evidence


def test_what_a_throttle_asks_for_decides_only_where_a_rebuild_has_just_that(bad_day: Run) -> None:
    analysis = analyse(bad_day)
    (day,), (row,) = bad_days(analysis), rows_of(analysis)
    assert day.rebuilt_bytes_per_s is not None
    rate = round(day.rebuilt_bytes_per_s / 1024)
    throttles = [
        MdThrottle(kind="md", min_kib_s=least, max_kib_s=100 * rate) for least in (rate, 10 * rate, rate // 10)
    ]
    throttles += [RateThrottle(kind="rate", kib_s=10.0 * rate), IdleThrottle(kind="idle")]
    throttles += [MdThrottle(kind="md", min_kib_s=0)]
    told = [replace(day, throttle=throttle) for throttle in throttles]
    assert [one.floor_kib_s for one in told] == [rate, None, None, None, None, None]
    assert [one.missed_kib_s for one in told] == [None, 10 * rate, None, 10 * rate, None, None]
    # One that was given up says nothing of its throttle.
    assert replace(told[1], repeats=(replace(day.repeats[0], is_stopped=True),)).missed_kib_s is None
    missed = " ".join(notes([replace(row, floor_kib_s=None, missed_kib_s=20000.0)]))
    assert "Slower than the 20000 KiB/s a member that the throttle asks for" in missed and "At md's" not in missed
    held = " ".join(notes([replace(row, floor_kib_s=1000, missed_kib_s=None)]))
    assert "At md's least rate, 1000 KiB/s a member" in held and "Slower" not in held


def test_a_report_says_how_long_an_array_was_at_risk_and_what_its_users_felt(bad_day: Run) -> None:
    analysis = analyse(bad_day)
    (row,) = rows_of(analysis)
    assert "of rebuild at the throttle md" in row.sentence and "any further loss meanwhile loses data" in row.sentence
    page = render(analysis, make_figures(analysis), run_checks(analysis))
    assert 'id="bad-days"' in page and "degraded: throughput" in page and "degraded: p99" in page
    assert f"the rebuild of a terabyte takes {row.terabyte} ({row.array})" in terabytes([row]) and terabytes([]) == ""
    assert "How long hangs on the size of the disks" in page
    assert "member 2 fails at 6 s, is rebuilt (after 5 s, throttle: md from 1000 KiB/s)" in page
    # A rate that falls because a member fails is not an unsteady one.
    assert not [one for one in run_checks(analysis) if one.check == "not_steady" and one.verdict != "PASS"]


@pytest.mark.parametrize(
    ("tree", "said", "cell"),
    [
        ("raid10(6, chunk=64KiB)", "member 3 must not fail meanwhile (any other of the 5 left may)", "4 of 5"),
        ("raid10(5, chunk=64KiB)", "2 of the 4 members left must not fail meanwhile (1, 3)", "2 of 4"),
        ("raid50(6, chunk=64KiB)", "2 of the 5 members left must not fail meanwhile (0, 1)", "3 of 5"),
        ("raid50(10, chunk=64KiB)", "4 of the 9 members left must not fail meanwhile (0, 1, 3, 4)", "5 of 9"),
        ("raid6(6, chunk=64KiB)", "any one more member may fail meanwhile", "5 of 5"),
    ],
)
def test_which_further_loss_would_lose_data(tmp_path: Path, tree: str, said: str, cell: str) -> None:
    text = _study(tmp_path, tree, [2]).read_text().replace("missing = [2]", "missing = [2]\nrebuild = {}")
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "3s" }')
    (tmp_path / "study.toml").write_text(text)
    (row,) = rows_of(analyse(run_study(tmp_path / "study.toml", out=tmp_path / "runs")))
    assert said in row.sentence and row.bears == cell, (row.sentence, row.bears)


def test_a_run_that_is_over_before_a_member_fails_has_a_report_without_bad_days(tmp_path: Path) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    rebuild = 'rebuild = { throttle = "md" }'
    text = file.read_text(encoding="utf-8").replace("missing = [2]", 'events = [{ at = "500s", fail = 2 }]\n' + rebuild)
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "6s" }')
    file.write_text(text, encoding="utf-8")
    analysis = analyse(run_study(file, out=tmp_path / "runs"))
    (row,) = rows_of(analysis)
    assert row.sentence == "the run was over before anything befell a member."
    drawn = make_figures(analysis)
    assert not [figure for figure in drawn if figure.kind == "bad_days"]
    assert render(analysis, drawn, run_checks(analysis))


def test_a_run_that_is_over_first_says_how_far_it_came(tmp_path: Path) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    text = file.read_text(encoding="utf-8").replace("missing = [2]", 'events = [{ at = "2s", fail = 2 }]')
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "6s" }')
    file.write_text(text, encoding="utf-8")
    analysis = analyse(run_study(file, out=tmp_path / "runs"))
    (day,) = bad_days(analysis)
    assert [phase.name for phase in day.phases] == ["before", "degraded"] and not day.is_whole
    (row,) = rows_of(analysis)
    assert row.rebuild == "none" and row.risk.startswith("over ") and row.terabyte == ""


def test_chunks_as_large_as_members_excuse_no_other_capacity(tmp_path: Path) -> None:
    """Of 64 MiB, chunks of 8 MiB leave nothing unused: twice the capacity is not a matter of rounding."""
    file = _study(tmp_path, "raid0(4, chunk=64KiB)", [])
    text = file.read_text(encoding="utf-8")
    one, other = (f'name = "degraded"\ntree = "{tree}"' for tree in ("raid0(4, chunk=64KiB)", "raid10(4, chunk=8MiB)"))
    text = text.replace(one, other)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="user capacity from 128 MiB to 256 MiB"):
        load_study(file)


@pytest.mark.parametrize(
    ("equal", "tree", "is_equal"),
    [
        ("members", "raid6(4, chunk=64KiB)", True),
        ("user_capacity", "raid5(3, chunk=64KiB)", True),
        ("members", "raid5(4, chunk=64KiB)", False),
        ("user_capacity", "raid5(4, chunk=64KiB)", False),
    ],
)
def test_what_whole_chunks_leave_unused_makes_no_other_capacity(
    tmp_path: Path, equal: str, tree: str, is_equal: bool
) -> None:
    """Of members of 63 MiB whole chunks of 2 MiB leave 1.6 % unused, which is no more than a chunk of each."""
    text = _study(tmp_path, tree, []).read_text(encoding="utf-8").replace("67108864", str(63 * 2**20))
    text = text.replace(f'name = "degraded"\ntree = "{tree}"', 'name = "degraded"\ntree = "raid10(4, chunk=2MiB)"')
    file = tmp_path / "study.toml"
    file.write_text(text.replace('"user_capacity"', f'"{equal}"'), encoding="utf-8")
    if equal == "user_capacity" and not is_equal:
        with pytest.raises(InputError, match="user capacity from 124 MiB to 189 MiB"):
            load_study(file)
        return
    analysis = analyse(run_study(file, out=tmp_path / "runs"))
    (found,) = (one for one in run_checks(analysis) if one.check == "equal_capacity")
    assert found.verdict == "PASS" and ("whole chunks" in found.evidence) == (equal == "user_capacity")
    assert ("unequal user capacity" in render(analysis, [], [])) == (not is_equal)
    one, other = (point for point in analysis.points)
    assert any("another user capacity" in reason for reason in refusals(one, other)) == (not is_equal)


SECOND_FAILURE = """\
events = [{ at = "3s", fail = 2 }, { at = "%s", fail = 0 }]
rebuild = { throttle = { kind = "share", fraction = 1 }, watch = "2s" }
"""


def _two_failures(place: Path, tree: str, second: str) -> Run:
    text = _study(place, tree, [2]).read_text(encoding="utf-8").replace("missing = [2]", SECOND_FAILURE % second)
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "90s" }\nrepeats = 3')
    text = text.replace("read_us = 100, write_us = 100", "read_us = 4000, write_us = 4000")
    file = place / "two.toml"
    file.write_text(text.replace('name = "whole"', 'name = "whole"\ngroup = "whole"'), encoding="utf-8")
    text = file.read_text(encoding="utf-8").partition("[[compare]]")[0]
    file.write_text(text, encoding="utf-8")
    return run_study(file, out=place / "runs")


def test_a_second_failure_after_a_rebuild_is_another_bad_stretch_of_the_day(tmp_path: Path) -> None:
    analysis = analyse(_two_failures(tmp_path, "raid5(5, chunk=64KiB)", "30s"))
    (day,) = bad_days(analysis)
    rebuilding, after = day.phase("rebuilding"), day.phase("after")
    assert rebuilding is not None and after is not None and day.is_whole and not day.losses
    assert [begin for begin, _ in rebuilding.spans_s] == [pytest.approx(3, abs=0.1), pytest.approx(30, abs=0.1)]
    # Whole between the two: neither at risk then, nor rebuilt.
    assert after.spans_s[0] == (pytest.approx(rebuilding.spans_s[0][1]), 30)
    assert day.risk_s < 20 and day.hours_a_tb is not None
    low, high = day.kept_interval("rebuilding") or (0, 0)
    assert 0 < low <= (day.kept_percent("rebuilding") or 0) <= high
    (row,) = rows_of(analysis)
    assert f"{day.kept_percent('rebuilding'):.0f} % (" in row.sentence and row.repeats == 3
    assert ("data_loss", "PASS") in {(one.check, one.verdict) for one in run_checks(analysis)}


@pytest.mark.parametrize(
    ("tree", "is_lost", "further"),
    [
        ("raid5(5, chunk=64KiB)", True, ""),
        ("raid6(6, chunk=64KiB)", False, "any further loss while 2 are gone loses data"),
        ("raid10(6, chunk=64KiB)", False, "2 of the 4 members left must not fail while 2 are gone (1, 3)"),
    ],
)
def test_a_second_failure_before_the_first_is_rebuilt(tmp_path: Path, tree: str, is_lost: bool, further: str) -> None:
    analysis = analyse(_two_failures(tmp_path, tree, "4s"))
    (row,) = rows_of(analysis)
    found = [one for one in run_checks(analysis) if one.check == "data_loss"]
    page = render(analysis, make_figures(analysis), run_checks(analysis))
    if not is_lost:
        assert further in row.sentence and {one.verdict for one in found} == {"PASS"}
        return
    (loss,) = found
    said = "DATA LOST: member 0 failed at 4.0 s, before member 2 was rebuilt ("
    assert loss.verdict == "INVALID" and said in loss.evidence and "So in 3 of 3 repeats." in loss.evidence
    assert row.risk == "data lost" and said in row.sentence and said in page
    ended = analysis.run.cells.filter(pl.col("array") == "degraded")["elapsed_ns"]
    # Its warm-up, twenty requests, is not counted.
    assert all(3.5e9 < time <= 4e9 for time in ended)


def test_data_that_are_lost_while_the_run_warms_up_leave_nothing_to_measure(tmp_path: Path) -> None:
    text = _study(tmp_path, "raid5(5, chunk=64KiB)", [2]).read_text(encoding="utf-8")
    text = text.replace("missing = [2]", SECOND_FAILURE % "4s").replace("{ requests = 20 }", '{ duration = "60s" }')
    file = tmp_path / "study.toml"
    file.write_text(text.replace("read_us = 100, write_us = 100", "read_us = 4000, write_us = 4000"), encoding="utf-8")
    analysis = analyse(run_study(file, out=tmp_path / "runs"))
    findings = run_checks(analysis)
    assert [one.verdict for one in findings if one.check == "data_loss"] == ["INVALID"]
    assert "DATA LOST" in render(analysis, make_figures(analysis), findings)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('events = [{ at = "1s", fail = 99 }]', r"events\[0\].fail: 99: there is no such member.*accepted: 0 to 4"),
        (
            'events = [{ at = "1s", fail = 1 }, { at = "2s", fail = 1 }]',
            r"events\[1\].fail: 1: this member is named before.*accepted: each member once",
        ),
        (
            'events = [{ at = "1s", fail = 1 }, { at = "2s", fail = 2 }]',
            r"events\[1\].fail: 2: data would be lost: member 1 would still be gone then.*accepted: fewer failures",
        ),
        (
            'events = [{ at = "9s", fail = 1 }, { at = "2s", fail = 2 }]\nrebuild = { after = "8s" }',
            r"events\[0\].fail: 1: data would be lost: member 2 would still be gone.*accepted: at later than 10 s",
        ),
        (
            'missing = [0]\nevents = [{ at = "1s", fail = 1 }]',
            r"events\[0\].fail: 1: data would be lost: member 0 would still be gone then, and this array bears",
        ),
        (
            'tree = "raid0(5)"\nevents = [{ at = "1s", fail = 1 }]',
            r"events\[0\].fail: 1: this array bears no failure.*accepted: a tree with redundancy, or no events",
        ),
        (
            'events = [{ at = "1s", fail = 1 }]\nrebuild = { throttle = { kind = "md", max_kib_s = 100 } }',
            r"throttle.max_kib_s: 100: is below min_kib_s, 1000.*accepted: at least 1000",
        ),
    ],
)
def test_members_that_cannot_fail_are_refused(tmp_path: Path, keys: str, message: str) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    text = file.read_text(encoding="utf-8").replace("missing = [2]", keys)
    if "tree" in keys:
        text = text.replace('tree = "raid5(5, chunk=64KiB)"\ntree', "tree").replace('"user_capacity"', '"members"')
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        run_study(file, out=tmp_path / "runs")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('rebuild = { throttle = "md" }', r"rebuild: has nothing to rebuild; accepted: it beside missing"),
        ('missing = [2]\nrebuild = { throttle = "fast" }', r"rebuild.throttle.*'fast'.*accepted"),
        ('missing = [2]\nrebuild = { throttle = { kind = "rate", kib_s = 0 } }', r"kib_s: 0.*accepted"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused(tmp_path: Path, keys: str, message: str) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    file.write_text(file.read_text(encoding="utf-8").replace("missing = [2]", keys), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_study(file)


def test_a_slow_member_takes_as_many_times_as_long_and_the_report_says_so(tmp_path: Path) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    text = file.read_text(encoding="utf-8")
    events = 'events = [{ at = "1ms", slow = 2, times = 4 }]'
    file.write_text(text.replace("missing = [2]", events), encoding="utf-8")
    run = run_study(file, out=tmp_path / "runs")
    whole, slow = _counts(run, "whole", "busy_ns"), _counts(run, "degraded", "busy_ns")
    assert _counts(run, "degraded", "reads") == _counts(run, "whole", "reads")
    assert slow == [*whole[:2], 4 * whole[2], *whole[3:]]
    analysis = analyse(run)
    assert "member 2 takes 4 times as long from 0.001 s" in render(analysis, [], run_checks(analysis))
    # Only a model can be made slow.
    (array,) = (array for array in run.study.array if array.name == "degraded")
    assert array.runs_on("sim") and not array.runs_on("live")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            'events = [{ at = "1s", slow = 5, times = 4 }]',
            r"events\[0\].slow: 5: there is no such member.*accepted: 0 to 4",
        ),
        ('events = [{ at = "1s", slow = 1 }]', r"events\[0\]: says slow = 1 without times; accepted: times = 4"),
        (
            'events = [{ at = "1s", fail = 1, times = 2 }]',
            r"events\[0\]: says times, which goes with slow, and not with fail; accepted: it without times",
        ),
        ('events = [{ at = "1s", slow = 1, times = 0.5 }]', r"events\[0\].times: 0.5.*accepted"),
        (
            'events = [{ at = "1s", slow = 1, times = 2 }]\nrebuild = { throttle = "md" }',
            r"rebuild: has nothing to rebuild",
        ),
    ],
)
def test_members_that_cannot_become_slow_are_refused(tmp_path: Path, keys: str, message: str) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    file.write_text(file.read_text(encoding="utf-8").replace("missing = [2]", keys), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        run_study(file, out=tmp_path / "runs")


def test_a_scrub_reads_every_member_once_and_the_report_says_so(tmp_path: Path) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    events = 'events = [{ at = "0s", scrub = "check", throttle = { kind = "share", fraction = 1 }, watch = "0s" }]'
    text = file.read_text(encoding="utf-8").replace("missing = [2]", events)
    file.write_text(
        text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "2s" }'), encoding="utf-8"
    )
    run = run_study(file, out=tmp_path / "runs")
    analysis = analyse(run)
    (found,) = (one for one in run_checks(analysis) if one.check == "scrub" and one.evidence.startswith("degraded"))
    assert found.verdict == "PASS"
    assert (
        "The check that began at 0.0 s was over after" in found.evidence and "Mismatches: 0 sectors" in found.evidence
    )
    assert "(336 MB of members" in found.evidence
    assert "check from 0 s (throttle: share of 100 %)" in render(analysis, [], [])


def test_a_report_says_what_a_scrub_takes_from_users(tmp_path: Path) -> None:
    scrub = 'scrub = "check", throttle = { kind = "share", fraction = 1 }, watch = "6s"'
    text = _study(tmp_path, "raid5(5, chunk=64KiB)", [2]).read_text(encoding="utf-8")
    text = text.replace("missing = [2]", f'events = [{{ at = "6s", {scrub} }}]')
    text = text.replace("read_us = 100, write_us = 100", "read_us = 4000, write_us = 4000")
    file = tmp_path / "study.toml"
    file.write_text(text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "60s" }'))
    analysis = analyse(run_study(file, out=tmp_path / "runs"))
    (day,), (row,) = bad_days(analysis), rows_of(analysis)
    assert [phase.name for phase in day.phases] == ["before", "scrubbing", "after"]
    (scrubbing,) = analysis.run.scrubs.iter_rows(named=True)
    assert day.phases[1].spans_s == ((6.0, scrubbing["over_ns"] / 1e9),)
    assert re.match(r"keeps \d+ % during [0-9.]+ s of a scrub \(p99 .*\); no member was lost\.", row.sentence), (
        row.sentence
    )
    kept = row.kept_percent["scrubbing"]
    assert kept < 90
    assert headline([row, row]) == f"{kept:.0f} % (degraded) of throughput is kept during a scrub."
    assert list(row.cells) == ["before", "scrubbing", "after"] and row.risk == row.rebuild == "none"
    assert {figure.kind for figure in make_figures(analysis)} >= {"bad_days"}


@pytest.mark.parametrize("policy", ["", 'policy = "md"'])
@pytest.mark.parametrize("kind", ["check", "resync"])
def test_a_scrub_of_what_has_no_redundancy_left_says_so(tmp_path: Path, policy: str, kind: str) -> None:
    events = (
        f'events = [{{ at = "0s", scrub = "{kind}", throttle = {{ kind = "share", fraction = 1 }}, watch = "0s" }}]'
    )
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    text = file.read_text(encoding="utf-8").replace("missing = [2]", f"missing = [2]\n{events}\n{policy}")
    file.write_text(text, encoding="utf-8")
    analysis = analyse(run_study(file, out=tmp_path / "runs"))
    (found,) = (one for one in run_checks(analysis) if one.check == "scrub" and one.evidence.startswith("degraded"))
    assert found.verdict == "WARN" and "not gone over" in found.evidence, found.evidence
    assert "once its members are rebuilt" in found.remedy


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('events = [{ at = "1s", scrub = "look" }]', r"events\[0\].scrub: 'look'.*accepted: check, repair, resync"),
        (
            'events = [{ at = "1s", scrub = "check", fail = 1 }]',
            r"events\[0\]: says 2 things at once: fail and scrub; accepted: an event each",
        ),
        ('events = [{ at = "1s", fail = 1, watch = "1s" }]', r"events\[0\]: says watch, which goes with scrub"),
    ],
)
def test_scrubs_that_cannot_be_are_refused(tmp_path: Path, keys: str, message: str) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    file.write_text(file.read_text(encoding="utf-8").replace("missing = [2]", keys), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        run_study(file, out=tmp_path / "runs")


def test_a_member_that_cannot_be_read_too_often_is_taken_out_and_replaced(tmp_path: Path) -> None:
    keys = (
        'events = [{ at = "0s", unreadable = 0, places = 2000 }]\npolicy = { max_read_errors = 20 }\n'
        'rebuild = { throttle = { kind = "share", fraction = 1 }, watch = "0s" }'
    )
    text = _study(tmp_path, "raid10(4, chunk=64KiB)", [2]).read_text(encoding="utf-8").replace("missing = [2]", keys)
    file = tmp_path / "study.toml"
    file.write_text(text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "60s" }'))
    findings = {one.check: one for one in run_checks(analyse(run_study(file, out=tmp_path / "runs")))}
    rebuild = findings["rebuild"]
    assert rebuild.verdict == "PASS" and re.search(
        r"Member 0 failed at [0-9.]+ s for its read errors, was rebuilt in", rebuild.evidence
    )
    found = findings["unreadable"].evidence
    assert " 0 KiB still cannot be read" in found and "Requests failed: 0." in found


def test_a_slow_member_sits_out_and_the_check_says_so(tmp_path: Path) -> None:
    keys = 'events = [{ at = "2s", slow = 1, times = 8 }]\npolicy = { sit_out = { hold = "1s", rest = "1min" } }'
    text = _study(tmp_path, "raid5(5, chunk=64KiB)", [2]).read_text(encoding="utf-8").replace("missing = [2]", keys)
    file = tmp_path / "study.toml"
    file.write_text(text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "20s" }'))
    findings = run_checks(analyse(run_study(file, out=tmp_path / "runs")))
    (found,) = (one for one in findings if one.check == "sat_out")
    assert found.verdict == "WARN" and re.search(
        r"Member 1 took [0-9.]+ ms for an operation where the median of its peers took [0-9.]+ ms: it sat "
        r"out from 3\.\d s until the run was over",
        found.evidence,
    ), found


def test_slow_members_have_a_phase_until_they_are_well_or_gone(tmp_path: Path) -> None:
    slow = '{ at = "5s", slow = 2, times = 8 }'
    keys = {
        "recovers": f'events = [{slow}, {{ at = "15s", slow = 2, times = 1 }}]',
        "worse": f'events = [{slow}, {{ at = "10s", slow = 2, times = 16 }}]',
        "fails": f'events = [{slow}, {{ at = "15s", fail = 2 }}]',
        "later": 'events = [{ at = "500s", slow = 2, times = 8 }]',
    }
    text = _study(tmp_path, "raid5(5, chunk=64KiB)", [2]).read_text(encoding="utf-8")
    own = text[text.rindex("[[array]]") : text.index("[[workload]]")]
    arrays = "".join(own.replace("degraded", name).replace("missing = [2]", it) for name, it in keys.items())
    text = text.replace(own, arrays).replace("read_us = 100, write_us = 100", "read_us = 4000, write_us = 4000")
    file = tmp_path / "study.toml"
    measure = 'measure = { duration = "25s" }'
    file.write_text(text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", measure), encoding="utf-8")
    analysis = analyse(run_study(file, out=tmp_path / "runs"))
    days = {day.point.array: day for day in bad_days(analysis)}
    assert "whole" not in days and list(days) == list(keys)
    spans = {name: {phase.name: phase.spans_s for phase in day.phases} for name, day in days.items()}
    assert list(spans["later"]) == ["before"]
    assert list(spans["recovers"]) == ["before", "slow member", "after"]
    assert spans["recovers"]["slow member"] == ((5.0, 15.0),)
    assert list(spans["worse"]) == ["before", "slow member"] and spans["worse"]["slow member"][0][0] == 5.0
    assert list(spans["fails"]) == ["before", "slow member", "degraded"]
    assert spans["fails"]["slow member"] == ((5.0, 15.0),) and spans["fails"]["degraded"][0][0] == 15.0
    rows = {row.array: row for row in rows_of(analysis)}
    assert (rows["recovers"].risk, rows["recovers"].rebuild) == ("none", "none")
    assert re.match(r"keeps \d+ % during 10 s with a slow member.*no member was lost", rows["recovers"].sentence)
    assert rows["later"].sentence == "the run was over before anything befell a member."
    told = headline(list(rows.values()))
    assert re.search(r"At risk for over 10\.?\d* s \(fails\).*\d+ % \(worse\) to \d+ % .* with a slow member", told), (
        told
    )
    assert "may fail meanwhile" not in told and "slow member" in rows["later"].cells
    assert {figure.kind for figure in make_figures(analysis)} >= {"bad_days"}


def test_a_volume_that_stands_says_its_state_itself(tmp_path: Path) -> None:
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    whole = file.read_text(encoding="utf-8")
    text = whole.replace('tree = "raid5(5, chunk=64KiB)"\nmissing', 'volume = "/dev/md0"\nmissing')
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="missing: does not go with a volume"):
        load_study(file)


LATENT = """\
events = [{ at = "0s", unreadable = 1, places = 200 }%s]
rebuild = { throttle = { kind = "share", fraction = 1 }, watch = "2s" }
"""


@pytest.mark.parametrize(("is_scrubbed", "goes_on"), [(True, False), (False, False), (False, True)])
def test_a_rebuild_that_meets_what_cannot_be_read_says_so(tmp_path: Path, is_scrubbed: bool, goes_on: bool) -> None:
    scrub = ', { at = "1s", scrub = "check", throttle = { kind = "share", fraction = 1 } }' if is_scrubbed else ""
    events = LATENT % (scrub + ', { at = "60s", fail = 2 }') + ("policy = { bad_blocks = true }" if goes_on else "")
    text = _study(tmp_path, "raid5(5, chunk=64KiB)", [2]).read_text(encoding="utf-8").replace("missing = [2]", events)
    measure = f'measure = {{ duration = "{400 if goes_on else 120}s" }}'
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", measure)
    text = text.replace("read_us = 100, write_us = 100", "read_us = 4000, write_us = 4000")
    file = tmp_path / "study.toml"
    file.write_text(text, encoding="utf-8")
    analysis = analyse(run_study(file, out=tmp_path / "runs"))
    findings = {one.check: one for one in run_checks(analysis)}
    rebuild, unreadable = findings["rebuild"], findings["unreadable"]
    (row,), (day,) = rows_of(analysis), bad_days(analysis)
    if is_scrubbed:
        assert findings["data_loss"].verdict == "PASS" and row.terabyte
        assert (rebuild.verdict, unreadable.verdict) == ("PASS", "PASS")
        assert " 0 KiB still cannot be read" in unreadable.evidence and "were mended by a scrub" in unreadable.evidence
        assert "Requests failed: 0." in unreadable.evidence
        return
    if goes_on:
        # Those of the 200 that nobody had met before, and so mended.
        loss = findings["data_loss"]
        lost = re.search(r"DATA LOST: as member 2 was rebuilt, too little .* in ([0-9]+) places", loss.evidence)
        assert (rebuild.verdict, loss.verdict) == ("PASS", "WARN") and lost and 20 <= int(lost[1]) <= 180
        assert "scrub" in loss.remedy and row.is_lost and row.sentence.startswith("DATA LOST: as member 2 was rebuilt")
        return
    assert rebuild.verdict == "INVALID" and "DATA LOST: member 2 failed at 60.0 s" in rebuild.evidence
    assert "scrub" in rebuild.remedy and unreadable.verdict == "WARN"
    assert " 0 KiB still" not in unreadable.evidence and "Requests failed: 0." not in unreadable.evidence
    loss, rebuilding, degraded = findings["data_loss"], day.phase("rebuilding"), day.phase("degraded")
    assert loss.verdict == "INVALID" and "its rebuild stopped at" in loss.evidence and loss.remedy == rebuild.remedy
    # It was rebuilt for a second or so, and not until the run was over: that rate would be told of no other disk.
    assert rebuilding is not None and degraded is not None and rebuilding.length_s < 2
    assert degraded.spans_s[0][0] == rebuilding.spans_s[0][1]
    assert day.rebuilt_bytes_per_s == pytest.approx(day.rebuilt_bytes / rebuilding.length_s)
    assert row.terabyte == "" and day.hours_a_tb is None and terabytes([row]) == ""
    assert row.rebuild.endswith("MB/s, then given up") and row.risk == "data lost"
    assert headline([row, row]) == "Data lost: degraded."


def test_requests_for_what_no_other_member_gives_back_are_a_loss(tmp_path: Path) -> None:
    keys = 'missing = [2]\nevents = [{ at = "0s", unreadable = 1, places = 2000 }]'
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    file.write_text(file.read_text(encoding="utf-8").replace("missing = [2]", keys), encoding="utf-8")
    findings = {one.check: one for one in run_checks(analyse(run_study(file, out=tmp_path / "runs")))}
    assert findings["unreadable"].verdict == findings["data_loss"].verdict == "WARN"
    assert "no other member could give back" in findings["data_loss"].evidence


def test_a_rebuild_that_the_run_cuts_off_says_how_far_it_came_and_reckons_nothing(tmp_path: Path) -> None:
    keys = 'events = [{ at = "2s", fail = 2 }]\nrebuild = { throttle = { kind = "rate", kib_s = 1000 } }'
    text = _study(tmp_path, "raid5(5, chunk=64KiB)", [2]).read_text(encoding="utf-8").replace("missing = [2]", keys)
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "18s" }')
    file = tmp_path / "study.toml"
    file.write_text(text, encoding="utf-8")
    (row,) = rows_of(analyse(run_study(file, out=tmp_path / "runs")))
    assert re.fullmatch(r"2\d\.?\d? % done at 1\.\d+ MB/s", row.rebuild) and row.terabyte == ""
    assert f"the run was over before it was whole; {row.rebuild}" in row.sentence
    assert headline([row, row]) == f"At risk for over {span(row.risk_s)} (degraded) after a failure."


@pytest.mark.parametrize(
    ("what", "check"),
    [
        ('events = [{ at = "0s", scrub = "check", throttle = "idle" }]', "scrub"),
        ('events = [{ at = "1s", fail = 2 }]\nrebuild = { throttle = "idle" }', "rebuild"),
    ],
)
@pytest.mark.parametrize("load", ["depths = [4]", "open = { rates_per_s = [20] }"])
def test_work_that_waits_for_a_pause_says_that_a_closed_loop_has_none(
    tmp_path: Path, what: str, check: str, load: str
) -> None:
    text = _study(tmp_path, "raid5(5, chunk=64KiB)", [2]).read_text(encoding="utf-8").replace("missing = [2]", what)
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "3s" }')
    file = tmp_path / "study.toml"
    file.write_text(text.replace("depths = [1]", load), encoding="utf-8")
    (found,) = (one for one in run_checks(analyse(run_study(file, out=tmp_path / "runs"))) if one.check == check)
    assert found.verdict == ("WARN" if "depths" in load else "PASS")
    assert ("The throttle 'idle' waits until no request is in flight" in found.evidence) == ("depths" in load)


GONE = r"events\[1\].unreadable: 1: this member has failed by then \(at 1 s\), and none is in its place"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            'events = [{ at = "1s", unreadable = 1 }]',
            r"events\[0\]: says unreadable = 1 without places; accepted: places",
        ),
        (
            'events = [{ at = "1s", unreadable = 1, places = 1, slow = 1, times = 2 }]',
            r"events\[0\]: says 2 things at once: slow and unreadable; accepted: an event each",
        ),
        (
            'events = [{ at = "1s", unreadable = 1, places = 20000 }]',
            r"events\[0\].places: 20000: member 1 has 16384 places of 4 KiB.*accepted: 1 to 16384",
        ),
        (
            'missing = [1]\nevents = [{ at = "1s", unreadable = 1, places = 1 }]',
            r"events\[0\].unreadable: 1: this member is missing; accepted: a member that is there then",
        ),
        ('events = [{ at = "1s", fail = 1 }, { at = "3s", unreadable = 1, places = 1 }]', f"{GONE}; accepted"),
        (
            'events = [{ at = "1s", fail = 1 }, { at = "3s", unreadable = 1, places = 1 }]\nrebuild = { after = "4s" }',
            f"{GONE} before 5 s; accepted",
        ),
        (
            'events = [{ at = "100s", scrub = "check" }]',
            r"events\[0\].at: .100s.: check from 100 s .*, and the run is over at 30 s.*accepted: less than 30 s",
        ),
    ],
)
def test_events_that_cannot_be_are_refused_before_anything_runs(tmp_path: Path, keys: str, message: str) -> None:
    text = _study(tmp_path, "raid5(5, chunk=64KiB)", [2]).read_text(encoding="utf-8").replace("missing = [2]", keys)
    text = text.replace(f"measure = {{ requests = {ROUND * ROUNDS} }}", 'measure = { duration = "20s" }')
    text = text.replace("warmup = { requests = 20 }", 'warmup = { duration = "10s" }')
    file = tmp_path / "study.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        run_study(file, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_new_member_can_have_bad_places_too(tmp_path: Path) -> None:
    keys = 'events = [{ at = "1s", fail = 1 }, { at = "6s", unreadable = 1, places = 1 }]\nrebuild = { after = "4s" }'
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    file.write_text(file.read_text(encoding="utf-8").replace("missing = [2]", keys), encoding="utf-8")
    load_study(file)


def test_what_did_not_come_before_the_run_was_over_is_said(tmp_path: Path) -> None:
    """Of a warm-up of so many requests nobody knows before how long it takes."""
    keys = 'events = [{ at = "1ms", slow = 1, times = 2 }, { at = "500s", unreadable = 1, places = 3 }]'
    file = _study(tmp_path, "raid5(5, chunk=64KiB)", [2])
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("missing = [2]", keys), encoding="utf-8")
    (found,) = (one for one in run_checks(analyse(run_study(file, out=tmp_path / "late"))) if one.check == "events")
    assert (
        found.verdict == "WARN" and "before this came: member 1 cannot be read in 3 places from 500 s" in found.evidence
    )
    file.write_text(text.replace("missing = [2]", keys.replace("500s", "2ms")), encoding="utf-8")
    (found,) = (one for one in run_checks(analyse(run_study(file, out=tmp_path / "soon"))) if one.check == "events")
    assert found.verdict == "PASS"
