"""``raidlab device fit``: known devices come back, what was held out and arrays are predicted, nothing is guessed."""

from __future__ import annotations

import io
import itertools
import json
import math
import os
import random
import tomllib
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from raidlab import _core
from raidlab.api import analyse, run_study
from raidlab.cli.app import app
from raidlab.cli.run import say_fits
from raidlab.devices.published import compare_published
from raidlab.directory import write_file
from raidlab.errors import InputError, RaidlabError
from raidlab.formats.toml import toml_text
from raidlab.histogram import Histogram
from raidlab.measure.fit import (
    LEAST_DISK_BYTES,
    DriftError,
    FitRequest,
    FittedDevice,
    _not_stored,
    described,
    fit_kept,
    fit_model,
    fitted_device,
    measured_samples,
)
from raidlab.measure.fit.again import AskedAgain
from raidlab.measure.fit.buckets import Drain, device_buckets
from raidlab.measure.fit.held_out import HeldOut, as_figure, as_situation, predicted, stated_error_percent
from raidlab.measure.fit.kept import KeepingTimed, KeptList, KeptMeasurements, KeptTimed
from raidlab.measure.fit.limits import RateLimit, relieved_mixes
from raidlab.measure.fit.rotation import rotation_of
from raidlab.measure.fit.situations import Op, Situation, Slot, least_bytes, situations, slots
from raidlab.measure.fit.subject import ModelSubject
from raidlab.measure.fit.table import PROBABILITIES, Measured, Sample, quantiles_us, sample_of, together
from raidlab.measure.fit.timed import Numbers, TimedModel, TimedRequests, sector_of
from raidlab.measure.fit.traced import fit_trace
from raidlab.measure.places import Place
from raidlab.results import Run
from raidlab.results.answer import CellAnswer
from raidlab.run.progress import Silent
from raidlab.run.volumes import usable_bytes
from raidlab.study.device import load_device
from raidlab.study.device_figures import PublishedFigure
from raidlab.study.load import load_study_text
from raidlab.study.units import format_bytes

MIB = 1 << 20
CAPACITY = 512 * MIB
# Four at a time, each longer for what it moves: times that depend on operation, size and depth.
KNOWN: dict[str, Any] = {
    "kind": "fixed",
    "capacity_bytes": CAPACITY,
    "sector_bytes": 4096,
    "read_us": 200.0,
    "write_us": 80.0,
    "read_ns_per_byte": 2.0,
    "write_ns_per_byte": 5.0,
    "servers": 4,
}


def command(*words: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*map(str, words)])
    if isinstance(result.exception, RaidlabError):
        return result.exception.exit_code, result.stdout, f"{result.stderr}{result.exception}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def known() -> FittedDevice:
    """The known device, fitted as a black box."""
    return fit_model(KNOWN, CAPACITY, FitRequest("known", budget_ns=20_000_000_000, quick=True))


def model_of(fitted: FittedDevice) -> dict[str, Any]:
    return {key: value for key, value in fitted.document.items() if key not in ("held_out", "fit")}


def test_a_known_device_comes_back(known: FittedDevice) -> None:
    assert known.document["servers"] == 4
    assert "throttle" not in known.document
    keys = ("op", "place", "bytes", "depth", "read")
    rows = {tuple(row.get(key) for key in keys): row["us"] for row in known.document["measured"]}  # type: ignore[union-attr, index, call-overload]
    # 200 us and 2 ns a byte, among others too; the histogram's buckets are 1/64 wide at most.
    for size in (4096, 131072):
        for among in (None, 0.3, 0.8):
            read_us, write_us = 200 + size * 2e-3, 80 + size * 5e-3
            assert rows["read", "random", size, 1, among] == pytest.approx([read_us] * len(PROBABILITIES), rel=0.02)
            assert rows["write", "random", size, 1, among] == pytest.approx([write_us] * len(PROBABILITIES), rel=0.02)
        assert rows["write", "random", size, 4, None] == pytest.approx([write_us] * len(PROBABILITIES), rel=0.02)
    assert known.error_percent < 2
    assert abs(known.drift_percent) < 0.1


def test_reads_that_wait_for_writes_are_predicted() -> None:
    """As in flash: a read takes 5 times as long where half of what goes on is writes, and 2 in 10 delay it a little."""
    alone: list[dict[str, Any]] = [
        {"op": "read", "bytes": 4096, "depth": 1, "us": [90, 110]},
        {"op": "write", "bytes": 4096, "depth": 1, "us": [30, 40]},
    ]
    among: list[dict[str, Any]] = [
        {"op": "read", "read": 0.8, "bytes": 4096, "depth": 1, "us": [100, 300]},
        {"op": "read", "read": 0.4, "bytes": 4096, "depth": 1, "us": [200, 800]},
        {"op": "write", "read": 0.5, "bytes": 4096, "depth": 1, "us": [20, 60]},
    ]
    device = {"kind": "empirical", "capacity_bytes": CAPACITY, "sector_bytes": 4096, "probabilities": [0, 1]}
    fitted = fit_model(device | {"measured": alone + among}, CAPACITY, FitRequest("flash", 20_000_000_000, quick=True))
    mixes = [abs(one.rate_error_percent) for one in fitted.held_out if one.situation.op == "mixed"]
    assert len(mixes) == 2 and max(mixes) < 5
    # The same device, without what was measured of mixes, is far off.
    blind = model_of(fitted)
    blind["measured"] = [row for row in blind["measured"] if "read" not in row]
    measured = [one.measured for one in fitted.held_out if one.situation.op == "mixed"]
    assert min(one.rate_error_percent for one in predicted(blind, measured, seed=1)) > 40


@pytest.mark.slow
@pytest.mark.parametrize("drive", ["ssd-sata", "ssd-nvme"])
def test_a_flash_drive_is_predicted_while_it_is_read_and_written(drive: str, tmp_path: Path) -> None:
    parameters, capacity = load_device(drive, tmp_path).parameters, 858_000 * MIB
    fitted = fit_model(parameters, capacity, FitRequest("flash", 240_000_000_000, kind="table"))
    errors = {one.situation.name: one.rate_error_percent for one in fitted.held_out}
    assert sum(one.situation.op == "mixed" for one in fitted.held_out) == 3
    assert max(map(abs, errors.values())) < 10, errors
    writes = [abs(error) for name, error in errors.items() if "writes" in name]
    assert len(writes) == 10 and max(writes) < 5, errors


def rates(device: dict[str, Any], folder: Path) -> dict[tuple[str, str, int], float]:
    """Throughputs of four arrays of four such members."""
    levels = {"raid0": "stripe(4)", "raid10": "raid10(4)", "raid5": "raid5(4)", "raid6": "raid6(4)"}
    loads = [("reads", 1.0, "4KiB"), ("mixed", 0.7, "48KiB"), ("writes", 0.0, "4KiB")]
    document = {
        "name": "arrays",
        "title": "Four of them",
        "on": ["sim"],
        "array": [{"name": name, "tree": tree} for name, tree in levels.items()],
        "workload": [{"name": name, "read": read, "size": size, "address": "uniform"} for name, read, size in loads],
        "load": {"depths": [1, 8]},
        "sim": {"device": device, "warmup": {"requests": 200}, "measure": {"requests": 3000}},
    }
    study = load_study_text(toml_text(document), folder / "study.toml")
    table = analyse(run_study(study, out=folder)).table
    return {(row["array"], row["workload"], row["depth"]): row["iops"] for row in table.iter_rows(named=True)}


def test_what_was_kept_fits_the_same_device(known: FittedDevice, tmp_path: Path) -> None:
    assert known.kept is not None and known.kept.buckets
    probe, out = tmp_path / "known.parquet", tmp_path / "again.toml"
    probe.write_bytes(known.kept.parquet())
    status, text, errors = command("device", "fit", "--from", probe, "--out", out)
    assert status == 0, errors
    assert "held out and predicted" in text
    worst = max(abs(one.rate_error_percent) for one in known.held_out)
    said = " ".join(text.split())
    assert f"The file states an error of {known.error_percent:.1f} %: of what was not measured, " in said
    assert f"the worst is {worst:.1f} % off." in said
    assert out.read_text(encoding="utf-8") == toml_text(known.document)
    # Another number in what was kept is another device.
    longer = [
        replace(one, mean_ns=2 * one.mean_ns, mean_of_all_ns=2 * one.mean_of_all_ns) for one in known.kept.samples
    ]
    probe.write_bytes(replace(known.kept, samples=longer).parquet())
    other = tmp_path / "other.toml"
    assert command("device", "fit", "--from", probe, "--out", other)[0] == 0
    assert other.read_text(encoding="utf-8") != toml_text(known.document)


def test_nothing_that_is_there_is_overwritten(known: FittedDevice, tmp_path: Path) -> None:
    assert known.kept is not None
    probe, out, linked = tmp_path / "known.parquet", tmp_path / "mine.txt", tmp_path / "link.toml"
    probe.write_bytes(known.kept.parquet())
    out.write_text("precious")
    linked.symlink_to(out)
    before = probe.read_bytes()
    for place in (out, linked, probe):
        status, _, errors = command("device", "fit", "--from", probe, "--out", place)
        assert status == 2 and "is there already" in " ".join(errors.split()), errors
    status, _, errors = command("device", "fit", "memory", "--keep", out)
    assert status == 2 and "is there already" in " ".join(errors.split()), errors
    assert out.read_text() == "precious" and probe.read_bytes() == before


@pytest.mark.parametrize("option", ["--out", "--keep"])
def test_what_another_fit_has_written_meanwhile_stays_and_nothing_is_lost(
    known: FittedDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    taken, other = tmp_path / "taken", tmp_path / "other"

    def fit(_asked: FitRequest, **_: object) -> FittedDevice:
        taken.write_text("of another fit")
        return known

    monkeypatch.setattr("raidlab.measure.fit.fit_target", fit)
    others = {"--out": "--keep", "--keep": "--out"}
    status, text, errors = command("device", "fit", "memory", option, taken, others[option], other)
    assert status == 1 and f"{option}: '{taken}': is there by now, and is not overwritten" in errors, errors
    assert taken.read_text() == "of another fit"
    assert text == toml_text(known.document)
    assert other.exists() == (option == "--keep")


def test_no_block_device_is_written_for_a_file(
    known: FittedDevice, tmp_path: Path, loops: Callable[[Path], str]
) -> None:
    assert known.kept is not None
    probe, backing = tmp_path / "known.parquet", tmp_path / "disk.img"
    probe.write_bytes(known.kept.parquet())
    backing.write_bytes(bytes(MIB))
    device = loops(backing)
    status, _, errors = command("device", "fit", "--from", probe, "--out", device)
    assert status == 4 and "is a block device" in " ".join(errors.split()), errors
    with pytest.raises(OSError, match="block device"):
        write_file(Path(device), b"text")
    assert Path(device).read_bytes() == bytes(MIB)


def test_the_mechanics_of_a_disk_are_kept() -> None:
    with Path("devices/hdd-7200-bare.toml").open("rb") as file:
        disk = {key: value for key, value in tomllib.load(file).items() if key not in ("published", "power")}
    capacity = _core.device_facts(json.dumps(disk))["capacity_bytes"]
    kept: list[KeptList] = []
    keeping = KeepingTimed(TimedModel(disk, capacity, 1, late_us=20.0), kept)
    seen = rotation_of(keeping, sector_of(keeping), 1, rounds=10)
    assert seen.coherence > 0.9
    replayed = KeptTimed(capacity, kept)
    assert rotation_of(replayed, sector_of(replayed), 1, rounds=10) == seen
    other = KeptTimed(capacity, kept)
    sector_of(other)
    with pytest.raises(InputError, match="--from"):
        rotation_of(other, 512, 2, rounds=10)


def test_a_table_of_a_disk_knows_distances() -> None:
    """Near requests are predicted where the arm has a way; a device without one has one class."""
    with Path("devices/hdd-7200.toml").open("rb") as file:
        disk = {key: value for key, value in tomllib.load(file).items() if key not in ("published", "power")}
    capacity = _core.device_facts(json.dumps(disk))["capacity_bytes"]
    fitted = fit_model(disk, capacity, FitRequest("disk", 600_000_000_000, quick=True, kind="table"))
    rows = fitted.document["measured"]
    near = {row.get("within_bytes") for row in rows if row["op"] == "read" and row["place"] == "random"}  # type: ignore[union-attr, index, call-overload]
    assert near == {None, int(capacity / 256), int(capacity / 16)}
    held = {one.situation.name: one.rate_error_percent for one in fitted.held_out}
    near_by = "random reads in 1/64 of it, 16 KiB, depth 1"
    assert abs(held[near_by]) < 8, held
    assert abs(held["random reads, 16 KiB, depth 1"]) < 8, held
    one_class = {**model_of(fitted), "measured": [row for row in rows if "within_bytes" not in row]}  # type: ignore[union-attr, operator]
    blind = {one.situation.name: one for one in predicted(one_class, [one.measured for one in fitted.held_out], 1)}
    assert blind[near_by].rate_error_percent < -20


def trace_of(near_ms: float, *, later_ms: float | None = None) -> str:
    """4,000 requests: reads take 5 ms, or less near the last one, writes 2 ms and 0.1 ms a sector.

    In the second half, reads near the last one may take another time.
    """
    drawn, at, lines = random.Random(7), 0, []
    for index in range(4000):
        is_write, is_near, sectors = drawn.random() < 0.3, drawn.random() < 0.4, drawn.choice((1, 8, 16))
        at = at + 64 if is_near and at < 900_000 else drawn.randrange(1_000_000)
        near = near_ms if index < 2000 or later_ms is None else later_ms
        ms = 2 + 0.1 * sectors if is_write else near if is_near else 5.0
        lines.append(f"{'W' if is_write else 'R'} Miss {at} {sectors} {1e3 * ms:.3f} 10.000")
    return "\n".join(lines) + "\n"


def test_a_trace_is_fitted_by_half_and_predicted_by_half(tmp_path: Path) -> None:
    trace, out = tmp_path / "mine.trace", tmp_path / "mine.toml"
    trace.write_text(trace_of(near_ms=5.0), encoding="utf-8")
    fitted = fit_trace(str(trace))
    assert fitted.demerit_percent < 1
    assert fitted.error_percent < 1
    rows = {(row["op"], row["bytes"]): row["us"][5] for row in fitted.document["measured"]}  # type: ignore[index, union-attr, call-overload]
    assert rows["write", 8192] == pytest.approx(3600, rel=1e-3)
    # Near is told from far, in the rows and in the replay.
    trace.write_text(trace_of(near_ms=1.0), encoding="utf-8")
    fitted = fit_trace(str(trace))
    measured: Any = fitted.document["measured"]
    near = [row for row in measured if "within_bytes" in row]
    assert {(row["op"], row["us"][5]) for row in near} == {("read", 1000.0)}
    assert fitted.error_percent < 2 and "near" in {one.name for one in fitted.groups}
    # What the first half does not tell is seen in a group, and said.
    trace.write_text(trace_of(near_ms=1.0, later_ms=2.0), encoding="utf-8")
    status, text, errors = command("device", "fit", "--trace", trace, "--out", out)
    assert status == 0, errors
    assert "near" in text and "Demerit" in text
    assert "missed what was held out" in " ".join(errors.split())
    assert tomllib.loads(out.read_text(encoding="utf-8"))["fit"]["validation"] == "failed"
    assert "a longer trace" in " ".join(errors.split())
    study = tmp_path / "study.toml"
    study.write_text(
        'name = "s"\ntitle = "A traced disk"\non = ["sim"]\n[[array]]\nname = "raid0"\ntree = "stripe(2)"\n'
        '[[workload]]\nname = "mix"\nread = 0.5\nsize = "4KiB"\n[load]\ndepths = [1]\n'
        '[sim]\ndevice = "./mine.toml"\nmeasure = { requests = 100 }\n',
        encoding="utf-8",
    )
    status, _, errors = command("run", study, "--out", tmp_path / "runs")
    assert status == 0, errors
    said = " ".join(errors.split())
    assert said.count("missed what was held out") == 1 and "note: the device 'mine' used by sim was fitted" in said


def test_a_device_of_several_targets_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    fit = {"fit": {"error_percent": 40.0}}
    devices = {"emulated": {"name": "mine"}, "sim": {"name": "mine"}}
    facts = {"devices": devices, "sheets": {"emulated": fit, "sim": fit}}
    facts |= {"array_devices": {"fast": {"name": None}}, "array_sheets": {"fast": fit}}
    run = SimpleNamespace(facts=facts, cells={"target": ["sim", "sim", "emulated"]})
    say_fits(cast(Run, run))
    several, alone = capsys.readouterr().err.splitlines()
    assert several.startswith("note: the device 'mine' used by emulated and sim was fitted, and its model missed")
    assert alone.startswith("note: the device used by fast was fitted, and its model missed")
    # One that no target of this run has is not asked about.
    run.cells["target"] = ["sim"]
    say_fits(cast(Run, run))
    assert "used by sim was fitted" in capsys.readouterr().err


def test_a_trace_that_does_not_tell_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "some.trace"
    overlapping = "".join(f"{1_000_000 + 10 * i},web,0,Read,{4096 * i},4096,50\n" for i in range(2000))
    for text, said in (
        ("".join(trace_of(1.0).splitlines(keepends=True)[:10]), "holds 10 requests"),
        (overlapping, "line 2 begins before"),
        (overlapping.replace("5,web,0", "5,web,1").replace("0,web,0,Read,4096,", "0,web,1,Read,4096,"), "2 volumes"),
        ("0,0,4096,r,0.0\n" * 2000, "does not say how long"),
        ("no trace\n", "some.trace"),
    ):
        trace.write_text(text, encoding="utf-8")
        status, _, errors = command("device", "fit", "--trace", trace)
        assert status == 2, text[:50]
        assert said in " ".join(errors.split()), errors


def test_what_no_fit_has_kept_is_refused(known: FittedDevice, tmp_path: Path) -> None:
    assert known.kept is not None
    probe, whole = tmp_path / "probe.parquet", known.kept.parquet()
    probe.write_bytes(whole)
    for words, said in (
        ((), "TARGET"),
        (("memory", "--from", probe), "TARGET"),
        (("--from", probe, "--budget", "20s"), "--budget"),
        (("--from", probe, "--file-size", "64MiB"), "--file-size: does not go with --from"),
        (("--from", probe, "--kind", "hdd"), "too few single reads were kept"),
        (("--from", probe, "--trace", "x.trace"), "does not go with --trace"),
        (("--from", tmp_path / "none.parquet"), "cannot be read"),
        (("memory", "--out", tmp_path / "new", "--keep", tmp_path / "." / "new"), "--keep"),
    ):
        status, _, errors = command("device", "fit", *words)
        assert status == 2, words
        assert said in " ".join(errors.split()), errors
    for content in (b"", b"PAR1PAR1", whole[: len(whole) // 2], whole.replace(b"raidlab.fit", b"raidlab.tif")):
        probe.write_bytes(content)
        status, _, errors = command("device", "fit", "--from", probe)
        assert (status, "holds no measurements" in " ".join(errors.split())) == (2, True), errors


# One row, or all where it is None.
@pytest.mark.parametrize(
    ("column", "value", "row"),
    [
        ("depth", None, 3), ("depth", -(1 << 63), None), ("depth", (1 << 63) - 1, None), ("mean_of_all_ns", None, 3),
        ("mean_ns", -0.0, 3), ("mean_ns", float("nan"), None), ("mean_of_all_ns", -1.0, None), ("span", -0.0, 2),
        ("place", "mechanics", None), ("span", None, 3), ("span", float("inf"), 3), ("count", [1] * 999, 3),
        ("value_ns", [-1], 3), ("reads", float("nan"), 3), ("reads", -1.0, 3), ("arrivals", None, 3),
        ("section", "other", 3), ("section", None, 3), ("elapsed_ns", 0, 3), ("requests", 0, None), ("turn", -1, 3),
        ("processor_share", float("nan"), 3), ("warmup_ns", -1, 3), ("place", "rewrite", None),
    ],
)  # fmt: skip
def test_rows_that_no_fit_has_measured_are_refused_in_words(
    column: str, value: object, row: int | None, known: FittedDevice, tmp_path: Path
) -> None:
    assert known.kept is not None
    rows = pl.read_parquet(io.BytesIO(known.kept.parquet())).to_dicts()
    turns = [at for at, one in enumerate(rows) if one["section"] == "turn"]
    for at in turns if row is None else turns[row : row + 1]:
        rows[at][column] = value
    status, text, errors = _fit_of_rows(known, rows, tmp_path)
    assert (status, text) == (2, ""), errors
    told = " ".join(errors.split())
    assert "--from: " in told and "holds no measurements of a fit (" in told
    assert f": {column}" in told or "times are damaged" in told or "is no write" in told, told


def _fit_of_rows(known: FittedDevice, rows: list[dict[str, object]], tmp_path: Path) -> tuple[int, str, str]:
    assert known.kept is not None
    table, meta = pl.read_parquet_schema(io.BytesIO(known.kept.parquet())), json.dumps(asdict(known.kept.facts))
    probe = tmp_path / "probe.parquet"
    pl.DataFrame(rows, schema=table).write_parquet(probe, metadata={"raidlab.fit": meta})
    return command("device", "fit", "--from", probe, "--kind", "table")


@pytest.mark.parametrize("seed", range(12))
def test_rows_that_are_whole_but_not_those_of_a_fit_are_fitted_or_refused_in_words(
    seed: int, known: FittedDevice, tmp_path: Path
) -> None:
    assert known.kept is not None
    rng = random.Random(seed)
    rows = pl.read_parquet(io.BytesIO(known.kept.parquet())).to_dicts()
    turns = [one for one in rows if one["section"] == "turn"]
    odd: dict[str, list[object]] = {
        "op": ["read", "write", "mixed"], "place": ["random", "sequential"], "depth": [1, 2, 65536],
        "size_bytes": [1, 4096, 1 << 30], "held_out": [True, False], "arrivals": [True, False],
        "reads": [None, 0.0, 1.0], "span": [1.0, 1e-300],
        "mean_ns": [1e-300, 1e17], "elapsed_ns": [1, 1 << 60], "requests": [1, 1 << 60],
    }  # fmt: skip
    for _ in range(rng.randint(1, 4)):
        column = rng.choice(sorted(odd))
        for one in turns if rng.random() < 0.5 else [rng.choice(turns)]:
            one[column] = rng.choice(odd[column])
    kept = rng.sample(turns, rng.randint(1, len(turns))) if rng.random() < 0.5 else rows
    status, _, errors = _fit_of_rows(known, kept, tmp_path)
    assert status in (0, 2) and "Traceback" not in errors, (seed, errors)


def test_arrays_of_it_are_predicted(known: FittedDevice, tmp_path: Path) -> None:
    true, predicted = rates(KNOWN, tmp_path), rates(model_of(known), tmp_path)
    errors = {cell: 100 * abs(predicted[cell] / rate - 1) for cell, rate in true.items()}
    assert len(errors) == 24
    assert sum(error <= max(known.error_percent, 1.0) for error in errors.values()) >= 0.9 * len(errors), errors


@pytest.mark.slow
def test_a_file_is_fitted_and_the_device_serves_in_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a machine that others use, a few seconds are not like the next.
    monkeypatch.setattr("raidlab.measure.fit.DRIFT_REFUSED", 1e9)
    data, out = tmp_path / "disk.img", tmp_path / "my-disk.toml"
    data.write_bytes(bytes(64 * MIB))
    before = data.stat().st_mtime_ns
    status, text, errors = command("device", "fit", data, "--quick", "--budget", "4s", "--out", out)
    assert status == 0, errors
    assert data.stat().st_mtime_ns == before
    assert "held out and predicted" in text
    assert "the model refuses writes" in " ".join(errors.split())
    document = tomllib.loads(out.read_text(encoding="utf-8"))
    assert {row["op"] for row in document["measured"]} == {"read"}
    assert document["fit"]["requests"] > 0
    status, text, errors = command("device", "validate", out, "--json")
    assert status == (3 if json.loads(text)["failures"] else 0), errors
    assert len(json.loads(text)["figures"]) == len(document["held_out"]) >= 4
    assert json.loads(text)["fit"] == document["fit"]
    study = tmp_path / "study.toml"
    study.write_text(
        'name = "fitted"\ntitle = "A fitted disk"\non = ["sim"]\n[[array]]\nname = "raid0"\ntree = "stripe(2)"\n'
        '[[workload]]\nname = "reads"\nread = 1.0\nsize = "4KiB"\n[load]\ndepths = [1]\n'
        '[sim]\ndevice = "./my-disk.toml"\nmeasure = { requests = 100 }\n',
        encoding="utf-8",
    )
    assert command("run", study, "--out", tmp_path / "runs")[0] == 0
    study.write_text(study.read_text(encoding="utf-8").replace("read = 1.0", "read = 0.5"), encoding="utf-8")
    status, _, errors = command("run", study, "--out", tmp_path / "runs")
    assert status == 2
    assert "only reads of this device were measured" in " ".join(errors.split())


def test_what_cannot_be_fitted_is_refused_before_it_begins(tmp_path: Path) -> None:
    small, empty = tmp_path / "small.img", tmp_path / "empty.img"
    small.write_bytes(bytes(MIB))
    empty.touch()
    for words, said in (
        (("null",), "no device that could be fitted"),
        ((small,), "on one another"),
        (
            (empty,),
            "holds nothing, which is too little to measure; accepted: a file, a directory, a block device or memory",
        ),
        ((empty, "--quick"), "of 16 MiB or more"),
        (("/dev/null",), "'/dev/null': is a character device; accepted: a file"),
        (("memory", "--budget", "1s"), "--budget"),
        (("memory", "--budget", "soon"), "--budget"),
        (("memory", "--destroy", small), "--destroy"),
        (
            (small, "--file-size", "64MiB"),
            f"--file-size: '64 MiB': is the size of the file made in a directory, and '{small}' is none; accepted: a "
            "directory, or no --file-size",
        ),
        (("memory", "--file-size", "64MiB"), "--file-size"),
        (("memory", "--name", "a\nb"), "--name: 'a\\nb': has a control character (U+000A); accepted: one line of text"),
        (("memory", "--name", "a\x1b[31m"), "--name: 'a\\x1b[31m': has a control character (U+001B)"),
        (("memory", "--name", "a\udcff"), "--name: 'a\\udcff': is not UTF-8"),
        (("memory", "--out", tmp_path / "a\nb.toml"), "--out"),
        ((tmp_path / "a\nb",), "has a control character"),
        (("memory", "--out", tmp_path / "nowhere" / "x.toml"), "--out"),
        ((tmp_path / "none",), "directory or device; accepted: a file, a directory, a block device or memory"),
    ):
        status, _, errors = command("device", "fit", *words)
        assert status == 2, words
        assert said in " ".join(errors.split()), errors


def test_the_size_that_is_asked_for_is_enough(tmp_path: Path) -> None:
    """The last page of a file is not used: the least of a file has it."""
    for quick in (True, False):
        least = least_bytes(quick)
        assert situations(writes=False, quick=quick, size_bytes=usable_bytes(least))
        with pytest.raises(InputError, match=f"accepted: at least {format_bytes(least)}"):
            situations(writes=False, quick=quick, size_bytes=usable_bytes(least) - 4096)
    (tmp_path / "disk.img").write_bytes(b"")
    os.truncate(tmp_path / "disk.img", LEAST_DISK_BYTES)
    status, _, errors = command("device", "fit", tmp_path / "disk.img", "--kind", "hdd", "--budget", "10s")
    assert status == 2 and "256 MiB" not in errors and "--budget" in errors


def test_what_of_a_file_is_on_no_disk_is_noted(tmp_path: Path) -> None:
    hole, whole = tmp_path / "hole.img", tmp_path / "whole.img"
    hole.touch()
    os.truncate(hole, 16 * MIB)
    whole.write_bytes(bytes([7]) * MIB)
    os.sync()
    (note,) = _not_stored(Place(str(hole), "file", 16 * MIB, hole))
    assert "0% of its 16 MiB" in note and "Fill the target first" in note
    assert not list(_not_stored(Place(str(whole), "file", MIB, whole)))
    assert not list(_not_stored(Place("memory", "memory", MIB)))


def sample(situation: Situation, turn: int, mean_us: float) -> Sample:
    times = Histogram.of({"value_ns": [int(1e3 * mean_us)], "count": [1000]})
    elapsed_ns = int(1e6 * mean_us / max(situation.depth, 0.5))
    return Sample(situation, turn, 1000, elapsed_ns, 1e3 * mean_us, 1e3 * mean_us, times)


def test_a_limit_is_told_from_a_slow_device() -> None:
    plan = [one for one in situations(writes=False, quick=True, size_bytes=CAPACITY) if not one.arrivals]

    def fitted(value_ns: list[int], count: list[int]) -> FittedDevice:
        """400 a second, whatever size and depth."""
        samples = []
        for turn, one in itertools.product((0, 1), plan):
            # What is in flight waits for what is before it.
            times = Histogram.of({"value_ns": [value * one.depth for value in value_ns], "count": count})
            mean_ns = 2_500_000.0 * one.depth
            samples.append(Sample(one, turn, 4000, 10_000_000_000, mean_ns, mean_ns, times))
        return fitted_device(samples, "mine", CAPACITY, "a test", 1)

    on_credit = fitted([51_282, 98_000_000], [3900, 100]).document
    # Each of the turns of ten seconds begins with a burst: 4,000 requests are twenty too many.
    assert on_credit["throttle"] == [{"ops_s": 398.0, "burst_ops": 40, "only": "reads"}]
    assert "throttle" not in fitted([2_500_000], [4000]).document


def test_a_device_that_changes_is_not_fitted() -> None:
    plan = situations(writes=False, quick=True, size_bytes=CAPACITY)

    def fitted(change: float) -> FittedDevice:
        samples = [sample(one, turn, 100 * change**turn) for turn in (0, 1) for one in plan]
        return fitted_device(samples, "mine", CAPACITY, "a test", 1)

    assert not [note for note in fitted(1.02).notes if "second turns" in note]
    assert [note for note in fitted(1.10).notes if "second turns" in note]
    with pytest.raises(DriftError, match="30 % slower"):
        fitted(1.3)


def test_the_plan_holds_out_what_it_does_not_fit() -> None:
    for quick in (False, True):
        plan = situations(writes=True, quick=quick, size_bytes=CAPACITY)
        fitted = {one for one in plan if not one.held_out}
        held = {Situation(one.op, one.place, one.size_bytes, one.depth) for one in plan if one.held_out}
        assert held and not held & fitted
        turns = slots(plan, 60_000_000_000, seed=3)
        assert sorted(str(one.situation) for one in turns) == sorted(2 * [str(one) for one in plan])
        assert sum(one.warmup_ns + one.measure_ns for one in turns) == pytest.approx(60e9, rel=0.05)
    with pytest.raises(InputError, match="at least"):
        slots(plan, 1_000_000_000, seed=3)


def test_quantiles_keep_the_mean() -> None:
    times = Histogram.of({"value_ns": [1000, 2000, 90_000], "count": [700, 290, 10]})
    mean_ns = (700 * 1000 + 290 * 2000 + 10 * 90_000) / 1000
    found = quantiles_us(times, mean_ns)
    pairs = list(zip(PROBABILITIES, found, strict=True))
    area = sum((q - p) * (a + b) / 2 for (p, a), (q, b) in pairwise(pairs))
    assert area == pytest.approx(mean_ns / 1000, rel=1e-3)
    assert found == sorted(found)


def test_the_stated_error_is_that_of_the_next_one() -> None:
    class Held:
        def __init__(self, *errors: float) -> None:
            self.turn_errors_percent = errors

    held = [Held(error * (-1) ** error) for error in range(1, 20)]
    assert stated_error_percent(held) == 18  # type: ignore[arg-type]
    assert stated_error_percent(held[:3]) == 3  # type: ignore[arg-type]
    assert stated_error_percent([Held(1, -2), Held(3, 4)]) == 4  # type: ignore[arg-type]


def test_a_device_unlike_itself_is_stated_to_be_no_better_known_than_that(known: FittedDevice) -> None:
    """What is half as fast in each second turn, and so as predicted on average, has an error all the same."""
    assert known.error_percent < 2
    unlike = []
    for one in known.held_out:
        rate = one.modelled.rate_per_s
        turns = [
            replace(turn, elapsed_ns=round(1e9 * turn.requests / (rate * share)))
            for turn, share in zip(one.measured.turns, (4 / 3, 2 / 3), strict=True)
        ]
        unlike.append(replace(one, measured=replace(one.measured, turns=tuple(turns))))
    assert stated_error_percent(unlike) == pytest.approx(50, abs=0.1)


def test_what_is_asked_again_has_changed_where_more_is_beyond_than_chance_has(known: FittedDevice) -> None:
    """A disk twice as slow is told, and one of which two situations stalled is not."""

    def slower(held: HeldOut, times: float = 2.0) -> HeldOut:
        turns = [replace(turn, elapsed_ns=round(times * turn.elapsed_ns)) for turn in held.measured.turns]
        return replace(held, measured=replace(held.measured, turns=tuple(turns)))

    held, stated = known.held_out, known.error_percent
    before = tuple(one.measured.rate_per_s for one in held)
    assert len(held) >= 12
    as_it_was = AskedAgain(held, stated, before)
    assert not as_it_was.has_changed and "still" in as_it_was.sentence
    assert not AskedAgain((*map(slower, held[:2]), *held[2:]), stated, before).has_changed
    other = AskedAgain(tuple(map(slower, held)), stated, before)
    assert other.has_changed and len(other.beyond) == len(held)
    assert "50 % slower than when it was fitted" in other.sentence
    assert other.as_json()["has_changed"] is True
    # A file that states a large error hides no change that all have in common; one of a tenth is a machine's.
    shifted = AskedAgain(tuple(slower(one, 4 / 3) for one in held), 48.0, before)
    assert shifted.has_changed and not shifted.beyond
    assert "moved one way" in shifted.sentence and "25 % slower" in shifted.sentence
    assert not AskedAgain(tuple(slower(one, 10 / 9) for one in held), 48.0, before).has_changed
    assert not AskedAgain((*(slower(one, 4 / 3) for one in held[:7]), *held[7:]), 48.0, before).has_changed
    # Of an error that nothing is beyond, being within says nothing.
    unknown = AskedAgain(held, 259.0, before)
    assert "Cannot tell: an error of 259 %" in unknown.sentence and unknown.as_json()["can_tell"] is False
    assert AskedAgain(tuple(slower(one, 4 / 3) for one in held), 259.0, before).can_tell


_AGAIN = """\
kind = "fixed"
capacity_bytes = 16777216
read_us = 0.1
write_us = 0.1
[fit]
error_percent = {stated}
"""


@pytest.mark.parametrize(("stated", "code"), [(50.0, 3), (1e9, 0)])
def test_a_device_is_asked_again_at_its_target(tmp_path: Path, stated: float, code: int) -> None:
    """No file reads ten million times a second, as this device's says of it."""
    (tmp_path / "disk").write_bytes(random.Random(1).randbytes(1 << 24))
    sizes = [4096 * (1 + index) for index in range(5)]
    figures = [
        f'[[held_out]]\nname = "{size}"\nvalue = 1e7\nunit = "IOPS"\nsource = "a test"\nread = {read}\n'
        f'size = {size}\naddress = "random"\ndepth = 1\n'
        for size, read in zip(sizes, (1.0, 1.0, 1.0, 1.0, 0.0), strict=True)
    ]
    device = tmp_path / "mine.toml"
    device.write_text("\n".join([_AGAIN.format(stated=stated), *figures]))
    words = ["device", "validate", str(device), "--on", str(tmp_path / "disk")]
    done = CliRunner().invoke(app, [*words, "--budget", "2s"])
    assert done.exit_code == code, done.output
    assert ("It has changed: 0 of 4" if code else "Cannot tell") in " ".join(done.output.split())
    assert "1 write and were left out: a file is only read" in " ".join(done.output.split())
    # Of a file that is as far off no change of single situations shows, and four are too few for one of all.
    assert "of smaller changes only one of 20 % or more" in " ".join(done.output.split())
    for more in (("--trace", "x"), ("--on", "nowhere")):
        wrong = CliRunner().invoke(app, [*words, *more])
        assert isinstance(wrong.exception, InputError) and str(wrong.exception).startswith(("--trace, --on:", "--on:"))
    for option in (("--budget", "2s"), ("--destroy", str(device)), ("--angles", "0"), ("--out", str(tmp_path))):
        beside = words if option[0] in ("--angles", "--out") else words[:3]
        alone = CliRunner().invoke(app, [*beside, *option])
        assert isinstance(alone.exception, InputError) and str(alone.exception).startswith(option[0])
    short = CliRunner().invoke(app, [*words, "--budget", "1ms"])
    assert isinstance(short.exception, InputError) and "--budget" in str(short.exception)
    (tmp_path / "disk").write_bytes(bytes(1 << 20))
    other = CliRunner().invoke(app, words)
    assert isinstance(other.exception, InputError) and "is not the device that was fitted" in str(other.exception)


def test_another_kind_of_target_is_not_the_device_that_was_fitted(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(bytes(1 << 24))
    device, figure = tmp_path / "mine.toml", '[[held_out]]\nname = "reads"\nvalue = 1e7\nunit = "IOPS"\n'
    figure += 'read = 1.0\nsize = 4096\naddress = "random"\ndepth = 1\n'

    def asked(kind: str, target: str | Path) -> str:
        # As a fit describes it.
        source = f"raidlab device fit, {described(Place('/dev/of-mine', kind, 1 << 24))}, on 2026-01-01, in 20s, seed 1"
        device.write_text(f'{_AGAIN.format(stated=50.0)}\n{figure}source = "{source}"\n')
        status, _, errors = command("device", "validate", device, "--on", target, "--budget", "1ms")
        assert status == 2
        return " ".join(errors.split())

    assert f"--on: '{tmp_path}': is a directory, and what was fitted is a block device; accepted: a block" in asked(
        "block", tmp_path
    )
    assert "is a file, and what was fitted is memory; accepted: memory" in asked("memory", tmp_path / "disk")
    assert "is memory, and what was fitted is a directory; accepted: a file or a directory" in asked(
        "directory", "memory"
    )
    # Not too early, but too short.
    assert asked("directory", tmp_path / "disk").startswith("--budget")


def test_a_fit_that_is_far_off_is_a_file_that_can_be_read(known: FittedDevice) -> None:
    figure = PublishedFigure.model_validate(as_figure(known.held_out[0], "raidlab device fit", 119.4))
    assert figure.tolerance_percent == 100


def test_a_situation_comes_back_from_the_figure_that_it_is_written_as(known: FittedDevice) -> None:
    for one in known.held_out:
        figure = PublishedFigure.model_validate(as_figure(one, "raidlab device fit", 10.0))
        found = as_situation(figure.read, figure.address, figure.size, figure.depth, figure.span)
        assert found == one.situation
    assert {one.situation.op for one in known.held_out} == {"read", "write", "mixed"}
    assert min(one.situation.span for one in known.held_out) < 1


def test_bad_rows_are_named_by_the_engine(known: FittedDevice) -> None:
    device = json.loads(json.dumps(model_of(known)))
    device["measured"][2]["us"].pop()
    with pytest.raises(_core.CellError) as raised:
        _core.device_facts(json.dumps(device))
    assert raised.value.key == "measured[2].us"
    assert not math.isnan(known.error_percent)


@pytest.mark.parametrize("error", [3.0, 40.0])
def test_a_fit_that_missed_is_not_believed_without_a_word(known: FittedDevice, tmp_path: Path, error: float) -> None:
    """Its error is in the intervals of a recommendation, and what is more than 15 % is said wherever it is used."""
    device, study, need = tmp_path / "mine.toml", tmp_path / "study.toml", tmp_path / "need.toml"
    need.write_text(
        'name = "n"\ndevices = [{ device = "./mine.toml", at_most = 4 }]\n'
        '[[workload]]\nname = "reads"\nread = 1.0\nsize = "4KiB"\n'
        '[need]\ntolerate = 1\n[search]\nlevels = ["raid10"]\nmembers = [4, 4]\n',
        encoding="utf-8",
    )
    study.write_text(
        'name = "s"\ntitle = "A fitted device"\non = ["sim"]\n[[array]]\nname = "raid0"\ntree = "stripe(2)"\n'
        '[[workload]]\nname = "reads"\nread = 1.0\nsize = "4KiB"\n[load]\ndepths = [1]\n'
        '[sim]\ndevice = "./mine.toml"\nmeasure = { requests = 100 }\n',
        encoding="utf-8",
    )

    def widths(stated: float) -> tuple[float, str]:
        fit = {"error_percent": stated, "drift_percent": 0.0, "requests": 1, "seed": 1}
        device.write_text(toml_text({**known.document, "fit": fit}), encoding="utf-8")
        status, text, errors = command("recommend", need, "--quick", "--json")
        assert status == 0, errors
        low, high = json.loads(text)["arrays"][0]["figures"]["requests_per_s_interval"]
        return high / low, errors

    (exact, _), (wide, errors) = widths(0.0), widths(error)
    assert wide == pytest.approx(exact * (1 + error / 100) / (1 - error / 100))
    assert ("missed what was held out" in " ".join(errors.split())) == (error > 15)
    status, _, errors = command("run", study, "--out", tmp_path / "runs")
    assert status == 0, errors
    assert ("missed what was held out" in " ".join(errors.split())) == (error > 15)
    status, text, errors = command("device", "validate", device)
    assert status == (3 if error > 15 else 0), errors
    assert (f"Validation failed: its fit states an error of {error:.3g} %" in " ".join(text.split())) == (error > 15)
    assert f"the model gives the throughput of nine turns in ten within {error:.1f} %" in " ".join(text.split())
    assert ("missed what was held out" in " ".join(errors.split())) == (error > 15)


@pytest.mark.parametrize(("wrong", "status"), [(4, 0), (5, 3)])
def test_more_of_what_was_held_out_than_chance_has_fails(
    known: FittedDevice, tmp_path: Path, wrong: int, status: int
) -> None:
    """Of twelve as many as four are beyond a stated error that one in ten is beyond, with 99 %."""
    figures = [{**one, "tolerance_percent": 10.0} for one in cast(list[dict[str, Any]], known.document["held_out"])]
    assert len(figures) == 12
    figures[:wrong] = [{**one, "value": 2 * one["value"]} for one in figures[:wrong]]
    device = tmp_path / "mine.toml"
    device.write_text(toml_text({**known.document, "held_out": figures}), encoding="utf-8")
    found, text, errors = command("device", "validate", device)
    assert (found, text.count("MISS")) == (status, wrong), errors
    failed = f"Validation failed: {wrong} of 12 figures held out beyond 'at most' (chance has up to 4)."
    assert (failed if status else "Validation passed: no more of what its fit held out") in " ".join(text.split())
    assert " beside what its fit held out " in " ".join(text.split()) and "published" not in text


@pytest.mark.parametrize(
    ("throttle", "shared"),
    [
        ([{"ops_s": 400.0, "burst_ops": 40}], True),
        ([{"ops_s": 2000.0, "burst_ops": 200, "only": "reads"}], False),
        ([{"mb_s": 50.0, "burst_bytes": 4 * MIB}], True),
        ([{"ops_s": 3000.0, "burst_ops": 500}, {"mb_s": 100.0, "burst_bytes": 16 * MIB}], True),
        ([], False),
    ],
)
def test_token_buckets_come_back(throttle: list[dict[str, Any]], shared: bool) -> None:
    """Rates within 2 %, credit within 10 %; a device without any has none."""
    device = KNOWN | {"read_ns_per_byte": 0.1, "write_ns_per_byte": 0.1, "throttle": throttle}
    subject = TimedModel(device, CAPACITY, 1, late_us=20.0, outlier_share=0.003)
    found = [limit.table() for one in device_buckets(subject, 1, writes=True) for limit in one.limits]
    assert len(found) == len(throttle)
    for table, true in zip(found, throttle, strict=True):
        assert set(table) == set(true) and ("only" in table) != shared
        for key, value in true.items():
            if key.startswith("burst"):
                assert table[key] == pytest.approx(value, rel=0.1)
            elif key != "only":
                assert table[key] == pytest.approx(value, rel=0.02)


class SlicedSubject:
    """A fast device that Linux's control group holds: what passes is dealt out anew after each tenth of a second.

    After `tg_within_iops_limit` of block/blk-throttle.c, Linux 6.1: what is allowed since a slice began is rounded up
    to whole slices; what has passed is taken off as they end. Now and then the host is late.
    """

    capacity_bytes = CAPACITY
    _SLICE_NS, _TOOK_NS = 100e6, 60e3

    def __init__(self, per_s: float, late_share: float, seed: int) -> None:
        self._per_ns, self._late_share = per_s / 1e9, late_share
        self._drawn, self._now_ns = np.random.default_rng(seed), 0.0
        self._slices: dict[bool, tuple[float, float, float]] = {}

    def rest(self, time_ns: int) -> None:
        self._now_ns += time_ns

    def ask_each(self, offset_bytes: Numbers, op: Op, size_bytes: int) -> TimedRequests:
        first_ns, begins, ends = self._now_ns, [], []
        for _ in offset_bytes:
            begins.append(self._now_ns - first_ns)
            self._now_ns += (
                self._waits_ns(op == "read" or (op == "mixed" and self._drawn.random() < 0.5)) + self._TOOK_NS
            )
            if self._drawn.random() < self._late_share:
                self._now_ns += self._drawn.exponential(20e6)
            ends.append(self._now_ns - first_ns)
        return TimedRequests(offset_bytes, np.array(begins), np.array(ends))

    def _waits_ns(self, reads: bool) -> float:
        begin, end, passed = self._slices.get(reads, (0.0, -1.0, 0.0))
        if self._now_ns > end:
            begin, passed = self._now_ns, 0.0
        whole_ns = math.ceil((self._now_ns - begin + 1) / self._SLICE_NS) * self._SLICE_NS
        waits_ns = 0.0 if passed + 1 <= self._per_ns * whole_ns else begin + whole_ns - self._now_ns
        over = (self._now_ns + waits_ns - begin) // self._SLICE_NS
        passed = max(0.0, passed + 1 - self._per_ns * over * self._SLICE_NS)
        begin += over * self._SLICE_NS
        self._slices[reads] = begin, self._now_ns + waits_ns + self._SLICE_NS, passed
        return waits_ns


@pytest.mark.parametrize("late_share", [0.0, 0.002, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_control_group_deals_out_in_slices_comes_back(seed: int, late_share: float) -> None:
    found = device_buckets(SlicedSubject(400.0, late_share, seed), seed, writes=True)
    limits = [limit for one in found for limit in one.limits]
    assert [(limit.op, limit.unit) for limit in limits] == [("read", "ops_s"), ("write", "ops_s")]
    for limit in limits:
        assert limit.per_s == pytest.approx(400, rel=0.02)
        assert limit.burst <= 40


def test_what_was_held_out_of_a_limited_device_is_asked_for_as_long_again(tmp_path: Path) -> None:
    """Credit serves short loops and not long ones: the errors that a fit states are those that validation finds."""
    throttle = [{"ops_s": 2000.0, "burst_ops": 1000}]
    fitted = fit_model(KNOWN | {"throttle": throttle}, CAPACITY, FitRequest("limited", 20_000_000_000, quick=True))
    write_file(tmp_path / "limited.toml", toml_text(fitted.document).encode())
    found = {one.figure.name: one for one in compare_published(str(tmp_path / "limited.toml"))}
    assert len(found) == len(fitted.held_out)
    for held in fitted.held_out:
        again = found[held.situation.name]
        assert [turn.measure for turn in again.figure.turns] == [turn.elapsed_ns for turn in held.measured.turns]
        # Mixes are drawn anew, a few hundred requests a turn.
        assert again.error_percent == pytest.approx(held.rate_error_percent, abs=5), held.situation.name
    # Credit of 1000 is most of what a second has: without the time that was asked for, these would be far off.
    assert max(one.figure.value for one in found.values()) > 2500


@pytest.mark.slow
def test_credit_that_lasts_an_hour_is_seen_when_it_is_used_up(tmp_path: Path) -> None:
    """A cloud's volume: 3,000 a second from 5.4 million credits, and then 1,500."""
    volume = load_device("cloud-gp2", tmp_path)
    asked = FitRequest("volume", 60_000_000_000, quick=True, kind="table", drain_ns=4_000_000_000_000)
    fitted = fit_model(volume.parameters, volume.capacity_bytes, asked)
    assert fitted.kept is not None
    (found,) = cast(list[dict[str, float]], fitted.document["throttle"])
    assert found == {"ops_s": pytest.approx(1500, rel=0.02), "burst_ops": pytest.approx(5.4e6, rel=0.1)}
    busy = Situation("read", "random", 4 * 1024, 32)
    for initial, rate in (("full", 3000), ("empty", 1500)):
        device = model_of(fitted) | {"throttle": [found | {"initial": initial}]}
        answer = ModelSubject(device).ask(Slot(busy, 0, 0, 10_000_000_000))
        assert sample_of(busy, 0, answer).rate_per_s == pytest.approx(rate, rel=0.02)
    # The same from what was kept.
    file = tmp_path / "volume.parquet"
    file.write_bytes(fitted.kept.parquet())
    assert fit_kept(KeptMeasurements.read(file), "table").document["throttle"] == fitted.document["throttle"]


def test_what_falls_by_itself_is_no_credit() -> None:
    def limit(rates: list[int]) -> RateLimit | None:
        ends = [10**9 * (second + 1) for second in range(len(rates))]
        return Drain(0, 0, tuple(ends), tuple(rates)).limit()

    noisy = random.Random(1)
    steady = [round(noisy.gauss(1000, 30)) for _ in range(120)]
    fallen = [*steady, *(round(noisy.gauss(400, 20)) for _ in range(120))]
    found = limit(fallen)
    assert found is not None
    assert (found.per_s, found.burst) == (pytest.approx(400, rel=0.02), pytest.approx(72_000, rel=0.02))
    assert limit(steady) is None
    assert limit([1000 - 3 * second for second in range(240)]) is None
    assert limit([*steady, *([0] * 5)]) is None
    assert limit([1000] * 5) is None


def test_a_mix_is_known_by_what_did_not_wait_at_a_limit() -> None:
    """Reads among writes that are held come in lumps, and some wait at a limit of reads that they do not reach."""
    limit = RateLimit("read", "ops_s", 400.0, (398.0, 402.0), 19, ())

    def mix(waits: int) -> Measured:
        times = Histogram(np.array([100_000, 60_000_000]), np.array([100 - waits, waits]))
        mean_ns = float((times.value_ns * times.count).sum() / 100)
        asked = Situation("read", "random", 4096, 16, reads=0.3)
        return Measured(asked, (Sample(asked, 0, 100, 500_000_000, mean_ns, mean_ns, times),))

    eased = relieved_mixes([mix(20)], [limit])[0]
    assert eased.turns[0].mean_ns == 100_000
    # Where nobody waits, and where no limit is of its kind, it is as it was.
    steady, held = mix(0), mix(20)
    assert relieved_mixes([steady], [limit])[0] is steady
    assert relieved_mixes([held], [replace(limit, op="write")])[0] is held
    # One that comes as often as the limit lets it is left out.
    assert relieved_mixes([held], [replace(limit, per_s=200.0)]) == []


class BimodalSubject:
    """A device that serves each request in 100 us, but one turn of some situations in a tenth of that."""

    def __init__(self, fast_turn: int) -> None:
        self._slow, self._fast = (
            ModelSubject(KNOWN | {"read_us": us, "write_us": us, "servers": 1}) for us in (100.0, 10.0)
        )
        self._fast_turn = fast_turn
        self.asked: list[Slot] = []

    def ask(self, slot: Slot) -> CellAnswer:
        self.asked.append(slot)
        return (self._fast if slot.turn == self._fast_turn else self._slow).ask(slot)


@pytest.mark.parametrize("fast_turn", [0, 1, 2])
def test_of_turns_that_are_unlike_the_two_that_are_alike_are_fitted(fast_turn: int) -> None:
    fitted_one, held_out = (Situation("read", "random", 4096, 2, held_out=held) for held in (False, True))
    plan = [Slot(one, turn, 0, 10_000_000) for turn in range(2) for one in (fitted_one, held_out)]
    subject = BimodalSubject(fast_turn)
    found = {one.situation: one for one in together(measured_samples(subject, plan, Silent()))}
    thirds = [slot.situation for slot in subject.asked if slot.turn == 2]
    assert thirds == ([] if fast_turn == 2 else [fitted_one])
    rates = [turn.rate_per_s for turn in found[fitted_one].turns]
    assert len(rates) == 2 and max(rates) < 1.1 * min(rates)
    # What is held out is as it was, or the error that is stated would be that of a steadier device.
    apart = found[held_out].turns
    assert len(apart) == 2 and (fast_turn == 2 or apart[fast_turn].rate_per_s > 5 * apart[1 - fast_turn].rate_per_s)
