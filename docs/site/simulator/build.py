"""The page in which the simulator runs: its door for browsers, and the words of studies and reports, in one file.

    .venv/bin/python docs/site/simulator/build.py raidlab_web.wasm python/raidlab/report/simulator.html

Invariants:

- The page fetches nothing: the compiled simulator, its workers, style and scripts lie within it.
- A word, a default or a limit that raidlab has is taken from it and stands in no script.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from pathlib import Path
from typing import Any

from markupsafe import Markup

from raidlab.analysis.checks import single_run, target_never_reached
from raidlab.devices.catalogue import catalogue_entries
from raidlab.report import answer, cards
from raidlab.report.figures.style import COLOURS, SHAPES
from raidlab.report.page import QUICK, fill
from raidlab.run.request import MEASURE_ROUNDS, WARMUP_ROUNDS, cell_request
from raidlab.stats import NOTHING_SHOWN_PERCENT
from raidlab.stats.special import t_quantile
from raidlab.study import expand, load_study_text
from raidlab.study.device import load_device

HERE = Path(__file__).resolve().parent
# Each needs those before it.
SCRIPTS = ("door", "pool", "settings", "cells", "files", "answer", "chart", "page")
SEED = 1
WORKLOAD = "this work"
# The budget of a first look, and that of what is told; a study that is copied has both.
QUICK_AMOUNT = {"warmup": 200, "measure": 400, "repeats": 1, "fill_caches": False}
FULL_AMOUNT = {"warmup": 2000, "measure": 4000, "repeats": 5, "fill_caches": True}
PATTERNS = {
    "random": ("at random", '"uniform"'),
    "sequential": ("in sequence", '{ kind = "mixed", sequential = 0.99 }'),
    "hot": ("some places often", '{ kind = "zipf", theta = 0.9 }'),
}
_TEMPLATE = """
name = "template"
title = "What is not said"
on = ["sim"]
[[array]]
name = "raid0"
tree = "raid0(2)"
[[workload]]
name = "{workload}"
read = 0.5
size = "8KiB"
address = {address}
[load]
depths = [1]
[sim]
device = "hdd-7200"
measure = {{ requests = 100 }}
"""


def template_cell(address: str) -> dict[str, Any]:
    """A cell of a study that says as little as the page's studies do: what is not said has raidlab's own defaults."""
    loaded = load_study_text(_TEMPLATE.format(workload=WORKLOAD, address=address), HERE / "template.toml")
    cell = expand(loaded.study, "sim", seed=SEED).cells[0]
    text = cell_request(loaded, cell, members=[{}], sector_bytes=512, quick=False)
    found: dict[str, Any] = json.loads(text)
    return found


def devices() -> dict[str, dict[str, Any]]:
    """The library of devices, as cells take them."""
    models = {entry.name: load_device(entry.name, HERE / "-") for entry in catalogue_entries()}
    return {
        name: {
            "title": str(model.parameters.get("name") or name),
            "description": str(model.parameters.get("description") or ""),
            "capacity_bytes": model.capacity_bytes,
            "sector_bytes": model.sector_bytes,
            "parameters": {key: value for key, value in model.parameters.items() if key != "provenance"},
        }
        for name, model in models.items()
    }


def page_data() -> dict[str, Any]:
    """All that the scripts take from raidlab."""
    cells = {name: template_cell(text) for name, (_, text) in PATTERNS.items()}
    return {
        "cell": cells["random"],
        "patterns": {
            name: {"title": title, "text": text, "address": cells[name]["workload"]["address"]}
            for name, (title, text) in PATTERNS.items()
        },
        "devices": devices(),
        "seed": SEED,
        "workload": WORKLOAD,
        "quick": QUICK_AMOUNT,
        "full": FULL_AMOUNT,
        "warmup_rounds": WARMUP_ROUNDS,
        "measure_rounds": MEASURE_ROUNDS,
        "swept_to": 64,
        "max_depth": 128,
        "colours": COLOURS,
        "shapes": SHAPES,
        "student": [t_quantile(0.975, degrees) for degrees in range(1, FULL_AMOUNT["repeats"])],
        "nothing_shown_percent": NOTHING_SHOWN_PERCENT,
        "wide_percent": single_run.WIDE_PERCENT,
        "verbs": answer.VERBS,
        "unsure": answer.UNSURE,
        "words": {"simulated": answer.TARGET_WORDS["sim"], "quick": QUICK, "once": cards.ONE_RUN_EACH},
        "checks": {
            "repeated": single_run.REPEATED,
            "wide": single_run.WIDE,
            "below_target": target_never_reached.BELOW,
            "met_target": target_never_reached.MET,
        },
    }


def render(wasm: bytes) -> str:
    """The page's text, around the compiled door."""
    script = "\n".join((HERE / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    # What ends a script in HTML may stand in none.
    data = json.dumps(page_data(), sort_keys=True).replace("</", "<\\/")
    return fill(
        "page.html.j2",
        beside=HERE,
        seed=SEED,
        data=Markup(data),
        worker=Markup((HERE / "worker.js").read_text(encoding="utf-8")),
        wasm=Markup(base64.b64encode(gzip.compress(wasm, mtime=0)).decode()),
        page=Markup(script),
        own_style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
    )


def main() -> None:
    """Write the page."""
    source, target = (Path(argument) for argument in sys.argv[1:3])
    target.write_text(render(source.read_bytes()), encoding="utf-8")
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
