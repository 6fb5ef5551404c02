"""Does raidlab still compute what it computed before: a digest of every column of every table of many simulated runs.

Purpose: a change that is to alter no figure is held to that. The five published studies on the models of their
hardware, `quickstart` on its simulated disk, and fifty generated studies (`generated.py`) are run with seed 1,
`--quick`; each column of each table becomes a digest, kept in `digests.json`.

    python benches/same-figures/run.py             # compare with what is kept
    python benches/same-figures/run.py --write     # keep what comes out now, with the reason in the commit
    python benches/same-figures/run.py --only generated-7,ou2007

Columns are compared by name; `RENAMED` says what a column was called when the digests were kept. Status 1 and a line a
column that differs.

Invariant: nothing of this machine goes into a digest: only columns that the virtual clock fills, and those whole.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))

import generated  # noqa: E402

KEPT = Path(__file__).resolve().parent / "digests.json"
PUBLISHED = ("chen1990", "hauser1996", "uselton2000", "jlab1998", "ou2007")
RAIDLAB = (sys.executable, "-m", "raidlab")
# The check of a run says INVALID: the figures are there all the same.
ENDED = (0, 3)
# New name of a table, or of `table.column`: the name under which its digest is kept.
RENAMED: dict[str, str] = {}
Digests = dict[str, str]


def digest(column: pl.Series) -> str:
    """What identifies the values of a column: their type, and every one of them in order."""
    found = hashlib.sha256(str(column.dtype).encode())
    for value in column.to_list():
        found.update(repr(value).encode() + b"\0")
    return found.hexdigest()[:20]


def digests(folder: Path) -> Digests:
    """The digest of every column of a run folder's tables, under the name by which it is kept."""
    found = {}
    for file in sorted(folder.glob("*.parquet")):
        table = RENAMED.get(file.stem, file.stem)
        for column in pl.read_parquet(file).get_columns():
            name = f"{table}.{column.name}"
            found[RENAMED.get(name, name)] = digest(column)
    return found


def run(study: str, target: str, seed: int, work: Path) -> Digests:
    """Run a study and take the digests of its tables.

    Raises
    ------
    RuntimeError
        If the run fails.
    """
    out = work / "runs" / Path(study).stem
    words = [*RAIDLAB, "run", study, "--on", target, "--quick", "--seed", str(seed), "--out", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "200"})
    if done.returncode not in ENDED:
        raise RuntimeError(f"{study}: ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    (folder,) = (place for place in out.iterdir() if (place / "cells.parquet").exists() and not place.is_symlink())
    return digests(folder)


def traces(work: Path) -> None:
    """Write the trace of the generated studies in every format."""
    (work / "msr.trace").write_text(generated.trace_lines())
    (work / "disksim_validation.trace").write_text(generated.validation_lines())
    for form in generated.TRACE_FORMATS:
        if (work / f"{form}.trace").exists():
            continue
        words = [*RAIDLAB, "trace", "convert", "msr.trace", "--to", form, "-o", f"{form}.trace"]
        subprocess.run(words, cwd=work, check=True, capture_output=True)


def studies(work: Path) -> dict[str, tuple[str, str]]:
    """Name, study and target of everything that is run."""
    traces(work)
    found = {"quickstart": ("quickstart", "sim")} | {name: (name, "original") for name in PUBLISHED}
    for i in range(generated.COUNT):
        file = work / f"generated-{i}.toml"
        file.write_text(generated.toml_text(generated.study(i)))
        found[file.stem] = (str(file), "sim")
    return found


def differences(kept: dict[str, Digests], found: dict[str, Digests]) -> list[str]:
    """A line for each column that is not what was kept, is new, or is gone."""
    lines = []
    for name, columns in found.items():
        before = kept.get(name)
        if before is None:
            lines.append(f"{name}: nothing is kept of it")
            continue
        for column in sorted(before.keys() | columns.keys()):
            if column not in columns:
                lines.append(f"{name}: {column} is gone")
            elif column not in before:
                lines.append(f"{name}: {column} is new")
            elif before[column] != columns[column]:
                lines.append(f"{name}: {column} differs")
    return lines


def main() -> int:
    """Run, compare or keep; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--write", action="store_true", help="keep what comes out now")
    parser.add_argument("--only", help="studies, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; each uses all processors by itself")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        wanted = studies(work)
        if given.only:
            wanted = {name: wanted[name] for name in given.only.split(",")}
        with ThreadPoolExecutor(given.jobs) as pool:
            runs = {name: pool.submit(run, *how, 1, work) for name, how in wanted.items()}
            found, failed = {}, []
            for name, future in runs.items():
                try:
                    found[name] = future.result()
                except RuntimeError as error:
                    failed.append(str(error))
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    lines = failed + ([] if given.write else differences(kept, found))
    if given.write:
        # A line a study: a change then shows which ones it is about.
        lines = (
            f"{json.dumps(name)}: {json.dumps(columns, sort_keys=True)}"
            for name, columns in sorted((kept | found).items())
        )
        KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print("\n".join(lines) or f"{len(found)} studies, {sum(map(len, found.values()))} columns: all as kept")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
