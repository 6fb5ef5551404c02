"""A second, independent tool beside raidlab's own engine: fio on the same target, at the same settings, in alternation.

A meter that is wrong is wrong in silence; two meters written by different people are seldom wrong alike. What is given
is the ratio of the two, pair by pair, so that what the machine did to both cancels.

A study's ``live.second_tool`` is given what both can be: a plain target, which is the array's volume where that is a
single member (a controller's own chain), else its first member.

Invariants:

- raidlab goes to the target first, with one request: what its safety rules refuse, fio is never started on.
- Within a pair the order is drawn from the seed; between pairs nothing is shared but the target.
- Both are asked the same, from one cell. Where fio only approximates it, it is said (``differences``); what it cannot
  do is refused before anything runs.
- fio's own time of a request runs from submission to completion, so it is held against raidlab's *service* times.
- A machine without fio, or an array that fio cannot do, is a result that says so, never a failure of a study's run.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.formats.fio.export import CannotExportError, export_cell
from raidlab.formats.fio.result import parse_result
from raidlab.results.answer import CellAnswer, times_of_all
from raidlab.results.facts import SecondTool, ToolDocument, ToolLoad, ToolPair, ToolRatio
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress, Silent
from raidlab.run.request import cell_limit, direct_request, one_request
from raidlab.run.runner import cell_answer, check_ended, run_request
from raidlab.stats import ratio_interval
from raidlab.study import Cell, LoadedStudy, expand
from raidlab.study.cell import DirectCell, Opaque, Span, text_of
from raidlab.study.expand import derive_seed
from raidlab.study.target import SecondTool as SecondToolSpec

_LOG = logging.getLogger(__name__)

PERCENTILES = (50, 90, 99)
FIGURES = ("iops", "throughput_mb_s", *(f"service_time_ns_p{percentile}" for percentile in PERCENTILES))
# Processors that a tool's own threads kept busy.
PROCESSOR = "processors_busy"
Figures = dict[str, float]
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
_FIO_WORDS = ("fio", "--output-format=json+", "--output=fio.json", "--eta=never", "job.fio")

# For a study: raidlab writes random bytes that it has made before, stamped so that no two requests are alike; to make
# them anew for each request would be time of fio's own.
_STUDY_WORDS = ("refill_buffers=0", "scramble_buffers=1")
_STUDY_DIFFERENCE = "refill_buffers: fio writes copies of one random buffer, scrambled so that no two are the same"
# Parts of a target that jobs go through one by one are whole multiples of this.
_GRAIN_BYTES = 2**20


def ratios_of(pairs: Sequence[ToolPair]) -> list[ToolRatio]:
    """Raidlab's figure over fio's, of each that both have.

    Beside the medians of what each measured stand the median of the pairs' ratios and the 95 % interval of the mean
    ratio, which a single pair has not.
    """
    found: list[ToolRatio] = []
    for figure in FIGURES:
        both = [(pair["raidlab"].get(figure, 0.0), pair["fio"].get(figure, 0.0)) for pair in pairs]
        both = [(own, other) for own, other in both if min(own, other) > 0]
        if both:
            own, other = [a for a, _ in both], [b for _, b in both]
            low, high = ratio_interval(own, other) or (None, None)
            found.append(
                {
                    "figure": figure,
                    "raidlab": statistics.median(own),
                    "fio": statistics.median(other),
                    "ratio": statistics.median(a / b for a, b in both),
                    "low": low,
                    "high": high,
                }
            )
    return found


def fio_version() -> str:
    """The version of the fio that is installed.

    Raises `InputError` if there is none, or none that answers.
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
) -> ToolDocument:
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
        Told how far it is.
    stop : StopFlag, optional
        Ends it after the run at hand.

    Returns
    -------
    ToolDocument
        What both measured in the pairs that are whole; ``job`` is the job file of the first pair, from which the others
        differ in their seed.

    Raises
    ------
    InputError
        If fio is not there, or cannot do what the cell asks, with the cell's key.
    RefusedError
        For a target that must not be written.
    CellFailedError
        If one of the two fails.
    KeyboardInterrupt
        When it is ended before the first pair is whole.
    """
    version = fio_version()
    job = _job(cell, words)
    # fio writes to the same places, and leaves nothing there that raidlab would know.
    cell = cell.model_copy(update={"verify": "off"})
    told, stopped = progress or Silent(), stop or StopFlag()
    done: list[ToolPair] = []
    commands: list[str] = []
    if any(target["kind"] != "null" for target in cell.targets):
        # Opened, claimed, made and filled by raidlab's engine, which refuses what must not be written.
        _ask(one_request(cell), StopFlag())
    told.begin("raidlab and fio in alternation", 2 * pairs)
    try:
        with tempfile.TemporaryDirectory(prefix="raidlab-witness-") as folder:
            for number in range(pairs):
                own = cell.model_copy(update={"seed": derive_seed(seed, "witness", str(number))})
                tools: dict[str, Callable[[StopFlag], Figures]] = {
                    "raidlab": partial(_raidlab_figures, own),
                    "fio": partial(_fio_figures, _job(own, words), Path(folder)),
                }
                order = list(tools)
                random.Random(derive_seed(seed, "witness order", str(number))).shuffle(order)
                figures = {}
                for name in order:
                    figures[name] = tools[name](stopped)
                    told.advance()
                command = {"raidlab": f"raidlab._core.run_cell({text_of(own)!r})", "fio": shlex.join(_FIO_WORDS)}
                commands += [command[name] for name in order]
                done.append({"raidlab": figures["raidlab"], "fio": figures["fio"], "first": order[0]})
    except KeyboardInterrupt:
        if not done:
            raise
    finally:
        told.end()
    return {
        "tool": version,
        "pairs": done,
        "ratios": ratios_of(done),
        "commands": commands,
        "job": job,
        "differences": [line[2:] for line in job.split("\n") if line.startswith("# ")],
        "interrupted": len(done) < pairs,
    }


def second_tool(
    loaded: LoadedStudy,
    member_of: Mapping[str, Opaque],
    member_bytes: int,
    *,
    seed: int,
    quick: bool,
    progress: Progress,
    stop: StopFlag,
) -> Iterator[SecondTool]:
    """Run raidlab and fio in turns at every load that a study names; one document a load.

    ``member_of``: by array, the member that both are given, as the engine takes it. ``member_bytes``: of every member.
    """
    spec = loaded.study.live.second_tool
    if spec is None:
        return
    for cell in expand(loaded.study, "live", seed=seed, quick=quick).cells:
        member = member_of.get(cell.array.name)
        is_named = cell.array.name in spec.arrays and cell.workload.name in spec.workloads
        if not is_named or cell.repeat != 0 or cell.load.kind != "closed" or member is None or stop():
            continue
        load: ToolLoad = {
            "array": cell.array.name,
            "workload": cell.workload.name,
            "depth": cell.load.depth,
            "tool": "fio",
            "target": str(member.get("path", member["kind"])),
            "within_percent": spec.within_percent,
        }
        try:
            request = _job_by_job(loaded, cell, spec, member, member_bytes)
            found = compare_with_fio(
                request, pairs=spec.pairs, seed=seed, words=_STUDY_WORDS, progress=progress, stop=stop
            )
        except KeyboardInterrupt:
            return
        except (InputError, RefusedError, CellFailedError) as error:
            progress.note(f"no second tool: {error}")
            yield {**load, "missing": str(error)}
            return
        found["differences"].append(_STUDY_DIFFERENCE)
        yield {**load, **found}


def _job_by_job(loaded: LoadedStudy, cell: Cell, spec: SecondToolSpec, member: Opaque, member_bytes: int) -> DirectCell:
    """What both are asked: the load's depth in jobs, each with one request outstanding and a part of its own."""
    jobs = cell.load.depth
    target = {key: value for key, value in member.items() if key != "destroy"}
    request = direct_request(loaded, cell, targets=[target], quick=False)
    workload = request.workload
    if workload.address.kind == "sequential":
        workload = workload.model_copy(update={"address": workload.address.model_copy(update={"streams": 1})})
    whole = member_bytes // (jobs * _GRAIN_BYTES) * jobs * _GRAIN_BYTES
    of_both = {
        "sector_bytes": loaded.study.live.sector,
        "workers": jobs,
        "workload": workload,
        "spans": [Span(offset_bytes=0, size_bytes=whole or member_bytes)],
        "destroy": [member["path"]] if member.get("destroy") else [],
        "warmup": cell_limit(spec.warmup, jobs),
        "measure": cell_limit(spec.measure, jobs),
    }
    return request.model_copy(update=of_both)


def _raidlab_figures(cell: DirectCell, stop: StopFlag) -> Figures:
    """One run of raidlab's engine."""
    answer = _ask(cell, stop)
    seconds = int(answer["elapsed_ns"]) / 1e9
    done = answer["all"]
    iops, mb_s = int(done["requests"]) / seconds, int(done["bytes"]) / 1e6 / seconds
    figures = _figures(iops, mb_s, times_of_all(answer, "service").percentile_ns)
    if (spent := answer.get("accounting")) is not None:
        figures[PROCESSOR] = (spent["user_ns"] + spent["system_ns"]) / 1e9 / seconds
    return figures


def _fio_figures(job: str, folder: Path, stop: StopFlag) -> Figures:
    """One run of fio."""
    (folder / "job.fio").write_text(job, encoding="utf-8")
    # In a session of its own, so that Ctrl-C reaches only this process, which ends it in order.
    running = subprocess.Popen(
        _FIO_WORDS,
        cwd=folder,
        env={**os.environ, **_HUGE_PAGES},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, said = _wait(running, stop)
    finally:
        if running.poll() is None:
            running.kill()
            running.communicate()
    if running.returncode != 0:
        reason = next((line for line in said.strip().split("\n") if line), "it said nothing")
        raise CellFailedError(f"fio ended with status {running.returncode}: {reason}")
    result = parse_result((folder / "fio.json").read_text(encoding="utf-8"))
    failed = [job for job in result.jobs if job.error]
    if failed:
        raise CellFailedError(f"fio: the job '{failed[0].name}' ended with error {failed[0].error}")
    figures = _figures(result.all.iops, result.all.throughput_mb_s, result.all.percentile_ns)
    # Of clones it tells the mean share of their time.
    clones = _NUMJOBS.search(job)
    share = sum(one.user_cpu_percent + one.system_cpu_percent for one in result.jobs) / 100
    figures[PROCESSOR] = share * (int(clones[1]) if clones else 1)
    return figures


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
    """The job that asks fio for the same, with full paths: fio runs in a folder of its own."""
    targets = [
        target | {"path": str(Path(target["path"]).absolute())} if "path" in target else target
        for target in cell.targets
    ]
    try:
        text = export_cell("witness", cell.model_copy(update={"targets": targets}))
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


def _ask(cell: DirectCell, stop: StopFlag) -> CellAnswer:
    answer = cell_answer(run_request(text_of(cell), lambda _share: not stop()))
    check_ended(answer.get("stopped_by"), interrupted=bool(answer.get("interrupted")))
    return answer


def _figures(iops: float, throughput_mb_s: float, percentile_ns: Callable[[float], int | None]) -> Figures:
    """The figures that both tools give."""
    figures = {"iops": iops, "throughput_mb_s": throughput_mb_s}
    for percentile in PERCENTILES:
        value = percentile_ns(percentile)
        if value is not None:
            figures[f"service_time_ns_p{percentile}"] = float(value)
    return figures
