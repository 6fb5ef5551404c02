"""The simulated runs behind a recommendation: which cell stands for what, and what each gave.

Invariants:

- A cell is that of a study with the same arrays and workloads, made by the same code (`raidlab.run.request`): a study
  written from an answer simulates exactly what the answer rests on.
- Run r of a workload has the same requests for every array (common seeds), and nothing is run twice.
- What is asked for together is run together, by the pool; answers depend on no order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev

from raidlab.errors import InputError, Problem
from raidlab.formats.toml import toml_text
from raidlab.histogram import Histogram
from raidlab.reading import Plain
from raidlab.recommend.candidates import Shape
from raidlab.recommend.load import LoadedNeed, ResolvedWork, WorkLoad
from raidlab.recommend.need import STATES
from raidlab.results.answer import CellAnswer, read_answer, times_of_all
from raidlab.run.interrupt import StopFlag
from raidlab.run.pool import PoolRunner
from raidlab.run.progress import Progress
from raidlab.run.request import cell_request
from raidlab.run.runner import Runner
from raidlab.stats import Reason
from raidlab.stats.warm_up import mser5
from raidlab.study import LoadedStudy, LoadPoint, load_study_text, make_cell
from raidlab.study.expand import derive_seed
from raidlab.study.schema import Array
from raidlab.study.workload import Load

# How much longer a run is that figures are shown of.
CONFIRM_TIMES = 5
PILOT_REQUESTS = 20_000
# Flash drives have dozens of dies each: at 64 outstanding six of them give less than half of what they could.
SATURATING_DEPTH = 256
# Discarded before measuring: at least so many times what is measured (queues take a while to grow too), and so many
# times what the pilots took.
LEAST_WARM_UP, MORE_WARM_UP = 2.0, 1.25
_MOST_DEPTH = 1024
# By so many standard errors a pilot's beginning differs from the rest before it is one: fewer than 1 in 100 pilots that
# are steady from the beginning have such (400 drawn, of 20, 60 and 130 seconds), by 3 standard errors 2 to 4.
_SURELY_OTHER = 4.0
# Of one disk alone, to see how fast it answers at best.
_FLOOR_REQUESTS = 200


@dataclass(frozen=True)
class Asked:
    """One run: an array, a workload, how it is driven, and which repeat it is."""

    shape: Shape
    work: int
    kind: str
    """``load``: as the need says; ``degraded``, ``rebuilding``: so, while a disk is missing or is rebuilt; ``held``: at
    the percentile needed; ``closed``: at a depth, for throughput; ``saturated``: so deep that it shows which rate can
    be kept; ``pilot``: long, from its beginning."""
    repeat: int
    confirms: bool = False
    """Whether it is one of the longer runs with fresh seeds."""

    @property
    def driven(self) -> str:
        """How it is driven: as the need says, whatever is missing; so is a pilot."""
        return "load" if self.kind == "pilot" or self.kind in STATES else self.kind

    @property
    def state(self) -> str:
        """The state in which the array is, where it is not whole."""
        return self.kind if self.kind in STATES else ""

    @property
    def length(self) -> str:
        """How long it is."""
        return "pilot" if self.kind == "pilot" else "confirm" if self.confirms else "search"


@dataclass(frozen=True)
class Seen:
    """What a run gave."""

    requests_per_s: float
    response: Histogram
    bytes_per_s: float
    each_second: tuple[int, ...] = ()
    """Of a pilot: requests done in each second."""
    rebuilt_per_s: float | None = None
    """Beside a rebuild: what it restored of the new member, in bytes/s."""


@dataclass
class Cells:
    """Runs cells and keeps what they gave."""

    loaded: LoadedNeed
    progress: Progress
    stop: StopFlag
    requests: int
    """Measured in each run of the search."""
    warm_up: int = 0
    """Requests discarded before, in each run."""
    runner: Runner | None = None
    later: int = 0
    """Requests that are expected to be simulated after those asked for: what progress reckons with."""
    done: int = 0
    """Requests simulated, those of warm-ups too."""
    seen: dict[Asked, Seen] = field(default_factory=dict)
    _studies: dict[tuple[Shape, str, str], tuple[LoadedStudy, Array]] = field(default_factory=dict)

    def __enter__(self) -> Cells:
        self.runner = self.runner or PoolRunner(self.stop)
        return self

    def __exit__(self, *_reason: object) -> None:
        if self.runner is not None:
            self.runner.close()

    def run(self, asked: Iterable[Asked]) -> None:
        """Have runs done that were not."""
        assert self.runner is not None, "cells are run within their context"
        wanted = [one for one in dict.fromkeys(asked) if one not in self.seen]
        self._prepare(wanted)
        self.progress.expect(self.done + sum(map(self.requests_of, wanted)) + self.later)
        for one in wanted:
            self.runner.submit(one, self._text(one))
        for _ in wanted:
            done = self.runner.next_done()
            assert done is not None, "as many answers come as were asked for"
            key, answer = done
            assert isinstance(key, Asked), "a key comes back as it was"
            self.seen[key] = _seen(read_answer(answer), with_seconds=key.kind == "pilot")
            self.done += self.requests_of(key)
            self.progress.advance(self.requests_of(key))

    def root_seed(self, asked: Asked) -> int:
        """What a run's requests are drawn from: all arrays have it in common."""
        seed = self.loaded.need.seed
        return derive_seed(seed, "confirm") if asked.confirms else seed

    def requests_of(self, asked: Asked) -> int:
        """How many requests a run takes, its warm-up too."""
        measured, warm_up = self._length(asked.length)
        return measured + warm_up

    def _length(self, length: str) -> tuple[int, int]:
        """How many requests are measured in a run, and how many are discarded before."""
        if length == "pilot":
            return PILOT_REQUESTS, 1
        return (CONFIRM_TIMES if length == "confirm" else 1) * self.requests, self.warm_up

    def _prepare(self, asked: Iterable[Asked]) -> None:
        """Have studies of the arrays read, once each: what is wrong with a workload shows here."""
        fresh: dict[tuple[str, str], list[Shape]] = {}
        for length, state, shape in dict.fromkeys((one.length, one.state, one.shape) for one in asked):
            if (shape, length, state) not in self._studies:
                fresh.setdefault((length, state), []).append(shape)
        for (length, state), shapes in fresh.items():
            requests, warm_up = self._length(length)
            study = study_of(self.loaded, shapes, requests=requests, warm_up=warm_up, state=state)
            for shape, array in zip(shapes, study.study.array, strict=True):
                self._studies[shape, length, state] = (study, array)

    def _text(self, asked: Asked) -> str:
        study, array = self._studies[asked.shape, asked.length, asked.state]
        work, within = self.loaded.works[asked.work], self.loaded.within
        workload = study.study.workload[asked.work].model_copy(
            update={"load": Load.model_validate(load_table(work, asked.driven, within))}
        )
        if asked.driven != "load" and workload.trace is not None:
            workload = workload.model_copy(update={"trace": workload.trace.model_copy(update={"pace": "depths"})})
        cell = make_cell("sim", array, workload, _point(work, asked.driven), asked.repeat, self.root_seed(asked))
        model = study.geometry.own_devices[array.name]
        return cell_request(
            study,
            cell,
            members=[model.parameters],
            sector_bytes=model.sector_bytes,
            quick=False,
            hold_target_ns=within[1] if asked.kind == "held" and within is not None else None,
        )


def load_table(work: ResolvedWork, kind: str, within: tuple[float, int] | None) -> dict[str, Plain]:
    """How a workload is driven, as a study has it."""
    if kind == "held" and within is not None:
        held: dict[str, Plain] = {"percentile": within[0], "target": f"{within[1]}ns", "max_depth": _MOST_DEPTH}
        return {"hold": held | {"method": "adjust"}}
    return work.load.table() if kind == "load" else {"depths": [_depth(work, kind)]}


def _depth(work: ResolvedWork, kind: str) -> int:
    """Requests outstanding in a closed loop: so many that all disks are busy, or as many as are usual for the work."""
    return SATURATING_DEPTH if kind == "saturated" else work.load.depth or work.depth


def _point(work: ResolvedWork, kind: str) -> LoadPoint:
    if kind == "held":
        return LoadPoint("hold")
    if kind == "load" and work.load.kind == "trace":
        return LoadPoint("trace")
    if kind == "load" and work.load.kind == "open":
        return LoadPoint("open", rate_per_s=work.load.rate_per_s)
    return LoadPoint("closed", depth=_depth(work, kind))


def _seen(answer: CellAnswer, *, with_seconds: bool) -> Seen:
    done, seconds = answer["all"], max(answer["elapsed_ns"], 1) / 1e9
    each = answer["snapshots"]["requests"] if with_seconds and "snapshots" in answer else ()
    rebuilds = [one for one in answer.get("rebuilds") or [] if one["begun_ns"] is not None]
    return Seen(
        max(done["requests"], 1e-9) / seconds,
        times_of_all(answer),
        done["bytes"] / seconds,
        tuple(int(count) for count in each),
        min((one["rebuilt_bytes"] * 1e9 / max(one["elapsed_ns"], 1) for one in rebuilds), default=None),
    )


def pilot_warm_up(seen: Seen) -> int:
    """How many requests a pilot takes to be in its stride: a disk's write cache is filled first.

    Where that has no end, half of the pilot; where it is over within seconds, none. None either where the seconds of
    the beginning are no other than those that follow: among equal ones the rule often finds an end by chance.
    """
    # The last second is cut short.
    each = seen.each_second[:-1]
    found = mser5([float(count) for count in each], batch=1)
    if found.reason is Reason.TOO_FEW_SAMPLES:
        return 0
    cut = len(each) // 2 if found.cut is None else found.cut
    if not cut:
        return 0
    before, after = each[:cut], each[cut:]
    noise = stdev(after) * math.sqrt(1 / len(before) + 1 / len(after))
    return sum(before) if abs(fmean(before) - fmean(after)) > _SURELY_OTHER * noise else 0


def fastest_answers_ns(cells: Cells, devices: Iterable[int]) -> dict[int, dict[tuple[str, float], int]]:
    """By device the fastest answers of one disk alone, asked for a sector at a time.

    Each by where its places are, drawn or in order (``uniform``, ``sequential``), and by the share of reads: 0 and 1.
    """
    asked = [(address, read) for address in ("uniform", "sequential") for read in (0.0, 1.0)]
    at_once, found = WorkLoad("closed", 1), {}
    for device in devices:
        sector: Plain = {"kind": "fixed", "bytes": cells.loaded.models[device].sector_bytes}
        alone = [
            ResolvedWork(f"{address}-{read}", {"read": read, "address": address, "size": sector}, at_once, 1)
            for address, read in asked
        ]
        own = Cells(replace(cells.loaded, works=alone), Progress(), cells.stop, _FLOOR_REQUESTS, 1, cells.runner)
        runs = [Asked(Shape(device, "raid0", 1, "raid0(1)"), at, "load", 0) for at in range(len(alone))]
        own.run(runs)
        found[device] = {
            way: own.seen[run].response.percentile_ns(0) or 0 for way, run in zip(asked, runs, strict=True)
        }
    return found


def array_name(shape: Shape) -> str:
    """What an array is called in a study: its tree, which device, which order of service."""
    order = "" if shape.scheduler is None else f", order {shape.scheduler}"
    return f"{shape.text}, disk {shape.device}{order}"


def device_of(loaded: LoadedNeed, shape: Shape) -> str | dict[str, Plain]:
    """The device of an array as a study has it."""
    named, schedulers = loaded.need.devices[shape.device].device, loaded.need.search.schedulers
    if shape.scheduler is None or schedulers is None:
        return named
    return {**loaded.models[shape.device].parameters, "scheduler": schedulers[shape.scheduler]}


def study_document(
    loaded: LoadedNeed, arrays: Sequence[Mapping[str, Plain]], *, requests: int, warm_up: int, repeats: int = 1
) -> dict[str, Plain]:
    """A study of some arrays under the need's work, in the simulator."""
    within, workloads = loaded.within, []
    for work in loaded.works:
        load = load_table(work, "load", within)
        if within is not None and work.load.kind == "closed" and "trace" not in work.table:
            load["hold"] = {"percentile": within[0], "target": f"{within[1]}ns", "max_depth": _MOST_DEPTH}
        workloads.append({"name": work.name, **work.table, **({"load": load} if load else {})})
    return {
        "name": loaded.need.name,
        "title": loaded.need.title or f"Which array for {loaded.need.name}?",
        "array": list(arrays),
        "workload": workloads,
        "load": {"depths": [loaded.need.depth]},
        "sim": {
            "device": device_of(loaded, Shape(0, "", 0, "")),
            "warmup": {"requests": warm_up},
            "measure": {"requests": requests},
            "repeats": repeats,
        },
    }


def study_of(
    loaded: LoadedNeed, shapes: Sequence[Shape], *, requests: int, warm_up: int, state: str = ""
) -> LoadedStudy:
    """The study whose cells are run; what is wrong with it is a mistake of the need's."""
    lacks: dict[str, Plain] = {"missing": [0]} if state else {}
    if state == "rebuilding":
        lacks["rebuild"] = {}
    arrays = [
        {"name": array_name(shape), "tree": shape.text, "device": device_of(loaded, shape), **lacks} for shape in shapes
    ]
    try:
        return load_study_text(
            toml_text(study_document(loaded, arrays, requests=requests, warm_up=warm_up)), loaded.file
        )
    except InputError as error:
        raise InputError(list(dict.fromkeys(_of_need(loaded, problem) for problem in error.problems))) from None


def _of_need(loaded: LoadedNeed, problem: Problem) -> Problem:
    """A mistake of the study as one of the need that it was made of."""
    is_work = problem.where.startswith("workload")
    file, where, line = loaded.show(("workload",) if is_work else ("search",))
    return replace(problem, file=file, where=problem.where if is_work and file else where, line=line)


def log_rate(seen: Iterable[Seen]) -> float:
    """The mean logarithm of throughput over workloads."""
    rates = [math.log(one.requests_per_s) for one in seen]
    return math.fsum(rates) / len(rates)
