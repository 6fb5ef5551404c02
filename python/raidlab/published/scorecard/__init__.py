"""Evaluation sheets: what each box of an acceptance test did against what is required of it, and boxes side by side.

Invariants:

- Which tests there are, what they require and what is entered by hand are data: ``sheet.toml`` of the study, and a file
  of the user's. No study is known by name.
- A sheet is a function of runs and of these files; nothing here measures.

Reference: I. Bird et al., *Evaluating RAID in the Real World*, Jefferson Lab, 1998 (qualifying, discriminating tests).
"""

from raidlab.published.scorecard.boxes import Box, boxes_of
from raidlab.published.scorecard.facts import load_facts, load_network
from raidlab.published.scorecard.make import BoxSheet, Sheet, make_sheet
from raidlab.published.scorecard.plan import has_plan, load_plan
from raidlab.published.scorecard.text import box_table, sheet_json, sheet_markdown, side_table

__all__ = [
    "Box",
    "BoxSheet",
    "Sheet",
    "box_table",
    "boxes_of",
    "has_plan",
    "load_facts",
    "load_network",
    "load_plan",
    "make_sheet",
    "sheet_json",
    "sheet_markdown",
    "side_table",
]
