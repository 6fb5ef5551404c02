"""Shared pieces of the tests: a small study, and a run of it in the simulator."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import polars as pl
import pytest
from hypothesis import settings

from raidlab.api import run_study
from raidlab.results import Run

# Properties are tried without a clock: how long an example takes says nothing of whether it holds.
settings.register_profile("raidlab", deadline=None)
settings.load_profile("raidlab")

# No test takes what a run of somebody's left in the cache, nor leaves anything there.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="raidlab-tests-cache-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

SMALL_STUDY = """
name = "small"
title = "A small study"
on = ["sim"]

[[array]]
name = "raid0"
tree = "raid0(4, chunk=64KiB)"
group = "equal"

[[array]]
name = "raid5"
tree = "raid5(5, chunk=64KiB)"
group = "equal"

[[array]]
name = "raid10"
tree = "raid10(8, chunk=64KiB)"
group = "equal"

[[workload]]
name = "reads"
read = 1.0
size = "8KiB"

[[workload]]
name = "writes"
read = 0.0
size = "8KiB"

[load]
depths = [1, 8, 64]
hold = { percentile = 90, target = { times_idle = 4, of = "raid0" }, max_depth = 64 }

[sim]
device = "hdd-7200-bare"
warmup = { requests = 200 }
measure = { requests = 1500 }

[live]
member_size = "16MiB"
warmup = { duration = "10ms" }
measure = { duration = "30ms" }
repeats = 1

[[compare]]
group = "equal"
title = "Equal user capacity"
reference = "raid0"
equal = "user_capacity"
"""


def _named_alike() -> str:
    """A study of tables whose groups file names cannot tell apart, and of names that mean something elsewhere."""
    groups = {"A B": ("ink", "currentColor"), "a-b": ("b0", "#1f2328")}
    groups |= {"数据": ("c0", "c1"), "кольцо": ("d0", "d1"), "own": ("e0", "e1")}
    parts = ['name = "names"\ntitle = "Names"\non = ["sim"]']
    for group, arrays in groups.items():
        parts += [f'[[array]]\nname = "{name}"\ngroup = "{group}"\ntree = "raid0(2)"' for name in arrays]
        parts.append(
            f'[[compare]]\ngroup = "{group}"\ntitle = "Table {arrays[0]}"\nreference = "{arrays[0]}"\nequal = "members"'
        )
    for number, array in (("Figure 1 (a)", "ink"), ("Figure 1: a", "b0")):
        parts.append(
            f'[[figure]]\nnumber = "{number}"\ntitle = "Of {array}"\ndraw = "curves"\narrays = ["{array}"]\n'
            'workloads = ["reads"]\nmetrics = ["iops"]'
        )
    parts.append('[[workload]]\nname = "reads"\nread = 1.0\nsize = "8KiB"\n[load]\ndepths = [1, 4]')
    parts.append('[sim]\ndevice = "fixed-100us"\nmeasure = { requests = 200 }')
    return "\n".join(parts)


NAMED_ALIKE_STUDY = _named_alike()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache a test: what another test of the same process simulated is not to change what this one sees."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache" / uuid4().hex))


def unmount(place: Path) -> None:
    """Takes a file system away, which whoever else looked at it may still keep for a moment."""
    for _ in range(200):
        done = subprocess.run(["umount", str(place)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError(done.stderr)


@pytest.fixture
def loops() -> Iterator[Callable[[Path], str]]:
    """Makes loop devices over files, and takes them away; what a test mounts it unmounts itself."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("loop devices need root and losetup")
    made: list[str] = []

    def attach(backing: Path) -> str:
        done = subprocess.run(["losetup", "-f", "--show", str(backing)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no loop device to be had: {done.stderr.strip()}")
        made.append(done.stdout.strip())
        # A loop device keeps the read-only mark that somebody gave it in an earlier life.
        subprocess.run(["blockdev", "--setrw", made[-1]], check=True)
        return made[-1]

    yield attach
    for device in made:
        subprocess.run(["blockdev", "--setrw", device], check=False, capture_output=True)
        subprocess.run(["losetup", "-d", device], check=False, capture_output=True)


@pytest.fixture
def small_study(tmp_path: Path) -> Path:
    """The small study as a file."""
    file = tmp_path / "study.toml"
    file.write_text(SMALL_STUDY, encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The small study, run once in the simulator for all tests that read a run."""
    folder = tmp_path_factory.mktemp("small")
    file = folder / "study.toml"
    file.write_text(SMALL_STUDY, encoding="utf-8")
    return run_study(file, out=folder / "runs", seed=1)


@pytest.fixture(scope="session")
def as_invalid() -> Callable[[Run, Path], Path]:
    """Copies a run into a folder as it would be, had the engine found that its figures must not be used."""

    def copied(run: Run, folder: Path) -> Path:
        shutil.copytree(run.folder, folder)
        row = {"cell": 0, "check": "made_up", "verdict": "INVALID", "evidence": "It is made up.", "mend": "Undo it."}
        pl.DataFrame([row], schema=run.checks.schema).write_parquet(folder / "checks.parquet")
        # The table is another than the one that was written, so that its digest goes too.
        (folder / "run.json").write_text(json.dumps({**run.facts, "tables": {}}), encoding="utf-8")
        return folder

    return copied
