"""Who may know whom, read from the imports themselves.

Each room may know those that stand before it in the table. Nothing but `measure` and `fit`, and the top, may know
`run`, so that no figure, no metric and no report can start a measurement.
"""

from __future__ import annotations

import ast
from pathlib import Path

import raidlab

PACKAGE = Path(raidlab.__file__).parent
BASE = {"errors", "histogram", "directory", "reading", "_core", "__init__"}
MAY_KNOW: dict[str, set[str]] = {
    "errors": set(),
    "histogram": set(),
    "directory": set(),
    "reading": set(),
    "stats": set(),
    "study": set(),
    "network": {"stats"},
    "formats": {"study"},
    "results": {"study"},
    "run": {"study", "formats", "results", "stats"},
    "measure": {"study", "formats", "run", "results", "stats"},
    "analysis": {"study", "results", "stats"},
    "published": {"study", "results", "analysis", "stats"},
    "fit": {"study", "run", "results", "analysis", "published", "stats"},
    "report": {"study", "formats", "results", "analysis", "published", "stats"},
    "devices": {"study", "formats", "report", "stats"},
    "api": {"study", "formats", "run", "results", "analysis", "published", "report"},
    "cli": {
        "measure",
        "network",
        "stats",
        "study",
        "formats",
        "run",
        "results",
        "analysis",
        "published",
        "fit",
        "devices",
        "report",
        "api",
    },
    "__init__": {"api", "analysis", "results", "study"},
    "__main__": {"cli"},
}


def _imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found |= {node.module} if node.module != "raidlab" else {f"raidlab.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in found if name.startswith("raidlab.")}


def test_every_import_goes_the_one_way() -> None:
    wrong = []
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        room = parts[0]
        allowed = MAY_KNOW[room] | BASE | {room, "__version__"}
        wrong += [f"{'/'.join(parts)} imports {name}" for name in sorted(_imports(file) - allowed)]
    assert not wrong, "\n".join(wrong)


def test_every_room_is_in_the_table() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms <= set(MAY_KNOW)
