"""A second, independent tool beside raidlab's own engine: fio on the same target, at the same settings, in alternation.

A meter that is wrong is wrong in silence; two meters written by different people are seldom wrong alike. What is given
is the ratio of the two, pair by pair, so that what the machine did to both cancels.

Invariants:

- raidlab goes to the target first, with one request: what its safety rules refuse, fio is never started on.
- Within a pair the order is drawn from the seed; between pairs nothing is shared but the target.
- Both are asked the same, from one cell. What fio only approximates is in `Witness.differences`; what it cannot do is
  refused before anything runs.
- fio's own time of a request runs from submission to completion, so it is held against raidlab's *service* times.
"""

from __future__ import annotations

import logging
import os
import random
import re
import shlex
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raidlab.errors import CellFailedError, InputError
from raidlab.formats.fio.export import CannotExportError, export_cell
from raidlab.formats.fio.result import parse_result
from raidlab.histogram import Histogram
from raidlab.results.facts import ToolDocument
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress, Silent
from raidlab.run.request import text_of
from raidlab.run.runner import Answer, run_request
from raidlab.stats import ratio_interval
from raidlab.study.cell import ClosedLoad, DirectCell, Limit
from raidlab.study.expand import derive_seed

_LOG = logging.getLogger(__name__)

PERCENTILES = (50, 90, 99)
FIGURES = ("iops", "throughput_mb_s", *(f"service_time_ns_p{percentile}" for percentile in PERCENTILES))
# Processors that a tool's own threads kept busy.
PROCESSOR = "processors_busy"
# A histogram of fio's has 64 buckets to a power of two and tells their lower ends; a ratio of two times is no finer.
FIO_RESOLUTION = 1 / 64
_HOW_TO_INSTALL = "fio 3 on the PATH: apt-get install fio, dnf install fio, or from https://github.com/axboe/fio"
_LOOK_EVERY_S = 0.1

# What raidlab's engine has registered with the kernel, fio registers too; times to the end of fio's own counting.
_IO_URING_WORDS = ("fixedbufs=1", "registerfiles=1")
# Like raidlab's engine without a batch of its own: as many at a time as there are.
_TOGETHER = ("iodepth_batch_submit", "iodepth_batch_complete_max")
_NUMJOBS = re.compile(r"^numjobs=(\d+)$", re.MULTILINE)
_IODEPTH = re.compile(r"^iodepth=(\d+)$", re.MULTILINE)
# Buffers in huge pages, as raidlab's are: of small ones a request of 1 MiB has more pieces than most devices take at a
# time, and is cut in two below fio. glibc asks for them from 2.35 on; with an older one the cut remains.
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
_HUGE_PAGE_WORD = "iomem_align=2m"
_COMMON_WORDS = (_HUGE_PAGE_WORD, "lat_percentiles=1", "overwrite=1", "thread=1", "group_reporting=1")


@dataclass(frozen=True)
class Ratio:
    """raidlab's figure over fio's, over all pairs.

    Attributes
    ----------
    figure : str
        One of `FIGURES`.
    raidlab, fio : float
        The medians of what each measured.
    ratio : float
        The median of the pairs' ratios.
    low, high : float or None
        The 95 % interval of the mean ratio; None for a single pair.
    """

    figure: str
    raidlab: float
    fio: float
    ratio: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Pair:
    """One run of each, and which was first."""

    raidlab: dict[str, float]
    fio: dict[str, float]
    first: str


@dataclass(frozen=True)
class Witness:
    """What both measured.

    Attributes
    ----------
    version : str
        fio's.
    job : str
        The job file that fio was given in the first pair; the others differ in their seed.
    commands : tuple of str
        What was run, in order.
    differences : tuple of str
        Where fio only approximates what raidlab was asked.
    pairs : tuple of Pair
    answers : tuple of dict
        The engine's answers, one a pair.
    interrupted : bool
        Stopped before all pairs were run.
    """

    version: str
    job: str
    commands: tuple[str, ...]
    differences: tuple[str, ...]
    pairs: tuple[Pair, ...]
    answers: tuple[Answer, ...]
    interrupted: bool

    def ratios(self) -> list[Ratio]:
        """The ratio of each figure that both have."""
        return [ratio for figure in FIGURES if (ratio := self._ratio(figure)) is not None]

    def _ratio(self, figure: str) -> Ratio | None:
        both = [(pair.raidlab[figure], pair.fio[figure]) for pair in self.pairs if _in_both(pair, figure)]
        if not both:
            return None
        own, other = [a for a, _ in both], [b for _, b in both]
        interval = ratio_interval(own, other)
        low, high = (None, None) if interval is None else interval
        ratio = statistics.median(a / b for a, b in both)
        return Ratio(figure, statistics.median(own), statistics.median(other), ratio, low, high)

    def document(self) -> ToolDocument:
        """All of it as plain values, for JSON."""
        return {
            "tool": self.version,
            "pairs": [{"raidlab": pair.raidlab, "fio": pair.fio, "first": pair.first} for pair in self.pairs],
            "ratios": [
                {
                    "figure": ratio.figure,
                    "raidlab": ratio.raidlab,
                    "fio": ratio.fio,
                    "ratio": ratio.ratio,
                    "low": ratio.low,
                    "high": ratio.high,
                }
                for ratio in self.ratios()
            ],
            "commands": list(self.commands),
            "job": self.job,
            "differences": list(self.differences),
            "interrupted": self.interrupted,
        }


def fio_version() -> str:
    """The version of the fio that is installed.

    Raises
    ------
    InputError
        If there is none, or none that answers.
    """
    fio = shutil.which("fio")
    if fio is None:
        raise InputError.one("--witness", "fio is not installed", accepted=_HOW_TO_INSTALL)
    done = subprocess.run([fio, "--version"], capture_output=True, text=True, check=False)
    version = done.stdout.strip()
    if done.returncode != 0 or not version.startswith("fio-3"):
        raise InputError.one("--witness", f"{fio} says '{version}'", accepted=_HOW_TO_INSTALL)
    _LOG.debug("%s found: %s", fio, version)
    return version


def compare_with_fio(
    cell: DirectCell,
    *,
    pairs: int = 5,
    seed: int = 1,
    words: Sequence[str] = (),
    progress: Progress | None = None,
    stop: StopFlag | None = None,
) -> Witness:
    """Run a cell of the direct engine and its equivalent in fio, in alternation.

    Parameters
    ----------
    cell : DirectCell
        Over files, block devices or ``null``. Files that are not there are made.
    pairs : int
        How often each is run; an interval needs two.
    seed : int
        Decides the order within each pair and the seed of its requests.
    words : sequence of str
        Further options of fio's, such as ``iodepth_batch_submit=8``.
    progress : Progress, optional
    stop : StopFlag, optional
        Ends it after the run at hand.

    Raises
    ------
    InputError
        If fio is not there, or cannot do what the cell asks, with the cell's key.
    RefusedError
        For a target that must not be written.
    CellFailedError
        If one of the two fails.
    """
    version = fio_version()
    job = _job(cell, words)
    # fio writes to the same places, and leaves nothing there that raidlab would know.
    cell = cell.model_copy(update={"verify": "off"})
    told, stopped = progress or Silent(), stop or StopFlag()
    done: list[Pair] = []
    answers: list[Answer] = []
    commands: list[str] = []
    _make_ready(cell)
    told.begin("raidlab and fio in alternation", 2 * pairs)
    try:
        with tempfile.TemporaryDirectory(prefix="raidlab-witness-") as folder:
            for number in range(pairs):
                pair_cell = cell.model_copy(update={"seed": derive_seed(seed, "witness", str(number))})
                own, command = _Raidlab(pair_cell, stopped), _Fio(_job(pair_cell, words), Path(folder), stopped)
                order: list[_Raidlab | _Fio] = [own, command]
                random.Random(derive_seed(seed, "witness order", str(number))).shuffle(order)
                for tool in order:
                    tool.run()
                    told.advance()
                commands += [tool.command for tool in order]
                answers.append(own.answer)
                done.append(Pair(own.figures, command.figures, order[0].name))
    except KeyboardInterrupt:
        if not done:
            raise
    finally:
        told.end()
    differences = tuple(line[2:] for line in job.split("\n") if line.startswith("# "))
    return Witness(version, job, tuple(commands), differences, tuple(done), tuple(answers), len(done) < pairs)


@dataclass
class _Raidlab:
    """One run of raidlab's engine."""

    cell: DirectCell
    stop: StopFlag
    name = "raidlab"

    def run(self) -> None:
        self.answer = _ask(self.cell, self.stop)
        seconds = int(self.answer["elapsed_ns"]) / 1e9
        done, spent = self.answer["all"], self.answer.get("accounting") or {}
        self.figures = _figures(
            int(done["requests"]) / seconds,
            int(done["bytes"]) / 1e6 / seconds,
            Histogram.of(done["service"]).percentile_ns,
        )
        if "user_ns" in spent:
            self.figures[PROCESSOR] = (spent["user_ns"] + spent["system_ns"]) / 1e9 / seconds

    @property
    def command(self) -> str:
        return f"raidlab._core.run_cell({text_of(self.cell)!r})"


@dataclass
class _Fio:
    """One run of fio."""

    job: str
    folder: Path
    stop: StopFlag
    name = "fio"

    def run(self) -> None:
        (self.folder / "job.fio").write_text(self.job, encoding="utf-8")
        # In a session of its own, so that Ctrl-C reaches only this process, which ends it in order.
        running = subprocess.Popen(
            self._words,
            cwd=self.folder,
            env={**os.environ, **_HUGE_PAGES},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            _, said = _wait(running, self.stop)
        finally:
            if running.poll() is None:
                running.kill()
                running.communicate()
        if running.returncode != 0:
            reason = next((line for line in said.strip().split("\n") if line), "it said nothing")
            raise CellFailedError(f"fio ended with status {running.returncode}: {reason}")
        result = parse_result((self.folder / "fio.json").read_text(encoding="utf-8"))
        failed = [job for job in result.jobs if job.error]
        if failed:
            raise CellFailedError(f"fio: the job '{failed[0].name}' ended with error {failed[0].error}")
        whole = result.all
        self.figures = _figures(whole.iops, whole.throughput_mb_s, whole.percentile_ns)
        # Of clones it tells the mean share of their time.
        clones = _NUMJOBS.search(self.job)
        share = sum(job.user_cpu_percent + job.system_cpu_percent for job in result.jobs) / 100
        self.figures[PROCESSOR] = share * (int(clones[1]) if clones else 1)

    @property
    def _words(self) -> list[str]:
        return ["fio", "--output-format=json+", "--output=fio.json", "--eta=never", "job.fio"]

    @property
    def command(self) -> str:
        return shlex.join(self._words)


def _wait(running: subprocess.Popen[str], stop: StopFlag) -> tuple[str, str]:
    while True:
        if stop():
            running.terminate()
            running.communicate()
            raise KeyboardInterrupt
        try:
            return running.communicate(timeout=_LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            continue


def _job(cell: DirectCell, words: Sequence[str]) -> str:
    """The job that asks fio for the same."""
    try:
        text = export_cell(
            "witness", cell.model_copy(update={"targets": [_absolute(target) for target in cell.targets]})
        )
    except CannotExportError as error:
        raise InputError.one(
            f"--witness: {error.key}", error.message, value=error.value, accepted=error.accepted
        ) from None
    ring: list[str] = []
    if "\nioengine=io_uring\n" in text:
        depth = _IODEPTH.search(text)
        # An open loop submits each request when it is due; to wait for others would be another load.
        together_wanted = cell.batch is None and cell.load.kind == "closed"
        together = [f"{word}={depth[1]}" for word in _TOGETHER] if depth and together_wanted else []
        ring = [*_IO_URING_WORDS, *together]
    return text + "".join(f"{word}\n" for word in (*_COMMON_WORDS, *ring, *words))


def _absolute(target: Mapping[str, Any]) -> dict[str, Any]:
    """A target by its full path, for fio runs in a folder of its own."""
    path = target.get("path")
    return dict(target) if path is None else {**target, "path": str(Path(path).absolute())}


def _make_ready(cell: DirectCell) -> None:
    """Let raidlab's engine open, claim, make and fill the targets, and refuse what must not be written."""
    if any(target["kind"] != "null" for target in cell.targets):
        once = {"load": ClosedLoad(depth=1), "workers": 1, "warmup": Limit(), "measure": Limit(requests=1)}
        _ask(cell.model_copy(update=once), StopFlag())


def _ask(cell: DirectCell, stop: StopFlag) -> Answer:
    answer = run_request(text_of(cell), lambda _share: not stop())
    if answer.get("stopped_by"):
        raise CellFailedError(str(answer["stopped_by"]))
    if answer.get("interrupted"):
        raise KeyboardInterrupt
    return answer


def _figures(iops: float, throughput_mb_s: float, percentile_ns: Callable[[float], int | None]) -> dict[str, float]:
    """The figures that both tools give."""
    figures = {"iops": iops, "throughput_mb_s": throughput_mb_s}
    for percentile in PERCENTILES:
        value = percentile_ns(percentile)
        if value is not None:
            figures[f"service_time_ns_p{percentile}"] = float(value)
    return figures


def _in_both(pair: Pair, figure: str) -> bool:
    return min(pair.raidlab.get(figure, 0.0), pair.fio.get(figure, 0.0)) > 0
