"""A prediction in words: what a page and a terminal say of an array beside its twin.

Invariant: nothing is worked out here but wording and rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from raidlab.analysis.checks import PASS, Finding
from raidlab.analysis.metrics import Analysis
from raidlab.analysis.prediction import AGREES, FASTER, SLOWER, UNDECIDED, PredictedLoad, Prediction, predictions_of
from raidlab.report.figures import Figure
from raidlab.report.figures.figure import array_key, key_of
from raidlab.report.figures.prediction import KIND
from raidlab.report.sections import Shown, shown

SAID = {AGREES: "agrees", SLOWER: "slower", FASTER: "faster", UNDECIDED: "undecided"}
# Causes that are named in a sentence; all stand below.
_FIRST_CAUSES = 3
# From here on a share in percent is hard to read.
_MANY_TIMES = 3
_NO_CAUSE = (
    "Nothing that the member counters, the facts of the array and the checks show explains it. What is left: the path "
    "between the disks and here (a bus, a controller, a cable), or disks that are not those of the model."
)
_NO_CAUSE_FASTER = (
    "Nothing that the member counters, the facts of the array and the checks show explains it: a cache that nobody "
    "tells of, or better disks than those of the model."
)


@dataclass(frozen=True)
class ShownPrediction:
    """A prediction, ready to be shown."""

    prediction: Prediction
    title: str
    headline: str
    basis: str
    """What was predicted, and how far the model is believed."""
    unexplained: str
    """What is said where no cause was found; empty where one was, or none is needed."""
    ratios: list[str]
    """Of each load, what was measured as a share of the prediction."""
    figures: list[Shown]
    care: list[Finding]
    """What checks say of the measurement that its reader has to know."""
    said: Mapping[str, str] = field(default_factory=lambda: SAID)


def shown_predictions(
    analysis: Analysis, findings: list[Finding], figures: Sequence[Figure] = ()
) -> list[ShownPrediction]:
    """Every prediction of a run, ready to be shown; ``figures`` are those of its page."""
    return [_shown(analysis, one, findings, figures) for one in predictions_of(analysis, findings)]


def _shown(analysis: Analysis, one: Prediction, findings: list[Finding], figures: Sequence[Figure]) -> ShownPrediction:
    array = next(array for array in analysis.run.study.array if array.name == one.array)
    title = f"{array.volume or one.array} beside its prediction"
    directions = {cause.direction for cause in one.causes}
    unexplained = ""
    if one.counted(SLOWER) and "slower" not in directions:
        unexplained = _NO_CAUSE
    elif one.counted(FASTER) and "faster" not in directions:
        unexplained = _NO_CAUSE_FASTER
    key = key_of(KIND, array_key(analysis.run.study, one.array), one.target)
    own = [shown(figure) for figure in figures if figure.key == key]
    care = [finding for finding in findings if finding.target == one.target and finding.verdict != PASS]
    ratios = [ratio_of(load) for load in one.loads]
    return ShownPrediction(one, title, headline_of(one), _basis(one), unexplained, ratios, own, care)


def headline_of(one: Prediction) -> str:
    """The verdict of all loads together, in a sentence or two."""
    count = len(one.loads)
    of = f"{count} load{'s' if count > 1 else ''}"
    if one.verdict == AGREES:
        is_stated = all(load.error_is_stated for load in one.loads)
        within = "the model's stated error" if is_stated else f"{max(load.error_percent for load in one.loads):g} %"
        return f"It is as fast as predicted, within {within}, in {'all ' if count > 1 else 'the '}{of}."
    said = []
    for verdict, words in ((SLOWER, "slower than predicted"), (FASTER, "faster than predicted")):
        loads = [load for load in one.loads if load.verdict == verdict]
        if loads:
            ratios = sorted(load.ratio for load in loads)
            said.append(f"{words} in {len(loads)} of {of} ({_range(ratios)} what was predicted)")
    rough = [load.error_percent for load in one.loads if load.model_is_too_rough]
    if rough:
        said.append(f"undecided in {len(rough)}: the model may be off by {max(rough):g} %, and so says too little")
    if unclear := one.counted(UNDECIDED) - len(rough):
        said.append(f"undecided in {unclear}: the repeats differ too much, or are too few")
    sentence = "; ".join(said)
    causes = list(dict.fromkeys(cause.kind for cause in one.causes))
    more = f" and {len(causes) - _FIRST_CAUSES} more" if len(causes) > _FIRST_CAUSES else ""
    where = f" What may be behind it: {', '.join(causes[:_FIRST_CAUSES])}{more}." if causes else ""
    return f"It is {sentence}.{where}" if said[0][0] in "sf" else f"{sentence[0].upper()}{sentence[1:]}.{where}"


def _range(ratios: list[float]) -> str:
    if ratios[0] >= _MANY_TIMES:
        low, high, unit = f"{ratios[0]:.3g}", f"{ratios[-1]:.3g}", " times"
    else:
        low, high, unit = f"{100 * ratios[0]:.0f}", f"{100 * ratios[-1]:.0f}", " % of"
    return f"{low if low == high else f'{low} to {high}'}{unit}"


def _basis(one: Prediction) -> str:
    stated = {load.error_percent for load in one.loads if load.error_is_stated}
    assumed = {load.error_percent for load in one.loads if not load.error_is_stated}
    said = [f"{_listed(stated)} where the figures published of {one.device} say so"] if stated else []
    said += [f"{_listed(assumed)} where it has none of their kind"] if assumed and stated else []
    said += [f"{_listed(assumed)}, for {one.device} has no published figures of such loads"] if not stated else []
    return f"Predicted: {one.tree} of {one.device}. Agreement is within {', and '.join(said)}."


def _listed(errors: set[float]) -> str:
    return " or ".join(f"{error:g} %" for error in sorted(errors))


def ratio_of(load: PredictedLoad) -> str:
    """What was measured as a share of the prediction, with its interval."""
    if load.ratio >= _MANY_TIMES:
        return f"{load.ratio:.3g} times"
    share = f"{100 * load.ratio:.0f} %"
    if load.interval is None:
        return share
    return f"{share} ({100 * load.interval[0]:.0f}-{100 * load.interval[1]:.0f})"
