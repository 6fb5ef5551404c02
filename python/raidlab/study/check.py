"""What a schema cannot see: names that refer to nothing, trees that cannot be built, sizes that do not fit.

Invariants:

- Every finding names the key in the file, the value and what is accepted.
- Parts that are missing because they were invalid are skipped, never guessed.
- Trees are parsed and measured by the engine's own code (`raidlab._core`), so that a study is judged by the rules
  that will run it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from raidlab.errors import InputError
from raidlab.reading import Plain
from raidlab.study.device import DEFAULT_SECTOR_BYTES, DeviceError, DeviceModel, load_device
from raidlab.study.device_figures import published_figures, read_figures
from raidlab.study.figure import StudyFigure
from raidlab.study.find import device_names, did_you_mean, looks_like_path, nearest
from raidlab.study.places import Place
from raidlab.study.schema import Array, Compare
from raidlab.study.table_file import Reporter
from raidlab.study.target import Emulated, Live, Modelled
from raidlab.study.tree import Tree
from raidlab.study.units import format_bytes
from raidlab.study.words import ENGINES, OFF_LIVE, ON_THE_CLOCK, is_simulated
from raidlab.study.workload import (
    ARRAY,
    MEMORY,
    Address,
    CopyStream,
    IdleMultiple,
    Load,
    TraceReplay,
    Workload,
)

if TYPE_CHECKING:
    from raidlab._core import TreeFacts

Report = Callable[..., None]
TARGET_WORDS = (*OFF_LIVE, "memory")
KEEPING_WORDS = ("none", "memory")
# Arrays that differ by more are not equal, beyond what rounding to whole chunks and stripes may take (`rounded_bytes`).
EQUAL_TOLERANCE = 0.01
# Of chunks that are large beside their members, rounding could explain any difference; it excuses this much.
ROUNDING_TOLERANCE = 0.05


@dataclass
class ValidParts:
    """The parts of a study file that are sound on their own."""

    on: list[str]
    arrays: dict[int, Array]
    workloads: dict[int, Workload]
    compares: dict[int, Compare]
    figures: dict[int, StudyFigure]
    load: Load | None
    sim: Modelled | None
    original: Modelled | None
    emulated: Emulated | None
    live: Live | None
    has_section: dict[str, bool]
    load_says_something: bool
    emulates_device: bool
    array_names: set[str]

    def section(self, target: str) -> Modelled | Emulated | Live | None:
        """What the study says of a target."""
        found: Modelled | Emulated | Live | None = getattr(self, target)
        return found


@dataclass
class Geometry:
    """Parsed trees by array name, device models by target and of arrays with their own, arrays of broken trees."""

    trees: dict[str, Tree] = field(default_factory=dict)
    devices: dict[str, DeviceModel] = field(default_factory=dict)
    own_devices: dict[str, DeviceModel] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    """Targets on which all members of an array are areas of one device."""
    user_bytes: dict[str, dict[str, int]] = field(default_factory=dict)
    """By target of modelled devices, and array."""
    broken: set[int] = field(default_factory=set)
    _written: dict[str, tuple[Tree, str]] = field(default_factory=dict, compare=False, repr=False)
    """Trees as the engine reads them: every cell of a sweep asks for its array's."""

    def facts(self, array: str, member_bytes: int, sector_bytes: int) -> TreeFacts:
        """What the engine says about an array over members of a size: leaves, user bytes, tolerance, ..."""
        tree = self.trees[array]
        if self._written.get(array, (None, ""))[0] is not tree:
            self._written[array] = tree, json.dumps(tree)
        return _tree_facts(self._written[array][1], member_bytes, sector_bytes).copy()

    def device(self, target: str, array: str) -> DeviceModel:
        """The model of an array's members on a target of modelled devices, as large as a member is."""
        model = self.own_devices.get(array) or self.devices[target]
        tree = self.trees.get(array) if target in self.shared else None
        return model if tree is None else model.area(count_leaves(tree))


@lru_cache(maxsize=4096)
def _tree_facts(tree: str, member_bytes: int, sector_bytes: int) -> TreeFacts:
    """What the engine says of a tree: every cell of a sweep asks for it."""
    from raidlab import _core

    return _core.tree_facts(tree, member_bytes, sector_bytes)


def check_parts(parts: ValidParts, file: Path, report: Report) -> Geometry:
    """Check the parts of a study against one another and against the engine.

    ``file`` is the study's, for relative paths; ``report(place, message, value, accepted)`` is called once a mistake.
    """
    geometry = Geometry()
    _check_targets(parts, report)
    _check_names(parts, report)
    _check_volumes(parts, report)
    _check_twins(parts, report)
    _load_devices(parts, file, geometry, report)
    _parse_trees(parts, geometry, report)
    _check_shapes(parts, geometry, report)
    if parts.load is not None:
        _check_load(parts.load, ("load",), parts, report)
    for index, array in parts.arrays.items():
        if array.load is not None:
            _check_load(array.load, ("array", index, "load"), parts, report)
    for index, workload in parts.workloads.items():
        _check_workload(workload, ("workload", index), parts, report)
    _check_ends(parts, report)
    for index, compare in parts.compares.items():
        _check_compare(compare, ("compare", index), parts, report)
        _check_equal(compare, ("compare", index), parts, geometry, report)
    for index, figure in parts.figures.items():
        _check_figure(figure, ("figure", index), parts, report)
    return geometry


def engine_of(target: str) -> str:
    """The section of the study that a word of ``on`` runs under: ``sim``, ``original``, ``emulated`` or ``live``."""
    return target if target in OFF_LIVE else "live"


def _check_targets(parts: ValidParts, report: Report) -> None:
    for index, word in enumerate(parts.on):
        if word not in TARGET_WORDS and not looks_like_path(word):
            accepted = "'sim', 'original', 'emulated', 'memory' or a path such as './work/'"
            report(("on", index), f"is not a target{did_you_mean(word, TARGET_WORDS)}", word, accepted)
        elif word == "emulated" and not (parts.has_section["sim"] or parts.emulates_device):
            report(("on", index), "needs a table [sim], or a device in [emulated], that says which disk", word)
        elif not parts.has_section.get(word, True):
            report(("on", index), f"needs a table [{word}] that says which device is modelled", word)


def _check_names(parts: ValidParts, report: Report) -> None:
    for key, named in (("array", parts.arrays), ("workload", parts.workloads)):
        first: dict[str, int] = {}
        for index, part in named.items():
            name = part.name
            if name in first:
                report((key, index, "name"), f"is already the name of {key}[{first[name]}]", name, "a name used once")
            first.setdefault(name, index)


# What is said of arrays that raidlab builds.
_OF_TREES = ("tree", "policy", "pair_pricing", "device", "placement", "of_group", "missing", "events", "rebuild")


def _check_volumes(parts: ValidParts, report: Report) -> None:
    """An array is a tree or a volume; what is said of volumes is said of no tree."""
    for index, array in parts.arrays.items():
        place, said = ("array", index), array.model_fields_set
        if array.volume is None and "tree" not in said:
            accepted = "tree = 'raid5(5, chunk=64KiB)' or another, or volume = '/dev/md0' or another"
            report((*place, "tree"), "is missing", None, accepted)
        for key in ("state", "disks", "says") if array.volume is None else ():
            if key in said:
                report((*place, key), "is said of volumes", getattr(array, key), "it beside volume = '/dev/md0'")
        if array.rebuild is not None and not array.missing and not array.may_fail:
            accepted = "it beside missing = [2] or others, or events"
            report((*place, "rebuild"), "has nothing to rebuild", None, accepted)
        for key in ("missing", "events", "rebuild") if array.is_mounted else ():
            if key in said:
                accepted = 'a tree of members beside it, or tree = "mounted" without it'
                report((*place, key), "is said of members, and a mounted array has none", None, accepted)
        _check_events(array, place, report)
        for key in _OF_TREES if array.volume else ():
            if key in said:
                message = "does not go with a volume, which is what it is"
                report((*place, key), message, array.tree if key == "tree" else None, "either volume or this")
        if array.volume is not None and not looks_like_path(array.volume):
            hint = f"; did you mean './{array.volume}'?" if _exists(array.volume) else ""
            accepted = "a path such as '/dev/md0' or '/mnt/box/'"
            report((*place, "volume"), f"is no path{hint}", array.volume, accepted)


def _check_events(array: Array, place: Place, report: Report) -> None:
    """Each event says one thing, and of a member that is there; how slow one becomes is said once a moment."""
    slow: set[tuple[int, int]] = set()
    for number, event in enumerate(array.events):
        if event.mistake is not None:
            message, accepted = event.mistake
            report((*place, "events", number), message, None, accepted)
            continue
        if event.slow is not None:
            if (event.slow, event.at) in slow:
                message = f"how slow this member becomes at {event.at / 1e9:g} s is said before"
                report((*place, "events", number, "slow"), message, event.slow, "one of both, or another time")
            slow.add((event.slow, event.at))
        for key, leaf in (("slow", event.slow), ("unreadable", event.unreadable)):
            gone = None if leaf is None else array.gone_at(leaf, event.at)
            if gone is not None:
                accepted = "a member that is there then, or this at another time"
                report((*place, "events", number, key), gone, leaf, accepted)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:
        # Too long for a name.
        return False


def _check_twins(parts: ValidParts, report: Report) -> None:
    """A twin is the model of another array, and that is measured."""
    twins = {array.name for array in parts.arrays.values() if array.twin_of is not None}
    for index, array in parts.arrays.items():
        place = ("array", index)
        if array.twin_of is None:
            if array.user_size is not None:
                report((*place, "user_size"), "is said of twins", array.user_size, "it beside twin_of = 'ARRAY'")
            continue
        _check_array_name(array.twin_of, (*place, "twin_of"), parts, report)
        if array.twin_of in twins:
            report((*place, "twin_of"), "is a twin itself", array.twin_of, "an array that is measured")
        if array.volume is not None:
            report((*place, "volume"), "does not go with twin_of: a twin is simulated", array.volume, "tree = '...'")


@dataclass
class _Inline(Reporter):
    """Notes mistakes in a device that the study itself holds, at their places there."""

    at: Place = ()
    report: Report | None = None

    def add(self, place: Place, message: str, value: object = None, accepted: str | None = None) -> None:
        """Note a mistake."""
        assert self.report is not None
        self.report((*self.at, *place), message, value, accepted)


def _check_figures(model: DeviceModel, device: object, place: Place, report: Report) -> None:
    """Figures of a device are kept with a run, though nothing runs them: what stands there must be some."""
    if model.file is None:
        read_figures(model, _Inline("", {}, at=place, report=report))
        return
    try:
        published_figures(model)
    except InputError as error:
        for problem in error.problems:
            report(place, str(problem), device)


def _load_devices(parts: ValidParts, file: Path, geometry: Geometry, report: Report) -> None:
    def load(device: str | Mapping[str, Plain] | None, place: Place, models: dict[str, DeviceModel], name: str) -> None:
        if device is None:
            return
        try:
            model = models[name] = load_device(device, file)
            _check_figures(model, device, (*place, "device"), report)
        except DeviceError as error:
            problem = error.problem
            if isinstance(device, str):
                # The sentence names the file, the line and what is accepted there.
                report((*place, "device"), str(problem), device)
            else:
                report((*place, "device", *error.place), problem.message, error.value, problem.accepted)
        except ValueError as error:
            known = ", ".join(device_names()) or "a name in devices/"
            report((*place, "device"), str(error), device, f"{known}, or a path")

    for target, section in (("sim", parts.sim), ("original", parts.original), ("emulated", parts.emulated)):
        load(None if section is None else section.device, (target,), geometry.devices, target)
        if isinstance(section, Modelled) and section.one_device:
            geometry.shared.add(target)
    for index, array in parts.arrays.items():
        load(array.device, ("array", index), geometry.own_devices, array.name)
    emulated = parts.emulated
    if emulated is None:
        return
    if emulated.device is None and "sim" in geometry.devices:
        geometry.devices["emulated"] = geometry.devices["sim"]
    if emulated.content not in KEEPING_WORDS and not looks_like_path(emulated.content):
        message = f"says nowhere to keep anything{did_you_mean(emulated.content, KEEPING_WORDS)}"
        accepted = "'none', 'memory' or a directory such as './work/'"
        report(("emulated", "content"), message, emulated.content, accepted)


def _parse_trees(parts: ValidParts, geometry: Geometry, report: Report) -> None:
    from raidlab import _core

    for index, array in parts.arrays.items():
        try:
            # How many directories there are is only known when they are given.
            tree = json.loads(_core.parse_tree("independent(1)" if array.is_mounted else array.tree))
        except _core.CellError as error:
            report(("array", index, "tree"), error.message, array.tree)
            geometry.broken.add(index)
            continue
        geometry.trees.setdefault(array.name, tree)
        # A study's policy is of all its arrays, of which some may be yardsticks.
        sits_out = array.volume is None and array.policy is not None and array.policy.sit_out is not None
        if sits_out and not is_redundant(tree):
            message = f"no member of '{array.tree}' can sit out, since no other has what it holds"
            report(("array", index, "policy", "sit_out"), message, None, "a tree with redundancy, or policy without it")


def _check_shapes(parts: ValidParts, geometry: Geometry, report: Report) -> None:
    """Chunks against sectors, requests against volumes."""
    from raidlab import _core

    # Member size and sector of every target whose section is sound.
    live = {} if parts.live is None else {"live": (parts.live.member_size, parts.live.sector)}
    sectors = [model.sector_bytes for model in geometry.devices.values()] + [sector for _, sector in live.values()]
    sector = max(sectors, default=DEFAULT_SECTOR_BYTES)
    volume_bytes: dict[str, int] = {}
    for index, array in parts.arrays.items():
        tree = geometry.trees.get(array.name)
        if tree is None or index in geometry.broken:
            continue
        if _has_misfits(array, tree, sector, ("array", index, "tree"), report):
            continue
        own = geometry.own_devices.get(array.name)
        for target in [*geometry.devices, *live]:
            if not array.runs_on(target):
                continue
            model = geometry.device(target, array.name) if target in geometry.devices else own
            member_bytes, sector_bytes = (model.capacity_bytes, model.sector_bytes) if model else live[target]
            try:
                facts = geometry.facts(array.name, member_bytes, sector_bytes)
            except _core.CellError as error:
                report(("array", index, "tree"), f"{error.message} (on {target})", array.tree)
                break
            if target != "live":
                geometry.user_bytes.setdefault(target, {})[array.name] = facts["user_bytes"]
            smallest = min(facts["volume_bytes"])
            volume_bytes[target] = min(volume_bytes.get(target, smallest), smallest)
    for index, workload in parts.workloads.items():
        if workload.trace is not None:
            continue
        for target, limit in volume_bytes.items():
            largest = workload.size.typical_bytes
            if largest > limit:
                beyond = f"lies beyond the smallest volume, {format_bytes(limit)} (on {target})"
                message = f"{workload.size.typical} of {format_bytes(largest)} {beyond}"
                report(("workload", index, "size"), message, None, f"at most {format_bytes(limit)}")
                break
        # Files are as long as they are, to the byte.
        is_plain = workload.files is None and workload.streams is None
        fixed = workload.size.bytes if workload.size.kind == "fixed" and is_plain else None
        if fixed is not None and fixed % sector:
            message = f"is not a multiple of the sector of {sector} bytes"
            report(("workload", index, "size"), message, fixed, f"a multiple of {sector} bytes")


def _has_misfits(array: Array, tree: Tree, sector: int, place: Place, report: Report) -> bool:
    """Whether a chunk is no multiple of the sector; each is told."""
    misfits = sorted({chunk for chunk in chunk_sizes(tree) if chunk % sector})
    for chunk in misfits:
        lower = max(sector, chunk // sector * sector)
        message = f"the chunk of {chunk} bytes is not a multiple of the sector of {sector} bytes"
        report(place, message, array.tree, f"a multiple of {sector} bytes, such as chunk={lower}")
    return bool(misfits)


def count_leaves(tree: Tree) -> int:
    """How many members a tree has."""
    children = tree.get("children", [])
    return sum(count_leaves(child) for child in children) if children else 1


def writes(workload: Workload) -> bool:
    """Whether a workload writes at all."""
    if workload.trace is not None:
        return workload.trace.writes
    if workload.streams is not None:
        return any(stream.sink == ARRAY for stream in workload.streams)
    if workload.task is not None:
        return any(step.op == "write" for step in workload.task)
    return workload.read < 1


def chunk_sizes(tree: Tree) -> list[int]:
    """Every chunk size in a tree."""
    own = [tree["chunk_bytes"]] if "chunk_bytes" in tree else []
    return own + [chunk for child in tree.get("children", []) for chunk in chunk_sizes(child)]


def is_redundant(tree: Tree) -> bool:
    """Whether a level of a tree bears any loss."""
    plain = tree["kind"] in ("member", "independent", "concat", "stripe")
    return not plain or any(is_redundant(child) for child in tree.get("children", []))


def stripes_in(tree: Tree) -> bool:
    """Whether a tree stripes anywhere: whether a level deals chunks to several children."""
    children = tree.get("children", [])
    return ("chunk_bytes" in tree and len(children) > 1) or any(stripes_in(child) for child in children)


def _check_load(load: Load, place: Place, parts: ValidParts, report: Report) -> None:
    if load.open is not None and (load.depths or load.hold is not None):
        message = "an open loop cannot stand beside a closed one"
        report((*place, "open"), message, None, "either depths and hold, or open")
    # What is there and wrong has been reported; it must not count as missing too.
    is_silent = load.open is None and not load.depths and load.hold is None
    if is_silent and not (place == ("load",) and parts.load_says_something):
        report(place, "says no load", None, "depths = [1, 8, 64], hold = {...} or open = {...}")
    if load.open is not None and (load.open.arrival == "h2") != (load.open.cv2 is not None):
        report((*place, "open", "cv2"), 'goes with arrival = "h2", and only with it', load.open.cv2, "a number above 1")
    if load.hold is not None and isinstance(load.hold.target, IdleMultiple):
        _check_array_name(load.hold.target.of, (*place, "hold", "target", "of"), parts, report)


def _check_workload(workload: Workload, place: Place, parts: ValidParts, report: Report) -> None:
    for index, name in enumerate(workload.arrays or []):
        _check_array_name(name, (*place, "arrays", index), parts, report)
    if workload.load is not None:
        _check_load(workload.load, (*place, "load"), parts, report)
    if workload.size.kind == "table" and len(workload.size.bytes) != len(workload.size.weights):
        message = f"{len(workload.size.weights)} weights stand beside {len(workload.size.bytes)} sizes"
        report((*place, "size", "weights"), message, None, "one weight a size")
    _check_address(workload.address, (*place, "address"), report)
    if workload.count is not None and (workload.files is not None or workload.streams is not None):
        report((*place, "count"), "counts requests, and here are none", workload.count, "requests, or no count")
    _check_mounted(workload, place, parts, report)
    if workload.files is not None:
        _check_files(workload, place, parts, report)
    if workload.trace is not None:
        _check_trace(workload, workload.trace, place, parts, report)
    if workload.streams is not None:
        _check_streams(workload, workload.streams, place, parts, report)
    for index, step in enumerate(workload.task or []):
        if step.same_extent_as is not None and step.same_extent_as >= index:
            accepted = f"a number from 0 to {index - 1}" if index else "nothing: no step comes before the first"
            where = (*place, "task", index, "same_extent_as")
            report(where, "must name an earlier step", step.same_extent_as, accepted)
        if step.address is not None:
            _check_address(step.address, (*place, "task", index, "address"), report)


def _check_address(address: Address, place: Place, report: Report) -> None:
    if address.kind == "mixed" and address.local > 0 and address.local_sd is None:
        report((*place, "local_sd"), f"is missing, and local = {address.local:g}", None, 'a size above 0, as "20MB"')
    if address.kind == "mixed" and address.sequential + address.local > 1 + 1e-9:
        accepted = f"at most {1 - address.sequential:g}: both shares together are at most 1"
        report((*place, "local"), f"and sequential = {address.sequential:g} are more than all", address.local, accepted)


def _check_mounted(workload: Workload, place: Place, parts: ValidParts, report: Report) -> None:
    mounted = {array.name for array in parts.arrays.values() if array.is_mounted}
    for index, name in enumerate(workload.arrays or []):
        if name in mounted and workload.files is None:
            report((*place, "arrays", index), "is mounted: only whole files are read from it", name, "files = {...}")


def _check_files(workload: Workload, place: Place, parts: ValidParts, report: Report) -> None:
    files = workload.files
    assert files is not None, "the caller looked"
    if files.count is None and files.fill is None:
        report((*place, "files"), "needs a number of files", None, "count or fill")
    if files.numbers == "even" and workload.size.kind != "table":
        report((*place, "files", "numbers"), "needs sizes of a table", files.numbers, "drawn")
    if workload.read != 1:
        report((*place, "read"), "whole files are read", workload.read, "1.0")
    if workload.task is not None:
        report((*place, "task"), "does not go with whole files", None, "either task or files")
    load = workload.load or parts.load
    if load is not None and (load.open is not None or load.hold is not None):
        report((*place, "files"), "whole files need a load of depths: so many readers", None, "depths = [1, 2, 4]")
    deepest = max((*load.depths, *(load.quick_depths or ())), default=1) if load is not None else 1
    if 1 < files.lists < deepest:
        message = f"are fewer than the {deepest} readers"
        report((*place, "files", "lists"), message, files.lists, f"1, or {deepest} and up")


def _check_trace(workload: Workload, trace: TraceReplay, place: Place, parts: ValidParts, report: Report) -> None:
    load = workload.load or parts.load
    if trace.pace == "depths":
        if trace.speed != 1:
            report((*place, "trace", "speed"), "goes with time stamps", trace.speed, 'pace = "stamps", or no speed')
        if load is not None and (load.open is not None or load.hold is not None):
            report((*place, "trace", "pace"), "needs a load of depths", trace.pace, "depths = [1, 2, 4]")
    elif workload.load is not None:
        report((*place, "load"), "has no say where time stamps are replayed", None, 'trace.pace = "depths", or no load')


def _check_streams(
    workload: Workload, streams: list[CopyStream], place: Place, parts: ValidParts, report: Report
) -> None:
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


def _check_stream(stream: CopyStream, workload: Workload, place: Place, parts: ValidParts, report: Report) -> None:
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


def _check_machine(stream: CopyStream, workload: Workload, place: Place, parts: ValidParts, report: Report) -> None:
    """A machine takes one copy at a time."""
    load = workload.load or parts.load
    of_it = [other for other in workload.streams or () if other.sink == stream.sink]
    if len(of_it) > 1 or (load is not None and load.open is None and set(load.depths) != {1}):
        report((*place, "sink"), "takes one copy at a time", stream.sink, "one stream to it, and depths = [1]")


def _speaks_of(target: str, parts: ValidParts) -> bool:
    return is_simulated(target) or (target == "live" and parts.live is not None and bool(parts.live.end))


def _check_ends(parts: ValidParts, report: Report) -> None:
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


def _check_compare(compare: Compare, place: Place, parts: ValidParts, report: Report) -> None:
    groups = sorted({array.group for array in parts.arrays.values()})
    before = next(at for at, one in parts.compares.items() if one.group == compare.group)
    if place[1] != before:
        # A group has one reference, and its figures stand under its name.
        report((*place, "group"), f"is compare[{before}]'s already", compare.group, "a group of its own for each table")
    if compare.group not in groups:
        message = f"no array is in this group{did_you_mean(compare.group, groups)}"
        report((*place, "group"), message, compare.group, nearest(compare.group, groups))
        return
    members = [array.name for array in parts.arrays.values() if array.group == compare.group]
    if compare.reference in parts.array_names and compare.reference not in members:
        message = "is not in the group it is the reference of"
        report((*place, "reference"), message, compare.reference, ", ".join(members))
    _check_array_name(compare.reference, (*place, "reference"), parts, report)
    works = [work.name for work in parts.workloads.values()]
    for index, name in enumerate(compare.workloads):
        if name not in works:
            message = f"is no workload{did_you_mean(name, works)}"
            report((*place, "workloads", index), message, name, ", ".join(works))
    for index, name in enumerate(compare.contenders):
        if name not in members:
            message = f"is not in the group{did_you_mean(name, members)}"
            report((*place, "contenders", index), message, name, ", ".join(members))


def _check_equal(compare: Compare, place: Place, parts: ValidParts, geometry: Geometry, report: Report) -> None:
    """What a table calls equal must be so, as far as the file says it; the check `equal_capacity` sees the rest.

    The capacity of real members is theirs, and so is how many there are where the user names groups of them.
    """
    arrays = [one for one in parts.arrays.values() if one.group == compare.group and not one.is_mounted]
    # What a volume is made of, only its kernel knows, unless the study says how many disks it has.
    disks = {one.name: one.disks for one in arrays if one.volume is not None and one.disks is not None}
    counts = disks if compare.equal == "members" else {}
    arrays = [one for one in arrays if one.name in counts or (one.volume is None and one.name in geometry.trees)]
    arrays = [one for one in arrays if is_run_by_any(one, parts)]
    modelled = list(geometry.devices)
    targets = [*modelled, *(["live"] if parts.live is None or not parts.live.groups else [])]
    for target in targets if compare.equal == "members" else modelled:
        ran = [one.name for one in arrays if one.runs_on(target)]
        if compare.equal == "members":
            sizes = [counts[name] if name in counts else count_leaves(geometry.trees[name]) for name in ran]
        else:
            known = geometry.user_bytes.get(target, {})
            ran = [name for name in ran if name in known]
            sizes = [known[name] for name in ran]
        difference = difference_of(compare, sizes, [geometry.trees[name] for name in ran if name not in counts])
        if difference is not None:
            report((*place, "equal"), f"{difference} (on {target})", compare.equal, equal_accepted(compare))
            return


def equal_accepted(compare: Compare) -> str:
    """What would do in place of arrays that are not equal."""
    other = "user_capacity" if compare.equal == "members" else "members"
    return f"other trees for group '{compare.group}', or equal = \"{other}\""


def is_run_by_any(array: Array, parts: ValidParts) -> bool:
    """Whether some workload is run on an array."""
    return any(one.arrays is None or array.name in one.arrays for one in parts.workloads.values())


def rounded_bytes(tree: Tree) -> int:
    """The most that whole chunks and stripes leave unused of an array: less than a chunk of each member."""
    return count_leaves(tree) * max(chunk_sizes(tree), default=0)


def is_same_capacity(sizes: Sequence[int], trees: Sequence[Tree]) -> bool:
    """Whether arrays have the same user capacity, but for what rounding may take (`ROUNDING_TOLERANCE` at most).

    Examples
    --------
    >>> is_same_capacity([63 * 2**20, 64 * 2**20], []), is_same_capacity([100, 101], [])
    (False, True)
    """
    rounded = min(max(map(rounded_bytes, trees), default=0), min(sizes) * ROUNDING_TOLERANCE)
    return max(sizes) <= min(sizes) * (1 + EQUAL_TOLERANCE) + rounded


def difference_of(compare: Compare, sizes: Sequence[int], trees: Sequence[Tree]) -> str | None:
    """In words, how far arrays of a table differ in what it calls equal (members, or bytes), if they do.

    Examples
    --------
    >>> table = Compare(group="all", title="Six disks", reference="a", equal="members")
    >>> difference_of(table, [4, 6], [])
    "the arrays of 'Six disks' differ: members from 4 to 6"
    """
    if not sizes or is_same_capacity(sizes, [] if compare.equal == "members" else trees):
        return None
    if compare.equal == "members":
        shown = f"members from {min(sizes)} to {max(sizes)}"
    else:
        shown = f"user capacity from {format_bytes(min(sizes))} to {format_bytes(max(sizes))}"
    return f"the arrays of '{compare.title}' differ: {shown}"


def _check_figure(figure: StudyFigure, place: Place, parts: ValidParts, report: Report) -> None:
    """Names that refer to nothing, a number used twice, more metrics than a curve has."""
    first = next((index for index, one in parts.figures.items() if one.number == figure.number), place[-1])
    if first != place[-1]:
        report((*place, "number"), f"is already that of figure[{first}]", figure.number, "a number used once")
    for index, name in enumerate(figure.arrays):
        _check_array_name(name, (*place, "arrays", index), parts, report)
    for index, line in enumerate(figure.also):
        _check_array_name(line.array, (*place, "also", index, "array"), parts, report)
    named: list[tuple[Place, str]] = [
        (("also", i, "workload"), line.workload) for i, line in enumerate(figure.also) if line.workload
    ]
    lists: list[tuple[Place, list[str]]] = [((), figure.workloads)]
    lists += [(("series", number), series.workloads) for number, series in enumerate(figure.series)]
    lists += [(("lines", number), scan.workloads) for number, scan in enumerate(figure.lines)]
    named += [((*where, "workloads", index), name) for where, names in lists for index, name in enumerate(names)]
    known = sorted({workload.name for workload in parts.workloads.values()})
    for where, name in named:
        if name not in known:
            message = f"is not the name of a workload{did_you_mean(name, known)}"
            report((*place, *where), message, name, nearest(name, known))
    if figure.draw != "bars" and len(figure.metrics) > 1:
        report((*place, "metrics"), "only bars show several metrics", None, "one, or draw = 'bars'")
    _check_kind_of_figure(figure, place, parts, report)


def _check_kind_of_figure(figure: StudyFigure, place: Place, parts: ValidParts, report: Report) -> None:
    """What only some drawings need, or know."""
    needs_none = figure.draw in ("printed", "layout")
    if needs_none == bool(figure.workloads):
        accepted = "none" if needs_none else "a workload at least"
        report((*place, "workloads"), f"is wrong for draw = '{figure.draw}'", None, accepted)
    if figure.draw == "printed" and not figure.printed:
        report((*place, "printed"), "is empty", None, "a column of a printed table, such as 'table1:*:bang_mb_s'")
    if figure.printed and figure.draw in ("shares", "total_time", "two_tools", "file_sizes", "layout", "winners"):
        report((*place, "printed"), f"is not for draw = '{figure.draw}'", None, "of shares, that of their series")
    of_panels = {"printed": figure.printed, "layout": figure.arrays}
    panels = of_panels.get(figure.draw, figure.workloads)
    without = ("scan", "sizes", "amounts", "two_tools", "total_time", "winners")
    if figure.panels and (figure.draw in without or len(figure.panels) != len(panels)):
        report((*place, "panels"), "are not a word for each panel", None, f"{len(panels)}")
    in_own_unit = ("shares", "two_tools", "file_sizes", "layout", "printed")
    if (figure.times != 1 or figure.unit) and figure.draw in in_own_unit:
        report((*place, "times"), f"is not for draw = '{figure.draw}'", None, "one that draws metrics or quantities")
    if figure.draw == "bars" and figure.at == "target":
        report((*place, "at"), "is for scans and shares", "target", "'maximum', 'heaviest' or a depth")
    if figure.draw == "shares" and (figure.reference is None or not figure.series):
        report(place, "needs a reference and series", None, "reference = 'an array', series = [...]")
    if figure.draw == "scan" and figure.over is None:
        report(place, "needs to say what it is drawn over", None, "over = 'read_percent' or another")
    if figure.reference is not None:
        _check_array_name(figure.reference, (*place, "reference"), parts, report)
    for index, one in enumerate(figure.series):
        if one.workloads and len(one.workloads) != len(figure.workloads):
            where = (*place, "series", index, "workloads")
            report(where, "are not as many as the figure's", None, f"{len(figure.workloads)}")
    _check_lines(figure, place, parts, report)


def _check_lines(figure: StudyFigure, place: Place, parts: ValidParts, report: Report) -> None:
    """The lines of a scan, and what is said of them by name."""
    for index, line in enumerate(figure.lines):
        for number, name in enumerate(line.arrays):
            _check_array_name(name, (*place, "lines", index, "arrays", number), parts, report)
        for key, other in (("reference", line.reference), ("like", line.like)):
            if other is not None:
                _check_array_name(other, (*place, "lines", index, key), parts, report)
    drawn = [line.name for line in figure.lines] or figure.arrays
    for key, names in (("flat", figure.flat), ("crossing", figure.crossing)):
        for index, name in enumerate(names):
            if name not in drawn:
                report((*place, key, index), "is no line of the figure", name, ", ".join(drawn))
    if figure.crossing and len(figure.crossing) != 2:
        report((*place, "crossing"), "are not two lines", None, "two names")


def _check_array_name(name: str, place: Place, parts: ValidParts, report: Report) -> None:
    if name not in parts.array_names:
        known = sorted(parts.array_names)
        report(place, f"is not the name of an array{did_you_mean(name, known)}", name, nearest(name, known))
