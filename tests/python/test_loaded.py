"""A run under load: nothing begins without it, nothing of it is left behind, and one that fails ends the run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from raidlab.errors import CellFailedError, InputError
from raidlab.run.interrupt import StopFlag
from raidlab.run.loaded import under_load
from raidlab.run.progress import Progress

JOB = "[job]\nfilename=FILE\nsize=1m\nbs=4k\nrw=randread\nruntime=1s\ntime_based\n"


def test_a_study_without_targets_would_load_something_else() -> None:
    told = "--loaded-by: 'quickstart': a study needs targets"
    with pytest.raises(InputError, match=told), under_load("quickstart", [], StopFlag(), Progress()):
        pytest.fail("not loaded")


def test_a_load_that_cannot_be_is_told_before_anything_is_measured() -> None:
    told = r"--loaded-by: 'no\.fio': failed: .*no\.fio"
    with pytest.raises(InputError, match=told), under_load("no.fio", [], StopFlag(), Progress()):
        pytest.fail("not loaded")


def test_a_load_that_fails_later_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, job = StopFlag(), tmp_path / "job.fio"
    job.write_text(JOB.replace("FILE", str(tmp_path / "file")), encoding="utf-8")
    with pytest.raises(CellFailedError, match="--loaded-by"), under_load(str(job), [], stop, Progress()):
        job.unlink()
        for _ in range(600):
            if stop():
                break
            time.sleep(0.1)
    assert stop()


@pytest.mark.slow
def test_a_run_says_what_loaded_it_and_leaves_nothing(tmp_path: Path, small_study: Path) -> None:
    (tmp_path / "box").mkdir()
    words = ["run", str(small_study), "--quick", "--out", "runs", "--on", "./box/", "--loaded-by"]
    command = [sys.executable, "-m", "raidlab", *words, str(small_study)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    assert "loads the targets from now on" in done.stderr and "% of the time" in done.stderr
    assert list((tmp_path / "box").iterdir()) == []
    facts = json.loads(next((tmp_path / "runs").glob("*/run.json")).read_text(encoding="utf-8"))
    assert facts["argv"][-2:] == ["--loaded-by", str(small_study)]
