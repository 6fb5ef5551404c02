"""The picture of the rooms of `python/raidlab`, drawn from what they import.

    .venv/bin/python docs/generate.py            # writes docs/images/rooms.svg too
    .venv/bin/python docs/generate.py --check    # status 1 if it is not up to date

A room stands one layer above the highest that it imports, so every arrow points down; where imports go in a circle
there are no layers, and no picture (`graphlib.CycleError`). Arrows that follow from others are left out. Within a layer
rooms are ordered so that few arrows cross, by barycentres (Sugiyama, Tagawa and Toda 1981).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "python" / "raidlab"
PICTURE = DOCS / "images" / "rooms.svg"

# A column of the picture; on a telephone of 360 pixels its letters are 12 high.
_BOX_WIDTH, _BOX_HEIGHT, _LAYER_HEIGHT, _GAP, _MARGIN = 84, 28, 72, 14, 16
# What an arrow takes that passes by a layer.
_PASSING_WIDTH = 8
_STYLE = (
    ".card{fill:#fff}.room{fill:#eaf1f8;stroke:#4a6a8a}.base{fill:none;stroke:#8a9aaa;stroke-dasharray:4 3}"
    "text{fill:#1f2328;font:14px system-ui,sans-serif;text-anchor:middle}"
    ".arrow{fill:none;stroke:#4a6a8a;stroke-width:1.3}.head{fill:#4a6a8a}"
    "@media (prefers-color-scheme:dark){.card{fill:#1c2128}.room{fill:#2b3a4a;stroke:#8ab0d6}text{fill:#e6edf3}"
    ".arrow{stroke:#8ab0d6}.head{fill:#8ab0d6}}"
)

# A room, or the place where an arrow from one to another passes by a layer.
Point = str | tuple[str, str, int]


def imports(package: Path = PACKAGE) -> dict[str, set[str]]:
    """By room (a folder, or a file beside the folders): the rooms that its files import."""
    found: dict[str, set[str]] = {}
    for file in sorted(package.rglob("*.py")):
        room = file.relative_to(package).with_suffix("").parts[0]
        found.setdefault(room, set()).update(_imported(file))
    return {room: {name for name in names if name in found and name != room} for room, names in found.items()}


def _imported(file: Path) -> set[str]:
    """The names below `raidlab` that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module} if node.module != "raidlab" else {f"raidlab.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("raidlab.")}


def reached(graph: Mapping[str, set[str]], room: str) -> set[str]:
    """What a room imports, and what that imports, and so on."""
    found: set[str] = set()
    left = [*graph[room]]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += graph[name]
    return found


def layers_of(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """By room its layer, from 0: one above the highest that it imports.

    Raises
    ------
    graphlib.CycleError
        Where imports go in a circle; it names the rooms.
    """
    layers: dict[str, int] = {}
    for room in TopologicalSorter(graph).static_order():
        layers[room] = max((layers[name] + 1 for name in graph[room]), default=0)
    return layers


def picture(graph: Mapping[str, set[str]]) -> str:
    """The rooms in layers, and an arrow from each to what it imports; files that all may import stand below."""
    files = {room for room in graph if (PACKAGE / f"{room}.py").is_file()}
    ends = {"__init__", "__main__"}
    base = {room for room in files - ends if reached(graph, room) <= files}
    drawn = {room: names - base for room, names in graph.items() if room not in base | ends}
    direct = {
        room: {name for name in names if not any(name in reached(drawn, other) for other in names)}
        for room, names in drawn.items()
    }
    layers = layers_of(direct)
    paths = [_path(room, name, layers) for room in sorted(direct) for name in sorted(direct[room])]
    rows = _ordered(layers, paths)
    places = _placed(rows, paths)
    return _svg(layers, paths, places, sorted(base))


def _path(room: str, name: str, layers: Mapping[str, int]) -> list[Point]:
    """An arrow: the room, a point in every layer between, and what it imports."""
    return [room, *((room, name, layer) for layer in range(layers[room] - 1, layers[name], -1)), name]


def _ordered(layers: Mapping[str, int], paths: list[list[Point]]) -> list[list[Point]]:
    """The points of every layer from left to right, so that few arrows cross; the lowest layer first."""
    level: dict[Point, int] = {**layers}
    level |= {point: point[2] for path in paths for point in path if isinstance(point, tuple)}
    rows = [[point for point in level if level[point] == layer] for layer in range(max(level.values()) + 1)]
    links = [pair for path in paths for pair in pairwise(path)]
    best = rows
    for sweep in range(24):
        down = sweep % 2 == 0
        for layer in range(len(rows) - 2, -1, -1) if down else range(1, len(rows)):
            near = {point: place for place, point in enumerate(rows[layer + 1 if down else layer - 1])}
            rows = [*rows[:layer], _by_barycentre(rows[layer], links, near), *rows[layer + 1 :]]
        best = min(best, rows, key=lambda some: _crossings(some, links))
    return best


def _by_barycentre(row: list[Point], links: list[tuple[Point, Point]], near: Mapping[Point, int]) -> list[Point]:
    def barycentre(point: Point) -> float:
        places = [near[end] for link in links if point in link for end in link if end in near]
        return sum(places) / len(places) if places else row.index(point)

    return sorted(row, key=barycentre)


def _crossings(rows: list[list[Point]], links: list[tuple[Point, Point]]) -> int:
    place = {point: number for row in rows for number, point in enumerate(row)}
    level = {point: number for number, row in enumerate(rows) for point in row}
    return sum(
        (place[one] - place[two]) * (place[to] - place[at]) < 0
        for one, to in links
        for two, at in links
        if level[one] == level[two]
    )


def _placed(rows: list[list[Point]], paths: list[list[Point]]) -> dict[Point, float]:
    """The middle of every point: as near to those it is linked with as the order and the widths allow."""
    x = {point: number * (_BOX_WIDTH + _GAP) + 0.0 for row in rows for number, point in enumerate(row)}
    near: dict[Point, list[Point]] = {point: [] for point in x}
    for path in paths:
        for above, below in pairwise(path):
            near[above].append(below)
            near[below].append(above)
    for _ in range(60):
        for row in rows:
            wanted = [sum(x[other] for other in near[point] or [point]) / len(near[point] or [point]) for point in row]
            x.update(zip(row, _apart(row, wanted), strict=True))
    left = min(x[point] - _width(point) / 2 for point in x)
    return {point: place - left + _MARGIN for point, place in x.items()}


def _apart(row: list[Point], wanted: list[float]) -> list[float]:
    """Places as near to those wanted as can be, in squares, where none overlap: isotonic regression by pooling."""
    steps = [0.0]
    for one, other in pairwise(row):
        steps.append(steps[-1] + (_width(one) + _width(other)) / 2 + _GAP)
    pools: list[list[float]] = []
    for place, step in zip(wanted, steps, strict=True):
        pools.append([place - step])
        while len(pools) > 1 and sum(pools[-2]) / len(pools[-2]) > sum(pools[-1]) / len(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    levels = [sum(pool) / len(pool) for pool in pools for _ in pool]
    return [level + step for level, step in zip(levels, steps, strict=True)]


def _width(point: Point) -> int:
    return _BOX_WIDTH if isinstance(point, str) else _PASSING_WIDTH


def _svg(layers: Mapping[str, int], paths: list[list[Point]], x: Mapping[Point, float], base: Iterable[str]) -> str:
    top = max(layers.values())
    level = {point: point[2] if isinstance(point, tuple) else layers[point] for point in x}
    y = {point: _MARGIN + _LAYER_HEIGHT * (top - level[point]) for point in x}
    width = max(x[point] + _width(point) / 2 for point in x) + _MARGIN
    base_y = _MARGIN + _LAYER_HEIGHT * top + 2 * _BOX_HEIGHT
    height = base_y + _BOX_HEIGHT + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">',
        "<title>Which rooms of the Python package import which: every arrow points down</title>",
        f'<style>{_STYLE}</style><rect class="card" width="100%" height="100%" rx="8"/>',
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0 0L8 4L0 8z"/></marker>',
    ]
    lines += [_arrow(path, _ends(path, paths, x), x, y) for path in paths]
    for room in sorted(layers, key=lambda room: (y[room], x[room])):
        left, middle = x[room] - _BOX_WIDTH / 2, y[room] + _BOX_HEIGHT / 2 + 5
        box = f'x="{left:.1f}" y="{y[room]}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="5"'
        lines.append(f'<rect class="room" {box}/><text x="{x[room]:.1f}" y="{middle:.0f}">{room}</text>')
    box = f'x="{_MARGIN}" y="{base_y}" width="{width - 2 * _MARGIN:.0f}" height="{_BOX_HEIGHT}" rx="5"'
    words = f'<text x="{width / 2:.1f}" y="{base_y + _BOX_HEIGHT / 2 + 5:.0f}">all: {", ".join(base)}</text>'
    return "\n".join([*lines, f'<rect class="base" {box}/>{words}', "</svg>"]) + "\n"


def _ends(path: list[Point], paths: list[list[Point]], x: Mapping[Point, float]) -> tuple[float, float]:
    """Where an arrow leaves its room and where it arrives: those of a room are spread over its side, in their order."""

    def spread(point: Point, beside: Mapping[int, Point]) -> float:
        order = sorted(beside, key=lambda number: x[beside[number]])
        share = (order.index(paths.index(path)) + 1) / (len(order) + 1) - 0.5
        return x[point] + 0.8 * _BOX_WIDTH * share

    leaving = {number: one[1] for number, one in enumerate(paths) if one[0] == path[0]}
    arriving = {number: one[-2] for number, one in enumerate(paths) if one[-1] == path[-1]}
    return spread(path[0], leaving), spread(path[-1], arriving)


def _arrow(path: list[Point], ends: tuple[float, float], x: Mapping[Point, float], y: Mapping[Point, float]) -> str:
    drawn = f"M{ends[0]:.1f} {y[path[0]] + _BOX_HEIGHT}"
    at = ends[0]
    for above, below in pairwise(path):
        to = ends[1] if below == path[-1] else x[below]
        middle = (y[above] + _BOX_HEIGHT + y[below]) / 2
        drawn += f"C{at:.1f} {middle} {to:.1f} {middle} {to:.1f} {y[below]}"
        if below != path[-1]:
            drawn += f"V{y[below] + _BOX_HEIGHT}"
        at = to
    return f'<path class="arrow" marker-end="url(#head)" d="{drawn}"/>'


def main() -> int:
    """Write the picture, or check it."""
    drawn = picture(imports())
    is_current = PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == drawn
    if "--check" not in sys.argv:
        PICTURE.write_text(drawn, encoding="utf-8")
    elif not is_current:
        print("docs/images/rooms.svg is not up to date: run docs/generate.py")
    return 0 if is_current or "--check" not in sys.argv else 1


if __name__ == "__main__":
    sys.exit(main())
