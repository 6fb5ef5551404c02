"""The evaluation sheet as the page has it: who qualifies, who comes first, all boxes side by side, each on its own.

Invariant: nothing is worked out here but wording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from raidlab.published.scorecard import BoxSheet, Sheet, box_table, side_table
from raidlab.published.scorecard.text import PLACES
from raidlab.report.answer import listed

# How a cell is coloured: as verdicts of claims.
_CLASSES = {"passes": "holds", "fails": "fails", "undecided": "far"}


@dataclass(frozen=True)
class ShownCell:
    """A figure, with what the sheet says of it."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class ShownTable:
    """A table of the sheet."""

    title: str
    heads: list[str]
    rows: list[list[ShownCell]]


@dataclass(frozen=True)
class ShownSheet:
    """The section's parts."""

    title: str
    unit: str
    note: str
    headline: str
    """Who qualifies."""
    places: list[tuple[str, str]]
    """Who comes first, and in how many of the tests that rank boxes."""
    side: list[ShownTable]
    """All boxes, where there are several: the tests that judge them, and the others."""
    boxes: list[ShownTable]
    places_note: str = PLACES


def shown_sheet(sheet: Sheet) -> ShownSheet:
    """A sheet, ready to be shown."""
    ranked = sorted((box for box in sheet.boxes if box.places), key=lambda box: -_share_of_firsts(box))
    return ShownSheet(
        title=sheet.plan.title,
        unit=sheet.plan.unit,
        note=sheet.plan.note,
        headline=_qualified(sheet.boxes),
        places=_places(ranked),
        side=[
            _table("Side by side", *side_table(sheet, ("qualifying", "discriminating"))),
            _table("Tests that are only shown", *side_table(sheet, ("beside",))),
        ]
        if len(sheet.boxes) > 1
        else [],
        boxes=[_table(box.box, *box_table(box, sheet)) for box in sheet.boxes],
    )


def _qualified(boxes: Sequence[BoxSheet]) -> str:
    """Who passes all qualifying tests, and who does not."""
    by_verdict: dict[str, list[str]] = {}
    for box in boxes:
        by_verdict.setdefault(box.qualifies if box.is_asked else "unasked", []).append(box.box)
    words = {
        "passes": ("passes all qualifying tests", "pass all qualifying tests"),
        "fails": ("fails at least one", "fail at least one each"),
        "undecided": ("is undecided", "are undecided"),
        "unasked": ("did not run all qualifying tests", "did not run all qualifying tests"),
    }
    said = [f"{listed(found)} {words[one][len(found) > 1]}" for one in words if (found := by_verdict.get(one))]
    return "; ".join(said) + "."


def _places(ranked: Sequence[BoxSheet]) -> list[tuple[str, str]]:
    """How often each box is first; of boxes that are first everywhere, that nothing tells them apart."""
    firsts = [box.box for box in ranked if _share_of_firsts(box) == 1]
    if len(firsts) == len(ranked) > 1:
        return [(listed(firsts), "share the first place in all tests that rank: their intervals meet")]
    leaders = Counter(row.test.name for box in ranked for row in box.rows if row.rank == 1)
    return [(box.box, _firsts(box, leaders)) for box in ranked]


def _firsts(box: BoxSheet, leaders: Counter[str]) -> str:
    """How often a box is first, and how often it is so beside others: their intervals meet."""
    shared = sum(row.rank == 1 and leaders[row.test.name] > 1 for row in box.rows)
    said = f"first in {box.places.count(1)} of {len(box.places)} tests that rank"
    return f"{said}, {shared} of them shared" if shared else said


def _share_of_firsts(box: BoxSheet) -> float:
    return box.places.count(1) / len(box.places)


def _table(title: str, heads: list[str], rows: list[list[str]]) -> ShownTable:
    return ShownTable(title, heads, [[_cell(text) for text in row] for row in rows])


def _cell(text: str) -> ShownCell:
    """A cell; a verdict is coloured whether it stands alone or behind its figure."""
    return ShownCell(text, _CLASSES.get(text.rpartition(" ")[2], ""))
