"""A sheet as text: Markdown to read and print, JSON for programs.

Invariant: a figure that is not there is shown as not there, never as a zero.
"""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

from raidlab.published.scorecard.facts import ASKED
from raidlab.published.scorecard.make import FAILS, BoxSheet, Sheet, SheetRow

NOTHING = "-"
KINDS = ("qualifying", "discriminating", "beside")
PLACES = "In brackets the place in tests that rank boxes; those whose intervals meet share one."


def sheet_markdown(sheet: Sheet) -> str:
    """All boxes, each on its own, then side by side, then what the honesty checks say of the run."""
    lines = [f"# {sheet.plan.title}", ""]
    if sheet.plan.note:
        lines += [sheet.plan.note.strip(), ""]
    for box in sheet.boxes:
        lines += _box(box, sheet)
    if len(sheet.boxes) > 1:
        lines += _side_by_side(sheet)
    return "\n".join([*lines, *_honesty(sheet)]).rstrip() + "\n"


def sheet_json(sheet: Sheet) -> str:
    """The same for programs."""

    def row(one: SheetRow) -> dict[str, Any]:
        figures = {key: value for key, value in one.__dict__.items() if key != "test"}
        return {"test": one.test.name, "kind": one.test.kind, "at_least": one.test.at_least, **figures}

    document = {
        "title": sheet.plan.title,
        "unit": sheet.plan.unit,
        "target": sheet.target,
        "baseline": sheet.plan.baseline,
        "boxes": [
            {
                "box": box.box,
                "tree": box.tree,
                "qualifies": box.qualifies,
                "behind_baseline": None if box.against_baseline is None else box.against_baseline[0],
                "tests": [row(one) for one in box.rows],
                "entered": box.facts.model_dump(),
            }
            for box in sheet.boxes
        ],
        "checks": [finding.__dict__ for finding in sheet.findings],
    }
    return json.dumps(document, indent=2)


def _box(box: BoxSheet, sheet: Sheet) -> list[str]:
    head = f"Arrangement: `{box.tree}`. Qualifying tests: {_qualifies(box)}."
    if (against := box.against_baseline) is not None:
        behind, count = against
        told = (
            f"behind in {len(behind)} of {count} tests ({'; '.join(behind)})" if behind else f"matched in all {count}"
        )
        head += f" The baseline, {sheet.plan.baseline}: {told}."
    lines = [f"## {box.box}", "", head, "", *_table(*box_table(box, sheet))]
    lines += ["", "Entered by hand:", ""]
    entered = box.facts.model_dump()
    lines += [f"- {meaning}: {_entered(entered[key])}" for key, meaning in ASKED.items()]
    lines += _value_for_money(box)
    return [*lines, ""]


def box_table(box: BoxSheet, sheet: Sheet) -> tuple[list[str], list[list[str]]]:
    """The tests of a box, as heads and rows of text; columns without anything are left out."""
    columns: list[tuple[str, Any]] = [
        ("test", lambda row: row.test.name),
        ("requires", _requirement),
        (sheet.plan.unit, lambda row: _figure(row.value)),
        ("95 % interval", _interval),
        ("verdict", _verdict),
        ("of alone", lambda row: _percent(row.left_percent)),
        ("tape stops", lambda row: _figure(row.stops)),
        ("of baseline", lambda row: _percent(row.baseline_percent)),
        ("loaded", lambda row: _figure(row.loaded)),
        ("seller's figure", _published),
    ]
    shown = [
        (title, take)
        for title, take in columns
        if title in ("test", "requires", sheet.plan.unit, "verdict")
        or any(take(row) not in ("", NOTHING) for row in box.rows)
    ]
    # What was not run is told where the verdict on the box waits for it.
    rows = [row for row in box.rows if row.value is not None or row.test.kind == "qualifying"]
    return [title for title, _ in shown], [[take(row) for _, take in shown] for row in rows]


def _value_for_money(box: BoxSheet) -> list[str]:
    price, capacity = box.facts.price, box.facts.capacity_gb
    if price is None:
        return []
    unit = box.facts.currency or "units"
    found = [] if capacity is None else [f"- {price / capacity:.3g} {unit} a GB"]
    best = [row for row in box.rows if row.test.kind == "discriminating" and row.value]
    return found + [f"- {row.test.name}: {1000 * (row.value or 0) / price:.3g} MB/s for 1000 {unit}" for row in best]


def side_table(sheet: Sheet, kinds: Container[str] = KINDS) -> tuple[list[str], list[list[str]]]:
    """All boxes beside one another in the tests of some kinds, as heads and rows of text."""
    heads = ["test", "requires", *(box.box for box in sheet.boxes)]
    rows = []
    for index, test in enumerate(sheet.plan.test):
        each = [box.rows[index] for box in sheet.boxes]
        if test.kind not in kinds or all(row.value is None for row in each):
            continue
        cells = [_figure(row.value) + (f" ({row.rank})" if row.rank else "") + _mark(row) for row in each]
        rows.append([test.name, _requirement(each[0]), *cells])
    if "qualifying" not in kinds:
        return heads, rows
    rows.append(["qualifying tests", "", *(_qualifies(box) for box in sheet.boxes)])
    rows.append(["first place", "", *(_firsts(box) for box in sheet.boxes)])
    against = [box.against_baseline for box in sheet.boxes]
    if any(found is not None for found in against):
        cells = [NOTHING if found is None else f"behind in {len(found[0])}" if found[0] else "yes" for found in against]
        rows.append([f"matches {sheet.plan.baseline}", "", *cells])
    for key, meaning in ASKED.items():
        entered = [box.facts.model_dump()[key] for box in sheet.boxes]
        if any(value is not None for value in entered):
            rows.append([meaning, "", *(_entered(value) for value in entered)])
    return heads, rows


def _side_by_side(sheet: Sheet) -> list[str]:
    return [
        "## Side by side",
        "",
        *_table(*side_table(sheet)),
        "",
        PLACES,
        "",
    ]


def _honesty(sheet: Sheet) -> list[str]:
    lines = ["## Honesty checks", ""]
    return lines + [f"- {finding.verdict} {finding.check}: {finding.evidence}" for finding in sheet.findings]


def _qualifies(box: BoxSheet) -> str:
    """What its tests say of a box; one that was not asked all of them can fail, and is no case of doubt."""
    return box.qualifies if box.is_asked or box.qualifies == FAILS else "not run"


def _firsts(box: BoxSheet) -> str:
    return f"in {box.places.count(1)} of {len(box.places)}" if box.places else NOTHING


def _mark(row: SheetRow) -> str:
    return {"passes": "", "fails": " fails", "undecided": " undecided"}.get(row.verdict, "")


def _verdict(row: SheetRow) -> str:
    if row.value is None:
        return "not run"
    return row.verdict or (f"rank {row.rank}" if row.rank else "")


def _requirement(row: SheetRow) -> str:
    return f"at least {row.test.at_least:g}" if row.test.at_least is not None else ""


def _interval(row: SheetRow) -> str:
    if row.value is None:
        return NOTHING
    return f"{_figure(row.low)} to {_figure(row.high)}" if row.low is not None else "single run"


def _published(row: SheetRow) -> str:
    if row.published is None:
        return NOTHING
    measured = f" ({100 * row.value / row.published:.0f} % of it measured)" if row.value is not None else ""
    return f"{row.published:g}{measured}"


def _figure(value: float | None) -> str:
    """A rate to three digits, its zeros among them."""
    return NOTHING if value is None else f"{value:.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def _entered(value: str | float | None) -> str:
    """What was entered by hand, as it was entered."""
    return NOTHING if value is None else f"{value:.12g}" if isinstance(value, float) else value


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f} %"


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(cells) + " |" for cells in rows),
    ]
