"""Write a cell as the engine takes it: the JSON text of the contract.

Invariants:

- The text is a pure function of the study, the cell and the members, with sorted keys: the same cell gives the same
  bytes, so a result can be traced to exactly what was asked.
- Everything the engine must know is in the text; it reads no file but the trace that the text names.
- What the study says crosses as its own tables; only what follows from several of them is worked out here.
"""

from __future__ import annotations

from raidlab.errors import InputError
from raidlab.run.data_path import data_path
from raidlab.run.stream_cells import live_streams, member_bytes, streams_of, with_streams
from raidlab.study import Cell, LoadedStudy, budget
from raidlab.study.cell import (
    ArrayCell,
    BurstyArrival,
    CellFiles,
    CellLoad,
    CellPolicy,
    ClosedLoad,
    DirectCell,
    HeldLoad,
    Limit,
    Opaque,
    OpenLoad,
    Parts,
    PoissonArrival,
    RecordedArrival,
    UniformArrival,
    joined,
    parts_of,
)
from raidlab.study.expand import NULL, Budget, fills_caches, load_of
from raidlab.study.schema import Policy
from raidlab.study.target import Amount, FileSystem
from raidlab.study.words import Table, is_simulated
from raidlab.study.workload import DrawnRequests, FixedSize, Load, TraceReplay, UniformAddress, Workload

# A closed loop needs every slot filled several times before it is in its stride; a budget in requests that suits
# depth 1 would be spent before depth 256 has started. So both parts grow with the depth.
WARMUP_ROUNDS = 4
MEASURE_ROUNDS = 20
# What plain targets do not do: the key, what is wrong with it, what does.
_NOT_DIRECT = (
    (
        "streams",
        "streams do not run on plain targets",
        "'raidlab measure streams' for streams between any two ends",
    ),
    ("files", "whole files are not read from plain targets", "'raidlab measure files' for files on a file system"),
    ("trace", "a trace is not replayed on plain targets", "'raidlab run', on an array of one member"),
)


def cell_request(
    loaded: LoadedStudy,
    cell: Cell,
    *,
    members: list[Opaque],
    sector_bytes: int,
    quick: bool,
    hold_target_ns: int | None = None,
    once: bool = False,
    known: KnownParts | None = None,
) -> str:
    """The text of one cell.

    ``members``: one a leaf, or exactly one that stands for all. ``hold_target_ns``: the target of a cell whose load is
    a held percentile. ``once``: a single request, to have the members opened and filled. ``known`` is where what cells
    of a sweep have in common is kept, over the same members: a text then takes a tenth of the time.
    """
    if known is not None and cell.workload.streams is None:
        return known.text(loaded, cell, members, sector_bytes, quick=quick, hold_target_ns=hold_target_ns)
    return joined(_parts(loaded, cell, members, sector_bytes, quick=quick, hold_target_ns=hold_target_ns, once=once))


def _parts(
    loaded: LoadedStudy,
    cell: Cell,
    members: list[Opaque],
    sector_bytes: int,
    *,
    quick: bool,
    hold_target_ns: int | None,
    once: bool = False,
) -> Parts:
    """The texts of the keys of one cell."""
    study = loaded.study
    policy = cell_policy(cell.array.policy or study.policy)
    if cell.workload.streams is not None and not is_simulated(cell.target) and not once:
        return parts_of(live_streams(loaded, cell, policy, members, sector_bytes, quick=quick))
    live = cell.target in ("live", NULL, "emulated")
    request = ArrayCell(
        engine="live" if live else "sim",
        seed=cell.seed,
        sector_bytes=sector_bytes,
        tree=loaded.geometry.trees[cell.array.name],
        policy=policy,
        members=members,
        missing=cell.array.missing,
        events=cell.array.events,
        rebuild=cell.array.rebuild,
        load=cell_load(load_of(study, cell.array, cell.workload), cell, hold_target_ns),
        pair_pricing=study.pair_pricing(cell.target, cell.array) if cell.target not in ("live", NULL) else None,
        verify=study.live.verify if cell.target == "live" and study.live is not None else None,
        speed=study.emulated.speed if cell.target == "emulated" else None,
        measure=Limit(requests=1),
    )
    if once:
        request = request.model_copy(update={"workload": _any_request(cell.workload, sector_bytes)})
    else:
        request = _with_work(request, loaded, cell, sector_bytes, quick=quick)
    if not live:
        section = study.sim if cell.target == "sim" else study.original
        assert section is not None, "checked when the study was loaded"
        count = len(streams_of(cell)) if cell.workload.streams is not None else 0
        path = data_path(section, cell.array, loaded.geometry.trees[cell.array.name], count)
        # What is not said is not done: cells of studies that wait for nothing are as they were.
        fills = fills_caches(section, quick=quick) or None
        area = loaded.geometry.device(cell.target, cell.array.name).capacity_bytes if section.one_device else None
        more = {"host": section.host, "path": path, "fill_caches": fills, "area_bytes": area}
        request = request.model_copy(update=more)
        if count:
            request = with_streams(request, loaded, cell, section, sector_bytes=sector_bytes, quick=quick)
    return parts_of(request)


class KnownParts:
    """The texts of what cells of a target have in common.

    Those of one array and workload differ in their seed, their point of the load, and how much is asked for, which may
    follow from it; those of one array also in what is asked for, where that does not follow from the array.
    """

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str, str], Parts] = {}
        self._of_array: dict[tuple[str, str], Parts] = {}
        self._of_workload: dict[tuple[str, str], str] = {}
        # Each text once, however many cells have it.
        self._texts: dict[str, str] = {}
        self._own: dict[tuple[object, ...], Parts] = {}

    def text(
        self,
        loaded: LoadedStudy,
        cell: Cell,
        members: list[Opaque],
        sector_bytes: int,
        *,
        quick: bool,
        hold_target_ns: int | None,
    ) -> str:
        """The text of one cell, none of streams."""
        key = (cell.target, cell.array.name, cell.workload.name)
        if key not in self._parts:
            parts = self._joint(cell)
            if parts is None:
                parts = _parts(loaded, cell, members, sector_bytes, quick=quick, hold_target_ns=hold_target_ns)
                parts = {name: self._texts.setdefault(part, part) for name, part in parts.items()}
                self._keep(cell, parts)
            self._parts[key] = parts
        # What is not the same under every workload and array is under one of them.
        array, workload = cell.array, cell.workload
        is_own = workload.load is not None or workload.trace is not None or workload.count is not None
        whose = (array.name if array.load is not None else "", workload.name if is_own else "")
        point = (cell.target, *whose, cell.load, hold_target_ns)
        if point not in self._own:
            self._own[point] = _own_parts(loaded, cell, quick=quick, hold_target_ns=hold_target_ns)
        return joined({**self._parts[key], **self._own[point], "seed": str(cell.seed)})

    def _joint(self, cell: Cell) -> Parts | None:
        """What cells of an array and a workload have in common that were seen with others, and not yet together."""
        of_array = self._of_array.get((cell.target, cell.array.name))
        asked = self._of_workload.get((cell.target, cell.workload.name))
        if of_array is None or asked is None or not _is_plain(cell):
            return None
        return {**of_array, "workload": asked}

    def _keep(self, cell: Cell, parts: Parts) -> None:
        if _is_plain(cell):
            self._of_array.setdefault((cell.target, cell.array.name), parts)
            self._of_workload.setdefault((cell.target, cell.workload.name), parts["workload"])


def _is_plain(cell: Cell) -> bool:
    """Whether what a cell asks for follows from its workload alone, and is requests that are drawn."""
    workload = cell.workload
    return workload.files is None and workload.trace is None and cell.array.user_size is None


def _own_parts(loaded: LoadedStudy, cell: Cell, *, quick: bool, hold_target_ns: int | None) -> Parts:
    """What a cell's point of the load decides."""
    own = parts_of(_Own(load=cell_load(load_of(loaded.study, cell.array, cell.workload), cell, hold_target_ns)))
    if cell.workload.trace is None:
        spent = budget(loaded.study, cell.target, quick=quick)
        warmup, measure = amounts(cell.workload, spent, max(cell.load.depth, 1))
        own |= parts_of(_Amounts(warmup=warmup, measure=measure))
    return own


class _Own(Table):
    load: CellLoad


class _Amounts(Table):
    warmup: Limit
    measure: Limit


def _with_work(request: ArrayCell, loaded: LoadedStudy, cell: Cell, sector_bytes: int, *, quick: bool) -> ArrayCell:
    """What a cell asks for, and how much of it: requests drawn, those of a trace, or whole files."""
    study, workload = loaded.study, cell.workload
    spent = budget(study, cell.target, quick=quick)
    if workload.trace is not None:
        warmup, measure = trace_amounts(workload.trace, spent, quick=quick)
        trace = workload.trace.model_copy(update={"file": str(loaded.trace_file(workload.trace))})
        return request.model_copy(update={"trace": trace, "warmup": warmup, "measure": measure})
    files = None
    if workload.files is not None:
        facts = loaded.geometry.facts(cell.array.name, member_bytes(loaded, cell, request.members), sector_bytes)
        system = study.file_system_on("live" if cell.target == NULL else cell.target)
        files = cell_files(workload, system, int(facts["user_bytes"]))
    if cell.array.user_size is not None:
        workload = _within(workload, cell.array.user_size, loaded, cell, request.members, sector_bytes)
    warmup, measure = amounts(workload, spent, max(cell.load.depth, 1))
    return request.model_copy(update={"workload": workload, "files": files, "warmup": warmup, "measure": measure})


def _within(
    workload: Workload, user_size: int, loaded: LoadedStudy, cell: Cell, members: list[Opaque], sector_bytes: int
) -> Workload:
    """The same requests within the first bytes of an array that is larger than what it stands for."""
    whole = int(loaded.geometry.facts(cell.array.name, member_bytes(loaded, cell, members), sector_bytes)["user_bytes"])
    return workload.model_copy(update={"span": workload.span * min(1.0, user_size / whole)})


def _any_request(workload: Workload, sector_bytes: int) -> DrawnRequests:
    """One request that has the members made ready asks for no files, and nothing of a trace."""
    if workload.files is None and workload.trace is None:
        return workload
    # Files are as long as they are, to the byte; a request is whole sectors.
    size = FixedSize(bytes=sector_bytes)
    return DrawnRequests(read=workload.read, size=size, address=UniformAddress(kind="uniform"))


def direct_request(
    loaded: LoadedStudy,
    cell: Cell,
    *,
    targets: list[Opaque],
    quick: bool,
    hold_target_ns: int | None = None,
) -> DirectCell:
    """The cell of a study over plain targets, one a volume, instead of its array."""
    for key, message, accepted in _NOT_DIRECT:
        if getattr(cell.workload, key) is not None:
            place = ("workload", loaded.study.workload.index(cell.workload), key)
            raise InputError([loaded.problem(place, message, accepted)])
    spent = budget(loaded.study, cell.target, quick=quick)
    warmup, measure = amounts(cell.workload, spent, max(cell.load.depth, 1))
    return DirectCell(
        seed=cell.seed,
        targets=targets,
        load=cell_load(load_of(loaded.study, cell.array, cell.workload), cell, hold_target_ns),
        workload=cell.workload,
        warmup=warmup,
        measure=measure,
    )


def one_request(cell: DirectCell) -> DirectCell:
    """The same targets and a single request, to have them opened, claimed, made and filled."""
    once = {"load": ClosedLoad(depth=1), "workers": 1, "warmup": Limit(), "measure": Limit(requests=1)}
    return cell.model_copy(update=once)


def cell_files(workload: Workload, system: FileSystem | None, user_bytes: int) -> CellFiles:
    """Whole files of an array of so many bytes."""
    files = workload.files
    assert files is not None, "the caller looked"
    if files.run is not None:
        system = (system or FileSystem()).model_copy(update={"run": None if files.run == "whole" else files.run})
    return CellFiles(
        numbers=files.numbers,
        count=files.count if files.fill is None else None,
        total_bytes=files.total_bytes(user_bytes, workload.size.typical_bytes),
        lists=files.lists,
        order=files.order,
        file_system=system,
    )


def trace_amounts(trace: TraceReplay, spent: Budget, *, quick: bool) -> tuple[Limit, Limit]:
    """How much of a trace is replayed: as it says itself, for the budgets of drawn requests have no end to reach."""
    measure = Limit(requests=trace.requests)
    if quick:
        most = cell_limit(spent.measure, 1)
        given = [count for count in (trace.requests, most.requests) if count is not None]
        measure = Limit(requests=min(given, default=None), duration=most.duration)
    return Limit(requests=trace.warmup or None), measure


def cell_policy(policy: Policy) -> CellPolicy:
    """A policy as a cell has it."""
    return CellPolicy(**dict(policy))


def cell_load(load: Load, cell: Cell, hold_target_ns: int | None) -> CellLoad:
    """A cell's point of a load."""
    if cell.load.kind == "trace":
        assert cell.workload.trace is not None, "a cell of a trace comes from one"
        return OpenLoad(arrival=RecordedArrival(speed=cell.workload.trace.speed))
    if cell.load.kind == "open":
        assert load.open is not None, "an open cell comes from an open load"
        rate = cell.load.rate_per_s
        if load.open.arrival == "h2":
            # A missing cv2 was refused when the study was loaded.
            return OpenLoad(arrival=BurstyArrival(rate_per_s=rate, cv2=load.open.cv2 or 0.0))
        arrival = PoissonArrival if load.open.arrival == "poisson" else UniformArrival
        return OpenLoad(arrival=arrival(rate_per_s=rate))
    if cell.load.kind == "hold":
        assert load.hold is not None and hold_target_ns is not None, "a held cell comes from a hold"
        return HeldLoad(
            percentile=load.hold.percentile, target=hold_target_ns, initial_depth=1, max_depth=load.hold.max_depth
        )
    return ClosedLoad(depth=cell.load.depth)


def amounts(workload: Workload, spent: Budget, depth: int) -> tuple[Limit, Limit]:
    """How much of a workload is discarded before measuring, and how much is measured."""
    if workload.count is not None:
        return Limit(), Limit(requests=workload.count * depth)
    return cell_limit(spent.warmup, WARMUP_ROUNDS * depth), cell_limit(spent.measure, MEASURE_ROUNDS * depth)


def cell_limit(amount: Amount, least_requests: int) -> Limit:
    """How much is run; never fewer requests than ``least_requests``."""
    requests = None if amount.requests is None else max(amount.requests, least_requests)
    return Limit(requests=requests, duration=amount.duration)
