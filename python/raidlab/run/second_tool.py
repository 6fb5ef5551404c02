"""A study's second tool: fio on the members of an array, beside raidlab's own engine, job by job.

The array itself is raidlab's, and no other tool knows it. What both are given is therefore one plain target: the
array's volume where that is a single member (a controller's own chain), else its first member. The tools take turns
(`witness`).

Invariants:

- It comes after everything else is measured, and what it does changes nothing of that.
- A machine without fio, or an array that fio cannot do, is a result that says so, never a failure of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from raidlab.errors import CellFailedError, InputError, RefusedError
from raidlab.results.facts import SecondTool, ToolLoad
from raidlab.run.interrupt import StopFlag
from raidlab.run.progress import Progress
from raidlab.run.request import cell_limit, direct_request
from raidlab.run.witness import compare_with_fio
from raidlab.study import Cell, LoadedStudy, expand
from raidlab.study.cell import DirectCell, Span
from raidlab.study.target import SecondTool as Asked

# raidlab writes random bytes that it has made before, stamped so that no two requests are alike; to make them anew for
# each request would be time of fio's own.
_WORDS = ("refill_buffers=0", "scramble_buffers=1")
_DIFFERENCE = "refill_buffers: fio writes copies of one random buffer, scrambled so that no two are the same"
# Parts of a target that jobs go through one by one are whole multiples of this.
_GRAIN_BYTES = 2**20


def second_tool(
    loaded: LoadedStudy,
    member_of: dict[str, dict[str, Any]],
    member_bytes: int,
    sector_bytes: int,
    *,
    seed: int,
    quick: bool,
    progress: Progress,
    stop: StopFlag,
) -> Iterator[SecondTool]:
    """Run raidlab and fio in turns at every load that the study names; one document a load.

    Parameters
    ----------
    loaded : LoadedStudy
    member_of : dict
        By array, the member that both are given, in the engine's words.
    member_bytes, sector_bytes : int
        Of every member.
    seed : int
    quick : bool
    progress : Progress
    stop : StopFlag

    Yields
    ------
    ToolMeasured or ToolMissing
    """
    asked = loaded.study.live.second_tool
    if asked is None:
        return
    for cell in _cells(loaded, asked, seed=seed, quick=quick):
        member = member_of.get(cell.array.name)
        if member is None or stop():
            continue
        load: ToolLoad = {
            "array": cell.array.name,
            "workload": cell.workload.name,
            "depth": cell.load.depth,
            "tool": "fio",
            "target": member.get("path", member["kind"]),
            "within_percent": asked.within_percent,
        }
        try:
            request = _request(loaded, cell, asked, member, member_bytes, sector_bytes)
            witness = compare_with_fio(
                request, pairs=asked.pairs, seed=seed, words=_WORDS, progress=progress, stop=stop
            )
        except KeyboardInterrupt:
            return
        except (InputError, RefusedError, CellFailedError) as error:
            progress.note(f"no second tool: {error}")
            yield {**load, "missing": str(error)}
            return
        found = witness.document()
        found["differences"].append(_DIFFERENCE)
        yield {**load, **found}


def _cells(loaded: LoadedStudy, asked: Asked, *, seed: int, quick: bool) -> list[Cell]:
    cells = expand(loaded.study, "live", seed=seed, quick=quick).cells
    wanted = [cell for cell in cells if cell.array.name in asked.arrays and cell.workload.name in asked.workloads]
    return [cell for cell in wanted if cell.repeat == 0 and cell.load.kind == "closed"]


def _request(
    loaded: LoadedStudy, cell: Cell, asked: Asked, member: dict[str, Any], member_bytes: int, sector_bytes: int
) -> DirectCell:
    """What both are asked: the load's depth in jobs, each with one request outstanding and a part of its own."""
    jobs = cell.load.depth
    target = {key: value for key, value in member.items() if key != "destroy"}
    request = direct_request(loaded, cell, targets=[target], quick=False)
    workload = request.workload
    if workload.address.kind == "sequential":
        workload = workload.model_copy(update={"address": workload.address.model_copy(update={"streams": 1})})
    whole = member_bytes // (jobs * _GRAIN_BYTES) * jobs * _GRAIN_BYTES
    asked_of_both = {
        "sector_bytes": sector_bytes,
        "workers": jobs,
        "workload": workload,
        "spans": [Span(offset_bytes=0, size_bytes=whole or member_bytes)],
        "destroy": [member["path"]] if member.get("destroy") else [],
        "warmup": cell_limit(asked.warmup, jobs),
        "measure": cell_limit(asked.measure, jobs),
    }
    return request.model_copy(update=asked_of_both)
