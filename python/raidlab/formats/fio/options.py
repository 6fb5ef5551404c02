"""Which of fio's options raidlab honours, which say nothing of the load, and which it cannot honour.

Invariants:

- Every option of a job is in exactly one of three classes: honoured (`HONOURED`), about fio's own report and process
  (`QUIET`, told as a note), or refused with its line. There is no fourth: nothing is dropped in silence.
- Defaults are fio's: a job that says nothing reads in order, 4 KiB at a time, one at a time, through the page cache.
- All mistakes of a file are collected before any is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from raidlab.errors import InputError, Problem
from raidlab.formats.fio import values
from raidlab.formats.fio.reader import JobSection, OptionLine, read_job_file
from raidlab.formats.fio.values import ByDirection, Distribution, Extent, Pattern, Splits

# Reads a value, given the base of units of its line.
Reading = Callable[[str, int], object]


@dataclass(frozen=True)
class Option:
    """How an honoured option is read: the attribute of `Job` it sets, its reader, what it accepts, in words."""

    attribute: str
    read: Reading
    accepted: str
    is_bare: bool = False
    """Whether its name alone turns it on."""


def _option(default: object, read: Reading, accepted: str, *, name: str = "", is_bare: bool = False) -> Any:
    """A field of `Job`: fio's default, how it is read; ``name`` where fio has another for it."""
    return field(default=default, metadata={"name": name, "option": (read, accepted, is_bare)})


def _at_least_one(text: str, kb_base: int, read: Callable[[str, int], int] = values.size) -> int:
    # fio reads every whole number with a unit: iodepth=1k is 1024.
    value = read(text, kb_base)
    if value == 0:
        raise ValueError("must be at least 1")
    return value


def _none_or_one(text: str, kb_base: int) -> int:
    value = values.size(text, kb_base)
    if value > 1:
        raise ValueError("raidlab waits for no more than one completion")
    return value


def _share(text: str, _kb_base: int) -> int:
    percent = values.count(text.removesuffix("%"))
    if percent > 100:
        raise ValueError("is more than 100 %")
    return percent


def _percentile(text: str, _kb_base: int) -> float:
    value = values.number(text)
    if not 0 < value < 100:
        raise ValueError("no depth holds all requests within a time; raidlab holds a percentile")
    return value


# fio's own bound on all jobs and their clones together.
MOST_CLONES = 4096


def _clones(text: str, base: int) -> int:
    clones = _at_least_one(text, base)
    if clones > MOST_CLONES:
        raise ValueError("is more than fio runs at once")
    return clones


def _without_base(read: Callable[[str], object]) -> Reading:
    return lambda text, _base: read(text)


def _both(text: str, base: int) -> ByDirection:
    return values.by_direction(text, lambda part: _at_least_one(part, base, values.block_size))


def _switch(default: bool = False, *, name: str = "", is_bare: bool = False) -> Any:
    return _option(default, _SWITCH, values.SWITCH_ACCEPTED, name=name, is_bare=is_bare)


def _count(default: int | None, name: str = "") -> Any:
    return _option(default, _at_least_one, "a whole number above 0", name=name)


def _word(words: tuple[str, ...], what: str) -> Any:
    """One of a few words, of which the first is the default."""
    return _option(words[0], lambda text, _base: values.one_of(text, words, what), ", ".join(words))


def _microseconds(default: int | None, name: str) -> Any:
    accepted = values.TIME_ACCEPTED.replace("seconds", "us")
    return _option(default, lambda text, _base: values.time_ns(text, "us"), accepted, name=name)


def _seconds(name: str) -> Any:
    return _option(0, _without_base(values.time_ns), values.TIME_ACCEPTED, name=name)


def _extent(default: Extent | None) -> Any:
    return _option(default, values.extent, f"{values.SIZE_ACCEPTED}, or a percentage such as 50%")


def _files() -> Any:
    return _option((), _without_base(values.paths), "names, separated by ':'")


_SWITCH = _without_base(values.switch)
_BOTH_ACCEPTED = f"{values.SIZE_ACCEPTED}; 'read,write' for each direction"
_PERCENT_ACCEPTED = "a whole number from 0 to 100"


@dataclass(frozen=True)
class Job:
    """One job with all that raidlab honours, under fio's names and with fio's defaults.

    ``lines`` has the line that set each option, for whatever has to be said of it later.
    """

    section: JobSection
    rw: Pattern = _option(
        Pattern(reads=True, writes=False, random=False),
        values.pattern,
        f"{values.PATTERN_ACCEPTED}; ':SIZE' after read or write leaves gaps",
    )
    bs: ByDirection = _option(ByDirection(None, None), _both, _BOTH_ACCEPTED)
    bssplit: Splits | None = _option(None, values.splits, "sizes with percentages such as 4k/70:64k/30")
    blockalign: ByDirection | None = _option(None, _both, _BOTH_ACCEPTED)
    ioengine: str = _option(
        "psync", lambda text, _base: values.one_of(text, values.ENGINES, "I/O engine"), ", ".join(values.ENGINES)
    )
    iodepth: int = _count(1)
    io_submit_mode: str = _word(("inline", "offload"), "mode")
    batch_submit: int | None = _count(None, "iodepth_batch_submit")
    batch_complete_min: int = _option(
        1, _none_or_one, "0 (watch for completions) or 1", name="iodepth_batch_complete_min"
    )
    batch_complete_max: int | None = _count(None, "iodepth_batch_complete_max")
    hipri: bool = _switch(is_bare=True)
    cpus_allowed: tuple[int, ...] = _option((), _without_base(values.processors), "such as 0,2 or 0-3")
    cpus_allowed_policy: str = _word(("shared", "split"), "way of sharing processors")
    direct: bool = _switch()
    rate: ByDirection | None = _option(None, _both, "bytes a second, such as 10m; 'read,write' for each direction")
    rate_iops: ByDirection | None = _option(None, _both, "requests a second; 'read,write' for each direction")
    rate_process: str = _word(("linear", "poisson"), "process")
    latency_target_ns: int | None = _microseconds(None, "latency_target")
    latency_window_ns: int = _microseconds(0, "latency_window")
    latency_percentile: float = _option(100.0, _percentile, "a number above 0 and below 100")
    latency_run: bool = _switch()
    file_service_type: str = _word(("roundrobin", "random"), "way of taking files")
    random_distribution: Distribution = _option(
        Distribution(), _without_base(values.distribution), "random, zipf:THETA"
    )
    percentage_random: int = _option(100, _share, _PERCENT_ACCEPTED)
    norandommap: bool = _switch(is_bare=True)
    size: Extent | None = _extent(None)
    io_size: Extent | None = _extent(None)
    offset: Extent = _extent(Extent(bytes=0))
    offset_increment: int = _option(0, values.size, values.SIZE_ACCEPTED)
    runtime_ns: int = _seconds("runtime")
    time_based: bool = _switch(is_bare=True)
    ramp_time_ns: int = _seconds("ramp_time")
    loops: int = _count(1)
    numjobs: int = _option(1, _clones, f"a whole number from 1 to {MOST_CLONES}, which is fio's own bound")
    filename: tuple[str, ...] = _files()
    directory: tuple[str, ...] = _files()
    description: str = _option("", _without_base(str), "any text")
    name: str = _option("", _without_base(str), "any text")
    rwmixread: int = _option(50, _share, _PERCENT_ACCEPTED)
    stonewall: bool = _switch(is_bare=True)
    invalidate: bool = _switch(True)
    gtod_reduce: bool = _switch()
    end_fsync: bool = _switch()
    refill_buffers: bool = _switch(is_bare=True)
    buffer_compress_percentage: int = _option(0, _share, _PERCENT_ACCEPTED)
    randseed: int | None = _option(None, values.size, values.COUNT_ACCEPTED)
    quiet: tuple[str, ...] = ()
    lines: Mapping[str, OptionLine] = field(default_factory=dict)

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


HONOURED: dict[str, Option] = {
    one.metadata["name"] or one.name: Option(one.name, *one.metadata["option"])
    for one in fields(Job)
    if "option" in one.metadata
} | {
    # Other ways to say the same.
    "bsrange": Option("bs", values.single_range, "a range of one size such as 4k-4k, or bssplit"),
    "buffered": Option("direct", lambda text, _base: not values.switch(text), values.SWITCH_ACCEPTED),
    "rwmixwrite": Option("rwmixread", lambda text, base: 100 - _share(text, base), _PERCENT_ACCEPTED),
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
    """Read a job file, or only some sections of it, and refuse every line that cannot be honoured.

    ``environment`` is what ``${NAME}`` stands for.
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


def job_of(section: JobSection, problems: list[Problem]) -> Job:
    """The job of a section; lines that cannot be honoured are added to ``problems`` and left out."""
    found: dict[str, Any] = {}
    lines: dict[str, OptionLine] = {}
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


def _value(line: OptionLine, option: Option, problems: list[Problem]) -> object:
    if line.value is None:
        if option.is_bare:
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


def _refusal(line: OptionLine) -> Problem:
    reason = _WHY_REFUSED.get(line.name)
    if reason is None and line.name.startswith("verify"):
        reason = _WHY_REFUSED["verify"]
    if reason is None:
        from difflib import get_close_matches  # costs a start-up more than the rest of this module

        near = get_close_matches(line.name, [*HONOURED, *ALIASES, *QUIET], n=1, cutoff=0.85)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        return line.problem(f"is not among the options that raidlab honours{hint}", _LINE_LEFT_OUT)
    return line.problem(reason, _LINE_LEFT_OUT)
