"""Who may know whom, read from the imports themselves.

The order is study, formats, run, results, metrics/stats/checks/model, figures, report, and on top api and cli. A
package may know those before it; nothing but `results` (the words of an outcome) and the top may know `run`, so that no
figure, no metric and no report can start a measurement.
"""

from __future__ import annotations

import ast
from pathlib import Path

import raidlab

PACKAGE = Path(raidlab.__file__).parent
BASE = {"errors", "histogram", "directory", "reading", "_core", "__init__"}
MAY_KNOW = {
    "errors": set(),
    "histogram": set(),
    "directory": set(),
    "reading": set(),
    "study": set(),
    "formats": {"study"},
    "run": {"study", "formats", "stats"},
    "results": {"study", "run"},
    "model": set(),
    "stats": set(),
    "metrics": {"study", "results", "model", "stats"},
    "quantities": {"study", "results", "metrics", "model", "stats"},
    "beside": {"study", "results", "metrics", "quantities", "stats"},
    "choice": {"study", "results", "metrics", "quantities", "stats"},
    "sheet": {"study", "results", "metrics", "quantities", "checks", "stats"},
    "fit": {"study", "run", "results", "metrics", "quantities", "beside", "stats"},
    "checks": {"study", "metrics", "stats", "results"},
    "figures": {"beside", "study", "metrics", "stats", "results", "quantities"},
    "devices": {"study", "formats", "stats", "figures"},
    "report": {"study", "metrics", "stats", "checks", "beside", "choice", "figures", "results"},
    "api": {"study", "formats", "run", "results", "metrics", "checks", "beside", "choice", "report"},
    "export": {"study", "formats", "results", "metrics", "checks"},
    "measure": {"study", "formats", "run", "results", "stats"},
    "network": {"stats"},
    "probe": {"study", "run", "measure", "stats"},
    "cli": {
        "measure",
        "network",
        "probe",
        "stats",
        "model",
        "export",
        "study",
        "formats",
        "run",
        "results",
        "metrics",
        "beside",
        "choice",
        "sheet",
        "fit",
        "checks",
        "devices",
        "report",
        "api",
    },
    "__init__": {"api", "checks", "results", "study"},
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


def test_results_know_only_the_words_of_run() -> None:
    for file in (PACKAGE / "results").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("raidlab.run"):
                assert node.module == "raidlab.run.outcome", file


def test_every_room_is_in_the_table() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms <= set(MAY_KNOW)
