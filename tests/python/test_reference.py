"""The reference of study files is what the schema says."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import study_file


def test_the_page_is_up_to_date() -> None:
    assert study_file.PAGE.read_text(encoding="utf-8") == study_file.page(), "run docs/generate.py"


def test_every_key_has_a_meaning() -> None:
    rows = [line for line in study_file.page().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert all(not line.endswith("|  |") for line in rows)
