"""From a need to its answer, and the answer into a folder."""

from __future__ import annotations

from pathlib import Path

from raidlab.directory import Directory
from raidlab.errors import OutputError
from raidlab.recommend.answer import document_of
from raidlab.recommend.candidates import Contender
from raidlab.recommend.cells import Cells
from raidlab.recommend.decide import SHOWN, Decider, Decision, effort_of, farness, first_shapes, short_of
from raidlab.recommend.lines import assumed_of
from raidlab.recommend.load import LoadedNeed
from raidlab.recommend.margins import Margins, WorkMargins
from raidlab.recommend.study_file import study_text
from raidlab.results.recommendation import RECOMMENDATION, Recommendation, recommendation_text
from raidlab.run.interrupt import StopFlag, catching_signals
from raidlab.run.progress import Progress

STUDY = "study.toml"
_QUICK_SHARE = 3


def make_recommendation(
    loaded: LoadedNeed, *, quick: bool = False, progress: Progress | None = None, stop: StopFlag | None = None
) -> Recommendation:
    """Answer a need. ``quick`` simulates a third as much: less is told apart."""
    progress, stop = progress or Progress(), stop or StopFlag()
    requests = loaded.need.effort.requests
    cells = Cells(loaded, progress, stop, max(200, requests // _QUICK_SHARE) if quick else requests)
    with catching_signals(stop):
        decider = Decider(loaded, cells, effort_of(loaded, quick=quick))
        progress.begin("simulating", decider.expected_requests(), unit="request")
        with cells:
            try:
                decision = decider.decide()
            finally:
                progress.end()
            margins = _margins(decision, progress, quick=quick)
    measured = first_shapes(decision.feasible or _nearest(decision), SHOWN) if decision.is_chosen else []
    study = study_text(loaded, measured, cells.warm_up, is_met=bool(decision.feasible)) if measured else ""
    return document_of(decision, study, margins, is_cut_short=stop())


def _nearest(decision: Decision) -> list[Contender]:
    """Of the disks at hand what was simulated, nearest to the need first."""
    simulated = [one for one in decision.candidates if one.is_at_hand and one.shape in decision.standings]
    return sorted(simulated, key=lambda one: (farness(short_of(decision, one)), one.number))


def _margins(decision: Decision, progress: Progress, *, quick: bool) -> Margins:
    """What of the work would change the answer, where there is one and time for it."""
    if decision.answer is None:
        has_reason = not (decision.interrupted or decision.is_hopeless or quick)
        return WorkMargins(decision, progress).relieve() if has_reason else Margins()
    if decision.interrupted or quick:
        why = "as it was interrupted" if decision.interrupted else "with --quick"
        assumed = assumed_of(decision.loaded, decision.answer.shape)
        unseen = ["other shares of reads", "other loads", *(["what the files of disks assume"] if assumed else [])]
        return Margins(unseen=[f"{', '.join(unseen[:-1])} and {unseen[-1]}, {why}"])
    return WorkMargins(decision, progress).find()


def write_recommendation(document: Recommendation, folder: Path) -> None:
    """Write the answer, and the study that measures it, into a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with Directory.open(folder) as place:
            place.replace(RECOMMENDATION, recommendation_text(document).encode())
            if document["study"]:
                place.replace(STUDY, document["study"].encode())
    except OSError as error:
        raise OutputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
