"""The report of a run as one HTML page.

Invariant: a report reads an analysis; it never runs anything.
"""

from raidlab.report.answer import Answer, answers
from raidlab.report.page import render, write_page

__all__ = ["Answer", "answers", "render", "write_page"]
