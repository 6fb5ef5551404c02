"""Whole files on mounted file systems: arrays whose tree is ``mounted``, one volume a directory given to ``--on``.

What lies below a directory is whatever its owner has mounted there: raidlab stripes nothing, it makes files and reads
them. Raw arrays of the same study are run where arrays are raidlab's own: on block devices, memory and emulated disks.

Invariants:

- Files lie in a fresh subdirectory of raidlab's own in each directory, and are gone when the run is.
- Every set of files is written once and read by all cells that ask for it; it depends on the root seed alone.
- What the page cache had of a file is counted by the engine when it was opened, and is judged in every cell; so is
  whether reading a file again was faster than reading it first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from raidlab.directory import Directory
from raidlab.errors import CellFailedError
from raidlab.histogram import Times
from raidlab.results.answer import CellAnswer, CheckAnswer, FileAccess, FileSizes, Snapshots, Tally
from raidlab.results.facts import Member
from raidlab.run.files import FilesRead, FilesRequest, FilesResult, MadeFiles, result_of
from raidlab.run.members import made_folders
from raidlab.run.placement import placement
from raidlab.run.runner import Answer, run_request
from raidlab.study import Cell, LoadedStudy, budget
from raidlab.study.expand import is_run
from raidlab.study.workload import Workload

ENGINE = "files"
# The same file read again this much faster did not come from where it came from first.
_FASTER_AGAIN = 1.5
_LEAST_READ_AGAIN = 20
_NS_PER_S = 1_000_000_000


def on_live(loaded: LoadedStudy, directories: int) -> LoadedStudy:
    """The study as real members run it: with directories whole files are read from them, without from raw arrays.

    Parameters
    ----------
    loaded : LoadedStudy
    directories : int
        How many are given; 0 for other live targets.
    """
    study = loaded.study
    mounted = [array.name for array in study.array if array.is_mounted]
    for name in mounted:
        tree = loaded.geometry.trees[name]
        tree["children"] = [tree["children"][0]] * max(directories, 1)
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
    """The files of a run, in folders of raidlab's own.

    Parameters
    ----------
    loaded : LoadedStudy
        As `on_live` has it.
    directories : sequence of Path
        Those given to ``--on``.
    folders : sequence of Path
        raidlab's own, one in each.
    seed : int
        The root seed.
    volume_bytes : int
        How much of each directory may be used.
    quick : bool

    Attributes
    ----------
    facts : list of Member
        Of each directory, with how its files were written and where they lie.
    """

    loaded: LoadedStudy
    directories: Sequence[Path]
    folders: Sequence[Path]
    seed: int
    volume_bytes: int
    quick: bool
    facts: list[Member] = field(default_factory=list)

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

        Raises
        ------
        CellFailedError, RefusedError
            With the engine's own sentence.
        KeyboardInterrupt
            Where the run is to stop.
        """
        for workload in self.sets():
            request = FilesRequest(self._made(workload), seed=self.seed, readers=0)
            result = result_of(run_request(request.text(), lambda _share: not is_stopped()))
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
        wanted = spent.measure.requests
        return FilesRequest(
            self._made(cell.workload),
            seed=self.seed,
            readers=max(cell.load.depth, 1),
            lists=files.lists,
            order=files.order,
            verify=self.loaded.study.live.verify,
            # The kernel goes on remembering directories, as it does for whoever uses them; of files it is counted.
            drop_caches=False,
            warmup_files=spent.warmup.requests or 0,
            measure_files=wanted,
            duration=spent.measure.duration,
        ).text()

    def _made(self, workload: Workload) -> MadeFiles:
        files = workload.files
        assert files is not None, "the caller looked"
        number = [_identity(one) for one in self.sets()].index(_identity(workload))
        for folder in self.folders:
            with Directory.open(folder) as around, around.child(f"files-{number}", make=True, own=True):
                pass
        own = [folder / f"files-{number}" for folder in self.folders]
        total = None if files.fill is None else int(files.fill * self.volume_bytes * len(own))
        return MadeFiles(own, workload.size.model_dump(), files.numbers, files.count, total, sync="end", keep=True)


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


def answer_of_files(answer: Answer) -> CellAnswer:
    """An answer of the engine ``files`` as that of a cell: a file is what a request is elsewhere."""
    result = result_of(answer)
    read = result.read
    tally = _tally(answer["read"])
    nothing: Tally = {
        "requests": 0,
        "bytes": 0,
        "failed": 0,
        "response": _EMPTY,
        "service": _EMPTY,
        "response_mean_ns": 0.0,
        "service_mean_ns": 0.0,
    }
    by_directory = result.directory[read.records["file"]]
    return {
        "engine": ENGINE,
        "seed": answer["seed"],
        "elapsed_ns": read.elapsed_ns,
        "requests": read.files,
        "tasks": read.files,
        "depth": read.in_flight,
        "read": tally,
        "write": nothing,
        "all": tally,
        "members": [
            {
                "leaf": number,
                "reads": int((by_directory == number).sum()),
                "writes": 0,
                "read_bytes": int(read.records["size_bytes"][by_directory == number].sum()),
                "write_bytes": 0,
            }
            for number in range(len(result.facts["directories"]))
        ],
        "stations": [],
        "snapshots": _snapshots(read),
        "files": {
            "files": read.files,
            "open_mean_ns": read.open_mean_ns,
            "first_byte_mean_ns": read.first_byte_mean_ns,
            "accesses": _accesses(read),
            "sizes": _by_size(read),
        },
        "facts": {"targets": answer["facts"]["directories"], "failed_members": []},
        "checks": [page_cache_check(read), *_read_again(read), *result.checks],
        "stopped_by": answer["stopped_by"],
        "interrupted": answer["interrupted"],
    }


_EMPTY: Times = {"value_ns": [], "count": []}


def _tally(read: dict[str, Any]) -> Tally:
    return {
        "requests": read["files"],
        "bytes": read["bytes"],
        "failed": 0,
        "response": read["total"],
        "service": read["total"],
        "response_mean_ns": read["total_mean_ns"],
        "service_mean_ns": read["total_mean_ns"],
    }


def _accesses(read: FilesRead) -> list[FileAccess]:
    """What was asked of the file system for a file, by name: what that asks of its disks only it knows."""
    opened: FileAccess = {"name": "open", "count": read.files, "bytes": 0, "found": 0, "mean_ns": read.open_mean_ns}
    rest_ns = max(read.total_mean_ns - read.open_mean_ns, 0.0)
    found = read.cached_files
    data: FileAccess = {"name": "read", "count": read.files, "bytes": read.bytes, "found": found, "mean_ns": rest_ns}
    return [opened, data]


def _by_size(read: FilesRead) -> FileSizes:
    sizes, where = np.unique(read.records["size_bytes"], return_inverse=True)
    files = np.bincount(where, minlength=len(sizes)).astype(np.uint64)
    times = np.zeros(len(sizes), dtype=np.uint64)
    np.add.at(times, where, read.records["total_ns"])
    return {"size_bytes": sizes, "files": files, "time_ns": times}


def _snapshots(read: FilesRead) -> Snapshots:
    """A row a second, as other engines keep it: files that ended in it."""
    ends = read.records["start_ns"] + read.records["total_ns"]
    if not len(ends):
        return {"time_ns": [], "requests": [], "bytes": [], "response_sum_ns": []}
    seconds = ((ends - read.records["start_ns"].min()) // _NS_PER_S).astype(np.int64)
    count = int(seconds.max()) + 1

    def summed(column: Any) -> list[int]:
        found = np.zeros(count, dtype=np.uint64)
        np.add.at(found, seconds, column)
        return [int(value) for value in found]

    return {
        "time_ns": [second * _NS_PER_S for second in range(count)],
        "requests": summed(np.ones(len(ends), dtype=np.uint64)),
        "bytes": summed(read.records["size_bytes"]),
        "response_sum_ns": summed(read.records["total_ns"]),
    }


def page_cache_check(read: FilesRead) -> CheckAnswer:
    """What the kernel says was in the page cache of files that had been opened and not yet read."""
    verdict, evidence = read.page_cache
    how = "cachestat, or mincore, of every file when it had been opened and before it was read"
    mend = "" if verdict == "PASS" else "Name a directory on a disk: a file system in memory is its own page cache."
    return {"name": "page_cache", "verdict": verdict, "evidence": f"{evidence} ({how}).", "mend": mend}


def _read_again(read: FilesRead) -> Iterator[CheckAnswer]:
    """Files that were read more than once in a cell, the later times against the first."""
    first, again = again_and_first(read)
    if len(first) < _LEAST_READ_AGAIN:
        return
    ratio = float(np.median(first) / max(float(np.median(again)), 1.0))
    evidence = (
        f"Reading {len(first)} files again took {np.median(again) / 1e6:.3g} ms by the median, reading them first "
        f"{np.median(first) / 1e6:.3g} ms."
    )
    is_faster = ratio > _FASTER_AGAIN
    mend = "Something below the file system remembers: losetup --direct-io=on, or more files than it holds."
    yield {
        "name": "read_again",
        "verdict": "WARN" if is_faster else "PASS",
        "evidence": evidence,
        "mend": mend if is_faster else "",
    }


def again_and_first(read: FilesRead) -> tuple[Any, Any]:
    """Times of the first reading of files that were read again, and of their later readings."""
    order = np.argsort(read.records["start_ns"], kind="stable")
    files, times = read.records["file"][order], read.records["total_ns"][order]
    _, firsts, counts = np.unique(files, return_index=True, return_counts=True)
    is_first = np.zeros(len(files), dtype=bool)
    is_first[firsts] = True
    is_again = np.isin(files, files[firsts[counts > 1]])
    return times[is_first & is_again], times[~is_first]
