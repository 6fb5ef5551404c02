"""Traces: what `raidlab trace` says of them, and what a study makes of one."""

from __future__ import annotations

import hashlib
import json
import typing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from raidlab import _core
from raidlab.analysis.checks import run_checks
from raidlab.analysis.metrics.comparable import refusals
from raidlab.api import analyse, run_study
from raidlab.cli.app import app
from raidlab.cli.trace import _FORMATS
from raidlab.errors import InputError
from raidlab.results import Run
from raidlab.run.progress import Silent
from raidlab.study import load_study_text
from raidlab.study.check import writes
from raidlab.study.workload import TraceReplay, Workload

# Times in microseconds, from a million on: one request a millisecond, reads and writes of two volumes in turn.
LINES = [f"{7 + i % 2},{'RW'[i % 3 == 0]},{i * 7919 % 100 * 4096},4096,{1_000_000 + 1000 * i}" for i in range(200)]
STUDY = """
name = "replayed"
title = "A trace"
on = ["sim"]

[[array]]
name = "volumes"
tree = "independent(2)"

[[array]]
name = "more"
tree = "independent(3)"
group = "wider"

[[workload]]
name = "web"
trace = { file = "web.csv" }

[load]
depths = [1, 4]

[sim]
device = "fixed-100us"
repeats = 2

[[compare]]
group = "all"
title = "Both"
reference = "volumes"
equal = "members"
"""


def command(*words: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["trace", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two hundred requests in Alibaba's format."""
    file = tmp_path / "web.csv"
    file.write_text("\n".join(LINES) + "\n", encoding="ascii")
    return file


def study(tmp_path: Path, old: str = "", new: str = "") -> Path:
    assert old in STUDY
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace(old, new) if old else STUDY, encoding="utf-8")
    return file


def replayed(tmp_path: Path, old: str = "", new: str = "", **options: typing.Any) -> Run:
    return run_study(study(tmp_path, old, new), out=tmp_path / "runs", seed=1, **options)


def refused(tmp_path: Path, old: str, new: str) -> str:
    with pytest.raises(InputError) as caught:
        replayed(tmp_path, old, new)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_the_formats_are_the_same_everywhere() -> None:
    names = [name for name, _ in _core.trace_formats()]
    of_study = typing.get_args(typing.get_args(TraceReplay.model_fields["format"].annotation)[0])
    assert names == list(of_study) == _FORMATS.split(", ")


def test_show_counts_in_one_pass(trace: Path) -> None:
    status, out, _ = command("show", trace, "--json")
    assert status == 0
    told = json.loads(out)
    assert (told["format"], told["is_guessed"], told["requests"]) == ("alibaba", True, 200)
    assert told["span_ns"] == 199_000_000 and told["rate_per_s"] == pytest.approx(200 / 0.199)
    writes = sum("W" in line for line in LINES)
    assert told["read_share"] == 1 - writes / 200
    assert told["sizes"] == {"bytes": [4096], "requests": [200]}
    places = {tuple(line.split(",")[::2][:2]) for line in LINES}
    assert told["working_set_bytes"] == 4096 * len(places)
    assert [volume["name"] for volume in told["volumes"]] == ["7", "8"]
    status, out, _ = command("show", trace)
    assert status == 0
    text = " ".join(out.split())
    assert "200 requests, format alibaba, told by its first lines" in text
    assert "p50 4.1 kB" in text and "stamps of 1 us" in text


def test_show_names_what_is_wrong(trace: Path, tmp_path: Path) -> None:
    def wrong(text: bytes, *words: str) -> str:
        trace.write_bytes(text)
        with pytest.raises(InputError) as caught:
            command("show", trace, *words)
        return str(caught.value).replace(f"{tmp_path}/", "")

    bad = "\n".join([*LINES[:50], "7,R,0,4096", *LINES[50:]]).encode()
    assert wrong(bad).startswith("web.csv:51: '7,R,0,4096': not five fields; accepted: device_id,R|W,offset,length")
    assert wrong(b"hello\n").startswith(
        "web.csv: its first lines are of no format that is known; accepted: one of msr,"
    )
    assert "is compressed by gzip" in wrong(b"\x1f\x8b\x08\x00")
    assert wrong(LINES[0].encode(), "--format", "csv").startswith("--format: csv is no format of traces; accepted: msr")
    assert wrong(LINES[0].encode(), "--format", "spc").startswith("web.csv:1: ")
    trace.unlink()
    with pytest.raises(InputError, match=r"web\.csv: cannot be read: No such file"):
        command("show", trace)


def test_convert_loses_only_what_the_format_cannot_say(trace: Path, tmp_path: Path) -> None:
    before = _core.trace_columns(str(trace))
    for name in ("msr", "spc", "blkparse", "fio_v2", "fio_v3", "disksim", "alibaba"):
        new = tmp_path / f"as.{name}"
        status, _, said = command("convert", trace, "--to", name, "-o", new)
        assert status == 0 and "200 requests" in said
        assert _core.trace_format(str(new)) == name
        after = _core.trace_columns(str(new))
        for key in ("is_write", "offset_bytes", "bytes", "volume"):
            assert np.array_equal(before[key], after[key]), (name, key)
        assert np.array_equal(np.diff(before["time_ns"]), np.diff(after["time_ns"])), name
    with pytest.raises(InputError, match="cannot be written: File exists"):
        command("convert", trace, "--to", "msr", "-o", trace)
    with pytest.raises(InputError, match="one request at a time"):
        command("convert", trace, "--to", "disksim_validation", "-o", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_trace_is_replayed_by_its_time_stamps_to_its_end(trace: Path, tmp_path: Path) -> None:
    run = replayed(tmp_path)
    assert run.facts["status"] == "complete"
    assert run.cells["load"].to_list() == ["trace"] * 4
    assert run.cells["all_requests"].to_list() == [200] * 4
    # Every request takes 100 us and comes when nothing else is there.
    assert run.cells["all_response_mean_ns"].to_list() == [100_000.0] * 4
    assert run.cells["elapsed_ns"].to_list() == [199_000_000 + 100_000] * 4
    assert run.facts["study"]["traces"] == {
        "web": {
            "file": "web.csv",
            "format": "alibaba",
            "bytes": trace.stat().st_size,
            "sha256": hashlib.sha256(trace.read_bytes()).hexdigest(),
        }
    }
    analysis = analyse(run)
    findings = {finding.check: finding for finding in run_checks(analysis)}
    assert findings["replay"].verdict == "PASS"
    assert "200 requests of the trace were replayed, to the trace's end" in findings["replay"].evidence
    assert [point.level for point in analysis.points] == ["the trace's own times"] * 2
    # Nothing is said of throughput, which is the trace's.
    assert all(values["relative_throughput_percent"] is None for values in analysis.values.values())


def test_a_speed_a_part_and_depths(trace: Path, tmp_path: Path) -> None:
    run = replayed(tmp_path, '"web.csv"', '"web.csv", speed = 10.0, warmup = 10, requests = 100, only = "reads"')
    assert run.cells["all_requests"].to_list() == [100] * 4
    assert run.cells["write_requests"].to_list() == [0] * 4
    findings = {finding.check: finding for finding in run_checks(analyse(run))}
    assert findings["replay"].verdict == "WARN" and "left out" in findings["replay"].evidence
    run = replayed(tmp_path, '"web.csv"', '"web.csv", pace = "depths"')
    assert sorted(set(run.cells["depth"])) == [1, 4]
    first = run.cells.row(0, named=True)
    assert (first["all_requests"], first["elapsed_ns"]) == (200, 200 * 100_000)


def test_a_guess_is_said(trace: Path, tmp_path: Path) -> None:
    class Heard(Silent):
        def __init__(self) -> None:
            self.notes: list[str] = []

        def note(self, text: str) -> None:
            self.notes.append(text)

    heard = Heard()
    replayed(tmp_path, progress=heard)
    assert heard.notes == ["web.csv is read as alibaba, which its first lines tell"]
    named = Heard()
    replayed(tmp_path, '"web.csv"', '"web.csv", format = "alibaba"', progress=named)
    assert named.notes == []


def test_quick_takes_no_more_than_its_budget(trace: Path, tmp_path: Path) -> None:
    run = replayed(tmp_path, "repeats = 2", "quick = { measure = { requests = 20 } }", quick=True)
    assert run.cells["all_requests"].to_list() == [20] * 2


def test_addresses_beyond_are_refused_or_wrapped(trace: Path, tmp_path: Path) -> None:
    far = f"7,R,{1 << 50},4096,1000000"
    trace.write_text("\n".join([far, *LINES]), encoding="ascii")
    told = refused(tmp_path, '"web.csv"', '"web.csv", format = "alibaba"')
    assert told.startswith("study.toml:17: workload[0].trace: web.csv:1: 'a read': 4096 bytes at 1125899906842624 lie")
    assert 'beyond = "wrap"' in told
    run = replayed(tmp_path, '"web.csv"', '"web.csv", beyond = "wrap"')
    findings = {finding.check: finding for finding in run_checks(analyse(run))}
    assert "1 beyond their volume and wrapped into it" in findings["replay"].evidence
    # Far into the trace it ends the run, with the line.
    trace.write_text("\n".join([*LINES, far]), encoding="ascii")
    run = replayed(tmp_path)
    assert run.facts["status"] == "failed"
    assert "web.csv:201: 'a read': 4096 bytes" in run.facts["failure"]


def test_volumes_by_name(trace: Path, tmp_path: Path) -> None:
    run = replayed(tmp_path, '"web.csv"', '"web.csv", volumes = { "8" = 1 }, others = "leave_out"')
    assert run.cells["all_requests"].to_list() == [100] * 4
    busy = run.members.filter(run.members["cell"] == 0)
    assert busy["reads"].to_list()[0] == 0 and busy["reads"].to_list()[1] > 0
    run = replayed(tmp_path, '"web.csv"', '"web.csv", volumes = { "7" = 1 }')
    assert "the trace's volume '8' is not in the table of volumes" in run.facts["failure"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("trace = {", "read = 0.5\ntrace = {", "a trace stands in place of read"),
        ("trace = {", 'size = "4KiB"\naddress = "uniform"\ntrace = {', "a trace stands in place of size, address"),
        ('"web.csv"', '"lost.csv"', "lost.csv: cannot be read: No such file"),
        ('"web.csv"', '"web.csv", format = "csv"', "is not known here"),
        ('"web.csv"', '"web.csv", speed = 0', "must be above 0"),
        ('"web.csv"', '"web.csv", pace = "depths", speed = 2.0', "goes with time stamps"),
        ('"web.csv"', '"web.csv", volumes = { "7" = 5 }', "volume 5 for '7' is none of the array's 2"),
        ('"web.csv"', '"web.csv", sped = 2', "did you mean 'speed'"),
        ("depths = [1, 4]", "depths = [1]\n[workload.load]\ndepths = [2]", "has no say where time stamps are replayed"),
    ],
)
def test_mistakes_are_named(trace: Path, tmp_path: Path, old: str, new: str, told: str) -> None:
    if "[workload.load]" in new:
        text = STUDY.replace("[load]\n", "[workload.load]\ndepths = [2]\n\n[load]\n")
        with pytest.raises(InputError, match=told):
            load_study_text(text, tmp_path / "study.toml")
        return
    assert told in refused(tmp_path, old, new)


def test_it_drives_members_in_memory_too(trace: Path, tmp_path: Path) -> None:
    run = replayed(tmp_path, '"web.csv"', '"web.csv", speed = 20.0', on=["memory"], quick=True)
    if run.facts["status"] == "failed" and "io_uring" in str(run.facts["failure"]):
        pytest.skip(f"no io_uring here: {run.facts['failure']}")
    assert run.facts["status"] == "complete"
    cells = run.cells.filter(run.cells["target"] == "live")
    assert set(cells["load"]) == {"trace"} and all(count > 0 for count in cells["all_requests"])
    findings = {finding.check: finding for finding in run_checks(analyse(run)) if finding.target == "live"}
    assert findings["replay"].verdict in ("PASS", "WARN")


def test_a_run_does_not_go_on_with_another_trace(trace: Path, tmp_path: Path) -> None:
    from raidlab.results.folder import study_facts
    from raidlab.study import load_study

    file = study(tmp_path)
    before = study_facts(load_study(file))
    trace.write_text("\n".join(LINES[1:]), encoding="ascii")
    assert before["study"]["sha256"] == study_facts(load_study(file))["study"]["sha256"]
    assert before["study"]["traces"] != study_facts(load_study(file))["study"]["traces"]


def test_the_docs_have_every_format() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "replay-a-trace.md"
    assert [name for name, _ in _core.trace_formats() if f"| `{name}` |" not in page.read_text(encoding="utf-8")] == []


def test_two_replays_are_compared_only_if_they_are_of_one_trace(trace: Path, tmp_path: Path) -> None:
    runs = [replayed(tmp_path), replayed(tmp_path)]
    trace.write_text("\n".join(LINES[:-1]), encoding="ascii")
    runs.append(replayed(tmp_path))
    first, same, other = (analyse(run).points[0] for run in runs)
    assert list(refusals(first, same)) == []
    assert list(refusals(first, other)) == ["another trace: the files have other contents"]


def test_only_reads_are_sure_not_to_write() -> None:
    def workload(only: str) -> Workload:
        return Workload.model_validate({"name": "web", "trace": {"file": "web.csv", "only": only}})

    assert [writes(workload(only)) for only in ("all", "writes", "reads")] == [True, True, False]


def test_nothing_is_said_of_what_was_not_drawn(trace: Path, tmp_path: Path) -> None:
    run = replayed(tmp_path, '"fixed-100us"', '"hdd-7200-bare"')
    analysis = analyse(run)
    # Where a trace's requests lie is not for a check to work out from an address that nobody drew.
    assert "coverage" not in {finding.check for finding in run_checks(analysis)}
    assert all(values["access_count_model_percent"] is None for values in analysis.values.values())
