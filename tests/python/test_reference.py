"""The reference of study files is what the schema says."""

from __future__ import annotations

from pathlib import Path

from raidlab.study.reference import page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "study-file.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "python -m raidlab.study.reference > docs/reference/study-file.md"
    )


def test_every_key_has_a_meaning() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert all(not line.endswith("|  |") for line in rows)
