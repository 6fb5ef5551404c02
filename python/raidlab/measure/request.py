"""Write a cell of a measurement as the engine takes it.

Invariant: the text is a pure function of the study, the cell, the targets and the way they are driven, with sorted
keys.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from raidlab.measure.drive import Drive
from raidlab.measure.places import WHOLE
from raidlab.measure.plan import ARRAY, ARRAY_SECTOR_BYTES, Subject
from raidlab.run.request import amount_text, direct_request, policy_text
from raidlab.study import Cell, LoadedStudy
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
    study = loaded.study
    request = direct_request(
        loaded, cell, targets=members, quick=False, sector_bytes=ARRAY_SECTOR_BYTES, hold_target_ns=hold_target_ns
    )
    if amounts is not None:
        request["warmup"], request["measure"] = (amount_text(amount, 0) for amount in amounts)
    if subject.engine == ARRAY:
        shared = {key: request[key] for key in ("seed", "load", "workload", "warmup", "measure")}
        array = {"tree": loaded.geometry.trees[subject.name], "policy": policy_text(study.policy), "members": members}
        verify = {"verify": drive.verify}
        return json.dumps(
            {**shared, **array, "engine": ARRAY, "sector_bytes": ARRAY_SECTOR_BYTES, **verify}, sort_keys=True
        )
    if cell.workload.align is None and cell.workload.size.kind != "fixed":
        # Plain targets know their own sector; requests of no fixed size start on any.
        request["workload"]["address"].pop("align_bytes", None)
    if any(place.span != WHOLE for place in subject.places):
        spans = [place.span_bytes for place in subject.places]
        request["spans"] = [{"offset_bytes": offset, "size_bytes": size} for offset, size in spans]
    return json.dumps({**request, **asdict(drive)}, sort_keys=True)
