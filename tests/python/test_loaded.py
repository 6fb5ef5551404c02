"""A run under load: nothing begins without it, nothing of it is left behind, and one that fails ends the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
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
    told = r"--loaded-by: .*no\.fio: cannot be read"
    with pytest.raises(InputError, match=told), under_load("no.fio", [], StopFlag(), Progress()):
        pytest.fail("not loaded")


def test_a_model_is_no_target_of_a_load() -> None:
    told = "cannot load 'sim', which is a model"
    with pytest.raises(InputError, match=told), under_load("quickstart", ["sim"], StopFlag(), Progress()):
        pytest.fail("not loaded")


def test_a_load_goes_when_its_run_is_killed(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(JOB.replace("FILE", str(tmp_path / "file")).replace("runtime=1s", "runtime=1000s"), encoding="utf-8")
    code = (
        "import sys, time; from raidlab.run.loaded import under_load; from raidlab.run.interrupt import StopFlag;"
        "from raidlab.run.progress import Progress\n"
        "with under_load(sys.argv[1], [], StopFlag(), Progress()):\n    print('loaded', flush=True); time.sleep(1000)"
    )
    command, place = [sys.executable, "-c", code, str(job)], {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=place) as killed:
        assert killed.stdout is not None and killed.stdout.readline() == "loaded\n"
        assert _processes_of(job) > 1
        assert list(tmp_path.glob("raidlab-load-*"))
        killed.kill()
    for _ in range(600):
        if _processes_of(job) == 0:
            assert not list(tmp_path.glob("raidlab-load-*"))
            return
        time.sleep(0.1)
    pytest.fail("the load goes on")


def _processes_of(job: Path) -> int:
    """How many processes name a job file in their arguments."""
    found = 0
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += str(job).encode() in process.read_bytes().split(b"\0")
    return found


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
    # Beside a load and on a machine that stalls no request at all may end within 30 ms.
    text = small_study.read_text(encoding="utf-8")
    assert 'duration = "30ms"' in text
    small_study.write_text(text.replace('duration = "30ms"', 'duration = "700ms"'), encoding="utf-8")
    words = ["run", str(small_study), "--quick", "--out", "runs", "--on", "./box/", "--loaded-by"]
    command = [sys.executable, "-m", "raidlab", *words, str(small_study)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    assert "loads the targets from now on" in done.stderr and "% of the time" in done.stderr
    assert list((tmp_path / "box").iterdir()) == []
    facts = json.loads(next((tmp_path / "runs").glob("*/run.json")).read_text(encoding="utf-8"))
    assert facts["argv"][-2:] == ["--loaded-by", str(small_study)]
