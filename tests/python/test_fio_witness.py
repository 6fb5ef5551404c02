"""fio beside raidlab's engine: pairs, ratios, what is recorded, and what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.results.facts import ToolPair
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Silent
from raidlab.run.witness import FIGURES, compare_with_fio, fio_version, ratios_of
from raidlab.study.cell import DirectCell
from verdicts import assert_ended

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
MIB = 1 << 20


def cell(target: dict[str, Any], **workload: Any) -> DirectCell:
    wanted = {
        "engine": "direct",
        "seed": 1,
        "targets": [target],
        "interface": "auto",
        "load": {"kind": "closed", "depth": 4},
        "workload": {
            "read": 1.0,
            "size": {"kind": "fixed", "bytes": 4096},
            "address": {"kind": "uniform"},
            "align": 4096,
            **workload,
        },
        # Long enough for both tools to finish something on a disk or machine that is kept busy by others.
        "measure": {"duration": 500_000_000},
    }
    return DirectCell.model_validate(wanted)


def file_at(path: Path) -> dict[str, Any]:
    return {"kind": "file", "path": str(path), "size_bytes": 4 * MIB}


@pytest.fixture
def loop_device(tmp_path: Path, loops: Callable[[Path], str]) -> str:
    image = tmp_path / "image"
    image.write_bytes(os.urandom(4 * MIB))
    return loops(image)


def pair(raidlab: float, fio: float) -> ToolPair:
    return {"raidlab": dict.fromkeys(FIGURES, raidlab), "fio": dict.fromkeys(FIGURES, fio), "first": "fio"}


def test_ratios_are_of_pairs() -> None:
    iops = ratios_of([pair(2, 1), pair(6, 2), pair(4, 4)])[0]
    assert (iops["figure"], iops["raidlab"], iops["fio"], iops["ratio"]) == ("iops", 4, 2, 2)
    assert iops["low"] is not None
    assert iops["high"] is not None
    # The mean of the logarithms of 2, 3 and 1.
    assert iops["low"] < 6 ** (1 / 3) < iops["high"]
    (alone, *_) = ratios_of([pair(2, 1)])
    assert (alone["ratio"], alone["low"], alone["high"]) == (2, None, None)


def test_without_fio_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"--witness: fio is not installed; accepted: .*apt-get install fio"):
        compare_with_fio(cell(file_at(tmp_path / "f")))
    other = tmp_path / "fio"
    other.write_text("#!/bin/sh\necho fio-2.2\n", encoding="utf-8")
    other.chmod(0o755)
    with pytest.raises(InputError, match=r"says 'fio-2\.2'"):
        fio_version()
    assert not (tmp_path / "f").exists()


@needs_fio
def test_both_run_in_alternation_and_all_is_recorded(tmp_path: Path) -> None:
    witness = compare_with_fio(cell(file_at(tmp_path / "f"), read=0.5), pairs=3, seed=4)
    assert witness["tool"].startswith("fio-3")
    assert (len(witness["pairs"]), len(witness["commands"]), witness["interrupted"]) == (3, 6, False)
    assert {pair["first"] for pair in witness["pairs"]} == {"raidlab", "fio"}
    assert [command.split("(")[0].split()[0] for command in witness["commands"]].count("fio") == 3
    assert "rw=randrw\nrwmixread=50\nbs=4k\n" in witness["job"]
    assert "refill_buffers\n" in witness["job"]
    # In huge pages, as raidlab's: large requests are not cut in two below the tool.
    assert "iomem_align=2m\n" in witness["job"]
    assert [ratio["figure"] for ratio in witness["ratios"]] == list(FIGURES)
    assert all(one["low"] and one["high"] and one["low"] <= one["high"] for one in witness["ratios"])
    seeds = {re.search(r'"seed": (\d+)', command)[1] for command in witness["commands"] if "seed" in command}
    assert len(seeds) == 3
    json.dumps(witness)
    # fio went to the same file and left its end, where raidlab's mark is: the file is still raidlab's to write.
    compare_with_fio(cell(file_at(tmp_path / "f"), read=0.0), pairs=1)
    assert [file.name for file in tmp_path.iterdir()] == ["f"]


@needs_fio
def test_nothing_can_be_witnessed_too(tmp_path: Path) -> None:
    witness = compare_with_fio(cell({"kind": "null", "size_bytes": 64 * MIB}), pairs=1)
    assert "ioengine=null" in witness["job"]
    assert witness["ratios"][0]["raidlab"] > 0


@needs_fio
def test_approximations_are_told(tmp_path: Path) -> None:
    sizes = {"kind": "exponential", "mean": 16384}
    place = {"kind": "uniform"}
    witness = compare_with_fio(cell(file_at(tmp_path / "f"), size=sizes, address=place), pairs=1)
    assert any("exponential" in difference for difference in witness["differences"])
    hot = {"kind": "hot_members", "weights": [1, 2], "chunk": 4096}
    with pytest.raises(InputError, match=r"--witness: workload\.address\.kind: hot_members"):
        compare_with_fio(cell(file_at(tmp_path / "f"), address=hot))


@needs_fio
def test_fio_is_never_started_on_what_raidlab_refuses(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"x" * 4 * MIB)
    with pytest.raises(RefusedError, match="was not made by raidlab"):
        compare_with_fio(cell(file_at(mine), read=0.0))
    assert mine.read_bytes() == b"x" * 4 * MIB


@needs_fio
def test_a_device_is_read_and_written_only_when_given_up(loop_device: str) -> None:
    device = {"kind": "block", "path": loop_device}
    assert compare_with_fio(cell(device), pairs=1)["ratios"]
    before = Path(loop_device).read_bytes()
    with pytest.raises(RefusedError):
        compare_with_fio(cell(device, read=0.0), pairs=1)
    assert Path(loop_device).read_bytes() == before
    given_up = cell(device, read=0.0).model_copy(update={"destroy": [loop_device]})
    assert compare_with_fio(given_up, pairs=1)["ratios"]
    assert Path(loop_device).read_bytes() != before


@needs_fio
def test_what_fio_says_when_it_fails_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(CellFailedError, match=r"fio ended with status \d+: .*nosuch"):
        compare_with_fio(cell(file_at(tmp_path / "f")), pairs=1, words=["ioengine=nosuch"])


@needs_fio
def test_an_interruption_keeps_the_pairs_that_are_whole(tmp_path: Path) -> None:
    class AfterTwo(Silent, StopFlag):
        """Raised once two runs are over."""

        done = 0

        def advance(self) -> None:
            self.done += 1
            if self.done == 2:
                self.raise_flag()

    stop = AfterTwo()
    witness = compare_with_fio(cell(file_at(tmp_path / "f")), pairs=3, progress=stop, stop=stop)
    assert (len(witness["pairs"]), witness["interrupted"]) == (1, True)


def cli(*words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from raidlab.cli import main; main()", "measure", *words]
    return subprocess.run(program, capture_output=True, text=True, check=False)


@needs_fio
@pytest.mark.slow
def test_measure_prints_both_and_the_ratio(tmp_path: Path) -> None:
    short = ("--file-size", "4MiB", "--runtime", "500ms", "--warmup", "1ms", "--repeats", "2", "--witness", "fio")
    shown = cli(f"{tmp_path}/", *short)
    assert_ended(shown.returncode, shown.stdout, shown.stderr, 0)
    assert "depth 32: raidlab beside fio-3" in shown.stdout
    assert [line.split()[0] for line in shown.stdout.splitlines()[3:8]] == ["IOPS", "MB/s", "p50", "p90", "p99"]
    assert max(map(len, shown.stdout.splitlines()[1:])) <= 80
    assert "median of the pairs' ratios" in shown.stdout
    document = json.loads(cli("null", *short, "--depth", "1,4", "--json").stdout)
    assert [(one["target"], one["load"]) for one in document["witness"]] == [("null", "depth 1"), ("null", "depth 4")]
    assert all(len(one["pairs"]) == 2 and len(one["commands"]) == 4 for one in document["witness"])
    assert not list(tmp_path.iterdir())


@needs_fio
@pytest.mark.slow
def test_an_open_loop_has_a_witness_too(tmp_path: Path) -> None:
    short = ("--file-size", "4MiB", "--runtime", "200ms", "--warmup", "1ms", "--repeats", "1", "--witness", "fio")
    shown = cli(f"{tmp_path}/", *short, "--rate", "500")
    assert_ended(shown.returncode, shown.stdout, shown.stderr, 0)
    assert "500/s: raidlab beside fio-3" in shown.stdout and "holds up the next arrival" in shown.stdout


@needs_fio
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["null", "--witness", "dd"], "--witness: 'dd': is not a tool that raidlab calls; accepted: fio"),
        (["raid0(2)@memory", "--witness", "fio"], "fio knows no arrays of raidlab's"),
        (["null", "--witness", "fio", "--hold", "p90=1ms"], "--hold: a depth that is searched for"),
        (["null", "--witness", "fio", "--precision", "2%"], "--precision: '2%': has no meaning beside --witness"),
        (["memory", "--witness", "fio"], "--witness: targets[0].kind: memory: fio goes to files and devices"),
    ],
)
def test_what_has_no_witness_is_refused(words: list[str], said: str) -> None:
    done = cli(*words)
    assert done.returncode == 2
    assert said in done.stderr
