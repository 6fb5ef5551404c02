"""Whole files on mounted file systems: arrays whose tree is ``mounted``, one volume a directory given to ``--on``.

What lies below a directory is whatever its owner has mounted there: raidlab stripes nothing, it makes files and reads
them. Raw arrays of the same study are run where arrays are raidlab's own: on block devices, memory and emulated disks.

Invariants:

- Files lie in a fresh subdirectory of raidlab's own in each directory, and are gone when the run is.
- Every set of files is written once and read by all cells that ask for it; it depends on the root seed alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from raidlab.directory import Directory
from raidlab.errors import CellFailedError
from raidlab.results.facts import Member
from raidlab.run.files import FilesResult, measure_files
from raidlab.run.members import made_folders
from raidlab.run.placement import placement
from raidlab.study import Cell, LoadedStudy, budget
from raidlab.study.cell import FilesCell, FilesMeasure, FilesWarmup, MadeFiles, text_of
from raidlab.study.expand import is_run
from raidlab.study.workload import Workload


def on_live(loaded: LoadedStudy, directories: int) -> LoadedStudy:
    """The study as real members run it: with directories whole files are read from them, without from raw arrays.

    ``directories``: how many are given; 0 for other live targets.
    """
    study = loaded.study
    mounted = [array.name for array in study.array if array.is_mounted]
    for name in mounted:
        tree = loaded.geometry.trees[name]
        # Another tree, not that one changed: what the engine says of it is kept by it.
        loaded.geometry.trees[name] = {**tree, "children": [tree["children"][0]] * max(directories, 1)}
    raw = [array.name for array in study.array if not array.is_mounted]

    def asked(workload: Workload) -> Workload:
        wanted = mounted if workload.files is not None and directories else raw
        kept = wanted if workload.arrays is None else [name for name in workload.arrays if name in wanted]
        return workload.model_copy(update={"arrays": kept})

    # An order of arrays and workloads is nothing that may change: tables are sorted by it.
    return replace(loaded, study=study.model_copy(update={"workload": [asked(one) for one in study.workload]}))


def runs_mounted(loaded: LoadedStudy) -> bool:
    """Whether anything of a study, as `on_live` has it, is read from directories."""
    return any(array.is_mounted and _is_asked(loaded, array.name) for array in loaded.study.array)


def runs_raw(loaded: LoadedStudy) -> list[str]:
    """The arrays of a study, as `on_live` has it, that are raidlab's own."""
    return [array.name for array in loaded.study.array if not array.is_mounted and _is_asked(loaded, array.name)]


def _is_asked(loaded: LoadedStudy, name: str) -> bool:
    array = next(one for one in loaded.study.array if one.name == name)
    return any(is_run(array, workload, "live") for workload in loaded.study.workload)


@dataclass
class MountedFiles:
    """The files of a run, in folders of raidlab's own."""

    loaded: LoadedStudy
    """As `on_live` has it."""
    directories: Sequence[Path]
    """Those given to ``--on``."""
    folders: Sequence[Path]
    """raidlab's own, one in each."""
    seed: int
    """The root seed."""
    volume_bytes: int
    """How much of each directory may be used."""
    quick: bool
    facts: list[Member] = field(default_factory=list)
    """Of each directory, with how its files were written and where they lie."""

    def sets(self) -> list[Workload]:
        """One workload for each set of files that differs."""
        found: dict[str, Workload] = {}
        for workload in self.loaded.study.workload:
            arrays = [array for array in self.loaded.study.array if array.is_mounted]
            if workload.files is not None and any(is_run(array, workload, "live") for array in arrays):
                found.setdefault(_identity(workload), workload)
        return list(found.values())

    def fill(self, is_stopped: Callable[[], bool]) -> Iterator[str]:
        """Write every set of files; yields a sentence for each.

        Raises `CellFailedError` or `RefusedError` with the engine's own sentence. Raises `KeyboardInterrupt` where the
        run is to stop.
        """
        for workload in self.sets():
            cell = FilesCell(files=self._made(workload), seed=self.seed, readers=0)
            result = measure_files(cell, lambda _share: not is_stopped())
            if result.interrupted:
                raise KeyboardInterrupt
            if result.stopped_by or result.fill is None:
                raise CellFailedError(f"{workload.name}: {result.stopped_by or 'its files were not written'}")
            self._note(workload, result)
            rate = f" at {result.fill.mb_s:.0f} MB/s" if result.fill.mb_s else ""
            yield (
                f"{workload.name}: wrote {result.fill.files} files, {result.fill.bytes / 1e6:.0f} MB, into "
                f"{len(self.directories)} director{'y' if len(self.directories) == 1 else 'ies'}{rate}"
            )

    def _note(self, workload: Workload, result: FilesResult) -> None:
        """What was found of each directory while it was filled."""
        assert result.fill is not None, "the caller looked"
        if not self.facts:
            self.facts = [
                {
                    # The engine's, which are those of its target but for these.
                    **cast(Member, facts),
                    "kind": "directory",
                    "path": str(directory),
                    "size_bytes": self.volume_bytes,
                    "sets": [],
                }
                for directory, facts in zip(self.directories, result.facts["directories"], strict=True)
            ]
        of_file = result.directory[result.fill.records["file"]]
        for number, facts in enumerate(self.facts):
            mine = of_file == number
            folder = Path(self._made(workload).directories[number])
            facts["sets"].append(
                {
                    "workload": workload.name,
                    "files": int(mine.sum()),
                    "bytes": int(result.fill.records["size_bytes"][mine].sum()),
                    "write_mb_s": result.fill.mb_s,
                    "placement": placement(sorted(folder.glob("raidlab-files/f*"))),
                }
            )

    def text(self, cell: Cell) -> str:
        """The request of a cell: its readers, over files that are there."""
        files = cell.workload.files
        assert files is not None, "only whole files are read from directories"
        spent = budget(self.loaded.study, "live", quick=self.quick)
        return text_of(
            FilesCell(
                files=self._made(cell.workload),
                seed=self.seed,
                readers=max(cell.load.depth, 1),
                lists=files.lists,
                order=files.order,
                verify=self.loaded.study.live.verify,
                # The kernel goes on remembering directories, as it does for whoever uses them; of files it is counted.
                drop_caches=False,
                warmup=FilesWarmup(files=spent.warmup.requests or 0),
                measure=FilesMeasure(files=spent.measure.requests, duration=spent.measure.duration),
            )
        )

    def _made(self, workload: Workload) -> MadeFiles:
        files = workload.files
        assert files is not None, "the caller looked"
        number = [_identity(one) for one in self.sets()].index(_identity(workload))
        for folder in self.folders:
            with Directory.open(folder) as around, around.child(f"files-{number}", make=True, own=True):
                pass
        own = [folder / f"files-{number}" for folder in self.folders]
        total = None if files.fill is None else int(files.fill * self.volume_bytes * len(own))
        return MadeFiles(
            directories=own,
            sizes=workload.size,
            numbers=files.numbers,
            count=files.count if total is None else None,
            total_bytes=total,
            sync="end",
            keep=True,
        )


@contextmanager
def mounted_files(
    loaded: LoadedStudy, directories: Sequence[Path], seed: int, volume_bytes: int, *, quick: bool
) -> Iterator[MountedFiles]:
    """Folders for the files of a run, which are taken away afterwards."""
    with ExitStack() as made:
        folders = made.enter_context(made_folders(list(directories), "--on"))
        yield MountedFiles(loaded, directories, folders, seed, volume_bytes, quick)


def _identity(workload: Workload) -> str:
    files = workload.files
    assert files is not None, "the caller looked"
    said = [workload.size.model_dump(), files.numbers, files.count, files.fill]
    return json.dumps(said, sort_keys=True)
