"""`kill -9` at random moments of `raidlab run`: is what was measured there, whole, and does the run go on?

Purpose: a run folder must survive whatever ends the process that writes it. For each target (the simulator, files on a
real clock) one run is left alone, to know how long it takes and what its tables are. Then, so many times, a run of the
same seed is killed at a moment drawn evenly over that time, from the start of Python to the writing of the tables.

Verdict, for each kill:

- readable: the folder opens, or nothing had been written of it yet (then there is nothing to lose);
- whole: every cell in it is a whole one: in the simulator it equals that of the run left alone, live its histograms
  hold as many requests as it counts;
- finished: `raidlab run --resume` runs the rest. Half of these are killed once more on their way. In the simulator all
  tables equal, byte for byte, those of the run left alone; live every cell is there once, those from before the kill
  are unchanged, and no member files are left.

With --full-disk (root), a run in a file system of so many KiB instead, for several sizes: it must end with code 1 and
one error, keep what it has, and go on once there is room.

    python benches/kill/run.py [--kills 25] [--seed 1] [--on sim --on files] [--full-disk] [--json FILE]

Ends with 0 when all hold, 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from raidlab import load_run
from raidlab.errors import RaidlabError
from raidlab.results import Run
from raidlab.results.parts import first_facts, read_parts
from raidlab.results.tables import TABLES

STUDY = """
name = "kill"
title = "A run that is killed"
array = [{ name = "raid0", tree = "raid0(4, chunk=64KiB)" }, { name = "raid5", tree = "raid5(5, chunk=64KiB)" }]
workload = [{ name = "reads", read = 1.0, size = "8KiB" }, { name = "writes", read = 0.0, size = "8KiB" }]
compare = [{ group = "all", title = "Both", reference = "raid0", equal = "user_capacity" }]

[load]
depths = [1, 8, 32]
hold = { percentile = 90, target = { times_idle = 4, of = "raid0" }, max_depth = 32 }

[sim]
device = "hdd-7200-bare"
measure = { requests = 4000 }
repeats = 2

[live]
member_size = "8MiB"
warmup = { duration = "5ms" }
measure = { duration = "50ms" }
repeats = 2
"""
KEYS = ["target", "array", "workload", "load", "depth", "rate_per_s", "repeat"]
PATIENCE_S = 300
FULL_KIB = (64, 96, 128, 192, 256, 384, 512, 768)


class Target:
    """What is run, where, and what it gives when it is left alone."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.disks = folder / "disks"
        self.disks.mkdir(parents=True)
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        self.words = ["study.toml", "--seed", "1", "--on", "sim" if name == "sim" else f"{self.disks}/"]
        began = time.monotonic()
        done = self.raidlab("run", *self.words, "--out", "alone")
        self.seconds = time.monotonic() - began
        if done.returncode not in (0, 3):
            sys.exit(f"{name}: the run that was left alone failed\n{done.stderr}")
        self.alone = load_run(next((folder / "alone").iterdir()))

    def raidlab(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        command = [sys.executable, "-m", "raidlab", *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    def killed(self, seconds: float, *words: str) -> bool:
        """Run a command and kill it after so many seconds; whether it was still there."""
        command = [sys.executable, "-m", "raidlab", *words]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        return process.wait() < 0


def check_whole(target: Target, run: Run) -> None:
    """Every cell that is there is a whole one."""
    cells = run.cells
    assert not cells["interrupted"].any(), "a cell is there that did not run to its end"
    counted = run.histograms.filter(pl.col("time") == "response").group_by("cell").agg(pl.col("count").sum())
    joined = cells.join(counted, on="cell", how="left")
    assert (joined["count"] == joined["all_requests"]).all(), "a histogram lacks requests"
    if target.name == "sim":
        theirs = target.alone.cells.join(cells.select(KEYS), on=KEYS, how="semi").drop("cell")
        assert theirs.equals(cells.drop("cell")), "a cell differs from that of the run left alone"


def check_finished(target: Target, folder: Path, before: pl.DataFrame | None) -> None:
    """The run is complete, and what was there before the kill is there still."""
    run = load_run(folder)
    assert run.facts["status"] == "complete", run.facts["status"]
    assert not (folder / "parts.jsonl").exists(), "parts of a complete run are left"
    if target.name == "sim":
        for name in TABLES:
            file = f"{name}.parquet"
            assert (folder / file).read_bytes() == (target.alone.folder / file).read_bytes(), f"{file} differs"
        return
    assert run.cells.select(KEYS).is_unique().all(), "a cell is there twice"
    swept = [
        frame.filter(pl.col("purpose") != "search").select(KEYS).sort(KEYS) for frame in (run.cells, target.alone.cells)
    ]
    assert swept[0].equals(swept[1]), "cells are lacking"
    if before is not None:
        kept = run.cells.join(before.select(KEYS), on=KEYS, how="semi").drop("cell").sort(KEYS)
        assert kept.equals(before.drop("cell").sort(KEYS)), "cells from before the kill have changed"
    assert not list(target.disks.iterdir()), "member files are left"


def one_kill(target: Target, rng: random.Random, number: int) -> dict[str, object]:
    """Kill one run, look at it, go on with it."""
    out = target.folder / f"runs-{number}"
    at_s = rng.uniform(0, target.seconds)
    record: dict[str, object] = {"target": target.name, "at_s": round(at_s, 3), "wrong": None}
    record["killed"] = target.killed(at_s, "run", *target.words, "--out", str(out))
    folders = sorted(out.iterdir()) if out.is_dir() else []
    if (
        not folders
        or not list(folders[0].iterdir())
        or not (first_facts(folders[0]) or (folders[0] / "run.json").exists())
    ):
        return {**record, "cells": None}
    folder = folders[0]
    try:
        # Half of them are looked at in between, which changes nothing; the others go on at once.
        before = None
        if rng.random() < 0.5:
            run = load_run(folder)
            check_whole(target, run)
            before = run.cells
        record["cells"] = before.height if before is not None else _cells(folder)
        if rng.random() < 0.5:
            record["killed_again"] = target.killed(
                rng.uniform(0, target.seconds), "run", "--resume", str(folder), "--out", str(out)
            )
            check_whole(target, load_run(folder))
        done = target.raidlab("run", "--resume", str(folder), "--out", str(out))
        assert done.returncode in (0, 3), f"resuming ended with {done.returncode}: {done.stderr}"
        check_whole(target, load_run(folder))
        check_finished(target, folder, before)
    except (AssertionError, RaidlabError) as error:
        record["wrong"] = f"{type(error).__name__}: {error}"
    else:
        shutil.rmtree(out)
    return record


def _cells(folder: Path) -> int:
    return len(read_parts(folder)[1]) if (folder / "parts.jsonl").exists() else load_run(folder).cells.height


@contextmanager
def small_disk(place: Path, kib: int) -> Iterator[None]:
    """A file system of so many KiB, for as long as the context lasts."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)
        place.rmdir()


def one_full_disk(target: Target, kib: int) -> dict[str, object]:
    """Fill the disk in mid-run, make room, go on."""
    out = target.folder / f"small-{kib}"
    record: dict[str, object] = {"target": target.name, "kib": kib, "wrong": None}
    with small_disk(out, kib):
        try:
            done = target.raidlab("run", *target.words, "--out", str(out))
            if done.returncode in (0, 3):
                # The run fits, and only its report may not.
                return {**record, "cells": load_run(next(out.iterdir())).cells.height}
            errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            folders = list(out.iterdir())
            record |= {"code": done.returncode, "error": errors[0] if errors else done.stderr[-200:]}
            assert len(errors) == 1 and "No space left on device" in errors[0], done.stderr
            assert "Traceback" not in done.stderr, done.stderr
            if not folders:
                # It was full before the first cell was written: there is nothing to lose, and no folder is left.
                assert done.returncode in (1, 2), f"nothing could be written, and the code is {done.returncode}"
                return {**record, "cells": None}
            assert done.returncode == 1, f"the code is {done.returncode}"
            record["cells"] = _cells(folders[0])
            subprocess.run(["mount", "-o", "remount,size=64m", str(out)], check=True)
            again = target.raidlab("run", "--resume", str(folders[0]), "--out", str(out))
            assert again.returncode in (0, 3), again.stderr
            check_finished(target, folders[0], None)
        except (AssertionError, RaidlabError) as error:
            record["wrong"] = f"{type(error).__name__}: {error}"
    return record


def main() -> int:
    """Kill, and judge."""
    words = argparse.ArgumentParser(description="Kill runs, and see that nothing is lost.")
    words.add_argument("--kills", type=int, default=25, help="how many a target")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--on", action="append", choices=["sim", "files"])
    words.add_argument("--full-disk", action="store_true", help="fill disks instead; needs root")
    words.add_argument("--json", type=Path)
    asked = words.parse_args()
    records = []
    with tempfile.TemporaryDirectory(prefix="raidlab-kill-") as place:
        for name in asked.on or ["sim", "files"]:
            target = Target(name, Path(place) / name)
            print(f"{name}: {target.alone.cells.height} cells in {target.seconds:.1f} s when left alone", flush=True)
            rng = random.Random(f"{asked.seed} {name}")
            if asked.full_disk:
                mine = [one_full_disk(target, kib) for kib in FULL_KIB]
            else:
                mine = [one_kill(target, rng, number) for number in range(asked.kills)]
            records += mine
            _print(name, mine)
    if asked.json:
        asked.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return 1 if any(record["wrong"] for record in records) else 0


def _print(name: str, records: list[dict[str, object]]) -> None:
    for record in records:
        if record["wrong"] or "kib" in record:
            print(f"  {record}")
    wrong = sum(record["wrong"] is not None for record in records)
    empty = sum(record.get("cells") is None for record in records)
    if "kib" in records[0]:
        print(f"{name}: {len(records)} disks, {empty} too small for a cell, {wrong} wrong", flush=True)
        return
    ended = sum(not record["killed"] for record in records)
    again = sum(bool(record.get("killed_again")) for record in records)
    print(
        f"{name}: {len(records)} kills, of which {ended} came after the end, {empty} before anything was written; "
        f"{again} killed again while they went on; {wrong} wrong",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
