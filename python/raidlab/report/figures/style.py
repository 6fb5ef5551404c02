"""How figures look: colours, shapes, fonts, the same everywhere.

Invariants:

- Arrays are told apart by colour *and* by shape, so that colour-blind readers and black-and-white print lose nothing.
  The colours are those of Okabe and Ito, without the yellow that vanishes on white, then a dark grey and a brown.
- What a colour is on dark paper stands beside it (`ON_DARK`); a chart names only that of light paper.
- An array keeps its colour and shape through all figures of a group.
- Text and lines use one ink. Embedded in a page the ink is `currentColor`, so that the page's light and dark schemes
  apply; in a file of its own it is dark on white.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D", "#8C564B")
# Parts of one whole; arrays have none of these.
PART_COLOURS = ("#8C8C8C", "#54278F", "#A79FD0", "#B5305F")
# Those that would be too dark, or too much alike, on dark paper.
ON_DARK = {
    "#0072B2": "#2F80C8",
    "#009E73": "#1DB488",
    "#4D4D4D": "#DADFE4",
    "#8C564B": "#A0695C",
    "#8C8C8C": "#8C929A",
    "#54278F": "#9A75E0",
    "#A79FD0": "#D9D4F7",
    "#B5305F": "#C23A6E",
}
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

# What charts name, and drawings have until it becomes the page's ink, or that of paper in a file of its own. Names are
# refused the mark of direction in it (`study.words`), so none of them is taken for it.
INK = "\u2069ink"
EMBEDDED_INK = "currentColor"
PAPER_INK = "#1f2328"

PANEL_WIDTH, PANEL_HEIGHT = 320, 230
# No chart is wider, axis and names included: a phone of 390 pixels has 364 of them for it, and letters of 12 become 11.
CHART_WIDTH = 394


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each array, in the order of the study."""
    return {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}


def shapes_of(names: Sequence[str]) -> dict[str, str]:
    """A shape for each array, in the order of the study; where colours begin again, shapes are one further on."""
    return {name: SHAPES[(index + index // len(COLOURS)) % len(SHAPES)] for index, name in enumerate(names)}


def label_room(letters: int) -> dict[str, int]:
    """The padding of a panel with names of so many letters at its left: browsers draw them wider than Vega measures."""
    return {"left": 5 + letters, "top": 5, "right": 5, "bottom": 5}


def configuration() -> dict[str, Any]:
    """The Vega-Lite configuration of all charts, on whatever lies behind."""
    text = {"font": FONT, "color": INK}
    label = {"labelFont": FONT, "labelColor": INK, "labelFontSize": 12}
    title = {"titleFont": FONT, "titleColor": INK, "titleFontSize": 12, "titleFontWeight": "normal"}
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None},
        "title": {**text, "fontSize": 14, "fontWeight": 600, "anchor": "start", "offset": 8},
        "axis": {
            **label,
            **title,
            "gridColor": INK,
            "gridOpacity": 0.14,
            "domainColor": INK,
            "domainOpacity": 0.5,
            "tickColor": INK,
            "tickOpacity": 0.5,
            "titlePadding": 8,
            # Fonts differ in width from machine to machine.
            "labelSeparation": 8,
        },
        "legend": {
            **label,
            **title,
            "orient": "bottom",
            "columns": 3,
            "symbolSize": 90,
            # As strong as the marks: a paler one is another colour on a dark page.
            "symbolOpacity": 1,
            "labelLimit": 220,
            # Text is measured in a narrow font here, and a reader's may be an eighth wider.
            "columnPadding": 34,
            # Below one another: side by side they would be wider than a phone.
            "layout": {"bottom": {"direction": "vertical", "margin": 10}},
        },
        "text": {"font": FONT, "color": INK, "fontSize": 12},
        "rule": {"color": INK},
    }
