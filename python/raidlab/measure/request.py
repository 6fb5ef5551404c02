"""Write a cell of a measurement as the engine takes it.

Invariant: the text is a pure function of the study, the cell, the targets and the way they are driven, with sorted
keys.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from raidlab.measure.drive import Drive
from raidlab.measure.places import WHOLE
from raidlab.measure.plan import ARRAY, ARRAY_SECTOR_BYTES, Subject
from raidlab.run.request import cell_limit, cell_policy, direct_request, text_of
from raidlab.study import Cell, LoadedStudy
from raidlab.study.cell import ArrayCell, Span
from raidlab.study.target import Amount

Members = list[dict[str, Any]]

# How long the meter is run against nothing, for the bound of its own cost.
NULL_BUDGET = (Amount(duration="100ms"), Amount(duration="400ms"))


def measure_request(
    loaded: LoadedStudy,
    cell: Cell,
    subject: Subject,
    members: Members,
    drive: Drive,
    *,
    hold_target_ns: int | None = None,
    amounts: tuple[Amount, Amount] | None = None,
) -> str:
    """The request for one cell.

    Parameters
    ----------
    loaded : LoadedStudy
    cell : Cell
    subject : Subject
        What it is about.
    members : list of dict
        The targets, or the members of the array.
    drive : Drive
    hold_target_ns : int, optional
        The target of a cell whose load is a held percentile.
    amounts : tuple of Amount, optional
        Warm-up and measuring; the study's if left out.
    """
    request = direct_request(loaded, cell, targets=members, quick=False, hold_target_ns=hold_target_ns)
    if amounts is not None:
        warmup, measure = (cell_limit(amount, 0) for amount in amounts)
        request = request.model_copy(update={"warmup": warmup, "measure": measure})
    if subject.engine == ARRAY:
        return text_of(
            ArrayCell(
                engine=ARRAY,
                seed=request.seed,
                sector_bytes=ARRAY_SECTOR_BYTES,
                tree=loaded.geometry.trees[subject.name],
                policy=cell_policy(loaded.study.policy),
                members=members,
                load=request.load,
                workload=request.workload,
                verify=drive.verify,
                warmup=request.warmup,
                measure=request.measure,
            )
        )
    spans: list[Span] = []
    if any(place.span != WHOLE for place in subject.places):
        parts = [place.span_bytes for place in subject.places]
        spans = [Span(offset_bytes=offset, size_bytes=size) for offset, size in parts]
    return text_of(request.model_copy(update={**asdict(drive), "cpus": list(drive.cpus), "spans": spans}))
