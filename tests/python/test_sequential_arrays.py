"""Streams over arrays of the typical disk: what the disk's own rate and the level promise, on the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from raidlab.analysis.checks import run_checks
from raidlab.api import analyse, run_study
from raidlab.study.load import load_study_text

STUDY = """
name = "streams"
title = "Streams over arrays"
on = ["sim"]
array = [
    { name = "one", tree = "independent(1)" },
    { name = "raid0", tree = "raid0(4, chunk=$CHUNK)" },
    { name = "raid5", tree = "raid5(5, chunk=$CHUNK)" },
    { name = "raid6", tree = "raid6(6, chunk=$CHUNK)" },
    { name = "raid10", tree = "raid10(4, chunk=$CHUNK)" },
]
workload = [
    { name = "reads", read = 1.0, size = "1MiB", address = "sequential" },
    { name = "writes", read = 0.0, size = "1MiB", address = "sequential" },
]
load = { depths = [1, 8] }
sim = { device = "hdd-7200", warmup = { requests = 500 }, measure = { requests = 2000 } }
"""


@pytest.fixture(scope="module", params=["64KiB", "512KiB"])
def mb_s(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, int], float]:
    """MB/s by array, workload and depth."""
    folder = tmp_path_factory.mktemp("streams")
    study = load_study_text(STUDY.replace("$CHUNK", request.param), folder / "study.toml")
    run = run_study(study, out=folder)
    values = analyse(run).table.select("array", "workload", "depth", "throughput_mb_s").rows()
    return {(array, workload, depth): value for array, workload, depth, value in values}


def test_a_disk_streams_at_its_mediums_rate(mb_s: dict[tuple[str, str, int], float]) -> None:
    # 175 MB/s on the outermost tracks, printed by the maker of the disk that it is like.
    for workload in ("reads", "writes"):
        for depth in (1, 8):
            assert mb_s["one", workload, depth] == pytest.approx(175, rel=0.02)


def test_an_array_streams_at_the_rate_of_its_data_members(mb_s: dict[tuple[str, str, int], float]) -> None:
    disk = mb_s["one", "reads", 8]
    assert mb_s["raid0", "reads", 8] >= 0.95 * 4 * disk
    assert mb_s["raid5", "reads", 8] >= 0.9 * 4 * disk
    assert mb_s["raid6", "reads", 8] >= 0.9 * 4 * disk


def test_mirrors_share_a_stream_but_not_twice_its_rate(mb_s: dict[tuple[str, str, int], float]) -> None:
    # Each copy passes over what the other one reads: two of them give more than one, and less than two.
    disk = mb_s["one", "reads", 8]
    assert 2 * disk <= mb_s["raid10", "reads", 8] <= 4 * disk
    assert mb_s["raid10", "writes", 8] == pytest.approx(2 * disk, rel=0.05)


def test_a_disk_that_does_not_read_ahead_is_called_too_plain(tmp_path: Path) -> None:
    text = STUDY.replace("$CHUNK", "64KiB").replace("depths = [1, 8]", "depths = [1]")
    verdicts = {}
    for device in ("hdd-7200", "hdd-7200-bare"):
        study = load_study_text(text.replace('"hdd-7200"', f'"{device}"'), tmp_path / "study.toml")
        findings = run_checks(analyse(run_study(study, out=tmp_path)))
        verdicts[device] = [one for one in findings if one.check == "device_too_plain"]
    assert verdicts["hdd-7200"] == []
    reads, writes = verdicts["hdd-7200-bare"]
    assert (reads.verdict, writes.verdict) == ("WARN", "WARN")
    assert "of the 196 MB/s of the medium" in reads.evidence and "does not read ahead" in reads.evidence
    # Told of the one disk, whose reads and writes no arrangement has a part in.
    assert "(one, reads, queue depth 1)" in reads.evidence and "(one, writes, queue depth 1)" in writes.evidence
    # Parity that is read before it is written loses revolutions on any disk.
    assert "does not cache writes" in writes.evidence and "raid5" not in {one.array for one in writes.concerns}
    assert {(one.array, one.workload) for one in reads.concerns} >= {("one", "reads"), ("raid5", "reads")}
    # So is it where programs copy to and from it, but where they wait for a tape.
    copies = """
sim = { device = "hdd-7200-bare", end = [{ name = "slow", tape = { mb_s = 5, buffer = "1MiB", start_stop = "1ms" } }] }
load = { depths = [1] }
"""
    for name, sink in (("reads", "memory"), ("to tape", "slow")):
        copies += f"""
[[workload]]
name = "{name}"
read = 1
size = "256KiB"
streams = [{{ name = "copy", source = "array", sink = "{sink}", bytes = "16MiB" }}]
"""
    study = load_study_text(text[: text.index("workload = [")] + copies, tmp_path / "study.toml")
    (copied,) = (one for one in run_checks(analyse(run_study(study, out=tmp_path))) if one.check == "device_too_plain")
    assert copied.verdict == "WARN" and {one.workload for one in copied.concerns} == {"reads"}
    # What gets all that was offered says nothing of how much there would be.
    offered = text.replace("depths = [1]", "open = { rates_per_s = [5] }").replace('"hdd-7200"', '"hdd-7200-bare"')
    study = load_study_text(offered, tmp_path / "study.toml")
    assert not [one for one in run_checks(analyse(run_study(study, out=tmp_path))) if one.check == "device_too_plain"]
    # What reads one request after another but loses no revolution is not: requests of many tracks, one disk.
    long = (
        text.replace('"1MiB"', '"64MiB"')
        .replace("requests = 500", "requests = 10")
        .replace("requests = 2000", "requests = 50")
    )
    study = load_study_text(long.replace('"hdd-7200"', '"hdd-7200-bare"'), tmp_path / "study.toml")
    findings = [one for one in run_checks(analyse(run_study(study, out=tmp_path))) if one.check == "device_too_plain"]
    (finding,) = (one for one in findings if ", reads, " in one.evidence)
    assert finding.verdict == "PASS" and not finding.concerns
