"""What only the engine can judge is found before anything is made, at the key of the study file that is at fault."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SMALL_STUDY
from raidlab.errors import InputError
from raidlab.run.execute import Execution
from raidlab.run.targets import resolve_targets
from raidlab.study import load_study_text


def _found(text: str, on: str = "sim") -> list[str]:
    with pytest.raises(InputError) as caught:
        Execution(load_study_text(text, Path("small.toml")), resolve_targets([on]), seed=1).prepare()
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("old", "new", "pattern"),
    [
        (
            'size = "8KiB"',
            'size = { kind = "exponential", mean = 1 }',
            r"small.toml:24: workload\[0\].size.mean: 1: 1 bytes are less than one sector .*; accepted: 512 to \d+",
        ),
        (
            'size = "8KiB"',
            'size = { kind = "table", bytes = ["8KiB"], weights = [0] }',
            r"small.toml:24: workload\[0\].size.weights: no weights to draw by .*; accepted: finite numbers",
        ),
        (
            'size = "8KiB"',
            'size = "1TB"',
            r"small.toml:24: workload\[0\].size: '1TB': .*longest request.*; accepted: at most 1073741824 bytes",
        ),
        (
            'size = "8KiB"',
            'size = "8KiB"\naddress = { kind = "hot_members", weights = [0, 0, 0], chunk = "64KiB" }',
            r"small.toml:25: workload\[0\].address.weights: no weights to draw by .*; accepted: finite numbers",
        ),
        (
            'size = "8KiB"',
            'size = "8KiB"\naddress = { kind = "hot_members", weights = [1, 2], chunk = "1000TB" }',
            r"small.toml:25: workload\[0\].address.chunk: '1000TB': .*; accepted: at most \d+ bytes",
        ),
        (
            'size = "8KiB"',
            'size = "8KiB"\naddress = { kind = "sequential", streams = 60000 }\nvolumes = "even"',
            r"small.toml:25: workload\[0\].address.streams: 60000: .*; accepted: at most 65536 in all",
        ),
        (
            'size = "8KiB"',
            'size = "8KiB"\naddress = { kind = "strided", stride = 1 }',
            r"small.toml:25: workload\[0\].address.stride: 1: .*not whole sectors.*; accepted: a multiple of 512 bytes",
        ),
        (
            'size = "8KiB"',
            'size = "8KiB"\naddress = { kind = "strided", stride = "100TB" }',
            r"small.toml:25: workload\[0\].address.stride: '100TB': .*; accepted: at most \d+ bytes",
        ),
        (
            'size = "8KiB"',
            'size = "8KiB"\nalign = 1000',
            r"small.toml:25: workload\[0\].align: 1000: .*not whole sectors.*; accepted: a multiple of 512 bytes",
        ),
        (
            'size = "8KiB"',
            'size = "8KiB"\nalign = "100TB"',
            r"small.toml:25: workload\[0\].align: '100TB': .*; accepted: at most \d+ bytes",
        ),
        (
            'size = "8KiB"',
            'size = "8KiB"\naddress = { kind = "aligned_stripe", stripe = "100KiB", chunk = "64KiB" }',
            r"small.toml:25: workload\[0\].address.stripe: '100KiB': .*; accepted: a multiple of 65536 bytes",
        ),
        (
            'size = "8KiB"',
            'size = "8KiB"\ntask = [{ op = "read" }, { op = "write", size = { kind = "exponential", mean = 2 } }]',
            r"small.toml:25: workload\[0\].task\[1\].size.mean: 2: .*; accepted: 512 to",
        ),
        (
            "measure = { requests = 1500 }",
            "measure = {}",
            r"small.toml:38: sim.measure: says no amount .*; accepted: req",
        ),
    ],
)
def test_a_mistake_only_the_engine_sees_is_one_line_at_its_key(old: str, new: str, pattern: str) -> None:
    roomy = SMALL_STUDY.replace("16MiB", "8TiB").replace("raid10(8, chunk=64KiB)", "independent(4)")
    lines = _found(roomy.replace(old, new, 1))
    assert len(lines) == 1, lines
    assert re.match(pattern, lines[0]), lines[0]


def test_what_is_sound_passes() -> None:
    for on in ("sim", "emulated", "memory", "/tmp/"):
        Execution(load_study_text(SMALL_STUDY, Path("small.toml")), resolve_targets([on]), seed=1).prepare()


def test_members_in_memory_that_bound_raidlabs_own_cost_are_checked_too() -> None:
    text = SMALL_STUDY.replace('member_size = "16MiB"', 'member_size = "64MiB"\nmemory_member_size = "1MiB"')
    lines = _found(text.replace('size = "8KiB"', 'size = "8MiB"', 1), "/tmp/")
    assert len(lines) == 1
    assert re.match(
        r"small.toml:24: workload\[0\].size: '8MiB': .*memory_member_size.*; accepted: at most", lines[0]
    ), lines[0]


def test_nothing_is_made_for_a_study_that_would_not_run(tmp_path: Path) -> None:
    text = SMALL_STUDY.replace('size = "8KiB"', 'size = { kind = "exponential", mean = 1 }', 1)
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    (tmp_path / "work").mkdir()
    for words in (["run", "./study.toml", "--on", "sim", "--on", "./work/"], ["study", "show", "./study.toml"]):
        command = [sys.executable, "-m", "raidlab", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("error: study.toml:24: workload[0].size.mean: 1: ")
        assert sorted(file.name for file in tmp_path.rglob("*")) == ["study.toml", "work"]


def test_sectors_that_only_opening_tells_are_told_at_the_key_too() -> None:
    # A study of requests of 512 bytes, on members whose sectors turn out to be of 4096.
    text = SMALL_STUDY.replace('size = "8KiB"', 'size = "512B"').replace("[live]", "[live]\nsector = 512")
    execution = Execution(load_study_text(text, Path("small.toml")), resolve_targets(["memory"]), seed=1)
    execution.prepare()
    execution._without_small_requests([{"sector_bytes": 512}])
    with pytest.raises(InputError, match=r"workload\[0\].size.*not whole sectors.*; accepted: a multiple of 4096"):
        execution._without_small_requests([{"sector_bytes": 512}, {"sector_bytes": 4096}])


def test_small_requests_are_left_out_where_others_remain() -> None:
    text = SMALL_STUDY.replace("[live]", "[live]\nsector = 512")
    text += '[[workload]]\nname = "small"\nread = 1.0\nsize = "512B"\n'
    execution = Execution(load_study_text(text, Path("small.toml")), resolve_targets(["memory"]), seed=1)
    execution.prepare()
    execution._without_small_requests([{"sector_bytes": 4096}])
    names = [workload.name for workload in execution.loaded.study.workloads_on("live")]
    assert names and "small" not in names
    assert "small" in [workload.name for workload in execution.loaded.study.workloads_on("sim")]
