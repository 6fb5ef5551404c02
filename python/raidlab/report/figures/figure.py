"""What a figure is: panels with titles, made once, shown in a page or saved as SVG and PNG.

Invariants:

- A figure is made from an analysis and runs nothing.
- One definition serves all outputs: the page embeds each panel as SVG (it works offline and reflows on a phone), the
  files hold the panels side by side.
- A mark carries what it stands for as its description (``description="tip:N"``), which the page shows where it is
  pointed at. Lines and labels carry none.
"""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from raidlab.directory import Directory
from raidlab.errors import RaidlabError
from raidlab.report.figures.style import EMBEDDED_INK, INK, PAPER_INK, configuration
from raidlab.study import Study

Chart = alt.Chart | alt.LayerChart

_FILE_COLUMNS = 2
_PNG_SCALE = 2.0
_GAP = 16
# Of addresses, as seen with V8 as vl-convert 1.x has it: with 64 GiB it ends the process, with 66 it draws.
_V8_RESERVES_BYTES = 66 << 30


@dataclass(frozen=True)
class Panel:
    """One chart of a figure.

    Attributes
    ----------
    alt : str
        What the chart shows, with its figures, for whoever does not see it.
    """

    title: str
    chart: Chart
    alt: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes
    ----------
    kind : str
        The name of the file that makes it.
    key : str
        Its identity within a report; also the name of its files.
    caption : str
        What is shown and how to read it, in a sentence or two.
    """

    kind: str
    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]

    @cached_property
    def _drawn(self) -> list[str]:
        """Each panel as Vega draws it, in `INK`; drawing is what costs time, so it is done once."""
        return [_svg(panel.chart) for panel in self.panels]

    def panel_svgs(self) -> list[str]:
        """Each panel as SVG to be placed in a page: it takes the page's text colour and scales with its column."""
        return [embeddable(svg, panel) for svg, panel in zip(self._drawn, self.panels, strict=True)]

    def save(self, folder: Path | Directory) -> list[Path]:
        """Write ``<key>.svg`` and ``<key>.png``, the panels side by side; returns their paths.

        Parameters
        ----------
        folder : Path or Directory
            Where the two files go; files of their names are replaced.
        """
        if not isinstance(folder, Directory):
            with Directory.open(folder) as opened:
                return self.save(opened)
        text = _sheet(self._drawn)
        png = vl_convert.svg_to_png(text, scale=_PNG_SCALE)
        return [folder.replace(f"{self.key}.svg", text.encode()), folder.replace(f"{self.key}.png", png)]

    def specifications(self) -> list[dict[str, Any]]:
        """The Vega-Lite specification of each panel, validated against its schema."""
        return [panel.chart.to_dict() for panel in self.panels]


def _svg(chart: Chart) -> str:
    # The schema is checked by the tests, for every figure; checking it for every panel of every report takes longer
    # than drawing it.
    specification: dict[str, Any] = chart.to_dict(validate=False)
    specification["config"] = configuration()
    _check_addresses()
    return str(vl_convert.vegalite_to_svg(json.dumps(specification)))


def _check_addresses() -> None:
    """Refuse to draw where V8, which runs Vega, could not reserve its addresses: it would end the process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _V8_RESERVES_BYTES:
        told = f"whose library reserves {_V8_RESERVES_BYTES >> 30} GiB of addresses, of which it uses little"
        raise RaidlabError(f"ulimit -v {limit >> 10}: is too little for figures, {told}; accepted: ulimit -v unlimited")


def _sheet(panels: list[str]) -> str:
    """Panels side by side on white paper, each an SVG within the SVG."""
    sizes = [(length(svg, "width"), length(svg, "height")) for svg in panels]
    column = max(width for width, _ in sizes) + _GAP
    placed, top, bottom = [], float(_GAP), float(_GAP)
    for index, (svg, (_, height)) in enumerate(zip(panels, sizes, strict=True)):
        if index % _FILE_COLUMNS == 0:
            top = bottom
        left = _GAP + column * (index % _FILE_COLUMNS)
        placed.append(svg.replace("<svg", f'<svg x="{left:g}" y="{top:g}"', 1).replace(INK, PAPER_INK))
        bottom = max(bottom, top + height + _GAP)
    width = _GAP + column * min(len(panels), _FILE_COLUMNS)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{bottom:g}">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *placed, "</svg>"])


def length(svg: str, side: str) -> float:
    """The width or height of a drawing, in pixels."""
    match = re.search(rf'<svg[^>]*?\s{side}="([\d.]+)"', svg)
    assert match is not None, "Vega gives its drawings a size"
    return float(match.group(1))


def embeddable(svg: str, panel: Panel) -> str:
    """An SVG that scales with its column, keeps its room while the page loads, and says what it shows.

    It knows its own width, ``--own``, below which the page's style says how far it may go: its letters shrink with it.

    What a page says once (the font) and what only a lone SVG needs is left out: that halves it.
    """
    width, height = length(svg, "width"), length(svg, "height")
    body = svg[svg.index(">") + 1 :].replace(INK, EMBEDDED_INK)
    for pattern, text in _SLIMMED:
        body = pattern.sub(text, body)
    said = f"{panel.title}. {panel.alt}" if panel.alt else panel.title
    return (
        f'<svg role="img" aria-label="{_attribute(said)}" class="chart" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}" style="--own:{width:g}px">{body}'
    )


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _shortened(match: re.Match[str]) -> str:
    """An attribute that says where something is, to a hundredth of a pixel."""
    return _LONG.sub(r"\1", match.group(0))


_LONG = re.compile(r"(\.\d\d)\d+")
# What Vega writes that shows nothing within a page. Of what it says to screen readers the marks' descriptions stay.
_SLIMMED: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r'<path class="(?:background|foreground)" aria-hidden="true" d="[^"]*"[^>]*/>'), ""),
    (re.compile(r' role="graphics-symbol" aria-roledescription="(?:axis|legend|title)"(?: aria-label="[^"]*")?'), ""),
    (re.compile(r' role="graphics-(?:object|symbol)" aria-roledescription="[^"]*"'), ""),
    (re.compile(r' (?:font-family="[^"]*"|font-size="12px"|font-weight="normal")'), ""),
    (re.compile(r' (?:aria-hidden="true"|pointer-events="none"|opacity="1"|stroke-width="1"|class="mark-[^"]*")'), ""),
    (re.compile(r' (?:d|transform|x2|y2)="[^"]*"'), _shortened),
)


def key_of(*words: str) -> str:
    """A file name from words; of several names `keys_of` comes first: they may differ in what is dropped alone."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")


def keys_of(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Of each name a part of keys that no other of them has, and that is not ``taken``.

    It is `key_of` the name; of those that would share one, the first in order has it, and the others have a number.

    Examples
    --------
    >>> keys_of(["a b", "a-b", "a-b-2", "Gruppe ä", "rest"], taken=["rest"])
    {'a b': 'a-b', 'a-b-2': 'a-b-2', 'Gruppe ä': 'gruppe', 'a-b': 'a-b-3', 'rest': 'rest-2'}
    """
    found: dict[str, str] = {}
    used, later = {*taken}, []
    for name in dict.fromkeys(names):
        if (key := key_of(name)) in used:
            later.append(name)
        else:
            used.add(key)
            found[name] = key
    for name in later:
        key = next(key for number in count(2) if (key := key_of(name, str(number))) not in used)
        used.add(key)
        found[name] = key
    return found


def group_key(study: Study, group: str) -> str:
    """The part of keys that stands for a group of a study; the page has other sections, too."""
    return keys_of((array.group for array in study.array), taken=("own", "rest", "target"))[group]


def array_key(study: Study, array: str) -> str:
    """The part of keys that stands for an array of a study."""
    return keys_of(one.name for one in study.array)[array]
