"""Emulated disks: a study on them, what is refused, the check of lateness. Nothing depends on the machine's speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from raidlab import _core
from raidlab.analysis.checks import run_checks
from raidlab.api import analyse, run_study, write_report
from raidlab.cli.endings import exit_code
from raidlab.errors import EXIT_INVALID_RESULT, InputError
from raidlab.report.sections import target_title
from raidlab.results import Run, load_run
from raidlab.run.interrupt import StopFlag
from raidlab.run.runner import InlineRunner
from raidlab.study import load_study

# Time goes fast and the host is late as it pleases: all that is looked at holds however late it is.
STUDY = """
name = "emulation"
title = "Disks in hand"
on = ["emulated"]

[[array]]
name = "raid0"
tree = "raid0(4, chunk=16KiB)"

[[array]]
name = "raid5"
tree = "raid5(5, chunk=16KiB)"

[[workload]]
name = "mixed"
read = 0.5
size = "4KiB"

[load]
depths = [1, 4]

[[compare]]
group = "all"
title = "All"
reference = "raid0"
equal = "user_capacity"

[sim]
device = { kind = "fixed", capacity_bytes = 4194304, sector_bytes = 4096, read_us = 100, write_us = 100 }
measure = { requests = 200 }

[emulated]
speed = 200
repeats = 1
warmup = { requests = 50 }
measure = { requests = 200 }
"""


def study(folder: Path, *changes: tuple[str, str]) -> Path:
    """The study in a file, with some text replaced."""
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "study.toml"
    file.write_text(text, encoding="utf-8")
    return file


def cell(**more: Any) -> str:
    """A cell over one emulated member."""
    device = {"kind": "fixed", "capacity_bytes": 1 << 20, "read_us": 100, "write_us": 100}
    request = {
        "engine": "live",
        "seed": 3,
        "tree": json.loads(_core.parse_tree("raid0(2, chunk=16KiB)")),
        "members": [{"kind": "emulated", "device": device}],
        "load": {"kind": "closed", "depth": 2},
        "workload": {
            "read": 0.5,
            "size": {"kind": "fixed", "bytes": 4096},
            "address": {"kind": "uniform"},
            "align": 4096,
        },
        "measure": {"requests": 100},
        "speed": 100.0,
    }
    return json.dumps({**request, **more})


@pytest.fixture(scope="module")
def emulated_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("emulated")
    return run_study(study(folder), on=["sim", "emulated"], out=folder / "runs")


def test_a_cell_answers_in_the_words_of_the_simulator() -> None:
    answer = _core.run_cell(cell(), None)
    assert answer["facts"]["engine"]["interface"] == "emulated"
    assert answer["facts"]["engine"]["speed"] == 100.0
    lateness = answer["facts"]["engine"]["lateness"]
    operations = sum(member["reads"] + member["writes"] for member in answer["members"])
    assert lateness["count"] == operations
    assert lateness["mean_service_ns"] == 100_000
    assert sum(member["busy_ns"] for member in answer["members"]) == operations * 100_000
    assert answer["stages"]["accesses"] == operations / answer["requests"]
    assert [check["name"] for check in answer["checks"]] == ["lateness"]
    verdict = "INVALID" if lateness["p99_ns"] > 2_000 else "PASS"
    assert answer["checks"][0]["verdict"] == verdict


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"speed": 0}, "speed"),
        (
            {"engine": "sim", "members": [{"kind": "fixed", "capacity_bytes": 1048576, "read_us": 1, "write_us": 1}]},
            "speed",
        ),
        ({"members": [{"kind": "memory", "size_bytes": 1048576}]}, "speed"),
        ({"pair_pricing": "prepaid"}, "pair_pricing"),
        ({"content": "verify"}, "content"),
    ],
)
def test_what_cannot_be_emulated_is_refused_by_its_key(change: dict[str, Any], key: str) -> None:
    with pytest.raises(_core.CellError) as caught:
        _core.run_cell(cell(**change), None)
    assert caught.value.key == key
    assert "accepted" in caught.value.message or key == "content"


def test_a_study_runs_on_emulated_disks_and_says_so(emulated_run: Run) -> None:
    assert emulated_run.facts["status"] == "complete"
    assert list(dict.fromkeys(emulated_run.cells["target"])) == ["sim", "emulated"]
    sim, emulated = (
        emulated_run.cells.filter(pl.col("target") == target).sort("array", "depth") for target in ("sim", "emulated")
    )
    for column in ("array", "depth", "seed", "members", "user_bytes", "member_bytes"):
        assert sim[column].to_list() == emulated[column].to_list(), "the same cells, with the same seeds"
    assert emulated["stage_queue_ns"].null_count() == 0
    analysis = analyse(emulated_run)
    assert target_title(analysis, "emulated") == "Measured on emulated disks: a modelled device, at speed 200"
    assert "Measured on emulated disks" in write_report(emulated_run).read_text(encoding="utf-8")


def test_content_in_a_directory_is_taken_away(tmp_path: Path) -> None:
    where = tmp_path / "content"
    where.mkdir()
    run = run_study(study(tmp_path, ("speed = 200", f'speed = 200\ncontent = "{where}/"')), out=tmp_path / "runs")
    assert run.facts["status"] == "complete"
    assert list(where.iterdir()) == []
    with pytest.raises(InputError, match=r"emulated\.content.*mkdir -p"):
        run_study(study(tmp_path, ("speed = 200", f'content = "{tmp_path}/nowhere/"')), out=tmp_path / "runs")


def rewritten(run: Run, folder: Path, verdicts: list[str]) -> Run:
    """The same run, with other verdicts of the engine on its lateness."""
    copy = folder / "copy"
    copy.mkdir()
    for file in run.folder.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    checks = run.checks
    assert set(checks["check"]) == {"lateness"}
    assert checks.height == len(verdicts)
    checks.with_columns(pl.Series("verdict", verdicts)).write_parquet(copy / "checks.parquet")
    # What is made up has no digest.
    (copy / "run.json").write_text(json.dumps({**run.facts, "tables": {}}), encoding="utf-8")
    return load_run(copy)


def test_lateness_makes_a_run_invalid(emulated_run: Run, tmp_path: Path) -> None:
    late = rewritten(emulated_run, tmp_path, ["PASS", "INVALID", "PASS", "PASS"])
    findings = run_checks(analyse(late))
    (finding,) = [finding for finding in findings if finding.check == "lateness"]
    assert (finding.verdict, finding.target) == ("INVALID", "emulated")
    assert finding.evidence.startswith("1 of 4 cells")
    assert exit_code(late, findings) == EXIT_INVALID_RESULT


def test_a_prompt_run_passes(emulated_run: Run, tmp_path: Path) -> None:
    prompt = rewritten(emulated_run, tmp_path, ["PASS"] * 4)
    (finding,) = [finding for finding in run_checks(analyse(prompt)) if finding.check == "lateness"]
    assert finding.verdict == "PASS"


@pytest.mark.parametrize(
    ("old", "new", "where", "said"),
    [
        ("speed = 200", "speed = 0", "emulated.speed", "at least 0.001"),
        ("speed = 200", "speeed = 2", "emulated.speeed", "did you mean 'speed'"),
        ("speed = 200", 'content = "disk"', "emulated.content", "'none', 'memory' or a directory"),
        ("speed = 200", 'pair_pricing = "prepaid"', "emulated.pair_pricing", "queued, head"),
        ("speed = 200", 'device = "hdd-7201"', "emulated.device", "hdd-7200"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, where: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        load_study(study(tmp_path, (old, new)))
    (problem,) = caught.value.problems
    assert problem.where == where
    assert said in f"{problem.message}; {problem.accepted}"


def test_the_device_is_that_of_sim_or_its_own(tmp_path: Path) -> None:
    loaded = load_study(study(tmp_path))
    assert loaded.geometry.devices["emulated"] == loaded.geometry.devices["sim"]
    own = load_study(study(tmp_path, ("speed = 200", 'device = "hdd-7200"')))
    assert own.geometry.devices["emulated"].name == "hdd-7200"
    without = STUDY[: STUDY.index("[sim]")]
    (tmp_path / "study.toml").write_text(without, encoding="utf-8")
    with pytest.raises(InputError, match=r"needs a table \[sim\], or a device in \[emulated\]"):
        load_study(tmp_path / "study.toml")


def test_prepaid_pairs_cannot_be_emulated(tmp_path: Path) -> None:
    prepaid = ("measure = { requests = 200 }\n\n[emulated]", 'pair_pricing = "prepaid"\n\n[emulated]')
    with pytest.raises(InputError, match=r"sim.pair_pricing"):
        run_study(study(tmp_path, prepaid), out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists(), "refused before anything is made"
    file = study(tmp_path, prepaid, ("speed = 200", 'speed = 200\npair_pricing = "head"'))
    assert run_study(file, out=tmp_path / "runs").facts["status"] == "complete"


@pytest.mark.parametrize(
    ("late", "median_ns", "runs", "verdict"),
    [
        ([1, 0], 100, 2, "PASS"),
        ([1, 1, 1], 100, 3, "INVALID"),
        ([1], 9_000, 1, "INVALID"),
        ([0], 100, 1, "PASS"),
    ],
)
@pytest.mark.parametrize("speed", [None, 20.0])
def test_a_cell_that_was_late_for_a_moment_is_run_again_slower_and_says_so(
    late: list[int], median_ns: int, runs: int, verdict: str, speed: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(request: str, *_: object) -> dict[str, Any]:
        asked.append(request)
        said = "INVALID" if late[len(asked) - 1] else "PASS"
        return {
            "requests": 1,
            "checks": [{"name": "lateness", "verdict": said, "evidence": "so late.", "mend": ""}],
            "facts": {"engine": {"lateness": {"p50_ns": median_ns, "mean_service_ns": 100_000}}},
        }

    monkeypatch.setattr("raidlab.run.runner.run_request", answer)
    runner = InlineRunner(StopFlag(), tries=3)
    runner.submit("cell", "{}" if speed is None else json.dumps({"speed": speed}))
    done = runner.next_done()
    assert done is not None and len(asked) == runs and runner.again == (runs > 1)
    check = done[1]["checks"][0]
    half = ", each at half the speed of the one before" if speed is not None else ""
    first = "all of them" if verdict == "INVALID" else f"the first {runs - 1}"
    again = f" Run {runs} times{half}: {first} were late." if runs > 1 else ""
    speeds = [json.loads(request).get("speed") for request in asked]
    assert speeds == [speed and speed / 2**number for number in range(runs)]
    assert (check["verdict"], check["evidence"]) == (verdict, f"so late.{again}")
