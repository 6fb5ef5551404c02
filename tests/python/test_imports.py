"""Who may know whom, read from the imports themselves: one way only, and drawn as it is."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from graphlib import CycleError
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import rooms  # noqa: E402 - the folder is no package

GRAPH = rooms.imports()
BASE = {"errors", "histogram", "directory", "reading", "log"}
CRATES = ROOT / "crates"
RUST_TYPE = re.compile(r"^(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type|union) (\w+)", re.MULTILINE)
# Bindings for Python bear the name of what they bind.
BINDINGS = {"DepthSearch"}
# Nobody else can start a measurement: no figure, no metric, no check, no report.
MAY_MEASURE = {"run", "measure", "devices", "recommend", "api", "cli", "__init__", "__main__"}


def test_imports_go_in_no_circle() -> None:
    layers = rooms.layers_of(GRAPH)
    assert all(layers[name] < layers[room] for room, names in GRAPH.items() for name in names)
    assert all(GRAPH[name] <= BASE for name in BASE), "what stands below all knows no room"


def test_a_circle_is_found_and_named() -> None:
    with pytest.raises(CycleError, match="stats"):
        rooms.layers_of({**GRAPH, "stats": {*GRAPH["stats"], "report"}})


def test_nothing_that_reads_results_can_start_a_measurement() -> None:
    assert {room for room in GRAPH if "run" in rooms.reached(GRAPH, room)} <= MAY_MEASURE


def test_few_rooms() -> None:
    assert len([room for room in GRAPH if (rooms.PACKAGE / room).is_dir()]) <= 13


def test_the_picture_is_up_to_date() -> None:
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.picture(GRAPH), "run docs/generate.py"


def test_every_arrow_of_the_picture_points_down() -> None:
    arrows = re.findall(r'class="arrow"[^>]* d="([^"]+)"', rooms.picture(GRAPH))
    assert len(arrows) >= len(GRAPH) - len(BASE) - 3
    for arrow in arrows:
        heights = [float(number) for number in re.findall(r"[\d.]+(?=[CV]|$)", arrow)]
        assert len(heights) > 1 and heights == sorted(set(heights)), arrow


def test_a_class_name_stands_for_one_thing() -> None:
    rooms_of: dict[str, set[str]] = defaultdict(set)
    for path in sorted(rooms.PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms_of[node.name].add(path.relative_to(rooms.PACKAGE).parts[0])
    assert len(rooms_of) > 300
    assert not {name: sorted(found) for name, found in rooms_of.items() if len(found) > 1}


def test_a_name_of_a_type_stands_for_one_thing_in_all_crates() -> None:
    crates_of: dict[str, set[str]] = defaultdict(set)
    for path in sorted(CRATES.glob("*/src/**/*.rs")):
        text = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests {")[0]
        for name in RUST_TYPE.findall(text) if not path.name.endswith("tests.rs") else []:
            crates_of[name].add(path.relative_to(CRATES).parts[0])
    assert len(crates_of) > 500
    assert not {name: sorted(found) for name, found in crates_of.items() if len(found) > 1 and name not in BINDINGS}
