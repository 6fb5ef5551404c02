"""Conclusions of a study, tested on whatever hardware it was run: each holds, fails, or is within the noise.

Invariants:

- A comparison is decided by the 95 % interval of its margin over repeats, paired repeat by repeat: it holds where the
  whole interval does, fails where none of it does, and is within the noise between. A single run has no interval; it is
  decided by its figures, and its row says so.
- Every conclusion becomes a row for every target of the run; what cannot be worked out says why.
"""

from __future__ import annotations

from dataclasses import replace

from raidlab.published.compare.evaluate import Evaluation, Known, NoReadingError
from raidlab.published.compare.row import Published, PublishedRow, Verdict
from raidlab.published.quantities import Source
from raidlab.stats import mean_interval
from raidlab.study.expression import Margin, read
from raidlab.study.mapping import Conclusion, Mapping

CONCLUSIONS = "conclusions"
NOISE: Verdict = "within the noise"


def conclusions_on(mapping: Mapping, source: Source) -> list[PublishedRow]:
    """Every conclusion of a study on one target."""
    evaluation = Evaluation(mapping, source, set())
    return [_row(evaluation, name, one) for name, one in mapping.quantities.conclusion.items()]


def _row(evaluation: Evaluation, name: str, conclusion: Conclusion) -> PublishedRow:
    target = evaluation.source.target
    row = PublishedRow(
        target, name, conclusion.holds, Published(""), "not evaluated", table=f"{CONCLUSIONS} on {target}"
    )
    known = Known(evaluation, evaluation.mapping.quantities.measure, {})
    expression = read(conclusion.holds)
    try:
        # Read first, so that the repeats of all readings are known.
        for measure in sorted(expression.names):
            known[measure]
        found = expression.decided(lambda margin: _is_above_zero(margin, known))
    except NoReadingError as error:
        return replace(row, note=f"the run has no {error}")
    except ValueError as error:
        return replace(row, verdict="error", note=str(error))
    verdict: Verdict = NOISE if found is None else "holds" if found else "fails"
    figures = ", ".join(f"{measure} = {reading.value:.4g}" for measure, reading in known.readings.items())
    alone = "" if len(known.repeats()) > 1 else "one run, without an interval"
    kind = evaluation.kind_of(row, [evaluation.mapping.quantities.measure[measure] for measure in known.readings])
    parts = (conclusion.says, figures, alone, conclusion.note)
    return replace(row, verdict=verdict, kind=kind, note="; ".join(part for part in parts if part))


def _is_above_zero(margin: Margin, known: Known) -> bool | None:
    """Whether a comparison holds, by the interval of its margin over repeats; None where that holds 0."""
    interval = mean_interval([margin(numbers) for numbers in known.repeats()])
    if interval is None:
        return margin(known) > 0
    low, high = interval
    return True if low > 0 else False if high < 0 else None
