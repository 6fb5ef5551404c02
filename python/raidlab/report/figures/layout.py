"""Where an array's chunks lie, as the textbooks draw it: a column a disk, data by number, parity by stripe.

It is the engine's own map of the array's tree (`raidlab layout`), so it shows what was run. Disks that copy others
stand behind all that are copied, not each beside its own: of ten pairs disk i and its shadow i + 10.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import altair as alt

from raidlab import _core
from raidlab.analysis.metrics import Analysis
from raidlab.published.compare import PublishedComparison
from raidlab.report.figures.chart import Mark, data_of, layered
from raidlab.report.figures.figure import Chart, Figure, Panel
from raidlab.report.figures.own import own_figures
from raidlab.report.figures.printed_points import Printed
from raidlab.report.figures.style import CHART_WIDTH, COLOURS
from raidlab.study.figure import StudyFigure

KIND = "layout"
_ROWS = 6
_COLUMN, _ROW = 30, 24
# What stands at the left of the fields, and a letter in one of them, in pixels.
_LEFT, _LETTER = 46, 8
DATA, REDUNDANCY, SPARE = "data", "parity", "spare"
PARTS = {"data": DATA, "p": REDUNDANCY, "q": REDUNDANCY, "spare": SPARE}


def figures(analysis: Analysis, published: PublishedComparison | None = None) -> Iterator[Figure]:
    """One figure for each the study asks for, and each target; a panel for each array."""
    yield from own_figures(analysis, KIND, "", _panels, published)


def _panels(analysis: Analysis, spec: StudyFigure, target: str, _printed: Printed) -> Iterator[Panel]:
    for array, title in zip(spec.arrays, spec.panels or spec.arrays, strict=True):
        if analysis.swept(target, array=array) and array not in analysis.run.standing:
            members = _copies_last(_core.layout_map(json.dumps(analysis.run.tree(array)), _ROWS)["members"])
            cells = [
                Mark(str(row), disk, part=PARTS[cell["kind"]], label=_text(cell))
                for disk, column in enumerate(members)
                for row, cell in enumerate(column)
                if cell["kind"] in PARTS
            ]
            first = ", ".join(_text(column[0]) for column in members if column)
            yield Panel(title, _chart(cells, len(members), title), f"{len(members)} disks; their first row: {first}.")


def _copies_last(members: list[list[_core.MapCell]]) -> list[list[_core.MapCell]]:
    """The disks, each with how many before it hold the same, by that number."""
    copy_of = [members[:disk].count(column) for disk, column in enumerate(members)]
    return [members[disk] for disk in sorted(range(len(members)), key=copy_of.__getitem__)]


def _text(cell: _core.MapCell) -> str:
    match cell["kind"]:
        case "data":
            return str(cell["chunk"])
        case "spare":
            return f"S{cell['number']}"
        case kind:
            return f"{kind.upper()}{cell['row']}"


def _chart(cells: list[Mark], disks: int, title: str) -> Chart:
    rows = sorted({int(cell.line) for cell in cells})
    place = {
        "x": alt.X("value:O", title="disk", axis=alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False)),
        "y": alt.Y("line:O", title="stripe", sort=[str(row) for row in rows], axis=alt.Axis(ticks=False, domain=False)),
    }
    colours = alt.Scale(domain=[DATA, REDUNDANCY, SPARE], range=[COLOURS[5], COLOURS[4], COLOURS[7]])
    shown = [part for part in (DATA, REDUNDANCY, SPARE) if any(cell.part == part for cell in cells)]
    legend = alt.Legend(title=None, values=shown) if len(shown) > 1 else None
    fields = alt.Chart(data_of(cells)).mark_rect(opacity=0.45, aria=False)
    words = alt.Chart(data_of(cells)).mark_text(fontSize=12, aria=False)
    layers = [
        fields.encode(**place, color=alt.Color("part:N", title=None, scale=colours, legend=legend)),
        words.encode(**place, text="label:N"),
    ]
    widest = max(_LETTER * max(len(cell.label) for cell in cells), min(_COLUMN, (CHART_WIDTH - _LEFT) // disks))
    return layered(layers, title, widest * disks, _ROW * len(rows))
