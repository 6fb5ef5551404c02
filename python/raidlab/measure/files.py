"""Opening and reading whole files, alone and among others: ``raidlab measure files``.

Invariants:

- Files are made once and read by every number of readers; they are put out of the page cache before each reading.
- A figure of which the page cache had a part carries the verdict that says so.
- Files that raidlab made are gone afterwards; files of others are only read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raidlab.directory import Directory
from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.histogram import Histogram
from raidlab.measure.turns import CutShortError, Turns, in_turns
from raidlab.measure.words import in_words_of_flags
from raidlab.results.answer import VERDICTS, CheckAnswer
from raidlab.run.files import FilesRequest, FilesResult, GivenFiles, MadeFiles, measure_files
from raidlab.run.interrupt import StopFlag
from raidlab.run.members import remove_file_set
from raidlab.run.mounted import page_cache_check
from raidlab.run.progress import Progress
from raidlab.stats import student
from raidlab.stats.figure import Figure, figure
from raidlab.stats.percentile import percentile_of_repeats
from raidlab.study.expand import derive_seed

PERCENTILES = (50.0, 90.0, 99.0)
_FLAG_OF = {
    "bytes": "--size",
    "mean": "--size",
    "sd": "--size",
    "size": "--size",
    "count": "--count",
    "lists": "--lists",
    "block_bytes": "--block",
    "io": "--io",
    "readers": "--readers",
    "duration": "--runtime",
}


@dataclass(frozen=True)
class FilesAsked:
    """All that a measurement of whole files is told.

    Attributes
    ----------
    request : FilesRequest
        With the files, and all but the number of readers.
    readers : tuple of int
    repeats : int
    """

    request: FilesRequest
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

    Raises
    ------
    InputError
        For what is neither, or a mixture.
    """
    found = [Path(path) for path in paths]
    for path in found:
        if not path.exists():
            raise InputError.one("PATH", "there is no such file or directory", value=f"'{path}'")
    directories = [path for path in found if path.is_dir()]
    if directories and len(directories) < len(found):
        other = next(path for path in found if not path.is_dir())
        message = "is a file, and others are directories"
        raise InputError.one("PATH", message, value=f"'{other}'", accepted="directories to make files in, or files")
    return replace(made, directories=directories, keep=True) if directories else GivenFiles(found)


def measure_whole_files(asked: FilesAsked, *, progress: Progress, stop: StopFlag) -> FilesOutcome:
    """Write the files where they are raidlab's to make, then read them with every number of readers, in turns."""
    files = asked.request.files
    _check(asked)
    try:
        written = _write(asked.request, progress, stop) if isinstance(files, MadeFiles) else None

        def run(readers: int, repeat: int) -> FilesResult:
            # The files stay those of the seed they were made from; only the order of a random reading differs.
            del repeat
            return _whole(_measured(replace(asked.request, readers=readers), stop))

        turns = in_turns(
            asked.readers,
            asked.repeats,
            run,
            seed=derive_seed(asked.request.seed, "files"),
            title="reading whole files",
            progress=progress,
            stop=stop,
        )
        return FilesOutcome(turns, written)
    finally:
        if isinstance(files, MadeFiles):
            for directory in files.directories:
                with suppress(OSError), Directory.open(directory) as around:
                    remove_file_set(around)


def _check(asked: FilesAsked) -> None:
    """What the engine would refuse only when the files are written, in the words of the flags."""
    request = asked.request
    if request.lists > 1 and max(asked.readers) > request.lists:
        message = f"reader k reads list k, and there are {request.lists} lists"
        raise InputError.one(
            "--readers", message, value=f"'{max(asked.readers)}'", accepted=f"at most {request.lists}, or more --lists"
        )
    if request.order != "once" and request.duration is None:
        message = "has no end of its own"
        raise InputError.one("--order", message, value=f"'{request.order}'", accepted="it with --runtime, or once")


def _write(request: FilesRequest, progress: Progress, stop: StopFlag) -> FilesResult | None:
    """Make the files, which is a measurement too."""
    progress.note("writing the files")
    try:
        return _whole(_measured(replace(request, readers=0, warmup_files=0), stop))
    except CutShortError as cut:
        if cut.failure:
            raise InputError.one("PATH", cut.failure) from None
        return None
    except CellFailedError as error:
        if error.kind == "bad_input":
            raise InputError.one("", str(error)) from None
        raise


def _measured(request: FilesRequest, stop: StopFlag) -> FilesResult:
    try:
        return measure_files(request, lambda _share: not stop())
    except RefusedError as error:
        raise RefusedError(f"PATH: {error}") from None
    except CellFailedError as error:
        raise in_words_of_flags(error, _FLAG_OF, "PATH") from None


def _whole(result: FilesResult) -> FilesResult:
    if result.stopped_by or result.interrupted:
        raise CutShortError(result.stopped_by)
    return result


def reading_rows(outcome: FilesOutcome) -> list[dict[str, Any]]:
    """One row a number of readers; times are those of opening and reading a whole file."""
    rows = []
    for readers, results in outcome.turns.results.items():
        reads = [result.read for result in results]
        if not reads:
            continue
        elapsed_s = sum(read.elapsed_ns for read in reads) / 1e9
        files, size = sum(read.files for read in reads), sum(read.bytes for read in reads)
        row: dict[str, Any] = {
            "readers": readers,
            "repeats": len(reads),
            "files": files,
            "bytes": size,
            "elapsed_ns": sum(read.elapsed_ns for read in reads),
            "in_flight_mean": sum((read.in_flight or 0.0) for read in reads) / len(reads),
        }
        row |= figure(
            "files_per_s", files / elapsed_s if elapsed_s else None, student([read.files_per_s or 0 for read in reads])
        )
        row |= figure(
            "throughput_mb_s",
            size / 1e6 / elapsed_s if elapsed_s else None,
            student([read.mb_s or 0 for read in reads]),
        )
        row |= _mean_figure("open_time_ns_mean", [(read.open_mean_ns, read.files) for read in reads])
        row |= _mean_figure("first_byte_time_ns_mean", [(read.first_byte_mean_ns, read.files) for read in reads])
        row |= _mean_figure("total_time_ns_mean", [(read.total_mean_ns, read.files) for read in reads])
        merged = Histogram.merged(read.total for read in reads)
        for percentile in PERCENTILES:
            answer = percentile_of_repeats([read.total for read in reads], percentile)
            row |= figure(f"total_time_ns_p{percentile:g}", merged.percentile_ns(percentile), answer)
        rows.append(row)
    return rows


def _mean_figure(name: str, parts: list[tuple[float, int]]) -> Figure:
    weight = sum(count for _, count in parts)
    mean = sum(value * count for value, count in parts) / weight if weight else None
    return figure(name, mean, student([value for value, _ in parts]))


def findings(outcome: FilesOutcome) -> list[CheckAnswer]:
    """The worst verdict of each check over all readings."""
    worst: dict[str, CheckAnswer] = {}
    for result in outcome.results:
        for finding in (page_cache_check(result.read), *result.checks):
            before = worst.setdefault(finding["name"], finding)
            worst[finding["name"]] = max(before, finding, key=lambda one: VERDICTS.index(one["verdict"]))
    return list(worst.values())
