"""Read a need, from a file, a table or flags: its devices and its work, with every mistake in one line.

Invariants:

- Nothing is simulated here. A `LoadedNeed` is sound on its own; what only shows once arrays stand beside it is found by
  the engine, in `cells`.
- The work of a fio job or of a study is that of the file as it is; only its load may be replaced, by ``need.rate``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from raidlab.errors import InputError, Problem
from raidlab.reading import Plain
from raidlab.recommend.need import PERCENTILES, FioWork, HeldDevice, Need, StudyWork
from raidlab.study import load_study
from raidlab.study.cell import BurstyArrival, CellLoad, ClosedLoad, HeldLoad, OpenLoad, PoissonArrival
from raidlab.study.device import DEFAULT_SECTOR_BYTES, DeviceModel, load_device
from raidlab.study.expand import load_of
from raidlab.study.find import device_names, nearest
from raidlab.study.places import Place, line_index, value_text, written
from raidlab.study.table_file import Reporter, parsed, read_table, shown_file, text_of
from raidlab.study.words import Line, Positive, Table
from raidlab.study.workload import Load, OpenLoop, Workload

_NOT_SIMULATED = ("files", "streams")
# Of a workload what is said of arrays and targets, which are others here.
_NOT_OURS = {"name", "arrays", "on", "load", "files", "streams"}


@dataclass(frozen=True)
class WorkLoad:
    """How hard an array is driven: so many requests outstanding, a rate, or a trace's own times."""

    kind: Literal["closed", "open", "trace"]
    depth: int = 0
    rate_per_s: float = 0.0
    arrival: Literal["poisson", "uniform", "h2"] = "poisson"
    cv2: float | None = None

    @property
    def words(self) -> str:
        """As a sentence has it."""
        if self.kind == "trace":
            return "at the times of the trace"
        return f"at {self.rate_per_s:g} requests/s" if self.kind == "open" else f"at queue depth {self.depth}"

    def table(self) -> dict[str, Plain]:
        """As a study has it; a trace's own times need no word."""
        if self.kind == "trace":
            return {}
        if self.kind != "open":
            return {"depths": [max(self.depth, 1)]}
        open_loop: dict[str, Plain] = {"arrival": self.arrival, "rates_per_s": [self.rate_per_s]}
        return {"open": open_loop if self.cv2 is None else {**open_loop, "cv2": self.cv2}}


@dataclass(frozen=True)
class ResolvedWork:
    """One workload with its load."""

    name: str
    table: dict[str, Plain]
    """The keys of a study's workload, without name and load."""
    load: WorkLoad
    depth: int
    """Requests outstanding where throughput is measured of a load that is not closed."""
    note: str = ""
    """Why its load is not what a reader of its file may think."""


@dataclass(frozen=True)
class LoadedNeed:
    """A need that has passed its checks."""

    need: Need
    file: Path
    """Where it was read; relative paths count from it."""
    models: list[DeviceModel]
    """One a device, in order."""
    works: list[ResolvedWork]
    show: Callable[[Place], tuple[str, str, int | None]] = field(compare=False)
    """A place in it as an error names it: file, key or flag, line."""

    @property
    def within(self) -> tuple[float, int] | None:
        """The first percentile asked for, and its time: that at which throughputs are compared; None without one."""
        return next(iter(self.need.need.within_ns().values()), None)

    def device_name(self, index: int) -> str:
        """What a device is called in the answer."""
        return name_of(self.need.devices[index])

    def bytes_of(self, index: int) -> int:
        """What one device holds, as it is sold."""
        return self.need.devices[index].capacity or self.models[index].capacity_bytes

    def watts_of(self, index: int) -> float | None:
        """What one device draws under load: what the need says, else what its model's file does."""
        return _watts(self.need.devices[index], self.models[index])

    def problem(self, place: Place, message: str, accepted: str | None = None) -> InputError:
        """A mistake that only showed later."""
        file, where, line = self.show(place)
        return InputError([Problem(file, where, message, accepted=accepted, line=line)])


def _watts(held: HeldDevice, model: DeviceModel) -> float | None:
    if held.watts is not None:
        return held.watts
    said = model.power.get("active_watts")
    return float(said) if isinstance(said, int | float) else None


def name_of(held: HeldDevice) -> str:
    """What a device is called."""
    if held.name is not None:
        return held.name
    return Path(held.device).stem if isinstance(held.device, str) else "inline"


class PriceList(Table):
    """A file of prices."""

    currency: Line = ""
    """What they are in."""
    dated: Line = ""
    """When they held, such as ``2026-11``."""
    price: dict[str, Positive]
    """By what the devices are called."""


def load_need(file: Path, changed: Mapping[str, Plain] | None = None, prices: Path | None = None) -> LoadedNeed:
    """Read a need; an `InputError` has every mistake in it. ``changed`` stands in place of keys of the file."""
    text = text_of(file, "a need (TOML)")
    document = parsed(text, file) | dict(changed or {})
    return _checked(document, file, Reporter(shown_file(file), line_index(text)), prices)


def need_of(
    document: Mapping[str, Plain], flags: Mapping[str, str] | None = None, prices: Path | None = None
) -> LoadedNeed:
    """A need given as a table; ``flags`` says which flag stands for a key, such as ``need.capacity``."""
    return _checked(dict(document), Path.cwd() / "-", _FlagReporter("", {}, flags=dict(flags or {})), prices)


def _priced(need: Need, file: Path | None) -> Need:
    """The need with the prices of a file in place of its own."""
    if file is None:
        return need
    listed, reporter = read_table(file, PriceList)
    names = [name_of(held) for held in need.devices]
    for name in listed.price:
        if name not in names:
            reporter.add(("price", name), "is no device of the need", accepted=", ".join(names))
    reporter.complain()
    devices = [held.model_copy(update={"price": listed.price.get(name_of(held), held.price)}) for held in need.devices]
    return need.model_copy(update={"devices": devices})


@dataclass
class _FlagReporter(Reporter):
    """Names flags in place of keys."""

    flags: dict[str, str] = field(default_factory=dict)

    def add(self, place: Place, message: str, value: object = None, accepted: str | None = None) -> None:
        """Note a mistake at the flag that stands for a key."""
        told = None if value is None else value_text(value)
        self.problems.append(Problem("", self.flag(place), message, value=told, accepted=accepted))

    def flag(self, place: Place) -> str:
        """The flag of a key, or of the table that it is in."""
        names = [step for step in place if isinstance(step, str)]
        tried = (".".join(names[:length]) for length in range(len(names), 0, -1))
        return next((self.flags[key] for key in tried if key in self.flags), written(place))


def _checked(document: dict[str, Plain], file: Path, reporter: Reporter, prices: Path | None) -> LoadedNeed:
    need = reporter.validated(Need, document)
    reporter.complain()
    assert need is not None, "a need without problems is valid"
    need = _priced(need, prices)
    models = list(_models(need, file, reporter))
    works = list(_works(need, file, reporter))
    sector_bytes = max((model.sector_bytes for model in models), default=DEFAULT_SECTOR_BYTES)
    _check_together(need, works, sector_bytes, reporter)
    # Of what cannot be read nobody says what it holds or draws.
    if len(models) == len(need.devices):
        _check_capacity(need, models, reporter)
        _check_draw(need, models, reporter)
    reporter.complain()

    def show(place: Place) -> tuple[str, str, int | None]:
        known = Reporter(reporter.file, reporter.lines)
        shown = known if not isinstance(reporter, _FlagReporter) else _FlagReporter("", {}, flags=reporter.flags)
        shown.add(place, "")
        problem = shown.problems[0]
        return problem.file, problem.where, problem.line

    return LoadedNeed(need, file, models, works, show)


def _models(need: Need, file: Path, reporter: Reporter) -> Iterator[DeviceModel]:
    for index, held in enumerate(need.devices):
        try:
            yield load_device(held.device, file)
        except ValueError as error:
            known = nearest(str(held.device), device_names()) if isinstance(held.device, str) else "a device's keys"
            value = held.device if isinstance(held.device, str) else None
            reporter.add(("devices", index, "device"), str(error), value, f"{known}, or a path")
    names = [name_of(held) for held in need.devices]
    for index, name in enumerate(names):
        if name in names[:index]:
            message = f"is already the name of devices[{names.index(name)}]"
            reporter.add(("devices", index, "name"), message, name, "a name used once")


def _works(need: Need, file: Path, reporter: Reporter) -> Iterator[ResolvedWork]:
    used: set[str] = set()
    for index, work in enumerate(need.workload):
        place: Place = ("workload", index)
        try:
            if isinstance(work, FioWork):
                found = list(_of_fio(work, file, place, reporter))
            elif isinstance(work, StudyWork):
                found = list(_of_study(work, file, place, reporter))
            else:
                found = list(_of_table(work, work.load, need, file.parent, place, reporter))
        except InputError as error:
            # Mistakes of another file have their places there.
            reporter.problems += error.problems
            continue
        for one in found:
            if one.name in used:
                reporter.add((*place, "name"), "is the name of another workload too", one.name, "a name used once")
            used.add(one.name)
            yield _at_rate(one, need)


def _at_rate(work: ResolvedWork, need: Need) -> ResolvedWork:
    """A workload that arrives at the rate needed, where one is."""
    if need.need.rate is None:
        return work
    depth = work.load.depth or work.depth
    return ResolvedWork(work.name, work.table, WorkLoad("open", rate_per_s=need.need.rate), depth)


def _of_fio(work: FioWork, file: Path, place: Place, reporter: Reporter) -> Iterator[ResolvedWork]:
    """The jobs of a job file, by their work alone: its files stand for no array."""
    from raidlab.formats.fio.cells import ImportSettings, import_jobs
    from raidlab.formats.fio.notes import depth_note
    from raidlab.formats.fio.options import load_job_file
    from raidlab.formats.fio.places import FILE, FileStatus

    if not (file.parent / work.fio).is_file():
        reporter.add((*place, "fio"), "is no file that is there", work.fio, "the path of a fio job file")
        return
    jobs = load_job_file(file.parent / work.fio, sections=(work.job,) if work.job is not None else ())
    imported = import_jobs(jobs, ImportSettings(), lambda _path: FileStatus(FILE, 2**50))
    for group in imported.groups:
        together = list(dict.fromkeys(lane.job.title for lane in group))
        if len(together) > 1:
            reporter.add((*place, "fio"), *_of_jobs_at_once(together, work.fio))
    lanes = [lane for group in imported.groups for lane in group]
    for title in dict.fromkeys(lane.job.title for lane in lanes):
        clones = [lane for lane in lanes if lane.job.title == title]
        load = _of_cell(clones[0].cell.load, len(clones))
        if load is None:
            message = f"job '{title}' holds a percentile; the goal is a key of the need"
            reporter.add(
                (*place, "fio"), message, work.fio, 'a job without latency_target, and need = { p99 = "100ms" }'
            )
            continue
        table = clones[0].cell.workload.model_dump(exclude_none=True, exclude={"volumes"})
        yield ResolvedWork(title, table, load, load.depth or 16, depth_note(clones[0].job) or "")


def _of_jobs_at_once(titles: Sequence[str], file: str) -> tuple[str, str, str]:
    """What is wrong with jobs that fio runs together: the message, the value, and what would be accepted."""
    names = " and ".join((", ".join(f"'{title}'" for title in titles[:-1]), f"'{titles[-1]}'"))
    message = f"jobs {names} run at once in fio, and each workload of a need is simulated by itself"
    accepted = (
        f"stonewall in job '{titles[1]}', for each by itself; one of them (workload = {{ fio = ..., job = "
        f"'{titles[0]}' }} in NEED.toml); or a trace of what they ask for together (workload = {{ name = ..., "
        "trace = { file = ... } })"
    )
    return message, file, accepted


def _of_cell(load: CellLoad, clones: int) -> WorkLoad | None:
    """The load of a cell, of all clones together."""
    if isinstance(load, HeldLoad):
        return None
    if isinstance(load, ClosedLoad):
        return WorkLoad("closed", load.depth * clones)
    assert isinstance(load, OpenLoad), "a load is one of three"
    rate = getattr(load.arrival, "rate_per_s", 0.0) * clones
    if isinstance(load.arrival, BurstyArrival):
        return WorkLoad("open", rate_per_s=rate, arrival="h2", cv2=load.arrival.cv2)
    return WorkLoad(
        "open", rate_per_s=rate, arrival="poisson" if isinstance(load.arrival, PoissonArrival) else "uniform"
    )


def _of_study(work: StudyWork, file: Path, place: Place, reporter: Reporter) -> Iterator[ResolvedWork]:
    beside = file.parent / work.study
    try:
        loaded = load_study(beside if beside.is_file() else work.study)
    except InputError as error:
        if any(problem.file for problem in error.problems):
            # Its own mistakes have their places in it.
            raise
        for problem in error.problems:
            reporter.add((*place, "study"), problem.message, work.study, problem.accepted)
        return
    names = [workload.name for workload in loaded.study.workload]
    if work.workload is not None and work.workload not in names:
        reporter.add((*place, "workload"), "is no workload of the study", work.workload, nearest(work.workload, names))
        return
    for workload in loaded.study.workload:
        if work.workload in (None, workload.name):
            load = load_of(loaded.study, loaded.study.array[0], workload)
            asked = (*place, "study")
            yield from _of_table(workload, load, None, loaded.file.parent, asked, reporter)


def _of_table(
    workload: Workload, load: Load | None, need: Need | None, beside: Path, place: Place, reporter: Reporter
) -> Iterator[ResolvedWork]:
    """A workload of a study, at its heaviest load."""
    own = need.depth if need is not None else 16
    for key in _NOT_SIMULATED:
        if getattr(workload, key) is not None:
            message = f"'{workload.name}' asks for {'whole files' if key == 'files' else 'streams'}, not for requests"
            reporter.add(place, message, None, "read, size and address, or a trace")
            return
    table = workload.model_dump(exclude_unset=True, exclude_none=True, exclude=_NOT_OURS)
    if workload.trace is not None:
        trace = workload.trace.model_dump(exclude_unset=True, exclude_none=True)
        table = {"trace": {**trace, "file": str((beside / workload.trace.file).absolute())}}
    yield ResolvedWork(workload.name, table, _heaviest(workload, load, own), own)


def _heaviest(workload: Workload, load: Load | None, depth: int) -> WorkLoad:
    if workload.trace is not None and workload.trace.pace == "stamps":
        return WorkLoad("trace")
    if load is not None and load.open is not None:
        return _of_open(load.open)
    depths = load.depths if load is not None else []
    if not depths and load is not None and load.hold is not None:
        return WorkLoad("closed", min(load.hold.max_depth, depth))
    return WorkLoad("closed", max(depths, default=depth))


def _of_open(load: OpenLoop) -> WorkLoad:
    return WorkLoad("open", rate_per_s=max(load.rates_per_s), arrival=load.arrival, cv2=load.cv2)


def _check_together(need: Need, works: list[ResolvedWork], sector_bytes: int, reporter: Reporter) -> None:
    """What is asked of the answer must be known of every device."""
    goals = need.need
    for index, chunk in enumerate(need.search.chunks):
        if chunk % sector_bytes:
            message = f"is not a multiple of the sector of {sector_bytes} bytes"
            reporter.add(("search", "chunks", index), message, chunk, f"a multiple of {sector_bytes} bytes")
    for key, of_device, wanted in (
        ("budget", "price", goals.budget),
        ("loss_per_year", "afr_percent", goals.loss_per_year),
    ):
        missing = [name_of(held) for held in need.devices if getattr(held, of_device) is None]
        if wanted is not None and missing:
            message = f"needs {of_device} of every device, and {', '.join(missing)} has none"
            reporter.add(("need", key), message, wanted, f"{of_device} in each table of devices")
    for state in goals.states:
        if not goals.tolerate:
            message = "asks for an array without a disk, and none need bear that"
            reporter.add(("need", state), message, None, "it beside tolerate of at least 1")
        elif all(goal.kind != state for goal in goals.time_goals()):
            keys = (*PERCENTILES, *(("within",) if state == "rebuilding" else ()))
            reporter.add(("need", state), "asks for no time", None, ", ".join(keys))
    _check_order(need, works, reporter)


def _check_capacity(need: Need, models: Sequence[DeviceModel], reporter: Reporter) -> None:
    for index, (held, model) in enumerate(zip(need.devices, models, strict=True)):
        if held.capacity is not None and held.capacity < model.capacity_bytes:
            message = f"is less than what its model has, {model.capacity_bytes} bytes"
            accepted = "at least that; of a smaller disk device = { like = ..., capacity_bytes = ... }"
            reporter.add(("devices", index, "capacity"), message, held.capacity, accepted)


def _check_draw(need: Need, models: Sequence[DeviceModel], reporter: Reporter) -> None:
    drawing = zip(need.devices, models, strict=True)
    missing = [name_of(held) for held, model in drawing if _watts(held, model) is None]
    if need.need.watts is not None and missing:
        message = f"needs watts of every device, and {', '.join(missing)} has none"
        accepted = "watts in each table of devices, or [power] in the device's file"
        reporter.add(("need", "watts"), message, need.need.watts, accepted)


def _check_order(need: Need, works: list[ResolvedWork], reporter: Reporter) -> None:
    goals = need.need
    if need.ask == "cheapest" and not need.is_priced:
        reporter.add(
            ("ask",), "needs a price of every device", need.ask, "'fastest', or price in each table of devices"
        )
    if goals.rate is not None and any("trace" in work.table for work in works):
        accepted = "either rate or a trace, which has times of its own"
        reporter.add(("need", "rate"), "cannot be kept by a trace", goals.rate, accepted)
    elif goals.rate is not None and len(works) > 1:
        message = f"would be that of each of {len(works)} workloads ({', '.join(work.name for work in works)})"
        accepted = (
            "one workload, such as { fio = ..., job = ... }; or a rate of its own for each: rate_iops in the fio job, "
            "or load = { open = { rates_per_s = [...] } } in each [[workload]] of NEED.toml"
        )
        reporter.add(("need", "rate"), message, goals.rate, accepted)
