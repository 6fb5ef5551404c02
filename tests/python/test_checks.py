"""Every check on facts that are made up: what passes, what does not, what cannot be known. Nothing is measured here."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from raidlab.analysis.checks import (
    CHECKS,
    SEVERITY,
    array_state,
    background_load,
    buffered_io,
    busy_processors,
    cache,
    check_targets,
    clock,
    compression,
    coverage,
    dedupe,
    engine,
    incomplete,
    raw_device,
    reread,
    resync,
    run_checks,
    settings,
    shared_device,
    sparse,
    stacked_striping,
    stalls,
    throttling,
    write_cache,
)
from raidlab.analysis.checks.coverage import tenths
from raidlab.analysis.checks.equal_capacity import said_of_equal
from raidlab.analysis.checks.finding import Finding
from raidlab.analysis.checks.members import of_target
from raidlab.analysis.metrics import Analysis
from raidlab.report.cards import cards_of
from raidlab.report.export.findings import verdicts_by_target
from raidlab.report.provenance import ModelledHardware, ParameterRow
from raidlab.results import Run, load_run
from raidlab.results.tables import CHECK_COLUMNS, DEVICE_COLUMNS, HISTOGRAM_COLUMNS
from raidlab.study.schema import Compare
from raidlab.study.workload import MixedAddress

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
Member = dict[str, Any]


def member(**more: Any) -> Member:
    """An honest block device."""
    facts: Member = {
        "kind": "block",
        "name": "/dev/sda",
        "path": "/dev/sda",
        "io": "direct",
        "disks": ["sda"],
        "volumes": [],
        "device": {"name": "sda"},
        "stack": [{"name": "sda", "numbers": "8:0"}],
        "settings": {"changed": []},
        "limits": {"found": []},
        "allocation": {"places": []},
        "signature": {"kind": None},
        "content": {"blocks": 64, "zero": 0, "compressible": 0, "repeated": 0},
    }
    return {**facts, **more}


def volume(**more: Any) -> dict[str, Any]:
    facts = {"kind": "md", "name": "md0", "level": "raid5", "chunk_bytes": 65536, "state": "optimal"}
    rest = {
        "activity": "idle",
        "activity_share": None,
        "missing_members": 0,
        "members": [{"state": "online"}] * 3,
        "unknown": {},
    }
    return {**facts, **rest, **more}


def verdict(module: Any, facts: Member) -> str:
    """The verdict of a check about one target by itself, with a sentence and, unless it passes, what to do."""
    (finding,) = of_target(module.NAME, facts, module.judge)
    assert finding.check == module.NAME and finding.evidence.endswith(".")
    # What is unknown may come with what would tell.
    assert finding.verdict == "UNKNOWN" or (finding.remedy == "") == (finding.verdict == "PASS")
    return str(finding.verdict)


TURNING = [{"name": "sda", "write_cache": "write through", "rotational": True}]
UNCOUNTED = {"name": "f", "size_bytes": 100, "stored_bytes": None}
PAIR = {"ratio": 1.6, "low": 1.4, "high": 1.8, "pairs": 5}
SAME = {"ratio": 1.0, "low": 0.9, "high": 1.1, "pairs": 5}
AGAIN = {**SAME, "bytes": 80 * MIB, "part_bytes": 16 * MIB, "moved_share": 1.0, "disks": ["sda"]}
ZRAM = {"stack": [{"name": "zram0", "numbers": "253:0", "compresses": "zstd"}], "disks": ["zram0"]}


@pytest.mark.parametrize(
    ("module", "facts", "expected"),
    [
        (cache, {}, "PASS"),
        (cache, {"read_again": AGAIN}, "PASS"),
        (cache, {"read_again": {**AGAIN, "moved_share": 0.02}}, "INVALID"),
        (cache, {"read_again": {**AGAIN, **PAIR, "low": 3.0, "moved_share": None}}, "WARN"),
        (cache, {"stack": [{"name": "loop0", "numbers": "7:0", "through_page_cache": True}]}, "WARN"),
        (cache, {"disks": ["tmpfs at /dev/shm"]}, "WARN"),
        (sparse, {"allocation": {"places": [{"name": "f", "size_bytes": 100, "stored_bytes": 100}]}}, "PASS"),
        (sparse, {"allocation": {"places": [{"name": "f", "size_bytes": 100, "stored_bytes": 70}]}}, "WARN"),
        (sparse, {"allocation": {"places": [{"name": "f", "size_bytes": 100, "stored_bytes": 0}]}}, "INVALID"),
        (sparse, {"allocation": {"unknown": "it cannot be looked at"}}, "UNKNOWN"),
        (sparse, {"allocation": {"places": [UNCOUNTED]}}, "PASS"),
        (sparse, {"allocation": {"places": [UNCOUNTED]}, "content": {"blocks": 64, "zero": 64}}, "UNKNOWN"),
        (compression, {}, "PASS"),
        (compression, {"compressible_pair": SAME}, "PASS"),
        (compression, {"compressible_pair": PAIR}, "WARN"),
        (compression, ZRAM, "WARN"),
        (compression, {**ZRAM, "content": {"blocks": 64, "zero": 64, "compressible": 64, "repeated": 0}}, "INVALID"),
        (compression, {"content": {"blocks": 64, "zero": 0, "compressible": 20, "repeated": 0}}, "WARN"),
        (compression, {"filesystem": {"kind": "btrfs", "options": "rw,compress=zstd:3"}}, "WARN"),
        (compression, {"volumes": [volume(kind="zfs", details={"compression": "lz4"})]}, "WARN"),
        (write_cache, {}, "UNKNOWN"),
        (write_cache, {"stack": [{"name": "sda", "write_cache": "write through"}]}, "PASS"),
        (write_cache, {"stack": [{"name": "sda", "write_cache": "write back"}]}, "UNKNOWN"),
        (write_cache, {"stack": TURNING, "flushed": {"blocks": 32, "median_ns": 40_000}}, "WARN"),
        (write_cache, {"stack": TURNING, "flushed": {"blocks": 32, "median_ns": 90_000_000}}, "PASS"),
        (dedupe, {}, "PASS"),
        (dedupe, {"repeated_pair": SAME}, "PASS"),
        (dedupe, {"repeated_pair": PAIR}, "WARN"),
        (dedupe, {"content": {"blocks": 64, "zero": 0, "compressible": 0, "repeated": 30}}, "WARN"),
        (dedupe, {"volumes": [volume(kind="dm", level="vdo")]}, "WARN"),
        (array_state, {"volumes": [volume()]}, "PASS"),
        (array_state, {"volumes": [volume(state="degraded", missing_members=1)]}, "WARN"),
        (array_state, {"volumes": [volume(state=None, unknown={"state": "dmsetup is not installed"})]}, "UNKNOWN"),
        (array_state, {"volumes": [volume()], "volumes_after": [volume(state="degraded")]}, "WARN"),
        (resync, {"volumes": [volume()]}, "PASS"),
        (resync, {"volumes": [volume(activity="resync", activity_share=0.4)]}, "WARN"),
        (resync, {"volumes": [volume(activity=None)]}, "UNKNOWN"),
        (raw_device, {}, "PASS"),
        (raw_device, {"signature": {"kind": "ext4", "usage": "filesystem"}}, "WARN"),
        (raw_device, {"signature": {"kind": None, "unknown": "blkid is not installed"}}, "UNKNOWN"),
        (raw_device, {"kind": "file", "filesystem": {"kind": "ext4"}}, "PASS"),
        (stacked_striping, {"volumes": [volume()]}, "PASS"),
        (stacked_striping, {"volumes": [volume()], "striped_by": "raid0(2)"}, "WARN"),
        (stacked_striping, {"volumes": [volume(level="raid1")], "striped_by": "raid0(2)"}, "PASS"),
        (stacked_striping, {"volumes": [volume(level="striped"), volume(level="raid0")]}, "WARN"),
        (settings, {}, "PASS"),
        (
            settings,
            {"settings": {"changed": [{"place": "sda", "name": "nomerges", "value": "2", "default": "0"}]}},
            "WARN",
        ),
        (settings, {"settings": {"unknown": "no sysfs"}}, "UNKNOWN"),
        (throttling, {}, "PASS"),
        (
            throttling,
            {"limits": {"found": [{"device": "sda", "what": "read_bytes_per_s", "value": 5, "group": "/g"}]}},
            "WARN",
        ),
        (throttling, {"limits": {"unknown": "no /proc"}}, "UNKNOWN"),
        (background_load, {"watched": {"seconds": 1.0, "devices": []}}, "UNKNOWN"),
        (
            background_load,
            {"watched": {"seconds": 1.0, "devices": [{"name": "sda", "read_bytes": 4096, "write_bytes": 0}]}},
            "PASS",
        ),
        (
            background_load,
            {"watched": {"seconds": 1.0, "devices": [{"name": "sda", "read_bytes": 0, "write_bytes": 9 * MIB}]}},
            "WARN",
        ),
        (buffered_io, {}, "PASS"),
        (buffered_io, {"io": "buffered"}, "WARN"),
    ],
)
def test_a_target_by_itself(module: Any, facts: Member, expected: str) -> None:
    assert verdict(module, member(**facts)) == expected


def test_memory_and_null_have_nothing_to_be_honest_about() -> None:
    nothing = {"kind": "null", "io": "null", "disks": [], "volumes": [], "stack": []}
    for module in CHECKS:
        if hasattr(module, "judge"):
            assert module.judge(nothing) is None, module.NAME


def machine(**after: Any) -> dict[str, Any]:
    """A machine over a minute; ``after`` changes what it says at the end."""
    clocks = {"source": "tsc", "resolution_ns": 1, "monotonic_ns": 0, "raw_ns": 0, "boot_ns": 0}
    still = dict.fromkeys(
        ("heat_events", "governor", "frequency_cap_khz", "frequency_most_khz", "on_battery", "quota_stops")
    )
    processors = {**still, "stolen_ticks": 0, "all_ticks": 0}
    minute = 60 * 10**9
    later = {"monotonic_ns": minute, "raw_ns": minute, "boot_ns": minute, "stolen_ticks": 1, "all_ticks": 12000}
    changed = {**later, **after}
    return {
        "before": {"clock": clocks, "processor": {key: 0 if key in after else processors[key] for key in processors}},
        "after": {
            "clock": {key: changed.get(key, clocks[key]) for key in clocks},
            "processor": {key: changed.get(key, processors[key]) for key in processors},
        },
    }


@pytest.mark.parametrize(
    ("module", "after", "expected"),
    [
        (clock, {}, "PASS"),
        (clock, {"source": "hpet"}, "WARN"),
        (clock, {"source": None}, "UNKNOWN"),
        (clock, {"raw_ns": 59_900_000_000}, "WARN"),
        (clock, {"raw_ns": 59_990_000_000}, "PASS"),
        (clock, {"boot_ns": 90 * 10**9}, "WARN"),
        (throttling, {}, "PASS"),
        (throttling, {"heat_events": 3}, "WARN"),
        (throttling, {"quota_stops": 8}, "WARN"),
        (throttling, {"stolen_ticks": 1200}, "WARN"),
        (throttling, {"stolen_ticks": None, "all_ticks": None}, "UNKNOWN"),
        (throttling, {"on_battery": True}, "WARN"),
        (throttling, {"frequency_cap_khz": 2_000_000, "frequency_most_khz": 4_000_000}, "WARN"),
    ],
)
def test_the_machine(module: Any, after: dict[str, Any], expected: str) -> None:
    finding = module.of_machine(machine(**after), "machine")
    assert finding.verdict == expected, finding.evidence


@pytest.mark.parametrize(
    ("ticks", "waited_us", "expected"),
    [(9000, 59_000_000, "WARN"), (9000, 5_000_000, "PASS"), (1000, 59_000_000, "PASS"), (9000, None, "WARN")],
)
def test_programs_that_keep_the_processors(ticks: int, waited_us: int | None, expected: str) -> None:
    facts = machine()
    facts["before"]["others"] = {"programs": {"7": 100}, "waited_us": 0}
    facts["after"]["others"] = {"programs": {"7": 100 + ticks, "9": 5}, "waited_us": waited_us}
    finding = busy_processors.of_machine(facts, "machine")
    assert finding.verdict == expected, finding.evidence
    finding = busy_processors.of_machine(machine(), "machine")
    assert finding.verdict == "UNKNOWN" and finding.remedy


def test_a_load_on_the_disk_below_a_loop_device(small_run: Run, tmp_path: Path) -> None:
    stack = [{"name": "loop0", "through_page_cache": False}, {"name": "sda"}]

    def seen(below: int, name: str, **more: Any) -> str:
        counts = {"read_bytes": 0, "write_bytes": 0}
        before = {"at_s": 10.0, "devices": {"loop0": counts, "sda": counts}}
        after = {
            "at_s": 20.0,
            "devices": {"loop0": {**counts, "read_bytes": 1000 * MIB}, "sda": {**counts, "read_bytes": below}},
        }
        facts = member(stack=stack, traffic=before, traffic_after=after, **more)
        analysis = live(small_run, tmp_path / name, [facts], moved=moved(1000 * MIB, 1000 * MIB))
        return only(list(background_load.check(analysis))).verdict

    assert seen(1030 * MIB, "alone") == "PASS"
    assert seen(1300 * MIB, "beside") == "WARN"
    assert seen(1300 * MIB, "array", volumes=[volume()]) == "PASS"


def test_what_is_unknown_is_named_wherever_warnings_are(small_run: Run, tmp_path: Path) -> None:
    analysis = live(small_run, tmp_path / "run", [member()])
    findings = run_checks(analysis)
    mine = {finding.check for finding in findings if (finding.verdict, finding.target) == ("UNKNOWN", "live")}
    assert {"cache", "stalls", "sustained"} <= mine
    assert " cache (live)" in verdicts_by_target(analysis)["live"].partition("UNKNOWN")[2]
    cards = cards_of(analysis, findings, has_published=False)
    told = {finding.check for card in cards for finding in card.care if finding.verdict == "UNKNOWN"}
    assert mine <= told


@pytest.mark.parametrize(
    ("size", "expected"), [(1 * MIB, "WARN"), (4096 * MIB, "PASS"), (64 * MIB, "UNKNOWN"), (None, None)]
)
def test_what_was_read_over_and_over(small_run: Run, tmp_path: Path, size: int | None, expected: str | None) -> None:
    cells = small_run.cells.with_columns(pl.lit(40 * MIB, dtype=pl.UInt64).alias("read_bytes"))
    analysis = live(small_run, tmp_path / "run", [member(size_bytes=size)])
    live_cells = cells.with_columns(pl.lit("live").alias("target"))
    live_cells.write_parquet(analysis.run.folder / "cells.parquet")
    found = list(reread.check(Analysis(load_run(analysis.run.folder))))
    assert [finding.verdict for finding in found] == ([] if expected is None else [expected])


def test_a_cache_between_a_loop_device_and_its_disk(small_run: Run, tmp_path: Path) -> None:
    stack = [{"name": "loop0", "through_page_cache": False}, {"name": "sda"}]
    counts = {"read_bytes": 0, "write_bytes": 0}
    before = {"at_s": 10.0, "devices": {"loop0": counts, "sda": counts}}
    for below, expected in ((100 * MIB, "WARN"), (990 * MIB, "PASS")):
        moved_by = {"loop0": {**counts, "read_bytes": 1000 * MIB}, "sda": {**counts, "read_bytes": below}}
        facts = member(stack=stack, traffic=before, traffic_after={"at_s": 20.0, "devices": moved_by})
        run = live(small_run, tmp_path / expected, [facts], moved=moved(1000 * MIB, 1000 * MIB))
        assert only(list(cache.check(run))).verdict == expected


def with_gaps(run: Run, folder: Path, response: dict[int, int], gaps: dict[int, int], **more: Any) -> Analysis:
    """A live run of which every cell had these response times and gaps, by milliseconds, and lasted 3 s."""
    times = [("read", "response", response), ("all", "gap", gaps)]
    cells = run.cells.with_columns(
        pl.lit("live").alias("target"),
        pl.lit(3 * 10**9, dtype=pl.UInt64).alias("elapsed_ns"),
        pl.lit(sum(response.values()), dtype=pl.UInt64).alias("all_requests"),
    )
    rows = [
        {"cell": cell, "operation": operation, "time": time, "value_ns": int(value * 1e6), "count": count}
        for cell in cells["cell"]
        for operation, time, found in times
        for value, count in found.items()
    ]
    analysis = live(run, folder, [member()], **more)
    cells.write_parquet(folder / "cells.parquet")
    pl.DataFrame(rows, schema=HISTOGRAM_COLUMNS, orient="row").write_parquet(folder / "histograms.parquet")
    return Analysis(load_run(analysis.run.folder))


def test_stalls_that_a_closed_loop_hides(small_run: Run, tmp_path: Path) -> None:
    # 4 stalls of 300 ms in 3 s at a depth of 1.
    stalled = with_gaps(small_run, tmp_path / "stalled", {1: 2380, 300: 4}, {1: 2380, 300: 4})
    (found,) = stalls.check(stalled)
    assert found.verdict == "WARN" and found.remedy, found.evidence
    assert "is 1 ms;" in found.evidence and "40% of the time" in found.evidence
    index = next(index for index, point in enumerate(stalled.points) if point.load == "closed")
    # An arrival meets them 40 % of the time, and one in a hundred has more than 292.5 ms left.
    assert stalled.values[index]["arrival_wait_ms_p99"] == pytest.approx(292.5, abs=0.1)


@pytest.mark.parametrize(
    ("response", "gaps"),
    [
        # Nothing ever stood still for a millisecond.
        ({0.1: 30_000}, {0: 0}),
        # Independent requests of exponential times at a disk: a gap is a service time.
        ({5: 150, 10: 90, 20: 50, 40: 9, 60: 1}, {5: 150, 10: 90, 20: 50, 40: 9, 60: 1}),
        # Requests that are slow one by one, while others complete.
        ({0.1: 29_700, 20: 300}, {1: 5}),
        # Percentiles that show the stalls.
        ({1: 900, 300: 60}, {300: 3}),
    ],
)
def test_what_is_no_hidden_stall(
    small_run: Run, tmp_path: Path, response: dict[int, int], gaps: dict[int, int]
) -> None:
    (found,) = stalls.check(with_gaps(small_run, tmp_path / "run", response, gaps))
    assert found.verdict == "PASS" and not found.remedy, found.evidence


def test_stalls_are_not_known_where_nobody_looked(small_run: Run, tmp_path: Path) -> None:
    (found,) = stalls.check(live(small_run, tmp_path / "run", [member()]))
    assert found.verdict == "UNKNOWN" and found.remedy


def test_a_clock_too_coarse_for_what_it_timed() -> None:
    assert clock.of_machine(machine(resolution_ns=1_000_000), "run", fastest_ns=5e6).verdict == "WARN"
    assert clock.of_machine(machine(), "run", fastest_ns=500.0).verdict == "PASS"


def test_targets_together() -> None:
    other = member(name="/dev/sdb", disks=["sdb"])
    assert shared_device.check_together([member(), other]).verdict == "PASS"
    assert shared_device.check_together([member(), member(name="/dev/sda2")]).verdict == "WARN"
    found = check_targets([member(), other], machine())
    assert [finding.target for finding in found][-3:] == ["all", "machine", "machine"] or found[-1].target == "machine"
    assert {finding.target for finding in found} == {"/dev/sda", "/dev/sdb", "all", "machine"}


def live(run: Run, folder: Path, members: list[Member], **more: Any) -> Analysis:
    """The simulated run as if it had been measured live: on these members, with these counters of a device."""
    folder.mkdir(parents=True)
    for file in run.folder.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    cells = run.cells.with_columns(pl.lit("live").alias("target"))
    cells.write_parquet(folder / "cells.parquet")
    rows = (
        [{"cell": cell, "device": "sda", **more.get("moved", {})} for cell in cells["cell"]] if "moved" in more else []
    )
    pl.DataFrame(rows, schema=DEVICE_COLUMNS, orient="row").write_parquet(folder / "devices.parquet")
    text = {**run.facts, "live_members": members, "machine": machine(), **more.get("facts", {})}
    # What is made up has no digests, but for that of its study.
    study = text["study"]
    text["study"] = {**study, "sha256": hashlib.sha256(study["text"].encode()).hexdigest()}
    text["tables"] = {}
    (folder / "run.json").write_text(json.dumps(text), encoding="utf-8")
    return Analysis(load_run(folder))


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


def moved(read: int, asked: int) -> dict[str, int]:
    return {"read_bytes": read, "write_bytes": 0, "asked_read_bytes": asked, "asked_write_bytes": 0}


@pytest.mark.parametrize(
    ("read", "io", "of_cache", "of_load"),
    [
        (1000 * MIB, "direct", "PASS", "PASS"),
        (20 * MIB, "direct", "INVALID", "PASS"),
        (700 * MIB, "direct", "WARN", "PASS"),
        (20 * MIB, "buffered", "WARN", "UNKNOWN"),
        (1500 * MIB, "direct", "PASS", "WARN"),
    ],
)
def test_bytes_at_the_devices_against_bytes_asked(
    small_run: Run, tmp_path: Path, read: int, io: str, of_cache: str, of_load: str
) -> None:
    analysis = live(small_run, tmp_path / "run", [member(io=io)], moved=moved(read, 1000 * MIB))
    assert only(list(cache.check(analysis))).verdict == of_cache
    finding = only(list(background_load.check(analysis)))
    assert finding.verdict == of_load, finding.evidence


def test_a_cache_is_not_known_where_the_kernel_does_not_count(small_run: Run, tmp_path: Path) -> None:
    finding = only(list(cache.check(live(small_run, tmp_path / "run", [member()]))))
    assert finding.verdict == "UNKNOWN" and "no counters of sda" in finding.evidence and "iostats" in finding.remedy


def test_a_figure_at_its_limit_is_the_limit(small_run: Run, tmp_path: Path) -> None:
    def limited(value: int, name: str) -> str:
        limit = {"device": "sda", "what": "read_requests_per_s", "value": value, "group": "/g"}
        analysis = live(small_run, tmp_path / name, [member(limits={"found": [limit]})])
        return next(finding for finding in throttling.check(analysis) if finding.target == "live").verdict

    assert limited(10**9, "far") == "WARN"
    assert limited(10, "near") == "INVALID"


def test_the_worst_of_several_members_stands_for_all(small_run: Run, tmp_path: Path) -> None:
    bad = [member(name=f"/dev/sd{letter}", signature={"kind": "xfs", "usage": "filesystem"}) for letter in "bcdef"]
    finding = only(list(raw_device.check(live(small_run, tmp_path / "run", [member(), *bad]))))
    assert finding.verdict == "WARN" and "/dev/sdb" in finding.evidence
    assert finding.evidence.endswith(" The same of /dev/sdc, /dev/sdd, 2 more.")
    mixed = live(small_run, tmp_path / "mixed", [member(), member(kind="file")])
    assert only(list(raw_device.check(mixed))).verdict == "WARN"


def test_what_is_said_of_all_members_alike_stands_there_once(small_run: Run, tmp_path: Path) -> None:
    files = [member(kind="file", name=f"/mnt/member-{n}.dat", device=None) for n in range(8)]
    zeros = {**member()["content"], "zero": 1}
    found = only(list(compression.check(live(small_run, tmp_path / "run", [member(content=zeros), *files]))))
    assert found.verdict == "PASS" and found.evidence.count("/dev/sda") == found.evidence.count("/mnt/member-") == 1
    assert found.evidence.endswith(" The same of 7 more.")


def test_a_stripe_of_raidlabs_over_an_array_of_the_kernels(small_run: Run, tmp_path: Path) -> None:
    on_array = live(small_run, tmp_path / "run", [member(volumes=[volume()])])
    assert only(list(stacked_striping.check(on_array))).verdict == "WARN"


def test_holes_matter_to_those_who_read(small_run: Run, tmp_path: Path) -> None:
    hole = {"places": [{"name": "f", "size_bytes": 100, "stored_bytes": 0}]}
    assert only(list(sparse.check(live(small_run, tmp_path / "run", [member(allocation=hole)])))).verdict == "INVALID"


def test_coverage_of_scans(small_run: Run, tmp_path: Path) -> None:
    assert only(list(coverage.check(Analysis(small_run)))).verdict == "PASS"
    text = small_run.facts["study"]["text"].replace('name = "reads"', 'name = "reads"\naddress = "sequential"', 1)
    study = {**small_run.facts["study"], "text": text}
    scanned = live(small_run, tmp_path / "run", [member()], facts={"study": study})
    finding = only(list(coverage.check(scanned)))
    assert finding.verdict == "WARN" and "touched 1" in finding.evidence
    # What is moved is told of the repeat that touched so little, and not of the mean with another one that moved more.
    run = load_run(scanned.run.folder)
    more = {"cell": pl.col("cell") + 1000, "repeat": pl.col("repeat") + 1, "all_bytes": 50 * pl.col("all_bytes")}
    vars(run)["cells"] = pl.concat([run.cells, run.cells.with_columns(**more).cast(dict(run.cells.schema))])
    assert only(list(coverage.check(Analysis(run)))).evidence == finding.evidence
    point = next(point for point in scanned.points if point.workload == "reads")
    workload = scanned.run.study.workload[0]
    many = workload.model_copy(update={"address": workload.address.model_copy(update={"streams": 10})})
    assert (tenths(point, workload), tenths(point, many)) == (1, 10)
    # Only the share that jumps is drawn from all over.
    following = MixedAddress(kind="mixed", sequential=0.7, local=0.3, local_sd=4096)
    jumping = following.model_copy(update={"sequential": 0.0})
    mixed = [workload.model_copy(update={"address": address}) for address in (following, jumping)]
    assert [tenths(point, one) for one in mixed] == [1, 10]


def test_random_reads_that_are_faster_than_sequential_ones(small_run: Run, tmp_path: Path) -> None:
    # "writes" becomes a scan that reads as little, and so slowly, as the writes did.
    text = small_run.facts["study"]["text"].replace("read = 0.0\nsize", 'address = "sequential"\nread = 1.0\nsize', 1)
    study = {**small_run.facts["study"], "text": text}
    finding = only(list(cache.check(live(small_run, tmp_path / "run", [member()], facts={"study": study}))))
    assert finding.verdict == "WARN" and "times as fast as writes" in finding.evidence


def test_a_run_that_did_not_end(small_run: Run, tmp_path: Path) -> None:
    assert only(list(incomplete.check(Analysis(small_run)))).verdict == "PASS"
    cut = live(small_run, tmp_path / "run", [member()], facts={"status": "interrupted"})
    assert only(list(incomplete.check(cut))).verdict == "WARN"


def test_what_the_engine_found_is_said_once_with_its_worst_cell(small_run: Run, tmp_path: Path) -> None:
    analysis = live(small_run, tmp_path / "run", [member()])
    found = [(0, "PASS", "none"), (1, "WARN", "3 transfers were short"), (2, "PASS", "none")]
    rows = [{"cell": cell, "check": "short_transfers", "verdict": v, "evidence": e, "mend": ""} for cell, v, e in found]
    pl.DataFrame(rows, schema=CHECK_COLUMNS, orient="row").write_parquet(analysis.run.folder / "checks.parquet")
    finding = only(list(engine.check(Analysis(load_run(analysis.run.folder)))))
    assert (finding.check, finding.verdict) == ("short_transfers", "WARN")
    assert "1 of 3 cells" in finding.evidence and "3 transfers were short" in finding.evidence


def test_a_simulated_run_knows_nothing_of_this_machine(small_run: Run) -> None:
    assert "machine" not in small_run.facts
    found = {finding.check for finding in run_checks(Analysis(small_run))}
    assert not found & {"cache", "clock", "throttling", "background_load", "compression", "raw_device", "settings"}


CLI = [sys.executable, "-c", "from raidlab.cli import main\nif __name__ == '__main__': main()", "check"]


# Whether a cache below a temporary directory shows is the machine's affair.
EITHER = (0, 3)


def check(*words: str | Path, code: int | tuple[int, ...]) -> str:
    done = subprocess.run([*CLI, *map(str, words)], capture_output=True, text=True, check=False, timeout=600)
    if "io_uring" in done.stderr and done.returncode in (1, 2):
        pytest.skip(f"no io_uring here: {done.stderr}")
    assert done.returncode in ((code,) if isinstance(code, int) else code), done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout


def test_check_reads_a_file_and_leaves_it_as_it_is(tmp_path: Path) -> None:
    content = os.urandom(8 * MIB)
    (tmp_path / "data").write_bytes(content)
    document = json.loads(check(tmp_path / "data", "--json", code=EITHER))
    (facts,) = document["targets"]
    assert facts["content"]["blocks"] >= 64 and "compressible_pair" not in facts
    found = {finding["check"]: finding["verdict"] for finding in document["checks"]}
    assert found["compression"] == found["sparse"] == found["dedupe"] == "PASS"
    assert found.keys() >= {"clock", "throttling", "settings", "buffered_io"}
    assert (tmp_path / "data").read_bytes() == content and len(list(tmp_path.iterdir())) == 1


def test_check_finds_a_hole(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(8 * MIB)
    assert "INVALID sparse: " in check(tmp_path / "hole", code=3)


def test_check_writes_pairs_into_a_directory_and_removes_them(tmp_path: Path) -> None:
    document = json.loads(check(tmp_path, "--file-size", "8MiB", "--json", code=EITHER))
    facts = document["targets"][0]
    assert facts["compressible_pair"]["pairs"] == 5, facts.get("untried")
    assert list(tmp_path.iterdir()) == []


def test_check_refuses_what_measure_refuses(tmp_path: Path) -> None:
    assert check(tmp_path / "nothing", code=2) == ""
    assert check("null", "--destroy", tmp_path, code=2) == ""
    assert "this machine" in check("null", code=0)


@pytest.fixture
def loop(tmp_path: Path, loops: Callable[[Path], str]) -> Iterator[tuple[str, Path]]:
    """A loop device over a file of random bytes, and the file."""
    backing = tmp_path / "disk"
    backing.write_bytes(os.urandom(MIB) * 16)
    yield loops(backing), backing
    subprocess.run(["umount", str(tmp_path / "mounted")], check=False, capture_output=True)


@pytest.mark.slow
def test_check_overwrites_a_device_only_if_it_is_named_once_more(loop: tuple[str, Path], tmp_path: Path) -> None:
    device, backing = loop
    before = backing.read_bytes()
    # Whether the page cache between the loop device and its file shows is the kernel's to decide: 0 or 3.
    done = subprocess.run([*CLI, device, "--json"], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode in (0, 3), done.stderr
    assert "compressible_pair" not in json.loads(done.stdout)["targets"][0]
    assert backing.read_bytes() == before
    given_up = [*CLI, device, "--destroy", device, "--json"]
    done = subprocess.run(given_up, capture_output=True, text=True, check=False, timeout=600)
    assert json.loads(done.stdout)["targets"][0]["compressible_pair"]["pairs"] == 5
    assert backing.read_bytes() != before
    if subprocess.run(["mkfs.ext4", "-q", "-F", device], check=False, capture_output=True).returncode == 0:
        (tmp_path / "mounted").mkdir()
        subprocess.run(["mount", device, str(tmp_path / "mounted")], check=True)
        done = subprocess.run(given_up, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 4 and "is mounted" in done.stderr, done.stderr


def of_cheats(script: str) -> str:
    """What a script prints that imports the modules of the benchmark of checks."""
    path = os.pathsep.join([str(ROOT / "benches" / "checks-bite"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    return done.stdout


def test_every_check_has_a_cheat_or_says_why_not() -> None:
    script = "import cheats; print(*{c.check for c in cheats.CHEATS}, *cheats.BY_TESTS)"
    assert set(of_cheats(script).split()) == {module.NAME for module in CHECKS}


def test_what_bites_in_tests_only_names_them() -> None:
    by_tests = json.loads(of_cheats("import cheats, json; print(json.dumps(cheats.BY_TESTS))"))
    for name, why in by_tests.items():
        file = ROOT / why.rpartition("(")[2].rstrip(")")
        assert file.is_file() and name in file.read_text(encoding="utf-8"), f"{name}: {why}"


def test_a_cheat_of_which_raidlab_says_nothing_is_not_caught_and_no_rig_that_is_lacking() -> None:
    script = (
        "import cheats, rigs, run\n"
        "rigs.CLI[:] = ['false']\n"
        "run.CHEATS[:] = [cheats.Cheat('one repeat', 'single_run', 'WARN', cheats.one_repeat)]\n"
        "(row,), good = run.bites('')\n"
        "print(row['verdict'], good, run.bites('no such cheat'))"
    )
    assert of_cheats(script).splitlines()[-1] == "failed False ([], False)"


def test_verdicts_are_ordered() -> None:
    assert sorted(SEVERITY, key=SEVERITY.__getitem__) == ["PASS", "UNKNOWN", "WARN", "INVALID"]


def test_the_pages_name_every_check() -> None:
    page = (ROOT / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    assert importlib.util.find_spec("raidlab.analysis.checks") is not None
    for module in CHECKS:
        assert f"`{module.NAME}`" in page


def test_what_a_table_calls_equal_is_said_with_how_equal_it_is() -> None:
    table = Compare(group="all", title="Six disks", reference="a", equal="members")
    assert said_of_equal(table, [6, 6]) == "The arrays of 'Six disks' are compared for equal members, and each has 6."
    space = Compare(group="all", title="Space", reference="a", equal="user_capacity")
    assert said_of_equal(space, [1000 * MIB, 1005 * MIB]).endswith("each has 1000 MiB to 1005 MiB (within 1 %).")
    assert said_of_equal(space, [MIB, MIB]).endswith("equal user capacity, and each has 1 MiB.")


def test_parameters_without_a_source_are_named() -> None:
    rows = [ParameterRow("rpm", "7200", "published", "", "")]
    assert ModelledHardware("disk", "", rows).counts == "1 published"
    rows += [ParameterRow(name, "1", "", "", "") for name in "abcdefgh"]
    told = ModelledHardware("disk", "", rows).counts
    assert told == "1 published, 8 without a word of where they come from (a, b, c, d, e, f and 2 more)"
