"""Conclusions of a study, tested on whatever hardware it was run: each holds, fails, or is within the noise.

Invariant: every conclusion becomes a row for every target of the run; what cannot be worked out says why.
"""

from __future__ import annotations

from raidlab.published.compare.evaluate import Evaluation
from raidlab.published.compare.row import Published, PublishedRow
from raidlab.published.quantities import Source
from raidlab.study.expression import read
from raidlab.study.mapping import Mapping

CONCLUSIONS = "conclusions"


def conclusions_on(mapping: Mapping, source: Source) -> list[PublishedRow]:
    """Every conclusion of a study on one target."""
    evaluation, target = Evaluation(mapping, source, set()), source.target
    return [
        evaluation.worked_out(
            PublishedRow(
                target,
                name,
                one.holds,
                Published(""),
                "not evaluated",
                table=f"{CONCLUSIONS} on {target}",
                note=one.note,
                says=one.says,
            ),
            read(one.holds),
            mapping.quantities.measure,
            {},
            holds=True,
        )
        for name, one in mapping.quantities.conclusion.items()
    ]
