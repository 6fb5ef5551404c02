"""Which of fio's options raidlab honours, which say nothing of the load, and which it cannot honour.

Invariants:

- Every option of a job is in exactly one of three classes: honoured (`HONOURED`), about fio's own report and process
  (`QUIET`, told as a note), or refused with its line. There is no fourth: nothing is dropped in silence.
- Defaults are fio's: a job that says nothing reads in order, 4 KiB at a time, one at a time, through the page cache.
- All mistakes of a file are collected before any is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raidlab.errors import InputError, Problem
from raidlab.formats.fio import numbers, values
from raidlab.formats.fio.numbers import Extent
from raidlab.formats.fio.reader import Line, Section, read_job_file
from raidlab.formats.fio.values import ByDirection, Distribution, Pattern, Splits

_IN_ORDER = Pattern(reads=True, writes=False, random=False)
_DEFAULT_SIZES = ByDirection(None, None)
_UNIFORM = Distribution()
_FRONT = Extent(bytes=0)


@dataclass(frozen=True)
class Job:
    """One job with all that raidlab honours, under fio's names and with fio's defaults.

    ``lines`` has the line that set each option, for whatever has to be said of it later.
    """

    section: Section
    rw: Pattern = _IN_ORDER
    bs: ByDirection = _DEFAULT_SIZES
    bssplit: Splits | None = None
    blockalign: ByDirection | None = None
    ioengine: str = "psync"
    iodepth: int = 1
    io_submit_mode: str = "inline"
    batch_submit: int | None = None
    batch_complete_min: int = 1
    batch_complete_max: int | None = None
    hipri: bool = False
    cpus_allowed: tuple[int, ...] = ()
    cpus_allowed_policy: str = "shared"
    direct: bool = False
    rate: ByDirection | None = None
    rate_iops: ByDirection | None = None
    rate_process: str = "linear"
    latency_target_ns: int | None = None
    latency_percentile: float = 100.0
    latency_window_ns: int = 0
    latency_run: bool = False
    file_service_type: str = "roundrobin"
    random_distribution: Distribution = _UNIFORM
    norandommap: bool = False
    size: Extent | None = None
    io_size: Extent | None = None
    offset: Extent = _FRONT
    offset_increment: int = 0
    runtime_ns: int = 0
    time_based: bool = False
    ramp_time_ns: int = 0
    loops: int = 1
    numjobs: int = 1
    filename: tuple[str, ...] = ()
    directory: tuple[str, ...] = ()
    description: str = ""
    name: str = ""
    rwmixread: int = 50
    stonewall: bool = False
    invalidate: bool = True
    gtod_reduce: bool = False
    end_fsync: bool = False
    refill_buffers: bool = False
    buffer_compress_percentage: int = 0
    randseed: int | None = None
    quiet: tuple[str, ...] = ()
    lines: Mapping[str, Line] = field(default_factory=dict)

    @property
    def adjoining(self) -> int:
        """How many clones have adjoining parts of a file, each its own; 1 where they use the same part."""
        return self.numjobs if self.offset_increment else 1

    @property
    def title(self) -> str:
        """What the job is called."""
        return self.section.name

    def problem(self, option: str, message: str, accepted: str | None = None) -> Problem:
        """A mistake of an option as it holds in this job: at its line, or at the job where nobody wrote it."""
        line = self.lines.get(option)
        return (self.section if line is None else line).problem(message, accepted)


Reading = Callable[[str, int], Any]


@dataclass(frozen=True)
class _Option:
    """How an honoured option is read: the attribute of `Job` it sets, its reader, and what it accepts, in words."""

    attribute: str
    read: Reading
    accepted: str
    bare: bool = False


def _size(text: str, kb_base: int) -> int:
    return numbers.size(text, kb_base)


def _at_least_one(text: str, kb_base: int) -> int:
    # fio reads every whole number with a unit: iodepth=1k is 1024.
    value = numbers.size(text, kb_base)
    if value == 0:
        raise ValueError("must be at least 1")
    return value


def _none_or_one(text: str, kb_base: int) -> int:
    value = numbers.size(text, kb_base)
    if value > 1:
        raise ValueError("raidlab waits for no more than one completion")
    return value


def _share(text: str, _kb_base: int) -> int:
    percent = numbers.count(text.removesuffix("%"))
    if percent > 100:
        raise ValueError("is more than 100 %")
    return percent


def _percentile(text: str, _kb_base: int) -> float:
    value = numbers.number(text)
    if not 0 < value < 100:
        raise ValueError("no depth holds all requests within a time; raidlab holds a percentile")
    return value


def _word(words: tuple[str, ...], what: str) -> Reading:
    return lambda text, _base: values.one_of(text, words, what)


def _both(read_one: Reading) -> Reading:
    return lambda text, base: values.by_direction(text, lambda part: int(read_one(part, base)))


def _switch(attribute: str, *, bare: bool = False) -> _Option:
    return _Option(attribute, lambda text, _base: numbers.switch(text), numbers.SWITCH_ACCEPTED, bare)


# fio's own bound on all jobs and their clones together.
MOST_CLONES = 4096


def _text(attribute: str) -> _Option:
    return _Option(attribute, lambda text, _base: text, "any text")


def _count(attribute: str) -> _Option:
    return _Option(attribute, _at_least_one, "a whole number above 0")


def _clones(text: str, base: int) -> int:
    clones = _at_least_one(text, base)
    if clones > MOST_CLONES:
        raise ValueError("is more than fio runs at once")
    return clones


def _files(attribute: str) -> _Option:
    return _Option(attribute, lambda text, _base: values.paths(text), "names, separated by ':'")


_TIME_OPTION = (lambda text, _base: numbers.time_ns(text), numbers.TIME_ACCEPTED)
_MICROSECONDS_OPTION = (lambda text, _base: numbers.time_ns(text, "us"), numbers.TIME_ACCEPTED.replace("seconds", "us"))
_EXTENT_ACCEPTED = f"{numbers.SIZE_ACCEPTED}, or a percentage such as 50%"
_BOTH_ACCEPTED = f"{numbers.SIZE_ACCEPTED}; 'read,write' for each direction"
_PERCENT_ACCEPTED = "a whole number from 0 to 100"

HONOURED: dict[str, _Option] = {
    "rw": _Option("rw", values.pattern, f"{values.PATTERN_ACCEPTED}; ':SIZE' after read or write leaves gaps"),
    "bs": _Option("bs", _both(_at_least_one), _BOTH_ACCEPTED),
    "bsrange": _Option("bs", values.single_range, "a range of one size such as 4k-4k, or bssplit"),
    "bssplit": _Option("bssplit", values.splits, "sizes with percentages such as 4k/70:64k/30"),
    "blockalign": _Option("blockalign", _both(_at_least_one), _BOTH_ACCEPTED),
    "ioengine": _Option("ioengine", _word(values.ENGINES, "I/O engine"), ", ".join(values.ENGINES)),
    "iodepth": _count("iodepth"),
    "io_submit_mode": _Option("io_submit_mode", _word(("inline", "offload"), "mode"), "inline, offload"),
    "iodepth_batch_submit": _count("batch_submit"),
    "iodepth_batch_complete_min": _Option("batch_complete_min", _none_or_one, "0 (watch for completions) or 1"),
    "iodepth_batch_complete_max": _count("batch_complete_max"),
    "hipri": _switch("hipri", bare=True),
    "cpus_allowed": _Option("cpus_allowed", lambda text, _base: values.processors(text), "such as 0,2 or 0-3"),
    "cpus_allowed_policy": _Option(
        "cpus_allowed_policy", _word(("shared", "split"), "way of sharing processors"), "shared, split"
    ),
    "direct": _switch("direct"),
    "buffered": _Option("direct", lambda text, _base: not numbers.switch(text), numbers.SWITCH_ACCEPTED),
    "rate": _Option("rate", _both(_at_least_one), "bytes a second, such as 10m; 'read,write' for each direction"),
    "rate_iops": _Option("rate_iops", _both(_at_least_one), "requests a second; 'read,write' for each direction"),
    "rate_process": _Option("rate_process", _word(("linear", "poisson"), "process"), "linear, poisson"),
    "latency_target": _Option("latency_target_ns", *_MICROSECONDS_OPTION),
    "latency_window": _Option("latency_window_ns", *_MICROSECONDS_OPTION),
    "latency_percentile": _Option("latency_percentile", _percentile, "a number above 0 and below 100"),
    "latency_run": _switch("latency_run"),
    "file_service_type": _Option(
        "file_service_type", _word(("roundrobin", "random"), "way of taking files"), "roundrobin, random"
    ),
    "random_distribution": _Option(
        "random_distribution", lambda text, _base: values.distribution(text), "random, zipf:THETA"
    ),
    "norandommap": _switch("norandommap", bare=True),
    "size": _Option("size", numbers.extent, _EXTENT_ACCEPTED),
    "io_size": _Option("io_size", numbers.extent, _EXTENT_ACCEPTED),
    "offset": _Option("offset", numbers.extent, _EXTENT_ACCEPTED),
    "offset_increment": _Option("offset_increment", _size, numbers.SIZE_ACCEPTED),
    "runtime": _Option("runtime_ns", *_TIME_OPTION),
    "time_based": _switch("time_based", bare=True),
    "ramp_time": _Option("ramp_time_ns", *_TIME_OPTION),
    "loops": _count("loops"),
    "numjobs": _Option("numjobs", _clones, f"a whole number from 1 to {MOST_CLONES}, which is fio's own bound"),
    "filename": _files("filename"),
    "directory": _files("directory"),
    "description": _text("description"),
    "name": _text("name"),
    "rwmixread": _Option("rwmixread", _share, _PERCENT_ACCEPTED),
    "rwmixwrite": _Option("rwmixread", lambda text, base: 100 - _share(text, base), _PERCENT_ACCEPTED),
    "stonewall": _switch("stonewall", bare=True),
    "invalidate": _switch("invalidate"),
    "gtod_reduce": _switch("gtod_reduce"),
    "end_fsync": _switch("end_fsync"),
    "refill_buffers": _switch("refill_buffers", bare=True),
    "buffer_compress_percentage": _Option("buffer_compress_percentage", _share, _PERCENT_ACCEPTED),
    "randseed": _Option("randseed", _size, numbers.COUNT_ACCEPTED),
}

ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "ba": "blockalign",
    "io_limit": "io_size",
    "iodepth_batch": "iodepth_batch_submit",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "timeout": "runtime",
    "wait_for_previous": "stonewall",
}

# About fio's own process and report; the requests are the same without them.
_QUIET_WORDS = """
    unit_base thread group_reporting new_group per_job_logs clocksource disable_lat disable_clat disable_slat
    disable_bw_measurement clat_percentiles lat_percentiles slat_percentiles percentile_list significant_figures
    unified_rw_reporting write_bw_log write_lat_log write_iops_log write_hist_log log_avg_msec log_hist_msec
    log_hist_coarseness log_max_value log_offset log_compression log_store_compressed log_unix_epoch bwavgtime
    iopsavgtime randrepeat allrandrepeat random_generator softrandommap log_prio create_serialize create_fsync overwrite
    scramble_buffers lockmem
fixedbufs registerfiles nonvectored
"""
QUIET = frozenset(_QUIET_WORDS.split())

_WHY_REFUSED = {
    "verify": "raidlab checks content in arrays of its own, not in fio's blocks",
    "fsync": "raidlab measures requests, not the syncing between them",
    "fdatasync": "raidlab measures requests, not the syncing between them",
    "sync": "raidlab opens without O_SYNC",
    "thinktime": "raidlab's clients do not think",
    "startdelay": "all jobs of a group start at once",
    "wait_for": "groups run one after another, divided by stonewall",
    "ss": "raidlab judges by itself whether a run was steady",
    "steadystate": "raidlab judges by itself whether a run was steady",
    "flow": "raidlab does not balance jobs against each other",
    "zonemode": "raidlab knows no zones",
    "nrfiles": "raidlab takes the files that filename names",
    "filesize": "raidlab takes size for the part of the file that is used",
    "exitall": "every job of a group runs to its own end",
    "rate_min": "raidlab does not end a run for being slow; it reports the backlog",
    "ratemin": "raidlab does not end a run for being slow; it reports the backlog",
    "read_iolog": "raidlab replays no fio log",
    "replay_redirect": "raidlab replays no fio log",
}
_LINE_LEFT_OUT = "the job without it, or one of the options that raidlab fio import --help lists"


@dataclass(frozen=True)
class JobFile:
    """What a job file asks for: its jobs in order, and what has to be said of them."""

    file: Path
    jobs: tuple[Job, ...]


def load_job_file(
    file: Path, *, sections: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
) -> JobFile:
    """Read a job file and refuse what raidlab cannot honour.

    Parameters
    ----------
    file : pathlib.Path
    sections : tuple of str
        Only these jobs; all when empty.
    environment : mapping, optional
        What ``${NAME}`` stands for.

    Raises
    ------
    InputError
        With every line at fault.
    """
    found, problems = read_job_file(file, environment)
    for name in sections:
        if name not in {section.name for section in found}:
            having = ", ".join(section.name for section in found) or "none"
            problems.append(Problem(str(file), "--section", "is not in the file", f"'{name}'", accepted=having))
    wanted = [section for section in found if not sections or section.name in sections]
    jobs = [job_of(section, problems) for section in wanted]
    if sum(job.numjobs for job in jobs) > MOST_CLONES:
        accepted = f"at most {MOST_CLONES}, which is fio's own bound"
        problems.append(Problem(str(file), "numjobs", "all jobs together have too many clones", accepted=accepted))
    if not problems and not jobs:
        problems.append(Problem(str(file), "", "has no job", accepted="a section [name]"))
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return JobFile(file, tuple(jobs))


def job_of(section: Section, problems: list[Problem]) -> Job:
    """The job of a section; lines that cannot be honoured are added to ``problems`` and left out."""
    found: dict[str, Any] = {}
    lines: dict[str, Line] = {}
    quiet: list[str] = []
    for line in section.lines:
        name = ALIASES.get(line.name, line.name)
        option = HONOURED.get(name)
        if name == "kb_base":
            continue  # the reader has seen to it
        if option is not None:
            value = _value(line, option, problems)
            if value is not None:
                found[option.attribute] = value
                lines[option.attribute] = line
        elif name in QUIET:
            quiet.append(line.name)
        else:
            problems.append(_refusal(line))
    return Job(section, **found, quiet=tuple(dict.fromkeys(quiet)), lines=lines)


def _value(line: Line, option: _Option, problems: list[Problem]) -> Any:
    if line.value is None:
        if option.bare:
            return True
        problems.append(line.problem("needs a value", option.accepted))
        return None
    if line.value.startswith("("):
        problems.append(line.problem("raidlab does no arithmetic", option.accepted))
        return None
    try:
        return option.read(line.value, line.kb_base)
    except ValueError as error:
        problems.append(line.problem(str(error), option.accepted))
        return None


def _refusal(line: Line) -> Problem:
    reason = _WHY_REFUSED.get(line.name)
    if reason is None and line.name.startswith("verify"):
        reason = _WHY_REFUSED["verify"]
    if reason is None:
        from difflib import get_close_matches  # costs a start-up more than the rest of this module

        near = get_close_matches(line.name, [*HONOURED, *ALIASES, *QUIET], n=1, cutoff=0.85)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        return line.problem(f"is not among the options that raidlab honours{hint}", _LINE_LEFT_OUT)
    return line.problem(reason, _LINE_LEFT_OUT)
