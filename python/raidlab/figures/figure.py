"""What a figure is: panels with titles, made once, shown in a page or saved as SVG and PNG.

Invariants:

- A figure is made from an analysis and runs nothing.
- One definition serves all outputs: the page embeds each panel as SVG (it works offline and reflows on a phone), the
  files hold the panels side by side.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from raidlab.figures.style import EMBEDDED_INK, INK, PAPER_INK, configuration

Chart = alt.Chart | alt.LayerChart

_FILE_COLUMNS = 2
_PNG_SCALE = 2.0
_GAP = 16


@dataclass(frozen=True)
class Panel:
    """One chart of a figure."""

    title: str
    chart: Chart


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes
    ----------
    kind : str
        The name of the file that makes it.
    key : str
        Its identity within a report; also the name of its files.
    title : str
    caption : str
        What is shown and how to read it, in a sentence or two.
    panels : tuple of Panel
    """

    kind: str
    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]

    @cached_property
    def _drawn(self) -> list[str]:
        """Each panel as Vega draws it, in the page's ink; drawing is what costs time, so it is done once."""
        return [_svg(panel.chart) for panel in self.panels]

    def panel_svgs(self) -> list[str]:
        """Each panel as SVG to be placed in a page: it takes the page's text colour and scales with its column."""
        return [_embeddable(svg, panel.title) for svg, panel in zip(self._drawn, self.panels, strict=True)]

    def save(self, folder: Path) -> list[Path]:
        """Write ``<key>.svg`` and ``<key>.png``, the panels side by side; returns their paths."""
        text = _sheet(self._drawn)
        svg, png = folder / f"{self.key}.svg", folder / f"{self.key}.png"
        svg.write_text(text, encoding="utf-8")
        png.write_bytes(vl_convert.svg_to_png(text, scale=_PNG_SCALE))
        return [svg, png]

    def specifications(self) -> list[dict[str, Any]]:
        """The Vega-Lite specification of each panel, validated against its schema."""
        return [panel.chart.to_dict() for panel in self.panels]


def _svg(chart: Chart) -> str:
    # The schema is checked by the tests, for every figure; checking it for every panel of every report takes longer
    # than drawing it.
    specification: dict[str, Any] = chart.to_dict(validate=False)
    specification["config"] = configuration(EMBEDDED_INK)
    text = json.dumps(specification).replace(json.dumps(INK), json.dumps(EMBEDDED_INK))
    return str(vl_convert.vegalite_to_svg(text))


def _sheet(panels: list[str]) -> str:
    """Panels side by side on white paper, each an SVG within the SVG."""
    sizes = [(_length(svg, "width"), _length(svg, "height")) for svg in panels]
    column = max(width for width, _ in sizes) + _GAP
    placed, top, bottom = [], float(_GAP), float(_GAP)
    for index, (svg, (_, height)) in enumerate(zip(panels, sizes, strict=True)):
        if index % _FILE_COLUMNS == 0:
            top = bottom
        left = _GAP + column * (index % _FILE_COLUMNS)
        placed.append(svg.replace("<svg", f'<svg x="{left:g}" y="{top:g}"', 1).replace(EMBEDDED_INK, PAPER_INK))
        bottom = max(bottom, top + height + _GAP)
    width = _GAP + column * min(len(panels), _FILE_COLUMNS)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{bottom:g}">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *placed, "</svg>"])


def _length(svg: str, side: str) -> float:
    match = re.search(rf'<svg[^>]*?\s{side}="([\d.]+)"', svg)
    assert match is not None, "Vega gives its drawings a size"
    return float(match.group(1))


def _embeddable(svg: str, title: str) -> str:
    """Let the SVG scale with its column, and say to screen readers what it is."""
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    width = _length(svg, "width")
    head = re.sub(r'\s(width|height)="[\d.]+"', "", svg[: svg.index(">") + 1])
    head = head.replace("<svg", f'<svg role="img" aria-label="{label}" style="width:100%;max-width:{width:.0f}px"', 1)
    return head + svg[svg.index(">") + 1 :]


def key_of(*words: str) -> str:
    """A file name from words."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def data_of(rows: list[dict[str, Any]]) -> alt.InlineData:
    """Rows as the data of a chart: they travel inside it, so that a figure needs no file beside it."""
    return alt.InlineData(values=rows)
