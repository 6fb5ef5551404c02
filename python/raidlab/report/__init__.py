"""The report of a run as one HTML page: one file a part of it.

Invariant: a report reads an analysis; it never runs anything.
"""

from raidlab.report.answer import answers
from raidlab.report.page import PAGE, render, write_page

__all__ = ["PAGE", "answers", "render", "write_page"]
