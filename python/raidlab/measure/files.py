"""Opening and reading whole files, alone and among others: ``raidlab measure files``.

Invariants:

- Files are made once and read by every number of readers; they are put out of the page cache before each reading.
- A figure of which the page cache had a part carries the verdict that says so.
- Files that raidlab made are gone afterwards; files of others are only read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from raidlab.directory import Directory
from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.histogram import Histogram
from raidlab.measure.turns import Row, Turns, in_turns
from raidlab.measure.words import said_of_flag
from raidlab.results.answer import CheckAnswer, worst_checks
from raidlab.run.files import FilesResult, measure_files
from raidlab.run.interrupt import StopFlag
from raidlab.run.members import remove_file_set
from raidlab.run.progress import Progress
from raidlab.run.runner import check_ended
from raidlab.stats import student
from raidlab.stats.figure import Figure, figure
from raidlab.stats.percentile import percentile_of_repeats
from raidlab.study.cell import FilesCell, FilesWarmup, GivenFiles, MadeFiles
from raidlab.study.expand import derive_seed

if TYPE_CHECKING:
    from raidlab.measure.hosts import Hosts

PERCENTILES = (50.0, 90.0, 99.0)
# The argument of the command line that names files and directories.
PATHS = "PATH"


@dataclass(frozen=True)
class FilesPlan:
    """All that a measurement of whole files is told."""

    cell: FilesCell
    """With the files, and all but the number of readers."""
    readers: tuple[int, ...]
    repeats: int


@dataclass(frozen=True)
class FilesOutcome:
    """What came of it: the repeats of each number of readers, and how the files were written."""

    turns: Turns[int, FilesResult]
    written: FilesResult | None

    @property
    def results(self) -> list[FilesResult]:
        """Every reading that ran to its end."""
        return [result for results in self.turns.results.values() for result in results]


def files_of(paths: Sequence[str], made: MadeFiles) -> MadeFiles | GivenFiles:
    """What the paths mean: directories to make files in, or files that are there.

    Raises `InputError` for what is neither, or a mixture.
    """
    found = [Path(path) for path in paths]
    for path in found:
        if not path.exists():
            raise InputError.one(PATHS, "there is no such file or directory", value=f"'{path}'", accepted="a directory")
    directories = [path for path in found if path.is_dir()]
    if directories and len(directories) < len(found):
        other = next(path for path in found if not path.is_dir())
        message = "is a file, and others are directories"
        raise InputError.one(PATHS, message, value=f"'{other}'", accepted="directories to make files in, or files")
    if not directories:
        return GivenFiles(paths=found)
    return made.model_copy(update={"directories": directories, "keep": True})


def measure_whole_files(
    plan: FilesPlan, *, progress: Progress, stop: StopFlag, hosts: Hosts | None = None
) -> FilesOutcome:
    """Write the files where they are raidlab's to make, then read them with every number of readers, in turns.

    With ``hosts`` each of them does all of that at once, with files of its own.
    """
    files = plan.cell.files
    _check(plan)

    def measured(cell: FilesCell) -> FilesResult:
        return _measured(lambda: measure_files(cell, lambda _share: not stop()) if hosts is None else hosts.files(cell))

    try:
        written = _write(plan.cell, progress, measured) if isinstance(files, MadeFiles) else None

        def run(readers: int, repeat: int) -> FilesResult:
            # The files stay those of the seed they were made from; only the order of a random reading differs.
            del repeat
            return measured(plan.cell.model_copy(update={"readers": readers}))

        turns = in_turns(
            plan.readers,
            plan.repeats,
            run,
            seed=derive_seed(plan.cell.seed, "files"),
            title="reading whole files",
            progress=progress,
            stop=stop,
        )
        if hosts is not None:
            hosts.say_lost(turns)
        return FilesOutcome(turns, written)
    finally:
        # What hosts make is theirs to remove.
        for directory in files.directories if isinstance(files, MadeFiles) and hosts is None else ():
            with suppress(OSError), Directory.open(directory) as around:
                remove_file_set(around)


def _check(plan: FilesPlan) -> None:
    """What the engine would refuse only when the files are written, in the words of the flags."""
    cell, most = plan.cell, max(plan.readers)
    if cell.lists > 1 and most > cell.lists:
        message = f"reader k reads list k, and there are {cell.lists} lists"
        raise InputError.one("--readers", message, value=f"'{most}'", accepted=f"at most {cell.lists}, or more --lists")
    if cell.order != "once" and cell.measure.duration is None:
        message = "has no end of its own"
        raise InputError.one("--order", message, value=f"'{cell.order}'", accepted="it with --runtime, or once")


def _write(cell: FilesCell, progress: Progress, measured: Callable[[FilesCell], FilesResult]) -> FilesResult | None:
    """Make the files, which is a measurement too; None where that is to stop."""
    progress.note("writing the files")
    try:
        return measured(cell.model_copy(update={"readers": 0, "warmup": FilesWarmup()}))
    except KeyboardInterrupt:
        return None
    except CellFailedError as error:
        if error.kind == "bad_input":
            raise InputError.one("", str(error)) from None
        if error.kind == "stopped":
            raise error.at(PATHS) from None
        raise


def _measured(measure: Callable[[], FilesResult]) -> FilesResult:
    try:
        result = measure()
    except RefusedError as error:
        raise RefusedError(f"{PATHS}: {error}") from None
    except CellFailedError as error:
        raise said_of_flag(error, PATHS) from None
    check_ended(result.stopped_by, interrupted=result.interrupted)
    return result


def reading_rows(outcome: FilesOutcome) -> list[Row]:
    """One row a number of readers (of each host); times are those of opening and reading a whole file."""
    return [_row(readers, found) for readers, found in outcome.turns.results.items() if found]


def _row(readers: int, results: list[FilesResult]) -> Row:
    reads = [result.read for result in results]
    hosts = [len(result.facts.get("hosts", ())) or 1 for result in results]
    elapsed_ns = sum(read.elapsed_ns for read in reads)
    files, size = sum(read.files for read in reads), sum(read.bytes for read in reads)
    row: Row = {
        "readers": readers,
        "repeats": len(reads),
        "files": files,
        "bytes": size,
        "elapsed_ns": elapsed_ns,
        # Of each host, as the readers are.
        "in_flight_mean": sum((read.in_flight or 0.0) / count for read, count in zip(reads, hosts, strict=True))
        / len(reads),
    }
    rates = (
        ("files_per_s", files, [read.files_per_s or 0 for read in reads]),
        ("throughput_mb_s", size / 1e6, [read.mb_s or 0 for read in reads]),
    )
    for name, amount, each in rates:
        row |= figure(name, amount / (elapsed_ns / 1e9) if elapsed_ns else None, student(each))
    row |= _mean_figure("open_time_ns_mean", [(read.open_mean_ns, read.files) for read in reads])
    row |= _mean_figure("first_byte_time_ns_mean", [(read.first_byte_mean_ns, read.files) for read in reads])
    row |= _mean_figure("total_time_ns_mean", [(read.total_mean_ns, read.files) for read in reads])
    merged = Histogram.merged(read.total for read in reads)
    for percentile in PERCENTILES:
        answer = percentile_of_repeats([read.total for read in reads], percentile)
        row |= figure(f"total_time_ns_p{percentile:g}", merged.percentile_ns(percentile), answer)
    return row


def _mean_figure(name: str, parts: list[tuple[float, int]]) -> Figure:
    weight = sum(count for _, count in parts)
    mean = sum(value * count for value, count in parts) / weight if weight else None
    return figure(name, mean, student([value for value, _ in parts]))


def findings(outcome: FilesOutcome) -> list[CheckAnswer]:
    """The worst verdict of each check over all readings, and of hosts over how they wrote."""
    written = outcome.written.checks if outcome.written is not None else []
    return worst_checks(
        [*written, *(check for result in outcome.results for check in (result.read.page_cache, *result.checks))]
    )
