"""Cells and studies as job files of fio's: the round trip, the approximations, the refusals, and fio's own opinion."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from raidlab.errors import InputError
from raidlab.formats.fio.cells import ImportSettings, import_jobs
from raidlab.formats.fio.export import CannotExportError, export_cell, split_of
from raidlab.formats.fio.options import load_job_file
from raidlab.formats.fio.places import MISSING, FileStatus
from raidlab.formats.fio.result import parse_result
from raidlab.run.to_fio import study_to_fio
from raidlab.study.cell import DirectCell, Limit
from raidlab.study.load import load_study, load_study_text
from raidlab.study.workload import Size, TableSize

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
KIB = 1024


def cell(**changes: Any) -> DirectCell:
    whole: dict[str, Any] = {
        "engine": "direct",
        "seed": 3,
        "targets": [{"kind": "file", "path": "f", "size_bytes": 64 << 20}],
        "workers": 1,
        "interface": "auto",
        "buffered": False,
        "compressible_percent": 0,
        "destroy": [],
        "load": {"kind": "closed", "depth": 8},
        "workload": {
            "read": 1.0,
            "size": {"kind": "fixed", "bytes": 4096},
            "address": {"kind": "uniform"},
            "align": 4096,
        },
        "warmup": {},
        "measure": {"duration": 1_000_000_000},
    }
    workload = {**whole["workload"], **changes.pop("workload", {})}
    return DirectCell.model_validate({**whole, **changes, "workload": workload})


def read_back(folder: Path, text: str) -> DirectCell:
    file = folder / "job.fio"
    file.write_text(text, encoding="utf-8")
    (group,) = import_jobs(load_job_file(file), ImportSettings(), lambda _path: FileStatus(MISSING)).groups
    (lane,) = group
    return lane.cell


@st.composite
def _cells(draw: st.DrawFn) -> DirectCell:
    """Cells that fio can say exactly."""
    unit = draw(st.sampled_from([512, 4096, 8192]))
    split = draw(st.lists(st.integers(1, 16), min_size=1, max_size=4, unique=True))
    if len(split) == 1:
        lengths, size = [unit * split[0]], {"kind": "fixed", "bytes": unit * split[0]}
    else:
        cuts = sorted(draw(st.sets(st.integers(1, 99), min_size=len(split) - 1, max_size=len(split) - 1)))
        weights = [float(high - low) for low, high in zip([0, *cuts], [*cuts, 100], strict=True)]
        lengths = [unit * part for part in split]
        size = {"kind": "table", "bytes": lengths, "weights": weights}
    kind = draw(
        st.sampled_from(["uniform", "zipf", "sequential", "strided"] if len(split) == 1 else ["uniform", "zipf"])
    )
    align = unit * draw(st.integers(1, 4))
    places: dict[str, tuple[dict[str, Any], int]] = {
        "uniform": ({"kind": "uniform"}, align),
        "zipf": ({"kind": "zipf", "theta": draw(st.sampled_from([0.5, 0.99, 1.2]))}, min(lengths)),
        "sequential": ({"kind": "sequential", "streams": 1}, math.gcd(*lengths)),
        "strided": ({"kind": "strided", "stride": lengths[0] + unit}, 512),
    }
    address, align = places[kind]
    ordered = kind in ("sequential", "strided")
    workers = 1 if ordered else draw(st.integers(1, 4))
    share = draw(st.sampled_from([0.0, 1.0]) if ordered else st.integers(0, 100).map(lambda percent: percent / 100))
    workload = {"read": share, "size": size, "address": address, "align": align}
    depth = workers * draw(st.integers(1, 64))
    load: dict[str, Any] = {"kind": "closed", "depth": depth}
    duration = {"duration": draw(st.integers(1, 10**7)) * 1000}
    requests = {"requests": workers * draw(st.integers(1, 10**6))}
    only_fixed = [requests, {**requests, **duration}] if len(split) == 1 else []
    common = math.gcd(*lengths, align, address.get("stride", 0))
    sector = {"sector_bytes": 512} if common % 4096 else {}
    return cell(
        **sector,
        seed=draw(st.integers(0, 2**63 - 1)),
        workers=workers,
        load=load,
        workload=workload,
        buffered=draw(st.booleans()),
        compressible_percent=draw(st.integers(0, 100)) if share < 1 else 0,
        warmup=draw(st.sampled_from([{}, duration])),
        measure=draw(st.sampled_from([duration, *only_fixed])),
    )


@given(wanted=_cells())
def test_a_cell_that_fio_can_say_comes_back_the_same(tmp_path_factory: pytest.TempPathFactory, wanted: Any) -> None:
    text = export_cell("a job", wanted)
    assert "#" not in text
    assert read_back(tmp_path_factory.getbasetemp(), text) == wanted


@pytest.mark.parametrize(
    "changes",
    [
        {"targets": [{"kind": "null", "size_bytes": 1 << 30}]},
        {"interface": "threads", "workers": 8},
        {"cpus": [0, 2], "busy": True, "batch": 4, "poll_completions": True},
        {
            "targets": [{"kind": "file", "path": "f", "size_bytes": 3 << 20}],
            "spans": [{"offset_bytes": 1 << 20, "size_bytes": 2 << 20}],
        },
        {"workers": 4, "workload": {"address": {"kind": "sequential", "streams": 1}, "align": 4096}},
        {"sector_bytes": 512, "workload": {"size": {"kind": "fixed", "bytes": 512}}},
    ],
)
def test_other_cells_come_back_the_same(tmp_path: Path, changes: dict[str, Any]) -> None:
    wanted = cell(**changes)
    text = export_cell("a job", wanted)
    assert "#" not in text
    assert read_back(tmp_path, text) == wanted


def test_an_open_loop_comes_back_with_a_comment_on_what_times_mean(tmp_path: Path) -> None:
    for kind, workers in (("poisson", 1), ("uniform", 4)):
        load = {"kind": "open", "arrival": {"kind": kind, "rate_per_s": 1000.0}, "max_in_flight": 32}
        wanted = cell(load=load, workers=workers, workload={"read": 0.25})
        text = export_cell("a job", wanted)
        assert "# rate: fio's times count from submission" in text
        assert "offload" not in text, "fio refuses it with io_uring"
        assert read_back(tmp_path, text) == wanted


def test_a_held_percentile_is_fios_latency_target(tmp_path: Path) -> None:
    hold = {"kind": "hold", "percentile": 90.0, "target": 2_500_000, "initial_depth": 1, "max_depth": 64}
    text = export_cell("a job", cell(load=hold))
    assert "latency_target=2500us\n" in text
    assert "# hold: " in text
    assert read_back(tmp_path, text).load.model_dump() == hold


def test_what_is_approximated_has_a_comment() -> None:
    def comments(**workload: Any) -> str:
        return "\n".join(line for line in export_cell("j", cell(workload=workload)).split("\n") if line.startswith("#"))

    assert "exponential (mean 8192) as 50 classes" in comments(size={"kind": "exponential", "mean": 8192})
    thirds = {"kind": "table", "bytes": [512, 1024, 2048], "weights": [1.0, 1.0, 1.0]}
    assert "whole percentages only" in comments(size=thirds)
    assert "asked for 33.33 %" in comments(read=1 / 3)
    assert "no chains of requests" in comments(task=[{"op": "read"}, {"op": "write", "same_extent_as": 0}])
    assert "no theta of 1" in comments(address={"kind": "zipf", "theta": 1.0}, align=4096)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (
            {"workload": {"address": {"kind": "hot_members", "weights": [1], "chunk": 4096}}},
            "workload.address.kind",
        ),
        ({"workload": {"address": {"kind": "listed", "offset_bytes": [0, 8192]}}}, "workload.address.kind"),
        (
            {"workload": {"address": {"kind": "mixed", "sequential": 0.2, "local": 0.3, "local_sd": 1_000_000}}},
            "workload.address.kind",
        ),
        (
            {"workload": {"address": {"kind": "aligned_stripe", "stripe": 8192, "chunk": 2048}}},
            "workload.size",
        ),
        ({"workload": {"address": {"kind": "strided", "stride": 512}}}, "workload.address.stride"),
        ({"workers": 2, "workload": {"address": {"kind": "sequential", "streams": 3}}}, "workload.address.streams"),
        ({"interface": "threads", "workload": {"address": {"kind": "sequential"}}}, "interface"),
        ({"workload": {"task": [{"op": "read", "size": {"kind": "fixed", "bytes": 512}}]}}, "workload.task[0].size"),
        (
            {"load": {"kind": "open", "arrival": {"kind": "h2", "rate_per_s": 10.0, "cv2": 4.0}}},
            "load.arrival.kind",
        ),
        ({"targets": [{"kind": "memory", "size_bytes": 1 << 20}]}, "targets[0].kind"),
        ({"targets": [{"kind": "file", "path": "a;b", "size_bytes": 1 << 20}]}, "targets[0].path"),
    ],
)
def test_what_fio_cannot_do_is_refused_with_its_key(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(CannotExportError) as caught:
        export_cell("j", cell(**changes))
    assert caught.value.key == key
    assert caught.value.accepted


@pytest.mark.parametrize(
    "size",
    [
        {"kind": "exponential", "mean": 65536},
        {"kind": "normal", "mean": 65536, "sd": 8192},
        {"kind": "lognormal", "mean": 65536, "sigma": 0.7},
    ],
)
def test_classes_of_sizes_keep_the_mean(size: dict[str, Any]) -> None:
    split, inexact = split_of(TypeAdapter(Size).validate_python(size), 512)
    assert inexact
    assert sum(share for _, share in split) == 100
    assert len(split) <= 64
    assert all(length % 512 == 0 for length, _ in split)
    mean = sum(length * share for length, share in split) / 100
    assert mean == pytest.approx(65536, rel=0.01)


@given(weights=st.lists(st.floats(0.01, 1e6), min_size=1, max_size=60))
def test_percentages_are_whole_and_add_up(weights: list[float]) -> None:
    lengths = [512 * (place + 1) for place in range(len(weights))]
    split, _ = split_of(TableSize(kind="table", bytes=lengths, weights=weights), 512)
    assert sum(share for _, share in split) == 100
    assert all(share > 0 for _, share in split)


def test_a_studys_files(tmp_path: Path, small_study: Path) -> None:
    loaded = load_study(small_study)
    files = study_to_fio(loaded)
    assert [file.name for file in files] == ["small-raid0.fio", "small-raid5.fio", "small-raid10.fio"]
    file = tmp_path / "job.fio"
    file.write_text(files[0].text, encoding="utf-8")
    target = str(tmp_path / "target")
    jobs = load_job_file(file, environment={"TARGET": target})
    groups = import_jobs(jobs, ImportSettings()).groups
    assert [lane.job.title for (lane,) in groups] == [
        f"{workload}, depth {depth}" for workload in ("reads", "writes") for depth in (1, 8, 64)
    ]
    ((lane,), *_) = groups
    assert lane.cell.targets == [{"kind": "file", "path": target, "size_bytes": 64 << 20}]
    assert (lane.cell.warmup, lane.cell.measure) == (Limit(duration=10_000_000), Limit(duration=30_000_000))
    assert "# reads, hold: not written. p90 at 4 times" in files[0].text


def test_a_study_that_fio_cannot_do_is_refused_with_the_workload_and_the_key(small_study: Path) -> None:
    address = 'address = { kind = "hot_members", weights = [1, 2, 1, 1], chunk = "64KiB" }'
    text = small_study.read_text(encoding="utf-8").replace("read = 1.0\n", f"read = 1.0\n{address}\n")
    loaded = load_study_text(text, small_study)
    with pytest.raises(InputError, match=r"workload 'reads': workload\.address\.kind: hot_members"):
        study_to_fio(loaded)
    assert len(study_to_fio(loaded, workloads=["writes"], arrays=["raid0"])) == 1
    with pytest.raises(InputError, match=r"--workload: 'reeds': is not in the study; accepted: reads, writes"):
        study_to_fio(loaded, workloads=["reeds"])


def test_volumes_are_targets(small_study: Path) -> None:
    text = small_study.read_text(encoding="utf-8").replace(
        "raid0(4, chunk=64KiB)", "independent(2*stripe(2, chunk=64KiB))"
    )
    loaded = load_study_text(text, small_study)
    (file,) = study_to_fio(loaded, arrays=["raid0"])
    assert "filename=${TARGET0}:${TARGET1}\nsize=64m\nfile_service_type=random\n" in file.text
    with pytest.raises(InputError, match="has 2 volumes, and 1 targets are given"):
        study_to_fio(loaded, arrays=["raid0"], targets=["/tmp/one"])


@needs_fio
@pytest.mark.slow
def test_fio_accepts_what_is_written(tmp_path: Path) -> None:
    # The study's large requests have sizes of which fio would align none; those are refused.
    small = [f"{size} {kind}" for size in ("individual", "full stripe") for kind in ("reads", "writes")]
    with pytest.raises(InputError, match="fio aligns all requests of a job alike"):
        study_to_fio(load_study("chen1990"), workloads=["large reads"])
    for name, workloads in (("quickstart", []), ("chen1990", small)):
        for file in study_to_fio(load_study(name), workloads=workloads, quick=True):
            (tmp_path / file.name).write_text(file.text, encoding="utf-8")
            targets = {f"TARGET{number}": str(tmp_path / f"t{number}") for number in ["", *range(8)]}
            done = subprocess.run(
                ["fio", "--parse-only", "--warnings-fatal", str(tmp_path / file.name)],
                env={**os.environ, **targets},
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, ""), (file.name, done.stdout)


@needs_fio
@pytest.mark.parametrize(
    "changes",
    [
        {"load": {"kind": "open", "arrival": {"kind": "poisson", "rate_per_s": 500.0}}},
        {"load": {"kind": "hold", "percentile": 90.0, "target": 2_500_000, "initial_depth": 1, "max_depth": 64}},
        {"workload": {"address": {"kind": "zipf", "theta": 1.2}, "align": 4096}},
        {"workload": {"address": {"kind": "strided", "stride": 65536}}},
        {"workload": {"address": {"kind": "sequential", "streams": 2}}, "workers": 1},
        {"workload": {"size": {"kind": "lognormal", "mean": 65536, "sigma": 1.0}}},
        {"cpus": [0], "busy": True, "batch": 4, "poll_completions": True, "warmup": {"duration": 1_500_000}},
        {"interface": "threads", "buffered": True, "measure": {"requests": 8, "duration": 2_000_000_000}},
        {"targets": [{"kind": "file", "path": f"a:{number}", "size_bytes": 1 << 20} for number in (1, 2)]},
        {"workload": {"read": 0.5}, "compressible_percent": 30},
    ],
)
def test_fio_accepts_every_option_that_is_written(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "job.fio").write_text(export_cell("j", cell(**changes)), encoding="utf-8")
    words = ["fio", "--parse-only", "--warnings-fatal", str(tmp_path / "job.fio")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@needs_fio
def test_fio_runs_what_is_written(tmp_path: Path) -> None:
    sizes = {"kind": "exponential", "mean": 16384}
    wanted = cell(
        targets=[{"kind": "file", "path": str(tmp_path / "f"), "size_bytes": 4 << 20}],
        workload={"read": 0.5, "size": sizes, "address": {"kind": "uniform"}, "align": 512},
        buffered=True,
        interface="threads",
        load={"kind": "closed", "depth": 2},
        measure={"requests": 2000},
        compressible_percent=50,
    )
    (tmp_path / "job.fio").write_text(export_cell("j", wanted), encoding="utf-8")
    words = ["fio", "--output-format=json", str(tmp_path / "job.fio")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = parse_result(done.stdout)
    assert result.all.requests == pytest.approx(2000, rel=0.1)
    assert result.all.bytes / result.all.requests == pytest.approx(16384, rel=0.15)
    share = sum(job.read.requests for job in result.jobs) / result.all.requests
    assert share == pytest.approx(0.5, abs=0.1)
