"""What a schema cannot see of streams: ends that no target has, and what does not go together.

Invariant: every finding names the key in the file, the value and what is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raidlab.study.find import did_you_mean
from raidlab.study.places import Place
from raidlab.study.words import ENGINES, ON_THE_CLOCK
from raidlab.study.workload import ARRAY, MEMORY, CopyStream, Workload

if TYPE_CHECKING:
    from raidlab.study.check import Parts, Report


def check_streams(workload: Workload, streams: list[CopyStream], place: Place, parts: Parts, report: Report) -> None:
    """Streams against the ends that their targets have, and against what else the workload says."""
    for key, other in (("task", workload.task), ("files", workload.files)):
        if other is not None:
            report((*place, key), "does not go with streams", None, f"either {key} or streams")
    if workload.size.kind != "fixed":
        report((*place, "size"), "is the block of streams", workload.size.kind, "one size")
    if parts.emulated is not None and parts.emulated.speed != 1 and "emulated" in (workload.on or ("emulated",)):
        report(("emulated", "speed"), "streams keep the clock's time", parts.emulated.speed, "1")
    reading = sum(stream.reads for stream in streams) / len(streams)
    if abs(workload.read - reading) > 0.005:
        report((*place, "read"), "is the share of the streams that read the array", workload.read, f"{reading:g}")
    load = workload.load or parts.load
    if load is not None and (load.open is not None or load.hold is not None):
        report((*place, "streams"), "streams need a load of depths: how many of each", None, "depths = [1, 3]")
    for index, stream in enumerate(streams):
        _check_stream(stream, workload, (*place, "streams", index), parts, report)
        if stream.name in [other.name for other in streams[:index]]:
            where = (*place, "streams", index, "name")
            report(where, "is already the name of a stream", stream.name, "a name used once in a workload")


def _check_stream(stream: CopyStream, workload: Workload, place: Place, parts: Parts, report: Report) -> None:
    if {stream.source, stream.sink} <= {MEMORY} and not set(workload.on or ("sim",)) <= {"live", "emulated"}:
        message = "from memory to memory there is nothing to wait for on a virtual clock"
        report((*place, "sink"), message, stream.sink, 'another end, or on = ["live"]')
    if stream.source == stream.sink == ARRAY:
        report((*place, "sink"), "is where its bytes come from", stream.sink, "an end other than the array")
    # A target that the study does not speak of is not judged by it.
    spoken = [target for target in ENGINES if parts.section(target) is not None and _speaks_of(target, parts)]
    for target in workload.on or spoken:
        section = parts.section(target)
        ends = section.end if section is not None else []
        known = [ARRAY, MEMORY, *(end.name for end in ends)]
        for key, name in (("source", stream.source), ("sink", stream.sink)):
            if name not in known:
                report((*place, key), f"is no end of {target}{did_you_mean(name, known)}", name, ", ".join(known))
        machines = [end.name for end in ends if end.machine is not None]
        if stream.source in machines:
            report((*place, "source"), "is a machine, which takes copies and gives none", stream.source, "a sink")
        if stream.sink in machines:
            _check_machine(stream, workload, place, parts, report)


def _check_machine(stream: CopyStream, workload: Workload, place: Place, parts: Parts, report: Report) -> None:
    """A machine takes one copy at a time."""
    load = workload.load or parts.load
    of_it = [other for other in workload.streams or () if other.sink == stream.sink]
    if len(of_it) > 1 or (load is not None and load.open is None and set(load.depths) != {1}):
        report((*place, "sink"), "takes one copy at a time", stream.sink, "one stream to it, and depths = [1]")


def _speaks_of(target: str, parts: Parts) -> bool:
    return target in ("sim", "original") or (target == "live" and parts.live is not None and bool(parts.live.end))


def check_ends(parts: Parts, report: Report) -> None:
    """Ends of streams: each is something, and something that its target can be."""
    for target in ENGINES:
        section = parts.section(target)
        for index, end in enumerate(section.end if section is not None else ()):
            place = (target, "end", index)
            if sum(part is not None for part in (end.tape, end.path, end.machine)) != 1:
                report(place, "needs to be something", end.name, "one of tape, path, machine")
            elif end.path is not None and target in ON_THE_CLOCK:
                report((*place, "path"), "stations are modelled", end.name, "a tape, or a machine")
            elif end.machine is not None and target not in ON_THE_CLOCK:
                report((*place, "machine"), "there is no machine on a virtual clock", end.name, "a tape, or a path")
            if end.name in (ARRAY, MEMORY):
                report((*place, "name"), "is an end of every target", end.name, "another name")
