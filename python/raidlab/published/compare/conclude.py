"""Conclusions of a study, tested on whatever hardware it was run: each holds, fails, or is within the noise.

Invariant: every conclusion becomes a row for every target of the run; what cannot be worked out says why.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from raidlab.published.compare.evaluate import Evaluation
from raidlab.published.compare.row import CONCLUSIONS, NOT_EVALUATED, Published, PublishedRow
from raidlab.published.quantities import Source
from raidlab.study.expression import read
from raidlab.study.mapping import QUANTITIES, Mapping


def conclusions_on(mapping: Mapping, source: Source, fitted_to: Collection[str] = ()) -> list[PublishedRow]:
    """Every conclusion of a study on one target, of whose hardware ``fitted_to`` are the ids that were fitted to."""
    evaluation, target = Evaluation(mapping, source, set(fitted_to)), source.target
    measures = mapping.quantities.measure
    rows = []
    for name, one in mapping.quantities.conclusion.items():
        row = PublishedRow(
            *(target, name, one.holds, Published(""), NOT_EVALUATED),
            table=f"{CONCLUSIONS} on {target}",
            note=one.note,
            says=one.says,
        )
        if one.on is not None and target not in one.on:
            asked = " and ".join(_TARGETS[kind] for kind in one.on)
            rows.append(replace(row, note=f"it is asked of {asked} only, for elsewhere it could not fail"))
            continue
        place = f"{QUANTITIES}: conclusion.{name}.holds"
        row = evaluation.worked_out(row, read(one.holds), measures, {}, holds=True, place=place)
        rows.append(evaluation.with_why(row, one.why))
    return rows


_TARGETS = {
    "original": "the study's own hardware",
    "sim": "the simulator's disks",
    "emulated": "emulated disks",
    "live": "real members",
}
